"""The time to store a record: by acks, replicas, batches and linger, at a given load.

Brokers, disks and links take time here: a broker 0.05 ms per request, a disk 0.05 ms per append
and 200 MB/s, a link 1 Gb/s. These are round figures for ordinary machines, not measurements.
"""

from __future__ import annotations

from typing import Annotated, Any

from ...actors.network.costs import Costs
from ...protocol.errors import UsageError
from ..measuring.parameters import AtLeast, AtMost, Count, Milliseconds, OneOf, Version
from ..measuring.run import Run

TOPIC = "bench"
MATRIX: list[dict[str, list[Any]]] = [
    {"acks": ["all", "1"], "replication_factor": [3, 1]},
    {"linger_ms": [0, 5, 20]},
    {"linger_ms": [20], "batch_records": [1000, 2]},
    {"rate_per_s": [1000, 200, 2000]},
    {"model": ["open", "closed"]},
]
RUNS = 10
HEADLINE = "response_p99_ms"
MEASURES = {"records_per_s": "acknowledged records per second of virtual time"}
COSTS = Costs(broker_request_ms=0.05, disk_append_ms=0.05, disk_mb_per_s=200.0, link_mb_per_s=117.0)
_WARM_UP_MS = 2_000
"""Warm-up in milliseconds: a partition's first records wait up to 500 ms for its followers."""


def check(replication_factor: int, brokers: int) -> None:
    """Raise ``UsageError`` for more replicas than brokers."""
    if replication_factor > brokers:
        raise UsageError(
            f"replication_factor {replication_factor} needs as many brokers, there are {brokers}"
        )


def cost(rate_per_s: int, duration_ms: float) -> float:
    """Return about how many seconds a run takes."""
    return rate_per_s * duration_ms / 1000 * 0.0004


def scenario(
    run: Run,
    acks: Annotated[str, OneOf(("all", "1"))] = "all",
    replication_factor: Count = 3,
    linger_ms: Milliseconds = 0,
    batch_records: Count = 1000,
    rate_per_s: Annotated[int, AtLeast(1), AtMost(1_000_000)] = 1000,
    model: Annotated[str, OneOf(("open", "closed"))] = "open",
    in_flight: Count = 5,
    record_bytes: Count = 1000,
    brokers: Count = 3,
    partitions: Count = 3,
    latency_median_ms: Milliseconds = 0.25,
    duration_ms: Milliseconds = 1_000,
    kafka_version: Version = "3.9",
) -> None:
    """Write for some seconds; nothing fails."""
    simulation = run.simulation(brokers, kafka_version=kafka_version, costs=COSTS)
    simulation.network.latency(lognormal_ms=(latency_median_ms, 0.4))
    simulation.create_topic(TOPIC, partitions, replication_factor)
    loop = {"rate_per_s": rate_per_s} if model == "open" else {"in_flight": in_flight}
    load = run.load(
        TOPIC,
        model=model,
        acks="all" if acks == "all" else 1,
        linger_ms=linger_ms,
        batch_records=batch_records,
        record_bytes=record_bytes,
        consumers=1,
        **loop,
    )
    simulation.run_for(_WARM_UP_MS)
    run.end_warm_up()
    before, begun_ms = len(load.acknowledged), simulation.now_ms
    simulation.run_for(duration_ms)
    seconds = (simulation.now_ms - begun_ms) / 1000
    run.value("records_per_s", (len(load.acknowledged) - before) / seconds)
    run.settle()
