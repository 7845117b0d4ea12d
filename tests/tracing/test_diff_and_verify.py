"""Comparison of two runs, and verification of a run by repeating it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakekafka.tests.support.traces import header, record_failover, record_fetches
from fakekafka.tracing.diff import aligned, first_difference
from fakekafka.tracing.events import TraceError
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.recording.writer import TraceWriter
from fakekafka.tracing.trace_file import TraceReader
from fakekafka.tracing.verify import verify


def record(path: Path, count: int, changed: int = -1, **more: Any) -> TraceReader:
    recorder = Recorder(TraceWriter(path, header(**more)))
    record_fetches(recorder, count, changed)
    recorder.close()
    return TraceReader(path)


@pytest.mark.parametrize("changed", [0, 7, 999, 1000, 2345, 2999])
def test_first_difference_is_named(tmp_path: Path, changed: int) -> None:
    """The first difference is named with its event and field, wherever it is."""
    with record(tmp_path / "a", 3000) as a, record(tmp_path / "b", 3000, changed) as b:
        difference = first_difference(a, b)
        assert difference is not None
        assert difference.seq == changed
        assert difference.columns == ("fields.partitions",)
        assert f"#{changed}: fields.partitions" in difference.describe()


def test_equal_runs_do_not_differ(tmp_path: Path) -> None:
    """Equal traces are compared without decoding any chunk."""
    with record(tmp_path / "a", 3000) as a, record(tmp_path / "b", 3000) as b:
        a._body = None  # type: ignore[method-assign,assignment]
        assert first_difference(a, b) is None


def test_shorter_run_ends(tmp_path: Path) -> None:
    """If one trace is a prefix of the other, the first additional event is the difference."""
    with record(tmp_path / "a", 2500) as a, record(tmp_path / "b", 2400) as b:
        difference = first_difference(a, b)
        assert difference is not None
        assert difference.describe() == "#2400: the second trace has ended"
        swapped = first_difference(b, a)
        assert swapped is not None
        assert swapped.describe() == "#2400: the first trace has ended"


def test_alignment_after_an_inserted_event() -> None:
    """After an inserted event the alignment matches the remaining events again."""
    one, other = Recorder(), Recorder()
    record_failover(one)
    other.event(0, "note", "x", None, None, None, None, "extra")
    record_failover(other)
    lines = aligned(one.trace(), other.trace(), 0)
    assert [line.mark for line in lines].count("+") == 1
    assert lines[0].mark == "+"
    assert all(line.left is not None and line.right is not None for line in lines[1:])


def test_run_again_verifies(tmp_path: Path) -> None:
    """``verify`` passes the header to the runner and holds if fingerprints are equal."""
    seen: list[int] = []

    def run(head: dict[str, Any], recorder: Recorder) -> None:
        seen.append(head["seed"])
        record_fetches(recorder, 1500)

    with record(tmp_path / "a", 1500) as trace:
        verdict = verify(trace, run)
    assert verdict.holds
    assert verdict.events == 1500
    assert seen == [42]


def test_verify_names_the_first_event_of_another_run(tmp_path: Path) -> None:
    """``verify`` names the first event that differs."""
    with record(tmp_path / "a", 1500) as trace:
        verdict = verify(trace, lambda head, recorder: record_fetches(recorder, 1500, 1234))
    assert not verdict.holds
    assert verdict.difference is not None
    assert verdict.difference.seq == 1234


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"mode": "threaded"}, "mode 'threaded': real time and threads do not repeat"),
        ({"seed": None}, "no seed"),
        ({"scenario": None}, "no scenario"),
    ],
)
def test_files_that_cannot_run_again(tmp_path: Path, more: dict[str, Any], reason: str) -> None:
    """``verify`` refuses a trace that cannot be repeated, with the reason."""
    with record(tmp_path / "a", 10, **more) as trace, pytest.raises(TraceError, match=reason):
        verify(trace, lambda head, recorder: None)


def test_unfinished_file_cannot_be_verified(tmp_path: Path) -> None:
    """``verify`` refuses an unfinished file, which has no fingerprint."""
    writer = TraceWriter(tmp_path / "a", header())
    record_fetches(Recorder(writer), 1500)
    writer.abandon()
    with TraceReader(tmp_path / "a") as trace, pytest.raises(TraceError, match="not whole"):
        verify(trace, lambda head, recorder: None)
