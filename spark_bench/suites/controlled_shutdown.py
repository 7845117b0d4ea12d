"""A controlled shutdown while clients write: how long it takes, and what clients notice.

Processes take as much time for their work as in 2018 (``PUBLISHED_2018``), so the duration grows
with the partitions that the broker led, and depends on how a release uses ZooKeeper.
"""

from __future__ import annotations

from typing import Any

from ...actors.network.costs import PUBLISHED_2018
from ..measuring.parameters import Count, Version
from ..measuring.run import Run

TOPIC = "bench"
MATRIX: dict[str, list[Any]] = {"kafka_version": ["0.10", "1.1", "3.9"], "partitions": [30, 150]}
HEADLINE = "shutdown_ms"
MEASURES = {
    "shutdown_ms": "from the request to shut down until the broker was gone",
    "partitions_led": "partitions that the broker led",
    "in_control": "whether every leader was moved before the broker left",
}
_LIMIT_MS = 600_000


def cost(partitions: int) -> float:
    """Return about how many seconds a run takes."""
    return 0.5 + partitions * 0.01


def scenario(
    run: Run,
    kafka_version: Version = "3.9",
    partitions: Count = 30,
    brokers: Count = 4,
    replication_factor: Count = 3,
    rate_per_s: Count = 100,
) -> None:
    """Shut down a broker that is not the controller."""
    simulation = run.simulation(brokers, kafka_version=kafka_version, costs=PUBLISHED_2018)
    simulation.network.latency(lognormal_ms=(0.3, 0.4))
    simulation.create_topic(TOPIC, partitions, replication_factor)
    load = run.load(TOPIC, rate_per_s=rate_per_s)
    simulation.run_for(2000 + simulation.runtime.rng.random() * 1000)
    run.end_warm_up()
    leaving = next(broker for broker in simulation.broker_ids if broker != simulation.controller.id)
    views = [simulation.partition(TOPIC, number) for number in range(partitions)]
    run.value("partitions_led", sum(view.leader == leaving for view in views))
    begun_ms = simulation.now_ms
    broker = simulation.broker(leaving)
    broker.begin_shutdown()
    simulation.run_until(lambda: not broker.is_alive, _LIMIT_MS)
    run.value("shutdown_ms", simulation.now_ms - begun_ms)
    views = [simulation.partition(TOPIC, number) for number in range(partitions)]
    run.value("in_control", all(view.leader != leaving for view in views))
    simulation.run_for(2000)
    load.stop()
    broker.start()
    run.settle(_LIMIT_MS)
