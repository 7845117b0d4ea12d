"""aiokafka programs as a user would write them."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

BOOTSTRAP = "kafka:9092"


async def produce(count: int, every_s: float = 0.1, topic: str = "orders") -> int:
    """Send ``count`` numbers one after the other with an idempotent producer."""
    producer = AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, enable_idempotence=True)
    await producer.start()
    try:
        for number in range(count):
            key = b"key-%d" % (number % 5)
            await producer.send_and_wait(topic, b"%d" % number, key=key)
            await asyncio.sleep(every_s)
    finally:
        await producer.stop()
    return count


async def consume(seen: list[tuple[str, int]], worker: str, topic: str = "orders") -> None:
    """Append the number of each record to ``seen``, then commit."""
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=BOOTSTRAP,
        group_id="workers",
        client_id=worker,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        async for record in consumer:
            seen.append((worker, int(record.value)))
            await consumer.commit()
    finally:
        await consumer.stop()


async def transform(count: int) -> None:
    """Copy at least ``count`` records between two topics exactly once."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=BOOTSTRAP,
        group_id="transformers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    producer = AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id="copy")
    await consumer.start()
    await producer.start()
    partitions = [TopicPartition("orders", number) for number in range(3)]
    consumer.assign(partitions)
    copied = 0
    try:
        while copied < count:
            batches: dict[Any, Any] = await consumer.getmany(timeout_ms=500, max_records=10)
            if not batches:
                continue
            async with producer.transaction():
                offsets = {}
                for partition, records in batches.items():
                    for record in records:
                        await producer.send("copies", record.value)
                        copied += 1
                    offsets[partition] = records[-1].offset + 1
                await producer.send_offsets_to_transaction(offsets, "transformers")
    finally:
        await consumer.stop()
        await producer.stop()
