"""The stories of examples/scenarios, each played for every version it names
(docs/kafka/scenarios.md)."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
from fakekafka.cli.main import main
from fakekafka.scenarios.file import load_scenario, parse_scenario
from fakekafka.scenarios.run import ScenarioRun, header_of, run_from_header
from fakekafka.scenarios.spec import ROUNDS
from fakekafka.scenarios.verdict import ScenarioResult
from fakekafka.tests.support.paths import ROOT
from fakekafka.tests.support.present import present
from fakekafka.tracing.reading.reader import open_trace
from fakekafka.tracing.recording.recorder import Recorder

FOLDER = ROOT / "examples" / "scenarios"
STORIES = {
    path.stem: spec
    for path in sorted(FOLDER.glob("*.toml"))
    if (spec := load_scenario(path)).story is not None
}
RUNS = [
    (name, version) for name, spec in STORIES.items() for version in present(spec.story).versions
]
ALL = ("0.10", "1.1", ROUNDS, "2.8", "3.9")


@functools.cache
def play(name: str, version: str, seed: int = 0, text: str | None = None) -> ScenarioResult:
    parameters = {"cluster.kafka_version": version}
    spec = parse_scenario(text or STORIES[name].text, f"{name}.toml", parameters)
    return ScenarioRun(spec, seed).run()


def fakekafka(*arguments: object) -> object:
    """Run the command in this process and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


@pytest.mark.parametrize(("name", "version"), RUNS)
def test_every_step_of_a_story_ends_in_its_expected_state(name: str, version: str) -> None:
    """Every step of a story ends in the state that the file expects."""
    result = play(name, version)
    assert result.problems == []
    assert result.story is not None
    assert len(present(result.story).steps) == len(present(STORIES[name].story).steps)


@pytest.mark.parametrize("name", STORIES)
def test_a_story_does_not_depend_on_its_seed(name: str) -> None:
    """A story holds messages where their order matters, so that its outcome is the same for any
    seed."""
    version = present(STORIES[name].story).versions[0]
    results = [play(name, version, seed) for seed in (0, 11)]
    assert results[1].problems == []
    last, other = (present(result.story).steps[-1].state for result in results)
    assert (last.replicas, last.answers) == (other.replicas, other.answers)


@pytest.mark.parametrize(
    ("name", "version", "lost", "differ_at"),
    [
        *[("kip_101_loss", v, ("m1",) if v == "0.10" else (), None) for v in ALL],
        *[("kip_101_loss_halt", v, ("m1",) if v == "0.10" else (), None) for v in ALL],
        *[("kip_101_leader_gone", v, ("m1",) if v == "0.10" else (), None) for v in ALL],
        *[("kip_101_loss_no_restart", v, ("m1",) if v == "0.10" else (), None) for v in ALL],
        *[("kip_101_divergence", v, ("m1",), 1 if v == "0.10" else None) for v in ALL],
        *[("kip_279_fast_failover", v, ("v10",), 10 if v == "1.1" else None) for v in ALL[1:]],
        *[("kip_279_no_write", v, ("v10",), None) for v in ALL[1:]],
        *[
            ("kip_279_unclean", v, tuple(f"b{n}" for n in range(10, 15)), at)
            for v, at in zip(ALL[1:], (10, None, None, None), strict=True)
        ],
        *[("unclean_election", v, ("a5", "a6", "a7"), 5 if v == "0.10" else None) for v in ALL],
        *[("unclean_election_refused", v, (), None) for v in ALL],
        *[("leader_crash_acks_1", v, ("r10",), None) for v in ALL],
        *[("leader_crash_acks_all", v, (), None) for v in ALL],
    ],
)
def test_the_documented_outcome(
    name: str, version: str, lost: tuple[str, ...], differ_at: int | None
) -> None:
    """Each protocol loses the records, and leaves the logs apart, as documented."""
    outcome = present(present(play(name, version).story).outcome)
    assert (outcome.lost, outcome.differ_at) == (lost, differ_at)
    assert ("nothing acknowledged was lost" in outcome.sentences) == (lost == ())
    assert (f"logs differ at offset {differ_at}" in outcome.sentences) == (differ_at is not None)


