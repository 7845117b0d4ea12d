"""Runs of scenarios: examples meet their expectations, recordings repeat elsewhere, deviations are
found."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from fakekafka import Simulation
from fakekafka.cli.main import main
from fakekafka.cli.run import parameters_of
from fakekafka.scenarios.file import load_scenario, parse_scenario
from fakekafka.scenarios.run import ScenarioRun, header_of, reproduce, run_from_header
from fakekafka.scenarios.spec import FaultSpec, WorkloadSpec
from fakekafka.scenarios.workload import Workload
from fakekafka.tests.support.paths import ROOT
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.trace_file import TraceReader

EXAMPLES = [
    path
    for path in sorted((ROOT / "examples" / "scenarios").glob("*.toml"))
    if load_scenario(path).story is None
]
LONG_EXAMPLES = {"asymmetric_partition", "rolling_restart"}
CLUSTER = """\
[cluster]
brokers = 3
[cluster.config]
zookeeper.session.timeout.ms = 2000
[cluster.topics.orders]
assignment = [[1, 2, 3]]
[network]
latency = { uniform_ms = [0.1, 1.0] }"""
SHORT = f"""
name = "short"
{CLUSTER}
[workload]
topic = "orders"
rate_per_s = 50

[[faults]]
at_ms = 500
action = "kill"
broker = 1

[stop]
at_ms = 4000

[[expect]]
that = "sorted(isr('orders', 0)) == [1, 2, 3]"
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text(SHORT)
    return path


def fakekafka(*arguments: object) -> object:
    """Run the command in this process and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


def fakekafka_elsewhere(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, with another hash seed."""
    return subprocess.run(
        [sys.executable, "-m", "fakekafka.cli.main", *map(str, arguments)],
        env={**os.environ, "PYTHONHASHSEED": "4242"},
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.slow if path.stem in LONG_EXAMPLES else [])
        for path in EXAMPLES
    ],
    ids=lambda path: path.stem,
)
@pytest.mark.parametrize("seed", [0, 1])
def test_examples_hold(path: Path, seed: int) -> None:
    """Every example keeps its expectations and promises, for more than one seed."""
    run = ScenarioRun(load_scenario(path), seed)
    result = run.run()
    assert result.problems == []
    assert result.ok
    assert result.metrics["acknowledged"] > 0
    assert result.metrics["lost"] == 0
    assert result.virtual_ms >= run.spec.stop.at_ms
    assert run.simulation.failures == []


def test_a_run_records_all_that_is_needed_to_run_it_again() -> None:
    spec = parse_scenario(SHORT, "short.toml")
    first, second = Recorder(), Recorder()
    run = ScenarioRun(spec, 5, first)
    result = run.run()
    assert run_from_header(header_of(run), second) == result
    assert result.fingerprint == first.fingerprint() == second.fingerprint()
    assert header_of(run)["reproduce"] == "fakekafka run short.toml --seed 5"


def test_recording_changes_nothing_in_a_run() -> None:
    spec = parse_scenario(SHORT, "short.toml")
    silent, recorded = ScenarioRun(spec, 5).run(), ScenarioRun(spec, 5, Recorder()).run()
    assert silent.metrics == recorded.metrics
    assert silent.virtual_ms == recorded.virtual_ms


@pytest.mark.timeout(20)
@pytest.mark.parametrize("at_ms", [500, 33.3, 0.0001, 499.9999])
def test_a_time_that_is_no_whole_microsecond_of_the_run_is_reached(at_ms: float) -> None:
    """A time is reached whenever the cluster was up, which is the scenario's time 0, even between
    microseconds."""
    text = SHORT.replace("at_ms = 500\n", f"at_ms = {at_ms}\n")
    for seed in range(3):
        assert ScenarioRun(parse_scenario(text, "short.toml"), seed).run().problems == []


def test_an_expectation_that_fails_is_a_problem_with_its_time() -> None:
    text = SHORT.replace("== [1, 2, 3]", "== [7]")
    result = ScenarioRun(parse_scenario(text, "short.toml"), 5).run()
    assert not result.ok
    (problem,) = result.problems
    assert problem.startswith("at ")
    assert "sorted(isr('orders', 0)) == [7] does not hold" in problem


