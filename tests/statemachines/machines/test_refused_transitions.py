"""A refused transition names its subject, both states and the legal ones, and changes nothing.

The tables are those of docs/kafka/partition-states.md, docs/kafka/replica-states.md, written out
here by Kafka's names.
"""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.election.strategies import OfflinePartition
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.statemachines.machines.transitions import PartitionState, ReplicaState
from fakekafka.tests.support.controller_core import Core, MakeCore

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)

PARTITION_STATES = {str(state): state for state in PartitionState}
REPLICA_STATES = {str(state): state for state in ReplicaState}
LED = ("OnlinePartition", "OfflinePartition")

PARTITIONS = {
    "NewPartition": "NonExistentPartition",
    "OnlinePartition": "NewPartition, OnlinePartition, OfflinePartition",
    "OfflinePartition": "NewPartition, OnlinePartition, OfflinePartition",
    "NonExistentPartition": "OfflinePartition",
}
REPLICAS = {
    "NewReplica": "NonExistentReplica",
    "OnlineReplica": "NewReplica, OnlineReplica, OfflineReplica, ReplicaDeletionIneligible",
    "OfflineReplica": "NewReplica, OnlineReplica, OfflineReplica, ReplicaDeletionIneligible",
    "ReplicaDeletionStarted": "OfflineReplica",
    "ReplicaDeletionSuccessful": "ReplicaDeletionStarted",
    "ReplicaDeletionIneligible": "OfflineReplica, ReplicaDeletionStarted",
    "NonExistentReplica": "ReplicaDeletionSuccessful",
}
"""Legal previous states by target state."""


def illegal(table: dict[str, str]) -> list[tuple[str, str]]:
    return [
        (current, target)
        for target, legal in table.items()
        for current in table
        if current not in legal.split(", ")
    ]


def everything(core: Core) -> tuple[Any, ...]:
    """Return everything that a transition could have changed."""
    context = core.context
    return (
        {path: node.data for path, node in core.zookeeper.tree.nodes.items()},
        list(core.channels.sent),
        context.states.partition_state(TP),
        core.replica_state(TP, 5),
        context.topics.partition_leadership_info(TP),
        context.topics.partition_full_replica_assignment(TP),
        context.states.offline_partition_count,
    )


@pytest.mark.parametrize(("current", "target"), illegal(PARTITIONS))
def test_an_illegal_move_of_a_partition(core: Core, current: str, target: str) -> None:
    """CP-8, CP-12, CP-13, CP-19: eight pairs; the result does not mention the partition."""
    core.assign(TP, 5)
    if current in LED:
        core.lead(TP, 5, (5,))
    core.put(TP, PARTITION_STATES[current])
    before = everything(core)
    assert core.move([TP], PARTITION_STATES[target], OfflinePartition()) == {}
    assert everything(core) == before
    assert core.logged == [
        (
            "error",
            f"partition t-0 cannot move from {current} to {target}: "
            f"it would have to be in one of the states {PARTITIONS[target]}",
        )
    ]


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
@pytest.mark.parametrize(("current", "target"), illegal(REPLICAS))
def test_an_illegal_move_of_a_replica(
    make_core: MakeCore, version: str, current: str, target: str
) -> None:
    """CP-26: thirty-five pairs; none of them reaches ZooKeeper or a broker."""
    core = make_core(5, version=version)
    core.assign(TP, 5)
    core.lead(TP, 5, (5,))
    core.put_replica(TP, 5, REPLICA_STATES[current])
    before = everything(core)
    core.move_replicas(TP, REPLICA_STATES[target], 5)
    assert everything(core) == before
    legal = REPLICAS[target]
    if target == "ReplicaDeletionIneligible" and version in ("0.10", "1.1"):
        legal = "ReplicaDeletionStarted"
    assert core.logged == [
        (
            "error",
            f"replica 5 of t-0 cannot move from {current} to {target}: "
            f"it would have to be in one of the states {legal}",
        )
    ]


def test_there_are_eight_illegal_partition_moves_and_thirty_five_replica_moves() -> None:
    """8 legal pairs of 16; 14 of 49 (docs/kafka/partition-states.md)."""
    assert (len(illegal(PARTITIONS)), len(illegal(REPLICAS))) == (8, 35)


def test_legal_moves_beside_an_illegal_one_are_made(core: Core) -> None:
    """Only the refused partition is skipped (docs/kafka/partition-states.md)."""
    for tp in (TP, OTHER):
        core.assign(tp, 5)
    core.put(OTHER, PartitionState.NEW)
    core.move([TP, OTHER], PartitionState.ONLINE, OfflinePartition())
    assert core.context.states.partition_state(TP) is PartitionState.NON_EXISTENT
    assert core.context.states.partition_state(OTHER) is PartitionState.ONLINE
    assert core.stored(OTHER) is not None
    assert core.errors().startswith("partition t-0 cannot move from NonExistentPartition to")
