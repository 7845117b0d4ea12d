"""A recorded run, run again: the state told by its changes is that of the cluster at that event."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from fakekafka import Simulation, TraceError, UsageError, open_trace, replay
from fakekafka.testing.scenarios.file import parse_scenario
from fakekafka.testing.scenarios.run import ScenarioRun, header_of
from fakekafka.tracing.recorder import Recorder

SCENARIO = """
name = "faults"
[cluster]
brokers = 3
kafka_version = "{version}"
zookeepers = {zookeepers}
[cluster.config]
zookeeper.session.timeout.ms = 6000
replica.lag.time.max.ms = 2000
[cluster.topics.orders]
assignment = [[1, 2, 3], [2, 3, 1]]
[workload]
topic = "orders"
model = "open"
rate_per_s = 10
acks = "all"
consumers = 1
[[faults]]
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
    """Run the scenario into a file; gives its fingerprint."""
    text = SCENARIO.format(version=version, zookeepers=zookeepers)
    recorder = Recorder()
    run = ScenarioRun(parse_scenario(text, "faults", {}), 3, recorder)
    run.run()
    recorder.save(path, header_of(run))
    return recorder.fingerprint()


def picture(simulation: Simulation) -> dict[str, Any]:
    """What the cluster itself says: its partitions, controllers, znodes and consumers."""
    found: dict[str, Any] = {}
    for broker in simulation.running.living_brokers():
        for number in (0, 1):
            try:
                view = simulation.partition("orders", number)
            except UsageError:
                continue
            for replica in map(view.replica, view.replicas):
                if replica.broker_id != broker.broker_id or replica.role == "none":
                    continue
                path = f"broker-{broker.broker_id}/orders-{number}"
                found[f"{path}/role"] = replica.role
                found[f"{path}/log_end_offset"] = replica.log_end_offset
                found[f"{path}/high_watermark"] = replica.high_watermark
                found[f"{path}/log_start_offset"] = replica.log_start_offset
                found[f"{path}/leader_epoch"] = replica.leader_epoch
    for server_id, process in simulation.zookeepers.items():
        if process.is_alive:
            for path, node in process.server.storage.tree.items():
                if path != "/":
                    found[f"zk-{server_id}/znodes{path}"] = node.version
    for name, actor in simulation.runtime.network.nodes.items():
        for topic_partition, position in getattr(actor, "positions", {}).items():
            found[f"{name}/{topic_partition}/position"] = position
    return found


def of_trace(state: dict[str, Any], paths: dict[str, Any]) -> dict[str, Any]:
    """The recorded state in the form of a picture."""
    return {
        path: value["version"] if "/znodes/" in path else value
        for path, value in state.items()
        if "/znodes/" in path or path.endswith("/position") or path in paths
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "zookeepers"), [("0.10", 1), ("1.1", 1), ("2.8", 1), ("3.9", 3)]
)
def test_the_recorded_state_is_that_of_the_cluster(
    tmp_path: Path, version: str, zookeepers: int
) -> None:
    """At random events of a run with faults of many kinds, and the fingerprint at the end."""
    path = tmp_path / "run.fktrace"
    fingerprint = record(path, version, zookeepers)
    with open_trace(path) as trace:
        positions = sorted(random.Random(1).sample(range(len(trace)), 60))
        with replay(path, positions[0]) as run:
            for position in positions:
                assert run.run_to_number(position)
                assert run.last_event >= position
                at_that_event = run.last_event
                state = trace.state_at(at_that_event)
                assert dict(run.trace.state_at(at_that_event)) == dict(state)
                live = picture(run.simulation)
                assert of_trace(dict(state), live) == live, f"#{at_that_event}"
            assert run.finish() == fingerprint


@pytest.mark.slow
def test_every_change_can_be_undone(tmp_path: Path) -> None:
    """From the end back to the start nothing is left, and forward again it is the end's state."""
    record(tmp_path / "run.fktrace", "2.8")
    with open_trace(tmp_path / "run.fktrace") as trace:
        end = dict(trace.state_at(len(trace) - 1))
        deltas = [event.delta for event in trace.events if event.delta]
        now = dict(end)
        for delta in reversed(deltas):
            for path, old, new in reversed(delta):
                assert now.get(path) == new, path
                now[path] = old
        assert {path: value for path, value in now.items() if value is not None} == {}
        for delta in deltas:
            for path, old, new in delta:
                assert now.get(path) == old
                now[path] = new
        assert {path: value for path, value in now.items() if value is not None} == end


def test_a_replay_is_stepped_and_forked(tmp_path: Path) -> None:
    """Each step is one event; after the fork the scenario's faults do not come any more."""
    record(tmp_path / "run.fktrace", "3.9")
    run = Simulation.replay(tmp_path / "run.fktrace", until="0.4s")
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


def test_what_cannot_be_run_again_says_why(tmp_path: Path) -> None:
    """A simulation driven by Python has no scenario in its trace."""
    with Simulation(1, seed=1) as simulation:
        simulation.save(tmp_path / "a.fktrace")
    with pytest.raises(TraceError, match="cannot be run again: its header has no scenario"):
        replay(tmp_path / "a.fktrace")
    record(tmp_path / "b.fktrace", "3.9")
    with pytest.raises(TraceError, match="there is no event #99999999"):
        replay(tmp_path / "b.fktrace", 99_999_999)
