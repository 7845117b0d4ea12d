"""No flush on revocation: the partition's next owner reads records buffered in memory again."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, ConsumerRecord
from attacks import attack, joined
from fakekafka import Simulation
from fakekafka.testing.programs import checks
from shop import CLUSTER, GROUP, Outside, Service, commit

PATIENT = {**GROUP, "rebalance_timeout_ms": 60_000}
"""Settings with which a member has a minute to store and commit when its partitions are revoked,
even if a broker dies meanwhile. aiokafka's default is the session timeout."""


class Buffer(ConsumerRebalanceListener):  # type: ignore[misc]
    """A buffer of orders, as inserting many rows at once is faster than inserting each alone."""

    def __init__(self, consumer: AIOKafkaConsumer, outside: Outside) -> None:
        self.orders: list[ConsumerRecord] = []
        self._consumer = consumer
        self._outside = outside
        self._lock = asyncio.Lock()

    async def flush(self) -> None:
        async with self._lock:
            orders, self.orders = self.orders, []
            await self._outside.store(orders)
            await commit(self._consumer)

    async def on_partitions_revoked(self, revoked: object) -> None:
        await self.flush()

    def on_partitions_assigned(self, assigned: object) -> None:
        pass


async def wrong(outside: Outside) -> None:
    async with AIOKafkaConsumer(**PATIENT, enable_auto_commit=False) as consumer:
        buffer = Buffer(consumer, outside)
        consumer.subscribe(["orders"])
        await fill(consumer, buffer)


async def right(outside: Outside) -> None:
    async with AIOKafkaConsumer(**PATIENT, enable_auto_commit=False) as consumer:
        buffer = Buffer(consumer, outside)
        consumer.subscribe(["orders"], listener=buffer)
        await fill(consumer, buffer)


async def fill(consumer: AIOKafkaConsumer, buffer: Buffer) -> None:
    while True:
        for orders in (await consumer.getmany(timeout_ms=1000, max_records=2)).values():
            buffer.orders += orders
        await asyncio.sleep(0.5)
        if len(buffer.orders) >= 4:
            await buffer.flush()


@pytest.mark.parametrize("service", [wrong, right])
@pytest.mark.kafka_explore(only=["add_program", "stop_broker"])
@pytest.mark.kafka(topics={"orders": 2}, seeds=range(1, 501), **CLUSTER)
def test_every_order_is_stored_once(kafka_simulation: Simulation, service: Service) -> None:
    outside = Outside(kafka_simulation)
    for number in (1, 2):
        kafka_simulation.program(service, outside, name=f"worker-{number}")
    kafka_simulation.wait_for_group("payments", members=2, timeout_s=60)
    for number in range(12):
        kafka_simulation.produce("orders", str(number), partition=number % 2)
    attack(kafka_simulation, joined(service, outside))
    work = checks.Work(kafka_simulation, "orders", note="stored", by="order", group="payments")
    checks.require(work.none_processed_twice())
