"""The debugger: stepping, going back, breakpoints, injections and saving."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from fakekafka import TraceError, UsageError
from fakekafka.debugger.debugger import Debugger
from fakekafka.debugger.forks import parse_action
from fakekafka.debugger.moves import complete
from fakekafka.scenarios.file import load_scenario, parse_scenario
from fakekafka.scenarios.run import ScenarioRun, header_of
from fakekafka.scenarios.spec import ScenarioSpec
from fakekafka.tests.support.present import present
from fakekafka.tests.support.scenario_texts import ORDERS_ON_THREE_BROKERS
from fakekafka.tests.support.traces import header, write_failover
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.trace import StoredTrace

SCENARIO = f"""
name = "short"
description = "a leader dies"
{ORDERS_ON_THREE_BROKERS}
config.min.insync.replicas = 2
[workload]
rate_per_s = 20
[[faults]]
at_ms = 500
action = "kill"
broker = 1
expect = "leader('orders', 0) == 2"
expect_within_ms = 8000
[stop]
at_ms = 9000
"""


def spec() -> ScenarioSpec:
    return parse_scenario(SCENARIO, "short.toml")


@pytest.fixture
def live() -> Iterator[Debugger]:
    with Debugger.of_scenario(spec(), 3) as debugger:
        yield debugger


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "run.fktrace"
    recorder = Recorder()
    run = ScenarioRun(spec(), 3, recorder)
    run.run()
    recorder.save(path, header_of(run))
    return path


def test_forward_and_back_show_the_same(live: Debugger) -> None:
    """Stepping back shows the same event and state as stepping forward."""
    live.goto(400)
    seen = []
    for _ in range(30):
        seen.append((live.position, live.event.as_dict(), dict(live.state())))
        assert live.step()
    for position, event, state in reversed(seen):
        assert live.back()
        assert (live.position, live.event.as_dict(), dict(live.state())) == (position, event, state)
    live.goto(0)
    assert not live.back()
    assert live.position == 0


def test_the_next_event_of_an_actor(live: Debugger) -> None:
    """The next event of an actor, by default of the current one, is found in both directions."""
    live.goto(300)
    assert complete(live.move_to_next_on("broker-2"))
    first = live.position
    assert live.event.actor == "broker-2"
    assert complete(live.move_to_next_on())
    assert live.event.actor == "broker-2"
    assert complete(live.move_to_previous_on())
    assert live.position == first
    assert not complete(live.move_to_next_on("nobody"))


def test_a_long_trace_is_not_read_for_one_crash(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks without a matching event are not decoded, in either direction."""
    read: list[int] = []
    whole, part = StoredTrace.raw_events, StoredTrace.view

    def raw_events(self: StoredTrace, index: int) -> list[Any]:
        read.append(index)
        return whole(self, index)

    def view(self: StoredTrace, index: int) -> Any:
        read.append(index)
        return part(self, index)

    with Debugger.of_trace(recorded) as debugger:
        crash = next(debugger.trace.filter("kind == crash")).seq
        last = len(debugger.trace) - 1
        monkeypatch.setattr(StoredTrace, "raw_events", raw_events)
        monkeypatch.setattr(StoredTrace, "view", view)
        assert complete(debugger.move_to_next_interesting())
        assert debugger.position == crash
        debugger.goto(last)
        assert complete(debugger.move_to_previous_interesting())
        assert debugger.event.kind in ("crash", "restart")
        debugger.goto(last)
        read.clear()
        assert not complete(debugger.move_to_next_on("nobody"))
        assert read == []


@pytest.mark.parametrize("kind", ["live", "recorded"])
def test_breakpoints_stop_at_the_event(kind: str, recorded: Path) -> None:
    """Breakpoints on crashes, messages, state changes and times stop in both directions."""
    debugger = (
        Debugger.of_trace(recorded) if kind == "recorded" else Debugger.of_scenario(spec(), 3)
    )
    with debugger:
        crash = debugger.break_on("crash of broker-1")
        elected = debugger.break_on("change broker-*/orders-0/role if new == 'leader'")
        told = debugger.break_on("LeaderAndIsrRequest to broker-3 if seq > 100")
        debugger.break_on("at 2s")
        met = []
        while (stop := debugger.run()).breakpoint is not None:
            met.append((stop.breakpoint.text, debugger.position))
        names = [name for name, _ in met]
        assert names.count(crash.text) == 1
        assert names.count("at 2s") == 1
        roles = [number for name, number in met if name == elected.text]
        assert len(roles) == 2
        assert [e.seq for e in debugger.trace.filter("kind == deliver and actor == 'broker-3' and "
                "type == LeaderAndIsrRequest and seq > 100")] == [
            number for name, number in met if name == told.text]  # fmt: skip
        assert stop.reason == "the run has ended"
        debugger.breakpoints.remove(told)
        assert debugger.run_back().number == roles[1]
        assert debugger.state()["broker-2/orders-0/role"] == "leader"
        assert debugger.run_back().breakpoint in (crash, debugger.breakpoints[-1])


