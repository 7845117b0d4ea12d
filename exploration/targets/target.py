"""The base of targets: the world of a seed, the steps that may be drawn, and its promises."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable
from typing import ClassVar

from ..generator import Draws
from ..invariants.invariant import Invariant, Scene, Validation, Violation, ViolationLog
from ..known import DefectTracker
from ..watch import Watch
from ..world import World
from ..worlds.load import Load


class Target(ABC):
    """A system that is attacked and checked.

    In the safety phase, steps are done while the invariants watch. In the liveness phase, ``heal``
    ends the faults and waits for the validations to hold.
    """

    name: ClassVar[str]
    promises: ClassVar[tuple[type[Invariant], ...]]
    draws: Draws
    world: World
    watch: Watch
    defects: DefectTracker
    violation_log: ViolationLog
    scene: Scene
    invariants: list[Invariant]
    _validations: list[Validation]

    @abstractmethod
    def __init__(
        self,
        kafka_version: str,
        seed: int,
        trace: bool = False,
        only: Collection[str] | None = None,
    ) -> None:
        """Build the world; ``trace`` records the run, and ``only`` names the promises to check."""

    @classmethod
    def shape_of(cls, seed: int) -> Hashable:
        """Return the shape of a seed's world: steps fit any other world of an equal shape."""
        return cls.name

    def _judge(
        self, world: World, watch: Watch, load: Load | None, only: Collection[str] | None
    ) -> None:
        """Create the invariants, which watch the world from now on."""
        simulation = world.simulation
        self.world, self.watch = world, watch
        watch.is_alive = lambda broker: simulation.processes[broker].is_alive

        def now_ms() -> float:
            return simulation.now_ms

        self.defects = DefectTracker(simulation.behaviour, watch, now_ms)
        self.violation_log = ViolationLog(now_ms, self.defects)
        self.scene = scene = Scene(world, watch, self.violation_log, self.defects, load)
        chosen = [one for one in self.promises if only is None or one.name() in only]
        self.invariants = [one(scene) for one in chosen]
        for invariant in self.invariants:
            invariant.attach()
        self._validations = [one(scene) for one in self.promises if issubclass(one, Validation)]

    def first_unmet(self) -> tuple[str, str] | None:
        """Return the first validation that does not hold yet, with the reason; None if all hold.

        The order matters, as most validations cannot be checked until all brokers run.
        """
        for validation in self._validations:
            text = validation.unmet_reason()
            if text is not None:
                return validation.name(), text
        return None

    def tracking_defects(self) -> contextlib.AbstractContextManager[object]:
        """Note within this context the events that explain Kafka's own violations."""
        return self.defects.tracking()

    @abstractmethod
    def heal(self) -> bool:
        """End every fault and wait; return True if the world can be judged by ``Invariant.end``."""

    def end(self) -> list[Violation]:
        """Heal the world, and return all violations."""
        if self.heal():
            for invariant in self.invariants:
                invariant.end()
        return self.violation_log.violations()

    def report_unmet(self, promise: str, text: str, known: str = "") -> None:
        """Record that the cluster did not recover, or not without help."""
        if any(one.name() == promise for one in self.invariants):
            self.violation_log.add(promise, text, known=known)

    @abstractmethod
    def figures(self) -> dict[str, int]:
        """Return counts of what happened, by name, for the report."""
