"""A transaction without read_committed: a reader processes records that are later aborted."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from attacks import attack, cut_off, killed, leader_killed
from fakekafka import Simulation
from fakekafka.testing.programs import checks
from shop import CLUSTER, GROUP, Outside, Service, place, restarted


async def wrong(outside: Outside) -> None:
    async with AIOKafkaConsumer("ledger", **GROUP) as consumer:
        async for entry in consumer:
            await outside.ship(entry)


async def right(outside: Outside) -> None:
    async with AIOKafkaConsumer("ledger", **GROUP, isolation_level="read_committed") as consumer:
        async for entry in consumer:
            await outside.ship(entry)


async def bookkeeper(outside: Outside) -> None:
    """Copy orders to the ledger exactly once, two per transaction."""
    async with (
        AIOKafkaProducer(bootstrap_servers="kafka:9092", transactional_id="books") as producer,
        AIOKafkaConsumer(**{**GROUP, "group_id": "books"}, enable_auto_commit=False) as consumer,
    ):
        orders = TopicPartition("orders", 0)
        consumer.assign([orders])
        while True:
            async with producer.transaction():
                for order in [await consumer.getone(), await consumer.getone()]:
                    await producer.send_and_wait("ledger", order.value)
                    await outside.think()
                await producer.send_offsets_to_transaction({orders: order.offset + 1}, "books")


@pytest.mark.parametrize("service", [wrong, right])
@pytest.mark.kafka(topics={"orders": 1, "ledger": 1}, seeds=range(1, 501), **CLUSTER)
def test_what_is_shipped_was_booked(kafka_simulation: Simulation, service: Service) -> None:
    outside = Outside(kafka_simulation)
    kafka_simulation.program(service, outside, name="worker")
    kafka_simulation.wait_for_group("payments", members=1, timeout_s=60)
    for number in range(10):
        kafka_simulation.produce("orders", str(number))
    books = kafka_simulation.program(restarted, bookkeeper, outside, name="bookkeeper")
    attack(kafka_simulation, killed(books), cut_off(books), leader_killed("ledger-0"))
    work = checks.Work(kafka_simulation, "ledger", note="shipped", by="entry", identify=place)
    checks.require(work.every_input_processed(), work.none_invented())
