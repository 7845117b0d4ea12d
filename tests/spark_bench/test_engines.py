"""The engines serial, process and Spark give the same rows, even if workers die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakekafka import UsageError
from fakekafka.spark_bench import batch as batch_module
from fakekafka.spark_bench.batch import run_suite
from fakekafka.spark_bench.engines import engine as engine_module
from fakekafka.spark_bench.engines.engine import choose_engine, java_problem, open_engine
from fakekafka.spark_bench.planning.numbered_runs import SuiteWork
from fakekafka.spark_bench.planning.plan import make_plan
from fakekafka.spark_bench.planning.schedule import ProgressReport
from fakekafka.spark_bench.reports.results import BatchResult
from fakekafka.spark_bench.tables.reader import BatchTables
from fakekafka.tests.spark_bench.suites_for_tests import SMALL, TROUBLE, written
from fakekafka.tests.support.spark_marks import ON_SPARK

TABLES = ("runs", "hist", "series")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("suites"), SMALL, "small.py")


@pytest.fixture(scope="module")
def serial(small: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[BatchResult, Path]:
    """Run the batch to compare with; return its result and the directory of its tables."""
    out = tmp_path_factory.mktemp("serial")
    run_suite(small, engine="serial", seed=1, out=out)
    return run_suite(small, engine="serial", seed=1), out


def same(batch: BatchResult, other: BatchResult) -> None:
    assert batch.rows == other.rows
    assert [[type(value) for value in row.values()] for row in batch.rows] == [
        [type(value) for value in row.values()] for row in other.rows
    ]
    for number, one in batch.configurations.items():
        two = other.configurations[number]
        assert {name: h.rows() for name, h in one.histograms.items()} == {
            name: h.rows() for name, h in two.histograms.items()
        }


def test_progress_reports_runs_work_and_remaining_time(small: str) -> None:
    heard: list[ProgressReport] = []
    run_suite(small, runs=1, engine="serial", progress=heard.append)
    assert (heard[-1].done, heard[-1].total, heard[-1].work) == (2, 2, 1.0)
    assert heard[-1].remaining_s == 0
    assert heard[-1].runs_per_s > 0


@pytest.mark.slow
def test_several_processes_give_the_results_of_one(
    small: str, serial: tuple[BatchResult, Path]
) -> None:
    same(run_suite(small, engine="process", seed=1, workers=2), serial[0])


@pytest.mark.slow
def test_a_process_that_dies_is_replaced_and_its_run_is_repeated(
    small: str, serial: tuple[BatchResult, Path]
) -> None:
    """After a worker is killed from outside, its run is repeated and each run counts once."""
    plan = make_plan(small, 3, 1)
    with open_engine("process", 2) as engine:
        results = engine.run(SuiteWork(plan), plan.specs)
        outcomes = [next(results)]
        os.kill(engine.process_ids[0], signal.SIGKILL)  # type: ignore[attr-defined]
        outcomes += results
    rows = sorted((outcome.row for outcome in outcomes), key=lambda row: row["run_id"])
    assert rows == serial[0].rows


WORKERS_THAT_ARE_INTERRUPTED = """
import os, signal, sys
from fakekafka.spark_bench.engines.process import ProcessEngine
from fakekafka.spark_bench.planning.numbered_runs import SuiteWork
from fakekafka.spark_bench.planning.plan import make_plan

if __name__ == "__main__":
    plan = make_plan(sys.argv[1], 3, 1)
    with ProcessEngine.open(2) as engine:
        workers = list(engine.process_ids)
        for process_id in workers:
            os.kill(process_id, signal.SIGINT)
        outcomes = list(engine.run(SuiteWork(plan), plan.specs))
        print(len(outcomes), "outcomes", "of the same workers" * (engine.process_ids == workers))
