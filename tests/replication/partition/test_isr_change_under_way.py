"""Operations of a partition during an ISR change (docs/kafka/partitions.md#state,
PartitionLockTest)."""

from __future__ import annotations

import pytest
from fakekafka.protocol.control import LeaderAndIsrPartitionState
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.present import present
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, led

LAG_MS = 30_000


def shrinking() -> ReplicaCluster:
    """A partition whose leader has proposed to remove the lagging broker 2, without an answer
    yet."""
    cluster = led("2.8", 3)
    cluster.produce(0, "a")
    for follower in (1, 2):
        cluster.fetch(0, 1, replica_id=follower)
    cluster.produce(0, "b")
    cluster.clock.advance(LAG_MS + 1)
    cluster.fetch(0, 2, replica_id=1)
    cluster.hold_isr_changes()
    cluster[0].partition().maybe_shrink_isr(cluster.clock.now_ms)
    return cluster


def test_appends_and_followers_do_not_wait_for_an_isr_change() -> None:
    """DP-29: only another ISR change waits for the one in flight. Kafka needs a lock that readers
    share for that; here the broker is one actor, which suspends no handler."""
    cluster = shrinking()
    partition = cluster[0].partition()
    pending = present(partition.pending_isr)
    assert pending.proposal.isr == (0, 1)
    for number in range(3):
        (answer,) = cluster.produce(0, f"c{number}")
        assert (answer.error, answer.base_offset) == (ErrorCode.NONE, 2 + number)
        (fetched,) = cluster.fetch(0, 2 + number, replica_id=1)
        assert [batch.base_offset for batch in fetched.records] == [2 + number]
    assert present(partition.find_replica(1)).log_end_offset == 4
    partition.maybe_shrink_isr(cluster.clock.now_ms + 2 * LAG_MS)
    assert partition.pending_isr is pending
    cluster.release_isr_changes()
    assert (cluster[0].partition().isr, cluster[0].partition().pending_isr) == ((0, 1), None)
    assert len(cluster.alter_isr_requests) == 1


def new_leadership(leader: int) -> LeaderAndIsrPartitionState:
    """The next leadership, from the next controller, with another assignment."""
    return LeaderAndIsrPartitionState(
        TP.topic, TP.partition, 9, leader, 7, (0, 1, 2), 12, (0, 1, 2, 3), (3,), (1,), False
    )


def test_a_new_leadership_ends_the_change_under_way() -> None:
    """A new leadership also removes the queued proposal, so that the next one is accepted."""
    cluster = shrinking()
    partition = cluster[0].partition()
    assert not partition.make_leader(new_leadership(0))
    assert (partition.pending_isr, partition.isr) == (None, (0, 1, 2))
    assert (partition.controller_epoch, partition.partition_epoch) == (9, 12)
    cluster.clock.advance(LAG_MS + 1)
    partition.maybe_shrink_isr(cluster.clock.now_ms)
    assert present(partition.pending_isr).proposal.isr == (0, 1)


def test_a_leader_that_becomes_a_follower_has_no_isr_change_in_flight() -> None:
    """A leader that becomes a follower has no ISR change in flight."""
    cluster = shrinking()
    partition = cluster[0].partition()
    partition.make_follower(new_leadership(2))
    assert (partition.pending_isr, partition.isr, partition.maximal_isr) == (None, (), ())
    assert (partition.leader_id, partition.is_leader, partition.leader_epoch) == (2, False, 7)
    assert (partition.controller_epoch, partition.partition_epoch) == (9, 12)
    assert partition.replicas == (0, 1, 2, 3)
    assert (partition.adding_replicas, partition.removing_replicas) == ((3,), (1,))
    cluster.clock.advance(LAG_MS + 1)
    partition.maybe_shrink_isr(cluster.clock.now_ms)
    assert partition.pending_isr is None


@pytest.mark.parametrize("follower", [1, 2])
def test_the_high_watermark_waits_for_a_replica_about_to_leave_the_isr(follower: int) -> None:
    """DP-29: the high watermark waits for a follower whose removal is pending, and moves if it
    fetches."""
    cluster = shrinking()
    before = cluster[0].high_watermark()
    cluster.fetch(0, 2, replica_id=follower)
    assert (cluster[0].high_watermark() > before) is (follower == 2)


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_an_idle_follower_removed_from_the_isr_rejoins(version: str) -> None:
    """DP-29: a follower that caught up while its removal was decided rejoins with its next fetch.

    Kafka checks each fetch (``Partition.maybeExpandIsr``); here the removal wakes the session's
    partition.
    """
    cluster = led(version, 2)
    cluster.produce(0, "a")
    cluster.hold_isr_changes()
    cluster.clock.advance(LAG_MS + 1)
    partition = cluster[0].partition()
    partition.maybe_shrink_isr(cluster.clock.now_ms)
    assert present(partition.pending_isr).proposal.isr == (0,)
    cluster.replicate(1)
    assert present(partition.find_replica(1)).log_end_offset == 1
    cluster.release_isr_changes()
    assert partition.isr == (0,)
    cluster.round(1)
    assert (cluster[0].partition().isr, cluster[0].partition().pending_isr) == ((0, 1), None)
