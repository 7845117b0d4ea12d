"""A retry without idempotence: a failed send may have stored the record, which is stored again."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from attacks import answers_lost, attack, cut_off, killed, leader_killed
from fakekafka import Simulation
from fakekafka.testing.programs import checks
from shop import CLUSTER, DURABLE, Outside, Service


async def wrong(outside: Outside) -> None:
    async with AIOKafkaProducer(**DURABLE) as producer:
        await take_orders(outside, producer)


async def right(outside: Outside) -> None:
    async with AIOKafkaProducer(**DURABLE, enable_idempotence=True) as producer:
        await take_orders(outside, producer)


async def take_orders(outside: Outside, producer: AIOKafkaProducer) -> None:
    async for order in outside.website():
        while True:
            try:
                await producer.send_and_wait("orders", order)
                break
            except KafkaError:
                await asyncio.sleep(0.5)


@pytest.mark.parametrize("service", [wrong, right])
@pytest.mark.kafka(topics={"orders": 1}, seeds=range(1, 501), **CLUSTER)
def test_no_order_is_stored_twice(kafka_simulation: Simulation, service: Service) -> None:
    shop = kafka_simulation.program(service, Outside(kafka_simulation), name="shop")
    each = [killed(shop), cut_off(shop), answers_lost(shop, "orders-0")]
    attack(kafka_simulation, *each, leader_killed("orders-0"))
    work = checks.Work(kafka_simulation, output="orders", by="order")
    checks.require(work.none_processed_twice())
