"""Delegation tokens at several brokers (KIP-48; Kafka: ``DelegationTokenManagerZk``)."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.security.delegation_tokens import (
    CreateDelegationTokenRequest,
    DelegationToken,
)
from fakekafka.statemachines.security.delegation_tokens import DelegationTokens
from fakekafka.tests.support.hosts import START_MS, FakeClock, FakeHost
from fakekafka.tests.support.local_zookeeper import LocalZooKeeper
from fakekafka.tests.support.run_now import run_now
from fakekafka.tests.support.zookeeper_fixture import ZkFixture

ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
HOUR_MS, DAY_MS = 3_600_000, 24 * 3_600_000
CONFIG = {
    "delegation.token.secret.key": "key",
    "delegation.token.max.lifetime.ms": 7 * DAY_MS,
    "delegation.token.expiry.time.ms": DAY_MS,
    "delegation.token.expiry.check.interval.ms": 100 * DAY_MS,
}


class Machine:
    """Two brokers, of which the first is the controller."""

    def __init__(self, **config: int) -> None:
        self.clock = FakeClock()
        zookeeper = LocalZooKeeper(lambda: self.clock.now_ms)
        self.told: list[str] = []
        self.brokers = [self._broker(zookeeper, config, is_controller=at == 0) for at in range(2)]

    def _broker(
        self, zookeeper: LocalZooKeeper, config: dict[str, int], is_controller: bool
    ) -> DelegationTokens:
        def start(task: Coroutine[Any, Any, None]) -> None:
            run_now(task)

        tokens = DelegationTokens(
            FakeHost(clock=self.clock),
            ZkFixture("3.9", zookeeper).zk,
            BrokerConfig(CONFIG | config, "3.9"),
            lambda _level, text: self.told.append(text),
            lambda: is_controller,
            start,
        )
        run_now(tokens.start())
        return tokens

    def create(self, *renewers: str, lifetime_ms: int = -1, owner: str | None = None) -> Any:
        request = CreateDelegationTokenRequest(renewers, lifetime_ms, owner)
        created = run_now(self.brokers[0].create(request, ALICE))
        self.clock.advance(0)
        return created.token

    def is_taken(self, token: DelegationToken) -> list[bool]:
        """Return whether each broker accepts the bearer of a token."""
        found = [b.credential("SCRAM-SHA-256", token.token_id) for b in self.brokers]
        return [each is not None for each in found]


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_a_token_lives_until_it_expires_at_every_broker(machine: Machine) -> None:
    """It expires before its maximum lifetime unless it is renewed, even if it is not deleted."""
    token = machine.create()
    assert (token.expires_at_ms, token.ends_at_ms) == (START_MS + DAY_MS, START_MS + 7 * DAY_MS)
    machine.clock.advance(DAY_MS)
    assert machine.is_taken(token) == [True, True]
    machine.clock.advance(1)
    assert machine.is_taken(token) == [False, False]
    assert len(machine.brokers[1].all()) == 1


def test_a_token_lives_for_the_requested_time_within_the_limit(machine: Machine) -> None:
    """The limit is ``delegation.token.max.lifetime.ms``; the token expires no later than its
    lifetime ends."""
    short, long = machine.create(lifetime_ms=HOUR_MS), machine.create(lifetime_ms=30 * DAY_MS)
    assert (short.expires_at_ms, short.ends_at_ms) == (START_MS + HOUR_MS,) * 2
    assert long.ends_at_ms == START_MS + 7 * DAY_MS


def test_a_token_may_be_made_for_another_owner(machine: Machine) -> None:
    """The bearer acts as the owner; the requester may not renew the token (KIP-373)."""
    token = machine.create(owner=CAROL)
    assert (token.owner, token.requester) == (CAROL, ALICE)
    for broker in machine.brokers:
        found = broker.credential("SCRAM-SHA-256", token.token_id)
        assert found is not None
        assert found[0].owner == CAROL
    refused = run_now(machine.brokers[0].renew(token.hmac, HOUR_MS, ALICE))
    assert refused[0] is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_owner_and_renewers_let_a_token_live_longer(machine: Machine) -> None:
    """The period counts from now and is limited by the lifetime; other principals may not renew
    it."""
    token = machine.create(BOB)
    for who in (ALICE, BOB):
        machine.clock.advance(HOUR_MS)
        renewed = run_now(machine.brokers[1].renew(token.hmac, -1, who))
        assert renewed == (ErrorCode.NONE, machine.clock.now_ms + DAY_MS)
    beyond = run_now(machine.brokers[1].renew(token.hmac, 30 * DAY_MS, BOB))
    assert beyond == (ErrorCode.NONE, token.ends_at_ms)
    refused = run_now(machine.brokers[1].renew(token.hmac, HOUR_MS, CAROL))
    assert refused == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, -1)
    machine.clock.advance(6 * DAY_MS)
    assert machine.is_taken(token) == [True, True]


def test_a_token_that_has_expired_is_not_renewed(machine: Machine) -> None:
    """It is still found until the controller has deleted it."""
    token = machine.create()
    machine.clock.advance(DAY_MS + 1)
    for renew_or_expire in (machine.brokers[1].renew, machine.brokers[1].expire):
        refused = run_now(renew_or_expire(token.hmac, HOUR_MS, ALICE))
        assert refused == (ErrorCode.DELEGATION_TOKEN_EXPIRED, -1)


def test_expiring_a_token_at_one_broker_ends_it_at_all(machine: Machine) -> None:
    """It ends at once with a negative period, else after the period; other principals may not end
    it."""
    token, other = machine.create(BOB), machine.create(BOB)
    refused = run_now(machine.brokers[1].expire(token.hmac, -1, CAROL))
    assert refused == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, -1)
    assert run_now(machine.brokers[1].expire(token.hmac, -1, BOB))[0] is ErrorCode.NONE
    run_now(machine.brokers[1].expire(other.hmac, HOUR_MS, BOB))
    machine.clock.advance(0)
    assert machine.is_taken(token) == [False, False]
    assert [len(broker.all()) for broker in machine.brokers] == [1, 1]
    machine.clock.advance(HOUR_MS + 1)
    assert machine.is_taken(other) == [False, False]


def test_only_the_controller_deletes_expired_tokens() -> None:
    """The other brokers are notified."""
    machine = Machine(**{"delegation.token.expiry.check.interval.ms": HOUR_MS})
    token = machine.create()
    machine.clock.advance(DAY_MS + 2 * HOUR_MS)
    assert [broker.all() for broker in machine.brokers] == [(), ()]
    assert machine.told == [f"delegation token {token.token_id} of {ALICE} expired"]
