"""Automatic commits cover records that were read, although they may not be processed yet."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer
from attacks import attack, cut_off, killed, leader_killed, paused
from fakekafka import Simulation
from fakekafka.testing.programs import checks
from shop import CLUSTER, GROUP, Outside, Service, commit


async def wrong(outside: Outside) -> None:
    async with AIOKafkaConsumer("orders", **GROUP, auto_commit_interval_ms=500) as consumer:
        async for order in consumer:
            await outside.charge(order)


async def right(outside: Outside) -> None:
    async with AIOKafkaConsumer("orders", **GROUP, enable_auto_commit=False) as consumer:
        async for order in consumer:
            await outside.charge(order)
            await commit(consumer)


@pytest.mark.parametrize("service", [wrong, right])
@pytest.mark.kafka(topics={"orders": 2}, seeds=range(1, 501), **CLUSTER)
def test_every_order_is_charged(kafka_simulation: Simulation, service: Service) -> None:
    outside = Outside(kafka_simulation)
    workers = [kafka_simulation.program(service, outside, name=f"worker-{n}") for n in (1, 2)]
    kafka_simulation.wait_for_group("payments", members=2, timeout_s=60)
    for number in range(10):
        kafka_simulation.produce("orders", str(number), partition=number % 2)
    each = [fault(worker) for worker in workers for fault in (killed, paused, cut_off)]
    attack(kafka_simulation, *each, leader_killed("orders-0"))
    work = checks.Work(kafka_simulation, "orders", note="charged", by="order", group="payments")
    checks.require(work.every_input_processed(), work.none_invented())
