"""Two runs that should be the same, and the report of their first difference."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import fakekafka
import pytest
from fakekafka import RunsDiffer, Simulation
from fakekafka.programs.acts import Acts
from fakekafka.protocol.errors import UsageError
from fakekafka.testing.programs.sameness import Recorded, require_same
from fakekafka.testing.recording import hash_seed


@pytest.fixture(autouse=True)
def no_hash_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the hash seed from the environment, as in a process started without one."""
    for name in ("PYTHONHASHSEED", "FAKEKAFKA_PINNED"):
        monkeypatch.setenv(name, "random")  # otherwise values set by a test would stay
        monkeypatch.delenv(name)


async def note_all(simulation: Simulation, names: list[str]) -> None:
    for name in names:
        await asyncio.sleep(1)
        simulation.note("saw", name=name)


async def sleep_all(simulation: Simulation, spans_s: list[float]) -> None:
    for span_s in spans_s:
        await asyncio.sleep(span_s)


def line_of(function: Any, behind: int) -> str:
    code = function.__code__
    return f"{__file__}:{code.co_firstlineno + behind} in {code.co_name}"


def recorded(
    main: Any, given: Any, fault: Callable[[Simulation], object] | None = None
) -> Recorded:
    with Simulation(1, seed=7) as simulation:
        simulation.running.acts = Acts()
        program = simulation.program(main, simulation, given, name="worker")
        if fault is not None:
            fault(simulation)
        program.result()
        return Recorded.of(simulation)


def difference_message(first: Recorded, *others: Recorded) -> str:
    """Return the message of the error; each call of another process returns the next run."""
    runs = iter(others)
    with pytest.raises(RunsDiffer) as failure:
        require_same(first, lambda _: next(runs), 7)
    return str(failure.value)


def test_the_same_run_is_no_error() -> None:
    """The second process has another hash seed than the first one."""
    seen: list[int] = []

    def run_again(under: int) -> Recorded:
        seen.append(under)
        return recorded(note_all, ["a", "b"])

    first = recorded(note_all, ["a", "b"])
    for own in (None, 0, 1, 2**32 - 1):
        require_same(first._replace(hash_seed=own), run_again, 7)
    assert seen == [1, 1, 2, 2**32 - 2]


def test_the_first_differing_event_and_its_line_of_code_are_reported() -> None:
    """The error shows both hash seeds, the row on both sides, and what differs in it."""
    first = recorded(note_all, ["a", "b", "c"])._replace(hash_seed=3)
    other = recorded(note_all, ["a", "c", "b"])._replace(hash_seed=4)
    text = difference_message(first, other, other)
    rows = text.splitlines()
    assert rows[0].startswith("two runs of seed 7 are the same up to event #")
    assert rows[1].startswith("  hash seed 3: #")
    assert rows[1].endswith("note       worker                                                  "
                            "(saw name='b')")  # fmt: skip
    assert rows[2].startswith("  hash seed 4: #")
    assert rows[2].endswith("(saw name='c')")
    assert """: why: "saw name='b'" / "saw name='c'\"""" in rows[3]
    assert rows[4] == "the first action of a program that differs:"
    assert "worker notes saw, at " + line_of(note_all, 3) in rows[5]
    assert "worker notes saw, at " + line_of(note_all, 3) in rows[6]
    assert rows[7].startswith(
        "two processes with one hash seed agree, so the order of a set of strings is the reason"
    )


def test_a_difference_under_one_hash_seed_is_reported_as_such() -> None:
    """The error says if two processes with the same hash seed differ, too."""
    runs = [recorded(note_all, names) for names in (["a", "b"], ["b", "a"], ["b", "b"])]
    assert "two processes with one hash seed differ, too" in difference_message(*runs)


