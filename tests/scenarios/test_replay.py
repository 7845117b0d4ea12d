"""A recorded run is replayed: the state derived from the trace equals the cluster's at each
event."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka import Simulation, TraceError, UsageError, replay
from fakekafka.scenarios.file import load_scenario, parse_scenario
from fakekafka.scenarios.run import ScenarioRun, header_of
from fakekafka.tests.support.trace_positions import HEAD, check_run
from fakekafka.tracing.recording.recorder import Recorder

SCENARIO = f"""{HEAD}[[faults]]
at_ms = 500
action = "kill"
broker = 1
[[faults]]
at_ms = 9000
action = "start"
broker = 1
[[faults]]
at_ms = 10000
action = "pause"
broker = 2
[[faults]]
at_ms = 18000
action = "resume"
broker = 2
[[faults]]
at_ms = 19000
action = "isolate"
machine = 3
[[faults]]
at_ms = 21500
action = "heal"
[[faults]]
at_ms = 22000
action = "drop"
probability = 0.05
[[faults]]
at_ms = 23000
action = "heal"
[[faults]]
at_ms = 23500
action = "expire_session"
broker = 2
[[faults]]
at_ms = 25000
action = "inject"
api = "Produce"
error = "NOT_LEADER_OR_FOLLOWER"
requests = 2
[[faults]]
at_ms = 25500
action = "power_off"
broker = 2
[[faults]]
at_ms = 26000
action = "kill_zookeeper"
server = 1
[[faults]]
at_ms = 27000
action = "start_zookeeper"
server = 1
[[faults]]
at_ms = 28000
action = "start"
broker = 2
[stop]
at_ms = 32000
"""


def record(path: Path, version: str, zookeepers: int = 1) -> str:
    """Record the run of the scenario into a file and return its fingerprint."""
    text = SCENARIO.format(version=version, zookeepers=zookeepers)
    recorder = Recorder()
    run = ScenarioRun(parse_scenario(text, "faults", {}), 3, recorder)
    run.run()
    recorder.save(path, header_of(run))
    return recorder.fingerprint()


@pytest.mark.slow
@pytest.mark.parametrize(("version", "seed"), [("0.10", 5), ("1.1", 2), ("2.8", 3), ("3.9", 4)])
def test_the_recorded_state_is_that_of_the_cluster(version: str, seed: int) -> None:
    """At random events of a run with faults of many kinds the state of the trace equals that of a
    fresh run, every change can be undone and redone, and the fresh run ends with the
    fingerprint."""
    checked = check_run((version, seed, 40))
    assert checked.problems == []
    assert checked.events > 5000


def test_a_replay_is_stepped_and_forked(tmp_path: Path) -> None:
    """Each step of a replay is one event; after the fork the scenario's faults no longer act."""
    record(tmp_path / "run.fktrace", "3.9")
    run = replay(tmp_path / "run.fktrace", until="0.4s")
    assert 399 < run.simulation.now_ms < 500
    before = run.last_event
    assert run.step()
    assert run.last_event > before
    assert not run.is_over
    simulation = run.fork()
    simulation.run_for(3000)
    assert simulation.broker(1).is_alive
    simulation.broker(2).kill()
    simulation.run_for(1000)
    with pytest.raises(UsageError, match="was forked"):
        run.step()
    assert next(run.trace.filter("kind == crash")).actor == "broker-2"
    run.close()


def test_a_trace_that_cannot_be_replayed_says_why(tmp_path: Path) -> None:
    """The trace of a simulation driven by Python has no scenario, and the refusal says so."""
    with Simulation(1, seed=1) as simulation:
        simulation.save(tmp_path / "a.fktrace")
    with pytest.raises(TraceError, match="cannot be replayed: its header has no scenario"):
        replay(tmp_path / "a.fktrace")
    record(tmp_path / "b.fktrace", "3.9")
    with pytest.raises(TraceError, match="there is no event #99999999"):
        replay(tmp_path / "b.fktrace", 99_999_999)


def test_a_story_is_replayed_up_to_a_time_finished_and_forked(tmp_path: Path) -> None:
    """A story is replayed up to a time, and from there to the recorded end or, forked, into another
    run without the remaining steps."""
    path = tmp_path / "story.fktrace"
    recorder = Recorder()
    run = ScenarioRun(load_scenario("leader_crash_acks_all", {"cluster.kafka_version": "3.9"}),
                      0, recorder)  # fmt: skip
    run.run()
    recorder.save(path, header_of(run))
    with replay(path, until="2.04s") as story:
        assert [event.actor for event in story.trace.filter("kind == crash")] == ["broker-2"]
        assert not story.is_over
        assert story.finish() == recorder.fingerprint()
    with replay(path, until="2.01s") as story:
        simulation = story.fork()
        leader = simulation.partition("orders", 0).leader
        simulation.run_for(20_000)
        assert simulation.partition("orders", 0).leader == leader
        assert list(story.trace.filter("kind == crash")) == []
