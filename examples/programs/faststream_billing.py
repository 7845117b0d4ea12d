"""A FastStream service bills orders while the leader of its topic dies.

The service is ordinary FastStream code; only its bootstrap server is that of the simulation.
"""

from __future__ import annotations

import asyncio

from fakekafka import Simulation
from faststream import FastStream
from faststream.kafka import KafkaBroker

ORDERS = 20


async def billing() -> None:
    """Read orders, and write an invoice for each."""
    broker = KafkaBroker("kafka:9092", logger=None)

    @broker.subscriber("orders", group_id="billing", auto_offset_reset="earliest")
    @broker.publisher("invoices")
    async def bill(order: str) -> str:
        return f"invoice for {order}"

    await FastStream(broker, logger=None).run()


async def shop() -> None:
    """Send an order every 100 ms."""
    async with KafkaBroker("kafka:9092", logger=None) as broker:
        for number in range(ORDERS):
            await broker.publish(f"order {number}", "orders", key=b"%d" % number)
            await asyncio.sleep(0.1)


def main(seed: int = 1) -> tuple[list[bytes | None], float]:
    """Run the services under a fault; return the invoices, and the virtual seconds that passed."""
    with Simulation(3, seed=seed, topics={"orders": 1, "invoices": 1}) as simulation:
        simulation.program(billing, name="billing")
        simulation.program(shop, name="shop")
        simulation.run_for(1500)
        simulation.broker("leader:orders-0").kill()
        simulation.wait_for_records("invoices", ORDERS, timeout_s=120)
        simulation.run_for(10_000)  # to see invoices that are written twice
        invoices = [record.value for record in simulation.records("invoices")]
        return invoices, simulation.now_ms / 1000


if __name__ == "__main__":
    invoices, took_s = main()
    print(f"{len(set(invoices))} orders have {len(invoices)} invoices, in {took_s:.0f} virtual s")
