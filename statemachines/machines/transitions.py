"""The two state machines of the controller as tables (docs/kafka/partition-states.md,
docs/kafka/replica-states.md).

A transition is legal if the current state is among the predecessors of the target state. Both
machines check these tables before any change; the documentation's pictures and tables are
generated from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, unique
from types import MappingProxyType
from typing import Self, TypeVar

from ...protocol.versions import Behaviour


class _NamedState(IntEnum):
    """A state with Kafka's number and name."""

    kafka_name: str

    def __new__(cls, number: int, kafka_name: str) -> Self:
        state = int.__new__(cls, number)
        state._value_ = number
        state.kafka_name = kafka_name
        return state

    def __str__(self) -> str:
        return self.kafka_name


@unique
class PartitionState(_NamedState):
    """States of a partition."""

    NEW = 0, "NewPartition"
    """The partition has an assignment, but never had a leader."""
    ONLINE = 1, "OnlinePartition"
    """The partition has a leader, as far as the controller knows."""
    OFFLINE = 2, "OfflinePartition"
    """The partition lost its leader, or is about to be deleted."""
    NON_EXISTENT = 3, "NonExistentPartition"
    """The partition was never created, or has been deleted."""


@unique
class ReplicaState(_NamedState):
    """States of a replica."""

    NEW = 1, "NewReplica"
    """The replica was created with its partition or by a reassignment, and cannot lead yet."""
    ONLINE = 2, "OnlineReplica"
    """The replica is assigned, and its broker was sent its role."""
    OFFLINE = 3, "OfflineReplica"
    """The replica's broker or log directory failed, or it was told to stop."""
    DELETION_STARTED = 4, "ReplicaDeletionStarted"
    """The replica's broker was told to delete its log."""
    DELETION_SUCCESSFUL = 5, "ReplicaDeletionSuccessful"
    """The replica's broker confirmed the deletion."""
    DELETION_INELIGIBLE = 6, "ReplicaDeletionIneligible"
    """The replica cannot be deleted now, as its broker is dead or the deletion failed."""
    NON_EXISTENT = 7, "NonExistentReplica"
    """The replica was never created, or has been deleted."""


PARTITION_PREDECESSORS: Mapping[PartitionState, tuple[PartitionState, ...]] = MappingProxyType(
    {
        PartitionState.NEW: (PartitionState.NON_EXISTENT,),
        PartitionState.ONLINE: (PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE),
        PartitionState.OFFLINE: (PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE),
        PartitionState.NON_EXISTENT: (PartitionState.OFFLINE,),
    }
)
"""Legal previous states by target state: 8 of the 16 pairs."""

REPLICA_PREDECESSORS: Mapping[ReplicaState, tuple[ReplicaState, ...]] = MappingProxyType(
    {
        ReplicaState.NEW: (ReplicaState.NON_EXISTENT,),
        ReplicaState.ONLINE: (
            ReplicaState.NEW,
            ReplicaState.ONLINE,
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_INELIGIBLE,
        ),
        ReplicaState.OFFLINE: (
            ReplicaState.NEW,
            ReplicaState.ONLINE,
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_INELIGIBLE,
        ),
        ReplicaState.DELETION_STARTED: (ReplicaState.OFFLINE,),
        ReplicaState.DELETION_SUCCESSFUL: (ReplicaState.DELETION_STARTED,),
        ReplicaState.DELETION_INELIGIBLE: (ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED),
        ReplicaState.NON_EXISTENT: (ReplicaState.DELETION_SUCCESSFUL,),
    }
)
"""Legal previous states by target state: 14 of the 49 pairs."""

_REPLICA_PREDECESSORS_BEFORE_2_3: Mapping[ReplicaState, tuple[ReplicaState, ...]] = (
    MappingProxyType(
        {**REPLICA_PREDECESSORS, ReplicaState.DELETION_INELIGIBLE: (ReplicaState.DELETION_STARTED,)}
    )
)


def replica_predecessors(behaviour: Behaviour) -> Mapping[ReplicaState, tuple[ReplicaState, ...]]:
    """Return the replica table of an emulated release (``ineligible_from_offline``)."""
    if behaviour.ineligible_from_offline:
        return REPLICA_PREDECESSORS
    return _REPLICA_PREDECESSORS_BEFORE_2_3


State = TypeVar("State", PartitionState, ReplicaState)


def markdown_table(predecessors: Mapping[State, tuple[State, ...]]) -> str:
    """Return a table as Markdown: target state, number, legal previous states."""
    lines = ["| target state | number | legal previous states |", "|---|---|---|"]
    for target, previous_states in predecessors.items():
        previous = ", ".join(str(state) for state in previous_states)
        lines.append(f"| {target} | {target.value} | {previous} |")
    return "\n".join(lines) + "\n"


def describe_illegal(
    subject: object, current: State, target: State, predecessors: Mapping[State, tuple[State, ...]]
) -> str:
    """Return the log line of a refused transition."""
    legal = ", ".join(str(state) for state in predecessors[target])
    return (
        f"{subject} cannot move from {current} to {target}: "
        f"it would have to be in one of the states {legal}"
    )
