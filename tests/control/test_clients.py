"""Events that listeners report of clients: refusals, counted if repeated, and new topics."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.control.watching import clients
from fakekafka.control.watching.clients import Clients
from fakekafka.protocol.admin import TopicResult
from fakekafka.protocol.data import MetadataRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.wire.kafka.codec import RequestHeader

HEADER = RequestHeader(19, 7, 1, "clerk", 0)
CONNECTION = "127.0.0.1:9092-127.0.0.1:50000-3"


class Clock:
    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(clients, "time", clock)
    return clock


def answer(observer: Clients, error: ErrorCode) -> None:
    observer.on_response(
        1, CONNECTION, HEADER, MetadataRequest(()), (TopicResult("orders", error),)
    )


def test_a_refusal_names_the_client_the_request_and_the_reason() -> None:
    told: list[dict[str, Any]] = []
    answer(Clients(told.append, with_details=False), ErrorCode.TOPIC_ALREADY_EXISTS)
    (event,) = told
    assert (event["client_id"], event["api"], event["broker"]) == ("clerk", "Metadata", 1)
    assert event["address"] == "127.0.0.1:50000"
    assert event["reason"] == "orders TOPIC_ALREADY_EXISTS"
    assert event["errors"] == ["TOPIC_ALREADY_EXISTS"]


def test_an_answer_without_an_error_is_no_refusal() -> None:
    told: list[dict[str, Any]] = []
    answer(Clients(told.append, with_details=True), ErrorCode.NONE)
    assert told == []


def test_errors_of_every_working_cluster_are_details() -> None:
    """Errors that occur in every working cluster, such as a member id or a rebalance, count as
    details."""
    told: list[dict[str, Any]] = []
    answer(Clients(told.append, with_details=False), ErrorCode.REBALANCE_IN_PROGRESS)
    assert told == []
    answer(Clients(told.append, with_details=True), ErrorCode.REBALANCE_IN_PROGRESS)
    assert [event["is_usual"] for event in told] == [True]


def test_the_same_refusal_again_is_counted(clock: Clock) -> None:
    """A repeated refusal is counted, reported once more after ten seconds, and then forgotten."""
    told: list[dict[str, Any]] = []
    observer = Clients(told.append, with_details=False)
    for _ in range(120):
        answer(observer, ErrorCode.TOPIC_ALREADY_EXISTS)
    assert len(told) == 1
    assert list(observer.repeated()) == []
    clock.now_s += 11
    (again,) = observer.repeated()
    assert (again["count"], again["seconds"]) == (119, 11)
    clock.now_s += 11
    assert list(observer.repeated()) == []
    answer(observer, ErrorCode.TOPIC_ALREADY_EXISTS)
    assert len(told) == 2


def test_a_new_topic_names_the_client_that_last_requested_it(clock: Clock) -> None:
    observer = Clients(lambda _: None, with_details=False)
    observer.on_request(CONNECTION, HEADER, MetadataRequest(("orders", "old")))
    assert observer.creation_request("orders") == {
        "api": "Metadata",
        "client_id": "clerk",
        "is_automatic": True,
    }
    assert observer.creation_request("orders") == {}
    clock.now_s += 31
    assert observer.creation_request("old") == {}


def test_the_number_of_remembered_refusals_is_limited() -> None:
    """The number of remembered refusals is limited, as clients choose names and errors without
    limit."""
    observer = Clients(lambda _: None, with_details=False)
    for number in range(3000):
        observer.on_request(CONNECTION, HEADER, MetadataRequest((f"t{number}",)))
        result = TopicResult(f"t{number}", ErrorCode.INVALID_TOPIC_EXCEPTION)
        observer.on_response(1, CONNECTION, HEADER, MetadataRequest(()), (result,))
    assert len(observer._topic_requests) <= 1000
    assert len(observer._refused) <= 1000


def test_an_error_is_found_at_any_depth_of_an_answer() -> None:
    """An error is found at any depth of tuples and messages; in an answer without one, none is
    found."""
    from fakekafka.protocol.data import FetchPartitionResponse, FetchResponse
    from fakekafka.protocol.values import TopicPartition
    from fakekafka.wire.kafka.response_errors import errors_text, has_error

    def fetched(*errors: ErrorCode) -> FetchResponse:
        partitions = tuple(
            FetchPartitionResponse(TopicPartition("orders", number), error, 0, 0, 0, ())
            for number, error in enumerate(errors)
        )
        return FetchResponse(ErrorCode.NONE, 0, partitions)

    none, bad = ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE
    for answer_, expected in ((fetched(none, none), False), (fetched(none, bad), True)):
        assert has_error(answer_) is expected
        assert (errors_text(answer_) is not None) is expected
    assert has_error(((TopicResult("orders", bad),),))
    assert not has_error(None)
