"""Decides which steps a history may take next, by the cluster's state after the steps before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fakekafka.exploration.step import Step
from fakekafka.tests.fidelity.histories.verbs import (
    Create,
    Delete,
    Expand,
    Freeze,
    Kill,
    Resign,
    Start,
    Stop,
    Thaw,
)

BROKERS = (1, 2, 3)
FIRST_CONTROLLER = 3
GROUPS = ("g", "h", "s")
MEMBERS = ("m", "n", "o")
TRANSACTIONAL_IDS = ("t", "u")


class World:
    """The living brokers, the controller, and the topics that were created."""

    def __init__(self) -> None:
        self.living = set(BROKERS)
        self.frozen: set[int] = set()
        self.controller: int | None = FIRST_CONTROLLER
        self.partitions: dict[str, int] = {}
        """Number of partitions of each topic that was created and not deleted."""
        self.replicas: dict[str, int] = {}
        """Number of replicas of the first partition of each topic."""

    @property
    def dead(self) -> set[int]:
        return set(BROKERS) - self.living - self.frozen

    def heir(self, without: int | None) -> int | None:
        """Return the next controller when a broker goes; the others are frozen until it is."""
        return min(self.living - {without}, default=None)

    def allows(self, step: Step[Any]) -> bool:
        """Return whether a step can be carried out, and Kafka does not leave its outcome to
        chance."""
        match step:
            case Resign():
                return self.controller is not None
            case Kill(broker):
                return broker in self.living | self.frozen
            case Stop(broker):
                # A broker that stops closes its session itself: two others would race.
                return broker in self.living and (
                    broker != self.controller or len(self.living) <= 2
                )
            case Freeze(broker):
                # Leaders may or may not keep sending requests to a frozen controller.
                return broker in self.living and (
                    broker != self.controller or self.living == {broker}
                )
            case Start(broker):
                return broker in self.dead
            case Thaw(broker):
                return broker in self.frozen
        return True

    def take(self, step: Step[Any]) -> None:
        """Change the state by a step that is allowed."""
        match step:
            case Kill(broker) | Stop(broker) | Freeze(broker):
                self._lose(broker, frozen=isinstance(step, Freeze))
            case Start(broker) | Thaw(broker):
                self.frozen.discard(broker)
                self.living.add(broker)
                if self.controller is None:
                    self.controller = broker
            case Resign():
                self.controller = self.heir(None)
            case Create(topic, assignment) if self.controller is not None:
                if topic not in self.partitions:
                    self.partitions[topic] = len(assignment)
                    self.replicas[topic] = len(assignment[0])
            case Delete(topic) if self.controller is not None:
                self.partitions.pop(topic, None)
            case Expand(topic, assignment) if self.controller is not None:
                if topic in self.partitions:
                    self.partitions[topic] += len(assignment)

    def _lose(self, broker: int, *, frozen: bool) -> None:
        self.living.discard(broker)
        self.frozen.discard(broker)
        if frozen:
            self.frozen.add(broker)
        if broker == self.controller:
            self.controller = self.heir(broker)


def possible(steps: Iterable[Step[Any]]) -> list[Step[Any]]:
    """Return the steps that can be carried out one after the other, without the others."""
    world = World()
    kept = []
    for step in steps:
        if world.allows(step):
            world.take(step)
            kept.append(step)
    return kept
