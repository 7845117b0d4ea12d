"""``fakekafka debug`` as a dialogue of lines, and scenarios by name."""

from __future__ import annotations

import io
import json
import signal
from pathlib import Path

import pytest
from fakekafka import UsageError
from fakekafka.cli.debug.command import is_trace, opened
from fakekafka.cli.debug.lines import LineMode
from fakekafka.cli.main import main
from fakekafka.debugger.debugger import Debugger
from fakekafka.scenarios.file import load_scenario, parse_scenario
from fakekafka.scenarios.library import scenario_file, scenario_names
from fakekafka.tests.support.paths import ROOT
from fakekafka.tests.support.traces import write_failover
from fakekafka.tracing.debugger.breakpoints import Breakpoint
from fakekafka.tracing.events import Event


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    write_failover(tmp_path / "run.fktrace")
    return tmp_path / "run.fktrace"


def output_of(debugger: Debugger, *commands: str) -> list[str]:
    """Return the lines that the dialogue prints for some commands."""
    lines: list[str] = []
    mode = LineMode(debugger, lines.append)
    for command in commands:
        mode.obey(command)
    return lines


def test_a_dialogue_about_a_trace(trace: Path) -> None:
    """Every move prints the event and its changes; commands may be abbreviated."""
    with Debugger.of_trace(trace) as debugger:
        told = output_of(
            debugger, "step 2", "rs", "goto #12", "why", "print", "goto 7s", "next zk-1"
        )
        assert told[0].startswith("#2 ")
        assert told[1] == "    broker-1/orders-0/role: None -> leader" or "orders-0" in told[1]
        assert any(line.startswith("#1 ") for line in told)
        assert any(line.startswith("because #10 ") for line in told)
        crash = output_of(debugger, "goto 0", "c crash", "state broker-2", "actors")
        assert crash[1].startswith("#0 ") or "stopped: crash" in crash
        assert "broker-1" in crash[-1]


def test_short_commands_mean_what_gdb_means(trace: Path) -> None:
    """Short commands are those of gdb; ``bt`` prints causes, and ``rs`` and ``rc`` go back."""
    with Debugger.of_trace(trace) as debugger:
        assert output_of(debugger, "b crash") == ["  1  crash  (0 hits)"]
        assert output_of(debugger, "c")[0] == "stopped: crash"
        assert output_of(debugger, "bt") == output_of(debugger, "why")
        here = debugger.position
        output_of(debugger, "p")
        assert debugger.position == here
        output_of(debugger, "rs")
        assert debugger.position == here - 1
        told = output_of(debugger, "b 5")
        assert told == ["error: breakpoint '5': write `at 5` for an event's number or a time"]
        assert (
            output_of(debugger, "info b")
            == output_of(debugger, "i breakpoints")
            == ["  1  crash  (1 hits)"]
        )
        assert output_of(debugger, "info broker-1") == output_of(debugger, "state broker-1")
        assert output_of(debugger, "p broker-1/*") == output_of(debugger, "state broker-1/*")
        assert output_of(debugger, "r")[1].startswith(f"#{here} ")


def test_a_breakpoint_is_set_on_the_way(trace: Path) -> None:
    """``c`` and ``rc`` with an argument set a breakpoint and run to it, forward or back."""
    with Debugger.of_trace(trace) as debugger:
        assert output_of(debugger, "c restart")[0] == "stopped: restart"
        assert output_of(debugger, "rc crash")[0] == "stopped: crash"
        assert [point.text for point in debugger.breakpoints] == ["restart", "crash"]


