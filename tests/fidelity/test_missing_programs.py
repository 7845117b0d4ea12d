"""``make oracle`` names the missing programs that brokers of Kafka need."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from fakekafka.tests.fidelity import __main__ as oracle
from fakekafka.tests.fidelity.sides import releases

VERBS = {"load-jars": (), "record": ("znodes_of_a_cluster",), "record-wire": ()}


@pytest.fixture(autouse=True)
def _without_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv(releases.HOME_VARIABLE, str(tmp_path / "home"))


def _run(monkeypatch: pytest.MonkeyPatch, verb: str) -> int:
    words = ["oracle", verb, "--version", "3.9", *VERBS[verb]]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return oracle.main()


@pytest.mark.parametrize("verb", ["record", "record-wire"])
def test_without_java_nothing_is_recorded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    """The program says which Java it needs, and fails."""
    assert _run(monkeypatch, verb) == 2
    told = capsys.readouterr().err
    assert told == "java is not on the PATH: this needs Java 17, to run Kafka's brokers\n"


def test_without_maven_no_jars_are_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program names Maven, and leaves no folder behind that looks loaded."""
    assert _run(monkeypatch, "load-jars") == 2
    told = capsys.readouterr().err
    assert told == "mvn is not on the PATH: this needs Maven, to load Kafka's brokers\n"
    assert releases.missing("3.9") == "java is not on the PATH"


def test_jars_that_are_there_need_no_maven() -> None:
    """A folder with the broker's jar is taken as it is."""
    folder = releases.home() / "kafka-3.9.1"
    folder.mkdir(parents=True)
    (folder / "kafka_2.13-3.9.1.jar").touch()
    assert releases.jars("3.9") == folder


def test_no_release_stands_for_another_version() -> None:
    with pytest.raises(releases.CannotJudge, match=r"no release stands for '2\.0'"):
        releases.jars("2.0")