def test_a_pinned_hash_seed_is_that_of_the_second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both processes have the pinned hash seed, so no order of strings can be the reason."""
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    monkeypatch.setenv("FAKEKAFKA_PINNED", "5")
    seen: list[int] = []

    def run_again(under: int) -> Recorded:
        seen.append(under)
        return recorded(note_all, ["b"])

    with pytest.raises(RunsDiffer, match="both processes have the hash seed 5"):
        require_same(recorded(note_all, ["a"]), run_again, 7)
    assert seen == [5]


def test_a_difference_between_acts_of_programs_is_found() -> None:
    """A difference among the acts of programs is found although it is no event of the trace."""
    first, other = recorded(sleep_all, [1.0, 2.0]), recorded(sleep_all, [2.0, 1.0])
    text = difference_message(first, other, other)
    assert text.startswith("two runs of seed 7 give the same events, but their programs act")
    assert f"waits until 1.013500 s, at {line_of(sleep_all, 2)}" in text


def test_a_run_that_ends_sooner_differs() -> None:
    first, other = recorded(note_all, ["a"]), recorded(note_all, ["a", "b"])
    text = difference_message(first, other, other)
    assert "(has ended)" in text
    assert "  this process, hash seed random: nothing more" in text


def test_where_no_program_did_anything_else_the_test_is_the_reason() -> None:
    """A fault of the test may be the reason, for instance."""

    def at(span_ms: float) -> Callable[[Simulation], object]:
        def fault(simulation: Simulation) -> None:
            simulation.run_for(span_ms)
            simulation.broker(1).kill()
            simulation.run_for(50)

        return fault

    first, other = (recorded(sleep_all, [0.3], at(span_ms)) for span_ms in (100, 101))
    assert "  no program acted differently before: a function of the test" in difference_message(
        first, other, other
    )


# -- fakekafka.simulate ----------------------------------------------------------------------------


def test_a_main_that_another_process_cannot_import_is_refused() -> None:
    """The error names the part that cannot be found, and what to write instead."""

    async def inner() -> None:
        raise AssertionError("it must not run")

    async def take(argument: object) -> None:
        raise AssertionError("it must not run")

    parts: dict[str, dict[str, Any]] = {
        "main": {"main": inner},
        "the fault at 5 s": {"main": sleep_all, "faults": {5: lambda simulation: None}},
    }
    for name, options in parts.items():
        with pytest.raises(UsageError, match=f"cannot find {name}: .*Write an `async def`"):
            fakekafka.simulate(**options, verify=True)
    with pytest.raises(UsageError, match="cannot find argument 2 of main"):
        fakekafka.simulate(note_all, None, lambda: None, verify=True)
    with pytest.raises(UsageError, match="two recordings of its own; leave out trace"):
        fakekafka.simulate(note_all, verify=True, trace=True)


def test_a_function_of_an_interactive_session_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    monkeypatch.setattr(note_all, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "note_all", note_all, raising=False)
    with pytest.raises(UsageError, match="save the code in a file"):
        fakekafka.simulate(note_all, verify=True)


# -- the hash seed of a process --------------------------------------------------------------------


@pytest.mark.parametrize("seed", [-1, 2**32, "0", 1.5])
def test_a_hash_seed_has_its_range(seed: Any) -> None:
    with pytest.raises(UsageError, match="seed"):
        fakekafka.pin_hash_seed(seed)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the command lines with which this process was started again."""
    commands: list[list[str]] = []
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(hash_seed, "_fix_addresses", lambda: None)
    monkeypatch.setattr("os.execv", lambda _, command: commands.append(command))
    return commands


def test_a_process_is_started_again_once(
    started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is started again with the same command, and only once for each hash seed."""
    monkeypatch.setattr("sys.orig_argv", ["python3", "-u", "-c", "code", "--flag"])
    fakekafka.pin_hash_seed(9)
    fakekafka.pin_hash_seed(9)
    assert [command[1:] for command in started] == [["-u", "-c", "code", "--flag"]]
    assert (hash_seed.pinned(), hash_seed.of_this_process()) == (9, 9)
    fakekafka.pin_hash_seed(8)
    assert len(started) == 2


def test_an_interactive_session_cannot_be_started_again(
    started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    monkeypatch.setattr("sys.orig_argv", ["python3"])
    with pytest.raises(UsageError, match="with PYTHONHASHSEED=4 in its environment"):
        fakekafka.pin_hash_seed(4)
    assert not started


def test_a_trace_contains_the_hash_seed_of_a_run_with_programs() -> None:
    """A run with programs depends on the hash seed, and other runs do not."""
    with Simulation(1, seed=1) as simulation:
        assert "hash_seed" not in simulation.trace().header
        simulation.program(asyncio.sleep, 1).result()
        header = simulation.trace().header
    assert header["hash_seed"] == "random: sets of strings may have another order"
