"""Chunks are the same whoever makes them: the run itself, or a copy of its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from fakekafka import Simulation
from fakekafka.tests.support.traces import fetch, header, record_fetches
from fakekafka.tracing.recording import forked_work
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.recording.writer import TraceWriter
from fakekafka.tracing.trace_file import TraceReader


class AtOnce(Recorder):
    """Makes each chunk itself, as soon as it is full."""

    events_per_fork = 0


class Forking(Recorder):
    """Lets a copy make each chunk."""

    events_per_fork = 1000


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The copies that are made, wherever the tests run."""
    made: list[int] = []
    begin = forked_work.ForkedWork.__init__

    def counted(self: forked_work.ForkedWork, work: Callable[[], bytes]) -> None:
        begin(self, work)
        made.append(self._pid)

    monkeypatch.setattr(forked_work.ForkedWork, "__init__", counted)
    monkeypatch.setattr(forked_work, "is_worthwhile", lambda: True)
    monkeypatch.setattr(forked_work, "is_possible", lambda: True)
    return made


def recorded(recorder: Recorder, version: str = "3.9") -> Recorder:
    """A short run with a kill, a restart and a new topic."""
    with Simulation(
        3, seed=3, topics={"orders": 3}, recorder=recorder, trace=False, kafka_version=version
    ) as simulation:
        producer = simulation.producer(acks="all")
        simulation.consumer([("orders", number) for number in range(3)])
        for turn in range(120):
            producer.produce(("orders", turn % 3), b"x" * (turn * 3))
            if turn == 40:
                simulation.broker(1).kill()
            elif turn == 80:
                simulation.broker(1).start()
            simulation.run_for(50)
    recorder.close()
    return recorder


def writer(path: Path) -> TraceWriter:
    return TraceWriter(path, header())


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8", "3.9"])
def test_a_file_is_the_same_whoever_makes_its_chunks(
    version: str, tmp_path: Path, copies: list[int]
) -> None:
    """Every byte: chunks, snapshots of the state, index and fingerprint."""
    one = recorded(AtOnce(writer(tmp_path / "one.fktrace")), version)
    assert not copies
    other = recorded(Forking(writer(tmp_path / "other.fktrace")), version)
    assert len(copies) >= 2
    assert len(one) == len(other)
    assert (tmp_path / "one.fktrace").read_bytes() == (tmp_path / "other.fktrace").read_bytes()


def test_memory_holds_the_same_whoever_makes_its_chunks(copies: list[int]) -> None:
    """Without a file, what the copy made comes back whole."""
    one, other = recorded(AtOnce()), recorded(Forking())
    assert copies
    assert [chunk.body for chunk in one.trace().stored] == [
        chunk.body for chunk in other.trace().stored
    ]
    assert one.trace().snapshots == other.trace().snapshots
    assert (one.fingerprint(), one.outline()) == (other.fingerprint(), other.outline())