def test_only_an_idempotent_producer_promises_each_record_once() -> None:
    """Only an idempotent producer stores each record once if the leader dies before it answers the
    last records."""
    text = SHORT.replace("rate_per_s = 50", "rate_per_s = 2000\nidempotent = false")
    text = text.replace("[0.1, 1.0]", "[5.0, 9.0]")
    runs = [ScenarioRun(parse_scenario(text, "short.toml"), seed).run() for seed in range(3)]
    assert [run.problems for run in runs] == [[], [], []]
    assert sum(run.metrics["duplicated"] for run in runs) > 0
    assert sum(run.metrics["lost"] for run in runs) == 0


def test_a_lost_record_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """A promised record that is missing is counted and reported as a problem."""
    run = ScenarioRun(parse_scenario(SHORT, "short.toml"), 5)
    run.set_up()
    run.workloads[0].acknowledged.append(b"never sent")
    run.workloads[0].offsets.append(-1)
    monkeypatch.setattr(run, "set_up", lambda: None)
    result = run.run()
    assert result.metrics["lost"] == 1
    (problem,) = result.problems
    assert problem == "orders: 1 acknowledged records are lost, the first is b'never sent'"


ONE_LEADER_FAR_AWAY = f"""
{CLUSTER}
links = [
    {{ source = 1, target = 2, latency = {{ constant_ms = 40 }} }},
    {{ source = 1, target = 3, latency = {{ constant_ms = 40 }} }},
]
[workload]
rate_per_s = 500
acks = 1
[[faults]]
at_ms = 1000
action = "kill"
broker = 1
[stop]
at_ms = 5000
"""


def figures(text: str, seed: int = 5) -> tuple[dict[str, float], list[str]]:
    result = ScenarioRun(parse_scenario(text, "loss.toml"), seed).run()
    return result.metrics, result.problems


@pytest.mark.parametrize("acks", [1, 0])
def test_records_without_a_promise_are_counted_as_lost_too(acks: int) -> None:
    """With acks=1 or acks=0 records count as lost, without a broken promise, if the leader dies
    before its followers have them."""
    metrics, problems = figures(ONE_LEADER_FAR_AWAY.replace("acks = 1", f"acks = {acks}"))
    assert metrics["lost"] > 5
    assert (metrics["lost_promised"], metrics["expired"], problems) == (0, 0, [])
    assert metrics["acknowledged"] > 1500


def test_records_on_all_in_sync_replicas_are_not_lost() -> None:
    metrics, problems = figures(ONE_LEADER_FAR_AWAY.replace("acks = 1", 'acks = "all"'))
    assert (metrics["lost"], metrics["lost_promised"], problems) == (0, 0, [])


def test_losses_of_an_allowed_unclean_election_break_no_promise() -> None:
    """A topic that allows unclean elections accepts their losses: they are counted, and fail no
    run."""
    text = ONE_LEADER_FAR_AWAY.replace("acks = 1", 'acks = "all"').replace(
        "[cluster.topics.orders]",
        "replica.lag.time.max.ms = 500\n[cluster.topics.orders]\n"
        "config.unclean.leader.election.enable = true\nconfig.min.insync.replicas = 1",
    )
    # The followers fall out of the ISR before the leader dies, alone with what it acknowledges.
    text = text.replace("constant_ms = 40", "constant_ms = 2000").replace(
        "at_ms = 1000", "at_ms = 6000"
    )
    metrics, problems = figures(text.replace("at_ms = 5000", "at_ms = 12000"))
    assert metrics["lost"] > 100
    assert (metrics["lost_promised"], problems) == (0, [])


def test_a_record_is_searched_for_in_the_partition_it_was_written_to() -> None:
    """A record is looked for in its partition, even if a workload writes to some partitions only,
    in its own order."""
    with Simulation(1, trace=False) as simulation:
        simulation.create_topic("orders", partitions=4)
        spec = WorkloadSpec("orders", "w", producers=0, partitions=(3, 1))
        workload = Workload(simulation, spec, 4)
        values = [b"w:%08d" % number for number in range(4)]
        assert [workload.partition_of(value) for value in values] == [3, 1, 3, 1]


