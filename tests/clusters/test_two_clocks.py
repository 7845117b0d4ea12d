"""Dates come from the wall clock, whatever the runtime's own clock says (docs/ARCHITECTURE.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from fakekafka import Simulation
from fakekafka.actors.runtime.virtual import VirtualRuntime
from fakekafka.protocol.records.batch import whole_batches
from fakekafka.protocol.security.delegation_tokens import CreateDelegationTokenRequest
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.one_transaction import write_in_transaction

HOUR_MS = 3_600_000
CONFIG = {
    "delegation.token.secret.key": "key",
    "log.retention.check.interval.ms": 10_000,
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 10_000,
}


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulation]:
    """A cluster whose own clock is an hour behind the wall clock."""
    monkeypatch.setattr(VirtualRuntime, "wall_ms", lambda self: self.now_ms() + HOUR_MS)
    with Simulation(2, seed=3, config=CONFIG, trace=False) as made:
        yield made
        assert made.failures == []


def is_dated(simulation: Simulation, time_ms: int) -> bool:
    """Return whether a time comes from the wall clock, not from the clock that is an hour
    behind.
    """
    return -60_000 < time_ms - simulation.runtime.wall_ms() <= 0


def test_registrations_and_znodes_are_dated(simulation: Simulation) -> None:
    for path in ("/brokers/ids/1", "/brokers/ids/2", "/controller"):
        data, stat = simulation.zookeeper.get(path), simulation.zookeeper.stat(path)
        assert data is not None
        assert stat is not None
        assert is_dated(simulation, int(json.loads(data)["timestamp"])), path
        assert is_dated(simulation, stat.ctime), path


def test_records_of_clients_and_coordinators_are_dated(simulation: Simulation) -> None:
    """This holds for records of a modelled producer, of commits and of transactions."""
    simulation.create_topic("orders", replication_factor=2)
    simulation.producer().produce(("orders", 0), b"v")
    producer = simulation.transactional_producer("shop")
    producer.start_task(write_in_transaction(producer, ("orders", 0), b"sold", commit=True))
    simulation.group_consumer("readers", ["orders"], auto_commit_interval_ms=500)
    simulation.run_for(10_000)
    for topic in ("orders", "__transaction_state", "__consumer_offsets"):
        records = simulation.records(topic, 0)
        assert len(records) >= 2, topic
        assert all(is_dated(simulation, record.timestamp) for record in records), topic


def test_tokens_are_dated(simulation: Simulation) -> None:
    broker = simulation.processes[1].broker
    assert broker is not None
    broker.start_task(broker.security.tokens.create(CreateDelegationTokenRequest(()), "User:a"))
    simulation.run_for(1000)
    (token,) = broker.security.tokens.all()
    assert is_dated(simulation, token.issued_at_ms)


@pytest.mark.parametrize("stamp", ["CreateTime", "LogAppendTime"])
def test_retention_counts_from_the_dates_of_records(simulation: Simulation, stamp: str) -> None:
    """Leader and follower delete a record when it is a minute old, and not before."""
    config = {"message.timestamp.type": stamp, "retention.ms": 60_000}
    simulation.create_topic("orders", replication_factor=2, config=config)
    simulation.produce("orders", b"v")
    simulation.run_for(45_000)
    assert len(simulation.consume("orders")) == 1
    simulation.run_for(30_000)
    partition = simulation.partition("orders", 0)
    assert [partition.replica(broker).log_start_offset for broker in (1, 2)] == [1, 1]


def test_every_replica_dates_its_segments_and_markers_are_dated(simulation: Simulation) -> None:
    simulation.create_topic("orders", replication_factor=2)
    producer = simulation.transactional_producer("shop")
    producer.start_task(write_in_transaction(producer, ("orders", 0), b"sold", commit=True))
    simulation.run_for(10_000)
    for number in (1, 2):
        broker = simulation.processes[number].broker
        assert broker is not None
        hosted = broker.replica_manager.hosted.partition(TopicPartition("orders", 0))
        assert hosted is not None
        assert hosted.log is not None
        assert is_dated(simulation, hosted.log.active.last_modified_ms)
        (marker,) = [
            batch
            for batch in whole_batches(hosted.log.read(0, 10_000, 10).batches)
            if batch.is_control
        ]
        assert is_dated(simulation, marker.max_timestamp)


def test_commits_of_a_group_without_members_expire(simulation: Simulation) -> None:
    """They are kept for ``offsets.retention.minutes``, counted from a date."""
    simulation.create_topic("orders")
    simulation.produce("orders", b"v")
    reader = simulation.group_consumer("readers", ["orders"], auto_commit_interval_ms=500)
    simulation.run_for(10_000)
    reader.halt()
    simulation.run_for(50_000)
    assert simulation.group("readers").offsets
    simulation.run_for(120_000)
    assert simulation.group("readers").state == "Dead"


def test_an_ensemble_dates_znodes(simulation: Simulation) -> None:
    """The leader sets the date, and followers adopt it."""
    with Simulation(1, zookeepers=3, trace=False) as ensemble:
        stat = ensemble.zookeeper.stat("/brokers/ids/1")
        assert stat is not None
        assert is_dated(ensemble, stat.ctime)
