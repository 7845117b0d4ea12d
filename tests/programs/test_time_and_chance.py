"""Virtual clocks and seeded random numbers of programs."""

from __future__ import annotations

import asyncio
import datetime
import gc
import os
import random
import secrets
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from datetime import datetime as bound_datetime
from os import urandom as bound_urandom
from random import random as bound_random
from socket import getaddrinfo as bound_getaddrinfo
from socket import gethostname as bound_gethostname
from ssl import RAND_bytes as bound_rand_bytes
from time import clock_gettime as bound_clock
from time import clock_gettime_ns as bound_clock_ns
from time import monotonic as bound_monotonic
from time import monotonic_ns as bound_monotonic_ns
from time import perf_counter as bound_perf_counter
from time import perf_counter_ns as bound_perf_counter_ns
from time import process_time as bound_process_time
from time import sleep as bound_sleep
from time import thread_time_ns as bound_thread_time_ns
from time import time as bound_time
from typing import Any
from uuid import uuid1 as bound_uuid1
from uuid import uuid4 as bound_uuid4

import pytest
from fakekafka.programs.c_functions import CFunction
from fakekafka.programs.errors import NotSimulated
from fakekafka.tests.support.programs import World

BEGIN_S = 1_767_225_600.0


async def ask_clocks() -> dict[str, Any]:
    await asyncio.sleep(2.5)
    return {
        "time": time.time(),
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
    """The calendar, wall clocks and monotonic clocks show virtual time."""
    found = world.run(ask_clocks)
    assert found["today"].year == 2026
    del found["today"]
    assert found == {
        "time": BEGIN_S + 2.500001,
        "ns": (int(BEGIN_S) * 1_000_000 + 2_500_001) * 1000,
        "now": BEGIN_S + 2.500001,
        "gmtime": (2026, 1, 1, 0, 0, 2),
        "monotonic": 2.500001,
        "monotonic_ns": 2_500_001_000,
        "perf": 2.500001,
        "loop": 2.500001,
    }


CLOCKS: dict[str, tuple[Callable[[], Any], Any]] = {
    "time": (bound_time, BEGIN_S + 2.500001),
    "now": (lambda: bound_datetime.now(datetime.UTC).timestamp(), BEGIN_S + 2.500001),
    "monotonic": (bound_monotonic, 2.500001),
    "monotonic_ns": (bound_monotonic_ns, 2_500_001_000),
    "perf_counter": (bound_perf_counter, 2.500001),
    "perf_counter_ns": (bound_perf_counter_ns, 2_500_001_000),
    "process_time": (bound_process_time, 2.500001),
    "thread_time_ns": (bound_thread_time_ns, 2_500_001_000),
    "wall clock by number": (lambda: bound_clock(time.CLOCK_REALTIME), BEGIN_S + 2.500001),
    "clock by number": (lambda: bound_clock_ns(time.CLOCK_MONOTONIC), 2_500_001_000),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_a_clock_that_was_bound_to_a_name_long_ago_shows_virtual_time(
    world: World, name: str
) -> None:
    """A clock bound by ``from time import monotonic`` is virtual, too, and real after the run."""
    ask, expected = CLOCKS[name]

    async def main() -> Any:
        await asyncio.sleep(2.5)
        return ask()

    assert world.run(main) == expected
    assert ask() != expected


CHANCES: dict[str, Callable[[], Any]] = {
    "random": bound_random,
    "urandom": lambda: bound_urandom(8),
    "RAND_bytes": lambda: bound_rand_bytes(8),
    "uuid1": bound_uuid1,
    "uuid4": bound_uuid4,
}


@pytest.mark.parametrize("name", CHANCES)
def test_random_functions_imported_earlier_use_the_seed(name: str) -> None:
    """Random values are equal in two runs of a seed, and differ outside of runs."""
    draw = CHANCES[name]

    async def main() -> Any:
        return draw()

    def run() -> Any:
        world = World(7)
        drawn = world.run(main)
        world.end()
        return drawn

    assert run() == run()
    assert draw() != draw()


def test_names_bound_long_ago_lead_to_the_simulated_network(world: World) -> None:
    """The host name is that of the program's machine, and names of machines are resolved."""

    async def main() -> Any:
        found = bound_getaddrinfo("worker-1", 80, type=socket.SOCK_STREAM)
        return bound_gethostname(), found[0][4]

    host, address = world.run(main)
    assert (host, address[1]) == ("worker-1", 80)
    assert address[0].startswith("10.")
    assert bound_gethostname() != "worker-1"


def test_a_sleep_that_was_bound_long_ago_is_refused(world: World) -> None:
    """The error passes through C code like any other."""

    async def main() -> None:
        bound_sleep(1000)

    with pytest.raises(NotSimulated, match="a blocking sleep"):
        world.run(main)


def test_a_replaced_c_function_keeps_its_replacement_alive_until_it_is_restored() -> None:
    """The replacement outlives a garbage collection although no other object holds it."""
    function = CFunction(time.monotonic)
    real, module = function.real, sys.getrefcount(time)
    for _ in range(3):
        function.replace(lambda: -1.0)
        gc.collect()
        assert [bound_monotonic(), time.monotonic()] == [-1, -1]
        assert real() > 0
        function.restore()
    assert bound_monotonic() > 0
    assert sys.getrefcount(time) == module


def test_random_numbers_come_from_the_seed() -> None:
    """A seed determines the values; other seeds and other programs have different values."""

    def run(seed: int) -> list[Any]:
        world = World(seed)
        drawn = [world.run(draw, name="a"), world.run(draw, name="b")]
        world.end()
        return drawn

    first, again, other = run(1), run(1), run(2)
    assert first == again
    for one, another in ((first[0], first[1]), (first[0], other[0])):
        assert not any(a == b for a, b in zip(one, another, strict=True))


def test_the_random_state_of_the_test_is_kept(world: World) -> None:
    """The values that the test draws do not depend on what programs draw."""
    random.seed(5)
    expected = [random.random() for _ in range(3)]
    random.seed(5)
    drawn = [random.random()]
    world.run(draw)
    drawn += [random.random(), random.random()]
    assert drawn == expected


def test_a_program_has_the_name_of_its_machine(world: World) -> None:
    """A program finds the name of its machine by ``socket.gethostname``."""

    async def main() -> str:
        return socket.gethostname()

    assert world.run(main, name="payments") == "payments"
    assert socket.gethostname() != "payments"


def test_other_threads_see_real_time(world: World) -> None:
    """Other threads see real time while a program runs."""
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
    """Two simulations in two threads of one process do not affect each other."""
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