def test_a_condition_about_the_cluster(recorded: Path) -> None:
    """A condition on the cluster stops when it becomes true; a recorded run is repeated for it."""
    with Debugger.of_trace(recorded) as debugger:
        debugger.break_on("when leader('orders', 0) == 2")
        stop = debugger.run()
        assert stop.reason == "leader('orders', 0) == 2 holds"
        assert debugger.simulation.partition("orders", 0).leader == 2
        assert debugger.is_live
        with pytest.raises(UsageError, match="did you mean leader"):
            debugger.break_on("when leadr('orders', 0) == 2")


@pytest.mark.parametrize("kind", ["live", "recorded"])
def test_a_time_is_met_each_time_and_from_both_sides(kind: str, recorded: Path) -> None:
    """A time is met at the first event at or after it, from both sides."""
    debugger = (
        Debugger.of_trace(recorded) if kind == "recorded" else Debugger.of_scenario(spec(), 3)
    )
    with debugger:
        point = debugger.break_on("at 2.5s")
        place = debugger.run().number
        assert debugger.event.time_us >= 2_500_000
        assert debugger.trace.stored.event(place - 1).time_us < 2_500_000
        assert debugger.run().breakpoint is None
        assert debugger.run_back().number == place
        assert debugger.run_back().breakpoint is None
        assert debugger.run().number == place
        debugger.back(5)
        assert debugger.run().number == place
        assert point.hits == 4


def test_a_time_between_two_parts_of_a_file_is_met_in_reverse(tmp_path: Path) -> None:
    """A time is met in reverse even if the event before it is in another chunk."""
    path = tmp_path / "run.fktrace"
    recorder = Recorder()
    # A trace of several chunks, whose ends do not depend on a few events more or less.
    run = ScenarioRun(load_scenario("waiting_for_a_broker"), 3, recorder)
    run.run()
    recorder.save(path, header_of(run))
    with Debugger.of_trace(path) as debugger:
        stored = debugger.trace.stored
        firsts = [
            stored.event(info.first_seq) for before, info in pairwise(stored.chunks)
            if before.time_last_us < info.time_first_us
        ]  # fmt: skip
        assert firsts
        for event in firsts[:5]:
            debugger.goto(stored.last_seq)
            debugger.breakpoints.clear()
            debugger.break_on(f"at {event.time_us}us")
            assert debugger.run_back().number == event.seq


def test_a_condition_about_the_cluster_is_met_in_reverse(recorded: Path) -> None:
    """In reverse a condition is met where it last became true, or an earlier stop nearer by."""
    with Debugger.of_trace(recorded) as debugger:
        debugger.break_on("when leader('orders', 0) == 2")
        elected = debugger.run().number
        assert debugger.run_back().breakpoint is None
        debugger.goto(debugger.trace.stored.last_seq)
        point = debugger.break_on("when leader('orders', 0) == 1")
        early = debugger.run_back()
        assert early.reason == "leader('orders', 0) == 2 holds" or early.number < elected
        debugger.run()
        debugger.step(50)
        stop = debugger.run_back()
        assert (stop.number, stop.reason) == (elected, "leader('orders', 0) == 2 holds")
        debugger.step(50)
        debugger.break_on(f"at #{elected + 3}")
        assert debugger.run_back().number == elected + 3
        assert debugger.run_back().number == elected
        assert debugger.run_back().breakpoint is point
        assert debugger.run_back().breakpoint is None


