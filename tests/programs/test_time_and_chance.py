"""Clocks and chance of programs: the seed's, and each program's own."""

from __future__ import annotations

import asyncio
import datetime
import os
import random
import secrets
import socket
import threading
import time
import uuid
from time import time as imported_long_ago
from typing import Any

from fakekafka.tests.support.programs import World

BEGIN_S = 1_767_225_600.0


async def ask_clocks() -> dict[str, Any]:
    await asyncio.sleep(2.5)
    return {
        "time": time.time(),
        "imported": imported_long_ago(),
        "ns": time.time_ns(),
        "now": datetime.datetime.now(datetime.UTC).timestamp(),
        "today": datetime.date.today(),
        "gmtime": time.gmtime()[:6],
        "monotonic": time.monotonic(),
        "monotonic_ns": time.monotonic_ns(),
        "perf": time.perf_counter(),
        "loop": asyncio.get_running_loop().time(),
    }


async def draw() -> list[Any]:
    await asyncio.sleep(1)
    numbers = list(range(10))
    random.shuffle(numbers)
    return [
        random.random(),
        numbers,
        random.Random().random(),
        random.SystemRandom().random(),
        uuid.uuid4(),
        uuid.uuid1(),
        secrets.token_hex(),
        os.urandom(8),
    ]


def test_every_clock_shows_virtual_time(world: World) -> None:
    """Also by a name that was imported before."""
    found = world.run(ask_clocks)
    assert found["today"].year == 2026
    del found["today"]
    assert found == {
        "time": BEGIN_S + 2.5,
        "imported": BEGIN_S + 2.5,
        "ns": int((BEGIN_S + 2.5) * 1e9),
        "now": BEGIN_S + 2.5,
        "gmtime": (2026, 1, 1, 0, 0, 2),
        "monotonic": 2.5,
        "monotonic_ns": 2_500_000_000,
        "perf": 2.5,
        "loop": 2.5,
    }


def test_chance_is_the_seeds() -> None:
    """The same seed gives the same, another one does not; programs differ from each other."""

    def run(seed: int) -> list[Any]:
        world = World(seed)
        drawn = [world.run(draw, name="a"), world.run(draw, name="b")]
        world.end()
        return drawn

    first, again, other = run(1), run(1), run(2)
    assert first == again
    for one, another in ((first[0], first[1]), (first[0], other[0])):
        assert not any(a == b for a, b in zip(one, another, strict=True))


def test_the_test_around_keeps_its_chance(world: World) -> None:
    """What it draws does not hang on what programs draw."""
    random.seed(5)
    expected = [random.random() for _ in range(3)]
    random.seed(5)
    drawn = [random.random()]
    world.run(draw)
    drawn += [random.random(), random.random()]
    assert drawn == expected


def test_a_program_has_the_name_of_its_machine(world: World) -> None:
    """As it finds it by ``socket.gethostname``."""

    async def main() -> str:
        return socket.gethostname()

    assert world.run(main, name="payments") == "payments"
    assert socket.gethostname() != "payments"


def test_other_threads_see_real_time(world: World) -> None:
    """While a program runs."""
    seen: list[float] = []
    may_look, has_looked = threading.Event(), threading.Event()

    def look() -> None:
        may_look.wait(10)
        seen.append(time.monotonic())
        has_looked.set()

    async def main() -> float:
        may_look.set()
        while not has_looked.is_set():
            pass
        return time.monotonic()

    thread = threading.Thread(target=look)
    thread.start()
    assert world.run(main) == 0
    thread.join()
    assert seen[0] > 1


def test_two_simulations_do_not_meet() -> None:
    """In two threads of one process."""
    results: dict[int, list[Any]] = {}

    def run(seed: int) -> None:
        world = World(seed)
        results[seed] = [world.run(draw), world.run(ask_clocks, name="b")]
        world.end()

    for seed in (1, 2):
        run(seed)
    alone = dict(results)
    threads = [threading.Thread(target=run, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == alone
