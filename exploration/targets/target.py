"""The common part of targets: a world of a seed, what may happen to it, and its promises."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable
from typing import ClassVar

from ..generator import Draws
from ..invariants.invariant import Found, Invariant, Scene, Validation, Violation
from ..known import Known
from ..watch import Watch
from ..world import World
from ..worlds.load import Load


class Target(ABC):
    """The thing that is attacked and judged.

    First come the steps, while the invariants watch: that is the safety phase. Then ``heal`` ends
    the faults and waits for the validations: the liveness phase.
    """

    name: ClassVar[str]
    promises: ClassVar[tuple[type[Invariant], ...]]
    draws: Draws
    world: World
    watch: Watch
    known: Known
    found: Found
    scene: Scene
    invariants: list[Invariant]
    _awaited: list[Validation]

    @abstractmethod
    def __init__(
        self,
        kafka_version: str,
        seed: int,
        trace: bool = False,
        only: Collection[str] | None = None,
    ) -> None:
        """``trace`` records the run; ``only`` names the promises that are looked at."""

    @classmethod
    def shape_of(cls, seed: int) -> Hashable:
        """Return who is there in the world of a seed: steps of worlds with one shape fit each
        other."""
        return cls.name

    def _judge(
        self, world: World, watch: Watch, load: Load | None, only: Collection[str] | None
    ) -> None:
        """Have the invariants watch from now on."""
        simulation = world.simulation
        self.world, self.watch = world, watch
        watch.is_alive = lambda broker: simulation.processes[broker].is_alive

        def now_ms() -> float:
            return simulation.now_ms

        self.known = Known(simulation.behaviour, watch, now_ms)
        self.found = Found(now_ms, self.known)
        self.scene = scene = Scene(world, watch, self.found, self.known, load)
        chosen = [one for one in self.promises if only is None or one.name() in only]
        self.invariants = [one(scene) for one in chosen]
        for invariant in self.invariants:
            invariant.attach()
        self._awaited = [one(scene) for one in self.promises if issubclass(one, Validation)]

    def lacking(self) -> tuple[str, str] | None:
        """The first validation that does not hold yet, and what is lacking; None when all hold.

        A cluster without its brokers cannot be asked for the rest, so the order counts.
        """
        for validation in self._awaited:
            text = validation.lacking()
            if text is not None:
                return validation.name(), text
        return None

    def watching(self) -> contextlib.AbstractContextManager[object]:
        """Note what has to be seen on the way, as long as this is entered."""
        return self.known.noting()

    @abstractmethod
    def heal(self) -> bool:
        """End every fault and wait; whether all validations hold in the end."""

    def end(self) -> list[Violation]:
        """Heal, and say which promises were broken."""
        if self.heal():
            for invariant in self.invariants:
                invariant.end()
        return self.found.violations()

    def tell_lacking(self, promise: str, text: str, known: str = "") -> None:
        """The cluster did not recover by itself, or not at all."""
        if any(one.name() == promise for one in self.invariants):
            self.found.tell(promise, text, known=known)

    @abstractmethod
    def figures(self) -> dict[str, int]:
        """Return how much happened."""
