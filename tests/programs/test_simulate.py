"""``fakekafka.simulate``, which runs one program from a script."""

from __future__ import annotations

import asyncio
from typing import Any

import fakekafka
import pytest
from fakekafka import Simulation
from fakekafka.protocol.errors import UsageError
from fakekafka.testing.running import WaitTimeout
from fakekafka.tests.support.aiokafka_programs import produce


def test_simulate_returns_the_result_of_main() -> None:
    """Faults happen at their times, in virtual seconds after the start."""
    at_ms: list[float] = []

    def fail(simulation: Simulation) -> None:
        simulation.broker("leader:orders-0").kill()
        at_ms.append(simulation.now_ms)

    assert fakekafka.simulate(produce, 40, seed=3, topics={"orders": 3}, faults={2: fail}) == 40
    assert at_ms == [pytest.approx(2020, abs=100)]


def test_simulate_raises_the_exception_of_main() -> None:
    """The exception has a note of when it was raised."""

    async def main() -> None:
        await asyncio.sleep(5)
        raise KeyError("order 41")

    with pytest.raises(KeyError, match="order 41") as failure:
        fakekafka.simulate(main, brokers=1, seed=4)
    assert failure.value.__notes__[0].startswith("raised in main, seed 4, at 5.")


def test_a_program_cannot_advance_time_by_a_call() -> None:
    """A program has to await instead, as the error says."""
    with Simulation(1, seed=1, topics={"orders": 1}) as simulation:

        async def main() -> str:
            with pytest.raises(UsageError) as failure:
                simulation.run_for(100)
            return str(failure.value)

        text = simulation.program(main, name="test").result()
    assert text.startswith("the code of test runs in virtual time itself and cannot wait")
    assert "`await asyncio.sleep(...)` lets time pass" in text


def test_a_program_awaits_others() -> None:
    """A program gets what the mains of other programs return or raise."""
    with Simulation(1, seed=1) as simulation:

        async def fail() -> None:
            await asyncio.sleep(2)
            raise ValueError("no bank")

        async def main() -> str:
            slept = simulation.program(asyncio.sleep, 5, "slept", name="sleeper")
            failed = simulation.program(fail, name="failing")
            with pytest.raises(ValueError, match="no bank"):
                await failed.ended()
            return str(await slept.ended())

        assert simulation.program(main, name="test").result() == "slept"


def test_simulate_raises_an_error_at_its_timeout() -> None:
    """A program that does not end before the timeout is an error."""
    with pytest.raises(WaitTimeout, match="main_has_ended") as failure:
        fakekafka.simulate(asyncio.sleep, 100, brokers=1, timeout_s=50)
    (note,) = failure.value.__notes__
    assert note.startswith("main runs; its tasks are main at ")
    assert note.endswith(" in sleep")


@pytest.mark.parametrize("faults", [[print], {"early": print}, {1: "kill"}, {-1: print}])
def test_faults_have_a_time_and_a_function(faults: Any) -> None:
    """Faults without a time or a function are refused before the simulation starts."""
    with pytest.raises(UsageError, match="fault"):
        fakekafka.simulate(asyncio.sleep, 1, faults=faults)