@pytest.mark.parametrize(("version", "doubled"), [("0.10", ("s11",)), ("1.1", ()), ("3.9", ())])
def test_idempotence_prevents_the_duplicate(version: str, doubled: tuple[str, ...]) -> None:
    """A record sent again after it was copied is stored twice, unless the producer is
    idempotent."""
    assert (
        present(present(play("leader_crash_acks_all", version).story).outcome).duplicated == doubled
    )


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("0.10", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        ("2.8", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        ("3.9", "REQUEST_TIMED_OUT"),
    ],
)
def test_the_isr_shrinks_under_a_waiting_write(version: str, told: str) -> None:
    """A waiting write gets error 20 once the high watermark passes it; 3.7 freezes the high
    watermark, so that the write times out."""
    steps = present(play("min_isr_shrinks", version).story).steps
    assert steps[4].state.answers["m1"] == told
    assert [r.value for r in steps[-1].state.replicas[2].records] == ["m0", "m1", "m2"]


# -- stories that go wrong -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, _ in RUNS if name.startswith("kip_101")][::5])
def test_the_expectations_of_the_old_protocol_fail_in_later_versions(name: str) -> None:
    """The expectations tell the protocols apart: those of 0.10 fail in every other version."""
    text = STORIES[name].text
    swapped = text.replace('old = ["0.10"]', 'old = ["1.1", "2.8", "3.9", "2.8-rounds"]', 1)
    swapped = swapped.replace('new = ["1.1", "2.8-rounds", "2.8", "3.9"]', 'new = ["0.10"]', 1)
    assert swapped != text
    for version in ALL:
        assert play(name, version, text=swapped).problems != []


