"""An admin client creates and changes topics while the controller dies."""

from __future__ import annotations

import asyncio

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.errors import KafkaError
from fakekafka import Simulation

OPTIONS: dict[str, object] = {}


async def administer(simulation: Simulation) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers="kafka:9092", request_timeout_ms=5000)
    await admin.start()
    for number in range(12):
        topics = [
            NewTopic(f"{kind}-{number}", num_partitions=2, replication_factor=3)
            for kind in ("orders", "payments", "returns")
        ]
        try:
            answer = await admin.create_topics(topics)
            errors = [error for _, error, _ in answer.topic_errors]
            simulation.note("made", number=number, errors=errors)
        except (KafkaError, TimeoutError) as error:
            simulation.note("failed", number=number, error=type(error).__name__)
        if number % 4 == 3:
            try:
                await admin.create_partitions({f"orders-{number}": NewPartitions(5)})
                await admin.delete_topics([f"returns-{number}"])
            except (KafkaError, TimeoutError) as error:
                simulation.note("failed", number=number, error=type(error).__name__)
        await asyncio.sleep(1)
    simulation.note("topics", names=sorted(await admin.list_topics()))
    await admin.close()


def run(simulation: Simulation) -> None:
    admin = simulation.program(administer, simulation, name="administrator")
    simulation.run_for(2500)
    simulation.broker("controller").kill()
    admin.result(300)
