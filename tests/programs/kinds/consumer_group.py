"""A group of three consumers; one is killed, one is cut off, and the group rebalances."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError
from fakekafka import Simulation

OPTIONS = {"topics": {"orders": 4, "payments": 2, "returns": 3}}


class Reporter(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._simulation.note(
            "revoked", partitions=[f"{topic}-{number}" for topic, number in revoked]
        )

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._simulation.note(
            "assigned", partitions=[f"{topic}-{number}" for topic, number in assigned]
        )


async def consume(simulation: Simulation) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers="kafka:9092",
        group_id="workers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    consumer.subscribe(["orders", "payments", "returns"], listener=Reporter(simulation))
    await consumer.start()
    try:
        async for record in consumer:
            simulation.note("read", topic=record.topic, offset=record.offset)
            try:
                await consumer.commit()
            except KafkaError as error:
                simulation.note("not committed", error=type(error).__name__)
    finally:
        await consumer.stop()


async def produce() -> None:
    async with AIOKafkaProducer(bootstrap_servers="kafka:9092") as producer:
        for number in range(60):
            topic = ("orders", "payments", "returns")[number % 3]
            await producer.send_and_wait(topic, b"%d" % number)
            await asyncio.sleep(0.05)


def run(simulation: Simulation) -> None:
    workers = [simulation.program(consume, simulation, name=f"worker-{n}") for n in (1, 2, 3)]
    simulation.run_for(5000)
    producer = simulation.program(produce, name="producer")
    simulation.run_for(1500)
    workers[0].kill()
    simulation.network.isolate("worker-2")
    simulation.run_for(20_000)
    simulation.network.heal()
    workers[0].restart()
    producer.result(120)
    simulation.run_for(10_000)
