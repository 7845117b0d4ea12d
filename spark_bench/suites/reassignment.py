"""Partitions move to other brokers while clients write: how long it takes, what clients notice."""

from __future__ import annotations

from typing import Any

from ...actors.network.costs import Costs
from ..measuring.parameters import Count, Milliseconds, Version
from ..measuring.run import Run

TOPIC = "bench"
MATRIX: list[dict[str, list[Any]]] = [
    {"partitions": [6, 24]},
    {"stored_mb": [20.0, 100.0]},
    {"kafka_version": ["3.9", "1.1"]},
]
HEADLINE = "move_ms"
MEASURES = {
    "move_ms": "until every partition had exactly its new replicas, all in sync",
    "moved_mb": "bytes of records that the new replicas hold",
}
_LIMIT_MS = 900_000
_RECORD_BYTES = 500_000


def cost(partitions: int, stored_mb: float) -> float:
    """Return about how many seconds a run takes."""
    return 0.5 + partitions * 0.03 + stored_mb * 0.02


def scenario(
    run: Run,
    partitions: Count = 6,
    stored_mb: Milliseconds = 20.0,
    link_mb_per_s: Milliseconds = 50.0,
    kafka_version: Version = "3.9",
    rate_per_s: Count = 50,
) -> None:
    """Move every partition from brokers 1 and 2 to brokers 3 and 4."""
    costs = Costs(link_mb_per_s=link_mb_per_s, disk_mb_per_s=200.0, disk_append_ms=0.05)
    simulation = run.simulation(4, kafka_version=kafka_version, costs=costs)
    simulation.network.latency(lognormal_ms=(0.5, 0.4))
    simulation.create_topic(TOPIC, assignment={n: [1, 2] for n in range(partitions)})
    filler = simulation.producer("filler", enable_idempotence=False, batch_records=1)
    for number in range(max(1, int(stored_mb * 1_000_000 / _RECORD_BYTES))):
        filler.produce((TOPIC, number % partitions), b"." * _RECORD_BYTES)
    simulation.run_until(lambda: filler.unfinished == 0, _LIMIT_MS)
    assert not filler.failed
    load = run.load(TOPIC, rate_per_s=rate_per_s)
    simulation.run_for(2000 + simulation.runtime.rng.random() * 1000)
    run.end_warm_up()
    begun_ms = simulation.now_ms
    simulation.reassign_partitions({(TOPIC, number): [3, 4] for number in range(partitions)})

    def is_moved() -> bool:
        views = [simulation.partition(TOPIC, number) for number in range(partitions)]
        return all(
            view.replicas == (3, 4) and set(view.isr) == {3, 4} and view.leader in (3, 4)
            for view in views
        )

    simulation.run_until(is_moved, _LIMIT_MS, every_ms=20)
    run.value("move_ms", simulation.now_ms - begun_ms)
    moved = sum(len(simulation.log_bytes(TOPIC, n, 3)) for n in range(partitions))
    run.value("moved_mb", moved / 1_000_000)
    simulation.run_for(2000)
    load.stop()
    run.settle(_LIMIT_MS)
