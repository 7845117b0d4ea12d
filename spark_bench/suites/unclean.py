"""The last replica in sync dies: wait for it, or lose records and go on (unclean election).

A follower is down while the leader alone acknowledges records; then the leader dies, and the
follower comes back. With unclean elections the follower leads, and the records it lacks are lost.
Without, the partition waits for the old leader.
"""

from __future__ import annotations

from typing import Any

from ..measuring.parameters import Count, Milliseconds, Version
from ..measuring.run import Run

TOPIC = "bench"
MATRIX: dict[str, list[Any]] = {"unclean": [False, True], "kafka_version": ["0.10", "3.9"]}
HEADLINE = "lost"
MEASURES = {
    "lost": "acknowledged records that cannot be read at the end",
    "alone_ms": "how long the leader was alone in the ISR",
    "replicas_differ": "whether replicas hold different records at the end",
}
_LIMIT_MS = 300_000


def scenario(
    run: Run,
    unclean: bool = False,
    kafka_version: Version = "3.9",
    behind_ms: Milliseconds = 2_000,
    leader_away_ms: Milliseconds = 30_000,
    session_timeout_ms: Count = 6_000,
    rate_per_s: Count = 50,
) -> None:
    """Kill a follower, then the leader; bring back the follower, and later the leader."""
    simulation = run.simulation(
        3,
        kafka_version=kafka_version,
        config={
            "zookeeper.session.timeout.ms": session_timeout_ms,
            "unclean.leader.election.enable": str(unclean).lower(),
            "auto.leader.rebalance.enable": "false",
        },
    )
    simulation.network.latency(lognormal_ms=(0.5, 0.4))
    controller = simulation.controller.id
    first, second = [broker for broker in simulation.broker_ids if broker != controller]
    simulation.create_topic(
        TOPIC, assignment={0: [first, second]}, config={"min.insync.replicas": 1}
    )
    load = run.load(TOPIC, rate_per_s=rate_per_s)
    simulation.run_for(2000 + simulation.runtime.rng.random() * 1000)
    run.end_warm_up()
    simulation.broker(second).kill()
    simulation.run_until(lambda: simulation.partition(TOPIC, 0).isr == (first,), _LIMIT_MS)
    alone_ms = simulation.now_ms
    simulation.run_for(behind_ms)
    run.value("alone_ms", simulation.now_ms - alone_ms)
    simulation.broker(first).kill()
    simulation.run_for(2 * session_timeout_ms)
    simulation.broker(second).start()
    simulation.run_for(leader_away_ms)
    simulation.broker(first).start()
    load.stop()
    run.settle(_LIMIT_MS, judges=False)
    lost = int(run.values["lost"])
    logs = {simulation.log_bytes(TOPIC, 0, broker) for broker in (first, second)}
    run.value("replicas_differ", len(logs) > 1)
    if lost and not unclean:
        run.problem(f"{lost} acknowledged records are lost without an unclean election")
