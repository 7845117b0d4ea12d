"""The protocols Kafka's data-loss stories are told for, and steps they share.

``OLD`` is the protocol of 0.10 (truncate to the high watermark), ``KIP_101`` asks one epoch (1.1),
``ON_FETCH`` and ``NEWEST`` find divergence on fetch (2.8, 3.9); ``ROUNDS`` is that of 2.0 to 2.7.
"""

from __future__ import annotations

from typing import Any

from fakekafka.tests.support.replica_cluster import ReplicaCluster

Protocol = tuple[str, dict[str, str]]
"""A version, and the flags in which the protocol differs from it."""

OLD: Protocol = ("0.10", {})
KIP_101: Protocol = ("1.1", {})
ROUNDS: Protocol = ("2.8", {"truncation": "leader_epoch"})
ON_FETCH: Protocol = ("2.8", {})
NEWEST: Protocol = ("3.9", {})
CURED_101 = (KIP_101, ROUNDS, ON_FETCH, NEWEST)
CURED_279 = (ROUNDS, ON_FETCH, NEWEST)


def name(protocol: Protocol) -> str:
    return protocol[0] + ("" if not protocol[1] else "-rounds")


def cluster_of(protocol: Protocol, brokers: int = 2, **more: Any) -> ReplicaCluster:
    version, flags = protocol
    return ReplicaCluster(version, brokers, flags=flags, **more)


def look(cluster: ReplicaCluster, *brokers: int) -> tuple[tuple[str, int], ...]:
    """(content, high watermark) of each broker's replica."""
    return tuple((cluster[b].content(), cluster[b].high_watermark()) for b in brokers)


def restart(cluster: ReplicaCluster, broker: int) -> None:
    """Come back as whatever the metadata says, without an election."""
    cluster[broker].start()
    cluster.update_metadata()
    cluster.leader_and_isr(broker)


def checkpoint_and_kill(cluster: ReplicaCluster, broker: int) -> None:
    cluster[broker].manager.upkeep.checkpoint_high_watermarks()
    cluster[broker].kill()
