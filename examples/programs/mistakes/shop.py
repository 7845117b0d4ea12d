"""What the services of a shop have around them: settings, a bank, a database, a supervisor."""

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
"""As in many tests: a dead broker is noticed soon, groups begin at once, internal topics are small.
Racks keep aiokafka from an order of brokers that differs from process to process."""

GROUP: dict[str, Any] = {
    "bootstrap_servers": "kafka:9092",
    "group_id": "payments",
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 6000,
    "metadata_max_age_ms": 10_000,
    "fetch_max_wait_ms": 2000,
}
"""Of the consumers. They ask for the leaders every ten seconds, as aiokafka does not ask by itself
when it wants the first offset of a partition from a broker that no longer leads it."""

DURABLE: dict[str, Any] = {
    "bootstrap_servers": "kafka:9092",
    "acks": "all",
    "request_timeout_ms": 3000,
}
"""Of the producers."""


Service = Callable[["Outside"], Awaitable[None]]


class Outside:
    """What is outside of Kafka: it outlives the workers, and remembers what they asked for."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._chance = random.Random(simulation.seed)
        self._versions: dict[bytes, int] = {}
        self._customers = iter(range(12))

    def report(self, text: str, **values: Any) -> None:
        """Write a line to the log of the service."""
        self._simulation.note(text, **values)

    async def website(self) -> AsyncIterator[bytes]:
        """Give the orders of customers, each once."""
        for number in self._customers:
            await asyncio.sleep(0.3)
            yield b"%d" % number

    async def think(self) -> None:
        """Take the time that work takes."""
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
    """Return where a record is; nothing else has the same."""
    return f"{record.partition}/{record.offset}"


async def commit(consumer: AIOKafkaConsumer) -> None:
    """Commit what was read; whoever has the partitions by now reads it again."""
    with contextlib.suppress(CommitFailedError):
        await consumer.commit()


async def restarted(service: Service, outside: Outside) -> None:
    """Run a service as a supervisor does, which starts it again when it has failed."""
    while True:
        try:
            return await service(outside)
        except KafkaError as error:
            outside.report("failed", error=type(error).__name__)
            await asyncio.sleep(1)
