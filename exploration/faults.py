"""The faults and admin requests that may come next, chosen by the state of the cluster."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from ..protocol.names import broker_name, zookeeper_name
from . import cluster_steps as steps
from .generator import Choices, Choose
from .step import Step
from .world import World

T = TypeVar("T")
W = TypeVar("W", bound=World)
Drawn = Iterator[Step[Any]]
_CONFIGS = (
    ("segment.bytes", ("1500", "1048576")),
    ("max.message.bytes", ("100000", "1000012")),
    ("flush.messages", ("1", "1000")),
    ("message.timestamp.type", ("CreateTime", "LogAppendTime")),
)
_SHIFTS_MS = (-3_600_000, -5000, -500, 500, 5000, 3_600_000)
"""Milliseconds to shift a wall clock by, far less than any retention time of Kafka."""
_RATES = (0.3, 0.7, 0.95, 1.0, 1.05, 1.5, 3.0)
"""Clock rates, from slightly wrong to so wrong that the pings of a session are late."""
EXPIRY_NOTICED_MS = 200
"""Milliseconds within which the expiry of a session changes the ISRs."""


def one_of(found: Callable[[W], Sequence[T]], make: Callable[[T], Step[Any]]) -> Choose[W]:
    """Return a choice of a step on one of the items found, or of no step if there are none."""

    def choose(world: W, rng: random.Random) -> Drawn:
        candidates = found(world)
        if candidates:
            yield make(rng.choice(candidates))

    return choose


def _leaders(world: World) -> list[int]:
    alive = world.alive()
    return [view.leader for view in world.partitions() if view.leader in alive]


def _controller(world: World) -> list[int]:
    broker = world.simulation.controller.id
    return [] if broker is None else [broker]


def zookeepers_up(world: World) -> list[int]:
    return [n for n, process in world.simulation.zookeepers.items() if process.is_alive]


def zookeepers_down(world: World) -> list[int]:
    return [n for n, process in world.simulation.zookeepers.items() if not process.is_alive]


def _power_off(world: World, rng: random.Random) -> Drawn:
    broker = rng.choice(world.simulation.broker_ids)
    yield steps.Wait(EXPIRY_NOTICED_MS)
    yield steps.PowerOff(broker, rng.random() < 0.5)


def _start(world: World, rng: random.Random) -> Drawn:
    down = world.down()
    if down:
        yield steps.Start(rng.choice(down), rng.random() < 0.5)


def _restart(world: World, rng: random.Random) -> Drawn:
    """Kill a broker and start it again, possibly before its death is noticed."""
    alive = world.alive()
    if alive:
        broker = rng.choice(alive)
        yield steps.Kill(broker)
        yield steps.Wait(rng.choice((0, 1, 50, 1000)))
        yield steps.Start(broker)


def _cut(world: World, rng: random.Random) -> Drawn:
    one, other = map(broker_name, rng.sample(world.simulation.broker_ids, 2))
    yield steps.Cut((one,), (other,), rng.random() < 0.5)


def _bridge(world: World, rng: random.Random) -> Drawn:
    """Cut two groups of brokers off from each other, while one broker reaches both."""
    brokers = list(world.simulation.broker_ids)
    rng.shuffle(brokers)
    rest = list(map(broker_name, brokers[1:]))  # the first broker is the bridge
    half = len(rest) // 2
    yield steps.Cut(tuple(sorted(rest[:half])), tuple(sorted(rest[half:])), True)


def _cut_zookeeper(world: World, rng: random.Random) -> Drawn:
    broker = broker_name(rng.choice(world.simulation.broker_ids))
    servers = sorted(world.simulation.zookeepers)
    chosen = rng.sample(servers, rng.randint(1, len(servers)))
    one, other = (broker,), tuple(map(zookeeper_name, chosen))
    sources, targets = (other, one) if rng.random() < 0.5 else (one, other)
    yield steps.Cut(sources, targets, rng.random() < 0.5)


def _heal(world: World, _rng: random.Random) -> Drawn:
    if world.has_network_faults:
        yield steps.Heal()


def _resign(world: World, _rng: random.Random) -> Drawn:
    if world.is_calm():
        yield steps.Resign()


def _reassign(world: World, rng: random.Random) -> Drawn:
    yield steps.Reassign(
        tuple(
            (where, tuple(rng.sample(world.simulation.broker_ids, rng.choice((2, 3)))))
            for where in rng.sample(world.main, rng.randint(1, len(world.main)))
        )
    )


def _create(world: World, rng: random.Random) -> Drawn:
    deleted = sorted(world.deleted)
    name = f"side-{len(world.created) + 1}"
    if deleted and rng.random() < 0.5:
        name = rng.choice(deleted)
    yield steps.CreateTopic(name, rng.randint(1, 3), rng.choice((1, 2, 3)))


def _recreate(world: World, rng: random.Random) -> Drawn:
    """Delete a topic and create it again, possibly before every broker knows of the deletion."""
    if world.created:
        name = rng.choice(world.created)
        yield steps.Delete(name)
        yield steps.Wait(rng.choice((0, 10, 200, 2000)))
        yield steps.CreateTopic(name, rng.randint(1, 3), rng.choice((1, 2, 3)))


def _configure(world: World, rng: random.Random) -> Drawn:
    """Change a configuration of a permanent topic that does not affect any promise."""
    topic = rng.choice(sorted({where.topic for where in world.main}))
    name, values = rng.choice(_CONFIGS)
    yield steps.Configure(topic, name, rng.choice(values))


def _grow(world: World, rng: random.Random) -> Drawn:
    if world.created:
        name = rng.choice(world.created)
        yield steps.Grow(name, world.count(name) + 1)


def _elect(_world: World, _rng: random.Random) -> Drawn:
    yield steps.ElectPreferred()


def _fail_log_dir(world: World, rng: random.Random) -> Drawn:
    running = [broker for broker in world.running() if broker not in world.paused]
    if running:
        broker = rng.choice(running)
        disk = world.simulation.processes[broker].spec.disk
        yield steps.FailLogDir(broker, rng.randrange(len(disk.directories)))


def _shift_clock(world: World, rng: random.Random) -> Drawn:
    broker = rng.choice(world.simulation.broker_ids)
    yield steps.ShiftBrokerClock(broker, rng.choice(_SHIFTS_MS))


def _set_clock_rate(world: World, rng: random.Random) -> Drawn:
    """Change the clock rate of a broker or, less often, of a ZooKeeper server."""
    servers = sorted(world.simulation.zookeepers)
    broker, server = rng.choice(world.simulation.broker_ids), rng.choice(servers)
    rate = rng.choice(_RATES)
    if rng.random() < 0.25:
        yield steps.SetZookeeperClockRate(server, rate)
    else:
        yield steps.SetClockRate(broker, rate)


def _lose(world: World, rng: random.Random) -> Drawn:
    one, other = map(broker_name, rng.sample(world.simulation.broker_ids, 2))
    yield steps.Lose(rng.choice((0.05, 0.3)), one, other)


def _latency(world: World, rng: random.Random) -> Drawn:
    machines = [broker_name(broker) for broker in world.simulation.broker_ids]
    machines += [zookeeper_name(server) for server in world.simulation.zookeepers]
    one, other = rng.sample(machines, 2)
    yield steps.Latency(float(rng.choice((0.1, 20, 200))), one, other)


FAULTS: Choices = {
    "kill": (3, one_of(World.alive, steps.Kill)),
    "kill a leader": (3, one_of(_leaders, steps.Kill)),
    "kill the controller": (3, one_of(_controller, steps.Kill)),
    "power off": (3, _power_off),
    "start": (10, _start),
    "restart": (3, _restart),
    "stop": (4, one_of(World.running, steps.Stop)),
    "freeze": (
        3,
        one_of(lambda world: [b for b in world.alive() if b not in world.paused], steps.Freeze),
    ),
    "thaw": (4, one_of(lambda world: sorted(world.paused), steps.Thaw)),
    "isolate": (
        3,
        one_of(
            lambda world: world.simulation.broker_ids,
            lambda broker: steps.Isolate(broker_name(broker)),
        ),
    ),
    "cut": (3, _cut),
    "bridge": (1, _bridge),
    "cut ZooKeeper": (3, _cut_zookeeper),
    "heal": (6, _heal),
    "expire": (4, one_of(World.alive, steps.Expire)),
    "kill ZooKeeper": (2, one_of(zookeepers_up, steps.KillZookeeper)),
    "start ZooKeeper": (4, one_of(zookeepers_down, steps.StartZookeeper)),
    "resign": (2, _resign),
    "reassign": (5, _reassign),
    "cancel": (1, one_of(lambda world: world.main, lambda where: steps.Cancel(*where))),
    "create": (4, _create),
    "recreate": (1, _recreate),
    "configure": (2, _configure),
    "delete": (3, one_of(lambda world: world.created, steps.Delete)),
    "grow": (2, _grow),
    "elect": (2, _elect),
    "fail a log directory": (2, _fail_log_dir),
    "shift a clock": (2, _shift_clock),
    "lose": (1, _lose),
    "latency": (2, _latency),
    "set a clock's rate": (2, _set_clock_rate),
}
"""Every fault and admin request, with its weight. New ones are added at the end, so that histories
in which they are off do not change."""
RECOVERIES: frozenset[str] = frozenset({"start", "thaw", "heal", "start ZooKeeper"})
"""Names of the choices that undo others."""
