"""The ISR of a partition grows and shrinks (docs/kafka/isr.md, PartitionTest,
IsrExpirationTest)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.values import LeaderAndIsr, TopicPartition
from fakekafka.tests.support.present import present
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, follower_fetch, partition
from fakekafka.tests.support.replica_cluster import led_by_one_of_three as led

# -- ISR expansion -------------------------------------------------------------------------------


def expanding(version: str = "2.8") -> ReplicaCluster:
    """A partition with two committed records and broker 2 outside the ISR."""
    cluster = led(version, isr=(0, 1))
    partition(cluster).replica(2).last_caught_up_time_ms = 0
    cluster.produce(0, *"ab")
    follower_fetch(cluster, 1, 2)
    cluster.hold_isr_changes()
    return cluster


def test_expansion() -> None:
    """DP-15: a replica below the high watermark is not proposed; at it, it is proposed once and
    joins the maximal ISR only."""
    cluster = expanding()
    leader = partition(cluster)
    follower_fetch(cluster, 2, 1)
    assert leader.pending_isr is None
    follower_fetch(cluster, 2, 2)
    assert (leader.isr, leader.maximal_isr) == ((0, 1), (0, 1, 2))
    assert present(leader.pending_isr).proposal.isr == (0, 1, 2)
    follower_fetch(cluster, 2, 2)
    cluster.release_isr_changes()
    assert len(cluster.alter_isr_requests) == 1
    assert leader.isr == leader.maximal_isr == (0, 1, 2)
    assert leader.partition_epoch == 1
    assert cluster[0].manager.isr_expands == 1


def test_a_deleted_partition_takes_its_proposal_back() -> None:
    """Deleting a partition removes its proposal, which would block a new partition of that name
    until the answer."""
    cluster = expanding()
    follower_fetch(cluster, 2, 2)
    updater: Any = cluster[0].manager.hosted.context.isr_updater
    assert updater.pending == (TP,)
    cluster.stop_replica(0, True)
    assert updater.pending == ()


def test_joiner_counts_for_the_high_watermark_at_once() -> None:
    """A pending joiner holds the high watermark back before the ISR is committed."""
    cluster = expanding()
    follower_fetch(cluster, 2, 2)
    cluster.produce(0, "c")
    follower_fetch(cluster, 1, 3)
    assert cluster[0].high_watermark() == 2
    follower_fetch(cluster, 2, 3)
    assert cluster[0].high_watermark() == 3


def test_refused_expansion_stays_pending() -> None:
    """DP-16: after INVALID_UPDATE_VERSION the committed ISR stays, and no more changes are
    submitted."""
    cluster = expanding()
    cluster.state[TP] = LeaderAndIsr(0, 0, (0, 1), 9)
    leader = partition(cluster)
    follower_fetch(cluster, 2, 2)
    cluster.release_isr_changes()
    assert leader.isr == (0, 1)
    assert leader.pending_isr is not None
    follower_fetch(cluster, 2, 2)
    assert len(cluster.alter_isr_requests) == 1


@pytest.mark.parametrize("version", ["0.10", "1.1"])
def test_refused_write_is_tried_again(version: str) -> None:
    """Before KIP-497 a wrong version keeps the old ISR, and the next fetch tries again."""
    cluster = expanding(version)
    cluster.state[TP] = LeaderAndIsr(0, 0, (0, 1), 9)
    leader = partition(cluster)
    follower_fetch(cluster, 2, 2)
    cluster.release_isr_changes()
    assert (leader.isr, leader.maximal_isr, leader.pending_isr) == ((0, 1), (0, 1), None)
    cluster.state[TP] = LeaderAndIsr(0, 0, (0, 1), 0)
    follower_fetch(cluster, 2, 2)
    assert leader.isr == (0, 1, 2)


@pytest.mark.parametrize(("version", "joins_early"), [("1.1", True), ("2.8", False)])
def test_joining_needs_the_epoch_start(version: str, joins_early: bool) -> None:
    """DP-12: a follower at the high watermark but below the epoch's start may not join."""
    cluster = led(version, isr=(0, 1))
    cluster.produce(0, *"abcd")
    cluster.elect(0, isr=(0, 1))
    leader = partition(cluster)
    assert (leader.leader_epoch_start_offset, cluster[0].high_watermark()) == (4, 0)
    cluster.hold_isr_changes()
    follower_fetch(cluster, 2, 3)
    assert (2 in leader.maximal_isr) is joins_early
    follower_fetch(cluster, 2, 4)
    assert leader.maximal_isr == (0, 1, 2)
    assert leader.isr == (0, 1)


