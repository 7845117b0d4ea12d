"""An idempotent producer sends to three partitions while leaders die and the network is slow."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from fakekafka import Simulation

OPTIONS = {"topics": {"orders": 3}}


async def produce(simulation: Simulation) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers="kafka:9092", enable_idempotence=True, linger_ms=20
    ) as producer:
        for number in range(40):
            key = b"key-%d" % (number % 7)
            try:
                waiting = await producer.send("orders", b"order %d" % number, key=key)
                if number % 5 == 0:
                    sent = await waiting
                    simulation.note("sent", number=number, offset=sent.offset)
            except KafkaError as error:
                simulation.note("failed", number=number, error=type(error).__name__)
            await asyncio.sleep(0.1)


def run(simulation: Simulation) -> None:
    producer = simulation.program(produce, simulation, name="producer")
    simulation.run_for(1000)
    simulation.broker("leader:orders-0").kill()
    simulation.network.latency(80)
    simulation.run_for(2000)
    simulation.broker("leader:orders-1").power_off()
    producer.result(3600)
