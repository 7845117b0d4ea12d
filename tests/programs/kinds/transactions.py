"""Transactions copy records exactly once, and aborted ones are not read, while leaders die."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from fakekafka import Simulation

OPTIONS = {"topics": {"orders": 2, "copies": 2}}
_COUNT = 30


async def fill() -> None:
    async with AIOKafkaProducer(bootstrap_servers="kafka:9092") as producer:
        for number in range(_COUNT):
            await producer.send_and_wait("orders", b"%d" % number, partition=number % 2)


async def copy(simulation: Simulation) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers="kafka:9092", group_id="copiers", auto_offset_reset="earliest",
        enable_auto_commit=False,
    )  # fmt: skip
    producer = AIOKafkaProducer(bootstrap_servers="kafka:9092", transactional_id="copy")
    await consumer.start()
    await producer.start()
    consumer.assign([TopicPartition("orders", number) for number in range(2)])
    copied = rounds = 0
    while copied < _COUNT:
        batches = await consumer.getmany(timeout_ms=300, max_records=4)
        rounds += 1
        if not batches:
            continue
        await producer.begin_transaction()
        for records in batches.values():
            for record in records:
                await producer.send("copies", record.value)
        if rounds % 3 == 0:
            await producer.abort_transaction()
            for partition, records in batches.items():
                consumer.seek(partition, records[0].offset)
            simulation.note("aborted", round=rounds)
            continue
        offsets = {partition: records[-1].offset + 1 for partition, records in batches.items()}
        await producer.send_offsets_to_transaction(offsets, "copiers")
        await producer.commit_transaction()
        copied += sum(map(len, batches.values()))
        await asyncio.sleep(0.2)
    await consumer.stop()
    await producer.stop()


async def read(simulation: Simulation) -> None:
    consumer = AIOKafkaConsumer(
        "copies", bootstrap_servers="kafka:9092", auto_offset_reset="earliest",
        isolation_level="read_committed",
    )  # fmt: skip
    async with consumer:
        for _ in range(_COUNT):
            record = await consumer.getone()
            simulation.note("read", value=record.value, partition=record.partition)


def run(simulation: Simulation) -> None:
    simulation.program(fill, name="filler").result(120)
    reader = simulation.program(read, simulation, name="reader")
    copier = simulation.program(copy, simulation, name="copier")
    simulation.run_for(700)
    simulation.broker("leader:copies-0").kill()
    copier.result(300)
    reader.result(300)
