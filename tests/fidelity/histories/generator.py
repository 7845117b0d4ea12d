"""Histories from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from fakekafka.tests.fidelity.histories.verbs import (
    Step,
    assignment_text,
    replicas_text,
    step,
)
from fakekafka.tests.fidelity.histories.world import BROKERS, World

STEPS = 30
TOPICS = ("a", "b", "c", "d")
GROUPS = ("g", "h")
PRODUCERS = ("p", "q")
_CONFIGS = (
    "min.insync.replicas=1",
    "min.insync.replicas=2",
    "min.insync.replicas=3",
    "unclean.leader.election.enable=true",
    "unclean.leader.election.enable=false",
    "unclean.leader.election.enable=",
    "message.timestamp.type=LogAppendTime",
    "max.message.bytes=60",
    "max.message.bytes=",
)
WEIGHTS = {
    "kill": 6,
    "stop": 5,
    "start": 30,
    "freeze": 12,
    "thaw": 28,
    "resign": 5,
    "create": 26,
    "delete": 8,
    "expand": 8,
    "move": 14,
    "cancel": 3,
    "moves": 2,
    "elect": 12,
    "config": 12,
    "produce": 40,
    "send": 26,
    "read": 22,
    "trim": 8,
    "commit": 10,
    "offsets": 6,
}
_OF_GROUPS = ("commit", "offsets")
_GROUPS_EVERY = 3
"""One history out of so many has groups, whose coordinator costs time."""


def history(seed: int, count: int = STEPS) -> list[Step]:
    """``count`` steps; the same for the same seed."""
    return _Generator(seed).history(count)


class _Generator:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"history {seed}")
        self._world = World()
        self._has_groups = seed % _GROUPS_EVERY == 0
        self._makers: dict[str, Callable[[], Step]] = {
            "kill": lambda: step("kill", self._one(sorted(self._world.living))),
            "stop": lambda: step("stop", self._one(sorted(self._world.living))),
            "freeze": lambda: step("freeze", self._one(sorted(self._world.living))),
            "start": lambda: step("start", self._one(sorted(self._world.dead))),
            "thaw": lambda: step("thaw", self._one(sorted(self._world.frozen))),
            "resign": lambda: step("resign"),
            "create": self._create,
            "delete": lambda: step("delete", self._topic()),
            "expand": self._expand,
            "move": lambda: step("move", *self._partition(), replicas_text(self._replicas())),
            "cancel": lambda: step("cancel", *self._partition()),
            "moves": lambda: step("moves"),
            "elect": lambda: step(
                "elect", self._one(("preferred", "preferred", "unclean")), *self._partition()
            ),
            "config": lambda: step("config", self._topic(), self._one(_CONFIGS)),
            "produce": lambda: step("produce", *self._partition(), self._one((-1, -1, 1, 0))),
            "send": self._send,
            "read": lambda: step("read", *self._partition()),
            "trim": lambda: step("trim", *self._partition(), self._one((-1, 0, 1, 2, 5))),
            "commit": lambda: step(
                "commit", self._one(GROUPS), *self._partition(), self._random.randrange(9)
            ),
            "offsets": lambda: step("offsets", self._one(GROUPS)),
        }

    def history(self, count: int) -> list[Step]:
        found: list[Step] = []
        if self._has_groups:
            found.append(step("coordinator", replicas_text(self._order(3))))
        found.append(self._create())
        for first in found:
            self._world.take(first)
        verbs = [v for v in WEIGHTS if self._has_groups or v not in _OF_GROUPS]
        weights = [WEIGHTS[verb] for verb in verbs]
        while len(found) < count:
            (verb,) = self._random.choices(verbs, weights)
            if not self._is_possible(verb):
                continue
            made = self._makers[verb]()
            if self._world.allows(made):
                self._world.take(made)
                found.append(made)
        return found

    def _is_possible(self, verb: str) -> bool:
        world = self._world
        match verb:
            case "start":
                return bool(world.dead)
            case "thaw":
                return bool(world.frozen)
            case "kill" | "stop" | "freeze":
                # Clusters of which nobody lives are rare: they have little to say.
                rare = self._random.random() < 0.2
                return len(world.living) > 1 or (rare and bool(world.living))
            case _:
                return bool(world.living)

    def _one(self, values: Sequence[object]) -> str:
        return str(self._random.choice(values))

    def _order(self, count: int) -> list[int]:
        return self._random.sample(BROKERS, count)

    def _replicas(self) -> list[int]:
        return self._order(self._random.choice((1, 2, 2, 3, 3)))

    def _create(self) -> Step:
        known = self._world.partitions
        fresh = [name for name in TOPICS if name not in known]
        name = self._one(fresh if fresh and self._random.random() < 0.9 else TOPICS)
        count = self._random.choice((1, 2, 2, 3, 3))
        assignment = [self._order(count) for _ in range(self._random.randint(1, 3))]
        words = [name, assignment_text(assignment)]
        if self._random.random() < 0.3:
            words.append("unclean.leader.election.enable=true")
        if self._random.random() < 0.25:
            words.append("min.insync.replicas=2")
        return step("create", *words)

    def _expand(self) -> Step:
        name = self._topic()
        replicas = self._order(self._world.replicas.get(name, 1))
        if self._random.random() < 0.1:
            replicas = self._replicas()
        return step("expand", name, assignment_text([replicas]))

    def _topic(self) -> str:
        known = sorted(self._world.partitions)
        return self._one(known if known and self._random.random() < 0.95 else TOPICS)

    def _partition(self) -> tuple[str, int]:
        name = self._topic()
        return name, self._random.randrange(self._world.partitions.get(name, 1))

    def _send(self) -> Step:
        """A batch of an idempotent producer: the next one, the last one again, one after a gap."""
        how = self._one(("next", "next", "next", "again", "gap", "epoch"))
        return step("send", self._one(PRODUCERS), *self._partition(), how)
