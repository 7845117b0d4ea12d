"""The life of a program: kills, restarts, pauses, and the handling of its errors."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fakekafka.programs.errors import ProgramError
from fakekafka.protocol.errors import UsageError
from fakekafka.tests.support.programs import World
from fakekafka.tracing.recording.recorder import Recorder


def test_nothing_of_a_killed_program_runs(world: World) -> None:
    """A killed program runs no ``finally``, no exit of a context manager and no ``__del__``."""
    ran: list[str] = []

    class Guarded:
        async def __aenter__(self) -> None:
            ran.append("entered")

        async def __aexit__(self, *_exc: object) -> None:
            ran.append("left")

        def __del__(self) -> None:
            ran.append("deleted")

    async def helper() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ran.append("helper")

    async def main() -> None:
        task = asyncio.create_task(helper())
        guarded = Guarded()
        try:
            async with guarded:
                await task
        except BaseException:
            ran.append("caught")
            raise
        finally:
            ran.append("finally")

    program = world.start(main)
    world.run_for(1)
    program.kill()
    gc.collect()
    world.run_for(1000)
    gc.collect()
    assert ran == ["entered"]
    assert not program.is_running
    with pytest.raises(ProgramError, match="worker-1 was killed before its main had a result"):
        program.outcome()


@pytest.mark.parametrize("how", ["killed", "left running"])
def test_objects_of_an_ended_program_are_freed(world: World, how: str) -> None:
    """An ended program's objects are freed without running any ``finally`` or ``__del__``."""
    ran: list[str] = []

    class Held:
        def __del__(self) -> None:
            ran.append("deleted")

    @contextmanager
    def held() -> Iterator[Held]:
        try:
            yield Held()
        finally:
            ran.append("left")

    async def ticks() -> AsyncIterator[int]:
        try:
            for number in range(1000):
                yield number
        finally:
            ran.append("ended")

    async def main() -> None:
        with held() as one:
            references.append(weakref.ref(one))
            async for _ in ticks():
                await asyncio.sleep(100)

    references: list[weakref.ref[Held]] = []
    program = world.start(main)
    world.run_for(1)
    if how == "killed":
        program.kill()
    else:
        program.discard()
    gc.collect()
    assert [reference() for reference in references] == [None]
    assert ran == []


def test_an_object_with_a_finalizer_is_kept(world: World) -> None:
    """An object with a ``weakref.finalize`` is kept, as its callback could not be prevented."""
    ran: list[str] = []

    class Held:
        pass

    async def main() -> None:
        one = Held()
        weakref.finalize(one, ran.append, "finalized").atexit = False
        await asyncio.sleep(100)

    program = world.start(main)
    world.run_for(1)
    program.kill()
    gc.collect()
    assert ran == []


def test_a_program_that_waits_for_its_own_objects_is_not_garbage(world: World) -> None:
    """The program's main is held although no other object refers to it."""

    async def main() -> str:
        waiter = asyncio.get_running_loop().create_future()
        waiters.append(weakref.ref(waiter))
        return str(await waiter)

    waiters: list[Any] = []
    program = world.start(main)
    world.run_for(1)
    gc.collect()
    assert waiters[0]() is not None
    assert program.is_running


def test_a_restarted_program_starts_in_a_new_loop(world: World) -> None:
    """A restarted program has the same arguments, another loop and other random numbers."""
    begun: list[Any] = []

    async def main(log: list[Any]) -> None:
        import random

        log.append((asyncio.get_running_loop(), random.random()))
        await asyncio.sleep(100)

    program = world.start(main, begun)
    world.run_for(10)
    program.restart()
    world.run_for(10)
    program.kill()
    program.start()
    world.run_for(10)
    assert len(set(begun)) == 3
    assert program.starts == 3
    with pytest.raises(UsageError, match="worker-1 is already running"):
        program.start()