"""


@pytest.mark.slow
def test_no_worker_receives_ctrl_c(small: str, tmp_path: Path) -> None:
    """Ctrl-C never reaches a worker, which would print a traceback: neither one just started nor
    multiprocessing's own helper process.
    """
    script = tmp_path / "interrupted.py"
    script.write_text(WORKERS_THAT_ARE_INTERRUPTED)
    done = subprocess.run(
        [sys.executable, str(script), small], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("6 outcomes of the same workers\n", "")


@pytest.mark.slow
def test_a_run_that_takes_its_process_along_is_a_row(tmp_path: Path) -> None:
    suite = written(tmp_path, TROUBLE, "trouble.py")
    matrix = {"kind": ["none", "die", "raise"]}
    batch = run_suite(suite, runs=2, engine="process", workers=1, matrix=matrix)
    assert [row["status"] for row in batch.rows] == ["ok", "ok", "lost", "lost", "error", "error"]
    assert batch.rows[2]["problems"] == "its process died twice"
    assert batch.rows[2]["reproduce"].endswith("--set kind=die")


class TestSpark:
    """Tests in one Spark session, which takes seconds to start."""

    pytestmark = ON_SPARK

    def test_spark_gives_the_results_of_one_process(
        self,
        small: str,
        serial: tuple[BatchResult, Path],
        tmp_path: Path,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        """Spark gives the rows, types, histograms and tables of the serial engine; a run that kills
        its worker is a row. Spark prints nothing beyond the JVM's own start messages.
        """
        trouble = written(tmp_path, TROUBLE, "trouble.py")
        with open_engine("spark", 2) as engine:
            session: Any = engine.session  # type: ignore[attr-defined]
            # From here on batches use this session.
            same(run_suite(small, engine="spark", seed=1), serial[0])
            run_suite(small, engine="spark", seed=1, out=tmp_path / "out")
            for name in TABLES:
                mine, other = BatchTables(tmp_path / "out"), BatchTables(serial[1])
                assert mine.table(name).equals(other.table(name)), name
            plan = make_plan(small, 3, 1)
            back = list(engine.run(SuiteWork(plan), plan.specs[::-1]))
            assert len(back) == 6
            assert {o.row["run_id"]: o.row for o in back} == {
                row["run_id"]: row for row in serial[0].rows
            }
            told = capfd.readouterr()
            assert "WARN" not in told.out + told.err
            matrix = {"kind": ["none", "die", "raise"]}
            batch = run_suite(trouble, runs=1, engine="spark", matrix=matrix)
            assert [row["status"] for row in batch.rows] == ["ok", "lost", "error"]
            with pytest.raises(UsageError, match="a Spark session is already active"):
                run_suite(small, engine="spark", workers=2)
            self.check_reading(session, tmp_path / "out")
            assert session.range(1).count() == 1  # the session was not stopped

    def check_reading(self, session: Any, out: Path) -> None:
        """Read the tables as Spark data frames."""
        hist = BatchTables(out).hist(session)
        total = hist.where("metric = 'response_ms'").groupBy().sum("n").collect()[0][0]
        found = BatchTables(out).hist("pandas")
        assert total == found[found.metric == "response_ms"].n.sum()


def test_without_java_the_reason_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert "install a Java 17 runtime" in (java_problem() or "")
    assert choose_engine()[0] == "process"
    with (
        pytest.raises(UsageError, match="the spark engine cannot start: there is no Java"),
        open_engine("spark"),
    ):
        pass


def test_with_java_spark_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "java_problem", lambda: None)
    assert choose_engine() == ("spark", "Java and pyspark are here")


def test_auto_is_the_engine_that_can_run_here(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "choose_engine", lambda: ("serial", "for the test"))
    assert run_suite(small, runs=1, engine="auto", matrix={}).engine == "serial"


@pytest.mark.parametrize(
    ("engine", "more", "message"),
    [
        ("process", {"workers": 0}, "workers must be at least 1, not 0"),
        ("process", {"workers": -1}, "workers must be at least 1, not -1"),
        ("abacus", {}, "no engine 'abacus'; there are auto, spark, process"),
        ("serial", {"master": "spark://h:7077"}, "belong to the engine spark, not to serial"),
    ],
)
def test_an_unavailable_engine_is_refused(engine: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message), open_engine(engine, **more):
        pass
