"""Checks of programs: what they find, and how they tell it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from fakekafka import Simulation
from fakekafka.protocol.errors import UsageError
from fakekafka.testing.programs import checks
from fakekafka.testing.running import WaitTimeout
from fakekafka.tests.support.aiokafka_programs import BOOTSTRAP, consume

WORK = ("orders", "charged", "order")


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with Simulation(1, seed=1, topics={"orders": 2}) as simulation:
        for number in range(6):
            key = "even" if number % 2 == 0 else "odd"
            simulation.produce("orders", str(number), key=key, partition=number % 2)
        yield simulation


def charge(simulation: Simulation, *numbers: Any) -> list[int | None]:
    return [simulation.note("charged", order=number).event for number in numbers]


def test_work_that_is_right_has_no_problems(simulation: Simulation) -> None:
    """Whatever other notes there are."""
    charge(simulation, 1, 0, 2, 3, 4, 5)
    simulation.note("refunded", order=7)
    for check in (
        checks.every_input_processed,
        checks.none_processed_twice,
        checks.none_invented,
        checks.order_by_key_kept,
    ):
        verdict = check(simulation, *WORK)
        assert verdict
        assert verdict.checked == 6


def test_a_record_that_was_never_processed_is_named(simulation: Simulation) -> None:
    """With its place."""
    charge(simulation, 0, 1, 2, 4, 5)
    assert checks.every_input_processed(simulation, *WORK).problems == (
        "order 3 (orders-1, offset 1) was never charged",
    )


def test_a_record_that_was_processed_twice_is_named(simulation: Simulation) -> None:
    """With both rows of the trace."""
    first, second = charge(simulation, 4, 4)
    (problem,) = checks.none_processed_twice(simulation, *WORK).problems
    assert problem.startswith("order 4 (orders-0, offset 2) was charged 2 times: by scenario at ")
    assert f", #{first}, then by scenario at " in problem
    assert problem.endswith(f", #{second}")


def test_what_is_in_no_record_is_named(simulation: Simulation) -> None:
    """With the row of the trace."""
    (event,) = charge(simulation, 99)
    (problem,) = checks.none_invented(simulation, *WORK).problems
    assert problem.startswith("order 99 was charged by scenario at ")
    assert problem.endswith(f"#{event}, and no record has it")


def test_records_of_one_key_out_of_order_are_named(simulation: Simulation) -> None:
    """Those of different keys may come in any order; a repetition is no new order."""
    charge(simulation, 1, 2, 0, 3, 4, 5, 1)
    (problem,) = checks.order_by_key_kept(simulation, *WORK).problems
    assert problem.startswith("of key b'even' order 2 (orders-0, offset 1) was charged by scenario")
    assert "before order 0 (orders-0, offset 0)" in problem


def test_records_can_be_identified_by_something_else(simulation: Simulation) -> None:
    """Such as their places."""
    for place in ("0/0", "0/1", "0/2", "1/0", "1/1", "1/2"):
        simulation.note("seen", place=place)
    by_place = checks.every_input_processed(
        simulation,
        ["orders"],
        "seen",
        "place",
        identify=lambda record: f"{record.partition}/{record.offset}",
    )
    assert by_place


def test_a_note_without_the_value_is_refused(simulation: Simulation) -> None:
    """It names the note and what it has."""
    simulation.note("charged", amount=5)
    with pytest.raises(UsageError, match=r"'charged amount=5' of scenario has no value 'order'"):
        checks.none_processed_twice(simulation, *WORK)


async def hasty(simulation: Simulation) -> None:
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=BOOTSTRAP,
        group_id="payments",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        async for record in consumer:
            if record.value == b"3":
                await consumer.commit()
            simulation.note("charged", order=int(record.value))
    finally:
        await consumer.stop()


def test_an_offset_that_was_committed_before_the_work_is_named(simulation: Simulation) -> None:
    """With who committed it, and when the work was done."""
    simulation.program(hasty, simulation, name="worker")
    notes = simulation.wait_for_note("charged", count=6)
    assert {note.program for note in notes} == {"worker"}
    verdict = checks.committed_after_work(simulation, "orders", "payments", "charged", "order")
    (problem,) = verdict.problems
    assert problem.startswith("the offset of order 3 (orders-1, offset 1) was committed by worker")
    assert "; it was charged by worker at " in problem


def test_commits_after_the_work_are_right(simulation: Simulation) -> None:
    """And a record that nobody processed is told with who committed past it."""
    seen: list[tuple[str, int]] = []
    simulation.program(consume, seen, "w", name="worker")
    simulation.wait_until(lambda: len(seen) == 6, 60)
    simulation.run_for(1000)
    charge(simulation, *[number for _, number in seen if number != 5])
    verdict = checks.every_input_processed(simulation, *WORK, group="workers")
    (problem,) = verdict.problems
    assert problem.startswith("order 5 (orders-1, offset 2) was never charged; its offset was ")
    assert "committed by worker at " in problem


def test_a_note_that_does_not_come_is_told_with_the_last_ones(simulation: Simulation) -> None:
    """Who waits for the wrong one sees what there was."""
    charge(simulation, 1)
    with pytest.raises(WaitTimeout) as failure:
        simulation.wait_for_note("refunded", timeout_s=1)
    assert failure.value.__notes__ == [
        "'refunded' was noted 0 times; the last notes are: charged order=1 by scenario"
    ]


def test_notes_can_be_asked_and_waited_for(simulation: Simulation) -> None:
    """By their text and by some of their values."""

    async def main() -> None:
        import asyncio

        for number in range(3):
            await asyncio.sleep(1)
            simulation.note("charged", order=number, amount=10 * number)

    simulation.program(main, name="bank")
    (first,) = simulation.wait_for_note("charged")
    assert (first.program, first.values) == ("bank", {"order": 0, "amount": 0})
    assert simulation.wait_for_note("charged", order=2)[0].values["amount"] == 20
    assert [note.values["order"] for note in simulation.notes("charged")] == [0, 1, 2]
    assert simulation.notes("charged", amount=10)[0].time_ms == first.time_ms + 1000.001
    row = simulation.trace().event(first.event or 0)
    assert (row.actor, row.why) == ("bank", "charged order=0 amount=0")