def test_records_deleted_by_retention_are_not_lost() -> None:
    """A record that retention deletes after its time is not lost."""
    text = ONE_LEADER_FAR_AWAY.replace("acks = 1", 'acks = "all"').replace(
        "[cluster.topics.orders]",
        "log.retention.check.interval.ms = 1000\n[cluster.topics.orders]\n"
        "config.retention.ms = 1000\nconfig.segment.ms = 500",
    )
    # A broker begins to look 30 seconds after its start.
    text = text.replace("at_ms = 5000", "at_ms = 34000").replace(
        "rate_per_s = 500", "rate_per_s = 50"
    )
    metrics, problems = figures(text)
    assert metrics["expired"] > 500
    assert (metrics["lost"], metrics["lost_promised"], problems) == (0, 0, [])


def with_retention(text: str) -> str:
    """Return the scenario with a retention of one second; brokers first check it after 30 s."""
    text = text.replace(
        "[cluster.topics.orders]",
        "log.retention.check.interval.ms = 1000\n[cluster.topics.orders]\n"
        "config.retention.ms = 1000\nconfig.segment.ms = 500",
    )
    return text.replace("at_ms = 5000", "at_ms = 34000").replace(
        "rate_per_s = 500", "rate_per_s = 50"
    )


def test_a_record_lost_by_a_leader_does_not_count_as_expired() -> None:
    """A record that a leader lost is not counted as expired when retention deletes another one at
    its offset."""
    metrics, problems = figures(with_retention(ONE_LEADER_FAR_AWAY))
    assert metrics["lost"] > 0
    assert metrics["expired"] > 500
    assert (metrics["lost_promised"], problems) == (0, [])


def test_unacknowledged_records_deleted_by_retention_are_not_lost() -> None:
    text = with_retention(ONE_LEADER_FAR_AWAY).replace("acks = 1", "acks = 0")
    calm = text[: text.index("[[faults]]")] + text[text.index("[stop]") :]
    metrics, problems = figures(calm)
    assert metrics["expired"] > 500
    assert (metrics["lost"], problems) == (0, [])


@pytest.mark.parametrize(
    ("fault", "expired"),
    [
        ('action = "delete_topic"\ntopic = "orders"', True),
        ('action = "alter_config"\ntopic = "orders"\n'
         'config = {"unclean.leader.election.enable" = true}', False),
    ],
)  # fmt: skip
def test_deleting_a_topic_or_allowing_unclean_elections_breaks_no_promise(
    fault: str, expired: bool
) -> None:
    """Deleted topics lose no records; unclean elections lose records that are counted but break no
    promise."""
    text = ONE_LEADER_FAR_AWAY.replace("acks = 1", 'acks = "all"').replace(
        "[cluster.topics.orders]", "replica.lag.time.max.ms = 500\n[cluster.topics.orders]"
    )
    text = text.replace("constant_ms = 40", "constant_ms = 2000")
    text = text.replace("at_ms = 1000", "at_ms = 6000").replace("at_ms = 5000", "at_ms = 12000")
    if expired:
        text = text.replace('at_ms = 6000\naction = "kill"\nbroker = 1', f"at_ms = 6000\n{fault}")
    else:
        text = text.replace("[stop]", f"[[faults]]\nat_ms = 500\n{fault}\n[stop]")
    metrics, problems = figures(text)
    assert (metrics["lost_promised"], problems) == (0, [])
    assert metrics["expired" if expired else "lost"] > 100
    assert metrics["lost" if expired else "expired"] == 0


def test_a_cluster_that_does_not_recover_is_not_judged() -> None:
    metrics, problems = figures(ONE_LEADER_FAR_AWAY + "settle_timeout_ms = 1\n")
    assert [text.partition(": ")[2] for text in problems] == [
        "the cluster did not recover within 1 ms"
    ]
    assert "lost" not in metrics


def test_only_the_requested_metrics_are_reported() -> None:
    text = 'metrics = ["lost", "retries"]\n' + SHORT
    result = ScenarioRun(parse_scenario(text, "short.toml"), 5).run()
    assert list(result.metrics) == ["retries", "lost"]


@pytest.mark.parametrize("extra", ["", 'when = "now_ms > 1e9"\n'])
def test_the_limit_of_handled_events_is_kept_exactly(extra: str) -> None:
    text = SHORT.replace("at_ms = 4000", f"at_ms = 4000\nsettle = false\n{extra}max_handled = 1034")
    result = ScenarioRun(parse_scenario(text, "short.toml"), 5).run()
    assert result.metrics["handled"] == 1034
    assert result.problems[0].endswith(
        "stopped after 1,034 messages and timers, the limit of stop.max_handled"
    )


