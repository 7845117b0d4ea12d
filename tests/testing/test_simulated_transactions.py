"""Modelled transactional producers, and consumers that read committed records."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.actors.clients.transactional_producer import (
    ProducerFenced,
    SimulatedTransactionalProducer,
)
from fakekafka.protocol.data import READ_COMMITTED
from fakekafka.protocol.errors import UsageError

ORDERS = ("orders", 0)
AUDIT = ("audit", 0)
VERSIONS = ("1.1", "2.8", "3.9")


def run(
    simulation: Simulation, producer: SimulatedTransactionalProducer, work: Coroutine[Any, Any, Any]
) -> Any:
    """Return the result of a coroutine of the producer."""
    task = producer.start_task(work)
    simulation.run_until(lambda: task.done, 120_000)
    return task.result()


def reader(simulation: Simulation, isolation_level: int = READ_COMMITTED) -> list[str]:
    """Return a list that fills with the values of both partitions as they are read."""
    found: list[str] = []
    consumer = simulation.consumer([ORDERS, AUDIT], isolation_level=isolation_level)
    consumer.on_batch = lambda _, batch, __: found.extend(
        (record.value or b"").decode() for record in batch.records()
    )
    return found


@pytest.fixture(params=VERSIONS)
def simulation(request: pytest.FixtureRequest) -> Any:
    with Simulation(
        3, kafka_version=request.param, topics={"orders": 1, "audit": 1}, trace=False
    ) as simulation:
        yield simulation
        assert simulation.failures == []


def test_committed_records_are_read_and_aborted_ones_are_not(simulation: Simulation) -> None:
    """DP-133: committed readers get only committed records, in both partitions; others get all."""
    producer = simulation.transactional_producer("shop")

    async def work() -> None:
        await producer.init_transactions()
        for number in range(6):
            producer.begin()
            await producer.write(ORDERS, [b"o%d" % number])
            await producer.write(AUDIT, [b"a%d" % number])
            await (producer.abort() if number % 2 else producer.commit())

    run(simulation, producer, work())
    committed, everything = reader(simulation), reader(simulation, 0)
    simulation.run_until(lambda: len(committed) == 6 and len(everything) == 12)
    assert sorted(committed) == ["a0", "a2", "a4", "o0", "o2", "o4"]
    assert (producer.committed, producer.aborted) == (3, 3)


def test_an_open_transaction_holds_back_later_records_of_others(simulation: Simulation) -> None:
    """DP-133: committed readers stop at the first offset of an open transaction."""
    slow, quick = (simulation.transactional_producer(name) for name in ("slow", "quick"))

    async def write(producer: SimulatedTransactionalProducer, value: bytes) -> None:
        await producer.init_transactions()
        producer.begin()
        await producer.write(ORDERS, [value])

    run(simulation, slow, write(slow, b"first"))
    run(simulation, quick, write(quick, b"second"))
    run(simulation, quick, quick.commit())
    committed = reader(simulation)
    simulation.run_for(2000)
    assert committed == []
    run(simulation, slow, slow.commit())
    simulation.run_until(lambda: committed == ["first", "second"])


def test_a_zombie_is_fenced(simulation: Simulation) -> None:
    """DP-133: the second producer of an id fences the first and aborts its transaction."""
    zombie, heir = (simulation.transactional_producer("shop", name) for name in ("old", "new"))

    async def begin() -> None:
        await zombie.init_transactions()
        zombie.begin()
        await zombie.write(ORDERS, [b"zombie"])

    async def take_over() -> None:
        await heir.init_transactions()
        heir.begin()
        await heir.write(ORDERS, [b"mine"])
        await heir.commit()

    run(simulation, zombie, begin())
    run(simulation, heir, take_over())

    async def come_back() -> None:
        with pytest.raises(ProducerFenced):
            await zombie.commit()

    run(simulation, zombie, come_back())
    committed = reader(simulation)
    simulation.run_until(lambda: committed == ["mine"])


def test_a_producer_that_falls_silent_is_timed_out(simulation: Simulation) -> None:
    """A silent producer's transaction times out, and committed readers continue."""
    silent = simulation.transactional_producer("silent", transaction_timeout_ms=5000)

    async def begin() -> None:
        await silent.init_transactions()
        silent.begin()
        await silent.write(ORDERS, [b"lost"])

    run(simulation, silent, begin())
    other = simulation.producer()
    other.produce(ORDERS, b"plain")
    committed = reader(simulation)
    simulation.run_for(4000)
    assert committed == []
    simulation.run_until(lambda: committed == ["plain"], 120_000)


def test_the_coordinator_dies_with_a_transaction_open(simulation: Simulation) -> None:
    """The next coordinator loads an open transaction, and the producer can commit it there."""
    producer = simulation.transactional_producer("shop")

    async def begin() -> None:
        await producer.init_transactions()
        producer.begin()
        await producer.write(ORDERS, [b"kept"])

    run(simulation, producer, begin())
    number = int(simulation.partition("__transaction_state", _partition_of("shop")).leader or 0)
    simulation.broker(number).kill()
    run(simulation, producer, producer.commit())
    committed = reader(simulation)
    simulation.run_until(lambda: committed == ["kept"], 60_000)


def _partition_of(name: str) -> int:
    from fakekafka.protocol.java_hashing import bucket_of, java_string_hash

    return bucket_of(java_string_hash(name), 50)


def test_the_same_seed_gives_the_same_run() -> None:
    """Simulations with transactions and equal seeds have equal fingerprints."""

    def fingerprint() -> str:
        with Simulation(3, seed=7, topics={"orders": 1}) as simulation:
            producer = simulation.transactional_producer("shop")

            async def work() -> None:
                await producer.init_transactions()
                producer.begin()
                await producer.write(ORDERS, [b"a", b"b"])
                await producer.commit()

            run(simulation, producer, work())
            return simulation.fingerprint

    assert fingerprint() == fingerprint()


def test_invalid_arguments_of_transactions_are_refused() -> None:
    with Simulation(1, trace=False) as simulation:
        with pytest.raises(UsageError, match="transactional_id must be a text"):
            simulation.transactional_producer("")
        producer = simulation.transactional_producer("shop")
        with pytest.raises(UsageError, match="before init_transactions"):
            producer.begin()
        with pytest.raises(UsageError, match="inputs must be"):
            simulation.transformer("shop", [], [ORDERS])
