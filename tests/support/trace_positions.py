"""Random positions of recorded runs, at which the trace's state must be the cluster's.

``python -m fakekafka.tests.support.trace_positions --positions 1000 --seed 1 --jobs 2`` records
runs of all four versions with faults of every kind, in an order drawn from the run's seed. At each
position a fresh run is stopped: the state of the cluster, the state recorded by that run and the
state in the trace must be equal. Then the trace is stepped back to its begin and forward again
through all changes, and the fresh run goes on to its end, where it must have the first run's
fingerprint.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from fakekafka import Simulation, UsageError, open_trace, replay
from fakekafka.scenarios.file import parse_scenario
from fakekafka.scenarios.run import ScenarioRun, header_of
from fakekafka.tracing.reading.reader import Trace
from fakekafka.tracing.recording.recorder import Recorder

VERSIONS = ("0.10", "1.1", "2.8", "3.9")
POSITIONS_OF_A_RUN = 25
HEAD = """
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
"""
_FAULTS: tuple[tuple[tuple[int, str], ...], ...] = (
    ((0, 'action = "kill"\nbroker = {b}'), (8500, 'action = "start"\nbroker = {b}')),
    ((0, 'action = "power_off"\nbroker = {b}'), (2500, 'action = "start"\nbroker = {b}')),
    ((0, 'action = "shutdown"\nbroker = {b}'), (3000, 'action = "start"\nbroker = {b}')),
    ((0, 'action = "pause"\nbroker = {b}'), (8000, 'action = "resume"\nbroker = {b}')),
    ((0, 'action = "expire_session"\nbroker = {b}'),),
    ((0, 'action = "isolate"\nmachine = {b}'), (2500, 'action = "heal"')),
    (
        (0, 'action = "partition"\ngroups = [[{b}], [{o}]]\nboth_ways = false'),
        (2600, 'action = "heal"'),
    ),
    ((0, 'action = "drop"\nprobability = 0.05'), (1000, 'action = "heal"')),
    ((0, 'action = "latency"\nlatency = {{ constant_ms = 5 }}\nsource = {b}\ntarget = {o}'),),
    ((0, 'action = "resign_controller"'),),
    (
        (0, 'action = "kill_zookeeper"\nserver = 1'),
        (1000, 'action = "start_zookeeper"\nserver = 1'),
    ),
    ((0, 'action = "inject"\napi = "Produce"\nerror = "NOT_LEADER_OR_FOLLOWER"\nrequests = 2'),),
    ((0, 'action = "inject"\napi = "Fetch"\nerror = "UNKNOWN_SERVER_ERROR"\nrequests = 2'),),
)
"""Faults, each with the actions that undo it some milliseconds later."""


def scenario_text(version: str, seed: int) -> str:
    """Return a scenario with every fault of the table, one after the other."""
    rng = random.Random(seed)
    parts = [HEAD.format(version=version, zookeepers=rng.choice((1, 3)))]
    at_ms = 500
    for fault in rng.sample(_FAULTS, len(_FAULTS)):
        broker, other = rng.sample((1, 2, 3), 2)
        for later_ms, lines in fault:
            parts.append(f"[[faults]]\nat_ms = {at_ms + later_ms}")
            parts.append(lines.format(b=broker, o=other))
        at_ms += fault[-1][0] + rng.randrange(300, 1500)
    parts.append(f"[stop]\nat_ms = {at_ms + 2000}")
    return "\n".join(parts)


def record(path: Path, text: str, seed: int) -> str:
    """Record a scenario's run into a file and return its fingerprint."""
    recorder = Recorder()
    run = ScenarioRun(parse_scenario(text, "faults", {}), seed, recorder)
    run.run()
    recorder.save(path, header_of(run))
    return recorder.fingerprint()


