"""``fakekafka trace``: output, exit status and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakekafka.cli import trace as command
from fakekafka.cli import trace_comparison
from fakekafka.tests.support.paths import ROOT
from fakekafka.tests.support.traces import header, record_failover, record_fetches, write_failover
from fakekafka.tracing.recording.locked_recorder import LockedRecorder
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.recording.writer import TraceWriter
from fakekafka.tracing.trace_file import TraceReader
from typer.testing import CliRunner, Result


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_failover(tmp_path / "run.fktrace", reproduce="fakekafka run x.toml --seed 42")
    return tmp_path / "run.fktrace"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command.app, [str(argument) for argument in arguments])


def test_info(file: Path) -> None:
    """``trace info`` prints seed, counts, faults, fingerprint and the command to run it again."""
    result = run("info", file)
    assert result.exit_code == 0
    for words in ("seed           42", "events         22 in 1 chunks", "fingerprint", "XX",
                  "fakekafka run x.toml --seed 42", "ProduceRequest"):  # fmt: skip
        assert words in result.stdout


def test_info_as_json(file: Path) -> None:
    """``trace info --json`` has the header, counts and interesting events."""
    told = json.loads(run("info", file, "--json").stdout)
    assert told["events"] == 22
    assert told["complete"] is True
    assert told["header"]["seed"] == 42
    assert [event["kind"] for event in told["interesting"]] == ["crash", "restart"]


def test_show_ranges(file: Path) -> None:
    """``trace show`` takes a range of numbers or times; negative numbers count from the end."""
    assert len(run("show", file).stdout.splitlines()) == 22
    assert run("show", file, "#7").stdout.startswith("#7 ")
    assert [line[:3] for line in run("show", file, "-2:").stdout.splitlines()] == ["#20", "#21"]
    assert "partition_states:" in run("show", file, "1:2", "-v").stdout


def test_show_as_json_lines(file: Path) -> None:
    """``trace show --json`` prints one JSON object per event."""
    lines = [json.loads(line) for line in run("show", file, "--json").stdout.splitlines()]
    assert [line["seq"] for line in lines] == list(range(22))
    assert lines[1]["fields"]["partition_states"][0]["leader"] == 1


def test_grep(file: Path) -> None:
    """``trace grep`` has status 1 if nothing matches, as grep has."""
    found = run("grep", file, "type==LeaderAndIsrRequest and actor=='broker-3'")
    assert (found.exit_code, len(found.stdout.splitlines())) == (0, 1)
    assert run("grep", file, "kind == deliver", "--count").stdout == "9\n"
    none = run("grep", file, "kind == fault")
    assert (none.exit_code, none.stdout) == (1, "")


def test_grep_then(file: Path) -> None:
    """``trace grep --then`` finds sequences and prints the time between."""
    result = run("grep", file, "kind==crash", "--then", "type==WatchEvent", "--within", "7s")
    assert result.exit_code == 0
    assert "after 6000.000 ms" in result.stdout
    late = run("grep", file, "kind==crash", "--then", "type==WatchEvent", "--within", "5s")
    assert late.exit_code == 1


def test_why_and_effects(file: Path) -> None:
    """``trace why`` prints causes and ``trace effects`` the tree of effects."""
    why = run("why", file, "#12").stdout.splitlines()
    assert why[0].startswith("#12 ")
    assert why[2].startswith("because #10 ")
    effects = run("effects", file, "9").stdout.splitlines()
    assert [len(line) - len(line.lstrip()) for line in effects] == [0, 2, 4, 6, 4, 6]
    tree = json.loads(run("effects", file, 9, "--json").stdout)
    assert tree["tree"]["effects"][0]["seq"] == 10


def test_at_and_watch(file: Path) -> None:
    """``trace at`` and ``trace watch`` print state with the events that changed it."""
    state = run("at", file, 21, "broker-2/orders-0/leader")
    assert state.stdout == "broker-2/orders-0/leader = 2  (#12)\n"
    watched = run("watch", file, "broker-*/orders-0/leader").stdout.splitlines()
    assert watched == [
        "#2            0.001250 broker-1/orders-0/leader: None -> 1",
        "#12           7.001250 broker-2/orders-0/leader: 1 -> 2",
    ]
    assert run("watch", file, "nothing").exit_code == 1
    assert run("at", file, 0).exit_code == 1


def test_diff(file: Path, tmp_path: Path) -> None:
    """``trace diff`` has status 0 for equal runs, else 1 with the first difference."""
    write_failover(tmp_path / "same.fktrace")
    same = run("diff", file, tmp_path / "same.fktrace")
    assert (same.exit_code, same.stdout) == (0, "the same 22 events\n")
    other = Recorder(TraceWriter(tmp_path / "other.fktrace", header(seed=43)))
    record_failover(other)
    other.event(9_999_999, "note", "x", None, None, None, None, "extra")
    other.close()
    result = run("diff", file, tmp_path / "other.fktrace")
    assert result.exit_code == 1
    assert "first difference at #22: the first trace has ended" in result.stdout
    assert json.loads(run("diff", file, tmp_path / "other.fktrace", "--json").stdout)["seq"] == 22


def test_verify(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``trace verify`` has status 0 if the run repeats, else 1 with the first difference."""

    def again(head: dict[str, Any], recorder: Recorder) -> None:
        record_failover(recorder)

    def otherwise(head: dict[str, Any], recorder: Recorder) -> None:
        recorder.event(0, "note", "x", None, None, None, None, "extra")

    monkeypatch.setattr(trace_comparison, "_runner", lambda: again)
    held = run("verify", file)
    assert held.exit_code == 0
    assert held.stdout.startswith("verified: 22 events, fingerprint ")
    monkeypatch.setattr(trace_comparison, "_runner", lambda: otherwise)
    failed = run("verify", file)
    assert failed.exit_code == 1
    assert "first difference at #0: kind: 'spawn' / 'note'" in failed.stdout


