"""Metrics of a broker, by the names that Kafka gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...actors.broker.broker import Broker


def broker_metrics(broker: Broker) -> dict[str, Any]:
    """Return those of its replica manager, and those of its controller, which are 0 when inactive.

    Meters (``...PerSec``) are given as their counts since the broker started.
    """
    replicas = broker.replica_manager
    return {
        "LeaderCount": replicas.leader_count,
        "PartitionCount": replicas.partition_count,
        "OfflineReplicaCount": replicas.offline_count,
        "UnderReplicatedPartitions": replicas.under_replicated_count,
        "UnderMinIsrPartitionCount": replicas.under_min_isr_count,
        "AtMinIsrPartitionCount": replicas.at_min_isr_count,
        "IsrShrinksPerSec": replicas.isr_shrinks,
        "IsrExpandsPerSec": replicas.isr_expands,
        "FailedIsrUpdatesPerSec": replicas.failed_isr_updates,
        "MaxLag": broker.fetcher_manager.lag_max,
        **broker.controller.metrics.snapshot(),
    }