def picture(simulation: Simulation) -> dict[str, Any]:
    """Return the cluster's own state: partitions, fetchers, controllers, znodes and consumers."""
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
                if node.czxid:  # znodes of ZooKeeper itself are not recorded
                    found[f"zk-{server_id}/znodes{path}"] = node.version
    for name, actor in simulation.runtime.network.nodes.items():
        for topic_partition, position in getattr(actor, "positions", {}).items():
            found[f"{name}/{topic_partition}/position"] = position
    return found


def of_trace(state: dict[str, Any], paths: dict[str, Any]) -> dict[str, Any]:
    """Return the recorded state in the form of ``picture``."""
    return {
        path: value["version"] if "/znodes/" in path else value
        for path, value in state.items()
        if "/znodes/" in path or path.endswith("/position") or path in paths
    }


def step_back_and_forward(trace: Trace) -> list[str]:
    """Undo every change from end to start and redo them; return the errors found."""
    end = dict(trace.state_at(len(trace) - 1))
    deltas = [event.delta for event in trace.events if event.delta]
    now = dict(end)
    problems = []
    for delta in reversed(deltas):
        for path, old, new in reversed(delta):
            if now.get(path) != new:
                problems.append(f"going back, {path} is {now.get(path)!r}, not {new!r}")
            now[path] = old
    left = {path: value for path, value in now.items() if value is not None}
    if left:
        problems.append(f"before the first event there is {left}")
    for delta in deltas:
        for path, old, new in delta:
            if now.get(path) != old:
                problems.append(f"going forward, {path} is {now.get(path)!r}, not {old!r}")
            now[path] = new
    if {path: value for path, value in now.items() if value is not None} != end:
        problems.append("there and back again is another state")
    return problems


class Checked(NamedTuple):
    """The result of checking a run."""

    version: str
    seed: int
    positions: int
    events: int
    problems: list[str]


def check_run(asked: tuple[str, int, int]) -> Checked:
    """Record a run and check the given number of positions."""
    version, seed, count = asked
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.fktrace"
        fingerprint = record(path, scenario_text(version, seed), seed)
        with open_trace(path) as trace:
            positions = sorted(random.Random(seed).sample(range(len(trace)), count))
            with replay(path, positions[0]) as run:
                for position in positions:
                    run.run_to_number(position)
                    problems += _differences(trace, run, position)
                if run.finish() != fingerprint:
                    problems.append("the replay ends with another fingerprint")
            problems += step_back_and_forward(trace)
            return Checked(version, seed, count, len(trace), problems)


def _differences(trace: Trace, run: Any, position: int) -> list[str]:
    if run.last_event < position:
        return [f"#{position}: the replay stopped at #{run.last_event}"]
    at = run.last_event
    told = dict(trace.state_at(at))
    problems = []
    if dict(run.trace.state_at(at)) != told:
        problems.append(f"#{at}: the replay recorded another state")
    live = picture(run.simulation)
    shown = of_trace(told, live)
    problems += [
        f"#{at}: {path} is {live.get(path)!r}, and the trace tells {shown.get(path)!r}"
        for path in dict.fromkeys((*live, *shown))
        if live.get(path) != shown.get(path)
    ]
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare traces with runs at random positions.")
    parser.add_argument("--positions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    asked = [
        (
            VERSIONS[number % len(VERSIONS)],
            chosen.seed + number,
            min(POSITIONS_OF_A_RUN, chosen.positions - number * POSITIONS_OF_A_RUN),
        )
        for number in range(-(-chosen.positions // POSITIONS_OF_A_RUN))
    ]
    started = time.monotonic()
    good = bad = 0
    with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
        for done in pool.imap(check_run, asked):
            word = "wrong" if done.problems else "right"
            print(
                f"{done.version:<5} seed {done.seed}: {done.positions} positions of "
                f"{done.events:,} events are {word}",
                flush=True,
            )
            for problem in done.problems[:10]:
                print(f"    {problem}")
            good += 0 if done.problems else done.positions
            bad += bool(done.problems)
    print(f"{good} positions right, {bad} runs wrong, {time.monotonic() - started:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