def test_a_cut_file_is_opened_with_a_warning(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace.write_bytes(trace.read_bytes()[:-60])
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    with pytest.raises(SystemExit) as ended:
        main(["debug", str(trace)])
    assert not ended.value.code
    warning = capsys.readouterr().err
    assert warning.startswith("warning: ")
    assert warning.endswith("showing what is whole\n")


@pytest.mark.parametrize("kind", ["scenario", "trace"])
def test_ctrl_c_stops_a_run_and_not_the_dialogue(trace: Path, kind: str) -> None:
    """Ctrl-C stops a run at its current event, from which the next run continues."""
    pressed: list[int] = []

    def press(event: Event, state: object) -> None:
        if not pressed:
            pressed.append(event.seq)
            signal.raise_signal(signal.SIGINT)

    debugger = Debugger.of_trace(trace) if kind == "trace" else opened("failover", 1, None, [])
    with debugger:
        debugger.breakpoints.append(Breakpoint("press", press))
        handler = signal.getsignal(signal.SIGINT)
        told = output_of(debugger, "continue")
        assert told[0] == "stopped: Ctrl-C"
        assert pressed[0] <= debugger.position < pressed[0] + 1000
        assert told[1].startswith(f"#{debugger.position} ")
        assert signal.getsignal(signal.SIGINT) is handler
        debugger.breakpoints.clear()
        assert output_of(debugger, "continue")[0] == "stopped: the run has ended"


def test_a_wrong_command_prints_an_error_and_changes_nothing(trace: Path) -> None:
    """The error for a wrong command suggests a correct one, and the position stays."""
    with Debugger.of_trace(trace) as debugger:
        told = output_of(
            debugger, "stpe", "step x", "delete 3", "break crsh", "do kil", "goto 99", "save"
        )
        assert told[0] == "error: there is no command 'stpe'; did you mean 'step'?"
        assert told[1] == "error: 'x' is no number of events"
        assert told[2].startswith("error: write the number of a breakpoint")
        assert "did you mean 'crash'" in told[3]
        assert told[4].startswith("error: ")
        assert told[5].startswith("error: there is no event #99")
        assert debugger.position == 0


def test_the_command_reads_lines_and_ends(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal ``fakekafka debug`` reads commands from standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO("step\nbreak crash\nc\nquit\nstep\n"))
    with pytest.raises(SystemExit) as ended:
        main(["debug", str(trace), "--break", "invariant"])
    assert not ended.value.code
    told = capsys.readouterr().out
    assert "stopped: crash" in told
    assert told.splitlines()[-1].startswith("#")


def test_a_scenario_is_changed_and_saved(tmp_path: Path) -> None:
    """``do`` injects a fault, and ``save`` writes a file for ``fakekafka run``."""
    text = (ROOT / "examples/scenarios/failover.toml").read_text(encoding="utf-8")
    with Debugger.of_scenario(parse_scenario(text, "failover"), 1) as debugger:
        out = tmp_path / "fork.toml"
        told = output_of(debugger, "goto 4s", "do kill broker=2", f"save {out}")
        assert "kill broker=2" in told[-2]
        assert told[-1] == f"written; again: fakekafka run {out}"
    spec = load_scenario(out)
    assert spec.faults[-1].arguments == {"expire_session": False}
    assert spec.seed == 1
    assert [topic.config for topic in spec.cluster.topics] == [
        topic.config for topic in load_scenario("failover").cluster.topics
    ]


def test_scenarios_are_known_by_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Scenarios are found by name from any folder; an unknown name gets a suggestion."""
    monkeypatch.chdir(tmp_path)
    assert "kip_101_loss" in scenario_names()
    assert load_scenario("kip_101_loss").story is not None
    assert scenario_file("mine.toml") == Path("mine.toml")
    with pytest.raises(UsageError, match="did you mean 'kip_101_loss'"):
        load_scenario("kip_101_los")
    with pytest.raises(SystemExit):
        main(["scenarios"])
    told = capsys.readouterr().out
    assert all(f"{name} " in told for name in scenario_names())
    with pytest.raises(SystemExit):
        main(["scenarios", "--json"])
    assert {s["kind"] for s in json.loads(capsys.readouterr().out)} == {"scenario", "story"}
    with pytest.raises(SystemExit):
        main(["scenarios", "failover"])
    assert capsys.readouterr().out.startswith("name = ")


def test_a_trace_is_recognized_by_its_name_or_first_bytes(trace: Path, tmp_path: Path) -> None:
    """A trace is recognized by its name or first bytes, and takes no seed."""
    (tmp_path / "copy").write_bytes(trace.read_bytes())
    assert is_trace(str(tmp_path / "copy"))
    assert not is_trace("kip_101_loss")
    with pytest.raises(UsageError, match="a trace has its seed"):
        opened(str(trace), 4, None, [])
    with opened("min_isr", None, None, []) as debugger:
        assert debugger.header["kafka_version"] == "3.9"
