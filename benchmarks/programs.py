"""Virtual seconds per real second of programs that use aiokafka, and of modelled clients."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from benchmarks.figures import line, sized

QUIET_S = sized(600, 10)
LOAD_S = sized(60, 2)
ROUNDS = sized(3, 1)
RATE = 100
WORKERS = 3
KILL_LIMIT_MS = 150


async def work(seen: list[bytes], name: str) -> None:
    """Consume like a typical service: with automatic commits, one record after the other."""
    from aiokafka import AIOKafkaConsumer

    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers="kafka:9092",
        group_id="workers",
        client_id=name,
        auto_offset_reset="earliest",
    )
    async with consumer:
        async for record in consumer:
            seen.append(record.value)


async def send(seconds: int, linger_ms: int) -> None:
    """Send at a steady rate, with an idempotent producer."""
    from aiokafka import AIOKafkaProducer

    loop = asyncio.get_running_loop()
    producer = AIOKafkaProducer(
        bootstrap_servers="kafka:9092", enable_idempotence=True, linger_ms=linger_ms
    )
    async with producer:
        begun_s = loop.time()
        for number in range(RATE * seconds):
            await producer.send("orders", b"%d" % number, key=b"%d" % (number % 50))
            await asyncio.sleep(max(0.0, begun_s + (number + 1) / RATE - loop.time()))


def quiet() -> float:
    """Return the virtual seconds per second of a consumer that finds no records."""
    simulation, _ = _with_workers(1)
    with simulation:
        started = time.perf_counter()
        simulation.run_for(QUIET_S * 1000)
        return QUIET_S / (time.perf_counter() - started)


def loaded(linger_ms: int) -> float:
    """Return the virtual seconds per second of three workers and a producer."""
    simulation, seen = _with_workers(WORKERS)
    with simulation:
        program = simulation.program(send, LOAD_S, linger_ms, name="producer")
        started = time.perf_counter()
        program.result(LOAD_S * 2)
        elapsed_s = time.perf_counter() - started
        simulation.wait_until(lambda: len(set(seen)) == RATE * LOAD_S, 30)
        return LOAD_S / elapsed_s


def modelled() -> float:
    """Return the virtual seconds per second of modelled clients with the same load."""
    from fakekafka import Simulation
    from fakekafka.protocol.values import TopicPartition

    with Simulation(3, seed=1, topics={"orders": WORKERS}) as simulation:
        for worker in range(WORKERS):
            simulation.group_consumer("workers", ["orders"], name=f"worker-{worker}")
        simulation.wait_for_group("workers", members=WORKERS, timeout_s=60)
        producer = simulation.producer(acks=-1)
        started = time.perf_counter()
        for number in range(RATE * LOAD_S):
            partition = TopicPartition("orders", number % WORKERS)
            producer.produce(partition, b"%d" % number)
            simulation.run_for(1000 / RATE)
        return LOAD_S / (time.perf_counter() - started)


def _with_workers(count: int) -> tuple[Any, list[bytes]]:
    from fakekafka import Simulation

    seen: list[bytes] = []
    simulation = Simulation(3, seed=1, topics={"orders": WORKERS})
    for number in range(count):
        name = f"worker-{number}"
        simulation.program(work, seen, name, name=name)
    simulation.wait_for_group("workers", members=count, timeout_s=60)
    return simulation, seen


def leader_killed() -> float:
    """Return the duration in milliseconds of a whole test with default settings: start a cluster,
    send 50 records, kill a leader."""
    from fakekafka import Simulation

    started = time.perf_counter()
    with Simulation(3, seed=1, topics={"orders": 3}) as simulation:
        program = simulation.program(_fifty, name="producer")
        simulation.run_for(1000)
        simulation.broker("leader:orders-0").kill()
        program.result(120)
    return (time.perf_counter() - started) * 1000


async def _fifty() -> None:
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(bootstrap_servers="kafka:9092") as producer:
        for number in range(50):
            await producer.send_and_wait("orders", b"%d" % number)
            await asyncio.sleep(0.1)


def measure() -> None:
    """Print virtual seconds per second, and the duration of a test."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    leader_killed()  # to import modules before the measurement
    rate = max(quiet() for _ in range(ROUNDS))
    line("a quiet consumer, 3 brokers", f"{rate:,.0f} virtual s/s", ">= 600", rate >= 600)
    what = f"{RATE} records/s, {WORKERS} workers"
    rate = max(loaded(100) for _ in range(ROUNDS))
    line(f"{what}, linger_ms=100", f"{rate:,.0f} virtual s/s", ">= 60", rate >= 60)
    single = max(loaded(0) for _ in range(ROUNDS))
    line(f"{what}, a request for each record", f"{single:,.0f} virtual s/s")
    clients = max(modelled() for _ in range(ROUNDS))
    line("  modelled clients instead", f"{clients:,.0f} virtual s/s")
    took_ms = min(leader_killed() for _ in range(ROUNDS))
    line(
        "a test that kills a leader, default settings",
        f"{took_ms:.0f} ms",
        f"<= {KILL_LIMIT_MS} ms",
        took_ms <= KILL_LIMIT_MS,
    )
