"""Draws histories from a seed; each step depends on the cluster's state after those before."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fakekafka.exploration.generator import Choices, Choose, Draws, draw
from fakekafka.exploration.step import Step
from fakekafka.tests.fidelity.histories import verbs
from fakekafka.tests.fidelity.histories.world import (
    BROKERS,
    GROUPS,
    MEMBERS,
    TRANSACTIONAL_IDS,
    World,
)
from fakekafka.tests.fidelity.stage.spoken import NotOffered, version_of

STEPS = 40
TOPICS = ("a", "b", "c", "d")
PRODUCERS = ("p", "q")
USERS = ("x", "y")
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
_CHOICES_MAX = 10_000


def history(seed: int, kafka_version: str = "3.9", count: int = STEPS) -> list[Step[Any]]:
    """Return ``count`` steps that a release supports; the same for the same seed."""
    rng, world = random.Random(f"history {seed}"), World()
    theme = THEMES[seed % len(THEMES)]
    found: list[Step[Any]] = []
    if theme & {*OF_GROUPS, *OF_TRANSACTIONS}:
        found.append(verbs.Coordinator(_order(rng, 3)))
    if theme & {*OF_TRANSACTIONS} and is_offered(kafka_version, "init"):
        found.append(verbs.TransactionLog(_order(rng, 3)))
    found += _create(world, rng)
    for first in found:
        world.take(first)
    choices = {
        verb: choice
        for verb, choice in CHOICES.items()
        if verb in theme and is_offered(kafka_version, verb)
    }
    for step in draw(Draws(choices, (_CHOICES_MAX, _CHOICES_MAX)), world, rng):
        if len(found) >= count:
            break
        if world.allows(step):
            world.take(step)
            found.append(step)
    return found


def is_offered(kafka_version: str, verb: str) -> bool:
    """Return True if a release supports the verb."""
    try:
        version_of(kafka_version, _NEEDS.get(verb, "Metadata"))
    except NotOffered:
        return False
    return True


def _living(world: World, rng: random.Random) -> Sequence[int]:
    """Return the living brokers; rarely the last one, as a cluster without brokers shows little."""
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


def _group(rng: random.Random) -> str:
    return rng.choice(GROUPS)


def _member(rng: random.Random) -> tuple[str, str]:
    return _group(rng), rng.choice(MEMBERS)


def _sync(rng: random.Random) -> Step[Any]:
    group = _group(rng)
    who = rng.choice(("all", "all", "all", "leader", "followers"))
    return verbs.Sync(group, "all" if group in verbs.STATIC_GROUPS else who)


def _producer(rng: random.Random) -> tuple[str, str]:
    """Draw a transactional id, and one of the two producers that use it."""
    return rng.choice(TRANSACTIONAL_IDS), rng.choice(("one", "one", "one", "other"))


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
    # Groups.
    "enter": (40, lambda _world, rng: verbs.Enter(*_member(rng), rng.random() < 0.1)),
    "doze": (4, lambda _world, rng: verbs.Doze(_group(rng))),
    "knock": (2, lambda _world, rng: verbs.Knock(_group(rng))),
    "misfit": (3, lambda _world, rng: verbs.Misfit(_group(rng), rng.randrange(2))),
    "sync": (30, lambda _world, rng: _sync(rng)),
    "beat": (12, lambda _world, rng: verbs.Beat(*_member(rng))),
    "quit": (12, lambda _world, rng: verbs.Quit(*_member(rng))),
    "commit": (
        10,
        lambda world, rng: verbs.Commit(_group(rng), *_partition(world, rng), rng.randrange(9)),
    ),
    "commit_as": (
        12,
        lambda world, rng: verbs.CommitAs(*_member(rng), *_partition(world, rng), rng.randrange(9)),
    ),
    "offsets": (8, lambda _world, rng: verbs.Offsets(_group(rng))),
    "forget": (5, lambda _world, rng: verbs.Forget(_group(rng))),
    "forget_offset": (
        5,
        lambda world, rng: verbs.ForgetOffset(_group(rng), *_partition(world, rng)),
    ),
    "groups": (5, lambda _world, _rng: verbs.Groups()),
    # Transactions.
    "init": (
        24,
        lambda _world, rng: verbs.Init(*_producer(rng), rng.choice(("new", "new", "bump"))),
    ),
    "add": (36, lambda world, rng: verbs.Add(*_producer(rng), *_partition(world, rng))),
    "put": (40, lambda world, rng: verbs.Put(*_producer(rng), *_partition(world, rng))),
    "include": (12, lambda _world, rng: verbs.Include(*_producer(rng), _group(rng))),
    "put_offset": (
        14,
        lambda world, rng: verbs.PutOffset(
            *_producer(rng), _group(rng), *_partition(world, rng), rng.randrange(9)
        ),
    ),
    "end": (30, lambda _world, rng: verbs.End(*_producer(rng), rng.random() < 0.6)),
    "outlast": (3, lambda world, rng: verbs.Outlast(*_producer(rng), *_partition(world, rng))),
    "transactions": (6, lambda _world, _rng: verbs.Transactions()),
    "producers": (5, lambda world, rng: verbs.Producers(*_partition(world, rng))),
    # Administration beside topics.
    "quota": (3, lambda _world, rng: verbs.Quota(rng.choice(USERS), rng.choice((0, 10, 1000)))),
    "quotas": (2, lambda _world, rng: verbs.Quotas(rng.choice(USERS))),
    "permit": (
        3,
        lambda world, rng: verbs.Permit(
            _topic(world, rng), rng.choice(("read", "write")), rng.choice(USERS)
        ),
    ),
    "revoke": (2, lambda world, rng: verbs.Revoke(_topic(world, rng), rng.choice(USERS))),
    "acls": (3, lambda _world, rng: verbs.Acls(rng.choice(USERS))),
    "configs": (3, lambda world, rng: verbs.Configs(_topic(world, rng))),
}
_NEEDS = {
    **dict.fromkeys(("init", "add", "put", "end", "outlast", "include"), "EndTxn"),
    "put_offset": "TxnOffsetCommit",
    "send": "InitProducerId",
    "transactions": "ListTransactions",
    "producers": "DescribeProducers",
    "forget": "DeleteGroups",
    "forget_offset": "OffsetDelete",
    "quota": "AlterClientQuotas",
    "quotas": "DescribeClientQuotas",
    "permit": "CreateAcls",
    "revoke": "DeleteAcls",
    "acls": "DescribeAcls",
    "configs": "DescribeConfigs",
    "config": "IncrementalAlterConfigs",
    "elect": "ElectLeaders",
    "move": "AlterPartitionReassignments",
    "cancel": "AlterPartitionReassignments",
    "moves": "ListPartitionReassignments",
    "expand": "CreatePartitions",
    "trim": "DeleteRecords",
}
"""The API that a release must offer for each verb."""
OF_GROUPS = (
    *("enter", "doze", "knock", "misfit", "sync", "beat", "quit", "commit", "commit_as"),
    *("offsets", "forget", "forget_offset", "groups"),
)
OF_TRANSACTIONS = (
    *("init", "add", "put", "include", "put_offset", "end", "outlast", "transactions"),
    "producers",
)
OF_BROKERS = ("kill", "stop", "start", "freeze", "thaw", "resign")
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

_NEITHER = frozenset(CHOICES) - {*OF_GROUPS, *OF_TRANSACTIONS}
THEMES: tuple[frozenset[str], ...] = (
    _NEITHER,
    _NEITHER | {*OF_GROUPS},
    _NEITHER | {*OF_TRANSACTIONS},
    frozenset(CHOICES) - {*OF_BROKERS},
    frozenset(CHOICES),
)
"""The verbs that may occur in one history; seeds use the themes in turn."""
