"""The world of a consumer group whose members join, leave and die, as brokers do.

The world records which member owned which partitions, and which offsets were committed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

from ...actors.clients.group_consumer import AssignmentChange, SimulatedGroupConsumer
from ...protocol.internal_topics import OFFSETS_TOPIC
from ...protocol.values import TopicPartition
from ...testing.simulation import Simulation
from .. import cluster_steps as steps
from ..faults import one_of
from ..generator import Choices
from ..step import Step
from ..world import World

GROUP, TOPIC = "g", "t"
PARTITIONS = 6
MEMBERS_MAX = 5
STATIC = ("s-1", "s-2")


class GroupWorld(World):
    """A cluster, its group, and what was observed of the group's members."""

    def __init__(
        self, simulation: Simulation, settings: dict[str, Any], keeps_brokers: bool
    ) -> None:
        super().__init__(simulation, alive_min=2)
        self.settings = settings
        """Settings of every member."""
        self.keeps_brokers = keeps_brokers
        self.members: list[SimulatedGroupConsumer] = []
        self.owners: dict[tuple[int, TopicPartition], str] = {}
        """(generation, partition) -> its owner: the instance id of a static member, or a name."""
        self.acknowledged: dict[TopicPartition, int] = {}
        """The largest committed offset that the coordinator acknowledged, by partition."""
        self.on_second_owner: Callable[[str], object] = lambda _text: None
        """Called with a description when a partition has two owners."""
        self.produced: int = 0
        self.joined: int = 0
        self.names: set[str] = set()
        """Names of all members that ever joined."""

    @property
    def has_consumer_protocol(self) -> bool:  # type: ignore[override]
        return self.settings.get("group_protocol") == "consumer"

    def member(self, name: str) -> SimulatedGroupConsumer | None:
        return next((member for member in self.members if member.name == name), None)

    def instances(self) -> set[str | None]:
        return {member.group_settings.group_instance_id for member in self.members}

    def free_name(self) -> str:
        """Return an unused name for the next member.

        Names are part of steps, so they stay the same when other steps are removed.
        """
        numbers = itertools.count(self.joined + 1)
        return next(name for n in numbers if (name := f"member-{n}") not in self.names)

    def join(self, name: str, commit_interval_ms: int, instance: str | None) -> None:
        self.joined += 1
        self.names.add(name)
        consumer = self.simulation.group_consumer(
            GROUP,
            [TOPIC],
            name=name,
            **self.settings,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            auto_commit_interval_ms=commit_interval_ms,
            group_instance_id=instance,
        )
        notes = self._assigned if self.has_consumer_protocol else self._rebalanced
        consumer.on_rebalance = lambda change: notes(consumer, instance or name, change)
        self.members.append(consumer)

    def _assigned(
        self, consumer: SimulatedGroupConsumer, _owner: str, change: AssignmentChange
    ) -> None:
        """Check that no live member known to the coordinator still owns the assigned partitions."""
        if change.kind != "assigned":
            return
        coordinated = self.group()
        for other in self.members:
            if coordinated is None or other.member_id not in coordinated.members:
                continue  # its session has expired, but it does not know yet
            both = sorted(set(other.owned) & set(change.partitions))
            if other is not consumer and both:
                self.on_second_owner(f"{both} have two owners: {consumer.name}, {other.name}")

    def _rebalanced(
        self, consumer: SimulatedGroupConsumer, owner: str, change: AssignmentChange
    ) -> None:
        if change.kind != "assigned":
            return
        for partition in consumer.owned:
            other = self.owners.setdefault((change.generation, partition), owner)
            if other != owner:
                self.on_second_owner(
                    f"{partition} has two owners in generation {change.generation}: "
                    f"{other} and {owner}"
                )

    def note_commits(self) -> None:
        for member in self.members:
            for partition, offset in member.committed.items():
                known = self.acknowledged.get(partition, -1)
                self.acknowledged[partition] = max(known, offset)

    def remove(self, member: SimulatedGroupConsumer) -> None:
        self.note_commits()
        member.halt()
        self.members.remove(member)

    def coordinators(self) -> list[int]:
        leader = self.leader(OFFSETS_TOPIC, 0)
        return [] if leader is None else [leader]

    def group(self) -> Any:
        """Return the group as its coordinator has it; None if there is none."""
        for leader in self.coordinators():
            broker = self.simulation.processes[leader].broker
            if broker is not None:
                return broker.groups.find(GROUP)
        return None

    def produce(self, partitions: tuple[int, ...]) -> None:
        for partition in partitions:
            self.simulation.produce(TOPIC, str(self.produced), partition=partition)
            self.produced += 1

    def owns_all(self) -> bool:
        """Return True if the live members own every partition exactly once."""
        owned = sorted(p for member in self.members for p in member.owned)
        return owned == [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]

    def has_read_all(self) -> bool:
        ends = {
            TopicPartition(TOPIC, number): self.simulation.partition(TOPIC, number).log_end_offset
            for number in range(PARTITIONS)
        }
        return {p: m.positions.get(p) for m in self.members for p in m.owned} == ends