def test_who_looks_in_between_changes_nothing(copies: list[int]) -> None:
    """Asking takes over what a copy has made so far, and makes the rest."""
    one, other = AtOnce(), Forking()
    for number in range(9000):
        for recorder in (one, other):
            seq = recorder.event(number, "send", f"a{number % 7}", "b", fetch(number), number, None)
            recorder.state(seq, f"a{number % 7}/hw", None, number // 3)
        if number % 2345 == 0:
            other.fingerprint()
            assert other.raw_since(number)[0][0] == number
            assert other.events[number].seq == number
    assert copies
    assert [chunk.digest for chunk in one.trace().chunks] == [
        chunk.digest for chunk in other.trace().chunks
    ]
    assert one.trace().snapshots == other.trace().snapshots


def test_a_change_outside_of_events_is_seen_against_all_that_was_told(copies: list[int]) -> None:
    """Whether it is news hangs on what the copy has, too, and on actors that halted since."""
    recorders = [AtOnce(), Forking()]
    for recorder in recorders:
        recorder.event(0, "spawn", "a", "m", None, None, None)
        for number in range(4500):
            seq = recorder.event(number, "send", "a", "b", fetch(number), number, None)
            recorder.state(seq, "a/hw", None, number // 1000)
            if number % 500 == 0:
                recorder.state(None, "a/hw", 17, number // 1000)
                recorder.state(None, "a/leo", 17, number)
            if number == 3100:
                recorder.event(number, "stop", "a", "m", None, None, None)
                recorder.state(None, "a/leo", 5, None)
    one, other = recorders
    assert copies
    assert len(one) == len(other)
    assert one.fingerprint() == other.fingerprint()


def test_a_change_is_seen_against_the_latest_value_among_very_many(copies: list[int]) -> None:
    """What a copy makes is older than what was told since, however much that was."""
    recorders = [AtOnce(), Forking()]
    for recorder in recorders:
        for number in range(1001):
            seq = recorder.event(number, "send", "a", "b", fetch(number), number, None)
            recorder.state(seq, "a/hw", None, number // 1001)
        recorder.state(1000, "a/hw", None, 2)
        for number in range(2500):
            recorder.state(1000, "a/leo", None, number)
        assert len(recorder) == 1001
        recorder.state(None, "a/hw", None, 2)
        assert len(recorder) == 1001
        recorder.state(None, "a/hw", None, 0)
        assert len(recorder) == 1002
    one, other = recorders
    assert copies
    assert one.fingerprint() == other.fingerprint()


def test_what_a_copy_has_made_is_let_go_while_the_run_goes_on(copies: list[int]) -> None:
    """Piece by piece: at the next copy nothing is left of it."""
    recorder = Forking()
    messages = [fetch(number) for number in range(4500)]
    alone = [sys.getrefcount(message) for message in messages]
    for number, message in enumerate(messages):
        recorder.event(number, "send", "a", "b", message, number, None)
        if number == 2999:  # of the second piece a copy makes chunks, the first one is made
            assert _held(messages, alone) == 2000
    assert len(copies) == 4
    recorder.fingerprint()
    assert _held(messages, alone) == 500  # those of the chunk that is not full


def _held(messages: Sequence[object], alone: Sequence[int]) -> int:
    """How many messages have more references than when nobody had taken them."""
    now = [sys.getrefcount(message) for message in messages]
    return sum(count > before for count, before in zip(now, alone, strict=True))


def test_what_a_killed_copy_should_have_made_is_made_again(
    tmp_path: Path, copies: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of memory, or somebody's kill: the recording goes on, and nothing is missing."""
    monkeypatch.setattr(Forking, "_made_in_copy", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    record_fetches(Forking(writer(tmp_path / "a.fktrace")), 7000).close()
    assert len(copies) == 7
    record_fetches(AtOnce(writer(tmp_path / "b.fktrace")), 7000).close()
    assert (tmp_path / "a.fktrace").read_bytes() == (tmp_path / "b.fktrace").read_bytes()


def test_without_another_process_the_run_makes_the_chunks(
    copies: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit of processes or of memory is no error of the recording."""

    def refused() -> int:
        raise OSError("Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refused)
    recorder = record_fetches(Forking(), 7000)
    assert not copies
    assert recorder.fingerprint() == record_fetches(AtOnce(), 7000).fingerprint()


def test_beside_other_threads_there_is_no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy would have none of them, and might wait for what they hold."""
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a copy was made"))
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not forked_work.is_possible()
        assert len(record_fetches(Forking(), 5000).trace()) == 5000
    finally:
        done.set()
        thread.join()


def test_what_cannot_be_packed_is_an_error_of_the_recording(copies: list[int]) -> None:
    """The copy fails, then the process itself, which says why."""
    recorder = record_fetches(Forking(), 500)
    recorder.event(1, "note", "a", None, {"x": 1 << 70}, None, None)
    record_fetches(recorder, 600)
    with pytest.raises(OverflowError):
        record_fetches(recorder, 4000)
    assert copies


def test_a_copy_closes_what_it_inherits(copies: list[int]) -> None:
    """Else whoever reads a pipe of the process would wait for the copy, too."""
    reading, writing = os.pipe()
    work = forked_work.ForkedWork(lambda: bytes(len(os.listdir("/proc/self/fd"))))
    try:
        outcome = work.outcome()
        assert outcome is not None
        assert len(outcome) == 2  # the memory for the outcome, and the listed folder
    finally:
        os.close(reading)
        os.close(writing)


def test_a_recorder_that_was_never_closed_leaves_its_full_chunks(tmp_path: Path) -> None:
    """A program that ends without closing loses less than a chunk, and the index."""
    path = tmp_path / "a.fktrace"
    program = (
        "from pathlib import Path\n"
        "from fakekafka.tests.tracing.test_forked_work import Forking, record_fetches, writer\n"
        f"recorder = record_fetches(Forking(writer(Path({str(path)!r}))), 6500)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    with TraceReader(path) as trace:
        assert len(trace) == 6000