def test_verify_refuses_live_runs(tmp_path: Path) -> None:
    """``trace verify`` refuses a live run with its reason and status 2."""
    write_failover(tmp_path / "live.fktrace", mode="live")
    result = run("verify", tmp_path / "live.fktrace")
    assert result.exit_code == 2
    assert "only simulations (mode 'sim') can be run again" in result.stderr


def test_slice(file: Path, tmp_path: Path) -> None:
    """``trace slice`` writes a smaller trace that every command reads."""
    out = tmp_path / "small.fktrace"
    result = run("slice", file, "--actor", "broker-2", "--time", "7s:8s", "-o", out)
    assert result.exit_code == 0
    assert [line.split()[0] for line in run("show", out).stdout.splitlines()] == [
        "#11", "#12", "#15", "#16", "#17", "#18",
    ]  # fmt: skip
    assert run("slice", file, "-o", out).exit_code == 2
    assert "no actor 'broker-9'" in run("slice", file, "--actor", "broker-9", "-o", out).stderr
    assert "is the trace itself" in run("slice", file, "--actor", "broker-2", "-o", file).stderr


def test_export(file: Path, tmp_path: Path) -> None:
    """``trace export`` writes the golden text; an unknown form is refused with the known ones."""
    golden = (ROOT / "tests" / "tracing" / "golden" / "failover.txt").read_text(encoding="utf-8")
    assert run("export", file, "--to", "text").stdout == golden
    run("export", file, "-o", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == golden
    wrong = run("export", file, "--to", "xml")
    assert wrong.exit_code == 2
    assert "cannot export to 'xml'; forms are text, jsonl, " in wrong.stderr


@pytest.mark.parametrize("link", [False, True])
def test_a_trace_is_not_exported_over_itself(file: Path, tmp_path: Path, link: bool) -> None:
    """``trace export`` refuses to overwrite the trace, even through a symbolic link."""
    whole, out = file.read_bytes(), file
    if link:
        out = tmp_path / "link.txt"
        out.symlink_to(file)
    result = run("export", file, "-o", out)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{out} is the trace itself; give -o another name" in result.stderr
    assert file.read_bytes() == whole


def test_a_damaged_trace_is_neither_verified_nor_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``trace verify`` and ``trace diff`` refuse a damaged chunk with status 2 and its place,
    although index and fingerprint are whole.
    """

    def again(head: dict[str, Any], recorder: Recorder) -> None:
        record_fetches(recorder, 3000)

    monkeypatch.setattr(trace_comparison, "_runner", lambda: again)
    for name in ("whole", "damaged"):
        recorder = Recorder(TraceWriter(tmp_path / name, header()))
        again({}, recorder)
        recorder.close()
    file = tmp_path / "damaged"
    assert run("verify", file).exit_code == 0
    with TraceReader(file) as trace:
        chunk = trace.chunks[1]
    whole = file.read_bytes()
    for begin in (chunk.offset, chunk.offset + 50):
        damaged = whole[:begin] + bytes(100) + whole[begin + 100 :]
        file.write_bytes(damaged)
        words = f"{file}: wrong checksum of the frame at byte {chunk.offset}"
        for verb in (["verify", file], ["diff", tmp_path / "whole", file]):
            result = run(*verb)
            assert (result.exit_code, result.stdout) == (2, "")
            assert result.stderr == f"error: {words}\n"
    file.write_bytes(whole[: chunk.offset + 1] + b"\x01" + whole[chunk.offset + 2 :])
    assert f"damaged frame at byte {chunk.offset}" in run("verify", file).stderr


def test_story(file: Path) -> None:
    """``trace story`` prints the failover in sentences."""
    result = run("story", file)
    assert "1000.000 ms  broker-1 is killed" in result.stdout
    assert "unavailable for 6000.8 ms, because broker-1 was killed" in result.stdout


@pytest.mark.parametrize("verb", ["info", "show", "verify", "story"])
def test_wrong_file_is_wrong_usage(verb: str, tmp_path: Path) -> None:
    """A file that is no trace gives status 2 and one line."""
    (tmp_path / "x").write_text("hello world, this is text")
    result = run(verb, tmp_path / "x")
    assert result.exit_code == 2
    assert "not a trace file" in result.stderr
    assert run(verb, tmp_path / "none").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "zz"), "write seqs or times"),
        (("show", "8:7"), "range '8:7': the end is before the beginning"),
        (("show", "7s:1s"), "range '7s:1s': the end is before the beginning"),
        (("slice", "--time", "7s:1s", "-o", "x"), "--time 7s:1s: the end must be after the begin"),
        (("slice", "--time", "7s:7s", "-o", "x"), "--time 7s:7s: the end must be after the begin"),
        (("why", "abc"), "write its number"),
        (("why", "99"), "the trace holds 22 events"),
        (("grep", "tpye==1"), "did you mean 'type'?"),
        (("grep", "seq==1", "--within", "5s"), "--within belongs to --then"),
        (("grep", "seq==1", "--then", "seq==2", "--within", "soon"), "is not a duration"),
    ],
)
def test_wrong_questions(file: Path, arguments: tuple[str, ...], message: str) -> None:
    """The error for a wrong argument shows the correct form."""
    result = run(arguments[0], file, *arguments[1:])
    assert result.exit_code == 2
    assert message in result.stderr


def test_unfinished_file_is_shown_with_a_warning(tmp_path: Path) -> None:
    """``trace show`` prints the readable part of an unfinished file, with a warning."""
    writer = TraceWriter(tmp_path / "cut.fktrace", header())
    recorder = LockedRecorder(writer)
    for number in range(1500):
        recorder.event(number, "note", "x", None, None, None, None, "n")
    writer.abandon()
    result = run("show", tmp_path / "cut.fktrace")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 1000
    assert "the run was cut off" in result.stderr
    assert "none: the run did not end in order" in run("info", tmp_path / "cut.fktrace").stdout
