"""The numbered runs of an exploration, as work for engines, with results as plain data."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..protocol.versions import behaviour
from ..spark_bench.planning.carry_out import Outcome as Carried
from .history import TARGETS, History, Outcome, run
from .invariants.invariant import Violation
from .step import parse_step
from .targets.cluster import LoadedCluster
from .targets.exactly_once import ExactlyOnce
from .targets.groups import ClassicGroups, ConsumerGroups


class Trial(NamedTuple):
    """A run to carry out: a seed, and possibly steps that were derived from another run."""

    run_id: int
    target: str
    seed: int
    steps: tuple[str, ...] | None = None
    """Steps as lines of text; None for steps drawn from the seed."""

    def history(self, kafka_version: str) -> History:
        steps = None if self.steps is None else tuple(map(parse_step, self.steps))
        return History(TARGETS[self.target], kafka_version, self.seed, steps)


class Result(NamedTuple):
    """The result of a run, which depends only on its trial."""

    trial: Trial
    taken: tuple[str, ...]
    violations: tuple[Violation, ...]
    reached: frozenset[str]
    figures: tuple[tuple[str, int], ...]
    virtual_ms: float


class Trials(ABC):
    """Base of ``Work`` for an engine in which each run gives a ``Result``, whatever its target."""

    @abstractmethod
    def outcome(self, spec: Trial) -> Outcome:
        """Carry out one run, and record what it reached."""

    def carry_out(self, spec: Trial, worker: str) -> Carried:
        started = time.perf_counter()
        outcome = self.outcome(spec)
        taken = tuple(map(str, outcome.taken))
        result = Result(
            spec, taken, outcome.violations, outcome.reached, outcome.figures, outcome.virtual_ms
        )
        wall_ms = (time.perf_counter() - started) * 1000
        return Carried({"run_id": spec.run_id, "result": result}, wall_ms=wall_ms, worker=worker)

    def lost(self, spec: Trial, problem: str) -> Carried:
        violation = Violation("RunsEnd", problem, 0.0)
        result = Result(spec, spec.steps or (), (violation,), frozenset(), (), 0.0)
        return Carried({"run_id": spec.run_id, "result": result})

    def costs(self) -> MeanCost:
        return MeanCost()


@dataclass(frozen=True)
class Campaign(Trials):
    """Runs that emulate one release."""

    kafka_version: str
    specs: Sequence[Trial]
    only: frozenset[str] | None = None
    """Names of the promises to watch; None for all of them."""

    @property
    def batch_id(self) -> str:
        digest = hashlib.blake2b(repr((self.kafka_version, self.specs)).encode(), digest_size=8)
        return digest.hexdigest()

    def outcome(self, spec: Trial) -> Outcome:
        return run(spec.history(self.kafka_version), only=self.only, covers=True)


class MeanCost:
    """A cost model that estimates each run at the mean time of the previous runs."""

    def __init__(self) -> None:
        self._runs, self._total_s = 1, 0.4

    def estimate_s(self, _spec: Any, /) -> float:
        return self._total_s / self._runs

    def observe(self, _spec: Any, wall_ms: float, /) -> None:
        self._runs += 1
        self._total_s += wall_ms / 1000


def target_of(run_id: int, kafka_version: str) -> str:
    """Return the target of a run: a group or transactions in every third run if the release
    supports them, otherwise a cluster."""
    flags = behaviour(kafka_version)
    place = run_id % 6
    if place == 2:
        has_both = flags.consumer_groups and run_id % 12 == 2
        return ConsumerGroups.name if has_both else ClassicGroups.name
    if place == 5:
        return ExactlyOnce.name if flags.transactions else ClassicGroups.name
    return LoadedCluster.name
