"""Promises to clients: reads, idempotence, transactions, groups and committed offsets."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...protocol.values import TopicPartition
from ..worlds.copying import CopyWorld
from ..worlds.group_world import GroupWorld
from .invariant import Invariant, Scene


class ReadsArePrefixes(Invariant):
    """A consumer reads a prefix of each partition's log: without gaps, always the same record at an
    offset, and all records that were read are still in the log at the end."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._seen: dict[tuple[TopicPartition, int], bytes | None] = {}
        if scene.load is not None:
            scene.load.on_read.append(self._read)

    def _read(self, where: TopicPartition, batch: Any, position: int) -> None:
        if batch.base_offset > position:
            self.report(
                f"{where}: a consumer at {position} received {batch.base_offset}", where, position
            )
        for record in batch.records():
            if record.offset >= position:
                before = self._seen.setdefault((where, record.offset), record.value)
                if before != record.value:
                    self.report(
                        f"{where}: offset {record.offset} was read as {before!r} and then as "
                        f"{record.value!r}",
                        where,
                        record.offset,
                    )

    def end(self) -> None:
        simulation = self.scene.world.simulation
        there = {
            (where, record.offset): record.value
            for where in self.scene.world.main
            for record in simulation.records(*where)
        }
        for (where, offset), value in self._seen.items():
            if there.get((where, offset)) != value:
                found = there.get((where, offset))
                self.report(
                    f"{where}: offset {offset} was read as {value!r}, but the log has {found!r}",
                    where,
                    offset,
                )


class NoDuplicates(Invariant):
    """A record of an idempotent producer is stored once, and acknowledged records are in order.

    Excluded are records that the producer renumbered under a new epoch, whether they had been
    stored or not, as Kafka's producer does (``TransactionManager.bumpIdempotentProducerEpoch``,
    KIP-360). Only acknowledged records need to be in order, because a restarted broker remembers
    only the last batch in its snapshot, and refuses earlier ones that are sent again.
    """

    def end(self) -> None:
        load, simulation = self.scene.load, self.scene.world.simulation
        if load is None or not load.is_idempotent:
            return
        for where in self.scene.world.main:
            renumbered = load.renumbered.get(where, set())
            found = [r for r in simulation.records(*where) if r.value not in renumbered]
            acknowledged = {one.value for one in load.acknowledged.get(where, ())}
            counts: Counter[bytes | None] = Counter()
            latest: dict[bytes, bytes] = {}
            for record in found:
                value = record.value or b""
                counts[value] += 1
                if counts[value] == 2:
                    self.report(f"{where}: {value!r} is stored twice", where, record.offset)
                    break
                name = value.partition(b":")[0]
                if value in acknowledged:
                    if value <= latest.get(name, b""):
                        self.report(
                            f"{where}: {value!r} comes after {latest[name]!r}", where, record.offset
                        )
                        break
                    latest[name] = value


class TransactionsAreAtomic(Invariant):
    """Readers of committed records find each record that an application copies in transactions
    exactly once and in order, whichever brokers die and however often the application is replaced.

    Kafka breaks this promise in two ways. A former group coordinator that does not know yet that it
    was replaced answers with old positions, and an application that resumes there copies the
    records committed since then again (docs/kafka/groups-and-transactions.md). And until 2.4.0,
    offsets of a fenced producer are accepted after the marker that ended its transaction. The next
    transaction with that producer id commits them, and the aborted input is never read again
    (KAFKA-9144).
    """

    def end(self) -> None:
        world = self.scene.world
        if not isinstance(world, CopyWorld):
            return
        for problem in world.differences():
            checks_epochs = world.simulation.behaviour.coordinators_check_epochs
            known = ""
            if "records" in problem and world.late_offset_commits and not checks_epochs:
                known = "KAFKA-9144"
            elif "records" in problem and world.former_coordinator_answers:
                known = "former coordinator"
            self.report(problem, known=known)


class OneOwner(Invariant):
    """A partition is never owned by two members of a group in the same generation or, with the
    consumer protocol (KIP-848), at the same time."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        if isinstance(scene.world, GroupWorld):
            scene.world.on_second_owner = self.report


class CommitsStay(Invariant):
    """A committed offset that a coordinator acknowledged is never lost, and never goes back.

    Offsets are checked when another broker becomes the group's coordinator, and at the end.
    """

    def on_group_state(self, group: str, old: str | None, new: str | None) -> None:
        if old is None and new is not None:
            self._check_commits()

    def end(self) -> None:
        self._check_commits()

    def _check_commits(self) -> None:
        world = self.scene.world
        if not isinstance(world, GroupWorld):
            return
        world.note_commits()
        group = world.group()
        if group is None:
            return
        for where, offset in sorted(world.acknowledged.items()):
            value = group.offsets.get(where)
            if value is None or value.offset < offset:
                there = "none" if value is None else value.offset
                self.report(f"{where}: {offset} was committed, but the coordinator has {there}")
