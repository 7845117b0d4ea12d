"""The two state machines as tables
(docs/kafka/partition-states.md, docs/kafka/replica-states.md)."""

from __future__ import annotations

from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.machines.transitions import (
    PARTITION_PREDECESSORS,
    REPLICA_PREDECESSORS,
    PartitionState,
    ReplicaState,
    markdown_table,
    replica_predecessors,
)


def test_tables_cover_every_state_with_kafkas_numbers() -> None:
    """Eight of sixteen and fourteen of forty-nine pairs are legal."""
    assert list(PARTITION_PREDECESSORS) == list(PartitionState)
    assert sum(map(len, PARTITION_PREDECESSORS.values())) == 8
    assert list(REPLICA_PREDECESSORS) == list(ReplicaState)
    assert sum(map(len, REPLICA_PREDECESSORS.values())) == 14
    assert [s.value for s in PartitionState] == [0, 1, 2, 3]
    assert [s.value for s in ReplicaState] == [1, 2, 3, 4, 5, 6, 7]


def test_before_2_3_one_transition_is_missing() -> None:
    """DeletionIneligible is legal only after DeletionStarted."""
    old = replica_predecessors(behaviour("1.1"))
    assert sum(map(len, old.values())) == 13
    assert old[ReplicaState.DELETION_INELIGIBLE] == (ReplicaState.DELETION_STARTED,)
    assert replica_predecessors(behaviour("2.8")) is REPLICA_PREDECESSORS


def test_the_table_has_one_row_per_state() -> None:
    """A row has the state's number and predecessors."""
    lines = markdown_table(REPLICA_PREDECESSORS).splitlines()
    assert lines[0] == "| target state | number | legal previous states |"
    assert lines[5] == "| ReplicaDeletionStarted | 4 | OfflineReplica |"
    assert len(lines) == 2 + 7


def test_a_partition_has_kafkas_transitions() -> None:
    """``PartitionState.validPreviousStates``, pair by pair."""
    found = {str(state): set(map(str, before)) for state, before in PARTITION_PREDECESSORS.items()}
    assert found == {
        "NewPartition": {"NonExistentPartition"},
        "OnlinePartition": {"NewPartition", "OnlinePartition", "OfflinePartition"},
        "OfflinePartition": {"NewPartition", "OnlinePartition", "OfflinePartition"},
        "NonExistentPartition": {"OfflinePartition"},
    }


def test_a_replica_has_kafkas_transitions() -> None:
    """``ReplicaState.validPreviousStates``, pair by pair."""
    ineligible = "ReplicaDeletionIneligible"
    running = {"NewReplica", "OnlineReplica", "OfflineReplica", ineligible}
    found = {str(state): set(map(str, before)) for state, before in REPLICA_PREDECESSORS.items()}
    assert found == {
        "NewReplica": {"NonExistentReplica"},
        "OnlineReplica": running,
        "OfflineReplica": running,
        "ReplicaDeletionStarted": {"OfflineReplica"},
        "ReplicaDeletionSuccessful": {"ReplicaDeletionStarted"},
        ineligible: {"OfflineReplica", "ReplicaDeletionStarted"},
        "NonExistentReplica": {"ReplicaDeletionSuccessful"},
    }
