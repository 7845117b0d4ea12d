"""A failed send is logged and forgotten: the order is committed although nothing was sent."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from attacks import attack, cut_off, killed, leader_killed, paused
from fakekafka import Simulation
from fakekafka.testing.programs import checks
from shop import CLUSTER, DURABLE, GROUP, Outside, Service, commit, restarted


async def wrong(outside: Outside) -> None:
    async with (
        AIOKafkaConsumer("orders", **GROUP, enable_auto_commit=False) as consumer,
        AIOKafkaProducer(**DURABLE) as producer,
    ):
        async for order in consumer:
            await outside.charge(order)
            try:
                await producer.send_and_wait("invoices", order.value)
            except KafkaError as error:
                outside.report("not sent", order=int(order.value), error=type(error).__name__)
            await commit(consumer)


async def right(outside: Outside) -> None:
    async with (
        AIOKafkaConsumer("orders", **GROUP, enable_auto_commit=False) as consumer,
        AIOKafkaProducer(**DURABLE) as producer,
    ):
        async for order in consumer:
            await outside.charge(order)
            await producer.send_and_wait("invoices", order.value)
            await commit(consumer)


@pytest.mark.parametrize("service", [wrong, right])
@pytest.mark.kafka(topics={"orders": 1, "invoices": 1}, seeds=range(1, 501), **CLUSTER)
def test_every_order_gets_an_invoice(kafka_simulation: Simulation, service: Service) -> None:
    outside = Outside(kafka_simulation)
    worker = kafka_simulation.program(restarted, service, outside, name="worker")
    for number in range(6):
        kafka_simulation.produce("orders", str(number))
    kafka_simulation.wait_for_note("charged")
    each = [killed(worker), paused(worker), cut_off(worker)]
    attack(kafka_simulation, *each, leader_killed("invoices-0"))
    work = checks.Work(kafka_simulation, "orders", output="invoices", by="order", group="payments")
    checks.require(work.every_input_processed(), work.none_invented())
