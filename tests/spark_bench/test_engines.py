"""Engines: serial, processes and Spark give the same rows; tables on disk say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakekafka import UsageError
from fakekafka.spark_bench import engines
from fakekafka.spark_bench.batch import run_suite
from fakekafka.spark_bench.engines import choose_engine, java_problem, open_engine
from fakekafka.spark_bench.results import BatchResult
from fakekafka.spark_bench.runs import make_specs

RUNS = 3
SHAPE: dict[str, Any] = {"session_timeout_ms": 6000, "rate_per_s": 20, "partitions": 2}


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> tuple[BatchResult, Path]:
    """The batch that the others are compared with, and where its tables are."""
    out = tmp_path_factory.mktemp("serial")
    return run_suite("failover", runs=RUNS, engine="serial", seed=1, out=out, **SHAPE), out


def same(batch: BatchResult, other: BatchResult) -> None:
    assert batch.rows == other.rows
    assert [[type(value) for value in row.values()] for row in batch.rows] == [
        [type(value) for value in row.values()] for row in other.rows
    ]
    assert {name: h.rows() for name, h in batch.histograms.items()} == {
        name: h.rows() for name, h in other.histograms.items()
    }


@pytest.mark.slow
def test_runs_differ_by_their_seeds_and_report_progress(
    serial: tuple[BatchResult, Path],
) -> None:
    batch, _ = serial
    assert [row["seed"] for row in batch.rows] == [1, 2, 3]
    assert len({row["fingerprint"] for row in batch.rows}) == RUNS
    assert batch.ok == RUNS
    heard: list[tuple[int, int]] = []
    run_suite("failover", runs=1, engine="serial", progress=lambda *at: heard.append(at), **SHAPE)
    assert heard == [(1, 1)]


@pytest.mark.slow
def test_the_tables_hold_what_the_batch_holds(serial: tuple[BatchResult, Path]) -> None:
    """Read with pyarrow: a row a run, a row a bucket of a run, and the cost apart."""
    import pyarrow.parquet as parquet

    batch, out = serial
    assert parquet.read_table(out / "runs" / "runs.parquet").to_pylist() == batch.rows
    merged: dict[str, dict[int, int]] = {}
    for row in parquet.read_table(out / "histograms" / "histograms.parquet").to_pylist():
        counts = merged.setdefault(row["metric"], {})
        counts[row["bucket"]] = counts.get(row["bucket"], 0) + row["n"]
    assert merged == {name: h.counts for name, h in batch.histograms.items()}
    cost = parquet.read_table(out / "cost" / "cost.parquet").to_pylist()
    assert [row["run_id"] for row in cost] == [0, 1, 2]
    assert all(row["engine"] == "serial" and row["wall_ms"] > 0 for row in cost)
    assert sorted(path.name for path in out.rglob("*") if path.is_file()) == [
        "cost.parquet",
        "histograms.parquet",
        "runs.parquet",
    ]


@pytest.mark.slow
def test_processes_give_what_one_process_gives(serial: tuple[BatchResult, Path]) -> None:
    heard: list[tuple[int, int]] = []
    batch = run_suite(
        "failover",
        runs=RUNS,
        engine="process",
        seed=1,
        workers=2,
        progress=lambda *at: heard.append(at),
        **SHAPE,
    )
    same(batch, serial[0])
    assert heard == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(180)
# The gateway to the JVM leaves its sockets and pipes to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(java_problem() is not None, reason=f"Spark cannot start: {java_problem()}")
def test_spark_gives_what_one_process_gives_with_one_task_a_run(
    serial: tuple[BatchResult, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rows, their types, histograms and the table of runs; a worker runs many in any order.

    And Spark does not greet: only what the JVM itself says at its start reaches the terminal.
    """
    import pyarrow.parquet as parquet

    heard: list[tuple[int, int]] = []
    specs = make_specs("failover", RUNS, 1, **SHAPE)
    with open_engine("spark", 2) as engine:
        tracker = engine.session.sparkContext.statusTracker()  # type: ignore[attr-defined]
        before = set(tracker.getJobIdsForGroup())
        results = list(engine.run(specs, lambda *at: heard.append(at)))
        jobs = set(tracker.getJobIdsForGroup()) - before
        stages = [stage for job in jobs for stage in tracker.getJobInfo(job).stageIds]
        tasks = [tracker.getStageInfo(stage).numTasks for stage in stages]
        again = list(engine.run(specs[::-1], None))
    told = capfd.readouterr()
    assert not [word for word in ("WARN ", "Setting", "log4j") if word in told.out + told.err]
    assert tasks == [RUNS]
    assert heard[-1] == (RUNS, RUNS)
    assert [result["row"] for result in results] == serial[0].rows
    by_id = {result["row"]["run_id"]: result["row"] for result in again}
    assert [by_id[number] for number in range(RUNS)] == serial[0].rows
    batch = run_suite("failover", runs=RUNS, engine="spark", seed=1, out=tmp_path, **SHAPE)
    same(batch, serial[0])
    mine = parquet.read_table(tmp_path / "runs" / "runs.parquet")
    assert mine.equals(parquet.read_table(serial[1] / "runs" / "runs.parquet"))
    mine = parquet.read_table(tmp_path / "histograms" / "histograms.parquet")
    assert mine.equals(parquet.read_table(serial[1] / "histograms" / "histograms.parquet"))


def test_without_java_the_reason_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert "install a Java 17 runtime or set JAVA_HOME" in (java_problem() or "")
    assert choose_engine()[0] == "process"
    with (
        pytest.raises(UsageError, match="the spark engine cannot start: there is no Java"),
        open_engine("spark"),
    ):
        pass


def test_with_java_spark_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "java_problem", lambda: None)
    assert choose_engine() == ("spark", "Java and pyspark are here")


@pytest.mark.parametrize("workers", [0, -1])
def test_fewer_than_one_worker_is_refused(workers: int) -> None:
    with (
        pytest.raises(UsageError, match=f"workers must be at least 1, not {workers}"),
        open_engine("process", workers),
    ):
        pass
