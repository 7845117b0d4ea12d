"""What a history may do next: the part of the state of a cluster that its steps themselves say."""

from __future__ import annotations

from collections.abc import Iterable

from fakekafka.tests.fidelity.histories.verbs import History, Step, assignment_of

BROKERS = (1, 2, 3)
FIRST_CONTROLLER = 3
_OF_BROKERS = ("kill", "stop", "start", "freeze", "thaw", "resign")


class World:
    """Who lives, who is the controller, which topics were created."""

    def __init__(self) -> None:
        self.living = set(BROKERS)
        self.frozen: set[int] = set()
        self.controller: int | None = FIRST_CONTROLLER
        self.partitions: dict[str, int] = {}
        """Of topics that were created and not deleted."""
        self.replicas: dict[str, int] = {}
        """How many each partition of them has."""

    @property
    def dead(self) -> set[int]:
        return set(BROKERS) - self.living - self.frozen

    def heir(self, without: int | None) -> int | None:
        """Who becomes the controller when a broker goes: the others are held until it is."""
        return min(self.living - {without}, default=None)

    def allows(self, step: Step) -> bool:
        """Whether a step can be carried out, and Kafka does not leave its outcome to chance."""
        if step.verb == "resign":
            return self.controller is not None
        if step.verb not in _OF_BROKERS:
            return True
        broker = int(step.arguments[0])
        match step.verb:
            case "kill":
                return broker in self.living | self.frozen
            case "stop":
                # A broker that stops gives its session up by itself: two others would race.
                return broker in self.living and (
                    broker != self.controller or len(self.living) <= 2
                )
            case "freeze":
                # Leaders that know a controller that stands still may ask it on, or not.
                return broker in self.living and (
                    broker != self.controller or self.living == {broker}
                )
            case "start":
                return broker in self.dead
            case _:
                return broker in self.frozen

    def take(self, step: Step) -> None:
        """The state after a step that is allowed."""
        match step.verb:
            case "kill" | "stop" | "freeze":
                self._lose(int(step.arguments[0]), frozen=step.verb == "freeze")
            case "start" | "thaw":
                broker = int(step.arguments[0])
                self.frozen.discard(broker)
                self.living.add(broker)
                if self.controller is None:
                    self.controller = broker
            case "resign":
                self.controller = self.heir(None)
            case "create" if self.controller is not None:
                name, assignment = step.arguments[:2]
                partitions = assignment_of(assignment)
                if name not in self.partitions:
                    self.partitions[name] = len(partitions)
                    self.replicas[name] = len(partitions[0])
            case "delete" if self.controller is not None:
                self.partitions.pop(step.arguments[0], None)
            case "expand" if self.controller is not None:
                name, assignment = step.arguments
                if name in self.partitions:
                    self.partitions[name] += len(assignment_of(assignment))

    def _lose(self, broker: int, *, frozen: bool) -> None:
        self.living.discard(broker)
        self.frozen.discard(broker)
        if frozen:
            self.frozen.add(broker)
        if broker == self.controller:
            self.controller = self.heir(broker)


def possible(steps: Iterable[Step]) -> History:
    """The steps that can be carried out after each other; others are left out."""
    world = World()
    kept = []
    for step in steps:
        if world.allows(step):
            world.take(step)
            kept.append(step)
    return kept
