"""A fault in the controller or in replication makes a scenario differ from what Kafka showed."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.election import strategies
from fakekafka.protocol.data import EpochEndOffset
from fakekafka.replication.log.epoch_history import LeaderEpochCache
from fakekafka.replication.log.producer_state import ProducerEntry
from fakekafka.replication.partition.partition import Partition
from fakekafka.statemachines.machines.known_topics import KnownTopics
from fakekafka.tests.fidelity import catalogue, comparison, differences, recording, running

_offline = strategies.offline_partition_leader_election


def _last_one_leads(assignment: Any, isr: Any, live: Any, unclean: bool) -> Any:
    return _offline(tuple(reversed(assignment)), isr, live, unclean)


def _never_unclean(assignment: Any, isr: Any, live: Any, unclean: bool) -> Any:
    return _offline(assignment, isr, live, False)


def _always_unclean(assignment: Any, isr: Any, live: Any, unclean: bool) -> Any:
    return _offline(assignment, isr, live, True)


def _any_in_sync(assignment: Any, isr: Any, live: Any) -> Any:
    return next((replica for replica in assignment if replica in isr and replica in live), None)


def _nobody(*_arguments: Any) -> None:
    return None


def _end_of_the_log(self: Any, epoch: int, log_end_offset: int) -> EpochEndOffset:
    return EpochEndOffset(epoch, log_end_offset)


_STRATEGIES = {
    "the last in-sync replica is elected": (
        "offline_partition_leader_election",
        _last_one_leads,
        "crash_crash_crash_start_123",
    ),
    "no election is unclean": (
        "offline_partition_leader_election",
        _never_unclean,
        "crash_of_a_leader_with_unreplicated_records",
    ),
    "every election may be unclean": (
        "offline_partition_leader_election",
        _always_unclean,
        "unclean_election_is_switched_on",
    ),
    "a preferred election takes anybody in sync": (
        "preferred_replica_partition_leader_election",
        _any_in_sync,
        "preferred_election_errors",
    ),
    "a broker that stops keeps its leaders": (
        "controlled_shutdown_partition_leader_election",
        _nobody,
        "controller_that_leads_stops",
    ),
    "a move finds no new leader": (
        "reassign_partition_leader_election",
        _nobody,
        "reassign_by_request",
    ),
}
_CLASSES: dict[str, tuple[type[Any], str, Any, str]] = {
    "followers do not join the ISR": (
        Partition,
        "_maybe_expand_isr",
        _nobody,
        "follower_is_slow_but_registered",
    ),
    "every epoch ends at the end of the log": (
        LeaderEpochCache,
        "end_offset_for",
        _end_of_the_log,
        "offsets_and_epochs_after_failovers",
    ),
    "duplicates are not known": (ProducerEntry, "duplicate_of", _nobody, "many_duplicates"),
    "nobody counts in-sync replicas": (
        Partition,
        "min_isr",
        property(lambda self: 1),
        "minimum_of_in_sync_replicas",
    ),
    "deletions are forgotten": (
        KnownTopics,
        "begin_topic_deletion",
        _nobody,
        "deletion_with_a_dead_replica",
    ),
}


def _differs(name: str) -> bool:
    """Return True if a scenario differs from the recording in a way that is not listed."""
    known = recording.load("3.9", name)
    assert known is not None
    try:
        stage = running.simulate(catalogue.all_scenarios()[name], "3.9")
    except Exception:
        return True
    found = comparison.differences(known, stage.steps)
    return bool(stage.notes or differences.split("3.9", name, found)[0])


@pytest.mark.parametrize("fault", _STRATEGIES)
def test_a_fault_in_an_election_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scenario that the table names differs from its recording."""
    function, planted, name = _STRATEGIES[fault]
    monkeypatch.setattr(strategies, function, planted)
    assert _differs(name)


@pytest.mark.pure  # patches methods that compiled code calls directly
@pytest.mark.parametrize("fault", _CLASSES)
def test_a_fault_in_replication_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scenario that the table names differs from its recording."""
    owner, method, planted, name = _CLASSES[fault]
    monkeypatch.setattr(owner, method, planted)
    assert _differs(name)


def test_without_a_fault_the_scenarios_are_equal() -> None:
    """The scenarios equal their recordings without the faults of the tests above."""
    names = {name for *_, name in _STRATEGIES.values()}
    names |= {name for *_, name in _CLASSES.values()}
    assert [name for name in sorted(names) if _differs(name)] == []
