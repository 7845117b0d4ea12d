"""An idempotent producer continues in a new epoch after a batch failed (KIP-360)."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.actors.clients.producer_queue import (
    EPOCH_MAX,
    Identity,
    PartitionQueue,
    ProducerBatch,
)
from fakekafka.protocol.data import ProduceRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.present import present

IDEMPOTENT = [version for version in JUDGED_VERSIONS if version != "0.10"]
TP = TopicPartition("t", 0)


def numbers(simulation: Simulation, partition: int = 0) -> list[tuple[int, int]]:
    """Return (producer epoch, base sequence) of every batch in the leader's log."""
    leader = present(simulation.partition("t", partition).leader)
    broker = present(simulation.processes[leader].broker)
    log = present(
        present(broker.replica_manager.hosted.partition(TopicPartition("t", partition))).log
    )
    batches = log.read(0, 1 << 20, log.log_end_offset, True).batches
    return [(batch.producer_epoch, batch.base_sequence) for batch in batches]


class Outcomes(list[str]):
    """Names of the errors with which records completed, in order."""

    def note(self, error: ErrorCode, _offset: int) -> None:
        self.append(error.name)


def send(simulation: Simulation, producer: Any, outcomes: Outcomes, *values: bytes) -> None:
    """Produce records and wait until all have completed."""
    wanted = len(outcomes) + len(values)
    for value in values:
        producer.produce(("t", 0), value, callback=outcomes.note)
    simulation.run_until(lambda: len(outcomes) == wanted)


@pytest.mark.parametrize("version", IDEMPOTENT)
def test_an_expired_batch_costs_an_epoch_and_nothing_more(version: str) -> None:
    """After an expired batch, sequence numbers restart at 0 in the next epoch."""
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
    """Batches after a refused one are sent again in the next epoch."""
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
def test_a_broker_that_forgot_the_producer_gets_its_batches_in_a_new_epoch(error: str) -> None:
    """A broker that forgot the producer gets all unacknowledged batches in the next epoch."""
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


def test_other_partitions_enter_the_new_epoch_when_nothing_is_in_flight() -> None:
    """Other partitions enter the new epoch once they have no batch in flight."""
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
        producer._identity = Identity(producer_id, EPOCH_MAX)
        send(simulation, producer, outcomes, b"b")
        simulation.inject("Produce", "INVALID_RECORD")
        send(simulation, producer, outcomes, b"refused", b"c")
        assert outcomes == ["NONE", "NONE", "INVALID_RECORD", "NONE"]
        assert producer._identity == (producer_id + 1, 0)
        assert numbers(simulation) == [(0, 0), (EPOCH_MAX, 0), (0, 0)]


def sent(queue: PartitionQueue, count: int) -> list[ProducerBatch]:
    """Return batches of one record, numbered and tracked as after their first send."""
    batches = []
    for _ in range(count):
        batch = ProducerBatch(0)
        batch.records.append((None, b"x", 0, None))
        batch.base_sequence = queue.next_sequence
        queue.next_sequence += 1
        queue.tracked.append(batch)
        batches.append(batch)
    return batches


def test_an_expired_batch_that_was_stored_leaves_no_gap() -> None:
    """If a batch after the expired one is acknowledged, the epoch is kept."""
    queue = PartitionQueue(TP, is_idempotent=True)
    identity = Identity(7, 0)
    queue.renumber(identity)
    expired, acknowledged = sent(queue, 2)
    expired.is_retried = True
    queue.record_expired(expired)
    assert not queue.numbering_identity
    assert not queue.resolve_sequences(), "as long as the next one may be acknowledged"
    queue.record_acknowledged(acknowledged)
    assert not queue.resolve_sequences()
    assert [queue.numbering_identity, queue.next_sequence] == [identity, 2]


def test_no_epoch_is_raised_while_a_batch_behind_the_expired_one_may_be_stored() -> None:
    """A batch after the expired one keeps its number in retries, so that it is not stored twice."""
    queue = PartitionQueue(TP, is_idempotent=True)
    queue.renumber(Identity(7, 0))
    expired, behind = sent(queue, 2)
    for batch in (expired, behind):
        queue.put_back(batch)
    queue.batches.popleft()
    queue.record_expired(expired)
    assert not queue.resolve_sequences()
    assert queue.may_send(behind, queue.identity), "with the number it has"
    assert behind.base_sequence == 1
    assert not queue.may_send(ProducerBatch(0), queue.identity), "nothing new until that is settled"
    queue.record_expired(behind)
    assert queue.resolve_sequences(), "both are gone without an acknowledgement"


