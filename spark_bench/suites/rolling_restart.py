"""Every broker is restarted in turn under load, by a controlled shutdown or by killing it."""

from __future__ import annotations

from typing import Any

from ..measuring.parameters import Count, Milliseconds, Version
from ..measuring.run import Run

TOPIC = "bench"
MATRIX: list[dict[str, list[Any]]] = [
    {"in_control": [True, False]},
    {"pause_ms": [5_000, 0]},
    {"partitions": [12, 60]},
]
HEADLINE = "total_ms"
MEASURES = {
    "total_ms": "from the first shutdown until every replica was in sync again",
    "restart_ms": "each broker: from its end until every replica was in sync again",
}
_LIMIT_MS = 300_000


def scenario(
    run: Run,
    brokers: Count = 3,
    in_control: bool = True,
    down_ms: Milliseconds = 3_000,
    pause_ms: Milliseconds = 5_000,
    partitions: Count = 12,
    session_timeout_ms: Count = 6_000,
    kafka_version: Version = "3.9",
    rate_per_s: Count = 50,
) -> None:
    """Restart one broker, wait until all replicas are in sync and for a pause, then the next."""
    simulation = run.simulation(
        brokers,
        kafka_version=kafka_version,
        config={"zookeeper.session.timeout.ms": session_timeout_ms},
    )
    simulation.network.latency(lognormal_ms=(0.5, 0.4))
    simulation.create_topic(TOPIC, partitions, min(3, brokers), {"min.insync.replicas": 1})
    load = run.load(TOPIC, rate_per_s=rate_per_s, consumers=1)
    simulation.run_for(2000 + simulation.runtime.rng.random() * 1000)
    run.end_warm_up()

    def is_in_sync() -> bool:
        views = [simulation.partition(TOPIC, number) for number in range(partitions)]
        return all(view.leader is not None and set(view.isr) == set(view.replicas)
                   for view in views)  # fmt: skip

    begun_ms = simulation.now_ms
    for broker_id in simulation.broker_ids:
        broker = simulation.broker(broker_id)
        ended_ms = simulation.now_ms
        if in_control:
            broker.shutdown()
            simulation.run_for(down_ms)
        else:
            broker.kill()
            # A broker that returns before its session has expired cannot register in ZooKeeper.
            simulation.run_for(max(down_ms, 1.5 * session_timeout_ms))
        broker.start()
        simulation.run_until(is_in_sync, _LIMIT_MS, every_ms=20)
        run.sample("restart_ms", simulation.now_ms - ended_ms)
        simulation.run_for(pause_ms)
    run.value("total_ms", simulation.now_ms - begun_ms - pause_ms)
    load.stop()
    run.settle(_LIMIT_MS)
