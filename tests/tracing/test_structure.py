"""``diff --structure``: runs that did the same, whatever ids were drawn and when."""

from __future__ import annotations

from typing import Any

from fakekafka.testing.scenarios.file import load_scenario
from fakekafka.testing.scenarios.run import ScenarioRun
from fakekafka.tests.support.traces import acknowledge, fetch, produce
from fakekafka.tracing.reading.structure import structural_differences
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.trace import MemoryTrace
from fakekafka.zkfake.messages import EventType, WatchEvent


def recorded(*, late: int = 0, first_message: int = 1, offset: int = 5, data: bytes = b"x"
             ) -> MemoryTrace:  # fmt: skip
    recorder = Recorder()
    send: Any = recorder.event
    send(late, "send", "client", "broker-1", produce(data), first_message, None)
    send(late + 5, "deliver", "broker-1", "client", produce(data), first_message, 0)
    send(late + 9, "send", "broker-1", "client", acknowledge(offset), first_message + 7, 1)
    gone = WatchEvent(1, 2, 77 + late, EventType.NODE_DELETED, "/x")
    send(late + 9, "note", "zk-1", None, gone, None, None)
    return recorder.trace()


def test_times_and_numbers_do_not_count() -> None:
    """Another time, other message numbers, other record bytes of the same length."""
    assert structural_differences(recorded(), recorded(late=70, first_message=9, data=b"y")) == []


def test_stories_of_two_seeds_have_one_structure() -> None:
    """Sessions, cluster and topics have other ids; the fingerprints differ, the structure not."""
    traces = []
    for seed in (0, 1):
        recorder = Recorder()
        spec = load_scenario("leader_crash_acks_all", {"cluster.kafka_version": "3.9"})
        ScenarioRun(spec, seed, recorder).run()
        traces.append(recorder.trace())
    assert traces[0].fingerprint != traces[1].fingerprint
    assert structural_differences(*traces) == []


def test_what_happened_counts() -> None:
    """Only the actor that did something else is told, with both events."""
    (difference,) = structural_differences(recorded(), recorded(offset=6))
    assert difference.actor == "broker-1"
    assert difference.left is not None
    assert difference.right is not None
    assert (difference.left.seq, difference.more) == (2, 1)


def test_the_order_of_what_is_concurrent_does_not_count() -> None:
    """Each actor's events are compared among themselves; one that does more is told."""
    recorders = [Recorder(), Recorder()]
    for recorder, actors in zip(recorders, ("ab", "ba"), strict=True):
        for number, actor in enumerate(actors):
            recorder.event(number, "send", actor, "c", fetch(1), number, None)
    assert structural_differences(recorders[0].trace(), recorders[1].trace()) == []
    recorders[1].event(9, "send", "a", "c", fetch(2), 9, None)
    (difference,) = structural_differences(recorders[0].trace(), recorders[1].trace())
    assert (difference.actor, difference.left) == ("a", None)
