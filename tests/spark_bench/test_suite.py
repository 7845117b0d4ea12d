"""Suites: which specs a batch has, what is refused, and how a run becomes a row."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from fakekafka import UsageError
from fakekafka.spark_bench import batch as batch_module
from fakekafka.spark_bench.batch import BatchEnded, run_suite
from fakekafka.spark_bench.report import percentile_rows
from fakekafka.spark_bench.results import BatchResult
from fakekafka.spark_bench.runs import RunSpec, make_specs, reproduce_command, run_one
from fakekafka.spark_bench.suites.catalogue import SUITES, Suite
from fakekafka.spark_bench.suites.failover import FailoverParameters


def test_seeds_count_up_from_the_first() -> None:
    specs = make_specs("failover", 3, 40, brokers=4)
    assert [(spec.run_id, spec.seed) for spec in specs] == [(0, 40), (1, 41), (2, 42)]
    assert {dict(spec.parameters)["brokers"] for spec in specs} == {4}


@pytest.mark.parametrize(
    ("suite", "runs", "parameters", "message"),
    [
        ("failovr", 1, {}, "there is no suite 'failovr'; did you mean 'failover'"),
        ("xyz", 1, {}, "there is no suite 'xyz'; there are failover"),
        ("failover", 0, {}, "runs must be at least 1, not 0"),
        ("failover", 1, {"broker": 3}, "failover has no parameter 'broker'; there are brokers,"),
        ("failover", 1, {"brokers": 2}, "replication_factor 3 needs as many brokers, there are 2"),
        ("failover", 1, {"replication_factor": 1}, "needs replication_factor >= 2"),
        ("failover", 1, {"brokers": "many"}, "brokers must be int, not 'many'"),
        ("failover", 1, {"brokers": 3.5}, "brokers must be int, not 3.5"),
        ("failover", 1, {"partitions": 0}, "partitions must be at least 1, not 0"),
        ("failover", 1, {"rate_per_s": 0}, "rate_per_s must be at least 1, not 0"),
        ("failover", 1, {"rate_per_s": 1_000_001}, "must be at most 1000000, not 1000001"),
        ("failover", 1, {"latency_sigma": "wide"}, "latency_sigma must be float, not 'wide'"),
        ("failover", 1, {"latency_median_ms": -1}, "latency_median_ms must be above 0, not -1"),
        ("failover", 1, {"latency_sigma": math.nan}, "latency_sigma must be at least 0, not nan"),
        ("failover", 1, {"kafka_version": "4.0"}, "4.0"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_runs(
    suite: str, runs: int, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        make_specs(suite, runs, 0, **parameters)


def test_a_whole_number_is_good_enough_for_a_float() -> None:
    assert FailoverParameters.checked(latency_median_ms=2).latency_median_ms == 2


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UsageError, match="no engine 'abacus'; there are auto, spark, process"):
        run_suite("failover", runs=1, engine="abacus")


def test_the_reproduce_command_names_what_differs_from_the_defaults() -> None:
    (spec,) = make_specs("failover", 1, 7, brokers=4, kafka_version="1.1")
    assert reproduce_command(spec) == (
        "fakekafka bench run failover --runs 1 --seed 7 --engine serial"
        " --set brokers=4 --set kafka_version=1.1"
    )


def _breaks(_seed: int, _parameters: Any) -> dict[str, Any]:
    raise RuntimeError("the run broke")


def test_an_exception_becomes_a_row_and_never_a_failed_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(SUITES, "breaks", Suite(FailoverParameters, _breaks, "always breaks"))
    batch = run_suite("breaks", runs=2, engine="serial", seed=5)
    assert [row["status"] for row in batch.rows] == ["error", "error"]
    assert [row["problems"] for row in batch.rows] == ["RuntimeError: the run broke"] * 2
    assert [row["seed"] for row in batch.rows] == [5, 6]
    assert "--seed 6 " in batch.rows[1]["reproduce"]
    assert (batch.runs, batch.ok, batch.histograms) == (2, 0, {})
    assert batch.column("unavailable_ms") == []
    assert list(percentile_rows(batch)) == []


class Backwards:
    """An engine that gives the last run first, and is ended before the others are done."""

    def __init__(self, cause: BaseException | None = None) -> None:
        self.cause = cause

    def run(self, specs: list[RunSpec], _progress: object) -> Iterator[dict[str, Any]]:
        for spec in specs[::-1]:
            yield {"row": {"run_id": spec.run_id, "status": "ok"}, "histograms": {}, "wall_ms": 1.0}
            if self.cause is not None and spec.run_id == 2:
                raise self.cause


def run_on(engine: Backwards, monkeypatch: pytest.MonkeyPatch, **more: Any) -> BatchResult:
    """A batch of four on an engine made for the test."""
    opened = contextlib.nullcontext(engine)
    monkeypatch.setattr(batch_module, "open_engine", lambda name, workers: opened)
    return run_suite("failover", runs=4, engine="serial", **more)


def test_results_come_in_run_order_whatever_order_the_engine_gave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = run_on(Backwards(), monkeypatch)
    assert [row["run_id"] for row in batch.rows] == [0, 1, 2, 3]


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), SystemExit(143)])
def test_a_batch_that_is_ended_leaves_the_tables_of_the_runs_that_were_done(
    cause: BaseException, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(BatchEnded, match="ended after 2 of 4 runs") as ended:
        run_on(Backwards(cause), monkeypatch, out=tmp_path)
    assert ended.value.cause is cause
    rows = parquet.read_table(tmp_path / "runs" / "runs.parquet").to_pylist()
    assert [row["run_id"] for row in rows] == [2, 3]
    assert ended.value.batch.rows == rows


def test_a_batch_that_is_ended_before_its_first_run_leaves_no_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was there before stays."""

    class Ended:
        def run(self, specs: list[RunSpec], progress: Any) -> Iterator[dict[str, Any]]:
            raise KeyboardInterrupt

    (tmp_path / "kept").mkdir()
    for out in (tmp_path / "kept" / "new" / "newer", tmp_path / "kept"):
        opened = contextlib.nullcontext(Ended())
        monkeypatch.setattr(batch_module, "open_engine", lambda name, workers, at=opened: at)
        with pytest.raises(BatchEnded, match="ended after 0 of 4 runs"):
            run_suite("failover", runs=4, engine="serial", out=out)
    assert list(tmp_path.rglob("*")) == [tmp_path / "kept"]


