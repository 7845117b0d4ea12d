"""What quotas do to requests between the connections and a broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.data import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    RequestContext,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import HeartbeatRequest, HeartbeatResponse
from fakekafka.protocol.records.batch import RecordBatch, build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import TopicPartition
from fakekafka.statemachines.security.client_quotas import ClientQuotas
from fakekafka.tests.support.kafka_listener import StubBackend
from fakekafka.wire.kafka.backend import Throttled
from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.security.request_timer import RequestTimer
from fakekafka.wire.kafka.security.throttling import ThrottlingBackend

ORDERS = TopicPartition("orders", 0)
BATCH = RecordBatch.of(build_batch([Record(0, 0, None, bytes(5000), ())]))


class Desk:
    """A consumer with a quota of 1000 bytes a second, at a broker of a release."""

    def __init__(self, kafka_version: str = "3.9") -> None:
        self.stub = StubBackend()
        self.stub.kafka_version = kafka_version
        quotas = ClientQuotas(BrokerConfig())
        quotas.client_changed("c", {"consumer_byte_rate": "1000"})
        self.now_ms = 0
        self.backend = ThrottlingBackend(self.stub, quotas, lambda: self.now_ms, lambda *_: 1)
        self.session_id = 7

    def fetch(self, *, session_epoch: int = -1, client_id: str = "c", count: int = 1) -> Any:
        found = FetchPartitionResponse(ORDERS, ErrorCode.NONE, records=(BATCH,) * count)
        self.stub.answer = lambda _: FetchResponse(ErrorCode.NONE, self.session_id, (found,))
        request = FetchRequest(
            -1, 0, 1, 1 << 20, (FetchPartition(ORDERS, 0, 1 << 20),), session_epoch=session_epoch
        )
        context = RequestContext(client_id=client_id, api_version=12)
        answers: list[Any] = []
        self.backend.submit(1, "connection", request, context, answers.append)
        return answers[0]


def test_a_consumer_beyond_its_quota_gets_no_records() -> None:
    """Since 2.0 (KIP-219), with the time for which it has to wait; then it gets them."""
    desk = Desk()
    assert len(desk.fetch().partitions) == 1
    refused = desk.fetch(count=2)
    assert isinstance(refused, Throttled)
    assert refused.throttle_ms == refused.response.throttle_time_ms > 4000
    assert refused.response.partitions == ()
    assert refused.response.error is ErrorCode.NONE
    assert isinstance(desk.fetch(count=2), Throttled)
    desk.now_ms = 11_000
    assert not isinstance(desk.fetch(), Throttled)
    assert not isinstance(desk.fetch(client_id="other", count=9), Throttled)


def test_what_it_does_not_get_is_not_counted() -> None:
    """So a smaller fetch may follow at once."""
    desk = Desk()
    assert isinstance(desk.fetch(count=3), Throttled)
    assert not isinstance(desk.fetch(), Throttled)


@pytest.mark.parametrize(("session_epoch", "session_id"), [(-1, 0), (0, 0), (1, 7)])
def test_a_throttled_answer_begins_no_session(session_epoch: int, session_id: int) -> None:
    """One that there is goes on."""
    answer = Desk().fetch(session_epoch=session_epoch, count=3)
    assert answer.response.session_id == session_id


def test_before_2_0_it_got_them() -> None:
    """At the end of the time for which it had to wait."""
    answer = Desk("1.1").fetch(count=3)
    assert isinstance(answer, Throttled)
    assert answer.is_held_back
    assert not Desk("2.8").fetch(count=3).is_held_back
    assert len(answer.response.partitions) == 1


def test_a_fetch_asks_for_no_more_than_the_quota_allows_at_once() -> None:
    """The bytes of all windows but one (Kafka: ``getMaxValueInQuotaWindow``)."""
    desk = Desk()
    desk.fetch()
    desk.fetch(client_id="other")
    assert [request.max_bytes for request in desk.stub.requests] == [10_000, 1 << 20]


def test_before_2_5_a_fetch_asked_for_what_it_liked() -> None:
    desk = Desk("1.1")
    desk.fetch()
    assert [request.max_bytes for request in desk.stub.requests] == [1 << 20]


# -- the time of requests -----------------------------------------------------------------------


def timed_desk() -> tuple[Desk, ClientQuotas]:
    desk = Desk()
    quotas = ClientQuotas(BrokerConfig())
    quotas.client_changed("c", {"request_percentage": "1"})
    desk.backend = ThrottlingBackend(desk.stub, quotas, lambda: desk.now_ms, lambda *_: 1)
    return desk, quotas


def test_a_client_whose_requests_took_too_long_waits() -> None:
    """Whatever it asks; a consumer gets no records either."""
    desk, quotas = timed_desk()
    context = RequestContext(client_id="c", api_version=4)
    answers: list[Any] = []
    assert not isinstance(desk.fetch(), Throttled)
    quotas.use_request_time("", "c", 200_000_000, 0)
    desk.stub.answer = lambda _: HeartbeatResponse(ErrorCode.NONE)
    desk.backend.submit(1, "connection", HeartbeatRequest("g", 1, "m"), context, answers.append)
    assert answers == [Throttled(HeartbeatResponse(ErrorCode.NONE), 1000)]
    fetched = desk.fetch()
    assert (fetched.throttle_ms, fetched.response.partitions) == (1000, ())
    assert not isinstance(desk.fetch(client_id="other"), Throttled)


def test_every_answer_tells_the_throttle_time() -> None:
    response = HeartbeatResponse(ErrorCode.NONE)
    parts = Codec("3.9").encode(12, 4, response, None, 1000)
    assert b"".join(parts) == (1000).to_bytes(4, "big") + bytes(3)


def test_a_timer_counts_from_one_message_to_the_next() -> None:
    """Only requests of clients, and only those to this broker."""
    used: list[tuple[str, int]] = []
    quotas = SimpleNamespace(use_request_time=lambda _, c, ns, __: used.append((c, ns)))
    timer = RequestTimer("broker-1", cast(Any, quotas), lambda: 0)
    context = RequestContext(client_id="c", api_version=4)
    for target, about in (("broker-1", context), ("broker-2", context), ("broker-1", None)):
        timer.on_delivery(SimpleNamespace(target=SimpleNamespace(name=target), context=about))
    assert [client for client, _ in used] == ["c"]
    assert used[0][1] >= 0
