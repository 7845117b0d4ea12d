"""A leader crashes: the judged releases compared, with equal settings and their own defaults.

Until 2.4 a broker's session timed out after 6 s, since 2.5 after 18 s (KIP-537): with their own
defaults newer releases detect a crash later, by design.
"""

from __future__ import annotations

from typing import Any

from ...protocol.versions import JUDGED_VERSIONS
from ..measuring.parameters import Count, Milliseconds, Version
from ..measuring.run import Run
from .failover import MEASURES as MEASURES
from .failover import TOPIC, fail_over

MATRIX: dict[str, list[Any]] = {
    "kafka_version": list(JUDGED_VERSIONS),
    "own_defaults": [False, True],
}
HEADLINE = "unavailable_ms"
_SESSION_TIMEOUT_MS = 6000
_LIMIT_MS = 120_000


def scenario(
    run: Run,
    kafka_version: Version = "3.9",
    own_defaults: bool = False,
    partitions: Count = 6,
    rate_per_s: Count = 100,
    latency_median_ms: Milliseconds = 0.5,
) -> None:
    """Fail over once."""
    config = {} if own_defaults else {"zookeeper.session.timeout.ms": _SESSION_TIMEOUT_MS}
    simulation = run.simulation(3, kafka_version=kafka_version, config=config)
    simulation.network.latency(lognormal_ms=(latency_median_ms, 0.4))
    simulation.create_topic(TOPIC, partitions, 3)
    load = run.load(TOPIC, rate_per_s=rate_per_s, consumers=1)
    fail_over(run, simulation, load, partitions, _LIMIT_MS)
