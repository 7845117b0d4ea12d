"""Fetch at the replica manager: positions, access, limits, long polling (docs/kafka/fetch.md)."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from fakekafka.protocol.data import (
    INTERNAL_CONTEXT,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    RequestContext,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import whole_batches
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.leader.delayed_fetch import DelayedFetch
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.tests.support.filled_partitions import filled, multi, offsets
from fakekafka.tests.support.replica_cluster import TP, encode, led

OTHER = TopicPartition("u", 0)
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


# -- positions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "found"), [(0, [0, 1, 2, 3]), (3, [3]), (4, []), (5, []), (6, [])]
)
def test_consumer_reads_below_the_high_watermark(offset: int, found: list[int]) -> None:
    """DP-39: a consumer reads up to the high watermark; between that and the LEO it gets nothing,
    without an error."""
    (answer,) = filled().fetch(0, offset)
    assert (answer.error, offsets(answer)) == (ErrorCode.NONE, found)
    assert answer.high_watermark == 4


def test_follower_reads_to_the_end() -> None:
    """DP-39: a follower's fetch above the high watermark returns data."""
    (answer,) = filled().fetch(0, 4, replica_id=1)
    assert offsets(answer) == [4, 5]


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.3"])
def test_a_debugging_consumer_may_read_from_followers(version: str) -> None:
    """A debugging consumer may read from followers; others may not before 2.4
    (docs/kafka/fetch.md#who-may-read-what)."""
    cluster = led(version)
    cluster.elect(1)
    answers = [cluster.fetch(0, 0, replica_id=replica_id)[0].error for replica_id in (-1, -2)]
    assert answers == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]


@pytest.mark.parametrize("replica_id", [-1, 1])
def test_out_of_range(replica_id: int) -> None:
    """A fetch below the log start or above the log end is OFFSET_OUT_OF_RANGE, with offsets
    unset."""
    cluster = filled()
    cluster[0].log().maybe_increment_log_start_offset(2)
    for offset in (1, 7):
        (answer,) = cluster.fetch(0, offset, replica_id=replica_id)
        assert answer.error is ErrorCode.OFFSET_OUT_OF_RANGE
        marks = (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset)
        assert marks == (-1, -1, -1)
        assert answer.records == ()


def test_debugging_consumer_reads_like_a_consumer() -> None:
    """Replica id -2 reads up to the high watermark."""
    (answer,) = filled().fetch(0, 2, replica_id=-2)
    assert offsets(answer) == [2, 3]


def test_replicas_share_the_leaders_batches() -> None:
    """The batches that a follower gets are the same objects as in the leader's log."""
    cluster = filled()
    (first,) = cluster.fetch(0, 0, replica_id=1)
    (second,) = cluster.fetch(0, 0, replica_id=1)
    assert first.records[0].data is second.records[0].data


# -- access --------------------------------------------------------------------------------------


