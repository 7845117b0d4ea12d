"""Chunks do not depend on when they are made: as soon as they are full, or when read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.tests.support.traces import fetch, header, record_fetches
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.recording.writer import TraceWriter
from fakekafka.tracing.trace_file import TraceReader


class AtOnce(Recorder):
    """A recorder that makes each chunk as soon as it is full."""

    waiting_max = 1000


class Waiting(Recorder):
    """A recorder that makes chunks of many rows together."""

    waiting_max = 3000


class Passing:
    """A sink of another class that passes every call to a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self.event = recorder.event
        self.state_listener = recorder.state_listener
        self.log_listener = recorder.log_listener
        self.close = recorder.close


def recorded(recorder: Any, version: str = "3.9") -> Any:
    """Record a short run with a kill, a restart and a new topic."""
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
def test_memory_holds_the_same_whenever_its_chunks_are_made(version: str) -> None:
    """Chunks, snapshots and fingerprints are identical whenever chunks are made."""
    one, *others = (recorded(kind(), version) for kind in (AtOnce, Waiting, Recorder))
    assert len(one) > 3000
    for other in others:
        assert [chunk.body for chunk in one.trace().stored] == [
            chunk.body for chunk in other.trace().stored
        ]
        assert one.trace().snapshots == other.trace().snapshots
        assert (one.fingerprint(), one.outline()) == (other.fingerprint(), other.outline())


@pytest.mark.parametrize("version", ["0.10", "3.9"])
def test_a_sink_of_another_class_is_called_for_each_event(version: str) -> None:
    """A sink called per event gives the trace that the network writes as rows by itself."""
    recorder = Recorder()
    recorded(Passing(recorder), version)
    assert recorded(Recorder(), version).fingerprint() == recorder.fingerprint()


def test_a_file_saved_at_the_end_equals_one_written_meanwhile(
    tmp_path: Path,
) -> None:
    """A file saved at the end equals a file written meanwhile, byte for byte."""
    head = {**header(), "record_bytes_limit": 64}
    recorded(Recorder(TraceWriter(tmp_path / "written.fktrace", head)))
    recorded(Recorder()).save(tmp_path / "saved.fktrace", header())
    written, saved = (tmp_path / f"{name}.fktrace" for name in ("written", "saved"))
    assert written.read_bytes() == saved.read_bytes()


def test_reading_the_recorder_in_mid_run_changes_nothing() -> None:
    """Reading in mid-run makes the pending chunks and changes no result."""
    one, other = AtOnce(), Waiting()
    for number in range(9000):
        for recorder in (one, other):
            seq = recorder.event(number, "send", f"a{number % 7}", "b", fetch(number), number, None)
            recorder.state(seq, f"a{number % 7}/hw", None, number // 3)
        if number % 2345 == 0:
            other.fingerprint()
            assert other.raw_since(number)[0][0] == number
            assert other.events[number].seq == number
    assert [chunk.digest for chunk in one.trace().chunks] == [
        chunk.digest for chunk in other.trace().chunks
    ]
    assert one.trace().snapshots == other.trace().snapshots


def test_a_change_outside_of_events_is_compared_with_pending_changes() -> None:
    """A change outside of events is compared with pending changes and halted actors."""
    recorders = [AtOnce(), Waiting()]
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
    assert len(one) == len(other)
    assert one.fingerprint() == other.fingerprint()


def test_a_change_is_compared_with_the_latest_of_very_many_values() -> None:
    """A change is compared with the path's latest value, however many came since."""
    recorders = [AtOnce(), Waiting()]
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
    assert one.fingerprint() == other.fingerprint()


def test_pending_messages_are_released_when_there_are_too_many_or_they_are_read() -> None:
    recorder = Waiting()
    messages = [fetch(number) for number in range(5500)]
    alone = [sys.getrefcount(message) for message in messages]
    for number in range(len(messages)):
        recorder.event(number, "send", "a", "b", messages[number], number, None)
        if number == 2998:
            assert _held(messages, alone) == 2999
        elif number == 2999:
            assert _held(messages, alone) == 0
    assert _held(messages, alone) == 2500
    recorder.fingerprint()
    assert _held(messages, alone) == 500  # the messages of the chunk that is not full


@pytest.mark.parametrize("keep", [None, 1500])
def test_a_recorder_that_writes_or_keeps_the_last_events_has_no_pending_rows(
    keep: int | None, tmp_path: Path
) -> None:
    """A recorder that writes or keeps the last events has no pending rows. Otherwise a program that
    is killed would leave a file without its last events.
    """
    messages = [fetch(number) for number in range(2500)]
    alone = [sys.getrefcount(message) for message in messages]
    recorder = Recorder(writer(tmp_path / "a.fktrace") if keep is None else None, keep)
    for number in range(len(messages)):
        recorder.event(number, "send", "a", "b", messages[number], number, None)
    assert _held(messages, alone) == 500
    recorder.close()


def _held(messages: Sequence[object], alone: Sequence[int]) -> int:
    """Return how many messages have more references than before they were recorded."""
    now = [sys.getrefcount(message) for message in messages]
    return sum(count > before for count, before in zip(now, alone, strict=True))


def test_a_value_that_cannot_be_packed_is_an_error_of_the_reader() -> None:
    recorder = record_fetches(Recorder(), 500)
    recorder.event(1, "note", "a", None, {"x": 1 << 70}, None, None)
    record_fetches(recorder, 600)
    with pytest.raises(OverflowError):
        recorder.trace()


def test_a_recorder_that_was_never_closed_leaves_its_full_chunks(tmp_path: Path) -> None:
    """A recorder that was never closed leaves a file without its last chunk and the index."""
    path = tmp_path / "a.fktrace"
    program = (
        "from pathlib import Path\n"
        "from fakekafka.tests.tracing.test_waiting_rows import Recorder, record_fetches, writer\n"
        f"recorder = record_fetches(Recorder(writer(Path({str(path)!r}))), 6500)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    with TraceReader(path) as trace:
        assert len(trace) == 6000
