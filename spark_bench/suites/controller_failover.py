"""The controller dies or resigns: how long until another one has taken over.

A new controller reads all topics from ZooKeeper and informs every broker. Processes take as much
time for their work as in 2018 (``PUBLISHED_2018``).
"""

from __future__ import annotations

from typing import Any

from ...actors.network.costs import PUBLISHED_2018
from ..measuring.parameters import Count, Version
from ..measuring.run import Run

TOPIC = "bench"
MATRIX: dict[str, list[Any]] = {
    "kafka_version": ["0.10", "1.1", "3.9"],
    "partitions": [30, 150],
    "crashes": [True, False],
}
HEADLINE = "failover_ms"
MEASURES = {
    "failover_ms": "from the crash or the resignation until the new controller had done all work",
    "elected_ms": "from then until another broker was elected",
    "takeover_ms": "from its election until it had done all work",
}
_LIMIT_MS = 600_000


def cost(partitions: int) -> float:
    """Return about how many seconds a run takes."""
    return 0.5 + partitions * 0.01


def scenario(
    run: Run,
    kafka_version: Version = "3.9",
    partitions: Count = 30,
    crashes: bool = True,
    brokers: Count = 4,
    session_timeout_ms: Count = 6_000,
    rate_per_s: Count = 50,
) -> None:
    """Replace the controller."""
    simulation = run.simulation(
        brokers,
        kafka_version=kafka_version,
        costs=PUBLISHED_2018,
        config={"zookeeper.session.timeout.ms": session_timeout_ms},
    )
    simulation.network.latency(lognormal_ms=(0.3, 0.4))
    simulation.create_topic(TOPIC, partitions, 3)
    load = run.load(TOPIC, rate_per_s=rate_per_s)
    simulation.run_for(2000 + simulation.runtime.rng.random() * 1000)
    run.end_warm_up()
    old, epoch = simulation.controller.id, simulation.controller.epoch
    assert old is not None
    begun_ms = simulation.now_ms
    if crashes:
        simulation.broker(old).kill()
    else:
        simulation.zookeeper.delete("/controller")

    def is_elected() -> bool:
        controller = simulation.running.active_controller()
        return controller is not None and controller.epoch > epoch

    simulation.run_until(is_elected, _LIMIT_MS)
    elected_ms = simulation.now_ms
    manager = simulation.running.require_controller().event_manager
    simulation.run_until(lambda: manager.current is None and not len(manager), _LIMIT_MS)
    run.value("elected_ms", elected_ms - begun_ms)
    run.value("takeover_ms", simulation.now_ms - elected_ms)
    run.value("failover_ms", simulation.now_ms - begun_ms)
    simulation.run_for(2000)
    load.stop()
    if crashes:
        simulation.broker(old).start()
    run.settle(_LIMIT_MS)
