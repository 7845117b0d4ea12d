"""What may happen to a cluster in a random history.

A step has a name, a pause after it, and a number from which its choices are drawn when it is taken.
So a history with some of its steps left out is a history, too. A step for which nothing is there
to be done does nothing.

Power failures keep to what Kafka promises. It acknowledges a record when every replica in sync has
it in memory, so a broker loses power only while others are in sync, nothing else is broken, and
nothing else happens until the controller has taken it out of every ISR.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fakekafka.protocol.admin import (
    PREFERRED,
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    NewPartitions,
    NewTopic,
)
from fakekafka.tests.support.history_world import World

_TIMEOUT_MS = 30_000
_HEARD_AFTER_MS = 200
_POWER_FAILURE_MS = 120_000


@dataclass(frozen=True)
class Step:
    """One thing that happens, and the time until the next."""

    name: str
    pick: int
    then_ms: int

    def __str__(self) -> str:
        return f"{self.name}:{self.pick}:{self.then_ms}"


Action = Callable[[World, random.Random], str | None]
"""Does it and says in words what it did; None when there was nothing to do."""


def _kill(world: World, rng: random.Random) -> str | None:
    alive = world.alive()
    if not alive:
        return None
    broker = rng.choice(alive)
    world.simulation.broker(broker).kill()
    world.paused.discard(broker)
    return f"kill broker {broker}"


def _kill_leader(world: World, rng: random.Random) -> str | None:
    leaders = [v.leader for v in world.partitions() if v.leader in world.alive()]
    if not leaders:
        return None
    broker = rng.choice(leaders)
    world.simulation.broker(broker).kill()
    world.paused.discard(broker)
    return f"kill leader {broker}"


def _kill_controller(world: World, rng: random.Random) -> str | None:
    broker = world.simulation.controller.id
    if broker is None:
        return None
    world.simulation.broker(broker).kill()
    world.paused.discard(broker)
    return f"kill controller {broker}"


def _power_off(world: World, rng: random.Random) -> str | None:
    simulation = world.simulation
    broker = rng.choice(simulation.broker_ids)
    simulation.run_for(_HEARD_AFTER_MS)  # a session that was just expired changes the ISR
    if not world.is_calm():
        return None
    if any(broker in view.isr and len(view.isr) == 1 for view in world.partitions()):
        return None
    simulation.broker(broker).power_off()

    def is_out() -> bool:
        stored = simulation.zookeeper.tree()
        return all(
            b'"isr":[%d' % broker not in data.replace(b" ", b"")
            and b",%d" % broker not in data.replace(b" ", b"").split(b'"isr":')[1].split(b"]")[0]
            for path, data in stored.items()
            if data is not None and path.endswith("/state") and path.startswith("/brokers/topics/")
        )

    simulation.run_until(is_out, _POWER_FAILURE_MS, every_ms=100)
    return f"power failure at broker {broker}"


def _start(world: World, rng: random.Random) -> str | None:
    down = world.down()
    if not down:
        return None
    handle = world.simulation.broker(rng.choice(down))
    if rng.random() < 0.5:
        for index in range(world.options.log_dirs):
            handle.repair_log_dir(index)
    handle.start(wait=False)
    return f"start broker {handle.id}"


def _restart(world: World, rng: random.Random) -> str | None:
    """Dead and back before anybody notices."""
    alive = world.alive()
    if not alive:
        return None
    handle = world.simulation.broker(rng.choice(alive))
    handle.kill()
    world.paused.discard(handle.id)
    world.simulation.run_for(rng.choice((0, 1, 50, 1000)))
    if not handle.is_alive:
        handle.start(wait=False)
    return f"kill and start broker {handle.id}"


def _shutdown(world: World, rng: random.Random) -> str | None:
    running = [b for b in world.alive() if world.simulation.broker(b).state == "running"]
    if not running:
        return None
    broker = rng.choice(running)
    world.simulation.broker(broker).begin_shutdown()
    return f"shut down broker {broker}"


def _pause(world: World, rng: random.Random) -> str | None:
    alive = [b for b in world.alive() if b not in world.paused]
    if not alive:
        return None
    broker = rng.choice(alive)
    world.simulation.broker(broker).pause()
    world.paused.add(broker)
    return f"pause broker {broker}"


def _resume(world: World, rng: random.Random) -> str | None:
    paused = sorted(world.paused)
    if not paused:
        return None
    broker = rng.choice(paused)
    world.simulation.broker(broker).resume()
    world.paused.discard(broker)
    return f"resume broker {broker}"


def _isolate(world: World, rng: random.Random) -> str | None:
    broker = rng.choice(world.simulation.broker_ids)
    world.simulation.network.isolate(broker)
    world.troubled_network = True
    return f"isolate broker {broker}"


def _cut(world: World, rng: random.Random) -> str | None:
    one, other = rng.sample(world.simulation.broker_ids, 2)
    both_ways = rng.random() < 0.5
    world.simulation.network.partition([one], [other], both_ways=both_ways)
    world.troubled_network = True
    return f"cut {one} {'and' if both_ways else 'to'} {other}"


def _cut_zookeeper(world: World, rng: random.Random) -> str | None:
    broker = rng.choice(world.simulation.broker_ids)
    servers = sorted(world.simulation.zookeepers)
    chosen = rng.sample(servers, rng.randint(1, len(servers)))
    names = [f"zk-{server}" for server in chosen]
    ends: list[Sequence[int | str]] = [[broker], names]
    if rng.random() < 0.5:
        ends.reverse()
    both_ways = rng.random() < 0.5
    world.simulation.network.partition(ends[0], ends[1], both_ways=both_ways)
    world.troubled_network = True
    return f"cut {ends[0]} {'and' if both_ways else 'to'} {ends[1]}"


def _heal_network(world: World, rng: random.Random) -> str | None:
    if not world.troubled_network:
        return None
    world.simulation.network.heal()
    world.troubled_network = False
    return "heal the network"


def _expire(world: World, rng: random.Random) -> str | None:
    alive = world.alive()
    if not alive or not any(p.is_alive for p in world.simulation.zookeepers.values()):
        return None
    broker = rng.choice(alive)
    world.simulation.zookeeper.expire_session(broker)
    return f"expire the session of broker {broker}"


def _kill_zookeeper(world: World, rng: random.Random) -> str | None:
    alive = [s for s, p in world.simulation.zookeepers.items() if p.is_alive]
    if not alive:
        return None
    server = rng.choice(alive)
    world.simulation.zookeeper.server(server).kill()
    return f"kill ZooKeeper {server}"


def _start_zookeeper(world: World, rng: random.Random) -> str | None:
    down = [s for s, p in world.simulation.zookeepers.items() if not p.is_alive]
    if not down:
        return None
    server = rng.choice(down)
    world.simulation.zookeeper.server(server).start()
    return f"start ZooKeeper {server}"


def _resign(world: World, rng: random.Random) -> str | None:
    if not world.is_calm():
        return None
    broker = world.simulation.controller.id
    world.simulation.controller.resign()
    return f"controller {broker} resigns"


def _reassign(world: World, rng: random.Random) -> str | None:
    wanted = tuple(
        (where, tuple(rng.sample(world.simulation.broker_ids, rng.choice((2, 3)))))
        for where in rng.sample(world.main, rng.randint(1, len(world.main)))
    )
    world.request(f"reassign {wanted}", AlterPartitionReassignmentsRequest(wanted))
    return f"reassign {[(str(where), replicas) for where, replicas in wanted]}"


def _cancel_reassignment(world: World, rng: random.Random) -> str | None:
    where = rng.choice(world.main)
    world.request(f"cancel {where}", AlterPartitionReassignmentsRequest(((where, None),)))
    return f"cancel the reassignment of {where}"


def _create(world: World, rng: random.Random) -> str | None:
    deleted = sorted(world.deleted)
    if deleted and rng.random() < 0.5:
        name = rng.choice(deleted)
    else:
        world.side_topics += 1
        name = f"side-{world.side_topics}"
    topic = NewTopic(name, rng.randint(1, 3), rng.choice((1, 2, 3)))
    world.request(f"create {name}", CreateTopicsRequest((topic,), _TIMEOUT_MS))
    return f"create {name}"


def _delete(world: World, rng: random.Random) -> str | None:
    names = [f"side-{number + 1}" for number in range(world.side_topics)]
    if not names:
        return None
    name = rng.choice(names)
    world.deleted.add(name)
    world.request(f"delete {name}", DeleteTopicsRequest((name,), _TIMEOUT_MS))
    return f"delete {name}"


def _grow(world: World, rng: random.Random) -> str | None:
    if world.side_topics == 0:
        return None
    name = f"side-{rng.randint(1, world.side_topics)}"
    count = world.count(name) + 1
    request = CreatePartitionsRequest((NewPartitions(name, count, ()),), _TIMEOUT_MS)
    world.request(f"grow {name}", request)
    return f"grow {name} to {count}"


def _elect(world: World, rng: random.Random) -> str | None:
    world.request("preferred election", ElectLeadersRequest(PREFERRED, None))
    return "preferred election of all partitions"


def _fail_log_dir(world: World, rng: random.Random) -> str | None:
    running = [b for b in world.alive() if world.simulation.broker(b).state == "running"]
    running = [b for b in running if b not in world.paused]
    if not running:
        return None
    broker = rng.choice(running)
    index = rng.randrange(world.options.log_dirs)
    process = world.simulation.processes[broker]
    if process.broker is None or process.spec.disk.directories[index] in (
        process.spec.disk.offline_dirs
    ):
        return None
    world.simulation.broker(broker).fail_log_dir(index)
    return f"log directory {index} of broker {broker} fails"


def _drop(world: World, rng: random.Random) -> str | None:
    one, other = rng.sample(world.simulation.broker_ids, 2)
    share = rng.choice((0.05, 0.3))
    world.simulation.network.drop(share, one, other)
    world.troubled_network = True
    return f"lose {share} of what {one} sends {other}"


def _slow_link(world: World, rng: random.Random) -> str | None:
    machines: list[int | str] = [*world.simulation.broker_ids]
    machines += [f"zk-{server}" for server in world.simulation.zookeepers]
    one, other = rng.sample(machines, 2)
    delay_ms = rng.choice((0.1, 20, 200))
    world.simulation.network.latency(delay_ms, source=one, target=other)
    return f"{delay_ms} ms from {one} to {other}"


ACTIONS: dict[str, tuple[int, Action]] = {
    "kill": (3, _kill),
    "kill_leader": (3, _kill_leader),
    "kill_controller": (3, _kill_controller),
    "power_off": (3, _power_off),
    "start": (10, _start),
    "restart": (3, _restart),
    "shutdown": (4, _shutdown),
    "pause": (3, _pause),
    "resume": (4, _resume),
    "isolate": (3, _isolate),
    "cut": (3, _cut),
    "cut_zookeeper": (3, _cut_zookeeper),
    "heal_network": (6, _heal_network),
    "expire": (4, _expire),
    "kill_zookeeper": (2, _kill_zookeeper),
    "start_zookeeper": (4, _start_zookeeper),
    "resign": (2, _resign),
    "reassign": (5, _reassign),
    "cancel_reassignment": (1, _cancel_reassignment),
    "create": (4, _create),
    "delete": (3, _delete),
    "grow": (2, _grow),
    "elect": (2, _elect),
    "fail_log_dir": (2, _fail_log_dir),
    "drop": (1, _drop),
    "slow_link": (2, _slow_link),
}
"""Every step by name, with its weight."""


def draw_steps(seed: int) -> tuple[Step, ...]:
    rng = random.Random(f"steps-{seed}")
    names = list(ACTIONS)
    weights = [weight for weight, _ in ACTIONS.values()]
    return tuple(
        Step(
            rng.choices(names, weights)[0],
            rng.randrange(1 << 24),
            rng.choice((0, 1, 10, 200, 1000, 1000, 4000, 8000)),
        )
        for _ in range(rng.randint(3, 18))
    )


def parse_step(text: str) -> Step:
    """A step as ``str`` writes it."""
    name, pick, then_ms = text.split(":")
    return Step(name, int(pick), int(then_ms))


def take(world: World, step: Step) -> str | None:
    said = ACTIONS[step.name][1](world, random.Random(step.pick))
    world.simulation.run_for(step.then_ms)
    return said
