"""The leader of a partition crashes under load: how long clients are affected.

The load is an open loop: records keep arriving at their rate whatever the cluster does, so that
the wait of records that arrive during the outage is counted (no coordinated omission).
The crash happens at a random moment between two heartbeats of the broker.
"""

from __future__ import annotations

from typing import Annotated

from ...protocol.errors import UsageError
from ...scenarios.spec import RATE_PER_S_MAX
from ...scenarios.workload import Workload
from ...testing.simulation import Simulation
from ..measuring.parameters import AtLeast, AtMost, Count, Milliseconds, Version
from ..measuring.run import Run

TOPIC = "bench"
MATRIX = [
    {"session_timeout_ms": [18_000, 6_000]},
    {"replication_factor": [3, 2]},
    {"partitions": [3, 30]},
]
HEADLINE = "unavailable_ms"
MEASURES = {
    "full_isr_ms": "from the crash until the broker was back and every replica in sync",
    "partitions_led": "partitions that the broker led",
    "was_controller": "whether the broker was the controller, too",
}
_WARM_UP_MS = 2_000
_AFTER_MS = 2_000


def check(brokers: int, replication_factor: int) -> None:
    """Raise ``UsageError`` for more replicas than brokers."""
    if replication_factor > brokers:
        raise UsageError(
            f"replication_factor {replication_factor} needs as many brokers, there are {brokers}"
        )


def cost(session_timeout_ms: float, rate_per_s: int, partitions: int) -> float:
    """Return about how many seconds a run takes."""
    return session_timeout_ms / 1000 * (0.005 + rate_per_s * 0.00015) + partitions * 0.002


def scenario(
    run: Run,
    brokers: Count = 3,
    replication_factor: Annotated[int, AtLeast(2)] = 3,
    partitions: Count = 3,
    session_timeout_ms: Annotated[int, AtLeast(1)] = 18_000,
    kafka_version: Version = "3.9",
    rate_per_s: Annotated[int, AtLeast(1), AtMost(RATE_PER_S_MAX)] = 100,
    record_bytes: Annotated[int, AtLeast(0)] = 100,
    latency_median_ms: Annotated[float, AtLeast(0.001)] = 0.5,
    latency_sigma: Milliseconds = 0.4,
) -> None:
    """Kill the leader of the first partition, and start it again."""
    simulation = run.simulation(
        brokers,
        kafka_version=kafka_version,
        config={"zookeeper.session.timeout.ms": session_timeout_ms},
    )
    simulation.network.latency(lognormal_ms=(latency_median_ms, latency_sigma))
    simulation.create_topic(TOPIC, partitions, replication_factor)
    load = run.load(TOPIC, rate_per_s=rate_per_s, record_bytes=record_bytes, consumers=1)
    fail_over(run, simulation, load, partitions, session_timeout_ms * 3 + 60_000)


def fail_over(
    run: Run,
    simulation: Simulation,
    load: Workload,
    partitions: int,
    limit_ms: float,
    *,
    silently: bool = False,
) -> None:
    """Crash the leader of partition 0 at a random moment, and bring it back.

    ``silently`` isolates its machine first, so that peers do not see their connections end.
    """
    simulation.run_for(_WARM_UP_MS + simulation.runtime.rng.random() * 1000)
    run.end_warm_up()
    victim = simulation.partition(TOPIC, 0).leader
    assert victim is not None
    led = [n for n in range(partitions) if simulation.partition(TOPIC, n).leader == victim]
    run.value("partitions_led", len(led))
    run.value("was_controller", simulation.controller.id == victim)
    crashed_ms = simulation.now_ms
    broker = simulation.broker(victim)
    if silently:
        simulation.network.isolate(victim)
    broker.kill()
    account = run.sink.watch.account
    (crash,) = account.crashes
    awaited = {f"{TOPIC}-{number}" for number in led}
    seen = 0

    def all_are_back() -> bool:
        nonlocal seen
        for outage in account.outages[seen:]:  # called after every event, so check each only once
            if outage.is_acknowledged and (outage.ended_us or 0) > crash.begun_us:
                awaited.discard(outage.partition)
        seen = len(account.outages)
        return not awaited

    simulation.run_until(all_are_back, limit_ms)
    simulation.run_for(_AFTER_MS)
    if silently:
        simulation.network.heal()
    broker.start()
    load.stop()
    run.settle(limit_ms)
    run.value("full_isr_ms", simulation.now_ms - crashed_ms)
