"""A seed gives the same run in every process, whatever the hash seed and the addresses."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, random, time, uuid
from fakekafka import Simulation

async def talk(reader, writer):
    while line := await reader.readline():
        writer.write(line * 3)
        await writer.drain()
    writer.close()

async def serve():
    await asyncio.start_server(talk, port=7000)
    await asyncio.sleep(1000)

async def nap(number):
    await asyncio.sleep(random.random())
    return number

async def main(simulation):
    for round in range(20):
        naps = {asyncio.create_task(nap(number)) for number in range(10)}
        done, pending = await asyncio.wait(naps, timeout=0.5)
        simulation.note("done", order=[task.result() for task in done])
        for task in pending:
            task.cancel()
        reader, writer = await asyncio.open_connection("server", 7000)
        writer.write(f"{uuid.uuid4()} {time.time()}\\n".encode() * 500)
        sizes = []
        writer.write_eof()
        while data := await reader.read(1 << 14):
            sizes.append(len(data))
        simulation.note("read", sizes=sizes)
        writer.close()
        await asyncio.to_thread(time.sleep, 0.1)

with Simulation(1, seed=11, topics={"orders": 1}) as simulation:
    server = simulation.program(serve, name="server")
    program = simulation.program(main, simulation, name="main")
    simulation.network.drop(0.05)
    simulation.run_for(3000)
    server.restart()
    try:
        program.result(100)
    except ConnectionError as error:
        print(error)
    print(simulation.fingerprint)
"""


@pytest.mark.slow
def test_a_run_depends_on_the_seed_alone() -> None:
    """Sets of tasks, random numbers, clocks, executors and splits of bytes depend on the seed."""
    printed = []
    for hash_seed in ("1", "2", "random"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert len(set(printed)) == 1
