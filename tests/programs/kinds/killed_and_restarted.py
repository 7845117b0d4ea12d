"""Workers are killed, paused and restarted while they work, and their network is cut."""

from __future__ import annotations

import asyncio
import contextlib

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from fakekafka import Simulation

OPTIONS = {"topics": {"orders": 3, "charges": 1}}


async def work(simulation: Simulation) -> None:
    consumer = AIOKafkaConsumer(
        "orders", bootstrap_servers="kafka:9092", group_id="payments",
        auto_offset_reset="earliest", auto_commit_interval_ms=700,
    )  # fmt: skip
    producer = AIOKafkaProducer(bootstrap_servers="kafka:9092", acks="all")
    async with consumer, producer:

        async def charge(value: bytes) -> None:
            await asyncio.sleep(0.05)
            with contextlib.suppress(KafkaError):
                await producer.send_and_wait("charges", value)
                simulation.note("charged", order=int(value))

        async with asyncio.TaskGroup() as group:
            async for record in consumer:
                group.create_task(charge(record.value))


def run(simulation: Simulation) -> None:
    for number in range(30):
        simulation.produce("orders", str(number), partition=number % 3)
    workers = [simulation.program(work, simulation, name=f"worker-{n}") for n in (1, 2)]
    simulation.run_for(4000)
    workers[0].kill()
    simulation.network.partition(["worker-2"], [1])
    for number in range(30, 40):
        simulation.produce("orders", str(number), partition=number % 3)
    simulation.run_for(3000)
    workers[0].restart()
    workers[1].pause()
    simulation.run_for(15_000)
    simulation.network.heal()
    workers[1].resume()
    simulation.run_for(15_000)
