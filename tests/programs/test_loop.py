"""The event loop of a program: virtual time, a fixed order, and the semantics of asyncio."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fakekafka.tests.support.programs import World


def test_an_hour_of_sleep_takes_no_time(world: World) -> None:
    """``loop.time`` and the clocks advance by the time slept, and real time does not."""

    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        begun_s, clock_s = loop.time(), time.monotonic()
        await asyncio.sleep(3600)
        return loop.time() - begun_s, time.monotonic() - clock_s

    begun_s = time.perf_counter()
    assert world.run(main, seconds=4000) == (3600.000001, 3600.000001)
    assert time.perf_counter() - begun_s < 60


def test_timers_of_one_time_fire_in_the_order_in_which_they_were_set(world: World) -> None:
    """Timers of the same time fire in the order in which they were set."""

    async def main() -> list[int]:
        loop, fired = asyncio.get_running_loop(), list[int]()
        for number in range(20):
            loop.call_at(5.0, fired.append, number)
        await asyncio.sleep(6)
        return fired

    assert world.run(main) == list(range(20))


def test_a_cancelled_timer_does_not_fire(world: World) -> None:
    """A timer may be cancelled before its time or in the same instant."""

    async def main() -> list[str]:
        loop, fired = asyncio.get_running_loop(), list[str]()
        early = loop.call_later(1, fired.append, "early")
        late = loop.call_at(loop.time() + 2, fired.append, "late")
        loop.call_at(loop.time() + 2, late.cancel)
        loop.call_later(0.5, early.cancel)
        await asyncio.sleep(4)
        assert early.cancelled()
        return fired

    assert world.run(main) == ["late"]


def test_a_timer_never_fires_before_its_time(world: World) -> None:
    """A timer never fires before its time by the loop's own clock, not even by a fraction."""

    async def main() -> int:
        loop, rounds = asyncio.get_running_loop(), 0
        for step in range(1, 200):
            deadline_s = loop.time() + step / 7
            while (left_s := deadline_s - loop.time()) > 0:
                await asyncio.sleep(left_s)
                rounds += 1
        return rounds

    assert world.run(main, seconds=5000) == 199


def test_a_program_that_polls_with_a_timeout_of_0_gets_to_its_deadline(world: World) -> None:
    """Time passes for a polling program as in real life, although its code takes no time."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + 0.001
        never = loop.create_future()
        while loop.time() < deadline_s:
            await asyncio.wait({never}, timeout=0)
        while loop.time() < deadline_s + 0.1:
            await asyncio.sleep(0)
        return loop.time()

    assert world.run(main) == pytest.approx(0.101, abs=0.01)


def test_sets_of_tasks_have_one_order(world: World) -> None:
    """``asyncio.wait`` and ``asyncio.all_tasks`` order tasks by their numbers, not by addresses."""

    async def nap(number: int) -> int:
        await asyncio.sleep(1)
        return number

    async def main() -> tuple[list[int], list[str]]:
        tasks = [asyncio.create_task(nap(number)) for number in range(30)]
        await asyncio.sleep(0)
        names = [task.get_name() for task in asyncio.all_tasks()]
        done, _ = await asyncio.wait(tasks)
        return [task.result() for task in done], names

    first, names = world.run(main)
    other = World()
    assert other.run(main) == (first, names)
    assert sorted(first) == list(range(30))
    assert len(names) == 31
    other.end()


def test_a_timer_fires_after_its_time(world: World) -> None:
    """If a timer fired at its time, the difference of two floats could be less than the delay."""

    async def main() -> list[bool]:
        waited = []
        for _ in range(200):
            begun_s = time.monotonic()
            await asyncio.sleep(0.2)
            waited.append(time.monotonic() - begun_s > 0.2)
        return waited

    assert all(world.run(main, seconds=100))


def test_timeouts_groups_and_shields_are_asyncios_own(world: World) -> None:
    """Timeouts, task groups and ``gather`` of asyncio work in virtual time."""

    async def slow(log: list[str]) -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise

    async def both(log: list[str]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(slow(log))
            group.create_task(_raise(ValueError("no")))

    async def main() -> tuple[list[str], float]:
        log: list[str] = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await slow(log)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(slow(log), 4)
        with pytest.raises(ExceptionGroup):
            await both(log)
        awaited = asyncio.sleep(1, "a"), _raise(KeyError())
        results = await asyncio.gather(*awaited, return_exceptions=True)
        log.append(repr(results))
        return log, asyncio.get_running_loop().time()

    log, now_s = world.run(main)
    assert log == ["cancelled", "cancelled", "cancelled", "['a', KeyError()]"]
    assert now_s == 8.000003


async def _raise(error: Exception) -> None:
    raise error


def test_callbacks_run_in_the_context_in_which_they_were_scheduled(world: World) -> None:
    """Each callback has the context of the code that scheduled it, as ``contextvars`` promise."""
    order: contextvars.ContextVar[int] = contextvars.ContextVar("order", default=0)

    async def work(number: int) -> int:
        order.set(number)
        await asyncio.sleep(1)
        return order.get()

    async def main() -> tuple[int, int, int]:
        one, other = await asyncio.gather(work(1), work(2))
        return one, other, order.get()

    assert world.run(main) == (1, 2, 0)


def test_a_function_of_an_executor_runs_at_once(world: World) -> None:
    """The result is available once the function's sleep has passed, and its error is raised."""

    def work(value: int) -> tuple[int, float]:
        time.sleep(2.5)
        return value, time.monotonic()

    def fail() -> None:
        raise ValueError("broken")

    async def main() -> tuple[Any, float]:
        begun_s = time.monotonic()
        result = await asyncio.to_thread(work, 4)
        with pytest.raises(ValueError, match="broken"):
            await asyncio.get_running_loop().run_in_executor(None, fail)
        return (result[0], result[1] - begun_s), time.monotonic() - begun_s

    assert world.run(main) == ((4, 2.5), 2.500001)


