"""Effects of quotas on requests between the connections and a broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from fakekafka.protocol import admin
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.data import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    RequestContext,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import HeartbeatRequest, HeartbeatResponse
from fakekafka.protocol.records.batch import RecordBatch, build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import TopicPartition, uuid_bytes, uuid_text
from fakekafka.statemachines.security.client_quotas import ClientQuotas
from fakekafka.tests.support.kafka_listener import StubBackend
from fakekafka.wire.kafka.backend import Throttled
from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.security.throttling import RequestTimer, ThrottlingBackend

ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 0)
BATCH = RecordBatch.from_bytes(build_batch([Record(0, 0, None, bytes(5000), ())]))


class Rig:
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
    """Since 2.0 (KIP-219) the answer has the throttle time, after which records are sent again."""
    rig = Rig()
    assert len(rig.fetch().partitions) == 1
    refused = rig.fetch(count=2)
    assert isinstance(refused, Throttled)
    assert refused.throttle_ms == refused.response.throttle_time_ms > 4000
    assert refused.response.partitions == ()
    assert refused.response.error is ErrorCode.NONE
    assert isinstance(rig.fetch(count=2), Throttled)
    rig.now_ms = 11_000
    assert not isinstance(rig.fetch(), Throttled)
    assert not isinstance(rig.fetch(client_id="other", count=9), Throttled)


def test_withheld_records_are_not_counted() -> None:
    """Records that were held back are not counted, so a smaller fetch may follow at once."""
    rig = Rig()
    assert isinstance(rig.fetch(count=3), Throttled)
    assert not isinstance(rig.fetch(), Throttled)


@pytest.mark.parametrize(("session_epoch", "session_id"), [(-1, 0), (0, 0), (1, 7)])
def test_a_throttled_answer_begins_no_session(session_epoch: int, session_id: int) -> None:
    """A throttled answer starts no fetch session, and an existing session continues."""
    answer = Rig().fetch(session_epoch=session_epoch, count=3)
    assert answer.response.session_id == session_id


def test_before_2_0_a_consumer_beyond_its_quota_gets_records_after_the_throttle_time() -> None:
    """Before 2.0 the records were sent at the end of the throttle time."""
    answer = Rig("1.1").fetch(count=3)
    assert isinstance(answer, Throttled)
    assert answer.is_held_back
    assert not Rig("2.8").fetch(count=3).is_held_back
    assert len(answer.response.partitions) == 1


def test_a_follower_is_never_throttled_as_a_client() -> None:
    """A follower is not throttled as a client, as replication has quotas of its own (KIP-73)."""
    rig = Rig()
    found = FetchPartitionResponse(ORDERS, ErrorCode.NONE, records=(BATCH,) * 9)
    rig.stub.answer = lambda _: FetchResponse(ErrorCode.NONE, 0, (found,))
    answers: list[Any] = []
    for replica_id in (0, 1):
        request = FetchRequest(replica_id, 0, 1, 1 << 20, (FetchPartition(ORDERS, 0, 1 << 20),))
        context = RequestContext(client_id="c", api_version=12)
        rig.backend.submit(1, "connection", request, context, answers.append)
    assert [len(answer.partitions) for answer in answers] == [1, 1]
    assert [request.max_bytes for request in rig.stub.requests] == [1 << 20] * 2


def test_an_error_is_sent_to_a_throttled_client_at_once() -> None:
    """A throttled client learns at once that its session is gone."""
    rig = Rig()
    rig.fetch(count=3)
    rig.session_id = 0
    found = FetchPartitionResponse(ORDERS, ErrorCode.NONE, records=(BATCH,) * 3)
    error = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    rig.stub.answer = lambda _: FetchResponse(error, 0, (found,))
    answers: list[Any] = []
    request = FetchRequest(-1, 0, 1, 1 << 20, (), session_epoch=1)
    rig.backend.submit(1, "c", request, RequestContext(client_id="c"), answers.append)
    assert answers[0].response.error is error
    assert len(answers[0].response.partitions) == 1


def test_a_fetch_asks_for_no_more_than_the_quota_allows_at_once() -> None:
    """The limit is the bytes of all windows but one (Kafka: ``getMaxValueInQuotaWindow``)."""
    rig = Rig()
    rig.fetch()
    rig.fetch(client_id="other")
    assert [request.max_bytes for request in rig.stub.requests] == [10_000, 1 << 20]


def test_before_2_5_a_fetch_is_not_limited_by_the_quota() -> None:
    rig = Rig("1.1")
    rig.fetch()
    assert [request.max_bytes for request in rig.stub.requests] == [1 << 20]


# -- the time of requests -----------------------------------------------------------------------


def timed_rig() -> tuple[Rig, ClientQuotas]:
    rig = Rig()
    quotas = ClientQuotas(BrokerConfig())
    quotas.client_changed("c", {"request_percentage": "1"})
    rig.backend = ThrottlingBackend(rig.stub, quotas, lambda: rig.now_ms, lambda *_: 1)
    return rig, quotas


def test_a_client_whose_requests_took_too_long_waits() -> None:
    """Every request is throttled, and a consumer gets no records."""
    rig, quotas = timed_rig()
    context = RequestContext(client_id="c", api_version=4)
    answers: list[Any] = []
    assert not isinstance(rig.fetch(), Throttled)
    quotas.use_request_time("", "c", 200_000_000, 0)
    rig.stub.answer = lambda _: HeartbeatResponse(ErrorCode.NONE)
    rig.backend.submit(1, "connection", HeartbeatRequest("g", 1, "m"), context, answers.append)
    assert answers == [Throttled(HeartbeatResponse(ErrorCode.NONE), 1000)]
    fetched = rig.fetch()
    assert (fetched.throttle_ms, fetched.response.partitions) == (1000, ())
    assert not isinstance(rig.fetch(client_id="other"), Throttled)


@pytest.mark.parametrize(
    ("version", "waits_ms"), [("3.9", (1000, 10_000)), ("1.1", (1200, 11_000))]
)
def test_of_two_quotas_the_longer_throttle_time_applies(
    version: str, waits_ms: tuple[int, int]
) -> None:
    """The longer of two waits applies; before 2.0 they followed each other (KIP-219)."""
    rig = Rig(version)
    quotas = ClientQuotas(BrokerConfig())
    quotas.client_changed("c", {"request_percentage": "1", "producer_byte_rate": "1000"})
    rig.backend = ThrottlingBackend(rig.stub, quotas, lambda: rig.now_ms, lambda *_: 1)
    quotas.use_request_time("", "c", 200_000_000, 0)
    rig.stub.answer = lambda _: ProduceResponse(())
    context = RequestContext(client_id="c", api_version=9)
    answers: list[Any] = []
    for count in (10_200, 9_800):
        produce = ProduceRequest(-1, 1000, (ProducePartition(ORDERS, bytes(count)),))
        rig.backend.submit(1, "connection", produce, context, answers.append)
    assert [answer.throttle_ms for answer in answers] == pytest.approx(waits_ms, abs=20)


def test_a_producer_is_counted_by_all_partitions_of_its_request() -> None:
    """The bytes of all partitions of a produce request are counted."""
    rig = Rig()
    quotas = ClientQuotas(BrokerConfig())
    quotas.client_changed("c", {"producer_byte_rate": "1000"})
    rig.backend = ThrottlingBackend(rig.stub, quotas, lambda: rig.now_ms, lambda *_: 1)
    rig.stub.answer = lambda _: ProduceResponse(())
    answers: list[Any] = []
    parts = (ProducePartition(ORDERS, bytes(5000)), ProducePartition(PAYMENTS, bytes(6000)))
    context = RequestContext(client_id="c", api_version=9)
    rig.backend.submit(1, "c", ProduceRequest(-1, 1000, parts), context, answers.append)
    assert answers == [Throttled(ProduceResponse((), 1000), 1000)]


def test_every_answer_contains_the_throttle_time() -> None:
    response = HeartbeatResponse(ErrorCode.NONE)
    parts = Codec("3.9").encode(12, 4, response, None, 1000)
    assert b"".join(parts) == (1000).to_bytes(4, "big") + bytes(3)


def test_a_timer_counts_from_one_message_to_the_next() -> None:
    """The timer measures only requests of clients to this broker."""
    used: list[tuple[str, int]] = []
    quotas = SimpleNamespace(use_request_time=lambda _, c, ns, __: used.append((c, ns)))
    timer = RequestTimer("broker-1", cast(Any, quotas), lambda: 0)
    context = RequestContext(client_id="c", api_version=4)
    for target, about in (("broker-1", context), ("broker-2", context), ("broker-1", None)):
        timer.on_delivery(SimpleNamespace(target=SimpleNamespace(name=target), context=about))
    assert [client for client, _ in used] == ["c"]
    assert used[0][1] >= 0


# -- changes of topics ----------------------------------------------------------------------------


class MutationRig:
    """A client with a quota of one created or deleted partition a second."""

    def __init__(self) -> None:
        self.stub = StubBackend()
        self.stub.kafka_version = "3.9"
        quotas = ClientQuotas(BrokerConfig())
        quotas.client_changed("c", {"controller_mutation_rate": "1"})
        self.backend = ThrottlingBackend(self.stub, quotas, lambda: 0, lambda *_: 2)

    def ask(self, request: Any, api_version: int) -> Any:
        makes = isinstance(request, admin.CreateTopicsRequest)
        response = admin.CreateTopicsResponse if makes else admin.CreatePartitionsResponse
        self.stub.answer = lambda asked: response(
            tuple(admin.TopicResult(topic.name, ErrorCode.NONE) for topic in asked.topics)
        )
        context = RequestContext(client_id="c", api_version=api_version)
        answers: list[Any] = []
        self.backend.submit(1, "connection", request, context, answers.append)
        return answers[0]


@pytest.mark.parametrize(
    ("api_version", "second"), [(5, ErrorCode.NONE), (6, ErrorCode.THROTTLING_QUOTA_EXCEEDED)]
)
def test_an_old_client_beyond_its_mutation_quota_waits_and_a_newer_one_is_refused(
    api_version: int, second: ErrorCode
) -> None:
    """The first topic of both is created, although it exceeds the quota (KIP-599)."""
    request = admin.CreateTopicsRequest((admin.NewTopic("a", 50, 1), admin.NewTopic("b", 1, 1)))
    answer = MutationRig().ask(request, api_version)
    errors = {topic.name: topic.error for topic in answer.response.topics}
    assert errors == {"a": ErrorCode.NONE, "b": second}
    assert answer.throttle_ms > 0
    assert answer.response.throttle_time_ms == answer.throttle_ms


def test_requests_that_only_validate_use_no_quota() -> None:
    """Requests that only validate are free, however many partitions they name."""
    rig = MutationRig()
    asked = admin.CreateTopicsRequest((admin.NewTopic("a", 500, 1),), validate_only=True)
    for _ in range(3):
        assert not isinstance(rig.ask(asked, 6), Throttled)
    assert not isinstance(
        rig.ask(admin.CreateTopicsRequest((admin.NewTopic("a", 11, 1),)), 6), Throttled
    )


def test_a_client_within_its_quota_is_not_throttled() -> None:
    """A client may create the partitions of eleven seconds at once."""
    rig = MutationRig()
    request = admin.CreateTopicsRequest((admin.NewTopic("a", 5, 1), admin.NewTopic("b", 6, 1)))
    assert not isinstance(rig.ask(request, 5), Throttled)
    assert rig.stub.requests == [request]
    assert rig.ask(admin.CreateTopicsRequest((admin.NewTopic("c", 1, 1),)), 5).throttle_ms == 1000


def test_a_client_over_its_quota_is_refused_everything() -> None:
    """The request does not reach the broker, and each topic has the error."""
    rig = MutationRig()
    rig.ask(admin.CreateTopicsRequest((admin.NewTopic("a", 50, 1),)), 6)
    before = len(rig.stub.requests)
    answer = rig.ask(
        admin.CreateTopicsRequest((admin.NewTopic("b", 1, 1), admin.NewTopic("c", 1, 1))), 6
    )
    assert len(rig.stub.requests) == before
    assert [topic.error for topic in answer.response.topics] == [
        ErrorCode.THROTTLING_QUOTA_EXCEEDED
    ] * 2
    assert answer.throttle_ms == 39_000


def test_a_deleted_topic_costs_its_partitions() -> None:
    """Each deleted topic costs two partitions, a number that the broker supplies."""
    rig = MutationRig()
    rig.stub.answer = lambda _: admin.DeleteTopicsResponse(())
    answers: list[Any] = []
    request = admin.DeleteTopicsRequest(tuple("abcdef"), 1000)
    context = RequestContext(client_id="c", api_version=4)
    rig.backend.submit(1, "c", request, context, answers.append)
    assert answers[0].throttle_ms == 1000


def test_a_topic_deleted_by_its_id_costs_as_much_as_by_its_name() -> None:
    """A client above its quota is refused with the topic's name, and unknown ids cost nothing."""
    rig = MutationRig()
    ids = {letter: uuid_text(letter.encode() * 16) for letter in "abcdefgh"}
    rig.stub.ids = {letter: uuid_bytes(ids[letter]) for letter in "abcdefg"}
    rig.stub.answer = lambda _: admin.DeleteTopicsResponse(())
    context = RequestContext(client_id="c", api_version=6)
    answers: list[Any] = []
    for letters in ("abcdef", "hg", "g"):
        request = admin.DeleteTopicsRequest((), 1000, tuple(ids[letter] for letter in letters))
        rig.backend.submit(1, "c", request, context, answers.append)
    seen = [request.topic_ids for request in rig.stub.requests]
    assert seen == [tuple(ids[letter] for letter in "abcdef"), (ids["h"],)]
    refused = admin.TopicResult("g", ErrorCode.THROTTLING_QUOTA_EXCEEDED, None, ids["g"])
    assert [answer.response.topics for answer in answers[1:]] == [(refused,)] * 2
    assert [answer.throttle_ms for answer in answers[1:]] == [1000, 1000]


def test_manually_assigned_partitions_cost_as_much_as_others() -> None:
    """A partition counts once, whatever its replicas, and only added partitions count."""
    placed = tuple((number, (1, 2, 3)) for number in range(50))
    asked: list[tuple[Any, int]] = [
        (admin.CreateTopicsRequest((admin.NewTopic("a", 50, 3),)), 5),
        (admin.CreateTopicsRequest((admin.NewTopic("a", assignment=placed),)), 5),
        (admin.CreatePartitionsRequest((admin.NewPartitions("a", 52),)), 2),
        (admin.CreatePartitionsRequest((admin.NewPartitions("a", 52, ((1, 2, 3),) * 50),)), 2),
    ]
    waits_ms = {MutationRig().ask(request, version).throttle_ms for request, version in asked}
    (wait_ms,) = waits_ms
    fewer = admin.CreateTopicsRequest((admin.NewTopic("a", 49, 3),))
    assert MutationRig().ask(fewer, 5).throttle_ms == wait_ms - 1000
