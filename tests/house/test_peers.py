"""``make bench-peers`` measures available peers and reports the others."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka.tests.fidelity.sides import releases
from fakekafka.tests.support.paths import ROOT


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.peers")


def test_ratios_are_of_the_rounds_that_both_have(
    peers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {
        "fakekafka": {
            0: {peers.SINGLE_RECORD: 200.0},
            1: {peers.SINGLE_RECORD: 300.0},
            2: {peers.SINGLE_RECORD: 900.0},
        },
        "mock": {0: {peers.SINGLE_RECORD: 100.0}, 1: {peers.SINGLE_RECORD: 100.0}},
        "kfake": {},
    }
    peers.report(found)
    told = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    begin = told.index(peers.SINGLE_RECORD)
    assert re.fullmatch(r"fakekafka \(.+\) 300\.0 \(200\.0-900\.0\)", told[begin + 1])
    assert told[begin + 2 : begin + 4] == [
        "librdkafka's mock cluster 100.0 (100.0-100.0) ours / theirs 2.50 (2.00-3.00)",
        "kfake of franz-go no figure",
    ]


def test_a_peer_with_a_missing_requirement_is_reported_in_one_line(
    peers: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other peers are measured nevertheless."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(peers, "measure_once", lambda name: {peers.START: 1.0})
    assert peers.main(["kfake", "kafka", "mock", "--rounds", "2"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[2:4] == [
        "kfake of franz-go: not available here: this machine lacks go",
        "Apache Kafka 3.9.1: not available here: java is not on the PATH: this needs Java 17, to "
        "run Kafka's brokers",
    ]
    assert sum("librdkafka's mock cluster" in line for line in told) == len(peers.FIGURES)
    assert not any("kfake" in line for line in told[4:])


def test_a_failed_round_is_reported_and_the_next_one_runs(
    peers: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each round begins with another peer."""
    order: list[str] = []

    def measure_once(name: str) -> dict[str, float]:
        order.append(name)
        if order == ["fakekafka", "mock"]:
            raise peers.MeasurementFailed("no answer", "one\ntwo")
        return {peers.START: 1.0}

    monkeypatch.setattr(peers, "measure_once", measure_once)
    assert peers.main(["mock", "--rounds", "2"]) == 1
    assert order == ["fakekafka", "mock", "mock", "fakekafka"]
    assert "librdkafka's mock cluster, round 1: no answer: two" in capsys.readouterr().out


def test_records_that_a_peer_did_not_keep_are_counted(
    peers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Client:
        def __init__(self, _servers: str) -> None:
            pass

        def __enter__(self) -> Client:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def time_records(self, _topic: str, _count: int) -> dict[str, float]:
            return {"median_us": 250.0}

        def produce(self, _topic: str, _partitions: int, _size: int, _count: int) -> Any:
            return {"records": 997, "seconds": 0.5}

        def fetch(self, topic: str, _partitions: int) -> Any:
            kept = peers.TIMED if topic == "one" else 500
            return {"records": kept, "timed_records": 400, "seconds": 0.1}

    @contextlib.contextmanager
    def cluster() -> Iterator[tuple[str, list[int]]]:
        yield "127.0.0.1:1", [os.getpid()]

    monkeypatch.setattr(peers, "LoadClient", Client)
    monkeypatch.setattr(peers, "_wait_metadata", lambda servers: None)
    monkeypatch.setattr(peers, "PEERS", {"mock": (cluster, "a mock")})
    monkeypatch.setattr(peers, "LOADS", ((100, 997), (1000, 997)))
    monkeypatch.setattr(peers, "TIMED", 1000)
    found = peers.measure_once("mock")
    assert set(found) == set(peers.FIGURES)
    assert found[peers.KEPT_RECORDS] == pytest.approx(100 * 2000 / 3000)
    assert found["produce 100 B, k/s"] == pytest.approx(1.994)
    assert found["consume 1000 B, k/s"] == pytest.approx(4.0)
    assert 1 < found[peers.MEMORY] < 10_000


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["redpanda"], "unknown: redpanda; there are fakekafka, mock, kfake, kafka"),
        (["--rounds", "0"], "--rounds 0: give at least 1"),
    ],
)
def test_an_impossible_measurement_is_refused(
    peers: Any, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert peers.main(arguments) == 2
    assert told in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["mock", "kfake", "kafka"])
def test_peers_run_at_a_small_size(peers: Any, name: str) -> None:
    """They keep the few records that they get."""
    if name == "kfake" and not (peers.cache_folder("kfake") / "kfake_server").exists():
        pytest.skip("kfake is not compiled: make peers does it")
    if name == "kafka" and (reason := releases.missing("3.9")):
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", name],
        cwd=ROOT,
        env={**os.environ, "BENCH_SIZE": "small"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = [" ".join(line.split()) for line in done.stdout.splitlines()]
    begin = told.index(peers.KEPT_RECORDS)
    kept = [line.rpartition(" (")[0].split()[-1] for line in told[begin + 1 : begin + 3]]
    assert kept == ["100.0", "100.0"]
