"""The environment of a shop's services: settings, a bank, a database, a supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka.errors import CommitFailedError, KafkaError
from fakekafka import Simulation

CLUSTER: dict[str, Any] = {
    "racks": ["a", "b", "c"],
    "config": {
        "zookeeper.session.timeout.ms": 6000,
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 3,
        "transaction.state.log.num.partitions": 3,
    },
}
"""Settings as in many tests: a dead broker is noticed soon, groups begin at once, internal topics
are small. With racks aiokafka orders brokers in the same way in every process."""

GROUP: dict[str, Any] = {
    "bootstrap_servers": "kafka:9092",
    "group_id": "payments",
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 6000,
    "metadata_max_age_ms": 10_000,
    "fetch_max_wait_ms": 2000,
}
"""Settings of the consumers. They refresh metadata every ten seconds, as aiokafka does not do so on
its own when it asks a former leader for the first offset of a partition."""

DURABLE: dict[str, Any] = {
    "bootstrap_servers": "kafka:9092",
    "acks": "all",
    "request_timeout_ms": 3000,
}
"""Settings of the producers."""


Service = Callable[["Outside"], Awaitable[None]]


class Outside:
    """The world outside of Kafka, which outlives the workers and remembers their requests."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._chance = random.Random(simulation.seed)
        self._versions: dict[bytes, int] = {}
        self._customers = iter(range(12))

    def report(self, text: str, **values: Any) -> None:
        """Write a line to the log of the service."""
        self._simulation.note(text, **values)

    async def website(self) -> AsyncIterator[bytes]:
        """Yield the orders of customers, each once."""
        for number in self._customers:
            await asyncio.sleep(0.3)
            yield b"%d" % number

    async def think(self) -> None:
        """Sleep for the time that some work takes."""
        await asyncio.sleep(self._chance.uniform(0.1, 0.3))

    async def charge(self, order: ConsumerRecord) -> None:
        """Let the bank charge for an order."""
        await self.think()
        self._simulation.note("charged", order=int(order.value))

    async def ship(self, entry: ConsumerRecord) -> None:
        """Send the goods."""
        await self.think()
        self._simulation.note("shipped", entry=place(entry))

    async def store(self, orders: list[ConsumerRecord]) -> None:
        """Insert rows into a table."""
        await asyncio.sleep(0.05)
        for order in orders:
            self._simulation.note("stored", order=int(order.value))

    async def set_balance(
        self, account: bytes, balance: bytes, *, version: int | None = None
    ) -> None:
        """Update the row of an account, unless it has a newer version."""
        await self.think()
        if version is None or version >= self._versions.get(account, -1):
            self._simulation.note("stored", balance=int(balance))
            self._versions[account] = version or 0


def place(record: Any) -> str:
    """Return the partition and offset of a record, which identify it."""
    return f"{record.partition}/{record.offset}"


async def commit(consumer: AIOKafkaConsumer) -> None:
    """Commit the records that were read. If that fails, the partitions' new owner rereads them."""
    with contextlib.suppress(CommitFailedError):
        await consumer.commit()


async def restarted(service: Service, outside: Outside) -> None:
    """Run a service like a supervisor, which restarts it after a failure."""
    while True:
        try:
            return await service(outside)
        except KafkaError as error:
            outside.report("failed", error=type(error).__name__)
            await asyncio.sleep(1)