def test_asynchronous_generators_are_closed_at_the_end(world: World) -> None:
    """Generators that were left in the middle are closed, as by ``asyncio.run``."""
    closed = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(1)
            closed.append(True)

    async def main() -> None:
        generator = numbers()
        kept.append(generator)
        async for _ in generator:
            break

    kept: list[Any] = []
    world.run(main)
    assert closed == [True]
    assert world.now_s == 1.000001


def test_the_loop_belongs_to_the_simulation(world: World) -> None:
    """A program may not run, stop or close its event loop."""

    async def main() -> list[str]:
        loop, texts = asyncio.get_running_loop(), list[str]()
        nothing = asyncio.sleep(0)
        actions: list[Any] = [
            loop.run_forever,
            lambda: loop.run_until_complete(asyncio.sleep(1)),
            loop.stop,
            loop.close,
            lambda: asyncio.Runner().run(nothing),
        ]
        for action in actions:
            with pytest.raises(RuntimeError) as failure:
                action()
            texts.append(str(failure.value))
        nothing.close()
        return texts

    texts = world.run(main)
    assert texts[0] == "This event loop is already running: the simulation runs it"
    assert texts[2] == "worker-1 stops its event loop before its main function has ended"
    assert "cannot be called from a running event loop" in texts[4]


def test_each_program_has_a_loop_of_its_own(world: World) -> None:
    """A loop that runs outside the simulation is current again after each turn of a program."""

    async def main() -> Any:
        await asyncio.sleep(1)
        return asyncio.get_running_loop()

    async def outside() -> None:
        one, other = world.start(main, name="a"), world.start(main, name="b")
        own = asyncio.get_running_loop()
        world.run_for(2)
        assert asyncio.get_running_loop() is own
        assert len({one.outcome(), other.outcome(), own}) == 3

    asyncio.run(outside())


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda loop: loop.add_signal_handler(15, print), "sets a handler of a signal"),
        (lambda loop: loop.add_reader(0, print), "watches a file descriptor"),
        (lambda loop: loop.sock_recv(None, 1), "uses a real socket"),
        (lambda loop: loop.subprocess_shell(None, "ls"), "starts another process"),
        (lambda loop: loop.create_datagram_endpoint(None), "sends datagrams"),
        (lambda loop: loop.create_unix_connection(None), "uses a Unix socket"),
        (lambda loop: loop.connect_read_pipe(None, None), "opens a pipe"),
    ],
)
def test_unsupported_calls_are_refused_with_an_alternative(
    world: World, call: Any, told: str
) -> None:
    """The error is a ``NotImplementedError``, which programs expect of some loops."""

    async def main() -> str:
        with pytest.raises(NotImplementedError) as failure:
            call(asyncio.get_running_loop())
        return str(failure.value)

    text = world.run(main)
    assert text.startswith(f"worker-1 {told}, which virtual time does not have; ")
