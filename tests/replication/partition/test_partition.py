"""Roles, replicas and high watermark of one partition
(docs/kafka/isr.md, docs/kafka/partitions.md, PartitionTest)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.config import BrokerConfig, TopicConfig
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.records.batch import RecordBatch
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.partition.replica import Replica
from fakekafka.tests.support.replica_cluster import (
    TP,
    ReplicaCluster,
    encode,
    follower_fetch,
    partition,
)
from fakekafka.tests.support.replica_cluster import led_by_one_of_three as led

# -- replica -------------------------------------------------------------------------------------


def test_fresh_leader_knows_no_offsets() -> None:
    """DP-14: after an election a remote replica's caught-up time is now, and its LEO and LSTART are
    -1."""
    cluster = led()
    replica = partition(cluster).replica(1)
    assert replica.last_caught_up_time_ms == cluster.clock.now_ms
    assert (replica.log_end_offset, replica.log_start_offset) == (-1, -1)


def test_caught_up_only_when_at_the_end() -> None:
    """DP-14: a fetch at 3 of 6 sets only the offset; one at 6 also sets the caught-up time."""
    cluster = led()
    elected_ms = cluster.clock.now_ms
    cluster.produce(0, *"abcdef")
    cluster.clock.advance(100)
    follower_fetch(cluster, 1, 3, log_start_offset=0)
    replica = partition(cluster).replica(1)
    assert replica.log_end_offset == 3
    assert replica.last_caught_up_time_ms == elected_ms
    cluster.clock.advance(100)
    follower_fetch(cluster, 1, 6, log_start_offset=0)
    assert replica.last_caught_up_time_ms == cluster.clock.now_ms


def test_caught_up_to_the_end_of_one_fetch_ago() -> None:
    """DP-18: a fetch that reaches the log end as of the previous fetch counts as caught up at that
    fetch."""
    replica = Replica(1)
    replica.update_fetch_state(0, 0, 1000, 5, True)
    replica.update_fetch_state(5, 0, 2000, 9, True)
    assert replica.last_caught_up_time_ms == 1000
    replica.update_fetch_state(8, 0, 3000, 12, True)
    assert replica.last_caught_up_time_ms == 1000, "8 is below 9, the end at the fetch before"
    old = Replica(2)
    old.update_fetch_state(0, 0, 1000, 5, False)
    old.update_fetch_state(5, 0, 2000, 9, False)
    assert old.last_caught_up_time_ms == 0, "before 0.10.2 only the current end counts"


def test_fetch_offset_may_go_down() -> None:
    """The leader believes a follower that fetches from an earlier offset."""
    replica = Replica(1)
    replica.update_fetch_state(9, 0, 1000, 9, True)
    replica.update_fetch_state(4, 0, 2000, 9, True)
    assert replica.log_end_offset == 4
    assert replica.last_caught_up_time_ms == 1000


@pytest.mark.parametrize("error_case", ["fenced", "diverging", "out_of_range"])
def test_failed_fetch_leaves_the_replica_alone(error_case: str) -> None:
    """DP-40: an old epoch, a diverging epoch or an offset out of range changes nothing."""
    cluster = led()
    cluster.produce(0, *"abc")
    cluster.elect(0)
    cluster.produce(0, "d")
    follower_fetch(cluster, 1, 2, log_start_offset=0, current_leader_epoch=1)
    before = repr(partition(cluster).replica(1))
    cluster.clock.advance(10)
    more = {
        "fenced": {"current_leader_epoch": 0},
        "diverging": {"current_leader_epoch": 1, "last_fetched_epoch": 0},
        "out_of_range": {"current_leader_epoch": 1},
    }[error_case]
    offset = 9 if error_case == "out_of_range" else 4
    (answer,) = follower_fetch(cluster, 1, offset, **more)
    assert answer.error is not ErrorCode.NONE or answer.diverging_epoch is not None
    assert repr(partition(cluster).replica(1)) == before


# -- leadership ----------------------------------------------------------------------------------


def test_leader_registers_its_epoch_before_any_append() -> None:
    """DP-1: a new leader with LEO 4 answers (8, 4) for its epoch 8 before its first append."""
    cluster = led()
    cluster.produce(0, *"abcd")
    cluster.leader_and_isr(0, leader_epoch=8)
    end = cluster[0].log().end_offset_for_epoch(8)
    assert (end.leader_epoch, end.end_offset) == (8, 4)


@pytest.mark.parametrize(("version", "epochs"), [("0.10", []), ("1.1", [(0, 0)])])
def test_old_leaders_register_no_epoch_at_election(
    version: str, epochs: list[tuple[int, int]]
) -> None:
    """DP-2: without a cache there is no epoch; before 2.0 an epoch is registered with its first
    append."""
    cluster = led(version)
    cluster.produce(0, *"abcd")
    cluster.elect(0)
    assert cluster[0].epochs() == epochs


def test_epoch_check_on_a_leader() -> None:
    """DP-3: an older epoch is fenced, a newer one unknown; the right one, or none, passes."""
    cluster = led()
    cluster.elect(0)
    check = partition(cluster).access_error
    assert check(0, True) is ErrorCode.FENCED_LEADER_EPOCH
    assert check(2, True) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert check(1, True) is ErrorCode.NONE
    assert check(-1, True) is ErrorCode.NONE


def test_epoch_check_on_a_follower() -> None:
    """DP-4: wrong epochs answer 74 and 75; the right one answers 6 unless followers may answer."""
    cluster = led()
    cluster.elect(0)
    check = partition(cluster, 1).access_error
    for leader_only in (True, False):
        assert check(0, leader_only) is ErrorCode.FENCED_LEADER_EPOCH
        assert check(2, leader_only) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert check(1, True) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert check(1, False) is ErrorCode.NONE


def test_make_leader_returns_false_if_the_broker_led_before() -> None:
    """A broker that was the leader already is no new leader, and its followers' offsets are
    kept."""
    cluster = led()
    cluster.produce(0, *"ab")
    follower_fetch(cluster, 1, 2, log_start_offset=0)
    kept = partition(cluster).replica(1)
    assert partition(cluster).make_leader(cluster.partition_state(leader_epoch=4)) is False
    assert partition(cluster).replica(1) is kept
    assert kept.log_end_offset == 2
    assert partition(cluster).leader_epoch_start_offset == 2
    assert partition(cluster, 1).make_leader(cluster.partition_state(leader=1, leader_epoch=5))


def test_assignment_keeps_known_replicas() -> None:
    """DP-26: replicas no longer assigned lose their objects; the others keep theirs."""
    cluster = led(brokers=4, replicas=(0, 1, 2))
    kept = partition(cluster).replica(1)
    cluster.replicas[TP] = (0, 1, 3)
    cluster.elect(0, isr=(0, 1))
    assert partition(cluster).replica(2) is None
    assert partition(cluster).replica(3) is not None
    assert partition(cluster).replica(1) is kept


@pytest.mark.parametrize(
    ("version", "leader", "epoch", "restart"),
    [
        ("0.10", 1, 9, False),
        ("0.10", 2, 2, True),
        ("1.1", 1, 9, False),
        ("1.1", 2, 2, True),
        ("2.8", 1, 1, False),
        ("2.8", 1, 2, True),
        ("2.8", 2, 2, True),
    ],
)
def test_make_follower_restarts_the_fetcher(
    version: str, leader: int, epoch: int, restart: bool
) -> None:
    """DP-11, DP-42: which changes make a follower of leader 1 in epoch 1 restart its fetcher, by
    version."""
    cluster = led(version, leader=1)
    cluster.elect(1)
    state = cluster.partition_state(leader=leader, leader_epoch=epoch)
    assert partition(cluster).make_follower(state) is restart


@pytest.mark.parametrize(("epoch", "restart"), [(1, False), (2, False), (3, True)])
def test_a_fetcher_restarted_once_it_had_missed_an_epoch(epoch: int, restart: bool) -> None:
    """KAFKA-7164: how 2.0.1 handled the next epoch, and the one after it."""
    cluster = led("1.1", leader=1, flags={"make_follower_restarts": "epoch_missed"})
    cluster.elect(1)
    state = cluster.partition_state(leader=1, leader_epoch=epoch)
    assert partition(cluster).make_follower(state) is restart


def test_follower_knows_no_isr() -> None:
    """A follower forgets the ISR and the start of the epoch it led."""
    cluster = led()
    cluster.elect(1)
    follower = partition(cluster)
    assert (follower.isr, follower.maximal_isr) == ((), ())
    assert follower.leader_epoch_start_offset is None
    assert follower.leader_id == 1


@pytest.mark.parametrize("leader_id", [0, 1])
def test_old_partition_epoch_is_refused(leader_id: int) -> None:
    """Since 3.0 a LeaderAndIsr with an older partition epoch changes nothing, whatever its
    leader."""
    for version, expected in (("3.9", (0, 7, 0)), ("2.8", (5, 3, leader_id))):
        cluster = led(version)
        cluster.leader_and_isr(0, leader_epoch=0, zk_version=7)
        leader = partition(cluster)
        leader.partition_epoch = 7
        state = cluster.partition_state(leader=leader_id, leader_epoch=5, zk_version=3)
        change = leader.make_leader if leader_id == 0 else leader.make_follower
        change(state)
        assert (leader.leader_epoch, leader.partition_epoch, leader.leader_id) == expected


def test_high_watermark_starts_from_the_checkpoint() -> None:
    """DP-24: with checkpoint 4 and LEO 6 the high watermark after makeLeader is 4."""
    cluster = led()
    cluster.produce(0, *"abcdef")
    follower_fetch(cluster, 1, 4, log_start_offset=0)
    follower_fetch(cluster, 2, 4, log_start_offset=0)
    cluster[0].manager.upkeep.checkpoint_high_watermarks()
    cluster[0].kill()
    cluster[0].start()
    cluster.elect(0)
    assert (cluster[0].high_watermark(), cluster[0].log_end_offset()) == (4, 6)


def test_config_is_read_when_the_log_is_created() -> None:
    """DP-27: a log has the configuration in force when it is created."""
    cluster = ReplicaCluster("2.8", 1, topic={"min.insync.replicas": "2"})
    cluster.create((0,))
    assert partition(cluster).settings.min_insync_replicas == 2
    cluster.topic_overrides["min.insync.replicas"] = "1"
    cluster[0].manager.hosted.update_topic_config("t")
    assert partition(cluster).settings.min_insync_replicas == 1


# -- following -----------------------------------------------------------------------------------


def batch_at(offset: int, *values: str, epoch: int = 0) -> RecordBatch:
    from fakekafka.tests.support.batches import with_base_offset

    return RecordBatch.from_bytes(bytes(with_base_offset(encode(*values), offset, epoch)))


def test_empty_log_adopts_a_batch_around_its_start() -> None:
    """DP-9: an empty log starting at 5 refuses 0..2, is reset by 4..6, then refuses 3."""
    cluster = led(leader=1)
    follower = partition(cluster)
    follower.log.truncate_fully_and_start_at(5)
    with pytest.raises(KafkaError):
        follower.append_as_follower((batch_at(0, *"abc"),), 0, 0)
    follower.append_as_follower((batch_at(4, *"def"),), 0, 0)
    assert (follower.log.log_start_offset, follower.log.log_end_offset) == (4, 7)
    with pytest.raises(KafkaError):
        follower.append_as_follower((batch_at(3, "g"),), 0, 0)


def test_follower_append_without_a_log() -> None:
    """DP-10: a follower's append without a log raises a not-leader error."""
    cluster = led(leader=1)
    follower = partition(cluster)
    follower.log = None
    with pytest.raises(KafkaError) as caught:
        follower.append_as_follower((batch_at(0, "a"),), 0, 0)
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_follower_high_watermark_follows_the_leader_within_its_log() -> None:
    """A follower's high watermark is the leader's, bounded by its own log end; it may fall."""
    cluster = led(leader=1)
    follower = partition(cluster)
    assert follower.append_as_follower((batch_at(0, *"abc"),), 9, 0)
    assert follower.log.high_watermark == 3
    assert not follower.append_as_follower((), 1, 0)
    assert follower.log.high_watermark == 1