def test_a_condition_is_not_evaluated_before_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A condition is not evaluated before its time, and acts after the first event from then on."""
    text = SHORT.replace(
        "[stop]",
        '[[faults]]\nwhen = "alive(2)"\nat_ms = 2503\nafter_ms = 7\naction = "kill"\n'
        "broker = 2\n[stop]",
    )
    asked_ms: list[float] = []
    acted_ms: list[tuple[str, float]] = []
    run = ScenarioRun(parse_scenario(text, "short.toml"), 5)
    triggered_fault = run._triggered_fault

    def note() -> object:
        asked_ms.append(run.elapsed_ms)
        return triggered_fault()

    def act(fault: FaultSpec) -> None:
        acted_ms.append((fault.action, run.elapsed_ms))

    monkeypatch.setattr(run, "_triggered_fault", note)
    monkeypatch.setattr(run, "_perform_fault", act)
    assert run.run().metrics["handled"] > 1000
    assert len(asked_ms) < 10
    assert asked_ms[0] > 2502.9
    assert 2503 <= asked_ms[-1] <= 2520
    assert acted_ms == [("kill", 500), ("kill", pytest.approx(asked_ms[-1] + 7, abs=0.001))]


@pytest.mark.parametrize("window", [1, 4])
def test_a_closed_loop_limits_the_records_in_flight(window: int) -> None:
    """In a closed loop only an answer, failures included, makes room for the next record."""
    model = f'model = "closed"\nin_flight = {window}\nproducers = 2'
    run = ScenarioRun(parse_scenario(SHORT.replace("rate_per_s = 50", model), "short.toml"), 5)
    run.set_up()
    (workload,) = run.workloads
    unanswered = []

    def look() -> None:
        answered = len(workload.acknowledged) + workload.failed
        unanswered.append(workload.sent - answered)
        if len(unanswered) < 100:
            run.simulation.runtime.call_later(None, 20_000, look)

    run.simulation.runtime.call_later(None, 1_000_000, look)
    run.set_up = lambda: None  # type: ignore[method-assign]
    result = run.run()
    assert (result.problems, result.metrics["lost"]) == ([], 0)
    assert max(unanswered) == 2 * window
    assert min(unanswered) >= 2 * window - 2, "a window of each producer is open for a moment only"
    assert result.metrics["acknowledged"] == workload.sent - workload.failed > 100


def test_a_version_is_set_as_text() -> None:
    """A version such as 0.10 is read as text, with or without quotes, not as a number."""
    for text in ("0.10", '"0.10"', "'0.10'"):
        values = parameters_of([f"cluster.kafka_version={text}"])
        assert parse_scenario(SHORT, "short.toml", values).cluster.kafka_version == "0.10"
    assert parameters_of(["workload.rate_per_s=0.10"]) == {"workload.rate_per_s": 0.1}


def test_a_workload_may_only_read() -> None:
    text = SHORT.replace("rate_per_s = 50", "producers = 0\nconsumers = 1")
    result = ScenarioRun(parse_scenario(text, "short.toml"), 5).run()
    assert (result.problems, result.metrics["acknowledged"]) == ([], 0)


def test_the_command_to_repeat_a_run_describes_the_same_scenario() -> None:
    """The command to repeat a run states every setting as both a shell and TOML read it."""
    parameters = {
        "workload.idempotent": False,
        "workload.record_bytes": [10, 20],
        "network.latency": {"uniform_ms": [0.1, 2]},
        "name": "it's 5",
        "description": "5",
        "cluster.kafka_version": "2.8",
    }
    spec = parse_scenario(SHORT, "my file.toml", parameters)
    words = shlex.split(reproduce(ScenarioRun(spec, 5)))
    assert words[:5] == ["fakekafka", "run", "my file.toml", "--seed", "5"]
    settings = [word for before, word in itertools.pairwise(words) if before == "--set"]
    again = {**parameters_of(settings), "cluster.kafka_version": words[-1]}
    assert parse_scenario(SHORT, "my file.toml", again) == spec


def test_a_warning_says_that_a_single_run_ignores_the_matrix(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(SHORT + "[matrix]\ncluster.brokers = [3, 4]\n")
    assert fakekafka("run", scenario, "--json") == 0
    told = capsys.readouterr()
    assert told.err == (
        "ignoring the matrix (cluster.brokers) in a single run; choose values with --set\n"
    )
    assert json.loads(told.out)["ok"] is True


@pytest.mark.slow
def test_a_trace_is_verified_in_another_process(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace is verified in another process: its events and fingerprint do not depend on the hash
    seed."""
    trace = tmp_path / "short.fktrace"
    assert fakekafka("run", scenario, "--seed", 3, "-o", trace) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "short, seed 3" in output
    assert f"fakekafka trace show {trace}" in output
    scenario.unlink()
    done = fakekafka_elsewhere("trace", "verify", trace, "--json")
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["holds"], verdict["first_difference"]) == (0, True, None)
    assert verdict["recorded"] == verdict["replayed"]
    assert f"fingerprint {verdict['recorded']}" in output


