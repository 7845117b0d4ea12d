"""A member joins, leaves or dies: how long its group rebalances, and partitions go unread."""

from __future__ import annotations

from typing import Annotated, Any

from ...actors.clients.group_consumer import SimulatedGroupConsumer
from ...protocol.values import TopicPartition
from ...testing.simulation import Simulation
from ..measuring.parameters import Count, OneOf, Version
from ..measuring.run import Run

TOPIC, GROUP = "bench", "group"
MATRIX: list[dict[str, list[Any]]] = [
    {"change": ["join", "leave", "crash"], "assignor": ["range", "cooperative-sticky"]},
    {"members": [4, 12]},
    {"session_timeout_ms": [45_000, 10_000], "change": ["crash"]},
]
HEADLINE = "rebalance_ms"
MEASURES = {
    "rebalance_ms": "from the change until every partition was read by a member again",
    "generations": "generations of the group that it took",
    "stall_ms": "each partition: the longest time around the change in which nobody read it",
}
_LIMIT_MS = 300_000


def scenario(
    run: Run,
    change: Annotated[str, OneOf(("join", "leave", "crash"))] = "join",
    members: Count = 4,
    assignor: Annotated[
        str, OneOf(("range", "roundrobin", "sticky", "cooperative-sticky"))
    ] = "range",
    session_timeout_ms: Count = 45_000,
    partitions: Count = 24,
    rate_per_s: Count = 100,
    kafka_version: Version = "3.9",
) -> None:
    """Change the members of a stable group that is reading."""
    simulation = run.simulation(3, kafka_version=kafka_version)
    simulation.network.latency(lognormal_ms=(0.5, 0.4))
    simulation.create_topic(TOPIC, partitions, 3)
    read_ms: dict[int, float] = {}
    stall_ms = dict.fromkeys(range(partitions), 0.0)

    def join() -> None:
        consumer = simulation.group_consumer(
            GROUP, [TOPIC], assignor=assignor, session_timeout_ms=session_timeout_ms
        )
        group.append(consumer)

        def read(where: TopicPartition, _batch: object, _position: int) -> None:
            number, now_ms = where.partition, simulation.now_ms
            stall_ms[number] = max(stall_ms[number], now_ms - read_ms.get(number, now_ms))
            read_ms[number] = now_ms

        consumer.on_batch = read

    group: list[SimulatedGroupConsumer] = []
    for _ in range(members):
        join()
    load = run.load(TOPIC, rate_per_s=rate_per_s)
    simulation.run_until(lambda: _is_shared(simulation, group, partitions), _LIMIT_MS, every_ms=10)
    simulation.run_for(5000 + simulation.runtime.rng.random() * 3000)
    run.end_warm_up()
    stall_ms.update(dict.fromkeys(stall_ms, 0.0))
    generation = simulation.group(GROUP).generation
    begun_ms = simulation.now_ms
    if change == "join":
        join()
    elif change == "leave":
        group.pop(0).leave()
    else:
        group.pop(0).halt()
    simulation.run_until(
        lambda: (
            simulation.group(GROUP).generation > generation
            and _is_shared(simulation, group, partitions)
        ),
        _LIMIT_MS,
        every_ms=10,
    )
    run.value("rebalance_ms", simulation.now_ms - begun_ms)
    run.value("generations", simulation.group(GROUP).generation - generation)
    simulation.run_for(2000)
    for value in stall_ms.values():
        run.sample("stall_ms", value)
    load.stop()
    run.settle()


def _is_shared(
    simulation: Simulation, group: list[SimulatedGroupConsumer], partitions: int
) -> bool:
    """Return whether each partition has exactly one reader, and every member is in the latest
    generation."""
    if simulation.group(GROUP).state != "Stable":
        return False
    owned = [where for consumer in group for where in consumer.owned]
    return len(owned) == len(set(owned)) == partitions and all(
        consumer.generation == simulation.group(GROUP).generation for consumer in group
    )
