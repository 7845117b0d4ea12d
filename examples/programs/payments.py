"""A payments service in five versions, four of them wrong: it charges and writes invoices.

Two workers read orders, charge for each at a bank, write an invoice and commit. Under half of the
seeds the leader of the invoices dies; then one of the workers is killed while there is work, and
started again. `problems` returns what is wrong afterwards: orders without a charge, charged twice,
or without an invoice.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord
from aiokafka.errors import CommitFailedError
from fakekafka import Simulation

ORDERS = 30


class Bank:
    """A bank that charges for orders, and recognises repeated charges with the same key."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.charges: list[int] = []
        self._known: set[int] = set()

    async def charge(self, order: int, *, key: int | None = None) -> None:
        await asyncio.sleep(0.05)
        if key is None or key not in self._known:
            self.charges.append(order)
            self._simulation.note("charged", order=order)
        if key is not None:
            self._known.add(key)


def _consumer(*, auto_commit: bool = False) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        "orders",
        bootstrap_servers="kafka:9092",
        group_id="payments",
        auto_offset_reset="earliest",
        enable_auto_commit=auto_commit,
        auto_commit_interval_ms=100,
    )


def _producer(linger_ms: int = 0) -> AIOKafkaProducer:
    return AIOKafkaProducer(
        bootstrap_servers="kafka:9092", enable_idempotence=True, linger_ms=linger_ms
    )


async def _commit(consumer: AIOKafkaConsumer) -> None:
    """Commit the records that were read. If that fails, the partition's new owner rereads them."""
    with contextlib.suppress(CommitFailedError):
        await consumer.commit()


def _invoice(record: ConsumerRecord) -> bytes:
    return b"invoice for %d" % int(record.value)


async def right(bank: Bank) -> None:
    """Charge by a key, wait for the invoice, then commit: at least once, and once at the bank."""
    async with _consumer() as consumer, _producer() as producer:
        async for record in consumer:
            order = int(record.value)
            await bank.charge(order, key=order)
            await producer.send_and_wait("invoices", _invoice(record))
            await _commit(consumer)


async def commits_first(bank: Bank) -> None:
    """Commit before charging: when the worker dies in between, the order is lost."""
    async with _consumer() as consumer, _producer() as producer:
        async for record in consumer:
            await _commit(consumer)
            order = int(record.value)
            await bank.charge(order, key=order)
            await producer.send_and_wait("invoices", _invoice(record))


async def commits_by_itself(bank: Bank) -> None:
    """Commit automatically, which covers records that tasks still work on."""

    async def work(record: ConsumerRecord, producer: AIOKafkaProducer) -> None:
        order = int(record.value)
        await bank.charge(order, key=order)
        await asyncio.sleep(0.5)
        await producer.send_and_wait("invoices", _invoice(record))

    tasks = set()
    async with _consumer(auto_commit=True) as consumer, _producer() as producer:
        async for record in consumer:
            task = asyncio.create_task(work(record, producer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


async def does_not_wait(bank: Bank) -> None:
    """Commit while the invoice still lingers in the producer's memory."""
    async with _consumer() as consumer, _producer(linger_ms=100) as producer:
        async for record in consumer:
            order = int(record.value)
            await bank.charge(order, key=order)
            await producer.send("invoices", _invoice(record))
            await _commit(consumer)


async def charges_without_a_key(bank: Bank) -> None:
    """Charge without a key: after a crash between charge and commit the bank charges again."""
    async with _consumer() as consumer, _producer() as producer:
        async for record in consumer:
            await bank.charge(int(record.value))
            await producer.send_and_wait("invoices", _invoice(record))
            await _commit(consumer)


WRONG = (commits_first, commits_by_itself, does_not_wait, charges_without_a_key)


def problems(service: Callable[[Bank], Awaitable[None]], seed: int) -> list[str]:
    """Run a version under faults at times that the seed determines; return what is wrong."""
    chance = random.Random(seed)
    topics = {"orders": 3, "invoices": 1}
    with Simulation(3, seed=seed, topics=topics) as simulation:
        bank = Bank(simulation)
        workers = [simulation.program(service, bank, name=f"worker-{n}") for n in (1, 2)]
        simulation.wait_for_group("payments", members=2, timeout_s=60)
        for number in range(ORDERS):
            simulation.produce("orders", str(number), partition=number % 3)
        if chance.random() < 0.5:
            simulation.broker("leader:invoices-0").kill()
        simulation.run_for(chance.uniform(20, 800))
        workers[0].kill()
        simulation.run_for(30_000)
        workers[0].restart()
        simulation.run_for(60_000)
        orders = range(ORDERS)
        invoices = {record.value for record in simulation.records("invoices")}
        found = [f"order {n} was never charged" for n in orders if n not in bank.charges]
        found += [f"order {n} was charged twice" for n in orders if bank.charges.count(n) > 1]
        found += [
            f"order {n} has no invoice" for n in orders if b"invoice for %d" % n not in invoices
        ]
        return found


if __name__ == "__main__":
    for version in (right, *WRONG):
        for seed in range(1, 21):
            if told := problems(version, seed):
                print(f"{version.__name__}: seed {seed}: {told[0]}")
                break
        else:
            print(f"{version.__name__}: nothing in 20 seeds")