def test_wrong_brokers() -> None:
    """DP-75: a broker without the replica answers 6 if the partition is known, 3 otherwise."""
    cluster = led(brokers=3)
    cluster.create((1, 2), OTHER)
    assert cluster.fetch(0, 0, tp=OTHER)[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    missing = cluster.fetch(0, 0, tp=TopicPartition("nowhere", 0))[0]
    assert missing.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_epoch_validation() -> None:
    """DP-76: an older epoch is fenced, a newer one unknown; a follower serves the right one."""
    cluster = filled()
    cluster.elect(0)
    for broker in (0, 1):
        assert cluster.fetch(broker, 0, current_leader_epoch=0)[0].error is (
            ErrorCode.FENCED_LEADER_EPOCH
        )
        assert cluster.fetch(broker, 0, current_leader_epoch=2)[0].error is (
            ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        assert cluster.fetch(broker, 0, current_leader_epoch=1)[0].error is ErrorCode.NONE


@pytest.mark.parametrize(("api_version", "error"), [(10, 6), (11, 0), (-1, 0)])
def test_reading_from_a_follower(api_version: int, error: int) -> None:
    """DP-46: a follower refuses a consumer without client metadata (v10) and answers one with it
    (v11)."""
    cluster = filled()
    (answer,) = cluster.fetch(1, 0, context=RequestContext("c", api_version))
    assert int(answer.error) == error


def test_old_brokers_serve_consumers_on_leaders_only() -> None:
    """Before 2.4 a follower never serves a consumer."""
    (answer,) = led("1.1").fetch(1, 0)
    assert answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_foreign_follower() -> None:
    """DP-41: a broker that replicates one of two partitions gets NONE for both, the other empty."""
    cluster = led(brokers=3)
    cluster.create((0, 1), OTHER)
    cluster.produce(0, "a")
    cluster.produce(0, "b", tp=OTHER)
    specs = [FetchPartition(TP, 0), FetchPartition(OTHER, 0)]
    (response,) = multi(cluster, specs, replica_id=2)
    assert [p.error for p in response.partitions] == [ErrorCode.NONE, ErrorCode.NONE]
    assert [offsets(p) for p in response.partitions] == [[0], []]
    assert [p.high_watermark for p in response.partitions] == [0, 0]
    assert cluster[0].partition(OTHER).replica(2) is None


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (0, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_foreign_follower_is_refused_since_3_3(epoch: int, error: ErrorCode) -> None:
    """KAFKA-13837: a follower that is not assigned is refused; with the leader's epoch, as one of
    which the leader has yet to learn."""
    cluster = led("3.9", brokers=3)
    cluster.create((0, 1), OTHER)
    cluster.produce(0, "b", tp=OTHER)
    (answer,) = cluster.fetch(0, 0, replica_id=2, tp=OTHER, current_leader_epoch=epoch)
    assert (answer.error, answer.records) == (error, ())


def test_foreign_follower_was_an_error() -> None:
    """0.10 answers a follower that is not assigned with an unknown error."""
    cluster = led("0.10", brokers=3)
    cluster.create((0, 1), OTHER)
    assert cluster.fetch(0, 0, replica_id=2, tp=OTHER)[0].error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_compressed_topic_needs_a_new_client() -> None:
    """DP-79: on a zstd topic v9 is UNSUPPORTED_COMPRESSION_TYPE, v10 gets data."""
    cluster = filled(topic={"compression.type": "zstd"})
    old = cluster.fetch(0, 0, context=RequestContext("c", 9))[0]
    assert old.error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert cluster.fetch(0, 0, context=RequestContext("c", 10))[0].error is ErrorCode.NONE


# -- limits --------------------------------------------------------------------------------------


def test_first_partition_gets_a_batch_however_large() -> None:
    """DP-72: the first partition with records gets one batch beyond the limits, the others none."""
    cluster = filled(brokers=1)
    cluster.create((0,), OTHER)
    cluster.produce(0, *"xyz", tp=OTHER)
    empty = TopicPartition("e", 0)
    cluster.create((0,), empty)
    specs = [FetchPartition(empty, 0), FetchPartition(OTHER, 0), FetchPartition(TP, 0)]
    (response,) = multi(cluster, specs, max_bytes=1)
    assert [len(p.records) for p in response.partitions] == [0, 1, 0]


def test_later_partitions_get_the_remaining_bytes() -> None:
    """DP-72, DP-87: partitions are served in the request's order until the answer is full."""
    cluster = filled(brokers=1)
    cluster.create((0,), OTHER)
    cluster.produce(0, *"xyz", tp=OTHER)
    size = cluster.fetch(0, 0)[0].records[0].size_in_bytes
    specs = [FetchPartition(TP, 0, max_bytes=2 * size), FetchPartition(OTHER, 0)]
    (response,) = multi(cluster, specs, max_bytes=3 * size)
    assert [len(p.records) for p in response.partitions] == [2, 1]


def test_old_fetch_has_hard_limits() -> None:
    """DP-73: Fetch v2 returns the bytes of a batch that fit the partition limit."""
    cluster = filled(brokers=1)
    old = cluster.fetch(0, 0, partition_max_bytes=10, context=RequestContext("c", 2))[0]
    assert [batch.data for batch in old.records] == [cluster[0].log().active.stored[0][:10]]
    assert len(whole_batches(cluster.fetch(0, 0, partition_max_bytes=10)[0].records)) == 1


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_a_fetch_of_zero_bytes_does_not_wait(isolation_level: int) -> None:
    """A fetch with max bytes 0 does not wait, as min bytes are capped at max bytes
    (docs/kafka/fetch.md#limits)."""
    cluster = filled(brokers=1)
    more: dict[str, Any] = {"max_wait_ms": 500, "max_bytes": 0, "isolation_level": isolation_level}
    (answer,) = cluster.fetch(0, 6, **more)
    assert (answer.error, answer.records) == (ErrorCode.NONE, ())


def test_min_bytes_are_capped_at_the_size_of_the_answer() -> None:
    """Min bytes beyond max bytes do not hold back a fetch."""
    cluster = filled(brokers=1)
    size = cluster.fetch(0, 0)[0].records[0].size_in_bytes
    more: dict[str, Any] = {"max_wait_ms": 500, "min_bytes": 10000}
    total = cluster.fetch(0, 6, max_bytes=2 * size, **more)
    partition = cluster.fetch(0, 6, partition_max_bytes=size + 1, **{**more, "min_bytes": size + 1})
    cluster.produce(0, "g")
    assert total == partition == []
    cluster.produce(0, "h")
    assert offsets(total[0]) == [6, 7]
    assert offsets(partition[0]) == [6]


@pytest.mark.parametrize("api_version", [0, 1, 2])
def test_a_truncated_batch_counts_towards_min_bytes(api_version: int) -> None:
    """Up to v2 a part of a batch counts as min bytes and ends the wait
    (docs/kafka/fetch.md#limits)."""
    cluster = filled(brokers=1)
    context = RequestContext("c", api_version)
    more: dict[str, Any] = {"max_wait_ms": 500, "context": context, "partition_max_bytes": 10}
    assert len(cluster.fetch(0, 5, **more)) == 1
    assert cluster.fetch(0, 5, min_bytes=11, **more) == []
    assert cluster.fetch(0, 6, **more) == []
    assert cluster.fetch(0, 5, **{**more, "partition_max_bytes": 0}) == []


def test_a_batch_that_is_cut_off_at_the_end_counts_too() -> None:
    """A fetch does not wait if its limit falls into the second batch, as no more bytes fit
    (docs/kafka/fetch.md#limits)."""
    cluster = filled(brokers=1)
    size = cluster.fetch(0, 0)[0].records[0].size_in_bytes
    more: dict[str, Any] = {"max_wait_ms": 500, "partition_max_bytes": size + 9}
    assert offsets(cluster.fetch(0, 0, min_bytes=size + 9, **more)[0]) == [0]
    assert cluster.fetch(0, 5, min_bytes=size + 9, **more) == []


# -- waiting -------------------------------------------------------------------------------------


def test_empty_fetch_waits_and_times_out_empty() -> None:
    """A fetch without data waits, and gets an empty answer without an error at its timeout."""
    cluster = filled()
    answers = cluster.fetch(0, 4, max_wait_ms=500)
    assert answers == []
    cluster.clock.advance(499)
    assert answers == []
    cluster.clock.advance(1)
    assert (answers[0].error, answers[0].records) == (ErrorCode.NONE, ())
    assert cluster[0].manager.delayed.fetches.delayed_count == 0


def test_follower_is_woken_by_an_append_and_consumer_by_the_high_watermark() -> None:
    """An append completes followers' fetches, a move of the high watermark consumers'."""
    cluster = filled(committed=6)
    consumer = cluster.fetch(0, 6, max_wait_ms=500)
    follower = cluster.fetch(0, 6, replica_id=1, max_wait_ms=500)
    cluster.produce(0, "g")
    assert offsets(follower[0]) == [6]
    assert consumer == []
    cluster.fetch(0, 7, replica_id=1, max_wait_ms=500)
    assert offsets(consumer[0]) == [6]
    assert consumer[0].high_watermark == 7


def test_an_answered_fetch_keeps_no_data_until_it_is_purged() -> None:
    """An answered fetch stays listed under its other partition until the next purge, without its
    data."""
    cluster = filled(brokers=1)
    cluster.create((0,), OTHER)
    request = FetchRequest(-1, 500, 1, 1 << 20, (FetchPartition(TP, 6), FetchPartition(OTHER, 0)))
    alone = sys.getrefcount(request)
    answers: list[FetchResponse] = []
    cluster[0].manager.fetch.fetch_messages(request, INTERNAL_CONTEXT, answers.append)
    assert sys.getrefcount(request) > alone
    cluster.produce(0, "g")
    assert [offsets(partition) for partition in answers[0].partitions] == [[6], []]
    assert cluster[0].manager.delayed.fetches.watched_count == 1
    assert sys.getrefcount(request) == alone


def test_min_bytes() -> None:
    """A fetch waits for min bytes over all its partitions."""
    cluster = filled(brokers=1)
    size = cluster.fetch(0, 0)[0].records[0].size_in_bytes
    answers = cluster.fetch(0, 6, max_wait_ms=500, min_bytes=2 * size)
    cluster.produce(0, "g")
    assert answers == []
    cluster.produce(0, "h")
    assert offsets(answers[0]) == [6, 7]


def test_same_leader_new_epoch_fences_the_waiting() -> None:
    """DP-33: the same leader re-sent with a higher epoch answers a waiting fetch FENCED."""
    cluster = filled()
    answers = cluster.fetch(1, 0, max_wait_ms=500, current_leader_epoch=0, context=INTERNAL_CONTEXT)
    assert answers == []
    cluster.elect(0)
    assert answers[0].error is ErrorCode.FENCED_LEADER_EPOCH


def test_leader_to_follower_answers_the_waiting() -> None:
    """DP-34, DP-86: an old client's waiting fetch answers 6, one that gave its epoch 74."""
    cluster = filled(committed=6)
    old = cluster.fetch(0, 6, max_wait_ms=500, context=RequestContext("c", 8))
    new = cluster.fetch(0, 6, max_wait_ms=500, current_leader_epoch=0)
    cluster.elect(1)
    assert old[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert new[0].error is ErrorCode.FENCED_LEADER_EPOCH


def test_diverging_epoch_completes_the_waiting() -> None:
    """DP-86: a parked fetch whose epoch's end moves below it is completed."""
    cluster = filled(committed=6)
    answers = cluster.fetch(0, 6, replica_id=1, max_wait_ms=500, last_fetched_epoch=0)
    assert answers == []
    cluster[0].log().truncate_to(4)
    cluster[0].log().assign_epoch_start_offset(3, 4)
    cluster[0].manager.delayed.complete_produces_first(TP)
    assert answers != []


def test_a_history_that_changed_completes_the_waiting() -> None:
    """DP-86: a waiting fetch is completed if the follower's epoch ends below its offset, even in a
    log of equal length."""
    cluster = filled(committed=6)
    answers = cluster.fetch(0, 6, replica_id=1, max_wait_ms=500, last_fetched_epoch=0)
    log = cluster[0].log()
    log.truncate_to(4)
    for _ in range(2):
        append_as_leader(log, encode("z"), 3, cluster.clock.now_ms)
    assert (answers, log.log_end_offset) == ([], 6)
    cluster[0].manager.delayed.complete_produces_first(TP)
    diverging = answers[0].diverging_epoch
    assert (diverging.leader_epoch, diverging.end_offset) == (0, 4)


@pytest.mark.parametrize(
    ("epochs", "completes"),
    [
        ({}, False),
        ({"current_leader_epoch": 4}, False),  # case E: the epoch of this broker
        ({"current_leader_epoch": 5}, False),  # an epoch that this broker does not know yet
        ({"current_leader_epoch": 3}, True),
        ({"last_fetched_epoch": 4}, False),  # case H: the last epoch of this log
        ({"last_fetched_epoch": 5}, True),  # no known end
        ({"last_fetched_epoch": 3}, True),  # the epoch before it was 0
        ({"last_fetched_epoch": 0}, False),
    ],
)
def test_which_epochs_complete_the_waiting(epochs: dict[str, int], completes: bool) -> None:
    """An older epoch is fenced, a newer one keeps waiting, a divergence does not
    (docs/kafka/fetch.md#waiting)."""
    cluster = filled(committed=6)
    cluster.leader_and_isr(0, leader_epoch=4)
    manager = cluster[0].manager
    spec = FetchPartition(TP, 6, **epochs)
    request = FetchRequest(1, 500, 1, 1 << 20, (spec,))
    waiting = DelayedFetch(manager.fetch, request, (spec,), None, 12, lambda response: None)
    assert manager.fetch.is_fetch_satisfied(waiting) is completes


def test_stop_replica_with_delete_answers_the_waiting() -> None:
    """DP-35: deleting a partition completes waiting fetch and produce with NOT_LEADER."""
    cluster = filled(committed=6)
    fetch = cluster.fetch(0, 6, max_wait_ms=500)
    produce = cluster.produce_async(0, "g")
    assert cluster.stop_replica(0, delete=True) is ErrorCode.NONE
    assert fetch[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert produce[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_error_in_one_partition_answers_all_at_once() -> None:
    """Any partition error answers the whole fetch immediately; the others keep their data."""
    cluster = filled()
    specs = [FetchPartition(TP, 4), FetchPartition(TopicPartition("nowhere", 0), 0)]
    (response,) = multi(cluster, specs, max_wait_ms=500)
    assert [p.error for p in response.partitions] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_follower_waits_for_records_whatever_its_id_is() -> None:
    """A follower, even broker 0, waits for records and gets them before they are committed."""
    cluster = led(brokers=2, leader=1)
    answers = cluster.fetch(1, 0, replica_id=0, max_wait_ms=500)
    assert answers == []
    cluster.produce(1, "a", acks=1)
    assert [len(answer.records) for answer in answers] == [1]


def test_only_a_high_watermark_move_does_not_answer_early() -> None:
    """DP-44: with the default selector a moved high watermark alone wakes no follower."""
    cluster = filled(brokers=3, committed=6)
    cluster.fetch(0, 6, replica_id=2, max_wait_ms=500)
    waiting = cluster.fetch(0, 6, replica_id=1, max_wait_ms=500)
    assert cluster[0].high_watermark() == 6
    assert waiting == []
