"""A leader asks the coordinator whether a partition belongs to a transaction (KIP-890)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fakekafka.coordinators.transactions.verification import TransactionVerifier
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    TransactionPartitions,
)
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.hosts import FakeClock, FakeHost

E = ErrorCode
ORDERS = TopicPartition("orders", 0)
AUDIT = TopicPartition("audit", 0)


class TransactionRig:
    """A verifier, its requests, and the outcomes it reported."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.coordinator: int | None = 2
        self.requests: list[tuple[int, AddPartitionsToTxnRequest, Callable[[Any], object]]] = []
        self.told: list[tuple[str, dict[TopicPartition, ErrorCode]]] = []
        cache = SimpleNamespace(
            partition_count=lambda _topic: 0,
            partition_state=self._state,
            is_alive=lambda broker_id: broker_id != 9,
        )
        self.verifier = TransactionVerifier(
            FakeHost("broker-1", self.clock),
            BrokerConfig({"broker.id": 1}, "3.9"),
            cast(Any, cache),
            lambda broker, request, answered: self.requests.append((broker, request, answered)),
        )

    def _state(self, _name: TopicPartition) -> Any:
        return None if self.coordinator is None else SimpleNamespace(leader=self.coordinator)

    def ask(
        self, name: str = "id", *partitions: TopicPartition, epoch: int = 0, modern: bool = True
    ) -> None:
        asked = TransactionPartitions(name, 7, epoch, partitions or (ORDERS,), True)
        label = f"{name} {epoch}"
        self.verifier.verify(asked, modern, lambda errors: self.told.append((label, dict(errors))))

    def turn(self) -> None:
        self.clock.advance(0)

    def answer(self, response: AddPartitionsToTxnResponse | None) -> None:
        _, _, answered = self.requests.pop(0)
        answered(response)

    def answer_with(self, *errors: ErrorCode) -> None:
        (asked,) = self.requests[0][1].transactions
        outcome = tuple(zip(asked.partitions, errors, strict=True))
        result = AddPartitionsToTxnResult(asked.transactional_id, outcome)
        self.answer(AddPartitionsToTxnResponse((result,)))


def test_verified_partitions_have_no_error() -> None:
    rig = TransactionRig()
    rig.ask("id", ORDERS, AUDIT)
    rig.turn()
    ((broker, request, _),) = rig.requests
    assert (broker, request.transactions[0].verify_only) == (2, True)
    rig.answer_with(E.NONE, E.NONE)
    assert rig.told == [("id 0", {})]


@pytest.mark.parametrize(
    ("answered", "modern", "old"),
    [
        (E.TRANSACTION_ABORTABLE, E.TRANSACTION_ABORTABLE, E.INVALID_TXN_STATE),
        (E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH, E.INVALID_PRODUCER_EPOCH),
        (E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
        (E.NOT_COORDINATOR, E.NOT_COORDINATOR, E.NOT_COORDINATOR),
    ],
)
def test_errors_depend_on_what_the_client_supports(
    answered: ErrorCode, modern: ErrorCode, old: ErrorCode
) -> None:
    for knows, expected in ((True, modern), (False, old)):
        rig = TransactionRig()
        rig.ask(modern=knows)
        rig.turn()
        rig.answer_with(answered)
        assert rig.told == [("id 0", {ORDERS: expected})]


@pytest.mark.parametrize("coordinator", [None, 9])
def test_without_a_coordinator(coordinator: int | None) -> None:
    """A partition of the log without a known or live leader is COORDINATOR_NOT_AVAILABLE."""
    rig = TransactionRig()
    rig.coordinator = coordinator
    rig.ask()
    assert rig.told == [("id 0", {ORDERS: E.COORDINATOR_NOT_AVAILABLE})]


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (None, E.NETWORK_EXCEPTION),
        (AddPartitionsToTxnResponse((), E.CLUSTER_AUTHORIZATION_FAILED), E.INVALID_TXN_STATE),
        (AddPartitionsToTxnResponse((), E.UNKNOWN_SERVER_ERROR), E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_request_that_fails_as_a_whole(
    response: AddPartitionsToTxnResponse | None, error: ErrorCode
) -> None:
    rig = TransactionRig()
    rig.ask("a")
    rig.ask("b", AUDIT)
    rig.turn()
    rig.answer(response)
    assert rig.told == [("a 0", {ORDERS: error}), ("b 0", {AUDIT: error})]


def test_one_request_to_a_coordinator_at_a_time() -> None:
    """Verifications requested while a request is in flight are sent together after its answer."""
    rig = TransactionRig()
    rig.ask("a")
    rig.turn()
    rig.ask("b")
    rig.ask("c")
    rig.turn()
    assert len(rig.requests) == 1
    rig.answer_with(E.NONE)
    ((_, request, _),) = rig.requests
    assert [asked.transactional_id for asked in request.transactions] == ["b", "c"]


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (0, [("id 0", {ORDERS: E.NETWORK_EXCEPTION})]),
        (1, [("id 0", {ORDERS: E.INVALID_PRODUCER_EPOCH})]),
        (-1, [("id -1", {ORDERS: E.INVALID_PRODUCER_EPOCH})]),
    ],
)
def test_a_repeated_verification_replaces_the_queued_one(
    second: int, told: list[tuple[str, dict[TopicPartition, ErrorCode]]]
) -> None:
    """A repeated request replaces the queued one, a newer epoch fences it, and an older epoch is
    refused."""
    rig = TransactionRig()
    rig.ask()
    rig.ask(epoch=second)
    assert rig.told == told
    rig.turn()
    ((_, request, _),) = rig.requests
    assert [asked.producer_epoch for asked in request.transactions] == [max(0, second)]
