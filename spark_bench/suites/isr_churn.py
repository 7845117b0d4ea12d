"""A follower is slow from time to time: how often it leaves the ISR, and what producers notice.

The follower stops fetching for about a given time, as during a long garbage collection. A short
``replica.lag.time.max.ms`` drops it often; a long one makes producers with acks=all wait for it.
"""

from __future__ import annotations

from ..measuring.parameters import Count, Milliseconds, Version
from ..measuring.run import Run

TOPIC = "bench"
MATRIX = {"lag_time_ms": [30_000, 10_000, 2_000], "stall_ms": [3_000, 12_000]}
HEADLINE = "isr_shrinks"
MEASURES = {
    "isr_shrinks": "how often leaders dropped a replica from the ISR",
    "isr_expands": "how often they took one in again",
    "below_full_isr_s": "sum over partitions of the time with a replica out of sync",
}
_STEP_MS = 100


def scenario(
    run: Run,
    lag_time_ms: Count = 30_000,
    stall_ms: Milliseconds = 3_000,
    every_ms: Milliseconds = 15_000,
    stalls: Count = 4,
    partitions: Count = 4,
    kafka_version: Version = "3.9",
    rate_per_s: Count = 50,
) -> None:
    """Hold back a follower's fetches several times."""
    simulation = run.simulation(
        3, kafka_version=kafka_version, config={"replica.lag.time.max.ms": lag_time_ms}
    )
    rng = simulation.runtime.rng
    simulation.network.latency(lognormal_ms=(0.5, 0.4))
    assignment = {number: [1, 2, 3] for number in range(partitions)}
    simulation.create_topic(TOPIC, assignment=assignment, config={"min.insync.replicas": 2})
    load = run.load(TOPIC, rate_per_s=rate_per_s)
    simulation.run_for(2000)
    run.end_warm_up()
    below_ms = 0.0

    def let_pass(span_ms: float) -> None:
        nonlocal below_ms
        end_ms = simulation.now_ms + span_ms
        while simulation.now_ms < end_ms:
            simulation.run_for(_STEP_MS)
            views = [simulation.partition(TOPIC, number) for number in range(partitions)]
            below_ms += _STEP_MS * sum(len(view.isr) < len(view.replicas) for view in views)

    for _ in range(stalls):
        length_ms = stall_ms * (0.5 + rng.random())
        hold = simulation.network.hold(
            lambda delivery: (
                delivery.sender.machine == "broker-3"
                and type(delivery.message).__name__ == "FetchRequest"
            )
        )
        let_pass(length_ms)
        hold.end()
        let_pass(max(every_ms - length_ms, 0))
    metrics = [simulation.broker(broker).metrics for broker in simulation.broker_ids]
    run.value("isr_shrinks", sum(one["IsrShrinksPerSec"] for one in metrics))
    run.value("isr_expands", sum(one["IsrExpandsPerSec"] for one in metrics))
    load.stop()
    run.value("below_full_isr_s", below_ms / 1000)
    run.settle()