def test_follower_copies_the_log_start() -> None:
    """A follower adopts a greater log start of the leader, and the high watermark with it."""
    cluster = led(leader=1)
    follower = partition(cluster)
    assert follower.append_as_follower((batch_at(0, *"a"), batch_at(1, "b")), 2, 1)
    assert (follower.log.log_start_offset, follower.log.high_watermark) == (1, 2)


# -- high watermark ------------------------------------------------------------------------------


def test_high_watermark_is_the_smallest_end_of_the_isr() -> None:
    """The high watermark moves when the last ISR member has fetched past a record."""
    cluster = led()
    cluster.produce(0, *"abc")
    assert cluster[0].high_watermark() == 0
    follower_fetch(cluster, 1, 3)
    assert cluster[0].high_watermark() == 0
    follower_fetch(cluster, 2, 2)
    assert cluster[0].high_watermark() == 2
    follower_fetch(cluster, 2, 1)
    assert cluster[0].high_watermark() == 2, "never down at a leader"


def test_answer_carries_the_high_watermark_of_before() -> None:
    """DP-41: an answer has the high watermark from before the fetch."""
    cluster = led(brokers=2)
    cluster.produce(0, "a")
    (answer,) = follower_fetch(cluster, 1, 1)
    assert answer.high_watermark == 0
    assert cluster[0].high_watermark() == 1


