"""Observations for tests of the articles' claims: requests sent and states passed through."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.control import LeaderAndIsrRequest
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.statemachines.machines.transitions import ReplicaState
from fakekafka.tests.support.controller_cluster import ControllerCluster

ALL = JUDGED_VERSIONS
TP = TopicPartition("t", 0)

Decision = tuple[int, int, int, bool]


def decisions(
    cluster: ControllerCluster, partition: TopicPartition, to: int | None = None
) -> list[Decision]:
    """Return (destination, leader, leader epoch, is new) of each LeaderAndIsr for a partition."""
    return [
        (destination, state.leader, state.leader_epoch, state.is_new)
        for destination, request in cluster.sent
        if isinstance(request, LeaderAndIsrRequest) and to in (None, destination)
        for state in request.partition_states
        if state.topic_partition == partition
    ]


def recipients(cluster: ControllerCluster, partition: TopicPartition, epoch: int) -> set[int]:
    """Return the brokers that got a LeaderAndIsr with the given leader epoch."""
    return {to for to, _, leader_epoch, _ in decisions(cluster, partition) if leader_epoch == epoch}


def spy_on_replica_states(cluster: ControllerCluster) -> set[ReplicaState]:
    """Return a set that collects the replica states in the active controller from now on."""
    seen: set[ReplicaState] = set()
    machine = cluster.active.replica_state_machine
    original = machine.handle_state_changes_by_broker

    async def spy(by_broker: Any, target: ReplicaState) -> None:
        await original(by_broker, target)
        context = cluster.active.context
        for broker_id, partitions in by_broker.items():
            seen.update(context.states.replica_state_on(broker_id, tp) for tp in partitions)

    machine.handle_state_changes_by_broker = spy  # type: ignore[method-assign]
    return seen
