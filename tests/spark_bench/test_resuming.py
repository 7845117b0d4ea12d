"""Batches on Spark that are interrupted and resumed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fakekafka.spark_bench.batch import run_suite
from fakekafka.spark_bench.tables.reader import BatchTables
from fakekafka.tests.spark_bench.suites_for_tests import LONG, written
from fakekafka.tests.support.spark_marks import ON_SPARK
from fakekafka.tests.support.terminal import kill, press_ctrl_c, run_at_terminal

RUNS = 24

pytestmark = [*ON_SPARK, pytest.mark.serial, pytest.mark.timeout(600)]


def test_ctrl_c_and_a_killed_driver_leave_a_batch_that_another_spark_completes(
    tmp_path: Path,
) -> None:
    """A batch interrupted by Ctrl-C and then by a killed driver is completed by another Spark with
    the tables of the serial engine.
    """
    suite = written(tmp_path, LONG, "long.py")
    run_suite(suite, engine="serial", out=tmp_path / "serial")
    out = tmp_path / "spark"
    program = [sys.executable, "-m", "fakekafka.cli.main", "bench", "run", suite, "--engine",
               "spark", "--out", str(out)]  # fmt: skip
    sees = f" of {RUNS} runs".encode()
    status, shown = run_at_terminal([*program, "--workers", "2"], sees, press_ctrl_c)
    assert status == 130, shown
    assert f" of {RUNS} runs" in shown.splitlines()[-1]
    assert "Traceback" not in shown, shown
    first = len(BatchTables(out).runs())
    assert 0 < first < RUNS
    status, shown = run_at_terminal([*program, "--workers", "1", "--resume"], sees, kill)
    assert status == -9, shown
    second = len(BatchTables(out).runs())
    assert first <= second < RUNS
    batch = run_suite(suite, engine="spark", workers=2, out=out, resume=True)
    assert (batch.runs, batch.broken) == (RUNS, [])
    mine, theirs = BatchTables(out), BatchTables(tmp_path / "serial")
    for name in ("runs", "hist", "series"):
        assert mine.table(name).equals(theirs.table(name)), name
    assert sorted(mine.cost()["run_id"]) == list(range(RUNS))
