"""Promises of replication: leaders, ISRs, logs and high watermarks.

TypeOk, LeaderInIsr, WeakIsr and StrongIsr are named after the invariants of the public TLA+
specification of Kafka's replication (``KafkaReplication.tla`` of hachikuji/kafka-specification). A
topic that was deleted on the way is left out from then on: a new one of its name begins anew.
"""

from __future__ import annotations

from typing import Any

from ...protocol.values import TopicPartition
from ..watch import SeenReplica, Stored, batch_at
from .invariant import Invariant, Scene

NO_LEADER = -1


def is_same(one: Any, other: Any) -> bool:
    """Return whether two logs have the same batch; both hold the very same bytes then."""
    return one is other or (
        one is not None and other is not None and (one.data is other.data or one.data == other.data)
    )


class TypeOk(Invariant):
    """Leaders, ISRs and offsets are what they can be.

    A stored leader is a broker or -1, an ISR is not empty and names no broker twice, and epochs
    are not negative. In every log: log start offset <= high watermark <= log end offset.
    """

    def on_stored(self, where: TopicPartition, stored: Stored, before: Stored | None) -> None:
        brokers = self.scene.world.brokers
        isr = stored.isr
        if stored.leader != NO_LEADER and stored.leader not in brokers:
            self.tell(f"{where}: the stored leader {stored.leader} is no broker", where)
        if not isr or len(set(isr)) < len(isr) or not brokers.issuperset(isr):
            self.tell(f"{where}: the stored ISR is {isr}", where)
        if stored.leader_epoch < 0 or stored.controller_epoch < 0:
            self.tell(f"{where}: the stored leadership is {stored}", where)

    def on_offsets(self, replica: SeenReplica, end_before: int, mark_before: int) -> None:
        start = replica.log.log_start_offset
        if not 0 <= start <= replica.mark <= replica.end:
            self.tell(
                f"{replica.where} at broker {replica.broker}: begin {start}, high watermark "
                f"{replica.mark}, end {replica.end}",
                replica.where,
            )


class LeaderInIsr(Invariant):
    """Whoever is stored as the leader of a partition is stored in its ISR."""

    def on_stored(self, where: TopicPartition, stored: Stored, before: Stored | None) -> None:
        if stored.leader not in (NO_LEADER, *stored.isr):
            self.tell(f"{where}: leader {stored.leader} is not in the ISR {stored.isr}", where)


class _InSync(Invariant):
    """Of the two promises about ISRs: who is in one has all that is below the high watermark.

    A replica that a reassignment takes away stays in the ISR for a moment, and counts no more.
    """

    def _check(self, leader: SeenReplica, member: int, whose: str) -> None:
        """Look at the last batch below a leader's high watermark at a member of an ISR."""
        mark, where = leader.mark, leader.where
        replica = self.watch.replica(where, member)
        if member == leader.broker or replica is None or replica.log is None:
            return
        if replica.role is None or not mark or where.topic in self.watch.deleted:
            return
        partition = self.scene.world.hosted(leader.broker, where)
        if partition is None or member not in partition.replicas:
            return
        if replica.end < mark:
            have = f"ends at {replica.end}"
        elif mark <= replica.log.log_start_offset or is_same(
            batch_at(leader.log, mark - 1), batch_at(replica.log, mark - 1)
        ):
            return
        else:
            have = f"has another record at {mark - 1}"
        self.tell(
            f"{where}: broker {leader.broker}, which leads in epoch {leader.leader_epoch}, has the "
            f"high watermark {mark}, and broker {member} of {whose} ISR {have}",
            where,
            min(replica.end, mark - 1),
            self.scene.known.name_of_lag(where, member),
        )

    def _leaders(self, where: TopicPartition) -> list[SeenReplica]:
        """Return who presumes to lead."""
        return [
            replica
            for replica in self.watch.replicas.get(where, {}).values()
            if replica.leads and replica.log is not None and self.watch.is_alive(replica.broker)
        ]


class WeakIsr(_InSync):
    """Whoever presumes to lead a partition, the replicas in the ISR that it presumes have all
    records below its high watermark."""

    def on_offsets(self, replica: SeenReplica, end_before: int, mark_before: int) -> None:
        if replica.leads:
            if replica.mark > mark_before:
                for member in replica.isr:
                    self._check_follower(replica, member)
        elif replica.end < end_before:
            for leader in self._leaders(replica.where):
                if replica.broker in leader.isr:
                    self._check_follower(leader, replica.broker)

    def _check_follower(self, leader: SeenReplica, member: int) -> None:
        """A broker that follows another leader by now is not counted on by this one's epoch.

        A leader that is told of its ISR moves its high watermark before it tells of either, so it
        is asked.
        """
        replica = self.watch.replica(leader.where, member)
        if replica is None or replica.leader_epoch > leader.leader_epoch:
            return
        partition = self.scene.world.hosted(leader.broker, leader.where)
        if partition is not None and member in partition.isr:
            self._check(leader, member, "its")


class StrongIsr(_InSync):
    """Whoever presumes to lead a partition, the replicas in the stored ISR have all records below
    its high watermark: whoever is elected has what consumers have read."""

    def on_offsets(self, replica: SeenReplica, end_before: int, mark_before: int) -> None:
        stored = self.watch.stored.get(replica.where)
        if stored is None:
            return
        if replica.leads:
            if replica.mark > mark_before:
                for member in stored.isr:
                    self._check(replica, member, "the stored")
        elif replica.end < end_before and replica.broker in stored.isr:
            for leader in self._leaders(replica.where):
                self._check(leader, replica.broker, "the stored")

    def on_stored(self, where: TopicPartition, stored: Stored, before: Stored | None) -> None:
        joined = set(stored.isr).difference(() if before is None else before.isr)
        for leader in self._leaders(where) if joined else ():
            for member in sorted(joined):
                self._check(leader, member, "the stored")


