"""Produce at the replica manager: refusals, acknowledgement, waiting (docs/kafka/produce.md)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.data import (
    INTERNAL_CONTEXT,
    FetchPartition,
    FetchRequest,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    RequestContext,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.produce import send
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, encode, led

OTHER = TopicPartition("u", 0)
UNKNOWN = TopicPartition("nowhere", 0)


def version(api_version: int, client_id: str = "c") -> RequestContext:
    return RequestContext(client_id, api_version)


@pytest.mark.parametrize("acks", [2, 3, -2])
def test_invalid_acks(acks: int) -> None:
    """DP-31: acks outside -1, 0 and 1 are INVALID_REQUIRED_ACKS, and nothing is appended."""
    cluster = led()
    answer = send(cluster, encode("a"), acks=acks)
    assert answer.error is ErrorCode.INVALID_REQUIRED_ACKS
    assert (answer.base_offset, answer.log_start_offset) == (-1, -1)
    assert cluster[0].log_end_offset() == 0


def test_unknown_foreign_and_followed_partitions() -> None:
    """DP-122: a partition unknown everywhere is 3; one hosted or led by others is 6."""
    cluster = led(brokers=3)
    cluster.create((1, 2), OTHER)
    assert send(cluster, encode("a"), tp=UNKNOWN).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert send(cluster, encode("a"), tp=OTHER).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert send(cluster, encode("a"), broker=1).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_metadata_must_know_the_partition() -> None:
    """A partition that the metadata cache lacks is error 3 to a client's produce, even if
    hosted."""
    cluster = ReplicaCluster("2.8", 1)
    cluster.replicas[TP] = (0,)
    from fakekafka.protocol.values import LeaderAndIsr

    cluster.state[TP] = LeaderAndIsr(0, 0, (0,), 0)
    cluster.leader_and_isr(0)
    answer = send(cluster, encode("a"), context=version(9))
    assert answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert send(cluster, encode("a")).error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("records", "api_version", "error"),
    [
        (None, 9, ErrorCode.INVALID_RECORD),
        (b"", 9, ErrorCode.INVALID_RECORD),
        (encode("a") + encode("b"), 9, ErrorCode.INVALID_RECORD),
        (encode("a", compression="zstd"), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (encode("a", compression="zstd"), 7, ErrorCode.NONE),
        (encode("a"), 3, ErrorCode.NONE),
    ],
)
def test_a_produce_request_carries_one_v2_batch(
    records: Any, api_version: int, error: ErrorCode
) -> None:
    """DP-122: a request has exactly one v2 batch from v3 on, and zstd only from v7 on."""
    assert send(led(), records, context=version(api_version)).error is error


def test_internal_topics_are_closed_to_clients() -> None:
    """Clients other than __admin_client may not write to internal topics; coordinators may."""
    cluster = led(brokers=1)
    internal = TopicPartition("__consumer_offsets", 0)
    cluster.create((0,), internal)
    refused = send(cluster, encode("a"), tp=internal, context=version(9))
    assert refused.error is ErrorCode.INVALID_TOPIC_EXCEPTION
    admin = version(9, "__admin_client")
    assert send(cluster, encode("a"), tp=internal, context=admin).error is ErrorCode.NONE
    assert send(cluster, encode("a"), tp=internal, origin="coordinator").error is ErrorCode.NONE


def test_not_enough_replicas() -> None:
    """acks=all with a committed ISR below min.insync.replicas is refused before the append."""
    cluster = led(isr=(0,), topic={"min.insync.replicas": "2"})
    answer = send(cluster, encode("a"), acks=-1)
    assert answer.error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert (answer.base_offset, answer.log_start_offset) == (-1, 0)
    assert cluster[0].log_end_offset() == 0
    assert send(cluster, encode("a"), acks=1).error is ErrorCode.NONE
    assert send(cluster, encode("a"), acks=0).error is ErrorCode.NONE


@pytest.mark.parametrize(("version", "counts"), [("2.8", 3), ("3.9", 2)])
def test_a_minimum_above_the_replication_factor_counts_as_the_factor(
    version: str, counts: int
) -> None:
    """Since 3.7 min.insync.replicas is capped at the number of replicas (KAFKA-15583)."""
    cluster = led(version, topic={"min.insync.replicas": "3"})
    partition = cluster[0].partition()
    assert partition.min_isr == counts
    assert partition.is_under_min_isr == (counts == 3)
    assert partition.is_at_min_isr == (counts == 2)
    answers = cluster.produce_async(0, "a")
    cluster.fetch(0, 1, replica_id=1)
    refused = counts == 3
    wanted = ErrorCode.NOT_ENOUGH_REPLICAS if refused else ErrorCode.NONE
    assert [answer.error for answer in answers] == [wanted]
    partition.isr = (0,)
    assert partition.is_under_min_isr
    assert send(cluster, encode("b"), acks=-1).error is ErrorCode.NOT_ENOUGH_REPLICAS


def expanding(**topic: str) -> ReplicaCluster:
    """Broker 1 is about to join the ISR of broker 0 in ``t-0`` and ``u-0``."""
    cluster = led(isr=(0,), topic=topic)
    cluster.create((0, 1), OTHER, isr=(0,))
    cluster.hold_isr_changes()
    for name in (TP, OTHER):
        cluster.fetch(0, 0, replica_id=1, tp=name)
        partition = cluster[0].partition(name)
        assert (partition.isr, partition.maximal_isr) == ((0,), (0, 1))
    return cluster


def test_a_joining_replica_does_not_count_for_min_isr_before_the_append() -> None:
    """5.1 row 10: before the append the committed ISR counts, not the maximal one."""
    cluster = expanding(**{"min.insync.replicas": "2"})
    assert send(cluster, encode("a"), acks=-1).error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster[0].log_end_offset() == 0
    cluster.release_isr_changes()
    answers = cluster.produce_async(0, "a")
    cluster.fetch(0, 1, replica_id=1)
    assert answers[0].error is ErrorCode.NONE


@pytest.mark.parametrize("names", [(TP,), (TP, OTHER)])
def test_a_joining_replica_counts_for_min_isr_after_the_append(
    names: tuple[TopicPartition, ...],
) -> None:
    """After the append the maximal ISR counts, with one partition as with several
    (docs/kafka/produce.md#acknowledgement)."""
    cluster = expanding()
    answers: list[ProducePartitionResponse] = []
    cluster[0].manager.produce.append_records(
        ProduceRequest(-1, 1000, tuple(ProducePartition(name, encode("a")) for name in names)),
        INTERNAL_CONTEXT,
        lambda response: answers.extend(response.partitions),
    )
    cluster.topic_overrides["min.insync.replicas"] = "2"
    for name in names:
        cluster[0].manager.hosted.update_topic_config(name.topic)
    for name in names:
        assert answers == []
        cluster.fetch(0, 1, replica_id=1, tp=name)
    assert [answer.error for answer in answers] == [ErrorCode.NONE] * len(names)


def test_not_enough_replicas_after_append() -> None:
    """If the ISR shrinks below the minimum while the produce waits, the answer is 20 and the record
    stays."""
    cluster = led(topic={"min.insync.replicas": "2"})
    answers = cluster.produce_async(0, "a")
    cluster.clock.advance(29999)
    cluster.leader_and_isr(0, leader_epoch=1, isr=(0,))
    cluster[0].manager.delayed.complete_produces_first(TP)
    assert answers[0].error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert answers[0].log_start_offset == 0
    assert cluster[0].content() == "a/0"


def waiting(version: str) -> tuple[ReplicaCluster, list[str]]:
    """Let a consumer's fetch and a produce wait for the same record; note the order of the
    answers."""
    cluster = led(version)
    answered: list[str] = []
    wanted = FetchRequest(-1, 1000, 1, 1 << 20, (FetchPartition(TP, 0, 0, 1 << 20, -1),))
    cluster[0].manager.fetch.fetch_messages(
        wanted, INTERNAL_CONTEXT, lambda _: answered.append("fetch")
    )
    cluster[0].manager.produce.append_records(
        ProduceRequest(-1, 1000, (ProducePartition(TP, encode("a")),)),
        INTERNAL_CONTEXT,
        lambda _: answered.append("produce"),
    )
    assert answered == []
    return cluster, answered


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_moved_high_watermark_answers_fetches_before_produces(version: str) -> None:
    """A moved high watermark completes fetches before produces
    (``Partition.tryCompleteDelayedRequests``)."""
    cluster, answered = waiting(version)
    cluster.fetch(0, 1, replica_id=1)
    assert answered == ["fetch", "produce"]


@pytest.mark.parametrize(
    ("version", "first"), [("0.10", "fetch"), ("1.1", "fetch"), ("2.8", "produce")]
)
def test_an_append_that_moves_the_high_watermark_completes_produces_first_since_2_7(
    version: str, first: str
) -> None:
    """KAFKA-8334: since 2.7 the completions follow the append, produces first."""
    cluster, answered = waiting(version)
    partition = cluster[0].partition()
    partition.isr = partition.maximal_isr = (0,)
    for replica in partition.remote_replicas:
        replica.last_caught_up_time_ms = 0  # no operation waits for a replica that may join soon
    assert send(cluster, encode("b"), acks=1).error is ErrorCode.NONE
    assert sorted(answered) == ["fetch", "produce"]
    assert answered[0] == first


def test_pending_shrink_still_counts() -> None:
    """While a shrink is pending the old ISR admits and acknowledges
    (docs/kafka/produce.md#minimum-isr)."""
    cluster = led(topic={"min.insync.replicas": "2"})
    cluster.hold_isr_changes()
    cluster.produce(0, "x")
    cluster.clock.advance(45000)
    partition = cluster[0].partition()
    assert partition.pending_isr is not None
    answers = cluster.produce_async(0, "a")
    cluster.fetch(0, 2, replica_id=1)
    assert answers[0].error is ErrorCode.NONE


def test_acks_all_waits_for_the_isr() -> None:
    """acks=all is answered when the last ISR member fetched past it; acks=1 at once."""
    cluster = led(brokers=3)
    answers = cluster.produce_async(0, "a", "b")
    assert answers == []
    cluster.fetch(0, 2, replica_id=1)
    assert answers == []
    cluster.fetch(0, 2, replica_id=2)
    assert (answers[0].error, answers[0].base_offset) == (ErrorCode.NONE, 0)
    assert cluster[0].manager.delayed.produces.delayed_count == 0


def test_single_replica_is_acknowledged_at_once() -> None:
    """acks=all with a single replica completes within the request."""
    cluster = led(brokers=1)
    assert cluster.produce_async(0, "a")[0].error is ErrorCode.NONE
    assert cluster[0].high_watermark() == 1


def test_timeout() -> None:
    """A produce not acknowledged in time is REQUEST_TIMED_OUT; the record stays.

    ``DelayedProduce`` changes the error only: the answer still has the record's offset.
    """
    cluster = led()
    answers = cluster.produce_async(0, "a", timeout_ms=100)
    cluster.clock.advance(99)
    assert answers == []
    cluster.clock.advance(1)
    assert answers[0].error is ErrorCode.REQUEST_TIMED_OUT
    assert (answers[0].base_offset, answers[0].log_start_offset) == (0, 0)
    assert cluster[0].content() == "a/0"


def test_lost_leadership_answers_the_waiting() -> None:
    """DP-32: a waiting acks=all produce answers 6 when the broker becomes follower."""
    cluster = led()
    answers = cluster.produce_async(0, "a")
    cluster.elect(1)
    assert answers[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_good_partitions_of_a_request_are_appended() -> None:
    """Errors are per partition; the answer keeps the request's order and waits only for partitions
    without an error."""
    cluster = led()
    cluster.create((0, 1), OTHER)
    answers: list[Any] = []
    cluster[0].manager.produce.append_records(
        ProduceRequest(
            -1,
            1000,
            (
                ProducePartition(UNKNOWN, encode("x")),
                ProducePartition(TP, encode("a")),
                ProducePartition(OTHER, encode("b")),
            ),
        ),
        INTERNAL_CONTEXT,
        answers.append,
    )
    cluster.fetch(0, 1, replica_id=1)
    assert answers == []
    cluster.clock.advance(1000)
    assert [p.error for p in answers[0].partitions] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        ErrorCode.REQUEST_TIMED_OUT,
    ]


def test_sequence_error_carries_the_log_start() -> None:
    """DP-36: a sequence error carries the log start offset and base offset -1."""
    cluster = led(brokers=1)
    first = encode("a", producer_id=7, producer_epoch=0, base_sequence=0)
    gap = encode("b", producer_id=7, producer_epoch=0, base_sequence=9)
    assert send(cluster, first, acks=-1).error is ErrorCode.NONE
    answer = send(cluster, gap, acks=-1)
    assert answer.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (answer.base_offset, answer.log_start_offset) == (-1, 0)


def test_duplicate_answers_its_first_offset() -> None:
    """A repeated batch is not appended; the answer has the original offset."""
    cluster = led(brokers=1)
    batch = encode("a", producer_id=7, producer_epoch=0, base_sequence=0)
    cluster.produce(0, "x")
    assert send(cluster, batch).base_offset == 1
    assert send(cluster, batch).base_offset == 1
    assert cluster[0].log_end_offset() == 2


@pytest.mark.parametrize(("version", "days"), [("1.1", 7), ("2.8", 7), ("3.9", 1)])
def test_silent_producers_are_forgotten(version: str, days: int) -> None:
    """DP-119: a silent producer is forgotten after transactional.id.expiration.ms, since 3.4
    producer.id.expiration.ms."""
    cluster = led(version, brokers=1)
    send(cluster, encode("a", producer_id=7, producer_epoch=0, base_sequence=0))
    repeated = encode("a", producer_id=7, producer_epoch=0, base_sequence=0)
    cluster.clock.now_ms += days * 86_400_000 - 1
    cluster[0].manager.upkeep.expire_producer_ids()
    assert send(cluster, repeated).base_offset == 0
    cluster.clock.now_ms += 1
    cluster[0].manager.upkeep.expire_producer_ids()
    assert send(cluster, repeated).base_offset == 1


def test_corrupt_batch() -> None:
    """A wrong checksum is CORRUPT_MESSAGE without a log start; nothing is appended."""
    cluster = led(brokers=1)
    broken = bytearray(encode("a"))
    broken[-1] ^= 1
    answer = send(cluster, bytes(broken))
    assert (answer.error, answer.log_start_offset) == (ErrorCode.CORRUPT_MESSAGE, -1)
    assert cluster[0].log_end_offset() == 0


def test_too_large_batch() -> None:
    """DP-132: a batch above max.message.bytes is MESSAGE_TOO_LARGE for any acks."""
    cluster = led(brokers=1, topic={"max.message.bytes": "100"})
    for acks in (0, 1, -1):
        answer = send(cluster, encode("x" * 200), acks=acks)
        assert (answer.error, answer.base_offset) == (ErrorCode.MESSAGE_TOO_LARGE, -1)


def test_config_change_takes_effect_without_an_election() -> None:
    """A changed min.insync.replicas applies from the next produce on, without an election."""
    cluster = led(isr=(0,))
    assert send(cluster, encode("a"), acks=-1).error is ErrorCode.NONE
    cluster.topic_overrides["min.insync.replicas"] = "2"
    cluster[0].manager.hosted.update_topic_config("t")
    assert send(cluster, encode("a"), acks=-1).error is ErrorCode.NOT_ENOUGH_REPLICAS


def test_log_append_time() -> None:
    """The answer has the append time only for a LogAppendTime topic."""
    cluster = led(brokers=1, topic={"message.timestamp.type": "LogAppendTime"})
    assert send(cluster, encode("a")).log_append_time_ms == cluster.clock.now_ms
    assert send(led(brokers=1), encode("a")).log_append_time_ms == -1
