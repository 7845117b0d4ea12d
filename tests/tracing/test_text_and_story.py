"""Text for people: the line of an event, and the story of a failover."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakekafka.protocol.control import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.traces import (
    Scribe,
    acknowledge,
    fetch,
    leader_and_isr,
    produce,
    record_failover,
)
from fakekafka.tracing.events import Event
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.story.timeline import read_story, story_events
from fakekafka.tracing.text import format_event, format_time

GOLDEN = Path(__file__).parent / "golden" / "failover.txt"


def test_golden_lines() -> None:
    """Lines of events match the golden file; FAKEKAFKA_REWRITE=1 writes it anew."""
    text = "".join(f"{format_event(event)}\n" for event in record_failover(Recorder()).events)
    if os.environ.get("FAKEKAFKA_REWRITE") == "1":
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_every_event_is_one_line_of_columns() -> None:
    """Every event is one line with columns at fixed places."""
    for event in record_failover(Recorder()).events:
        line = format_event(event)
        assert "\n" not in line
        assert line[9:22] == format_time(event.time_us).rjust(13)
        assert line[23:33].strip() == event.kind
        assert line[34:48].strip() == event.actor


def test_verbosity_adds_payload_and_deltas() -> None:
    """``-v`` adds every field of an event, ``-vv`` the state changes too."""
    recorder = Recorder()
    seq = recorder.event(0, "deliver", "broker-1", "b", fetch(5), 1, None)
    recorder.state(seq, "broker-1/orders-0/hw", 3, 4)
    event = recorder.events[0]
    assert "Δ1" in format_event(event)
    assert "fetch_offset=5" in format_event(event, 1)
    assert "broker-1/orders-0/hw: 3 -> 4" not in format_event(event, 1)
    assert "Δ broker-1/orders-0/hw: 3 -> 4" in format_event(event, 2)


def test_line_says_no_leader_and_error() -> None:
    """A field of -1 is left out, except where it means that there is no leader."""
    recorder = Recorder()
    recorder.event(0, "send", "c", "b", leader_and_isr(-1, 3, (2,)), 1, None)
    recorder.event(0, "send", "b", "p", acknowledge(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), 2, None)
    lines = [format_event(event) for event in recorder.events]
    assert "orders-0(leader=-1 leader_epoch=3" in lines[0]
    assert lines[1].endswith("orders-0(error=NOT_LEADER_OR_FOLLOWER)")


def test_records_are_shown_by_size() -> None:
    """Records are shown by their size."""
    recorder = Recorder()
    recorder.event(0, "send", "p", "b", produce(b"z" * 5000), 1, None)
    assert "acks=-1 orders-0(records=5000B)" in format_event(recorder.events[0])


def test_many_partitions_are_counted() -> None:
    """A request about many partitions is one line with their number, and so are its changes."""
    states = tuple(
        LeaderAndIsrPartitionState("orders", number, 1, 1, 0, (1,), 0, (1,))
        for number in range(1000)
    )
    recorder = Recorder()
    recorder.event(0, "send", "c", "b", LeaderAndIsrRequest(1, 1, 1, states), 1, None)
    line = format_event(recorder.events[0])
    assert line.endswith("+997 more")
    assert len(line) < 400
    for number in range(1000):
        for name, value in (("leader", 1), ("leader_epoch", 0), ("isr", (1,))):
            recorder.state(0, f"controller-1/orders-{number}/{name}", None, value)
    assert len(read_story(recorder.events).lines) == 7


def test_story_of_a_failover() -> None:
    """A failover's story has the crash, the election, the unavailable time and the return."""
    lines = read_story(record_failover(Recorder()).events).lines
    assert lines == [
        (1.0, "broker-3 is the controller, epoch 1"),
        (1.0, "orders-0: leader 1, epoch 0, isr [1, 2, 3]"),
        (1000.0, "broker-1 is killed"),
        (
            7000.25,
            "controller-3 hears from ZooKeeper that the children of /brokers/ids have changed "
            "(6000.2 ms after broker-1 died)",
        ),
        (
            7001.0,
            "orders-0 gets leader 2 (was 1), leader epoch 1, isr [2, 3], "
            "decided by controller-3 in epoch 1",
        ),
        (7001.25, "broker-2 becomes leader of orders-0 (epoch 1)"),
        (
            7100.75,
            "orders-0 accepts records again at broker-2: unavailable for 6000.8 ms, "
            "because broker-1 was killed",
        ),
        (9000.0, "broker-1 starts again after 8000.0 ms"),
        (9500.25, "orders-0: isr [2, 3] -> [2, 3, 1]"),
    ]


def test_failover_as_numbers() -> None:
    """A failover's findings are available as numbers for tables."""
    story = read_story(record_failover(Recorder()).events)
    (crash,) = story.crashes
    assert crash.broker == 1
    assert crash.noticed_us == 7_000_250
    assert crash.elected_us == 7_001_000
    assert crash.ended_us == 9_000_000
    (outage,) = story.outages
    assert outage.cause is crash
    assert outage.took_over_us == 7_001_250
    assert (outage.begun_us, outage.unavailable_us) == (1_100_000, 6_000_750)
    assert outage.phases_us() == {
        "before": 0, "detect": 5_900_250, "elect": 750, "propagate": 250, "shrink": 0, "restore": 0,
        "client": 99_500,
    }  # fmt: skip