def test_an_expired_batch_that_was_sent_once_delays_no_other_batch() -> None:
    """A batch that expires without a retry blocks nothing: only a retried batch is unresolved."""
    queue = PartitionQueue(TP, is_idempotent=True)
    queue.renumber(Identity(7, 0))
    (expired,) = sent(queue, 1)
    queue.record_expired(expired)
    assert not queue.resolve_sequences()
    assert queue.may_send(ProducerBatch(0), queue.identity)


def sends(simulation: Simulation, producer: Any) -> list[tuple[float, int, int]]:
    """Return a list of (ms, producer epoch, base sequence) that every produce request extends."""
    seen: list[tuple[float, int, int]] = []

    def note(delivery: Any) -> None:
        if type(delivery.message) is ProduceRequest:
            data: Any = delivery.message.partitions[0].records
            epoch, sequence = struct.unpack_from(">hi", data, 51)
            seen.append((simulation.now_ms, epoch, sequence))

    simulation.observe(note)
    return seen


def test_batches_are_sent_again_one_by_one() -> None:
    """After an error only the first batch is sent again; the next follows its response."""
    with Simulation(1, topics={"t": 1}, trace=False) as simulation:
        producer = simulation.producer()
        outcomes = Outcomes()
        send(simulation, producer, outcomes, b"a")
        simulation.inject("Produce", "NOT_ENOUGH_REPLICAS", times=2)
        seen = sends(simulation, producer)
        send(simulation, producer, outcomes, b"b", b"c")
        assert [sequence for _, _, sequence in seen] == [1, 2, 1, 2]
        assert seen[0][0] == seen[1][0], "at first both are under way"
        assert seen[2][0] < seen[3][0]
        assert outcomes == ["NONE"] * 3
        assert numbers(simulation) == [(0, 0), (0, 1), (0, 2)]


def test_an_epoch_raised_over_stored_batches_stores_them_twice() -> None:
    """A raised epoch may store batches twice, as in Kafka: if the broker refuses the first as
    unknown, all unacknowledged batches are renumbered
    (``TransactionManager.bumpIdempotentProducerEpoch``).
    """
    with Simulation(1, topics={"t": 1}, trace=False) as simulation:
        producer = simulation.producer(request_timeout_ms=1000)
        outcomes = Outcomes()
        send(simulation, producer, outcomes, b"a")
        told: list[Any] = []
        producer.on_renumbered = lambda where, values: told.append((where, values))
        simulation.network.drop(1, source=1, target=producer.name)
        for value in (b"b", b"c"):
            producer.produce(("t", 0), value, callback=outcomes.note)
        simulation.run_for(500)
        simulation.inject("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER")
        simulation.network.heal()
        simulation.run_until(lambda: len(outcomes) == 3)
        assert outcomes == ["NONE"] * 3
        stored = [record.value for record in simulation.records("t", 0)]
        assert stored == [b"a", b"b", b"c", b"b", b"c"]
        assert told == [(TP, [b"b"]), (TP, [b"c"])]


def test_a_batch_expires_while_its_request_is_under_way() -> None:
    """The delivery timeout ends a batch in flight, and a late response has no effect."""
    with Simulation(1, topics={"t": 1}, trace=False) as simulation:
        producer = simulation.producer(delivery_timeout_ms=1500, request_timeout_ms=1000)
        outcomes = Outcomes()
        send(simulation, producer, outcomes, b"a")
        began_ms = simulation.now_ms
        simulation.network.drop(1, source=producer.name, target=1)
        send(simulation, producer, outcomes, b"b")
        assert outcomes == ["NONE", "REQUEST_TIMED_OUT"]
        assert simulation.now_ms - began_ms == pytest.approx(1500, abs=1)
        simulation.network.heal()
        send(simulation, producer, outcomes, b"c")
        assert outcomes[2:] == ["NONE"]
        assert (producer.failed, producer.acknowledged) == (1, 2)


def test_without_idempotence_nothing_is_numbered() -> None:
    """Without idempotence neither a failed nor an expired batch blocks the others."""
    with Simulation(1, topics={"t": 1}, trace=False) as simulation:
        producer = simulation.producer(enable_idempotence=False)
        outcomes = Outcomes()
        send(simulation, producer, outcomes, b"a")
        simulation.inject("Produce", "INVALID_RECORD")
        send(simulation, producer, outcomes, b"refused", b"b")
        assert outcomes == ["NONE", "INVALID_RECORD", "NONE"]
        assert numbers(simulation) == [(-1, -1)] * 2
