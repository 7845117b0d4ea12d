"""``fakekafka explore PATH::TEST``: a user's test under faults drawn from its seed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakekafka.cli.main import main
from fakekafka.exploration.programs import conductor, explored_test
from fakekafka.tests.support.terminal import press_ctrl_c, run_at_terminal

SUITE = """
import asyncio
import pytest
from fakekafka import Simulation

async def count(simulation, notes, begin):
    for number in range(begin(), 10):
        await asyncio.sleep(0.2)
        simulation.note("counted", number=number)
        await asyncio.sleep(0.2)
        notes.add(number)

async def fail(error):
    await asyncio.sleep(2)
    raise error

@pytest.fixture(scope="module")
def made_once():
    yield [0]

def numbers(simulation):
    return [note.values["number"] for note in simulation.notes("counted")]

@pytest.mark.parametrize("version", ["forgetful", "careful"])
@pytest.mark.kafka(brokers=1, seeds=range(1, 500))
@pytest.mark.kafka_explore(only=["kill_program", "shift_clock"])
def test_counted(kafka_simulation, made_once, version):
    made_once[0] += 1
    done = set()
    begin = (lambda: 0) if version == "forgetful" else (lambda: len(done))
    kafka_simulation.program(count, kafka_simulation, done, begin, name="counter")
    kafka_simulation.run_for(24_000)
    found = numbers(kafka_simulation)
    assert len(found) - len(set(found)) <= 4
    assert set(found) == set(range(10))

class TestOfAClass:
    @pytest.mark.kafka(brokers=1)
    @pytest.mark.kafka_program
    @pytest.mark.kafka_explore(only=["kill_program"])
    async def test_program(self, kafka_simulation):
        done = set()
        other = kafka_simulation.program(count, kafka_simulation, done, lambda: 0, name="counter")
        await asyncio.sleep(24)
        assert len(numbers(kafka_simulation)) == 10

@pytest.mark.kafka(brokers=1)
@pytest.mark.parametrize("error", [OSError("gone"), KeyError("bug")], ids=["gone", "bug"])
@pytest.mark.kafka_explore(only=["shift_clock"])
def test_that_fails(kafka_simulation, error):
    async def main():
        if kafka_simulation.now_ms < 5000 and kafka_simulation.is_explored:
            await asyncio.sleep(2)
            if ahead():
                raise error
        await asyncio.sleep(1000)

    import time
    begun = time.time
    def ahead():
        import datetime
        now_ms = datetime.datetime.now().timestamp() * 1000 - 1767225600000
        return abs(now_ms - kafka_simulation.now_ms) > 3000

    kafka_simulation.program(main, name="failing")
    kafka_simulation.run_for(24_000)

class Client:
    def __init__(self):
        self.itself = self
    def __del__(self):
        import warnings
        warnings.warn("unclosed client", ResourceWarning)

@pytest.mark.filterwarnings("error")
@pytest.mark.kafka(brokers=1)
def test_that_leaves_a_client_open(kafka_simulation):
    left = []
    async def main():
        if not left:
            left.append(True)
            Client()
            await asyncio.sleep(2)
            raise OSError("gone")

    kafka_simulation.program(main, name="failing")
    kafka_simulation.run_for(24_000)
    import gc
    gc.collect()

@pytest.mark.kafka(brokers=3, zookeepers=3, topics={"orders": 1}, config={"log.dirs": "a,b"})
def test_whole_again(kafka_simulation):
    kafka_simulation.program(asyncio.sleep, 1)
    kafka_simulation.run_for(180_000)
    brokers = [kafka_simulation.broker(n) for n in kafka_simulation.broker_ids]
    assert [broker.state for broker in brokers] == ["running"] * 3
    assert not any(broker.clock_shift_ms for broker in brokers)
    assert all(broker.clock_rate == 1 for broker in brokers)
    disks = [process.spec.disk for process in kafka_simulation.processes.values()]
    assert not any(disk.offline_dirs for disk in disks)
    servers = [kafka_simulation.zookeeper.server(n) for n in (1, 2, 3)]
    assert all(server.is_alive for server in servers)
    assert len(kafka_simulation.partition("orders", 0).isr) == 3

async def listen():
    reader, writer = await asyncio.open_connection("broker-1", 9092)
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()

@pytest.mark.kafka(brokers=3)
def test_silent_connection(kafka_simulation):
    listener = kafka_simulation.program(listen)
    kafka_simulation.run_for(60_000)
    assert not listener.is_running

def test_wrong_from_the_start(kafka_simulation):
    kafka_simulation.program(asyncio.sleep, 1)
    kafka_simulation.run_for(1000)
    assert 1 == 2

def test_without_programs(kafka_simulation):
    pass

