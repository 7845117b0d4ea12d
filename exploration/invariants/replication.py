"""Promises about replication: leaders, ISRs, logs and high watermarks.

TypeOk, LeaderInIsr, WeakIsr and StrongIsr are named after the invariants of the public TLA+
specification of Kafka's replication (``KafkaReplication.tla`` of hachikuji/kafka-specification).
Topics are excluded once they were deleted, as a new topic of the same name starts from scratch.
"""

from __future__ import annotations

from typing import Any

from ...protocol.values import TopicPartition
from ..watch import ReportedReplica, StoredLeadership, batch_at
from .invariant import Invariant, Scene

NO_LEADER = -1


def is_same(one: Any, other: Any) -> bool:
    """Return True if the batches of two logs are the same, which means that they share bytes or
    have equal bytes; a missing batch equals only a missing one."""
    return one is other or (
        one is not None and other is not None and (one.data is other.data or one.data == other.data)
    )


class TypeOk(Invariant):
    """Leaders, ISRs and offsets have valid values.

    A stored leader is a broker or -1, an ISR is not empty and has no duplicates, and epochs are not
    negative. In every log, log start offset <= high watermark <= log end offset.
    """

    def on_stored(
        self, where: TopicPartition, stored: StoredLeadership, before: StoredLeadership | None
    ) -> None:
        brokers = self.scene.world.brokers
        isr = stored.isr
        if stored.leader != NO_LEADER and stored.leader not in brokers:
            self.report(f"{where}: the stored leader {stored.leader} is not a broker", where)
        if not isr or len(set(isr)) < len(isr) or not brokers.issuperset(isr):
            self.report(f"{where}: the stored ISR is {isr}", where)
        if stored.leader_epoch < 0 or stored.controller_epoch < 0:
            self.report(f"{where}: the stored leadership is {stored}", where)

    def on_offsets(
        self, replica: ReportedReplica, log_end_offset_before: int, high_watermark_before: int
    ) -> None:
        start = replica.log.log_start_offset
        if not 0 <= start <= replica.high_watermark <= replica.log_end_offset:
            self.report(
                f"{replica.where} at broker {replica.broker}: log start {start}, high watermark "
                f"{replica.high_watermark}, end {replica.log_end_offset}",
                replica.where,
            )


class LeaderInIsr(Invariant):
    """The stored leader of a partition is in the stored ISR."""

    def on_stored(
        self, where: TopicPartition, stored: StoredLeadership, before: StoredLeadership | None
    ) -> None:
        if stored.leader not in (NO_LEADER, *stored.isr):
            self.report(f"{where}: leader {stored.leader} is not in the ISR {stored.isr}", where)


class _InSync(Invariant):
    """Base of the promises that members of an ISR have all records below the high watermark.

    A replica that a reassignment removes remains in the ISR for a moment, and is not checked.
    """

    def _check(self, leader: ReportedReplica, member: int, isr_owner: str) -> None:
        """Check that an ISR member has the last batch below a leader's high watermark."""
        high_watermark, where = leader.high_watermark, leader.where
        replica = self.watch.replica(where, member)
        if member == leader.broker or replica is None or replica.log is None:
            return
        if replica.role is None or not high_watermark or where.topic in self.watch.deleted:
            return
        partition = self.scene.world.hosted(leader.broker, where)
        if partition is None or member not in partition.replicas:
            return
        if replica.log_end_offset < high_watermark:
            problem = f"ends at {replica.log_end_offset}"
        elif high_watermark <= replica.log.log_start_offset or is_same(
            batch_at(leader.log, high_watermark - 1), batch_at(replica.log, high_watermark - 1)
        ):
            return
        else:
            problem = f"has another record at {high_watermark - 1}"
        self.report(
            f"{where}: broker {leader.broker}, which leads in epoch {leader.leader_epoch}, has the "
            f"high watermark {high_watermark}, and broker {member} of {isr_owner} ISR {problem}",
            where,
            min(replica.log_end_offset, high_watermark - 1),
            self.scene.defects.defect_of_lag(where, member),
        )

    def _leaders(self, where: TopicPartition) -> list[ReportedReplica]:
        """Return the replicas on live brokers that presume to lead a partition."""
        return [
            replica
            for replica in self.watch.replicas.get(where, {}).values()
            if replica.is_leader and replica.log is not None and self.watch.is_alive(replica.broker)
        ]