def test_dead_replica_may_not_join() -> None:
    """Since 3.x a follower on a broker that is not alive is not proposed."""
    for version, joins in (("2.8", True), ("3.9", False)):
        cluster = expanding(version)
        cluster[2].kill()
        cluster.update_metadata()
        follower_fetch(cluster, 2, 2)
        assert (partition(cluster).pending_isr is not None) is joins, version


# -- ISR shrinking -------------------------------------------------------------------------------


def test_shrink() -> None:
    """DP-17: the removal of a silent follower is proposed after the lag time; the ISR stays until
    then."""
    cluster = led(brokers=2)
    cluster.hold_isr_changes()
    cluster.produce(0, "a")
    leader = partition(cluster)
    leader.maybe_shrink_isr(cluster.clock.now_ms + 30000)
    assert leader.pending_isr is None, "strictly greater"
    leader.maybe_shrink_isr(cluster.clock.now_ms + 30001)
    assert present(leader.pending_isr).proposal.isr == (0,)
    assert leader.isr == leader.maximal_isr == (0, 1)
    assert cluster[0].high_watermark() == 0
    cluster.release_isr_changes()
    assert leader.isr == (0,)
    assert cluster[0].manager.isr_shrinks == 1


@pytest.mark.parametrize(("version", "stays"), [("0.10", False), ("1.1", False), ("2.8", True)])
def test_member_at_the_end_is_not_removed(version: str, stays: bool) -> None:
    """DP-19, CP-188: a silent follower at the leader's end stays; before 2.1 it leaves."""
    cluster = led(version, brokers=2)
    cluster.produce(0, "a")
    follower_fetch(cluster, 1, 1)
    leader = partition(cluster)
    leader.maybe_shrink_isr(cluster.clock.now_ms + 1_000_000)
    assert leader.isr == ((0, 1) if stays else (0,))


@pytest.mark.parametrize("version", ["2.3", "3.0", "3.9"])
def test_a_member_that_is_no_replica_leaves(version: str) -> None:
    """CP-204: a member that is no replica leaves, such as one that dies while a reassignment drops
    it (``Partition.isFollowerOutOfSync`` of 3.0, KAFKA-9672)."""
    cluster = led(version, isr=(0, 1, 2, 7))
    partition(cluster).maybe_shrink_isr(cluster.clock.now_ms)
    assert partition(cluster).isr == (0, 1, 2)


@pytest.mark.parametrize("version", ["2.4", "2.8"])
def test_an_isr_member_that_is_no_replica_aborts_the_check_of_lagging_members(version: str) -> None:
    """CP-205: an ISR member that is no replica aborts the check, so that no lagging member leaves,
    also in the partitions checked later (``Partition.getReplicaOrException`` of 2.4)."""
    cluster = led(version, isr=(0, 1, 2, 7))
    cluster.produce(0, "a")
    other = TopicPartition("other", 0)
    cluster.create((0, 1, 2), other)
    cluster.produce(0, "a", tp=other)
    cluster.clock.now_ms += 30_001
    cluster[0].manager.upkeep.shrink_isrs()
    assert partition(cluster).isr == (0, 1, 2, 7)
    assert present(cluster[0].manager.hosted.partition(other)).isr == (0, 1, 2)
    with pytest.raises(KafkaError, match="Replica with id 7 is not available on broker 0"):
        partition(cluster).maybe_shrink_isr(cluster.clock.now_ms)


def test_all_lagging_members_leave_together() -> None:
    """A shrink removes every lagging member in one update."""
    cluster = led(brokers=4)
    cluster.produce(0, "a")
    follower_fetch(cluster, 2, 1)
    partition(cluster).maybe_shrink_isr(cluster.clock.now_ms + 30001)
    assert partition(cluster).isr == (0, 2)
    assert len(cluster.alter_isr_requests) == 1


def test_failed_shrink_stays_pending() -> None:
    """DP-20: a refused shrink stays pending, and the high watermark does not move."""
    cluster = led(brokers=2)
    cluster.produce(0, "a")
    cluster.state[TP] = LeaderAndIsr(0, 0, (0, 1), 9)
    leader = partition(cluster)
    leader.maybe_shrink_isr(cluster.clock.now_ms + 30001)
    assert leader.pending_isr is not None
    assert leader.maximal_isr == (0, 1)
    assert cluster[0].high_watermark() == 0


