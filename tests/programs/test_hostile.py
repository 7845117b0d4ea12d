"""Programs that do what no program may do; each ends in an error that says what and where."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import random
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from fakekafka.programs.errors import NotSimulated, ProgramError
from fakekafka.programs.watchdog import watchdog
from fakekafka.protocol.errors import UsageError
from fakekafka.tests.support.programs import World


def test_a_program_that_never_awaits_is_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the line, and another program goes on."""
    monkeypatch.setattr(watchdog, "limit_s", 0.05)

    async def main() -> None:
        await asyncio.sleep(1)
        deadline_s = time.monotonic() + 5
        while time.monotonic() < deadline_s:  # virtual time stands still meanwhile
            pass

    other = world.start(asyncio.sleep, 5, "slept", name="other")
    with pytest.raises(ProgramError, match=r"has blocked its event loop") as failure:
        world.run(main)
    assert f"{__file__}:" in str(failure.value)
    assert "in main. Virtual time stands still" in str(failure.value)
    assert world.result(other) == "slept"


def test_a_program_that_catches_everything_is_ended_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that catches the error is ended, however often it continues."""
    monkeypatch.setattr(watchdog, "limit_s", 0.05)

    async def main() -> None:
        for _ in range(2):
            try:
                while True:
                    pass
            except BaseException:
                continue

    with pytest.raises(ProgramError, match="has blocked its event loop"):
        world.run(main)


def test_a_program_that_loops_without_a_pause_is_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program is ended after many turns without a pause, and the error names its tasks."""
    monkeypatch.setattr("fakekafka.programs.loop._BUSY_TURNS_MAX", 100)

    async def main() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(ProgramError, match=r"worker-1 is in an endless loop .*main at .*hostile"):
        world.run(main)


def test_a_task_that_will_not_end_is_named(world: World) -> None:
    """The error names a task that catches CancelledError and continues."""

    async def stubborn() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)

    async def main() -> None:
        kept.append(asyncio.create_task(stubborn(), name="stubborn"))
        await asyncio.sleep(1)

    kept: list[Any] = []
    with pytest.raises(ProgramError, match=r"still run after 60 s: stubborn at .*in stubborn"):
        world.run(main)


def _thread() -> None:
    threading.Thread(target=print).start()


def _queue() -> None:
    queue.Queue[int]().get()


def _socket() -> None:
    socket.create_connection(("worker-1", 9092))


def _datagrams() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def _process() -> None:
    subprocess.run(["true"], check=True)


def _sleep() -> None:
    time.sleep(3)


@pytest.mark.parametrize(
    ("action", "told"),
    [
        (_thread, "worker-1 starts a thread"),
        (_queue, "worker-1 waits for another thread"),
        (_socket, "worker-1 uses `connect` of a socket"),
        (_datagrams, "worker-1 makes a real socket"),
        (_process, "worker-1 starts another process"),
        (_sleep, r"worker-1 called time.sleep\(3\), a blocking sleep"),
    ],
)
def test_calls_that_would_leave_virtual_time_are_refused(
    world: World, action: Callable[[], None], told: str
) -> None:
    """The error names an alternative, and is raised in programs only."""

    async def main() -> None:
        action()

    with pytest.raises(NotSimulated, match=f"{told}, which virtual time does not have; ."):
        world.run(main)


def test_a_program_cannot_run_another_simulation(world: World) -> None:
    """A program's clocks and random numbers belong to one simulation, so it cannot run another."""

    async def main() -> str:
        with pytest.raises(UsageError) as failure:
            World().run(asyncio.sleep, 1)
        return str(failure.value)

    assert world.run(main).startswith("worker-1 runs another simulation")


def replaced_in_runs() -> list[object]:
    return [
        time.time,
        time.sleep,
        time.monotonic,
        asyncio.all_tasks,
        threading.Thread.start,
        socket.socket.__new__,
        socket.getaddrinfo,
        random.Random.seed,
        random.getstate(),
    ]


def test_no_patched_function_stays_patched_after_a_run(world: World) -> None:
    """The functions replaced for a run are restored after it, even if it fails."""
    before = replaced_in_runs()

    async def main() -> None:
        random.random()
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - raised above
        world.run(main)
    assert before == replaced_in_runs()
    assert abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) < 60
    assert time.gmtime().tm_year >= 2026
