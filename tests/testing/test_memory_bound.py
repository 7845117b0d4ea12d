"""The bound on the memory of records: what is deleted, what stays, and that no client fails."""

from __future__ import annotations

import contextlib

import pytest
from fakekafka import Cluster, Simulation
from fakekafka.protocol.errors import UsageError
from fakekafka.protocol.values import TopicPartition
from fakekafka.testing.memory_bound import LEAST_BYTES, Deleted, MemoryBound, _LeaderLog, bytes_of
from hypothesis import given
from hypothesis import strategies as st

MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1G", 1 << 30),
        ("512M", 1 << 29),
        ("1.5 MB", 3 << 19),
        ("2048k", 1 << 21),
        (1 << 20, 1 << 20),
    ],
)
def test_sizes_are_read(text: str | int, number: int) -> None:
    assert bytes_of("memory", text) == number


@pytest.mark.parametrize("text", ["", "G", "-1G", "1 X", "1,5G", True, 1.5, "64K", 0])
def test_an_invalid_or_too_small_size_is_refused(text: object) -> None:
    with pytest.raises(UsageError, match="memory"):
        bytes_of("memory", text)


def filled(simulation: Simulation, topic: str, records: int, size: int = 10_000) -> None:
    for _ in range(records):
        simulation.produce(topic, b"x" * size)


def test_the_oldest_records_of_the_largest_partition_are_deleted() -> None:
    """Whole segments are deleted from the largest partition's start, equally at every replica."""
    with Simulation(brokers=3, topics={"large": 1, "small": 1}) as simulation:
        bound = MemoryBound(simulation.running, 2 * MEGABYTE)
        for _ in range(30):
            filled(simulation, "large", 20)
            filled(simulation, "small", 1)
            bound.look()
            assert bound.kept_bytes <= 2 * MEGABYTE
        view = simulation.partition("large", 0)
        simulation.run_until(lambda: simulation.partition("large", 0).high_watermark == 600)
        starts = {replica: view.replica(replica).log_start_offset for replica in view.replicas}
        (start,) = set(starts.values())
        assert 0 < start < 600
        kept = simulation.records("large", 0)
        assert [record.offset for record in kept] == [*range(start, 600)]
        assert len(kept) * 10_000 > 1.8 * MEGABYTE - 300_000  # no more was deleted than necessary
        assert len({simulation.log_bytes("large", 0, replica) for replica in view.replicas}) == 1
        assert [record.offset for record in simulation.records("small", 0)] == [*range(30)]
        assert [record.offset for record in simulation.consume("large", 0, start)][-1] == 599


def test_the_report_counts_the_deleted_records() -> None:
    with Simulation(brokers=1, topics={"large": 1}) as simulation:
        bound = MemoryBound(simulation.running, MEGABYTE)
        filled(simulation, "large", 50)
        deleted = bound.look()
        assert deleted is None
        assert 500_000 < bound.kept_bytes < 520_000
        for _ in range(10):
            filled(simulation, "large", 10)
            deleted = bound.look() or deleted
        assert deleted is not None
        start = simulation.partition("large", 0).replica(1).log_start_offset
        assert deleted.log_starts == {TopicPartition("large", 0): start}
        assert bound.deleted_bytes == pytest.approx(start * 10_000, rel=0.05)
        assert deleted.kept_bytes == bound.kept_bytes <= MEGABYTE


def test_compacted_topics_lose_nothing() -> None:
    """The memory bound deletes nothing from compacted topics, such as the internal ones."""
    with Simulation(brokers=1) as simulation:
        for policy in ("compact", "compact,delete"):
            topic = policy.replace(",", "-")
            simulation.create_topic(topic, config={"cleanup.policy": policy})
            for number in range(120):
                simulation.produce(topic, b"x" * 10_000, key=f"{number}")
        bound = MemoryBound(simulation.running, MEGABYTE)
        for _ in range(3):
            assert bound.look() is None
        assert bound.kept_bytes > 2 * MEGABYTE
        assert len(simulation.records("compact", 0)) == 120