class ScriptedUpdater:
    """An updater that stores submissions, which the test answers."""

    def __init__(self) -> None:
        self.submitted: list[Any] = []

    def submit(self, tp: TopicPartition, state: Any, controller_epoch: int, callback: Any) -> bool:
        self.submitted.append((state, callback))
        return True

    def clear_pending(self, tp: TopicPartition) -> None:
        pass


def scripted(version: str = "2.8") -> Any:
    cluster = led(version, brokers=2)
    updater = ScriptedUpdater()
    cluster[0].manager.hosted.context.isr_updater = updater
    cluster.produce(0, "a")
    leader = partition(cluster)
    leader.maybe_shrink_isr(cluster.clock.now_ms + 30001)
    return cluster, leader, updater


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.FENCED_LEADER_EPOCH,
    ],
)
def test_final_errors_are_not_retried(error: ErrorCode) -> None:
    """DP-21: on unknown topic, bad version or fencing the change is abandoned until the next
    LeaderAndIsr."""
    cluster, leader, updater = scripted()
    updater.submitted[0][1](error, None)
    assert len(updater.submitted) == 1
    assert leader.pending_isr is not None
    cluster.elect(0)
    assert leader.pending_isr is None


def test_unexpected_error_is_retried() -> None:
    """DP-21: on any other error the same item is submitted again."""
    _, leader, updater = scripted()
    updater.submitted[0][1](ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert len(updater.submitted) == 2
    assert updater.submitted[0][0] is updater.submitted[1][0]
    assert leader.pending_isr is not None


@pytest.mark.parametrize(("version", "rolls_back"), [("2.8", False), ("3.9", True)])
def test_ineligible_replica_rolls_back(version: str, rolls_back: bool) -> None:
    """Since 3.x INELIGIBLE_REPLICA restores the committed ISR, and a new proposal may follow."""
    _, leader, updater = scripted(version)
    updater.submitted[0][1](ErrorCode.INELIGIBLE_REPLICA, None)
    assert (leader.pending_isr is None) is rolls_back


def test_one_change_at_a_time() -> None:
    """DP-22: while an expansion is in flight no shrink is submitted."""
    cluster = expanding()
    follower_fetch(cluster, 2, 2)
    pending = partition(cluster).pending_isr
    partition(cluster).maybe_shrink_isr(cluster.clock.now_ms + 1_000_000)
    assert partition(cluster).pending_isr is pending


def test_zookeeper_commit_is_there_when_the_call_returns() -> None:
    """DP-23: with a write to ZooKeeper the new ISR and version are in force at once."""
    cluster = led("1.1", isr=(0,))
    follower_fetch(cluster, 1, 0)
    leader = partition(cluster)
    assert (leader.isr, leader.partition_epoch) == ((0, 1), 1)


@pytest.mark.parametrize(
    ("answer", "isr", "pending"),
    [
        (LeaderAndIsr(0, 7, (0,), 5), (0, 1), True),
        (LeaderAndIsr(0, 0, (0,), -1), (0, 1), True),
        (LeaderAndIsr(0, 0, (0,), 0), (0,), False),
        (LeaderAndIsr(0, 0, (0,), 5), (0,), False),
    ],
)
def test_which_answers_commit(answer: Any, isr: tuple[int, ...], pending: bool) -> None:
    """An answer of another epoch or an older version is ignored; an equal version confirms the
    change."""
    _, leader, updater = scripted()
    updater.submitted[0][1](ErrorCode.NONE, answer)
    assert leader.isr == isr
    assert (leader.pending_isr is not None) is pending


def test_answer_to_a_discarded_proposal_is_ignored() -> None:
    """A LeaderAndIsr request discards the pending change, whose late answer is ignored."""
    cluster, leader, updater = scripted()
    cluster.elect(0)
    updater.submitted[0][1](ErrorCode.NONE, LeaderAndIsr(0, 1, (0,), 9))
    assert (leader.isr, leader.partition_epoch) == ((0, 1), 1)


def test_a_partition_missing_in_the_answer_stays_queued() -> None:
    """A partition missing in the answer stays queued until it is answered."""
    cluster = expanding()
    follower_fetch(cluster, 2, 2)
    assert cluster[0].isr_updater.pending == (TP,)
    cluster.release_isr_changes()
    assert cluster[0].isr_updater.pending == ()


# -- gauges --------------------------------------------------------------------------------------


def test_at_min_isr() -> None:
    """DP-13: at-min-ISR is true exactly while the ISR has min.insync.replicas members."""
    cluster = led(topic={"min.insync.replicas": "2"})
    leader = partition(cluster)
    for isr, at, under in (((0, 1, 2), False, False), ((0, 1), True, False), ((0,), False, True)):
        leader.isr = isr
        assert (leader.is_at_min_isr, leader.is_under_min_isr) == (at, under)
    follower = partition(cluster, 1)
    assert not follower.is_at_min_isr
    assert not follower.is_under_min_isr


def test_under_replicated() -> None:
    """DP-25: a follower is never under-replicated; while reassigning only the original replicas
    count."""
    cluster = led(isr=(0, 1))
    assert partition(cluster).is_under_replicated
    assert not partition(cluster, 1).is_under_replicated
    cluster.leader_and_isr(0, leader_epoch=2, adding_replicas=(2,), removing_replicas=(1,))
    assert not partition(cluster).is_under_replicated
    assert cluster[0].manager.under_replicated_count == 0


# -- IsrExpirationTest ---------------------------------------------------------------------------


def expiring(version: str = "2.8") -> ReplicaCluster:
    """A partition with lag limit 100 ms, two replicas and ten records, whose ISR changes at
    once."""
    cluster = led(version, brokers=2, config={"replica.lag.time.max.ms": 100})
    cluster.produce(0, *"abcdefghij")
    return cluster


def isr_after(cluster: ReplicaCluster, ms: int) -> Any:
    cluster.clock.now_ms += ms
    partition(cluster).maybe_shrink_isr(cluster.clock.now_ms)
    return partition(cluster).isr


def test_stuck_follower_leaves() -> None:
    """DP-30: a follower that stays one record behind leaves after 150 ms."""
    cluster = expiring()
    follower_fetch(cluster, 1, 9)
    assert isr_after(cluster, 150) == (0,)


def test_slow_follower_leaves_and_returns() -> None:
    """DP-30: a follower that fetches twice below the end, 75 ms apart, leaves; a fetch at the end
    brings it back."""
    cluster = expiring()
    follower_fetch(cluster, 1, 10)
    cluster.produce(0, *"klmno")
    follower_fetch(cluster, 1, 11)
    assert isr_after(cluster, 75) == (0, 1)
    follower_fetch(cluster, 1, 13)
    assert isr_after(cluster, 75) == (0,)
    follower_fetch(cluster, 1, 15)
    assert partition(cluster).isr == (0, 1)


def test_caught_up_follower_stays() -> None:
    """DP-30: a follower at the end stays in the ISR."""
    cluster = expiring()
    follower_fetch(cluster, 1, 10)
    assert isr_after(cluster, 1000) == (0, 1)


def test_never_fetched_counts_from_the_election() -> None:
    """DP-30: the lag of a follower that never fetched counts from the election."""
    cluster = expiring()
    assert isr_after(cluster, 100) == (0, 1)
    assert isr_after(cluster, 1) == (0,)


@pytest.mark.parametrize(("version", "out_after_ms"), [("0.10", 200), ("1.1", 150), ("2.8", 150)])
def test_check_runs_every_half_lag_time(version: str, out_after_ms: int) -> None:
    """The check is scheduled by the manager: a follower leaves between 1 and 1.5 times the lag;
    before 0.10.2 (KAFKA-4485), where it was as long as the lag, between 1 and 2 times."""
    cluster = expiring(version)
    cluster.clock.advance(out_after_ms - 1)
    assert partition(cluster).isr == (0, 1)
    cluster.clock.advance(1)
    assert partition(cluster).isr == (0,)


def test_election_of_old_releases_keeps_old_times() -> None:
    """0.10 does not reset caught-up times, so that a newly elected leader may shrink the ISR at
    once."""
    cluster = led("0.10", brokers=2)
    cluster.clock.now_ms += 60000
    cluster.elect(1)
    cluster.clock.now_ms += 60000
    cluster.elect(0)
    assert isr_after(cluster, 0) == (0,)
    newer = led("1.1", brokers=2)
    newer.clock.now_ms += 60000
    newer.elect(1)
    newer.clock.now_ms += 60000
    newer.elect(0)
    assert isr_after(newer, 0) == (0, 1)
