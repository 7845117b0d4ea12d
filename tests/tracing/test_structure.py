"""``diff --structure``: comparison of what runs did, regardless of times and random ids."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.scenarios.file import load_scenario
from fakekafka.scenarios.run import ScenarioRun
from fakekafka.tests.support.traces import acknowledge, fetch, produce
from fakekafka.tracing.reading.reader import Trace
from fakekafka.tracing.reading.structure import StructuralComparison, compare_structure
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
    """Times, message numbers and record contents of equal length do not differ in structure."""
    assert (
        compare_structure(recorded(), recorded(late=70, first_message=9, data=b"y")).differences
        == []
    )


def test_stories_of_two_seeds_have_one_structure() -> None:
    """Runs of two seeds have different ids and fingerprints but the same structure."""
    traces = []
    for seed in (0, 1):
        recorder = Recorder()
        spec = load_scenario("leader_crash_acks_all", {"cluster.kafka_version": "3.9"})
        ScenarioRun(spec, seed, recorder).run()
        traces.append(recorder.trace())
    assert traces[0].fingerprint != traces[1].fingerprint
    assert compare_structure(*traces).differences == []


def test_events_that_differ_are_reported_by_actor() -> None:
    """Only the actor that behaved differently is reported, with both events."""
    (difference,) = compare_structure(recorded(), recorded(offset=6)).differences
    assert difference.actor == "broker-1"
    assert difference.left is not None
    assert difference.right is not None
    assert (difference.left.seq, difference.more) == (2, 1)


def test_the_order_of_concurrent_events_does_not_count() -> None:
    """Events are compared per actor, so that the order of concurrent events does not matter."""
    recorders = [Recorder(), Recorder()]
    for recorder, actors in zip(recorders, ("ab", "ba"), strict=True):
        for number, actor in enumerate(actors):
            recorder.event(number, "send", actor, "c", fetch(1), number, None)
    assert compare_structure(recorders[0].trace(), recorders[1].trace()).differences == []
    recorders[1].event(9, "send", "a", "c", fetch(2), 9, None)
    (difference,) = compare_structure(recorders[0].trace(), recorders[1].trace()).differences
    assert (difference.actor, difference.left) == ("a", None)


def long_run(*, is_killed: bool) -> Trace:
    """Record 90 s under load, with or without a broker's crash and return."""
    topics = {"orders": {"assignment": {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}}}
    config = {"zookeeper.session.timeout.ms": 6000, "leader.imbalance.check.interval.seconds": 5}
    with Simulation(3, seed=1, topics=topics, config=config) as s:
        producer = s.producer(linger_ms=5)
        for number in range(90):
            for partition in range(3):
                producer.produce(("orders", partition), b"x")
            if is_killed and number == 30:
                s.broker(2).kill()
            if is_killed and number == 50:
                s.broker(2).start()
            s.run_for(1000)
        return s.trace()


@pytest.fixture(scope="module")
def with_and_without() -> StructuralComparison:
    calm, killed = long_run(is_killed=False), long_run(is_killed=True)
    return compare_structure(calm.stored, killed.stored)


def test_a_run_with_a_fault_beside_one_without(with_and_without: StructuralComparison) -> None:
    """Differences to a run without fault are the crash, its effects and the return."""
    assert with_and_without.only_left == []
    told = [(event.kind, event.actor) for event in with_and_without.only_right]
    assert told[0] == ("crash", "broker-2")
    assert told[1][0] == "expire"
    assert ("restart", "broker-2") in told
    elected = next(
        event
        for event in with_and_without.only_right
        if event.type == "LeaderAndIsrRequest" and event.actor == "broker-3"
    )
    assert any(path == "broker-3/orders-1/role" for path, _, _ in elected.delta)


def test_runs_are_aligned_again_after_the_fault(with_and_without: StructuralComparison) -> None:
    """Runs align again after the fault, although epochs and offsets still differ."""
    assert with_and_without.shared > 0.7 * with_and_without.events[0]
    lanes = {lane.actor: lane for lane in with_and_without.differences}
    for actor in ("broker-2", "broker-3", "fetcher-2-from-1"):
        lane = lanes[actor]
        late = [place for place in lane.places if place.time_us > 70e6]
        assert sum(place.left_count for place in late) < 10


@pytest.mark.slow
def test_memory_grows_with_the_number_of_events() -> None:
    """The comparison keeps a few numbers per event and no text."""

    def peak(events: int) -> int:
        traces = []
        for offset in (5, 6):
            recorder = Recorder()
            for number in range(events):
                reply = acknowledge(offset + number % 7)
                recorder.event(number, "send", "broker-1", "client", reply, number, None)
            traces.append(recorder.trace())
        for trace in traces:
            assert sum(1 for _ in trace.events()) == events  # they cache what they have read
        tracemalloc.start()
        compare_structure(traces[0], traces[1])
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(1000)
    assert peak(3000) - peak(1000) < 2000 * 250
