"""Several sends in flight, each retried on its own when it fails: later ones overtake."""

from __future__ import annotations

import asyncio
import random

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord
from aiokafka.errors import KafkaError
from attacks import attack, cut_off, killed, leader_killed
from fakekafka import Simulation
from fakekafka.testing.programs import checks
from shop import CLUSTER, DURABLE, GROUP, Outside, Service, commit


async def wrong(outside: Outside) -> None:
    async with (
        AIOKafkaConsumer("orders", **GROUP, enable_auto_commit=False) as consumer,
        AIOKafkaProducer(**DURABLE) as producer,
    ):
        await forward(outside, consumer, producer)


async def right(outside: Outside) -> None:
    async with (
        AIOKafkaConsumer("orders", **GROUP, enable_auto_commit=False) as consumer,
        AIOKafkaProducer(**DURABLE, enable_idempotence=True) as producer,
    ):
        await forward(outside, consumer, producer)


async def forward(outside: Outside, consumer: AIOKafkaConsumer, producer: AIOKafkaProducer) -> None:
    async def send(order: ConsumerRecord) -> None:
        while True:
            try:
                await producer.send_and_wait("ledger", order.value, key=order.key)
                break
            except KafkaError as error:
                outside.report("not sent", order=int(order.value), error=type(error).__name__)
                await asyncio.sleep(random.uniform(0.1, 1))

    in_flight = []
    async for order in consumer:
        await outside.charge(order)
        in_flight.append(asyncio.create_task(send(order)))
        if len(in_flight) == 4:
            await asyncio.gather(*in_flight)
            in_flight.clear()
            await commit(consumer)


@pytest.mark.parametrize("service", [wrong, right])
@pytest.mark.kafka(topics={"orders": 1, "ledger": 1}, seeds=range(1, 501), **CLUSTER)
def test_the_order_of_a_key_is_kept(kafka_simulation: Simulation, service: Service) -> None:
    outside = Outside(kafka_simulation)
    worker = kafka_simulation.program(service, outside, name="worker")
    for number in range(12):
        kafka_simulation.produce("orders", str(number), key="alice")
    kafka_simulation.wait_for_note("charged")
    attack(kafka_simulation, killed(worker), cut_off(worker), leader_killed("ledger-0"))
    work = checks.Work(kafka_simulation, "orders", output="ledger", by="order", group="payments")
    checks.require(work.every_input_processed(), work.order_by_key_kept())
