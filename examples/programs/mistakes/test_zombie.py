"""A zombie after a pause: it finishes what it had begun, and overwrites its successor's work."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer
from attacks import attack, cut_off, killed, leader_killed, paused
from fakekafka import Simulation
from fakekafka.testing.programs import checks
from shop import CLUSTER, GROUP, Outside, Service, commit


async def wrong(outside: Outside) -> None:
    async with AIOKafkaConsumer("balances", **GROUP, enable_auto_commit=False) as consumer:
        async for balance in consumer:
            await outside.set_balance(balance.key, balance.value)
            await commit(consumer)


async def right(outside: Outside) -> None:
    async with AIOKafkaConsumer("balances", **GROUP, enable_auto_commit=False) as consumer:
        async for balance in consumer:
            await outside.set_balance(balance.key, balance.value, version=balance.offset)
            await commit(consumer)


@pytest.mark.parametrize("service", [wrong, right])
@pytest.mark.kafka(topics={"balances": 2}, seeds=range(1, 501), **CLUSTER)
def test_the_newest_balance_stands(kafka_simulation: Simulation, service: Service) -> None:
    outside = Outside(kafka_simulation)
    workers = [kafka_simulation.program(service, outside, name=f"worker-{n}") for n in (1, 2)]
    kafka_simulation.wait_for_group("payments", members=2, timeout_s=60)
    for number in range(10):
        account = ("alice", "bob")[number % 2]
        kafka_simulation.produce("balances", str(number), key=account, partition=number % 2)
    each = [fault(worker) for worker in workers for fault in (killed, paused, cut_off)]
    attack(kafka_simulation, *each, leader_killed("balances-0"))
    work = checks.Work(kafka_simulation, "balances", note="stored", by="balance", group="payments")
    checks.require(work.newest_by_key_stands())
