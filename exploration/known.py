"""Promises that Kafka itself breaks, and the names of violations that follow from them.

This module suppresses no violation. During a run it notes where the emulated release truncates, or
keeps, records that it should not. A violation that follows gets the name of the issue or KIP that
fixed the behaviour.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

from ..protocol.values import NO_LEADER, ReplicaAssignment, TopicPartition
from ..protocol.versions import Behaviour
from ..statemachines.machines.known_topics import KnownTopics
from .watch import ReportedReplica, StoredLeadership, Watch

KNOWN: dict[str, str] = {
    "KIP-101 (loss)": "a follower truncates to its high watermark, which lags, and then leads",
    "KIP-101 (divergence)": "a follower truncates to its high watermark and keeps records that its "
    "leader does not have",
    "KIP-279": "a leader that does not know the follower's epoch tells it where to truncate",
    "KIP-320": "a follower misses a change of leaders, and keeps records that its leader truncated",
    "KIP-497": "the leader raises the high watermark before it knows who has joined the ISR",
    "KAFKA-1120": "a controller misses the restart of a broker, and sends it no state",
    "KAFKA-2729": "a leader whose write of the ISR was not answered never changes the ISR again",
    "KAFKA-4443": "a new controller tells brokers whom to follow before it tells them who is alive",
    "KAFKA-6082": "a deposed controller writes leaderships to ZooKeeper",
    "KAFKA-9144": "a fenced producer's offsets are appended after the marker, and its successor's "
    "commit includes them",
    "unanswered AlterIsr": "as KAFKA-2729, but the leader asks the controller "
    "(docs/kafka/isr.md#changes-through-the-controller)",
    "refused AlterIsr": "as KAFKA-2729, but a deposed controller refuses the change",
    "unanswered create": "a controller creates a partition again after an unanswered creation",
    "missed high watermark": "a truncating follower ignores the high watermark in a fetch response "
    "(docs/kafka/fetch-sessions.md#answers)",
    "dropped in sync": "a reassignment drops the only replicas in sync "
    "(docs/kafka/reassignment.md#dropped-in-sync)",
    "missed leader": "a leader that learns too late of its successor leads again, with outdated "
    "positions of its followers (docs/kafka/partitions.md#becoming-leader)",
    "former coordinator": "a broker that is no longer the coordinator answers with old positions "
    "(docs/kafka/groups-and-transactions.md)",
}
"""Name of each known defect of Kafka -> what happens then."""
_LOG_PROMISES = frozenset(
    {
        "AcknowledgedSurvive",
        "LogMatching",
        "NoDuplicates",
        "ReadsArePrefixes",
        "ReplicasIdentical",
        "StrongIsr",
        "WeakIsr",
    }
)
"""The promises that break if logs are truncated or kept wrongly."""

_ISR_JOIN_MS_MAX = 2_000
"""Maximum time in milliseconds in which a leader may not know of a new member of the ISR."""


class Caveat(NamedTuple):
    """From this offset of a partition on, violations are explained by the named defect."""

    offset: int
    name: str


class DefectTracker:
    """Notes, during one run, where defects of Kafka may cause violations."""

    def __init__(self, behaviour: Behaviour, watch: Watch, now_ms: Callable[[], float]) -> None:
        self._behaviour = behaviour
        self._now_ms = now_ms
        self._joined_ms: dict[tuple[TopicPartition, int], float] = {}
        self.caveats: dict[TopicPartition, list[Caveat]] = {}
        self._divergences: dict[TopicPartition, list[Caveat]] = {}  # these lead to truncation, too
        self.dropped: dict[TopicPartition, set[int]] = {}
        """Replicas that were being added until a later request dropped them, in sync or not."""
        self._added_again: dict[TopicPartition, set[int]] = {}
        """Dropped replicas that another request adds again, with empty logs."""
        self._watch = watch
        self._leaders: dict[TopicPartition, dict[int, int]] = {}
        """The leader elected in each leader epoch, as stored in ZooKeeper."""
        self._missed_leaderships: dict[tuple[TopicPartition, int], int] = {}
        """(partition, leader) -> the epoch in which a broker leads again that did not learn in time
        of another leader in between. This explains nothing about later epochs."""
        watch.add_listener("on_stored", self._note_elected)
        watch.add_listener("on_role", self._note_follows)
        if behaviour.reassignment_api:
            watch.add_listener("on_role", self._note_added_again)
        if behaviour.truncation == "high_watermark":
            watch.add_listener("on_offsets", self._note_truncation)
        if not behaviour.alter_isr:
            watch.add_listener("on_stored", self._note_joined)

    def defect_of(self, promise: str, where: TopicPartition | None, offset: int | None) -> str:
        """Return the name of the defect that explains a broken promise; empty if none does."""
        if where is None or promise not in _LOG_PROMISES:
            return ""
        for note in self._divergences.get(where, []) + self.caveats.get(where, []):
            if offset is None or offset >= note.offset:
                return note.name
        return ""

    def defect_of_lag(self, where: TopicPartition, member: int) -> str:
        """Return the name of the defect by which an ISR member lacks records below the high
        watermark; empty if none does.

        Until 2.6, a leader keeps using its old ISR while ZooKeeper stores a new member. In all
        releases, a broker that leads again without having followed assumes that its followers are
        where they were (``ReplicaManager.makeFollowers``, ``Partition.makeLeader``).
        """
        leader = self._watch.leader_of(where)
        if leader is not None:
            resumed_epoch = self._missed_leaderships.get((where, leader.broker))
            if resumed_epoch is not None and leader.leader_epoch <= resumed_epoch:
                return "missed leader"
        if self._behaviour.alter_isr:
            return ""
        joined_ms = self._joined_ms.get((where, member))
        is_new = joined_ms is not None and self._now_ms() - joined_ms < _ISR_JOIN_MS_MAX
        return "KIP-497" if is_new else ""

    def _note_elected(
        self, where: TopicPartition, stored: StoredLeadership, _before: StoredLeadership | None
    ) -> None:
        leaders = self._leaders.setdefault(where, {})
        leaders[stored.leader_epoch] = stored.leader
        seen = self._watch.replica(where, stored.leader)
        if seen is None or not seen.is_leader:
            return
        others = {
            leader
            for epoch, leader in leaders.items()
            if epoch > seen.leader_epoch and leader not in (stored.leader, NO_LEADER)
        }
        if others:
            self._missed_leaderships[where, stored.leader] = stored.leader_epoch

    def _note_follows(self, replica: ReportedReplica) -> None:
        if not replica.is_leader:
            self._missed_leaderships.pop((replica.where, replica.broker), None)

    def _note_joined(
        self, where: TopicPartition, stored: StoredLeadership, before: StoredLeadership | None
    ) -> None:
        for member in set(stored.isr).difference(() if before is None else before.isr):
            self._joined_ms[where, member] = self._now_ms()

    def add_caveat(self, where: TopicPartition, offset: int, name: str) -> None:
        self.caveats.setdefault(where, []).append(Caveat(offset, name))

    def _note_truncation(
        self, replica: ReportedReplica, log_end_offset_before: int, _high_watermark_before: int
    ) -> None:
        """Note that a follower truncates to its high watermark, as it does until 0.10, even if
        records above it are acknowledged."""
        if (
            replica.log_end_offset < log_end_offset_before
            and replica.log_end_offset == replica.high_watermark
        ):
            self.add_caveat(replica.where, replica.log_end_offset, "KIP-101 (loss)")

    def _note_added_again(self, replica: ReportedReplica) -> None:
        """Note that a dropped replica that was added again leads with an empty log, which can
        happen as the ISR still contains it. A replica that has copied the log loses nothing."""
        is_back = replica.broker in self._added_again.get(replica.where, ())
        if is_back and replica.is_leader and replica.log_end_offset == 0:
            self.add_caveat(replica.where, 0, "dropped in sync")

    def note_divergence(
        self, replica: ReportedReplica, leader: ReportedReplica, offset: int, high_watermark: int
    ) -> None:
        """Note that a follower appends to a log that differs from its leader's from an offset on.

        ``high_watermark`` was that of the follower. Until 0.10, a follower keeps the records below
        its high watermark even if its leader has lost them (KIP-101). Up to 1.1,
        ``LeaderEpochFileCache.endOffsetFor`` answers with the start of the next epoch that the
        leader knows, although the requested epoch starts at an earlier offset in the follower's log
        (KIP-279). Until 2.0, a follower that missed a change of leaders resumes after records that
        its leader has truncated in the meantime (KIP-320, ``Partition.makeFollower``).
        """
        flags = self._behaviour
        if flags.truncation == "high_watermark":
            name = "KIP-101 (divergence)" if offset < high_watermark else "KIP-320"
        elif (
            replica.has_requested_epoch_end
            and replica.leader_epoch == leader.leader_epoch
            and not flags.epoch_truncation_rounds
        ):
            name = "KIP-279"
        elif flags.epoch_cache and not flags.fetch_epoch_fencing:
            name = "KIP-320"
        else:
            return
        self._divergences.setdefault(replica.where, []).append(Caveat(offset, name))

    def tracking(self) -> contextlib.AbstractContextManager[Any]:
        """Note within this context which replicas are dropped again by
        ``KafkaController.updateCurrentReassignment``; only one history of the process at a time
        may do so."""
        update = KnownTopics.update_partition_full_replica_assignment

        def noting(
            topics: KnownTopics, where: TopicPartition, assignment: ReplicaAssignment
        ) -> None:
            if topics.has_assignment(where):
                adding = topics.partition_full_replica_assignment(where).adding
                dropped = self.dropped.setdefault(where, set())
                dropped.update(adding)
                added_again = dropped.intersection(assignment.replicas)
                self._added_again.setdefault(where, set()).update(added_again)
                dropped -= added_again
            update(topics, where, assignment)

        return mock.patch.object(KnownTopics, "update_partition_full_replica_assignment", noting)