class LogMatching(Invariant):
    """A follower goes on only behind a log that is the same as its leader's.

    It is compared when a follower's log grows for the first time since either of them had another
    role or was cut.
    """

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._compared: dict[tuple[TopicPartition, int], tuple[int, ...]] = {}

    def on_offsets(self, replica: SeenReplica, end_before: int, mark_before: int) -> None:
        if replica.leads or replica.end <= end_before or replica.leader is None:
            return
        leader = self.watch.replica(replica.where, replica.leader)
        if leader is None or not leader.leads or leader.log is None:
            return
        now = (leader.broker, leader.leader_epoch, leader.cuts, replica.leader_epoch, replica.cuts)
        key = replica.where, replica.broker
        if self._compared.get(key) == now:
            return
        self._compared[key] = now
        if replica.where.topic not in self.watch.deleted:
            self._compare(leader, replica, end_before, mark_before)

    def _compare(self, leader: SeenReplica, replica: SeenReplica, end: int, mark: int) -> None:
        theirs = {batch.base_offset: batch for batch in leader.log.batches()}
        for batch in replica.log.batches(leader.log.log_start_offset):
            if batch.base_offset >= end:
                return
            if batch.base_offset >= leader.log.log_start_offset and not is_same(
                batch, theirs.get(batch.base_offset)
            ):
                self.scene.known.note_divergence(replica, leader, batch.base_offset, mark)
                self.tell(
                    f"{replica.where}: broker {replica.broker} goes on from offset {end} with what "
                    f"broker {leader.broker} has, and differs from it from offset "
                    f"{batch.base_offset} on, in epoch {replica.leader_epoch}",
                    replica.where,
                    batch.base_offset,
                )
                return


class OneLeaderAnEpoch(Invariant):
    """No two brokers take records as leaders of a partition in the same leader epoch."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._took: dict[tuple[TopicPartition, int], int] = {}

    def on_offsets(self, replica: SeenReplica, end_before: int, mark_before: int) -> None:
        if not replica.leads or replica.end <= end_before:
            return
        first = self._took.setdefault((replica.where, replica.leader_epoch), replica.broker)
        if first != replica.broker and replica.where.topic not in self.watch.deleted:
            self.tell(
                f"{replica.where}: brokers {first} and {replica.broker} both took records as "
                f"leaders in epoch {replica.leader_epoch}",
                replica.where,
                end_before,
            )


class EpochsRise(Invariant):
    """The leader epoch of a partition never goes back, neither in ZooKeeper nor at a broker, and a
    leadership is never stored by an older controller than the one before."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._epochs: dict[SeenReplica, int] = {}

    def on_stored(self, where: TopicPartition, stored: Stored, before: Stored | None) -> None:
        if before is None or where.topic in self.watch.deleted:
            return
        for name in ("leader_epoch", "controller_epoch"):
            old, new = getattr(before, name), getattr(stored, name)
            if new < old:
                self.tell(f"{where}: the stored {name} went from {old} to {new}", where)
        if stored.leader != before.leader and stored.leader_epoch == before.leader_epoch:
            self.tell(
                f"{where}: leader {stored.leader} takes the place of {before.leader} in the same "
                f"epoch {stored.leader_epoch}",
                where,
            )

    def on_role(self, replica: SeenReplica) -> None:
        before = self._epochs.get(replica, -1)
        epoch = self._epochs[replica] = replica.leader_epoch
        if 0 <= epoch < before and replica.where.topic not in self.watch.deleted:
            self.tell(
                f"{replica.where}: broker {replica.broker} went from leader epoch {before} to "
                f"{epoch}",
                replica.where,
            )


class HighWatermarkRises(Invariant):
    """The high watermark of a leader never falls, as long as it leads.

    A new leader may begin below what the one before it had: it was not told the last one yet.
    """

    def on_offsets(self, replica: SeenReplica, end_before: int, mark_before: int) -> None:
        if replica.leads and replica.mark < mark_before and not replica.has_news:
            self.tell(
                f"{replica.where}: the high watermark of broker {replica.broker}, which leads in "
                f"epoch {replica.leader_epoch}, fell from {mark_before} to {replica.mark}",
                replica.where,
                replica.mark,
            )


class AcknowledgedSurvive(Invariant):
    """A record that was acknowledged with ``acks=all`` is there for ever, at its offset.

    It is looked for at each broker that becomes leader, and in the end.
    """

    def on_role(self, replica: SeenReplica) -> None:
        load = self.scene.load
        if not replica.leads or load is None or replica.log is None:
            return
        for acknowledged in load.newest_acknowledged(replica.where):
            offset = acknowledged.offset
            if offset < replica.log.log_start_offset or acknowledged.epoch >= replica.leader_epoch:
                continue  # one that was a leader before may not know yet that it is none now
            batch = batch_at(replica.log, offset)
            if batch is None or (
                acknowledged.batch is not None and not is_same(acknowledged.batch, batch)
            ):
                self.tell(
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
                    self.tell(f"{where}: {acknowledged}, missing in epoch {epoch}", where, offset)
                elif offset >= 0 and there.get(offset) != value:
                    found = there.get(offset)
                    self.tell(
                        f"{where}: {acknowledged}, another record is there in epoch {epoch}: "
                        f"{found!r} and not {value!r}",
                        where,
                        offset,
                    )
