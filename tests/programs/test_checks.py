"""Checks of programs: which problems they find, and how they report them."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import CommitFailedError
from fakekafka import Simulation
from fakekafka.protocol.errors import NotThereYet, UsageError
from fakekafka.testing.programs import checks
from fakekafka.testing.running import WaitTimeout
from fakekafka.tests.support.aiokafka_programs import BOOTSTRAP, consume


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with Simulation(1, seed=1, topics={"orders": 2}) as simulation:
        for number in range(6):
            key = "even" if number % 2 == 0 else "odd"
            simulation.produce("orders", str(number), key=key, partition=number % 2)
        yield simulation


def work(simulation: Simulation, **options: Any) -> checks.Work:
    return checks.Work(simulation, "orders", note="charged", by="order", **options)


def charge(simulation: Simulation, *numbers: Any) -> list[int | None]:
    return [simulation.note("charged", order=number).event for number in numbers]


def test_correct_work_has_no_problems(simulation: Simulation) -> None:
    """Work that is right has no problems, whatever other notes there are."""
    charge(simulation, 1, 0, 2, 3, 4, 5)
    simulation.note("refunded", order=7)
    done = work(simulation)
    verdicts = [
        done.every_input_processed(),
        done.none_processed_twice(),
        done.none_invented(),
        done.order_by_key_kept(),
        done.newest_by_key_stands(),
    ]
    assert [verdict.problems for verdict in verdicts] == [()] * 5
    assert [verdict.checked for verdict in verdicts] == [6] * 5
    checks.require(*verdicts)


def test_a_record_that_was_never_processed_is_named(simulation: Simulation) -> None:
    """A record that was never processed is reported with its partition and offset."""
    charge(simulation, 0, 1, 2, 4, 5)
    assert work(simulation).every_input_processed().problems == (
        "order 3 (orders-1, offset 1) was never charged",
    )


def test_a_record_that_was_processed_twice_is_named(simulation: Simulation) -> None:
    """A record that was processed twice is reported with both rows of the trace."""
    first, second = charge(simulation, 4, 4)
    (problem,) = work(simulation).none_processed_twice().problems
    assert problem.startswith("order 4 (orders-0, offset 2) was charged 2 times: by scenario at ")
    assert f", #{first}, then by scenario at " in problem
    assert problem.endswith(f", #{second}")


def test_work_on_an_unknown_record_is_reported(simulation: Simulation) -> None:
    """Work on something that is in no record is reported with its row of the trace."""
    (event,) = charge(simulation, 99)
    (problem,) = work(simulation).none_invented().problems
    assert problem.startswith("order 99 was charged by scenario at ")
    assert problem.endswith(f"#{event}, and no record has it")


def test_records_of_one_key_out_of_order_are_named(simulation: Simulation) -> None:
    """Records of different keys may come in any order, and repetitions do not count."""
    charge(simulation, 1, 2, 0, 3, 4, 5, 1)
    (problem,) = work(simulation).order_by_key_kept().problems
    assert problem.startswith("of key b'even' order 2 (orders-0, offset 1) was charged by scenario")
    assert "before order 0 (orders-0, offset 0)" in problem


def test_records_can_be_identified_by_something_else(simulation: Simulation) -> None:
    """Records can be identified by their partition and offset, for example."""
    for place in ("0/0", "0/1", "0/2", "1/0", "1/1", "1/2"):
        simulation.note("seen", place=place)
    seen = checks.Work(
        simulation,
        ["orders"],
        note="seen",
        by="place",
        identify=lambda record: f"{record.partition}/{record.offset}",
    )
    assert seen.every_input_processed()


def test_a_note_without_the_value_is_refused(simulation: Simulation) -> None:
    """The error names the note and the values that it has."""
    simulation.note("charged", amount=5)
    with pytest.raises(UsageError, match=r"'charged amount=5' of scenario has no value 'order'"):
        work(simulation)


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
    """The problem says which program committed the offset, and when the work was done."""
    simulation.program(hasty, simulation, name="worker")
    notes = simulation.wait_for_note("charged", count=6)
    assert {note.program for note in notes} == {"worker"}
    (problem,) = work(simulation, group="payments").committed_after_work().problems
    assert problem.startswith("the offset of order 3 (orders-1, offset 1) was committed by worker")
    assert "; it was charged by worker at " in problem


def test_commits_after_the_work_are_right(simulation: Simulation) -> None:
    """An unprocessed record is reported with the program that committed past it."""
    seen: list[tuple[str, int]] = []
    simulation.program(consume, seen, "w", name="worker")
    simulation.wait_until(lambda: len(seen) == 6, 60)
    simulation.run_for(1000)
    charge(simulation, *[number for _, number in seen if number != 5])
    (problem,) = work(simulation, group="workers").every_input_processed().problems
    assert problem.startswith("order 5 (orders-1, offset 2) was never charged; its offset was ")
    assert "committed by worker at " in problem


def test_waiting_for_a_missing_note_shows_the_last_notes(simulation: Simulation) -> None:
    """The error shows the last notes, so that a wait for the wrong note is easy to recognize."""
    charge(simulation, 1)
    with pytest.raises(WaitTimeout) as failure:
        simulation.wait_for_note("refunded", timeout_s=1)
    assert failure.value.__notes__ == [
        "'refunded' was noted 0 times; the last notes are: charged order=1 by scenario"
    ]


def test_notes_can_be_found_and_awaited(simulation: Simulation) -> None:
    """Notes can be found and awaited by their text and by some of their values."""

    async def main() -> None:

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


def test_a_check_without_notes_and_output_topic_is_refused(simulation: Simulation) -> None:
    """Work needs a note or an output topic, and a check of commits needs a group."""
    with pytest.raises(UsageError, match="Work needs a note or an output topic"):
        checks.Work(simulation, "orders", by="order")
    with pytest.raises(UsageError, match="not note='charged', output='invoices'"):
        checks.Work(simulation, "orders", by="order", note="charged", output="invoices")
    with pytest.raises(UsageError, match="needs the group whose commits are judged"):
        work(simulation).committed_after_work()
    with pytest.raises(NotThereYet, match="invoices"):
        checks.Work(simulation, "orders", by="order", output="invoices")


def test_all_problems_are_reported_in_one_error(simulation: Simulation) -> None:
    """Each problem has its own line, as pytest shows only the beginning of a long value."""
    charge(simulation, 0, 1, 2, 3, 5, 5)
    done = work(simulation)
    with pytest.raises(AssertionError) as failure:
        checks.require(done.every_input_processed(), done.none_processed_twice())
    first, second = str(failure.value).splitlines()
    assert first == "order 4 (orders-0, offset 2) was never charged"
    assert second.startswith("order 5 (orders-1, offset 2) was charged 2 times: by scenario at ")


def test_a_problem_includes_other_notes_of_its_record(simulation: Simulation) -> None:
    """A problem includes other notes of the record, such as a failure that the service logged."""
    charge(simulation, 0, 1, 2, 4, 5)
    row = simulation.note("not charged", order=3, error="Timeout").event
    (problem,) = work(simulation).every_input_processed().problems
    assert problem.startswith("order 3 (orders-1, offset 1) was never charged; scenario noted ")
    assert problem.endswith(f", #{row}")
    assert "\"not charged order=3 error='Timeout'\"" in problem


def test_an_old_record_that_comes_after_the_newest_of_its_key_is_named(
    simulation: Simulation,
) -> None:
    """Repetitions do no harm as long as the newest record of the key is repeated, too."""
    charge(simulation, 0, 1, 2, 3, 4, 5, 2, 4)
    assert work(simulation).newest_by_key_stands()
    (row,) = charge(simulation, 3)
    (problem,) = work(simulation).newest_by_key_stands().problems
    assert problem.startswith("of key b'odd' order 3 (orders-1, offset 1) was charged by scenario")
    assert f"#{row}, after order 5 (orders-1, offset 2) by scenario at " in problem


def test_without_a_recording_problems_name_no_rows() -> None:
    """Without a recording, problems name no rows and say nothing about commits."""
    with Simulation(1, seed=1, topics={"orders": 1}, trace=False) as simulation:
        simulation.produce("orders", "0")
        simulation.produce("orders", "1")
        charge(simulation, 1, 1)
        done = work(simulation, group="payments")
        assert done.every_input_processed().problems == (
            "order 0 (orders-0, offset 0) was never charged",
        )
        (problem,) = done.none_processed_twice().problems
    assert problem.count("by scenario at ") == 2
    assert "#" not in problem


async def invoice(numbers: list[int], pause_s: float = 0.0, **settings: Any) -> None:
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, acks="all", **settings) as producer:
        for number in numbers:
            await producer.send_and_wait("invoices", b"%d" % number, key=b"k%d" % (number % 2))
            await asyncio.sleep(pause_s)


@pytest.fixture
def billed() -> Iterator[Simulation]:
    topics = {"orders": 1, "invoices": 1}
    with Simulation(1, seed=1, topics=topics) as simulation:
        for number in range(4):
            simulation.produce("orders", str(number), key=f"k{number % 2}")
        yield simulation


def test_records_of_an_output_topic_show_missing_and_duplicate_work(billed: Simulation) -> None:
    """Missing, duplicate and overtaken records are reported with the requests that stored them."""
    billed.program(invoice, [0, 3, 1, 0, 9], name="biller").result()
    done = checks.Work(billed, "orders", output="invoices", by="order")
    (missing,) = done.every_input_processed().problems
    assert missing == "order 2 (orders-0, offset 2) is not in invoices"
    (twice,) = done.none_processed_twice().problems
    assert twice.startswith(
        "order 0 (orders-0, offset 0) is in invoices 2 times: at invoices-0, offset 0, by biller at"
    )
    assert ", then at invoices-0, offset 3, by biller at " in twice
    assert twice.endswith("; its producer is not idempotent")
    (overtaken,) = done.order_by_key_kept().problems
    assert overtaken.startswith("of key b'k1' order 3 (orders-0, offset 3) is in invoices at ")
    assert "before order 1 (orders-0, offset 1) at invoices-0, offset 2, by biller at" in overtaken
    (stale,) = done.newest_by_key_stands().problems
    assert stale.startswith("of key b'k1' order 1 (orders-0, offset 1) is in invoices at ")
    (invented,) = done.none_invented().problems
    assert invented.startswith("order 9 is in invoices at invoices-0, offset 4, by biller at ")
    rows = {int(row) for row in re.findall(r"#(\d+)", twice)}
    requests = [event.seq for event in billed.events if event.type == "ProduceRequest"]
    assert len(rows) == 2
    assert rows < set(requests)


def test_an_output_without_an_input_is_checked_for_duplicates_only(billed: Simulation) -> None:
    """Without an input, as when orders come from a website, only duplicates are checked."""
    billed.program(invoice, [5, 5], enable_idempotence=True).result()
    (problem,) = checks.Work(billed, output="invoices", by="order").none_processed_twice().problems
    assert problem.startswith("order 5 is in invoices 2 times: at invoices-0, offset 0, by ")
    assert "idempotent" not in problem


async def book(simulation: Simulation) -> None:
    """Commit one transaction, abort another, and leave a third one open."""
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id="books") as producer:
        for number, end in enumerate((producer.commit_transaction, producer.abort_transaction)):
            await producer.begin_transaction()
            await producer.send_and_wait("invoices", b"%d" % number)
            await end()
        await producer.begin_transaction()
        await producer.send_and_wait("invoices", b"2")
        simulation.note("open")
        await asyncio.sleep(3600)


def test_records_of_transactions_that_were_not_committed_do_not_count(billed: Simulation) -> None:
    """Work on an uncommitted record is reported with its writer and the fate of the record."""
    program = billed.program(book, billed, name="bookkeeper")
    billed.wait_for_note("open")
    program.kill()
    for number in (0, 1, 2):
        billed.note("shipped", order=number)
    done = checks.Work(billed, "invoices", note="shipped", by="order")
    assert done.every_input_processed().checked == 1
    aborted, unfinished = done.none_invented().problems
    assert aborted.startswith("order 1 (invoices-0, offset 2, aborted) was shipped by scenario at ")
    assert "; it was written by bookkeeper at " in aborted
    assert unfinished.startswith("order 2 (invoices-0, offset 4, unfinished) was shipped by ")
    assert "; bookkeeper is killed at " in unfinished
    copied = checks.Work(billed, "orders", output="invoices", by="order")
    assert [problem[:7] for problem in copied.every_input_processed().problems] == [
        "order 1", "order 2", "order 3",
    ]  # fmt: skip


def test_a_second_owner_is_reported_with_the_committed_offsets(simulation: Simulation) -> None:
    """A worker pauses for longer than its session timeout, and then does its work nevertheless."""
    order: list[int] = []

    async def work_on(pause_s: float) -> None:
        async with AIOKafkaConsumer(
            "orders", bootstrap_servers=BOOTSTRAP, group_id="payments", session_timeout_ms=6000,
            auto_offset_reset="earliest", enable_auto_commit=False,
        ) as consumer:  # fmt: skip
            async for record in consumer:
                number = int(record.value)
                if number == 2 and not order:
                    order.append(number)
                    await asyncio.sleep(pause_s)
                simulation.note("charged", order=number)
                with contextlib.suppress(CommitFailedError):
                    await consumer.commit()

    first = simulation.program(work_on, 1.0, name="first")
    simulation.wait_until(lambda: order, 30)
    first.pause()
    simulation.program(work_on, 0.0, name="second")
    simulation.wait_for_note("charged", timeout_s=60, order=4)
    first.resume()
    simulation.wait_for_note("charged", count=2, timeout_s=60, order=2)
    simulation.run_for(2000)
    problem = work(simulation, group="payments").none_processed_twice().problems[0]
    assert problem.startswith("order 2 (orders-0, offset 1) was charged 2 times: by second at ")
    assert "; first is paused at " in problem
    assert "; first goes on at " in problem
    assert re.search(r"; orders-0 was given to second at .+, when offset 1 was committed", problem)
