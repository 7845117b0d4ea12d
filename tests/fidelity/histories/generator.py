"""Histories from a seed, drawn from what the steps before say of the cluster."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fakekafka.exploration.generator import Choices, Choose, Draws, draw
from fakekafka.exploration.step import Step
from fakekafka.tests.fidelity.histories import verbs
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
_GROUPS_EVERY = 3
"""One history out of so many has groups, whose coordinator costs time."""
_CHOICES_MAX = 10_000


def history(seed: int, count: int = STEPS) -> list[Step[Any]]:
    """``count`` steps; the same for the same seed."""
    rng, world = random.Random(f"history {seed}"), World()
    has_groups = seed % _GROUPS_EVERY == 0
    found: list[Step[Any]] = [verbs.Coordinator(_order(rng, 3))] if has_groups else []
    found += _create(world, rng)
    for first in found:
        world.take(first)
    choices = {verb: CHOICES[verb] for verb in CHOICES if has_groups or verb not in OF_GROUPS}
    for step in draw(Draws(choices, (_CHOICES_MAX, _CHOICES_MAX)), world, rng):
        if len(found) >= count:
            break
        if world.allows(step):
            world.take(step)
            found.append(step)
    return found


def _living(world: World, rng: random.Random) -> Sequence[int]:
    """Clusters of which nobody lives are rare: they have little to say."""
    rare = rng.random() < 0.2
    return sorted(world.living) if len(world.living) > 1 or rare else ()


def _of(
    brokers: Callable[[World, random.Random], Sequence[int]], make: Callable[[int], Step[Any]]
) -> Choose[World]:
    def choose(world: World, rng: random.Random) -> Iterator[Step[Any]]:
        found = brokers(world, rng)
        if found:
            yield make(rng.choice(found))

    return choose


def _while_one_lives(make: Callable[[World, random.Random], Step[Any]]) -> Choose[World]:
    def choose(world: World, rng: random.Random) -> Iterator[Step[Any]]:
        if world.living:
            yield make(world, rng)

    return choose


def _order(rng: random.Random, count: int) -> tuple[int, ...]:
    return tuple(rng.sample(BROKERS, count))


def _replicas(rng: random.Random) -> tuple[int, ...]:
    return _order(rng, rng.choice((1, 2, 2, 3, 3)))


def _create(world: World, rng: random.Random) -> Iterator[Step[Any]]:
    if not world.living:
        return
    fresh = [name for name in TOPICS if name not in world.partitions]
    name = rng.choice(fresh if fresh and rng.random() < 0.9 else TOPICS)
    count = rng.choice((1, 2, 2, 3, 3))
    assignment = tuple(_order(rng, count) for _ in range(rng.randint(1, 3)))
    configs: tuple[str, ...] = ()
    if rng.random() < 0.3:
        configs += ("unclean.leader.election.enable=true",)
    if rng.random() < 0.25:
        configs += ("min.insync.replicas=2",)
    yield verbs.Create(name, assignment, configs)


def _expand(world: World, rng: random.Random) -> Step[Any]:
    name = _topic(world, rng)
    replicas = _order(rng, world.replicas.get(name, 1))
    if rng.random() < 0.1:
        replicas = _replicas(rng)
    return verbs.Expand(name, (replicas,))


def _topic(world: World, rng: random.Random) -> str:
    known = sorted(world.partitions)
    return rng.choice(known if known and rng.random() < 0.95 else TOPICS)


def _partition(world: World, rng: random.Random) -> tuple[str, int]:
    name = _topic(world, rng)
    return name, rng.randrange(world.partitions.get(name, 1))


_MADE: dict[str, tuple[int, Callable[[World, random.Random], Step[Any]]]] = {
    "resign": (5, lambda _world, _rng: verbs.Resign()),
    "delete": (8, lambda world, rng: verbs.Delete(_topic(world, rng))),
    "expand": (8, _expand),
    "move": (14, lambda world, rng: verbs.Move(*_partition(world, rng), _replicas(rng))),
    "cancel": (3, lambda world, rng: verbs.Cancel(*_partition(world, rng))),
    "moves": (2, lambda _world, _rng: verbs.Moves()),
    "elect": (
        12,
        lambda world, rng: verbs.Elect(
            rng.choice(("preferred", "preferred", "unclean")), *_partition(world, rng)
        ),
    ),
    "config": (12, lambda world, rng: verbs.Config(_topic(world, rng), rng.choice(_CONFIGS))),
    "produce": (
        40,
        lambda world, rng: verbs.Produce(*_partition(world, rng), rng.choice((-1, -1, 1, 0))),
    ),
    "send": (
        26,
        lambda world, rng: verbs.Send(
            rng.choice(PRODUCERS),
            *_partition(world, rng),
            rng.choice(("next", "next", "next", "again", "gap", "epoch")),
        ),
    ),
    "read": (22, lambda world, rng: verbs.Read(*_partition(world, rng))),
    "trim": (
        8,
        lambda world, rng: verbs.Trim(*_partition(world, rng), rng.choice((-1, 0, 1, 2, 5))),
    ),
    "commit": (
        10,
        lambda world, rng: verbs.Commit(
            rng.choice(GROUPS), *_partition(world, rng), rng.randrange(9)
        ),
    ),
    "offsets": (6, lambda _world, rng: verbs.Offsets(rng.choice(GROUPS))),
}
OF_GROUPS = ("commit", "offsets")
CHOICES: Choices = {
    "kill": (6, _of(_living, verbs.Kill)),
    "stop": (5, _of(_living, verbs.Stop)),
    "start": (30, _of(lambda world, _rng: sorted(world.dead), verbs.Start)),
    "freeze": (12, _of(_living, verbs.Freeze)),
    "thaw": (28, _of(lambda world, _rng: sorted(world.frozen), verbs.Thaw)),
    "create": (26, _create),
    **{verb: (weight, _while_one_lives(make)) for verb, (weight, make) in _MADE.items()},
}
"""Every verb with its weight."""
