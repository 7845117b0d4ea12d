"""A service of FastStream consumes and produces while a leader dies."""

from __future__ import annotations

import asyncio

from fakekafka import Simulation
from faststream import FastStream
from faststream.kafka import KafkaBroker

OPTIONS = {"topics": {"orders": 2, "invoices": 1}}


async def billing() -> None:
    broker = KafkaBroker("kafka:9092", logger=None)

    @broker.subscriber("orders", group_id="billing", auto_offset_reset="earliest")
    @broker.publisher("invoices")
    async def bill(order: str) -> str:
        await asyncio.sleep(0.02)
        return f"invoice for {order}"

    await FastStream(broker, logger=None).run()


async def shop() -> None:
    async with KafkaBroker("kafka:9092", logger=None) as broker:
        for number in range(20):
            await broker.publish(f"order {number}", "orders", key=b"%d" % number)
            await asyncio.sleep(0.1)


def run(simulation: Simulation) -> None:
    simulation.program(billing, name="billing")
    simulation.program(shop, name="shop")
    simulation.run_for(1500)
    simulation.broker("leader:orders-0").kill()
    simulation.wait_for_records("invoices", 20, timeout_s=120)