def test_records_that_no_follower_has_yet_stay() -> None:
    """The memory bound deletes nothing above the high watermark, however large the log is."""
    with Simulation(brokers=3, topics={"large": 1}) as simulation:
        leader = simulation.wait_for_leader("large")
        others = [broker for broker in (1, 2, 3) if broker != leader]
        for other in others:
            simulation.broker(other).pause()
        bound = MemoryBound(simulation.running, MEGABYTE)
        for number in range(150):
            simulation.produce("large", b"x" * 10_000, acks=1)
            if not number % 10:
                bound.look()
        view = simulation.partition("large", 0).replica(leader)
        assert view.log_start_offset <= view.high_watermark < 150
        assert [r.offset for r in simulation.records("large", 0)][-1] == 149


PARTITIONS = st.lists(st.lists(st.integers(1, 50), min_size=0, max_size=6), min_size=1, max_size=6)


@given(PARTITIONS, st.integers(0, 400))
def test_no_more_records_are_deleted_than_necessary(
    partitions: list[list[int]], bytes_max: int
) -> None:
    """Only the oldest segments are deleted, until the rest fits or no more may be deleted."""
    led = {}
    for number, sizes in enumerate(partitions):
        name = TopicPartition("t", number)
        ends = [(offset + 1, size) for offset, size in enumerate(sizes)]
        led[name] = _LeaderLog(name, sum(sizes) + 7, ends)
    with Simulation(brokers=1) as simulation:
        bound = MemoryBound(simulation.running, LEAST_BYTES)
    bound.bytes_max = bytes_max
    bound.kept_bytes = sum(one.kept_bytes for one in led.values())
    starts = bound._new_log_starts(led)
    went = {
        name: [size for end, size in led[name].deletable if end <= starts[name]] for name in starts
    }
    left = bound.kept_bytes - sum(map(sum, went.values()))
    can_all_go = {
        name
        for name, one in led.items()
        if one.deletable and starts.get(name) != one.deletable[-1][0]
    }
    assert left <= bytes_max or not can_all_go
    if starts:
        last_sizes = [sizes[-1] for sizes in went.values()]
        assert left + max(last_sizes) > bytes_max
        assert all(sizes for sizes in went.values())


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["live", "threaded"])
def test_producers_never_fail_while_the_oldest_records_are_deleted(runtime: str) -> None:
    """Producers never fail while old records are deleted, and readers get whole records."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    with Cluster(3, memory="4M", topics={"large": 2, "small": 1}, runtime=runtime) as cluster:
        told: list[Deleted] = []
        memory = cluster.memory
        assert memory is not None
        memory.on_deleted = told.append
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        errors: list[object] = []

        def note(error: object, _: object) -> None:
            if error is not None:
                errors.append(error)

        producer = confluent_kafka.Producer({**servers, "enable.idempotence": True, "linger.ms": 1})
        careful = confluent_kafka.Producer({**servers, "transactional.id": "transfers"})
        careful.init_transactions()
        for number in range(20_000):
            producer.produce(
                "large", b"%06d" % number + b"x" * 1_000, partition=number % 2, on_delivery=note
            )
            if number % 4_000 == 0:
                careful.begin_transaction()
                careful.produce("small", b"%d" % number)
                careful.commit_transaction()
                producer.flush(30)
        assert producer.flush(30) == 0
        assert errors == []
        cluster.wait_until(lambda: memory.deleted_bytes > 15 * MEGABYTE)
        assert memory.kept_bytes <= 4 * MEGABYTE
        assert told
        consumer = confluent_kafka.Consumer(
            {**servers, "group.id": "reader", "auto.offset.reset": "earliest"}
        )
        with contextlib.closing(consumer):
            first = confluent_kafka.TopicPartition("large", 0)
            low, high = consumer.get_watermark_offsets(first, timeout=10)
            assert 0 < low < high == 10_000
            assert (high - low) * 1_000 > MEGABYTE
            first.offset = low
            consumer.assign([first])
            message = consumer.poll(10)
            assert (message.offset(), message.value()[:6]) == (low, b"%06d" % (2 * low))
        assert len(cluster.records("small", 0)) == 5