def test_a_wrong_expectation_names_step_broker_expected_and_actual(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong expectation also names the seed and the command that reproduces it; the exit status
    is 1."""
    text = STORIES["kip_101_loss"].text
    wrong = text.replace('new.A = { log = "[m0/0 m1/0]", high', 'new.A = { log = "[m0/0]", high')
    path = tmp_path / "wrong.toml"
    path.write_text(wrong)
    assert fakekafka("run", path, "--seed", 3, "--kafka-version", "2.8") == 1
    output = capsys.readouterr().out
    step = "step 5 (B dies before A has fetched anything, and A is elected)"
    assert f"kafka_version 2.8, {step}" in output
    assert "broker A: log: expected [m0/0], is [m0/0 m1/0]" in output
    assert f"seed 3; again: fakekafka run {path} --seed 3 --kafka-version 2.8" in output
    assert fakekafka("run", path, "--kafka-version", "0.10") == 0, "0.10 is not concerned"


def test_a_wrong_outcome_is_a_problem() -> None:
    text = STORIES["kip_101_loss"].text.replace('old = { lost = ["m1"] }', "")
    result = play("kip_101_loss", "0.10", text=text)
    assert result.problems == ["kafka_version 0.10, outcome: lost: expected [], is ['m1']"]


def test_a_state_that_is_not_reached_is_reported_with_the_missing_part() -> None:
    text = STORIES["kip_101_loss"].text.replace(
        'until = { leader = "A", A = { role = "leader" } }',
        'until = { leader = "A", A = { role = "off" } }, within_ms = 20000',
    )
    (problem,) = play("kip_101_loss", "2.8", text=text).problems
    assert "not reached within 20000 virtual ms" in problem
    assert "broker A: role: expected 'off', is 'leader'" in problem


def test_nothing_after_a_failed_step_is_played() -> None:
    text = STORIES["kip_101_loss"].text.replace('answers.m1 = "waiting"', 'answers.m1 = "sent"', 1)
    result = play("kip_101_loss", "2.8", text=text)
    assert len(present(result.story).steps) == 2
    assert present(result.story).outcome is None
    assert result.problems[0].endswith("answers.m1: expected 'sent', is 'waiting'")


def test_an_action_that_cannot_be_done_is_a_problem_of_its_step() -> None:
    text = STORIES["kip_101_loss"].text.replace(
        '{ action = "produce", values = "m1" }', '{ action = "start", broker = "A" }'
    )
    (problem,) = play("kip_101_loss", "2.8", text=text).problems
    assert "step 1" in problem
    assert "start: broker-3 is already running" in problem


EVERY_OTHER_ACTION = """
[cluster]
brokers = 3
[cluster.config]
zookeeper.session.timeout.ms = 6000
replica.socket.timeout.ms = 2000
[cluster.topics.orders]
assignment = [[2, 3]]
config.unclean.leader.election.enable = false
[story]
partition = "orders-0"
brokers = { A = 2, B = 3 }
versions = ["3.9"]

[[step]]
name = "a cut link: B cannot fetch; a link that is mended carries again"
do = [
  { action = "cut", from = "B", to = "A", both_ways = false },
  { action = "produce", values = "m0", timeout_ms = 500 },
  { action = "run", for_ms = 1000 },
  { action = "heal" },
  { action = "run", for_ms = 5000 },
]
[step.expect]
answers.m0 = "REQUEST_TIMED_OUT"
A = { log = "[m0/0]", high_watermark = 1 }
B = { log = "[m0/0]", high_watermark = 1 }

[[step]]
name = "a paused broker answers later; another controller is elected meanwhile"
do = [
  { action = "pause", broker = "A" },
  { action = "produce", values = "m1" },
  { action = "run", for_ms = 1000 },
  { action = "ask_leader", name = "leader, says B", to = "B" },
  { action = "resign_controller" },
  { action = "resume", broker = "A" },
  { action = "run", until = { answers = { m1 = "acknowledged" } } },
]
[step.expect]
answers = { m1 = "acknowledged at 1", "leader, says B" = "leader A" }
leader_epoch = 0

[[step]]
name = "B is out of the ISR and A is gone; an operator asks for an unclean election"
do = [
  { action = "kill", broker = "B" },
  { action = "run", until = { isr = ["A"] } },
  { action = "produce", values = "m2", to = "A" },
  { action = "run", for_ms = 100 },
  { action = "hold", messages = "FetchRequest", from = 3, to = "broker-2" },
  { action = "start", broker = "B" },
  { action = "run", until = { B = { role = "follower" } } },
  { action = "kill", broker = "A" },
  { action = "run", until = { leader = "none" } },
  { action = "produce", values = "m3", to = "A" },
  { action = "elect", election = "unclean" },
  { action = "run", until = { leader = "B", B = { role = "leader" } } },
]
[step.expect]
answers = { m2 = "acknowledged at 2", m3 = "disconnected" }
B = { log = "[m0..m1/0]" }

[outcome]
lost = ["m2"]
"""


def test_every_action_has_its_effect() -> None:
    """Every action that no story of the examples needs has its effect."""
    spec = parse_scenario(EVERY_OTHER_ACTION, "story.toml")
    result = ScenarioRun(spec).run()
    assert result.problems == []
    assert present(present(result.story).outcome).sentences == ("m2 was acknowledged and is lost",)


def test_without_a_leader_there_is_no_verdict_on_losses() -> None:
    """Records that the leader lacks are lost, so that without a leader there is no verdict."""
    text = EVERY_OTHER_ACTION.replace(
        '  { action = "elect", election = "unclean" },\n'
        '  { action = "run", until = { leader = "B", B = { role = "leader" } } },\n',
        "",
    ).replace('lost = ["m2"]', "")
    text = text.replace('m3 = "disconnected"', 'm3 = "waiting"')  # the answer is on its way
    result = ScenarioRun(parse_scenario(text, "story.toml")).run()
    assert result.problems == []
    assert present(present(result.story).outcome).sentences == ("the partition has no leader",)


# -- the command ---------------------------------------------------------------------------------


def test_one_command_shows_the_loss(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints a table per step, and the outcome of the run at the end."""
    path = FOLDER / "kip_101_loss.toml"
    assert fakekafka("run", path, "--kafka-version", "0.10") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("kip_101_loss, kafka_version 0.10, seed 0: ")
    step = lines.index(" 4 A restarts without a controller; the next one makes A a follower of B")
    assert lines[step + 1].split() == ["leader", "B,", "epoch", "0,", "isr", "{A,", "B}"]
    assert lines[step + 2].split() == ["A", "follower", "[m0/0]", "HW", "1"]
    assert lines[step + 3].split() == ["B", "leader", "[m0/0", "m1/0]", "HW", "2"]
    assert lines[-1].strip() == "=> m1 was acknowledged and is lost; the logs are the same"


def test_without_a_version_a_story_is_played_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert fakekafka("run", FOLDER / "kip_279_fast_failover.toml") == 0
    end = capsys.readouterr().out.splitlines()[-4:]
    assert [line.split(" => ")[0].strip() for line in end] == ["1.1", ROUNDS, "2.8", "3.9"]
    assert "logs differ at offset 10" in end[0]
    assert all("the logs are the same" in line for line in end[1:])


def test_a_story_is_recorded_once_for_each_of_its_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The trace's file name says the version, the command's output names the file, and the trace in
    it is that of the version."""
    story = FOLDER / "kip_279_fast_failover.toml"
    assert fakekafka("run", story, "-o", tmp_path / "fast.fktrace", "--json") == 0
    runs = json.loads(capsys.readouterr().out)
    versions = ["1.1", ROUNDS, "2.8", "3.9"]
    paths = [tmp_path / f"fast-{version}.fktrace" for version in versions]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    assert [run["trace"] for run in runs] == list(map(str, paths))
    for run, path, version in zip(runs, paths, versions, strict=True):
        with open_trace(path) as trace:
            assert trace.header["kafka_version"] == version
            assert trace.stored.fingerprint == run["fingerprint"]


def test_a_single_version_of_a_story_is_recorded_under_the_given_name(tmp_path: Path) -> None:
    path = tmp_path / "one.fktrace"
    story = FOLDER / "kip_279_fast_failover.toml"
    assert fakekafka("run", story, "--kafka-version", "2.8", "-o", path) == 0
    assert list(tmp_path.iterdir()) == [path]


def test_a_story_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    path = FOLDER / "kip_101_divergence.toml"
    assert fakekafka("run", path, "--kafka-version", "0.10", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kafka_version"] == "0.10"
    assert found["outcome"]["differ_at"] == 1
    assert found["steps"][-1]["replicas"]["A"]["log"] == "[m0/0 m1/0]"
    assert found["steps"][-1]["isr"] == ["B", "A"]
    assert fakekafka("run", path, "--json") == 0
    everything = json.loads(capsys.readouterr().out)
    assert [run["kafka_version"] for run in everything] == list(ALL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kafka-version", "2.9"], "not '2.9'; did you mean '3.9'?"),
        (["-o", "nowhere/all.fktrace"], "cannot record to nowhere/all-0.10.fktrace: its directory"),
    ],
)
def test_a_story_that_cannot_be_played_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fakekafka("run", FOLDER / "kip_101_loss.toml", *arguments) == 2
    assert message in capsys.readouterr().err


def test_the_version_of_any_scenario_can_be_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--kafka-version`` overrides the file's version, and the trace records it."""
    path, trace = tmp_path / "plain.toml", tmp_path / "plain.fktrace"
    path.write_text(
        "[cluster]\nbrokers = 1\n[cluster.topics.orders]\nreplication_factor = 1\n"
        "[workload]\nrate_per_s = 10\n[stop]\nat_ms = 100\n"
    )
    assert fakekafka("run", path, "--kafka-version", "1.1", "-o", trace) == 0
    assert fakekafka("trace", "info", trace) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert f"fakekafka run {path} --seed 0 --kafka-version 1.1" in output


def test_a_recorded_story_replays_identically() -> None:
    """A trace holds all that is needed to replay a story, event by event."""
    parameters = {"cluster.kafka_version": "0.10"}
    spec = parse_scenario(STORIES["kip_101_loss"].text, "kip_101_loss.toml", parameters)
    first, second = Recorder(), Recorder()
    run = ScenarioRun(spec, 5, first)
    run.run()
    again = run_from_header(header_of(run), second)
    assert present(present(again.story).outcome).lost == ("m1",)
    assert first.fingerprint() == second.fingerprint()
    assert header_of(run)["kafka_version"] == "0.10"
