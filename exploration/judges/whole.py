"""A cluster under load has to be whole after its faults, and to have what it promised to keep."""

from __future__ import annotations

import contextlib
from collections import Counter
from sys import maxsize
from typing import Any

from ...protocol.errors import FakeKafkaError, KafkaError
from ...testing.checks import replicas_identical
from ..faults import FAULTS
from ..generator import Draws
from ..world import World
from .excuses import Excuses
from .healing import Healing, topics
from .judge import Judge
from .load import Load, build, draw_options


class Whole(Judge):
    """Nothing acknowledged is lost, nothing is stored twice, and every replica is in sync."""

    name = "whole"
    draws: Draws = Draws(FAULTS, (3, 18), (0, 1, 10, 200, 1000, 1000, 4000, 8000))

    def __init__(self, kafka_version: str, seed: int, trace: bool = False) -> None:
        options = draw_options(seed)
        self.world: World = build(options, seed, kafka_version, trace)
        self.load: Load = Load(self.world, options)
        self.excuses: Excuses = Excuses(self.world.simulation)
        self.healing: Healing = Healing(self.world, self.load, self.excuses)

    def watching(self) -> contextlib.AbstractContextManager[object]:
        return self.excuses.noting()

    def figures(self) -> dict[str, int]:
        return {"acknowledged": len(self.load.acknowledged)}

    def end(self) -> list[str]:
        self.healing.run()
        return self.verdict()

    def verdict(self) -> list[str]:
        """Everything that is wrong with a whole cluster's data, in words."""
        problems = [*self._request_problems(), *self.record_problems()]
        problems += self._replica_problems()
        for topic, number in self.world.main:
            try:
                self.world.simulation.produce(topic, b"probe", partition=number)
            except FakeKafkaError as error:
                problems.append(f"{topic}-{number} takes no records: {error}")
        return problems

    def _replica_problems(self) -> list[str]:
        """Replicas that differ, but for those that old releases leave so (KIP-101, KIP-279)."""
        problems = []
        for topic in topics(self.world.simulation):
            for problem in replicas_identical(self.world.simulation, [topic]).problems:
                name = problem.partition(": ")[0]
                if not any(str(where) == name for where in self.excuses.cut_from):
                    problems.append(problem)
        return problems

    def _request_problems(self) -> list[str]:
        problems = []
        for text, task in self.world.requests:
            error = task.exception
            if error is not None and not isinstance(error, KafkaError):
                problems.append(f"{text} raised {error!r}")
        return problems

    def record_problems(self) -> list[str]:
        problems = [
            f"{where} offset {offset} was read as {before!r} and then as {after!r}"
            for where, offset, before, after in self.load.read_anew
            if not self.excuses.is_excused(where, offset)
        ]
        simulation = self.world.simulation
        stored = {key: simulation.records(*key) for key in self.world.main}
        by_offset = {key: {r.offset: r.value for r in found} for key, found in stored.items()}
        counts = {key: Counter(r.value for r in found) for key, found in stored.items()}
        lost = [
            (key, offset, value)
            for key, offset, value in self.load.acknowledged
            if value not in counts[key] and not self.excuses.is_excused(key, offset)
        ]
        if lost:
            problems.append(f"{len(lost)} acknowledged records are lost, the first is {lost[0]}")
        moved = [
            (key, offset, value, by_offset[key].get(offset))
            for key, offset, value in self.load.acknowledged
            if offset >= 0
            and value in counts[key]
            and by_offset[key].get(offset) != value
            and not self.excuses.is_excused(key, offset)
        ]
        if moved:
            told = f"{len(moved)} records are not where they were acknowledged"
            problems.append(f"{told}: {moved[0]}")
        changed = [
            (key, offset, value, by_offset[key].get(offset))
            for (key, offset), value in self.load.seen.items()
            if by_offset[key].get(offset) != value and not self.excuses.is_excused(key, offset)
        ]
        if changed:
            problems.append(f"{len(changed)} records were read and are not there: {changed[0]}")
        if self.load.is_idempotent:
            problems += self._idempotence_problems(stored, counts)
        return problems

    def _idempotence_problems(self, stored: Any, counts: Any) -> list[str]:
        """Records stored twice or out of order, but for what Kafka's own producer may store twice.

        It gives batches that it sent new numbers when it raises its epoch, stored or not
        (``TransactionManager.bumpIdempotentProducerEpoch``, KIP-360). A restarted broker remembers
        only the last batch of its snapshot, and refuses an earlier one that the producer sends
        again. Behind what a follower of an old release kept wrongly, the leader that it became
        knows of other batches than the one before it (``Excuses.cut_from``).
        """
        problems = []
        for key, found in stored.items():
            renumbered = {value for where, value in self.load.renumbered if where == key}
            kept_from = self.excuses.cut_from.get(key, maxsize)
            excused = renumbered | {record.value for record in found if record.offset >= kept_from}
            found = [record for record in found if record.value not in excused]
            doubled = [
                value for value, count in counts[key].items() if count > 1 and value not in excused
            ]
            if doubled:
                told = f"{len(doubled)} records are there twice"
                problems.append(f"{key}: {told}, first {doubled[0]!r}")
            latest: dict[bytes, bytes] = {}
            acknowledged = {value for where, _, value in self.load.acknowledged if where == key}
            for record in found:
                name = record.value.split(b":")[0]
                if record.value in acknowledged and record.value <= latest.get(name, b""):
                    problems.append(f"{key}: {record.value!r} comes after {latest[name]!r}")
                    break
                if record.value in acknowledged:
                    latest[name] = record.value
        return problems