def test_the_parameters_of_a_run_are_part_of_its_trace(scenario: Path, tmp_path: Path) -> None:
    """Parameters given by ``--set`` change the run, and ``trace verify`` applies them again."""
    plain, trace = tmp_path / "plain.fktrace", tmp_path / "set.fktrace"
    settings = ["--set", "cluster.brokers=4", "--set", "workload.rate_per_s=20"]
    assert fakekafka("run", scenario, "-o", plain) == 0
    assert fakekafka("run", scenario, *settings, "-o", trace) == 0
    with TraceReader(trace) as read:
        assert "broker-4" in read.actors()
        assert read.header["parameters"] == {"cluster.brokers": 4, "workload.rate_per_s": 20}
    assert fakekafka("trace", "verify", trace) == 0
    assert fakekafka("trace", "diff", plain, trace) == 1


def test_the_first_event_that_differs_between_two_seeds_is_named(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = [tmp_path / f"{seed}.fktrace" for seed in (1, 2)]
    for seed, trace in enumerate(traces, 1):
        assert fakekafka("run", scenario, "--seed", seed, "-o", trace) == 0
    capsys.readouterr()
    assert fakekafka("trace", "diff", *traces, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["different"] is True
    assert found["columns"]
    with TraceReader(traces[0]) as one, TraceReader(traces[1]) as other:
        seq = found["seq"]
        assert one.event(seq).as_dict() == found["left"]
        assert other.event(seq).as_dict() == found["right"]
        assert found["left"] != found["right"]
        before = [[event.as_dict() for event in trace.events(0, seq)] for trace in (one, other)]
        assert before[0] == before[1]
    assert fakekafka("trace", "diff", *traces) == 1
    assert f"first difference at #{seq}" in capsys.readouterr().out
    assert fakekafka("trace", "diff", traces[0], traces[0]) == 0
    assert "the same" in capsys.readouterr().out


def test_the_result_as_json(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fakekafka("run", scenario, "--seed", 3, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["scenario"], found["seed"], found["ok"]) == ("short", 3, True)
    assert found["problems"] == []
    assert found["metrics"]["lost"] == 0
    assert len(found["fingerprint"]) > 8


def test_a_broken_expectation_gives_status_1(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario.write_text(SHORT.replace("== [1, 2, 3]", "== [7]"))
    assert fakekafka("run", scenario) == 1
    assert "does not hold" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (("brokers = 3", "broker = 3"), [], "broker"),
        (('action = "kill"', 'action = "kil"'), [], "kill"),
        (("[cluster]", "[cluster"), [], "short.toml"),
        (("", ""), ["--set", "cluster"], "--set takes key=value, not 'cluster'"),
        (("", ""), ["--set", "cluster.nothing=1"], "nothing"),
        (("", ""), ["-o", "/nonexistent/x/y.fktrace"], "/nonexistent/x/y.fktrace"),
        (("", ""), ["--seed", "some"], "--seed"),
    ],
)
def test_wrong_usage_gives_status_2_and_a_message(
    scenario: Path,
    change: tuple[str, str],
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scenario.write_text(SHORT.replace(*change))
    assert fakekafka("run", scenario, *arguments) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_is_not_there_gives_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fakekafka("run", tmp_path / "nothing.toml") == 2
    assert "nothing.toml" in capsys.readouterr().err
