"""KAFKA-5642 replayed: the controller with a window of ZooKeeper requests, against published times.

Each run is a whole cluster with a fraction (1 in ``part``) of the published number of topics. The
time grows linearly with the number of topics and is scaled up. The cost of the log line of
KAFKA-6116 is quadratic: its cost per partition is scaled up instead.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from ...actors.network.costs import PUBLISHED_2018
from ..measuring.parameters import AtLeast, AtMost, Count, OneOf, Version
from ..measuring.run import Run
from .large_clusters import failover_ms, loaded_cluster, shutdown_ms

SHAPES = {
    "shutdown": (25_000, 1, 2),
    "failover-2000x50": (2_000, 50, 1),
    "failover-100000x1": (100_000, 1, 1),
}
"""The measured sizes: topics, partitions of each topic, replicas of each partition."""
MATRIX: list[dict[str, list[Any]]] = [
    {"what": ["shutdown"], "kafka_version": ["0.10"], "logs": [True, False]},
    {"what": ["shutdown"], "kafka_version": ["1.1"], "in_flight": [10, 1, 2]},
    {"what": ["failover-2000x50", "failover-100000x1"], "kafka_version": ["0.10", "1.1"]},
]
RUNS = 1
HEADLINE = "scaled_s"
MEASURES = {
    "scaled_s": "virtual time of the shutdown or the failover, in seconds, for all topics",
    "partition_ms": "the same for each partition, of a shutdown for each replica of the broker",
}
PUBLISHED: list[dict[str, Any]] = [
    {
        "title": "controlled shutdown, 10,000 replicas: 1.0.0 / without its log line",
        "above": {"what": "shutdown", "kafka_version": "0.10", "logs": True, "in_flight": 10},
        "below": {"what": "shutdown", "kafka_version": "0.10", "logs": False, "in_flight": 10},
        "published": [390.0, 30.0],
        "source": "Jun Rao, Apache Kafka Supports 200K Partitions Per Cluster, 2018",
    },
    {
        "title": "controlled shutdown, 10,000 replicas: without the log line / 1.1.0",
        "above": {"what": "shutdown", "kafka_version": "0.10", "logs": False, "in_flight": 10},
        "below": {"what": "shutdown", "kafka_version": "1.1", "in_flight": 10},
        "published": [30.0, 3.0],
        "source": "Jun Rao, 2018",
    },
    {
        "title": "controlled shutdown: 1 request in flight / 2",
        "above": {"what": "shutdown", "kafka_version": "1.1", "in_flight": 1},
        "below": {"what": "shutdown", "kafka_version": "1.1", "in_flight": 2},
        "published": [9.7, 6.2],
        "source": "KAFKA-5894, pull request 3860",
    },
    {
        "title": "controller failover, 2,000 topics of 50: one request at a time / 1.1.0",
        "above": {"what": "failover-2000x50", "kafka_version": "0.10"},
        "below": {"what": "failover-2000x50", "kafka_version": "1.1"},
        "published": [28.0, 14.0],
        "source": "Jun Rao, 2018",
    },
    {
        "title": "controller failover, 100,000 topics: one request at a time / a window",
        "above": {"what": "failover-100000x1", "kafka_version": "0.10"},
        "below": {"what": "failover-100000x1", "kafka_version": "1.1"},
        "published": [63.0, 17.0],
        "source": "KAFKA-5642, pull request 3765",
    },
]
BUDGET = {"virtual_s": None}


def cost(what: str, part: int) -> float:
    """Return about how many seconds a run takes."""
    topics, partitions, factor = SHAPES[what]
    return topics * partitions * factor / part * 0.002 + 1


def scenario(
    run: Run,
    what: Annotated[str, OneOf(tuple(SHAPES))] = "shutdown",
    kafka_version: Version = "1.1",
    in_flight: Count = 10,
    logs: bool = False,
    part: Annotated[int, AtLeast(1), AtMost(1000)] = 100,
) -> None:
    """Fail over the controller, or shut down a broker, of a large cluster at rest."""
    topics, partitions, factor = SHAPES[what]
    topics = max(topics // part, 1)
    scale = SHAPES[what][0] / topics
    logged_ms = PUBLISHED_2018.logged_partition_ms * scale if logs else 0.0
    costs = dataclasses.replace(PUBLISHED_2018, logged_partition_ms=logged_ms)
    simulation = loaded_cluster(run, costs, kafka_version, (topics, partitions, factor), in_flight)
    taken_ms = shutdown_ms(simulation) if what == "shutdown" else failover_ms(simulation)
    run.value("scaled_s", taken_ms * scale / 1000)
    count = topics * partitions * factor / (5 if what == "shutdown" else 1)
    run.value("partition_ms", taken_ms / count)