class WeakIsr(_InSync):
    """For each broker that presumes to lead a partition, the replicas in the ISR that it presumes
    have all records below its high watermark."""

    def on_offsets(
        self, replica: ReportedReplica, log_end_offset_before: int, high_watermark_before: int
    ) -> None:
        if replica.is_leader:
            if replica.high_watermark > high_watermark_before:
                for member in replica.isr:
                    self._check_follower(replica, member)
        elif replica.log_end_offset < log_end_offset_before:
            for leader in self._leaders(replica.where):
                if replica.broker in leader.isr:
                    self._check_follower(leader, replica.broker)

    def _check_follower(self, leader: ReportedReplica, member: int) -> None:
        """Check a member of the leader's ISR, unless it has moved on to a later leader epoch.

        A leader that gets a new ISR advances its high watermark before it reports either of them,
        so the ISR is read from the partition itself.
        """
        replica = self.watch.replica(leader.where, member)
        if replica is None or replica.leader_epoch > leader.leader_epoch:
            return
        partition = self.scene.world.hosted(leader.broker, leader.where)
        if partition is not None and member in partition.isr:
            self._check(leader, member, "its")


class StrongIsr(_InSync):
    """For each broker that presumes to lead a partition, the replicas in the stored ISR have all
    records below its high watermark, so that an elected leader has all that consumers have read."""

    def on_offsets(
        self, replica: ReportedReplica, log_end_offset_before: int, high_watermark_before: int
    ) -> None:
        stored = self.watch.stored.get(replica.where)
        if stored is None:
            return
        if replica.is_leader:
            if replica.high_watermark > high_watermark_before:
                for member in stored.isr:
                    self._check(replica, member, "the stored")
        elif replica.log_end_offset < log_end_offset_before and replica.broker in stored.isr:
            for leader in self._leaders(replica.where):
                self._check(leader, replica.broker, "the stored")

    def on_stored(
        self, where: TopicPartition, stored: StoredLeadership, before: StoredLeadership | None
    ) -> None:
        joined = set(stored.isr).difference(() if before is None else before.isr)
        for leader in self._leaders(where) if joined else ():
            for member in sorted(joined):
                self._check(leader, member, "the stored")


class LogMatching(Invariant):
    """A follower appends only if the log that it has so far is the same as its leader's.

    The logs are compared when the follower's log grows for the first time after a change of role or
    a truncation of either replica.
    """

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._compared: dict[tuple[TopicPartition, int], tuple[int, ...]] = {}

    def on_offsets(
        self, replica: ReportedReplica, log_end_offset_before: int, high_watermark_before: int
    ) -> None:
        if (
            replica.is_leader
            or replica.log_end_offset <= log_end_offset_before
            or replica.leader is None
        ):
            return
        leader = self.watch.replica(replica.where, replica.leader)
        if leader is None or not leader.is_leader or leader.log is None:
            return
        now = (
            leader.broker,
            leader.leader_epoch,
            leader.truncations,
            replica.leader_epoch,
            replica.truncations,
        )
        key = replica.where, replica.broker
        if self._compared.get(key) == now:
            return
        self._compared[key] = now
        if replica.where.topic not in self.watch.deleted:
            self._compare(leader, replica, log_end_offset_before, high_watermark_before)

    def _compare(
        self, leader: ReportedReplica, replica: ReportedReplica, end: int, high_watermark: int
    ) -> None:
        leader_batches = {batch.base_offset: batch for batch in leader.log.batches()}
        for batch in replica.log.batches(leader.log.log_start_offset):
            if batch.base_offset >= end:
                return
            if batch.base_offset >= leader.log.log_start_offset and not is_same(
                batch, leader_batches.get(batch.base_offset)
            ):
                self.scene.defects.note_divergence(
                    replica, leader, batch.base_offset, high_watermark
                )
                self.report(
                    f"{replica.where}: broker {replica.broker} appends at offset {end} as a "
                    f"follower of broker {leader.broker} in epoch {replica.leader_epoch}, but "
                    f"their logs differ from offset {batch.base_offset} on",
                    replica.where,
                    batch.base_offset,
                )
                return