def test_an_engine_that_is_ended_while_it_starts_ends_the_batch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark takes seconds to start, and whoever waits may lose patience."""

    def open_engine(name: str, workers: int | None) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(batch_module, "open_engine", open_engine)
    with pytest.raises(BatchEnded, match="ended after 0 of 4 runs"):
        run_suite("failover", runs=4, engine="serial", out=tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_tables_of_another_batch_are_overwritten_only_when_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is refused before anything is run."""
    run_on(Backwards(), monkeypatch, out=tmp_path)
    runs = tmp_path / "runs" / "runs.parquet"
    before = runs.read_bytes()
    with pytest.raises(UsageError, match=r"tables of another batch .*, or say --overwrite"):
        run_suite("failover", runs=1, engine="spark", out=tmp_path)
    assert runs.read_bytes() == before
    run_on(Backwards(), monkeypatch, out=tmp_path, overwrite=True)
    assert parquet.read_table(runs).num_rows == 4


def test_auto_is_the_engine_that_can_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "choose_engine", lambda: ("serial", "for the test"))
    monkeypatch.setitem(SUITES, "breaks", Suite(FailoverParameters, _breaks, "breaks"))
    assert run_suite("breaks", runs=1, engine="auto").engine == "serial"


def test_a_column_leaves_out_runs_without_a_value() -> None:
    rows: list[dict[str, Any]] = [
        {"elect_ms": 3.0, "status": "ok"},
        {"status": "error"},
        {"elect_ms": math.nan},
    ]
    batch = BatchResult("failover", "serial", rows, {}, 0.0, 0.0, len(rows))
    assert batch.column("elect_ms") == [3.0]


def test_percentiles_over_runs_are_nearest_ranks() -> None:
    rows = [{"unavailable_ms": float(value), "status": "ok"} for value in range(1, 101)]
    batch = BatchResult("failover", "serial", rows, {}, 0.0, 0.0, len(rows))
    (row,) = percentile_rows(batch)
    assert row[1:] == ("50.0", "90.0", "99.0", "100.0")


def test_every_suite_says_what_it_is_about() -> None:
    for name, (parameters, _, about) in SUITES.items():
        assert about, name
        assert parameters.checked() == parameters()


@pytest.mark.slow
def test_one_failover_is_felt_about_as_long_as_the_session_times_out() -> None:
    """The outage is detect + elect + client, up to the wait before the crash; promises hold."""
    (spec,) = make_specs("failover", 1, 3, session_timeout_ms=6000)
    result = run_one(spec)
    row = result["row"]
    assert (row["status"], row["problems"], row["errors"]) == ("ok", "", 0)
    assert 2_000 <= row["detect_ms"] <= 9_000
    phases = row["detect_ms"] + row["elect_ms"] + row["client_ms"]
    assert phases <= row["unavailable_ms"] <= phases + 2 * 1000 / 100 * 3
    counts = {name: sum(n for _, n in rows) for name, rows in result["histograms"].items()}
    assert counts["response_ms"] == row["acknowledged"]
    assert counts["unavailable_ms"] == row["partitions_led"]


@pytest.mark.slow
def test_a_run_gives_the_same_whatever_ran_before_it_in_the_process() -> None:
    """Two scenarios in two orders in one worker: nothing of a run outlives it."""
    shapes: list[dict[str, Any]] = [{"session_timeout_ms": 6000}, {"brokers": 4, "partitions": 2}]

    def fingerprints(order: list[int]) -> dict[int, str]:
        found = {}
        for number in order:
            (spec,) = make_specs("failover", 1, 9, rate_per_s=20, **shapes[number])
            found[number] = run_one(spec)["row"]["fingerprint"]
        return found

    forth, back = fingerprints([0, 1]), fingerprints([1, 0])
    assert forth == back
    assert forth[0] != forth[1]


def test_specs_are_plain_data() -> None:
    import pickle

    (spec,) = make_specs("failover", 1, 0)
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert isinstance(spec, RunSpec)
