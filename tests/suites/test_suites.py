"""The verdict on a client's suite: what has to pass, what may fail, and what a runner must tell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fakekafka import Cluster
from fakekafka.control.server import ControlServer
from fakekafka.tests.suites import __main__ as runner
from fakekafka.tests.suites import clients, kills, machine, outputs
from fakekafka.tests.suites.clients import RUNS
from fakekafka.tests.suites.machine import Served
from fakekafka.tests.suites.suite import FOLDER, Outcome, Result, Suite, Verdict

PASSED = Outcome(Result.PASSED)
FAILED = Outcome(Result.FAILED, "it did")
SUITE = Suite("some", "Some", "1", 1, excluded={"known": "the client's", "tls*": "no TLS"})


def test_a_suite_is_good_where_all_pass_that_must_and_all_others_fail() -> None:
    verdict = Verdict.of(SUITE, {"one": PASSED, "known": FAILED, "tls one": FAILED})
    assert verdict.is_good
    assert verdict.lines() == ["some             1 passed    0 failed    2 excluded    0 skipped"]


def test_an_unexpected_failure_is_reported_with_its_reason() -> None:
    verdict = Verdict.of(SUITE, {"one": FAILED, "known": FAILED, "tls": FAILED})
    assert not verdict.is_good
    assert verdict.lines()[1:] == ["  failed: one: it did"]


def test_an_exclusion_whose_test_passes_or_is_missing_is_stale() -> None:
    verdict = Verdict.of(SUITE, {"one": PASSED, "known": PASSED})
    assert not verdict.is_good
    assert verdict.stale == ("known", "tls*")


def test_a_suite_that_ran_no_test_has_failed() -> None:
    assert Verdict.of(Suite("some", "Some", "1", 1), {}).failures == {"the suite": "it ran no test"}


def test_a_program_that_does_not_reach_its_end_has_failed() -> None:
    assert outputs.steps("ok one\nnoise\nfailed two: why: so\nend\n") == {
        "one": PASSED,
        "two": Outcome(Result.FAILED, "why: so"),
    }
    assert outputs.steps("ok one\nKilled\n")["the program's end"].result is Result.FAILED


def test_a_test_counts_as_failed_where_its_fixture_fails(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert outputs.junit(report) == {}
    case = '<testcase classname="test.integration.test_a" name='
    report.write_text(
        f'<testsuites><testsuite>{case}"one"/>{case}"one"><error message="late"/></testcase>'
        f'{case}"two"><skipped/></testcase></testsuite></testsuites>'
    )
    assert outputs.junit(report) == {
        "test_a::one": Outcome(Result.FAILED, "late"),
        "test_a::two": Outcome(Result.SKIPPED),
    }


def test_a_test_of_go_that_has_not_ended_has_failed() -> None:
    events = (
        '{"Action":"run","Test":"TestA"}\n{"Action":"run","Test":"TestB"}\nnoise\n'
        '{"Action":"run","Test":"TestA/part"}\n{"Action":"fail","Test":"TestA/part"}\n'
        '{"Action":"output","Test":"TestA","Output":"why\\n"}\n{"Action":"fail","Test":"TestA"}\n'
    )
    found = outputs.go_tests(events)
    assert found["TestA"] == Outcome(Result.FAILED, "why")
    assert found["TestB"].result is Result.FAILED
    assert list(found) == ["TestA", "TestB"]


def test_every_suite_has_a_file_with_a_reason_for_each_exclusion() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(RUNS)
    for name in RUNS:
        suite = Suite.load(name)
        assert suite.version
        assert 0 < suite.minutes <= (30 if suite.repository else 15)
        tables = (suite.excluded, suite.unsteady, suite.repeated)
        reasons = [reason for table in tables for reason in table.values()]
        assert all(len(reason.split()) > 3 for reason in reasons), name


def test_a_machine_without_a_tool_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert runner.main(["java"]) == 1
    assert "java: this machine lacks java, javac, mvn" in capsys.readouterr().out


def test_an_unknown_suite_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["cobol"]) == 2
    assert "no suite cobol" in capsys.readouterr().err


def test_a_program_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    program = "echo ok one; exec sleep 60"  # a shell has begun at once, on a busy machine, too
    written = machine.output(["sh", "-c", program], tmp_path, 0.5)
    assert written.splitlines() == ["ok one", "", "stopped after 0 s"]


def test_a_preparation_that_fails_shows_its_output(tmp_path: Path) -> None:
    program = "print('no such version'); raise SystemExit(3)"
    with pytest.raises(machine.SuiteError, match="no such version"):
        machine.prepare([sys.executable, "-c", program], tmp_path)


def test_downloads_stay_outside_of_the_repository(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FAKEKAFKA_SUITES_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert machine.cache_folder("java") == tmp_path / "fakekafka" / "suites" / "java"


def test_the_page_of_the_suites_has_their_releases_and_exclusions() -> None:
    page = (FOLDER.parents[1] / "docs" / "reference" / "client-suites.md").read_text()
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    told = {(row[0], row[2]) for row in rows if len(row) == 6}
    excluded = {tuple(row) for row in rows if len(row) == 3}
    count = 0
    for name in RUNS:
        suite = Suite.load(name)
        assert (name, suite.version) in told
        told_of = {**suite.excluded, **suite.unsteady, **suite.repeated}
        for tests, reason in told_of.items():
            assert (name, tests, reason) in excluded
        count += len(told_of)
    assert len(excluded) == count + 2


def test_a_program_of_a_secured_suite_gets_its_credentials() -> None:
    """The user of its file is the one that the cluster is served with."""
    suite = Suite.load("java_secured")
    assert suite.serve[-2:] == ("--user", "ada:ada-secret")
    assert clients.login_of(suite, Served("host:1", {}, "/ca.pem")) == {
        "ca": "/ca.pem",
        "mechanism": "SCRAM-SHA-512",
        "user": "ada",
        "password": "ada-secret",
    }
    assert clients.login_of(Suite.load("java"), Served("host:1", {})) == {}


COPYING = """
import sys
from confluent_kafka import Consumer, Producer
servers, times = {"bootstrap.servers": sys.argv[2], "log_level": 0}, int(sys.argv[1])
consumer = Consumer({**servers, "group.id": "copiers", "auto.offset.reset": "earliest"})
consumer.subscribe(["in"])
producer = Producer({**servers, "linger.ms": 0})
while True:
    for found in consumer.consume(100, 0.1):
        for _ in range(times):
            producer.produce("out", found.value(), partition=found.partition())
    producer.poll(0)
"""


@pytest.mark.slow
@pytest.mark.clients
@pytest.mark.parametrize("times", [1, 2])
def test_a_copying_program_is_judged_by_the_records_in_the_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, times: int
) -> None:
    """A program that copies once passes, one that copies twice does not."""
    monkeypatch.setattr(kills, "KILLS", 0)
    monkeypatch.setattr(kills, "_LATE_S", 0.3)
    program = tmp_path / "copying.py"
    program.write_text(COPYING)
    command: list[str | Path] = [sys.executable, program, str(times)]
    with Cluster(1, topics={"in": 2, "out": 2}) as cluster:
        server = ControlServer(cluster)
        served = Served(cluster.bootstrap_servers, {}, control_url=server.url)
        try:
            outcomes = kills.copied(served, command, tmp_path)
        finally:
            server.close()
    results = [outcome.result for outcome in outcomes.values()]
    assert results == [Result.PASSED, Result.PASSED if times == 1 else Result.FAILED, Result.PASSED]


def test_brokers_cannot_be_killed_without_a_control_port(tmp_path: Path) -> None:
    with pytest.raises(machine.SuiteError, match="--control-port"):
        kills.copied(Served("host:1", {}), ["true"], tmp_path)