class OneLeaderAnEpoch(Invariant):
    """No two brokers append records as leaders of a partition in the same leader epoch."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._first_leaders: dict[tuple[TopicPartition, int], int] = {}

    def on_offsets(
        self, replica: ReportedReplica, log_end_offset_before: int, high_watermark_before: int
    ) -> None:
        if not replica.is_leader or replica.log_end_offset <= log_end_offset_before:
            return
        first = self._first_leaders.setdefault(
            (replica.where, replica.leader_epoch), replica.broker
        )
        if first != replica.broker and replica.where.topic not in self.watch.deleted:
            self.report(
                f"{replica.where}: brokers {first} and {replica.broker} both appended records "
                f"as leaders in epoch {replica.leader_epoch}",
                replica.where,
                log_end_offset_before,
            )


class EpochsRise(Invariant):
    """The leader epoch of a partition never decreases, neither in ZooKeeper nor at a broker, and
    neither does the epoch of the controller that stores the leadership."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._epochs: dict[ReportedReplica, int] = {}

    def on_stored(
        self, where: TopicPartition, stored: StoredLeadership, before: StoredLeadership | None
    ) -> None:
        if before is None or where.topic in self.watch.deleted:
            return
        for name in ("leader_epoch", "controller_epoch"):
            old, new = getattr(before, name), getattr(stored, name)
            if new < old:
                self.report(f"{where}: the stored {name} went from {old} to {new}", where)
        if stored.leader != before.leader and stored.leader_epoch == before.leader_epoch:
            self.report(
                f"{where}: leader {stored.leader} takes the place of {before.leader} in the same "
                f"epoch {stored.leader_epoch}",
                where,
            )

    def on_role(self, replica: ReportedReplica) -> None:
        before = self._epochs.get(replica, -1)
        epoch = self._epochs[replica] = replica.leader_epoch
        if 0 <= epoch < before and replica.where.topic not in self.watch.deleted:
            self.report(
                f"{replica.where}: broker {replica.broker} went from leader epoch {before} to "
                f"{epoch}",
                replica.where,
            )


class HighWatermarkRises(Invariant):
    """The high watermark of a leader never decreases while it leads.

    A new leader may start below its predecessor's, as it may not know the latest high watermark.
    """

    def on_offsets(
        self, replica: ReportedReplica, log_end_offset_before: int, high_watermark_before: int
    ) -> None:
        if (
            replica.is_leader
            and replica.high_watermark < high_watermark_before
            and not replica.has_unreported_change
        ):
            self.report(
                f"{replica.where}: the high watermark of broker {replica.broker}, which leads in "
                f"epoch {replica.leader_epoch}, fell from {high_watermark_before} to "
                f"{replica.high_watermark}",
                replica.where,
                replica.high_watermark,
            )


class AcknowledgedSurvive(Invariant):
    """A record that was acknowledged with ``acks=all`` stays in the log, at its offset.

    Records are looked for at each broker that becomes a leader, and at the end.
    """

    def on_role(self, replica: ReportedReplica) -> None:
        load = self.scene.load
        if not replica.is_leader or load is None or replica.log is None:
            return
        for acknowledged in load.newest_acknowledged(replica.where):
            offset = acknowledged.offset
            if offset < replica.log.log_start_offset or acknowledged.epoch >= replica.leader_epoch:
                continue  # a former leader may not know yet that it was replaced
            batch = batch_at(replica.log, offset)
            if batch is None or (
                acknowledged.batch is not None and not is_same(acknowledged.batch, batch)
            ):
                self.report(
                    f"{replica.where}: {acknowledged}, missing at broker {replica.broker}, which "
                    f"leads in epoch {replica.leader_epoch}",
                    replica.where,
                    offset,
                )

    def end(self) -> None:
        load, simulation = self.scene.load, self.scene.world.simulation
        if load is None:
            return
        for where in self.scene.world.main:
            there = {record.offset: record.value for record in simulation.records(*where)}
            values = set(there.values())
            epoch = simulation.partition(*where).leader_epoch
            for acknowledged in load.acknowledged.get(where, ()):
                offset, value = acknowledged.offset, acknowledged.value
                if value not in values:
                    self.report(f"{where}: {acknowledged}, missing in epoch {epoch}", where, offset)
                elif offset >= 0 and there.get(offset) != value:
                    found = there.get(offset)
                    self.report(
                        f"{where}: {acknowledged}, another record is there in epoch {epoch}: "
                        f"{found!r} instead of {value!r}",
                        where,
                        offset,
                    )
