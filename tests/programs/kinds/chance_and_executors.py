"""Random numbers, ids, clocks and executors, while the clock of the machine is set."""

from __future__ import annotations

import asyncio
import concurrent.futures
import datetime
import os
import random
import secrets
import tempfile
import time
import uuid
from time import monotonic, perf_counter

from fakekafka import Simulation

OPTIONS = {"brokers": 1}


def work(number: int) -> tuple[int, float]:
    time.sleep(random.random() / 10)
    return number, perf_counter()


async def main(simulation: Simulation) -> None:
    generator = random.Random()
    with concurrent.futures.ThreadPoolExecutor() as executor:
        loop = asyncio.get_running_loop()
        until = monotonic() + 8
        while monotonic() < until:
            worked = await asyncio.gather(
                *(asyncio.to_thread(work, number) for number in range(3)),
                *(loop.run_in_executor(executor, work, number) for number in range(3)),
            )
            simulation.note(
                "drew",
                worked=worked,
                numbers=[random.random(), generator.random(), random.gauss(0, 1)],
                ids=[uuid.uuid4().hex, uuid.uuid1().hex, secrets.token_hex(4), os.urandom(4)],
                name=os.path.basename(tempfile.mktemp()),
                times=[time.time(), time.process_time(), str(datetime.datetime.now())],
            )
            await asyncio.sleep(random.uniform(0.1, 0.5))


def run(simulation: Simulation) -> None:
    programs = [simulation.program(main, simulation, name=name) for name in ("one", "other")]
    simulation.run_for(3000)
    programs[0].shift_clock(-3_600_000)
    programs[1].restart()
    simulation.run_for(2000)
    programs[1].shift_clock(500)
    for program in programs:
        program.result(60)
