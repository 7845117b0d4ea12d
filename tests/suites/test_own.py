"""Tests that a client keeps in its repository: where they come from, and what stands in there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from fakekafka import Cluster
from fakekafka.tests.suites import __main__ as runner
from fakekafka.tests.suites import checkouts, outputs, own
from fakekafka.tests.suites.clients import RUNS
from fakekafka.tests.suites.machine import SuiteError
from fakekafka.tests.suites.suite import Outcome, Result, Suite, Verdict

SUITE = Suite("some_own", "Some", "1.2", 1, repository="people/some")
OF_REPOSITORIES = [name for name in RUNS if Suite.load(name).repository]


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Caches and clones are below it."""
    monkeypatch.setenv("FAKEKAFKA_SUITES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(checkouts.VARIABLE, str(tmp_path))
    return tmp_path


def clone(folder: Path) -> None:
    """Make a repository with the tag ``v1.2``, and a later commit without one."""
    repository = folder / "some"
    (repository / "tests").mkdir(parents=True)
    git = ["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=e@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    for text in ("released", "later"):
        (repository / "tests" / "test_some.py").write_text(text)
        (repository / "setup.py").write_text(text)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", text], check=True)
        if text == "released":
            subprocess.run([*git, "tag", "v1.2"], check=True)


def test_a_release_is_taken_out_of_a_clone_by_its_tag(folders: Path) -> None:
    """Only the paths that were asked for."""
    clone(folders)
    source = checkouts.source(SUITE, "tests")
    assert (source / "tests" / "test_some.py").read_text() == "released"
    assert not (source / "setup.py").exists()
    assert source.is_relative_to(folders / "cache")


def test_without_a_clone_the_error_says_what_is_needed(folders: Path) -> None:
    with pytest.raises(SuiteError, match=r"FAKEKAFKA_CHECKOUTS .*github.com/people/some .* v1\.2"):
        checkouts.source(SUITE)


def test_a_clone_without_the_tag_is_refused(folders: Path) -> None:
    clone(folders)
    with pytest.raises(SuiteError, match="has no v9"):
        checkouts.source(Suite("some_own", "Some", "9", 1, repository="people/some"))


def test_suites_run_by_default_only_where_their_clones_exist(folders: Path) -> None:
    """Those who name one without its clone are told what it needs."""
    assert OF_REPOSITORIES
    assert set(runner.runnable()) == set(RUNS) - set(OF_REPOSITORIES)
    for name in OF_REPOSITORIES:
        (folders / Suite.load(name).repository.partition("/")[2]).mkdir(exist_ok=True)
    assert set(runner.runnable()) == set(RUNS)


def test_an_unsteady_test_may_pass_or_fail() -> None:
    suite = Suite("some", "Some", "1", 1, unsteady={"slow*": "wants a slow machine"})
    for result in (Result.PASSED, Result.FAILED):
        assert Verdict.of(suite, {"slow one": Outcome(result)}).is_good
    assert Verdict.of(suite, {"one": Outcome(Result.PASSED)}).stale == ("slow*",)


def test_a_test_that_failed_once_needs_a_reason_in_its_file() -> None:
    """pytest's report keeps the last run alone; its output names the tests that it ran again."""
    written = "..R.\nRERUN test/some/test_a.py::test_b[2]\nRERUN test/some/test_a.py::C::d\n"
    passed = Outcome(Result.PASSED)
    found = dict.fromkeys(("test_a::test_b[2]", "test_a.C::d", "test_a::e"), passed)
    told = outputs.with_reruns(found, written)
    assert [outcome.is_repeated for outcome in told.values()] == [True, True, False]
    suite = Suite("some", "Some", "1", 1, repeated={"test_a::test_b*": "the client's own race"})
    verdict = Verdict.of(suite, told)
    assert list(verdict.failures) == ["test_a.C::d"]
    assert verdict.repeated == ("test_a::test_b[2]",)
    assert "  passed when it was run again: test_a::test_b[2]" in verdict.lines()


def test_results_of_jest_list_every_test_of_every_file(tmp_path: Path) -> None:
    """A file that could not be read is a test that failed."""
    report = tmp_path / "report.json"
    assert outputs.jest(report, tmp_path) == {}
    tests = [
        {"fullName": "Some works", "status": "passed", "failureMessages": []},
        {"fullName": "Some fails", "status": "failed", "failureMessages": ["it\n did"]},
        {"fullName": "Some works", "status": "passed", "failureMessages": []},
        {"fullName": "Some waits", "status": "pending", "failureMessages": None},
    ]
    files = [
        {"name": f"{tmp_path}/src/a.spec.js", "status": "failed", "assertionResults": tests},
        {
            "name": f"{tmp_path}/src/b.spec.js",
            "status": "failed",
            "assertionResults": [],
            "message": "no such module",
        },
    ]
    report.write_text(json.dumps({"testResults": files}))
    assert outputs.jest(report, tmp_path) == {
        "src/a.spec.js::Some works": Outcome(Result.PASSED),
        "src/a.spec.js::Some works again": Outcome(Result.PASSED),
        "src/a.spec.js::Some fails": Outcome(Result.FAILED, "it did"),
        "src/a.spec.js::Some waits": Outcome(Result.SKIPPED),
        "src/b.spec.js": Outcome(Result.FAILED, "no such module"),
    }


TOOL_CALLS = (
    "/opt/kafka_2.13-2.8.1/bin/kafka-acls.sh --force --authorizer-properties zookeeper.connect=l:1 "
    "--add --topic orders --deny-principal User:ada --operation WRITE",
    "kafka-topics --zookeeper zookeeper:2181 --alter --topic orders --partitions 3",
    "kafka-configs --zookeeper z:1 --alter --add-config 'SCRAM-SHA-256=[iterations=8192,"
    "password=a=1],SCRAM-SHA-512=[password=b]' --entity-type users --entity-name ada",
    "kafka-acls.sh --remove --topic orders --deny-principal User:ada --operation WRITE",
)


@pytest.mark.slow
def test_tools_of_a_container_work_on_the_cluster() -> None:
    """As the tests of aiokafka and KafkaJS call them."""
    config = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
    config["super.users"] = "User:ANONYMOUS"
    with Cluster(1, topics={"orders": 1}, config=config) as cluster:
        login: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap_servers}
        environment = {**os.environ, "FAKEKAFKA_CONTAINER": json.dumps(login)}
        seen = []
        for call in TOOL_CALLS:
            command = [sys.executable, str(own.TOOLS), call]
            subprocess.run(command, check=True, env=environment)
            seen.append(len(cluster.security.acls()))
        assert seen == [1, 1, 1, 0]
        assert cluster.partition("orders", 2).leader == 1
        admin = AdminClient(login)
        asked: Any = admin.describe_user_scram_credentials(["ada"])
        found = asked["ada"].result(10)
        assert sorted(info.iterations for info in found.scram_credential_infos) == [4096, 8192]