class Join(Step[GroupWorld]):
    """Adds a member; a static one only if no live member has its instance id."""

    member: str
    commit_interval_ms: int
    instance: str | None = None

    def do(self, world: GroupWorld) -> bool:
        if self.instance is not None and self.instance in world.instances():
            return False
        if self.member in world.names:
            return False
        world.join(self.member, self.commit_interval_ms, self.instance)
        return True


class Leave(Step[GroupWorld]):
    member: str

    def do(self, world: GroupWorld) -> bool:
        member = world.member(self.member)
        if member is None or len(world.members) == 1:
            return False
        member.leave()
        world.simulation.run_for(200)
        world.remove(member)
        return True


class Die(Step[GroupWorld]):
    """Halts a member without leaving the group."""

    member: str

    def do(self, world: GroupWorld) -> bool:
        member = world.member(self.member)
        if member is None:
            return False
        member.halt()
        world.remove(member)
        return True


class Records(Step[GroupWorld]):
    """Produces a record to each of the partitions; only possible while every broker is alive."""

    partitions: tuple[int, ...]

    def do(self, world: GroupWorld) -> bool:
        if world.down():
            return False
        world.produce(self.partitions)
        return True


Drawn = Iterator[Step[Any]]


def _join(world: GroupWorld, rng: random.Random, instance: str | None = None) -> Drawn:
    if len(world.members) < MEMBERS_MAX:
        yield Join(world.free_name(), rng.choice((500, 5000)), instance)


def _join_static(world: GroupWorld, rng: random.Random) -> Drawn:
    free = [name for name in STATIC if name not in world.instances()]
    if free:
        yield from _join(world, rng, free[0])


def _leave(world: GroupWorld, rng: random.Random) -> Drawn:
    if len(world.members) > 1:
        yield Leave(rng.choice(world.members).name)


def _die(world: GroupWorld, rng: random.Random) -> Drawn:
    """Let a member die; a static one rejoins under its instance id.

    With the consumer protocol, it rejoins after its session has expired.
    """
    if len(world.members) > 1:
        member = rng.choice(world.members)
        yield Die(member.name)
        instance = member.group_settings.group_instance_id
        if instance is not None:
            if world.has_consumer_protocol:
                yield steps.Wait(60_000)
            yield from _join(world, rng, instance)


def _produce(world: GroupWorld, rng: random.Random) -> Drawn:
    if world.keeps_brokers:
        yield Records(tuple(rng.randrange(PARTITIONS) for _ in range(rng.randrange(1, 20))))


def _kill_coordinator(world: GroupWorld, rng: random.Random) -> Drawn:
    """Kill the coordinator, often during a rebalance that has just begun."""
    if world.keeps_brokers:
        return
    if rng.random() < 0.7 and len(world.members) < MEMBERS_MAX:
        yield from _join(world, rng)
        yield steps.Wait(rng.choice((1, 3, 50, 3000, 6000)))
    yield from map(steps.Kill, world.coordinators())


def _kill(world: GroupWorld, rng: random.Random) -> Drawn:
    if not world.keeps_brokers:
        yield steps.Kill(rng.choice(world.simulation.broker_ids))


def _wait(_world: GroupWorld, _rng: random.Random) -> Drawn:
    yield from ()


CHOICES: Choices = {
    "produce": (1, _produce),
    "join": (1, _join),
    "leave": (1, _leave),
    "die": (1, _die),
    "join static": (1, _join_static),
    "wait": (1, _wait),
    "kill the coordinator": (1, _kill_coordinator),
    "kill": (1, _kill),
    "start": (1, one_of(World.down, steps.Start)),
}