def test_a_condition_about_a_cluster_that_cannot_run_again_is_refused(tmp_path: Path) -> None:
    """A condition on a cluster that cannot run again is refused when it is set."""
    path = tmp_path / "live.fktrace"
    recorder = Recorder()
    recorder.event(0, "start", "scenario", None, None, None, None, None)
    recorder.event(1, "crash", "broker-1", None, None, None, None, None)
    recorder.save(path, header(mode="live"))
    with Debugger.of_trace(path) as debugger:
        with pytest.raises(
            UsageError, match=r"asks the running cluster, .* recorded in mode 'live'"
        ):
            debugger.break_on("when leader('orders', 0) == 2")
        assert debugger.breakpoints == []
        debugger.break_on("crash")
        assert debugger.run().reason == "crash"


def test_a_cut_recording_says_so(recorded: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.fktrace"
    cut.write_bytes(recorded.read_bytes()[:-100])
    with Debugger.of_trace(cut) as debugger, Debugger.of_trace(recorded) as whole:
        assert "cut off inside" in present(debugger.problem)
        assert whole.problem is None


def test_a_fault_makes_another_run_that_is_a_scenario(live: Debugger, tmp_path: Path) -> None:
    """An injected fault is in the saved scenario, which repeats the very same run."""
    live.goto("3s")
    complete(live.move_to_next_on("broker-2"))
    position, before = live.position, dict(live.state())
    live.inject("kill", broker=2)
    assert live.position == position
    assert dict(live.state()) == before
    live.break_on("crash")
    stop = live.run()
    assert live.event.actor == "broker-2"
    assert stop.number > position
    live.inject("note", text="now without 2")
    live.breakpoints.clear()
    live.run()
    live.save(tmp_path / "fork.toml")
    recorder = Recorder()
    ScenarioRun(load_scenario(tmp_path / "fork.toml"), None, recorder).run()
    assert recorder.fingerprint() == live.trace.fingerprint
    assert live.forks[0].startswith(f"#{position} kill broker=2")
    crashes = [event.actor for event in live.trace.filter("kind == crash")]
    assert crashes[:2] in (["broker-1", "broker-2"], ["broker-2", "broker-1"])


def test_a_fault_in_a_story_is_one_of_its_faults(tmp_path: Path) -> None:
    """A fault injected within a step of a story is saved, and the story continues after it."""
    with Debugger.of_scenario(load_scenario("kip_101_loss"), 0) as live:
        live.goto("2s")
        live.inject("kill", broker=1)
        live.run()
        live.save(tmp_path / "fork.toml")
        crashes = list(live.trace.filter("kind == crash"))
        fingerprint = live.trace.fingerprint
    assert crashes[0].actor == "broker-1"
    assert 2_000_000 < crashes[0].time_us < 2_100_000
    recorder = Recorder()
    result = ScenarioRun(load_scenario(tmp_path / "fork.toml"), None, recorder).run()
    assert recorder.fingerprint() == fingerprint
    assert "step " in result.problems[0]


def test_an_impossible_injection_is_refused(live: Debugger, tmp_path: Path) -> None:
    """An injection is refused too early, for an unknown action, or if only events are left."""
    with pytest.raises(UsageError, match="still starting"):
        live.inject("kill", broker=1)
    write_failover(tmp_path / "other.fktrace")
    with Debugger.of_trace(tmp_path / "other.fktrace") as debugger:
        debugger.goto(9)
        with pytest.raises(UsageError, match="does not reach event #9"):
            debugger.inject("kill", broker=1)
        assert not debugger.is_live
    live.goto("3s")
    with pytest.raises(UsageError, match="did you mean 'kill'"):
        live.inject("kil", broker=1)
    with pytest.raises(UsageError, match="no broker 9"):
        live.inject("kill", broker=9)
    with pytest.raises(TraceError, match="there is no event #99999999"):
        live.goto(99_999_999)
    write_failover(tmp_path / "part.fktrace", scenario="")
    with Debugger.of_trace(tmp_path / "part.fktrace") as debugger:
        assert debugger.step(5)
        with pytest.raises(UsageError, match="can only be looked at: its header has no scenario"):
            debugger.inject("kill", broker=1)


def test_the_scenario_ends_where_the_debugger_takes_over(live: Debugger) -> None:
    """After ``take_over`` the scenario's remaining faults do not occur."""
    live.goto("0.5s")
    simulation = live.take_over()
    simulation.run_for(3000)
    assert simulation.broker(1).is_alive


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("LeaderAndIsrReqest", "did you mean 'LeaderAndIsrRequest'"),
        ("crsh", "did you mean 'crash'"),
        ("if tpye == FetchRequest", "did you mean 'type'"),
        ("if type == FetchReqest", "did you mean 'FetchRequest'"),
        ("change", "write it like change"),
        ("at soon", "as in at 9.5s"),
        ("crash from broker-1", "write `crash of ACTOR`"),
        ("", "is missing"),
    ],
)
def test_a_mistake_in_a_breakpoint(live: Debugger, text: str, problem: str) -> None:
    """The error for a wrong breakpoint suggests a correct one."""
    with pytest.raises(UsageError, match=problem):
        live.break_on(text)