def test_a_high_watermark_that_did_not_move_completes_no_operation() -> None:
    """Delayed operations on the partition are tried again only if the high watermark moved."""
    cluster = led(brokers=2)
    cluster.produce(0, "a")
    follower_fetch(cluster, 1, 1)
    cluster.produce(0, "b")
    leader = partition(cluster)
    replica, now_ms = leader.replica(1), cluster.clock.now_ms
    assert (replica.log_end_offset, leader.log.high_watermark) == (1, 1)
    assert not leader.maybe_increment_high_watermark(now_ms)
    assert not leader.update_follower(replica, 1, 0, now_ms, 2)
    assert leader.update_follower(replica, 2, 0, now_ms, 2)
    assert leader.log.high_watermark == 2


def test_a_fetch_that_is_accounted_late_does_not_lower_the_caught_up_time() -> None:
    """``Replica.updateFetchState`` keeps the larger of both times."""
    cluster = led(brokers=2)
    leader = partition(cluster)
    replica, now_ms = leader.replica(1), cluster.clock.now_ms
    leader.update_follower(replica, 0, 0, now_ms + 100, 0)
    leader.update_follower(replica, 0, 0, now_ms + 50, 0)
    assert replica.last_caught_up_time_ms == now_ms + 100


@pytest.mark.parametrize(("version", "waits"), [("0.10", False), ("1.1", True), ("2.8", True)])
def test_the_high_watermark_waits_for_a_joining_replica(version: str, waits: bool) -> None:
    """A replica outside the ISR that was caught up lately holds the high watermark back
    (docs/kafka/partitions.md#high-watermark-of-a-leader).

    Lately means within the lag time, to the millisecond.
    """
    cluster = led(version, isr=(0, 1))
    follower_fetch(cluster, 2, 0)  # at the end, so caught up now; its ISR change is undone below
    context: Any = cluster[0].manager.hosted.context
    context.isr_updater = None
    leader = partition(cluster)
    leader.isr = leader.maximal_isr = (0, 1)
    leader.pending_isr = None
    cluster.produce(0, "a")
    replica = leader.replica(1)
    replica.log_end_offset = 1
    leader.maybe_increment_high_watermark(cluster.clock.now_ms)
    assert cluster[0].high_watermark() == (0 if waits else 1)
    lag_ms = cluster.config["replica.lag.time.max.ms"]
    caught_up_ms = leader.replica(2).last_caught_up_time_ms
    leader.maybe_increment_high_watermark(caught_up_ms + lag_ms)
    assert cluster[0].high_watermark() == (0 if waits else 1)
    leader.maybe_increment_high_watermark(caught_up_ms + lag_ms + 1)
    assert cluster[0].high_watermark() == 1