def test_acknowledgement_on_its_way_counts_as_before() -> None:
    """An acknowledgement that the dead broker had sent counts, and the outage begins after it."""
    recorder = Recorder()
    scribe = Scribe(recorder)
    scribe.decide(0, "broker-1", (1, 0, (1, 2)))
    scribe.message(500, "q", "broker-1", produce())
    scribe.message(500, "p", "broker-1", produce())
    recorder.event(1000, "crash", "broker-1", None, None, None, None, "broker-1 is killed")
    scribe.message(900, "broker-1", "q", acknowledge(0), delay_us=300)
    scribe.decide(5000, "broker-2", (2, 1, (2,)), (1, 0, (1, 2)))
    scribe.message(6000, "broker-2", "p", acknowledge(1), delay_us=200)
    (outage,) = read_story(recorder.events).outages
    assert (outage.begun_us, outage.unavailable_us) == (1200, 5000)


def test_story_of_a_recording_that_began_in_mid_run() -> None:
    """In a recording that began in mid-run, the first leader is the next election's old value."""
    recorder = Recorder()
    scribe = Scribe(recorder)
    scribe.message(0, "p", "broker-1", produce())
    scribe.message(300, "broker-1", "p", acknowledge(0))
    recorder.event(1000, "crash", "broker-1", None, None, None, None, "broker-1 is killed")
    recorder.event(1100, "send", "p", "broker-1", produce(), 77, None)
    scribe.decide(5000, "broker-2", (2, 1, (2,)), (1, 0, (1, 2)))
    scribe.message(5500, "p", "broker-2", produce())
    scribe.message(6000, "broker-2", "p", acknowledge(1))
    texts = [text for _, text in read_story(recorder.events).lines]
    assert any(text.startswith("orders-0 gets leader 2 (was 1)") for text in texts)
    assert any("unavailable for" in text for text in texts)


def test_a_partition_without_a_leader_is_reported() -> None:
    """A partition without a leader is reported; a refused write does not end the outage."""
    recorder = Recorder()
    scribe = Scribe(recorder)
    scribe.decide(0, "broker-1", (1, 0, (1,)))
    recorder.event(1000, "crash", "broker-1", None, None, None, None, "broker-1 is killed")
    scribe.message(2000, "p", "broker-2", produce())
    scribe.decide(5000, "broker-2", (-1, 1, (1,)), (1, 0, (1,)))
    scribe.message(6000, "broker-2", "p", acknowledge(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    texts = [text for _, text in read_story(recorder.events).lines]
    assert any(
        text.startswith("orders-0 loses its leader (was 1), leader epoch 1") for text in texts
    )
    story = read_story(recorder.events)
    assert not story.outages
    (outage,) = story.open_outages
    assert (outage.begun_us, outage.ended_us) == (2000, None)
    assert texts[-1] == (
        "orders-0 takes no records at the end: 4.2 ms so far, because broker-1 was killed"
    )


def test_new_controllers_and_faults_are_reported() -> None:
    """A higher controller epoch is a new controller, and faults are reported with their text."""
    recorder = Recorder()
    scribe = Scribe(recorder)
    scribe.message(0, "controller-3", "broker-1", leader_and_isr(1, 0, (1,)))
    recorder.event(5, "fault", "network", None, None, None, None, "partition [[1], [2]]")
    scribe.message(10, "controller-3", "broker-1", leader_and_isr(1, 0, (1,), 2))
    texts = [text for _, text in read_story(recorder.events).lines]
    assert texts[-2:] == [
        "network: partition [[1], [2]]",
        "broker-3 is now the controller, epoch 2",
    ]


def test_a_story_is_read_without_a_look_for_garbage() -> None:
    """Reading a story keeps the garbage collector off, as decoded events have no cycles."""
    trace = record_failover(Recorder()).trace()
    collecting: list[bool] = []

    def watched() -> Iterator[Event]:
        for event in story_events(trace):
            collecting.append(gc.isenabled())
            yield event

    assert read_story(watched()).lines
    assert collecting
    assert not any(collecting)
    assert gc.isenabled()


@pytest.mark.parametrize(("count", "shown", "rest"), [(6, 6, 0), (7, 5, 2), (9, 5, 4)])
def test_equal_changes_of_many_partitions_are_summarized(count: int, shown: int, rest: int) -> None:
    """Equal changes of many partitions take at most six lines: all, or five and a count."""
    recorder = Recorder()
    for number in range(count):
        seq = recorder.event(1000, "deliver", "broker-1", "controller-1", fetch(0), number, None)
        for name, value in {"leader": 1, "leader_epoch": 0, "isr": (1, 2)}.items():
            recorder.state(seq, f"controller-1/orders-{number}/{name}", None, value)
    lines = [text for _, text in read_story(recorder.events).lines]
    assert len([text for text in lines if text.endswith("isr [1, 2]")]) == shown
    summed = [text for text in lines if text.startswith("...")]
    assert summed == ([f"... and {rest} more partitions: new"] if rest else [])