def test_actions_as_a_line() -> None:
    """Values of an action are TOML where possible, else strings."""
    assert parse_action("kill broker=1") == ("kill", {"broker": 1})
    assert parse_action("reassign replicas='{orders-0 = [2, 3]}'")[1] == {
        "replicas": {"orders-0": [2, 3]}
    }
    assert parse_action("kill broker=leader:orders-0")[1] == {"broker": "leader:orders-0"}
    with pytest.raises(UsageError, match="name=value"):
        parse_action("kill 1")


@pytest.mark.parametrize("kind", ["live", "recorded"])
def test_an_interrupted_run_stops_at_its_current_position(kind: str, recorded: Path) -> None:
    """An interrupted run stops where it is, and the next run misses no breakpoint."""
    debugger = (
        Debugger.of_trace(recorded) if kind == "recorded" else Debugger.of_scenario(spec(), 3)
    )
    with debugger:
        debugger.break_on("if seq == 1500")
        way = debugger.run_in_slices()
        first = next(way)
        way.close()
        assert debugger.position == first.number
        assert debugger.event.time_us <= first.time_us
        assert 0 < first.number < 1500
        assert debugger.run().number == 1500
        debugger.goto(2600)
        back = debugger.run_back_in_slices()
        reached = next(back).number
        back.close()
        assert 1500 < debugger.position == reached < 2600
        assert debugger.run_back().number == 1500


def test_a_run_in_slices_has_the_events_of_an_uninterrupted_run() -> None:
    """A run in slices advances with every slice and has the events of an uninterrupted run."""
    with Debugger.of_scenario(spec(), 3) as whole, Debugger.of_scenario(spec(), 3) as sliced:
        assert whole.ends_us is None
        for debugger in (whole, sliced):
            debugger.break_on("when leader('orders', 0) == 2")
        stop = whole.run()
        numbers = [progress.number for progress in sliced.run_in_slices()]
        assert len(numbers) > 2
        assert numbers == sorted(set(numbers))
        assert sliced.position == stop.number
        assert whole.run().reason == sliced.run().reason == "the run has ended"
        assert [e.as_dict() for e in whole.trace.events] == [
            e.as_dict() for e in sliced.trace.events
        ]
        begun = next(e.time_us for e in whole.trace.events if e.why and "kill" in e.why) - 500_000
        assert whole.ends_us == begun + 9_000_000


def test_a_fault_that_is_not_injected_to_the_end_leaves_the_run(live: Debugger) -> None:
    """An interrupted injection keeps the position and the events of the run."""
    live.goto(2000)
    before = live.trace.stored
    way = live.inject_in_slices("kill", broker=2)
    passed = list(islice(way, 3))
    assert all(progress.is_repeated for progress in passed)
    way.close()
    assert live.position == 2000
    assert live.forks == []
    assert live.trace.stored is before
    assert live.step()


def test_going_to_an_event_that_never_comes_keeps_the_position(live: Debugger) -> None:
    """Going to an event beyond the end of the run keeps the position."""
    live.goto(400)
    with pytest.raises(TraceError, match="there is no event #99999"):
        live.goto(99_999)
    assert live.position == 400


def test_a_repeated_search_for_a_condition_can_be_interrupted(live: Debugger) -> None:
    """An interrupted search for a condition in reverse keeps the position and counts no hit."""
    point = live.break_on("when leader('orders', 0) == 2")
    live.run()
    live.goto("9s")
    here = live.position
    way = live.run_back_in_slices()
    while not next(way).is_repeated:
        pass
    way.close()
    assert live.position == here
    assert point.hits == 1
