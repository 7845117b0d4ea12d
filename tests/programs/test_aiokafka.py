"""Unmodified aiokafka in virtual time: producers, consumer groups and transactions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from fakekafka import Simulation
from fakekafka.tests.support.aiokafka_programs import consume, produce, transform

TOPICS = {"orders": 3, "copies": 3}


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with Simulation(3, seed=1, topics=TOPICS) as simulation:
        yield simulation


def values(simulation: Simulation, topic: str) -> list[int]:
    found = [simulation.consume(topic, partition) for partition in range(3)]
    return sorted(int(record.value or b"") for records in found for record in records)


def test_every_record_survives_the_death_of_a_leader(simulation: Simulation) -> None:
    """Under Kafka's defaults, the leader's session takes 18 virtual seconds to expire."""
    producer = simulation.program(produce, 50, name="producer")
    simulation.run_for(2000)
    simulation.broker("leader:orders-0").kill()
    assert producer.result(120) == 50
    assert values(simulation, "orders") == list(range(50))
    assert simulation.now_ms > 18_000


def test_every_record_survives_the_loss_of_a_leaders_power(simulation: Simulation) -> None:
    """The leader's connections fall silent, so the client notices by its timeout."""
    producer = simulation.program(produce, 50, name="producer")
    simulation.run_for(2000)
    leader = simulation.broker("leader:orders-0")
    leader.power_off()
    simulation.run_for(60_000)
    leader.start()
    assert producer.result(120) == 50
    assert values(simulation, "orders") == list(range(50))


def test_a_group_takes_over_the_partitions_of_a_killed_worker(simulation: Simulation) -> None:
    """The other worker takes over the partitions when the session of the killed one has expired."""
    seen: list[tuple[str, int]] = []
    workers = [simulation.program(consume, seen, name, name=name) for name in ("w1", "w2")]
    simulation.wait_for_group("workers", members=2, timeout_s=30)
    producer = simulation.program(produce, 40, name="producer")
    simulation.run_for(2000)
    workers[0].kill()
    producer.result(60)
    simulation.wait_until(lambda: len({number for _, number in seen}) == 40, 60)
    assert {worker for worker, _ in seen} == {"w1", "w2"}
    assert max(Counter(number for _, number in seen).values()) <= 2
    assert len(simulation.group("workers").members) == 1


def test_transactions_copy_exactly_once(simulation: Simulation) -> None:
    """Records are copied exactly once although the leader of a partition dies."""
    simulation.program(produce, 30, 0.05, name="producer").result()
    copier = simulation.program(transform, 30, name="copier")
    simulation.run_for(500)
    simulation.broker("leader:copies-0").kill()
    copier.result(120)
    assert values(simulation, "copies") == list(range(30))


def test_a_program_that_is_cut_off_continues_when_the_network_heals(
    simulation: Simulation,
) -> None:
    """No record that the program sent is lost or duplicated."""
    producer = simulation.program(produce, 30, name="producer")
    simulation.run_for(1500)
    producer.isolate()
    simulation.run_for(20_000)
    simulation.network.heal()
    assert producer.result(120) == 30
    assert values(simulation, "orders") == list(range(30))
    assert simulation.now_ms > 21_000


def test_requests_of_a_program_have_its_name_in_the_trace(simulation: Simulation) -> None:
    """The program's name is the client of operations and the sender of messages."""
    simulation.program(produce, 1, name="payments").result()
    operations = [event for event in simulation.events if event.kind == "client_invoke"]
    assert {event.actor for event in operations} == {"payments"}
    assert {"metadata", "init_producer_id", "produce"} <= {event.type for event in operations}
    sent = [event for event in simulation.events if event.type == "ProduceRequest"]
    assert [(event.kind, event.actor) for event in sent][:1] == [("send", "payments")]


SCRIPT = """
from fakekafka import Simulation
from fakekafka.tests.support.aiokafka_programs import consume, produce
seen = []
with Simulation(3, seed=7, topics={"orders": 3}, racks=["a", "b", "c"]) as simulation:
    for name in ("w1", "w2"):
        simulation.program(consume, seen, name, name=name)
    producer = simulation.program(produce, 30, name="producer")
    simulation.run_for(2500)
    simulation.broker("leader:orders-0").kill()
    producer.result(120)
    simulation.wait_until(lambda: len(seen) >= 30, 60)
    print(simulation.fingerprint)
"""


@pytest.mark.slow
@pytest.mark.parametrize("no_extensions", ["", "1"], ids=["C", "Python"])
def test_runs_of_one_seed_are_equal_under_one_hash_seed(no_extensions: str) -> None:
    """Runs in several processes are equal under one hash seed, which orders aiokafka's sets of
    strings.

    This includes aiokafka's C extension, which reads the system's clock in a way of its own.
    """
    environment = {**os.environ, "PYTHONHASHSEED": "5", "AIOKAFKA_NO_EXTENSIONS": no_extensions}
    fingerprints = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        fingerprints.append(done.stdout)
    assert len(set(fingerprints)) == 1


def test_the_c_extension_is_restored_after_a_run() -> None:
    from aiokafka.producer import AIOKafkaProducer, message_accumulator
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    stamps: list[int] = []

    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers="kafka:9092") as producer:
            found = await producer.send_and_wait("orders", b"now")
            stamps.append(found.timestamp)

    with Simulation(1, seed=1, topics={"orders": 1}) as simulation:
        simulation.program(send).result(20)
        (record,) = simulation.records("orders")
        epoch_ms = simulation.runtime.wall_ms() - simulation.now_ms
    assert stamps == [record.timestamp]
    assert 0 < record.timestamp - epoch_ms < 10_000
    assert message_accumulator.DefaultRecordBatchBuilder is DefaultRecordBatchBuilder