def test_the_high_watermark_does_not_wait_for_a_dead_joining_replica() -> None:
    """Since 3.3 the high watermark waits only for a replica that could join, on a live broker."""
    for version, high_watermark in (("2.8", 0), ("3.9", 1)):
        cluster = led(version, isr=(0,))
        leader = partition(cluster)
        leader.replica(1).last_caught_up_time_ms = cluster.clock.now_ms
        cluster[1].kill()
        cluster.update_metadata()
        cluster.produce(0, "a")
        assert cluster[0].high_watermark() == high_watermark, version


def test_high_watermark_frozen_under_min_isr() -> None:
    """Since 3.7 the high watermark stays while the ISR is below min.insync.replicas."""
    for version, high_watermark in (("2.8", 1), ("3.9", 0)):
        cluster = led(version, isr=(0,), topic={"min.insync.replicas": "2"})
        cluster.produce(0, "a")
        assert cluster[0].high_watermark() == high_watermark, version


def test_shrink_commit_moves_the_high_watermark() -> None:
    """2.8 leaves the high watermark to the next append or fetch; 3.0 moves it at the commit."""
    for version, high_watermark in (("2.8", 0), ("3.9", 1), ("1.1", 1), ("0.10", 1)):
        cluster = led(version, brokers=2)
        cluster.hold_isr_changes()
        cluster.produce(0, "a")
        lag_ms = cluster.config["replica.lag.time.max.ms"]
        cluster.clock.now_ms += lag_ms + 1
        partition(cluster).maybe_shrink_isr(cluster.clock.now_ms)
        assert cluster[0].high_watermark() == 0, "still pending"
        cluster.release_isr_changes()
        assert partition(cluster).isr == (0,)
        assert cluster[0].high_watermark() == high_watermark, version


def test_a_changed_topic_leaves_the_settings_of_others() -> None:
    cluster = led()
    other = TopicPartition("u", 0)
    cluster.create((0, 1), other)
    hosted: Any = cluster[0].manager.hosted
    before = hosted.partition(other).settings
    hosted.topic_config = lambda _topic: TopicConfig(BrokerConfig(), {"min.insync.replicas": "2"})
    hosted.update_topic_config("t")
    assert hosted.partition(TP).settings.min_insync_replicas == 2
    assert hosted.partition(other).settings is before
