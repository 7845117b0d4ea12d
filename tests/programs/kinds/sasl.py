"""Clients log in with a password, one with a wrong one, and a leader dies."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from fakekafka import Simulation

OPTIONS = {
    "topics": {"orders": 2},
    "security": {
        "listeners": ["PLAINTEXT", "CLIENTS:SASL_PLAINTEXT"],
        "users": {"alice": "secret"},
    },
}


def _client(password: str) -> dict[str, str]:
    return {
        "bootstrap_servers": "kafka:9093",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": password,
    }


async def produce(simulation: Simulation) -> None:
    async with AIOKafkaProducer(**_client("secret")) as producer:
        for number in range(20):
            sent = await producer.send_and_wait("orders", b"%d" % number)
            simulation.note("sent", partition=sent.partition, offset=sent.offset)
            await asyncio.sleep(0.2)


async def consume(simulation: Simulation) -> None:
    consumer = AIOKafkaConsumer("orders", auto_offset_reset="earliest", **_client("secret"))
    async with consumer:
        for _ in range(20):
            record = await consumer.getone()
            simulation.note("read", value=record.value)


async def guess(simulation: Simulation) -> None:
    producer = AIOKafkaProducer(**_client("wrong"))
    try:
        await producer.start()
    except KafkaError as error:
        simulation.note("refused", error=type(error).__name__)
    finally:
        await producer.stop()


def run(simulation: Simulation) -> None:
    programs = [
        simulation.program(main, simulation, name=main.__name__)
        for main in (produce, consume, guess)
    ]
    simulation.run_for(2000)
    simulation.broker("leader:orders-0").kill()
    for program in programs:
        program.result(300)