def test_without_simulation():
    pass

@pytest.mark.skip(reason="too hard")
def test_skipped(kafka_simulation):
    pass

@pytest.mark.kafka_explore(only=["kill_everything"])
def test_with_a_wrong_mark(kafka_simulation):
    pass

def test_busy(kafka_simulation):
    while True:
        pass

def test_endless(kafka_simulation):
    kafka_simulation.program(asyncio.sleep, 1)
    while True:
        kafka_simulation.run_for(1000)
"""
FORGETFUL = "test_explored_suite.py::test_counted[forgetful]"
QUICK = ("--engine", "serial", "--runs")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a folder with a suite, in a process that has its hash seed pinned."""
    (tmp_path / "test_explored_suite.py").write_text(SUITE, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as pytest does; monkeypatch undoes it
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setenv("FAKEKAFKA_PINNED", "0")
    yield tmp_path
    sys.modules.pop("test_explored_suite", None)


def explore(*arguments: str) -> object:
    """Return the exit status of ``fakekafka explore ARGUMENTS``."""
    with pytest.raises(SystemExit) as ended:
        main(["explore", *arguments])
    return ended.value.code


def in_a_process(*command: str, hash_seed: str) -> subprocess.CompletedProcess[str]:
    """Run Python with a command in the folder."""
    environment = {k: v for k, v in os.environ.items() if k != "FAKEKAFKA_PINNED"}
    return subprocess.run(
        [sys.executable, *command],
        env={**environment, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_mistake_is_found_shortened_and_reported(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """A find is reported with the fault it needs, the command that repeats it, and a page."""
    assert explore(FORGETFUL, *QUICK, "12", "--out", "out") == 1
    told = capsys.readouterr().out
    assert f"12 of 12 runs of {FORGETFUL} from seed 1" in told
    assert "`" not in told.partition("fails in ")[2].partition(":")[0]
    assert "assert len(found) - len(set(found)) <= 4 does not hold; " in told
    assert re.search(r"^  1 fault, shortened in \d+ runs:$", told, re.MULTILINE), told
    assert re.search(r"\d s  kill_program counter\n +\d+\.\d+ s  every fault ends\n", told)
    report = (folder / "out" / "report.md").read_text(encoding="utf-8")
    assert "test_counted_under_faults = under_faults(" in report
    assert "E       assert (" in report
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    (story,) = re.findall(r'<article class="unknown">.*?</article>', page, re.DOTALL)
    for part in ("kill_program counter</li>", "every fault ends</li>", "E       assert ("):
        assert part in story
    assert "test_counted_under_faults = under_faults(" in story
    assert "counted" in page.rpartition("What programs noted")[2]
    (trace,) = (folder / "out" / "finds").glob("*.fktrace")
    assert trace.stat().st_size > 1000
    (command,) = re.findall(r"^  fakekafka explore (replay .*)$", told, re.MULTILINE)
    assert explore(*shlex.split(command)) == 1
    assert "the test fails: assert len(found)" in capsys.readouterr().out


def test_a_correct_version_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert explore("test_explored_suite.py::test_counted[careful]", *QUICK, "12") == 0
    assert "the test passes in every run" in capsys.readouterr().out


def test_an_async_test_of_a_class_is_explored(capsys: pytest.CaptureFixture[str]) -> None:
    """Faults affect the other program of an async test and not the test itself."""
    assert explore("test_explored_suite.py::TestOfAClass::test_program", *QUICK, "12") == 1
    told = capsys.readouterr().out
    assert "kill_program counter" in told
    assert "kill_program test" not in told


def test_a_program_that_fails_with_an_os_error_is_restarted_and_other_errors_fail_the_test(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A program that fails with an OSError is restarted; any other error fails the test."""
    test = "test_explored_suite.py::test_that_fails"
    steps = "wait 100; shift_clock failing 3600000; wait 3000"
    assert explore("replay", f"{test}[gone]", "--steps", steps) == 0
    told = capsys.readouterr().out
    assert "failing has failed (OSError), and is started again" in told
    assert explore("replay", f"{test}[bug]", "--steps", steps) == 1
    assert "the test fails: KeyError at raise error; 'bug'" in capsys.readouterr().out


def test_a_client_that_a_failed_program_left_open_is_no_failure() -> None:
    """A client left open by a failed program is no failure, even if warnings are errors."""
    test = "test_explored_suite.py::test_that_leaves_a_client_open"
    words = ["explore", "replay", test, "--steps", "wait 100; shift_clock failing 5000"]
    done = in_a_process("-m", "fakekafka.cli.main", *words, hash_seed="0")
    assert done.returncode == 0, done.stdout
    assert "failing has failed (OSError)" in done.stdout


def test_a_replay_marks_steps_that_do_not_apply(capsys: pytest.CaptureFixture[str]) -> None:
    """A replay lists each step with its time, and marks steps that do not apply."""
    steps = "wait 100; kill_program nothing; kill_program counter; resume_program counter"
    assert explore("replay", FORGETFUL, "--steps", steps, "--seed", "3") == 0
    told = capsys.readouterr().out
    assert "0.100 s  kill_program nothing (not possible)\n" in told
    assert "0.100 s  kill_program counter\n" in told
    assert "0.100 s  resume_program counter (not possible)\n" in told
    assert "0.100 s  every fault ends\n" in told


def seconds_of(step: str, told: str) -> float:
    """Return the seconds from the start of the first program to a step."""
    (at_s,) = re.findall(rf"^ *(\d+\.\d+) s  {step}$", told, re.MULTILINE)
    return float(at_s)


def test_nothing_else_happens_until_a_broker_without_power_is_out_of_each_isr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Steps wait until a broker without power has left every ISR. Kafka promises nothing if the
    second replica fails before the controller has noticed the first. The faults end no sooner
    either, as that would start the broker.
    """
    test = "test_explored_suite.py::test_whole_again"
    assert explore("replay", test, "--steps", "wait 500; power_off 1 yes; expire 2") == 0
    told = capsys.readouterr().out
    assert seconds_of("power_off 1 yes", told) < 1
    assert seconds_of("expire 2", told) > 6
    assert explore("replay", test, "--steps", "wait 500; power_off 1") == 0
    assert seconds_of("every fault ends", capsys.readouterr().out) > 6


def test_disks_clocks_and_zookeeper_are_whole_when_faults_have_ended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """When faults end, disks, clocks and servers are repaired, if necessary by a restart."""
    faults = "fail_log_dir 1 0; shift_broker_clock 2 3600000; kill_zookeeper 2; kill 3"
    assert explore("replay", f"{FILE}::test_whole_again", "--steps", f"wait 100; {faults}") == 0
    assert "not possible" not in capsys.readouterr().out


@pytest.mark.parametrize(("fault", "passes"), [("power_off 1", True), ("freeze 1", False)])
def test_no_client_waits_for_a_machine_without_power_when_faults_have_ended(
    fault: str, passes: bool
) -> None:
    """When faults end, clients of a machine without power get a reset. Otherwise they would wait
    for the timeout of their request, five minutes for a JoinGroup. A frozen broker has lost no
    connection.
    """
    steps = f"wait 500; {fault}; wait 5000"
    status = explore("replay", f"{FILE}::test_silent_connection", "--steps", steps)
    assert status == (0 if passes else 1)


def test_a_partition_is_moved_before_anything_else_happens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A move completes before the next step, and a clock with a wrong rate is corrected."""
    move = "move_partition orders-0 3,1,2"
    faults = f"set_clock_rate 2 0.7; {move}; set_clock_rate 2 1; {move}; elect_preferred; kill 1"
    assert explore("replay", f"{FILE}::test_whole_again", "--steps", f"wait 500; {faults}") == 0
    told = capsys.readouterr().out
    assert told.count("(not possible)") == 1
    assert f"{move} (not possible)\n" in told
    faults = "set_clock_rate 3 1.5; move_partition orders-0 3,1,2; kill 3"
    assert explore("replay", f"{FILE}::test_whole_again", "--steps", f"wait 500; {faults}") == 0


FILE = "test_explored_suite.py"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tests/test_none.py::test_x"], "there is no file tests/test_none.py"),
        ([f"{FILE}::test_x"], f"{FILE} has no test test_x; it has test_counted[forgetful], "),
        ([f"{FILE}::test_counted"], f"is 2 tests; name one:\n  {FILE}::test_counted[forgetful]"),
        ([f"{FILE}::test_without_simulation"], "does not use the fixture kafka_simulation"),
        ([f"{FILE}::test_without_programs"], "starts no program"),
        ([f"{FILE}::test_wrong_from_the_start"], "fails without faults, under seed 1: assert 1 =="),
        ([f"{FILE}::test_skipped"], "is skipped: too hard"),
        (
            [f"{FILE}::test_with_a_wrong_mark"],
            "'kill_everything', which is not a fault; there",
        ),
        ([FORGETFUL, "--runs", "0"], "--runs must be at least 1"),
        ([FORGETFUL, "--engine", "flink"], "tests run on auto, process, serial, spark, not on"),
        ([FORGETFUL, "--resume"], "name it with --out"),
        ([FORGETFUL, "--budget", "soon"], "--budget takes 90s"),
        (
            [FORGETFUL, "--target", "cluster", "--invariants", "TypeOk"],
            "--target and --invariants shape the clusters that explore draws",
        ),
        (["replay", FORGETFUL, "--steps", "explode 2"], "no step is called 'explode'"),
    ],
)
def test_a_test_that_cannot_be_explored_is_refused(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be explored is refused with status 2 before any run."""
    assert explore(*arguments) == 2
    assert told in capsys.readouterr().err


def test_a_file_that_cannot_be_imported_is_refused(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """A file that cannot be imported is refused with pytest's own message."""
    (folder / "test_broken_suite.py").write_text("import no_such_module\n", encoding="utf-8")
    assert explore("test_broken_suite.py::test_x") == 2
    assert "No module named 'no_such_module'" in capsys.readouterr().err


def test_a_test_that_never_ends_is_ended(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that exceeds the limit of virtual or real time is ended."""
    monkeypatch.setattr(conductor, "LASTS_AT_MOST_MS", 36_000)
    assert explore(f"{FILE}::test_endless") == 2
    assert "the test has not ended within 0.01 virtual hours" in capsys.readouterr().err
    monkeypatch.setattr(explored_test, "REAL_LIMIT_S", 0.2)
    assert explore(f"{FILE}::test_busy") == 2
    assert "the test has not ended within 0.2 real s" in capsys.readouterr().err


def test_a_resumed_exploration_has_the_results_of_an_uninterrupted_one(folder: Path) -> None:
    """A resumed exploration has the same results as one in one go."""
    explore(FORGETFUL, *QUICK, "4", "--out", "parts", "--no-shrink")
    assert explore(FORGETFUL, *QUICK, "8", "--out", "parts", "--no-shrink", "--resume") == 1
    assert explore(FORGETFUL, *QUICK, "8", "--out", "whole", "--no-shrink") == 1
    parts, whole = ((folder / name / "runs.jsonl").read_text() for name in ("parts", "whole"))
    assert parts == whole


def test_a_find_pasted_as_a_test_fails(folder: Path) -> None:
    """The test written for a find, pasted into the suite, fails with the find's error."""
    assert explore(FORGETFUL, *QUICK, "12", "--out", "out") == 1
    (found,) = (folder / "out" / "finds").glob("*.py")
    pasted = found.read_text(encoding="utf-8")
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(f"\n\n{pasted}")
    done = in_a_process("-m", "pytest", FILE, "-k", "test_counted_under_faults", hash_seed="0")
    assert "1 failed" in done.stdout, done.stdout
    assert "assert len(found) - len(set(found)) <= 4" in done.stdout
    assert (folder / ".fakekafka-traces").exists()


@pytest.mark.slow
def test_a_command_repeats_a_find_under_another_hash_seed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command of a find repeats it in another process with another hash seed."""
    assert explore(FORGETFUL, *QUICK, "12") == 1
    told = capsys.readouterr().out
    (text,) = re.findall(r"^fails in \d+ runs?: (.*)$", told, re.MULTILINE)
    (command,) = re.findall(r"^  fakekafka (explore replay .*)$", told, re.MULTILINE)
    words = ["-m", "fakekafka.cli.main", *shlex.split(command)]
    done = in_a_process(*words, hash_seed="77")
    assert done.returncode == 1, done.stderr
    assert f"the test fails: {text}" in done.stdout


@pytest.mark.slow
def test_engines_find_the_same(folder: Path) -> None:
    """All engines write the same lines, in whatever order their runs end."""
    for engine in ("serial", "process", "spark"):
        words = ["explore", FORGETFUL, "--runs", "50", "--engine", engine, "--jobs", "2"]
        main_words = ["-m", "fakekafka.cli.main", *words, "--no-shrink", "--out", engine]
        assert in_a_process(*main_words, hash_seed="5").returncode == 1
    serial, *others = (
        (folder / name / "runs.jsonl").read_text() for name in ("serial", "process", "spark")
    )
    assert others == [serial, serial]
    assert "kill_program counter" in serial


@pytest.mark.slow
def test_ctrl_c_ends_an_exploration_with_the_finds_so_far(folder: Path) -> None:
    """Ctrl-C ends an exploration with status 130, and the finds so far are printed and written."""
    words = ["explore", FORGETFUL, "--runs", "5000", "--engine", "process", "--out", "out"]
    program = [sys.executable, "-m", "fakekafka.cli.main", *words]
    status, told = run_at_terminal(program, b"1 way to fail found", press_ctrl_c)
    assert status == 130, told
    assert re.search(r"ended after \d+ of 5000 runs", told), told
    assert "fails in " in told
    assert "Traceback" not in told
    assert "test_counted_under_faults" in (folder / "out" / "report.md").read_text()