def test_timers_of_a_paused_program_fire_when_it_resumes(world: World) -> None:
    """Timers that come due in a paused program fire in their order when it resumes."""
    fired: list[tuple[int, float]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for number in (3, 1, 2):
            loop.call_later(number, lambda due: fired.append((due, loop.time())), number)
        await asyncio.sleep(50)

    program = world.start(main)
    world.run_for(1.5)
    program.pause()
    world.run_for(20)
    assert program.is_paused
    assert fired == [(1, 1.000001)]
    program.resume()
    world.run_for(1)
    assert fired == [(1, 1.000001), (2, 21.5), (3, 21.5)]


def test_the_clock_of_a_program_can_be_set(world: World) -> None:
    """Setting a program's clock changes its wall clock only."""

    async def main() -> tuple[float, float]:
        wall_s, monotonic_s = time.time(), time.monotonic()
        await asyncio.sleep(10)
        return time.time() - wall_s, time.monotonic() - monotonic_s

    program = world.start(main)
    world.run_for(5)
    program.shift_clock(-3000)
    wall_s, monotonic_s = world.result(program)
    assert (round(wall_s, 3), monotonic_s) == (7, 10.000001)


def test_an_error_of_main_is_raised_by_the_call_that_runs_events(world: World) -> None:
    """The error names the program, the time and the seed, and other programs go on."""

    async def fail() -> None:
        await asyncio.sleep(3)
        raise ValueError("no such order")

    program = world.start(fail)
    other = world.start(asyncio.sleep, 100, "slept", name="other")
    with pytest.raises(ValueError, match="no such order") as failure:
        world.run_for(50)
    assert failure.value.__notes__ == ["raised in worker-1, seed 1, at 3 virtual s"]
    assert world.now_s == 3.000001
    assert world.result(other) == "slept"
    with pytest.raises(ValueError, match="no such order"):
        program.outcome()


def test_an_error_is_raised_by_the_call_that_waits_for_the_result(world: World) -> None:
    """The error is raised by the call that waits for the result, not by one that runs events."""

    async def fail() -> None:
        raise KeyError("order")

    with pytest.raises(KeyError, match="order"):
        world.run(fail)


def test_an_error_of_a_callback_or_of_a_forgotten_task_is_raised(world: World) -> None:
    """The error is raised unless the program has an exception handler."""

    async def in_callback() -> None:
        asyncio.get_running_loop().call_later(1, lambda: 1 / 0)
        await asyncio.sleep(5)

    async def in_task() -> None:
        async def fail() -> None:
            raise ValueError("forgotten")

        asyncio.create_task(fail())  # noqa: RUF006 - this is the mistake
        await asyncio.sleep(5)

    async def handled() -> list[str]:
        loop, told = asyncio.get_running_loop(), list[str]()
        loop.set_exception_handler(lambda _loop, context: told.append(str(context["exception"])))
        loop.call_later(1, lambda: 1 / 0)
        await asyncio.sleep(5)
        return told

    world.start(in_callback, name="a")
    with pytest.raises(ZeroDivisionError) as failure:
        world.run_for(10)
    assert failure.value.__notes__[0].startswith("a: Exception in callback ")
    world.start(in_task, name="b")
    with pytest.raises(ValueError, match="forgotten") as forgotten:
        world.run_for(10)
    assert forgotten.value.__notes__[0] == "b: Task exception was never retrieved"
    assert world.run(handled) == ["division by zero"]


def test_tasks_that_are_left_are_cancelled(world: World) -> None:
    """Tasks that are left are cancelled, as by ``asyncio.run``, and the trace names them."""
    ended: list[str] = []
    recorder = Recorder()
    world.runtime.record(recorder)

    async def helper() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(1)
            ended.append("helper")

    async def main() -> int:
        kept.append(asyncio.create_task(helper(), name="the helper"))
        await asyncio.sleep(1)
        return 5

    kept: list[Any] = []
    assert world.run(main) == 5
    assert ended == ["helper"]
    told = [event.why for event in recorder.events if event.kind == "note" and event.why]
    assert any("leaves 1 tasks, which are cancelled: the helper at" in text for text in told)


def test_sys_exit_ends_a_program(world: World) -> None:
    """An exit code other than 0 is an error."""

    async def main(code: int) -> None:
        await asyncio.sleep(1)
        sys.exit(code)

    assert world.run(main, 0) is None
    with pytest.raises(ProgramError, match="other exited with code 3"):
        world.run(main, 3, name="other")


def test_a_function_that_is_not_async_is_refused(world: World) -> None:
    """The error of a function that is not async shows what it returned instead."""
    with pytest.raises(UsageError, match=r"returned 3; the main .* must be an `async def`"):
        world.run(lambda: 3)  # type: ignore[arg-type,return-value]


def test_a_program_cannot_kill_or_pause_itself(world: World) -> None:
    """The calling code would have to continue after its own kill or pause."""

    async def main() -> list[str]:
        texts = []
        for action in (program.kill, program.pause):
            with pytest.raises(UsageError) as failure:
                action()
            texts.append(str(failure.value))
        return texts

    program = world.start(main)
    assert world.result(program) == [
        "worker-1 cannot kill itself; let its main return, or raise",
        "worker-1 cannot pause itself; use `await asyncio.sleep(...)`",
    ]


def test_a_killed_program_keeps_nothing_of_the_simulation(world: World) -> None:
    """Only a killed program's own objects are kept, so that none of its code runs."""

    async def main() -> None:
        await asyncio.start_server(lambda *_: None, port=1)
        await asyncio.sleep(1000)

    other = World()
    other.start(main)
    other.run_for(1)
    reference = weakref.ref(other.runtime)
    other.end()
    del other
    gc.collect()
    assert reference() is None


def test_nodes_are_not_notified_of_the_end_of_a_program(world: World) -> None:
    """Nodes have no connections to a program; its peers learn of its end from their connections."""
    recorder = Recorder()
    world.runtime.record(recorder)
    program = world.start(asyncio.sleep, 10)
    world.run_for(1)
    program.kill()
    world.run_for(5)
    told = [(event.kind, event.why) for event in recorder.events if event.actor == "worker-1"]
    assert told == [("note", "worker-1 starts: sleep"), ("crash", "worker-1 is killed")]
    assert {event.kind for event in recorder.events} == {"step", "note", "crash"}
