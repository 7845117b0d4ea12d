"""A leader dies: how long a producer's records wait under each of its settings.

A killed process closes its connections, so that clients notice at once. A machine that lost its
power does not: clients wait for their request timeout.
"""

from __future__ import annotations

from typing import Any

from ..measuring.parameters import Count, Milliseconds, Version
from ..measuring.run import Run
from .failover import MEASURES as MEASURES
from .failover import TOPIC, fail_over

MATRIX: list[dict[str, list[Any]]] = [
    {"silently": [False, True], "request_timeout_ms": [30_000, 3_000]},
    {"retry_backoff_ms": [100, 1000, 10]},
    {"max_in_flight": [5, 1]},
    {"linger_ms": [0, 100]},
]
HEADLINE = "client_ms"
_LIMIT_MS = 240_000


def scenario(
    run: Run,
    kafka_version: Version = "3.9",
    silently: bool = False,
    request_timeout_ms: Count = 30_000,
    retry_backoff_ms: Count = 100,
    max_in_flight: Count = 5,
    linger_ms: Milliseconds = 0,
    session_timeout_ms: Count = 6_000,
    partitions: Count = 3,
    rate_per_s: Count = 50,
) -> None:
    """Fail over once under a producer with these settings."""
    simulation = run.simulation(
        3, kafka_version=kafka_version, config={"zookeeper.session.timeout.ms": session_timeout_ms}
    )
    simulation.network.latency(lognormal_ms=(0.5, 0.4))
    simulation.create_topic(TOPIC, partitions, 3)
    load = run.load(
        TOPIC,
        rate_per_s=rate_per_s,
        linger_ms=linger_ms,
        request_timeout_ms=request_timeout_ms,
        retry_backoff_ms=retry_backoff_ms,
        max_in_flight=max_in_flight,
    )
    fail_over(run, simulation, load, partitions, _LIMIT_MS, silently=silently)
