"""Task groups, timeouts, queues and sets of tasks, in a program that is paused and resumed."""

from __future__ import annotations

import asyncio
import random

from fakekafka import Simulation

OPTIONS = {"brokers": 1}


async def nap(number: int) -> int:
    await asyncio.sleep(random.random())
    return number


async def main(simulation: Simulation) -> None:
    queue: asyncio.Queue[int] = asyncio.Queue(3)
    lock = asyncio.Lock()

    async def put() -> None:
        for number in range(30):
            await queue.put(number)
            await asyncio.sleep(random.expovariate(20))

    async def get(name: str) -> None:
        while True:
            number = await queue.get()
            async with lock:
                await asyncio.sleep(0.01)
            simulation.note("got", name=name, number=number)

    for _ in range(10):
        naps = {asyncio.create_task(nap(number)) for number in range(12)}
        done, pending = await asyncio.wait(naps, timeout=0.5)
        simulation.note("done", numbers=[task.result() for task in done])
        for task in pending:
            task.cancel()
    getting = [asyncio.create_task(get(name)) for name in ("a", "b", "c")]
    try:
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            group.create_task(put())
            group.create_task(asyncio.sleep(60))
    except TimeoutError:
        simulation.note("late", tasks=[task.get_name() for task in asyncio.all_tasks()])
    for one in getting:
        one.cancel()
    for future in asyncio.as_completed([nap(number) for number in range(10)]):
        simulation.note("woke", number=await future)


def run(simulation: Simulation) -> None:
    program = simulation.program(main, simulation, name="main")
    simulation.run_for(2300)
    program.pause()
    simulation.run_for(1700)
    program.resume()
    program.result(120)
