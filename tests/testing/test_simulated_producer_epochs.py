"""An idempotent producer goes on in a new epoch after a batch was given up (KIP-360)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.actors.clients.producer_queue import EPOCH_MAX, Batch, PartitionQueue
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import KAFKA_VERSIONS

IDEMPOTENT = [version for version in KAFKA_VERSIONS if version != "0.10"]
TP = TopicPartition("t", 0)


def numbers(simulation: Simulation, partition: int = 0) -> list[tuple[int, int]]:
    """(producer epoch, base sequence) of every batch the leader has."""
    leader = simulation.partition("t", partition).leader
    broker = simulation.processes[leader].broker
    log = broker.replica_manager.partition(TopicPartition("t", partition)).log
    batches = log.read(0, 1 << 20, log.log_end_offset, True).batches
    return [(batch.producer_epoch, batch.base_sequence) for batch in batches]


class Outcomes(list[str]):
    """Names of the errors that records ended with, in the order of the records' ends."""

    def note(self, error: ErrorCode, _offset: int) -> None:
        self.append(error.name)


def send(simulation: Simulation, producer: Any, outcomes: Outcomes, *values: bytes) -> None:
    """Produce and wait until all that was produced has ended."""
    wanted = len(outcomes) + len(values)
    for value in values:
        producer.produce(("t", 0), value, callback=outcomes.note)
    simulation.run_until(lambda: len(outcomes) == wanted)


@pytest.mark.parametrize("version", IDEMPOTENT)
def test_an_expired_batch_costs_an_epoch_and_nothing_more(version: str) -> None:
    """What follows is numbered from 0 in the next epoch, so the broker takes it."""
    with Simulation(3, kafka_version=version, topics={"t": 1}, trace=False) as simulation:
        producer = simulation.producer(delivery_timeout_ms=3000, request_timeout_ms=1000)
        outcomes = Outcomes()
        send(simulation, producer, outcomes, b"first")
        for broker_id in (1, 2, 3):
            simulation.broker(broker_id).kill()
        send(simulation, producer, outcomes, b"expires")
        for broker_id in (1, 2, 3):
            simulation.broker(broker_id).start(wait=False)
        simulation.run_until(lambda: "t" in simulation.topics())
        simulation.run_until(lambda: len(simulation.partition("t", 0).isr) == 3)
        send(simulation, producer, outcomes, b"a", b"b")
        assert outcomes == ["NONE", "REQUEST_TIMED_OUT", "NONE", "NONE"]
        assert numbers(simulation) == [(0, 0), (1, 0), (1, 1)]


def test_a_refused_batch_takes_no_others_along() -> None:
    """Those sent behind it are refused for the gap, and sent again in the next epoch."""
    topics = {"t": {"partitions": 1, "config": {"max.message.bytes": "200"}}}
    with Simulation(1, topics=topics, trace=False) as simulation:
        producer = simulation.producer()
        outcomes = Outcomes()
        send(simulation, producer, outcomes, b"a")
        send(simulation, producer, outcomes, b"x" * 500, b"b", b"c")
        assert sorted(outcomes) == ["MESSAGE_TOO_LARGE", "NONE", "NONE", "NONE"]
        assert [record.value for record in simulation.records("t", 0)] == [b"a", b"b", b"c"]
        assert numbers(simulation) == [(0, 0), (1, 0), (1, 1)]
        assert producer.failed == 1


@pytest.mark.parametrize("error", ["OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID"])
def test_a_broker_that_forgot_the_producer_is_told_a_new_epoch(error: str) -> None:
    """The very next number is refused, so nothing that is sent again would fill the gap."""
    with Simulation(1, topics={"t": 1}, trace=False) as simulation:
        producer = simulation.producer()
        outcomes = Outcomes()
        send(simulation, producer, outcomes, b"a")
        simulation.inject("Produce", error)
        send(simulation, producer, outcomes, b"b", b"c")
        assert outcomes == ["NONE"] * 3
        assert [record.value for record in simulation.records("t", 0)] == [b"a", b"b", b"c"]
        assert numbers(simulation)[0] == (0, 0)
        assert numbers(simulation)[1:] == [(1, 0), (1, 1)]


def test_other_partitions_go_on_in_the_new_epoch() -> None:
    """Each numbers anew once nothing of its own is under way."""
    with Simulation(1, topics={"t": 2}, trace=False) as simulation:
        producer = simulation.producer()
        outcomes = Outcomes()
        for number, partition in enumerate((0, 1, 1), 1):
            producer.produce(("t", partition), b"a", callback=outcomes.note)
            simulation.run_until(lambda: len(outcomes) == number)  # noqa: B023
        simulation.inject("Produce", "INVALID_RECORD")
        send(simulation, producer, outcomes, b"refused")
        send(simulation, producer, outcomes, b"b")
        producer.produce(("t", 1), b"b", callback=outcomes.note)
        simulation.run_until(lambda: len(outcomes) == 6)
        assert numbers(simulation, 0) == [(0, 0), (1, 0)]
        assert numbers(simulation, 1) == [(0, 0), (0, 1), (1, 0)]


def test_the_last_epoch_is_followed_by_another_producer_id() -> None:
    with Simulation(1, topics={"t": 1}, trace=False) as simulation:
        producer = simulation.producer()
        outcomes = Outcomes()
        send(simulation, producer, outcomes, b"a")
        producer_id, _ = producer._identity
        producer._identity = (producer_id, EPOCH_MAX)
        send(simulation, producer, outcomes, b"b")
        simulation.inject("Produce", "INVALID_RECORD")
        send(simulation, producer, outcomes, b"refused", b"c")
        assert outcomes == ["NONE", "NONE", "INVALID_RECORD", "NONE"]
        assert producer._identity == (producer_id + 1, 0)
        assert numbers(simulation) == [(0, 0), (EPOCH_MAX, 0), (0, 0)]


def test_an_expired_batch_that_was_stored_leaves_no_gap() -> None:
    """The batch behind it was acknowledged, so the numbers go on in the same epoch."""
    queue = PartitionQueue(TP, is_idempotent=True)
    identity = (7, 0)
    queue.go_on_as(identity)
    expired, acknowledged = Batch(0), Batch(0)
    for number, batch in enumerate((expired, acknowledged)):
        batch.records.append((None, b"x", 0, None))
        batch.base_sequence = number
    queue.next_sequence = 2
    queue.expired(expired)
    assert queue.ready_for is None
    assert queue.wants_new_epoch(), "unless the next one is acknowledged"
    queue.acknowledged(acknowledged)
    assert not queue.wants_new_epoch()
    queue.go_on_as(identity)
    assert (queue.ready_for, queue.next_sequence) == (identity, 2)


def test_without_idempotence_nothing_is_numbered() -> None:
    """Neither a failed nor an expired batch holds the others up."""
    with Simulation(1, topics={"t": 1}, trace=False) as simulation:
        producer = simulation.producer(enable_idempotence=False)
        outcomes = Outcomes()
        send(simulation, producer, outcomes, b"a")
        simulation.inject("Produce", "INVALID_RECORD")
        send(simulation, producer, outcomes, b"refused", b"b")
        assert outcomes == ["NONE", "INVALID_RECORD", "NONE"]
        assert numbers(simulation) == [(-1, -1)] * 2
