"""The tables of a batch while it runs, after Ctrl-C, and after it is resumed."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from fakekafka import UsageError
from fakekafka.spark_bench import batch as batch_module
from fakekafka.spark_bench.batch import BatchEnded, run_suite
from fakekafka.spark_bench.measuring.histogram import bucket_of
from fakekafka.spark_bench.planning.carry_out import Outcome, carry_out
from fakekafka.spark_bench.planning.numbered_runs import SuiteWork
from fakekafka.spark_bench.planning.plan import RunSpec
from fakekafka.spark_bench.reports.results import BatchResult
from fakekafka.spark_bench.tables.reader import BatchTables
from fakekafka.spark_bench.tables.schema import COLUMNS
from fakekafka.spark_bench.tables.store import BatchStore
from fakekafka.tests.spark_bench.suites_for_tests import SMALL, TROUBLE, written

TABLES = ("runs", "hist", "series", "samples")


class Backwards:
    """An engine that returns the last run first and can end early."""

    def __init__(self, stop_after: int = 99, cause: BaseException | None = None) -> None:
        self.stop_after = stop_after
        self.cause = cause
        self.ran: list[int] = []

    def run(self, work: SuiteWork, specs: Sequence[RunSpec]) -> Iterator[Outcome]:
        for spec in specs[::-1]:
            if self.cause is not None and len(self.ran) == self.stop_after:
                raise self.cause
            self.ran.append(spec.run_id)
            yield carry_out(work.plan, spec)


@pytest.fixture
def small(tmp_path: Path) -> str:
    """Return a suite of two configurations with three seeds each."""
    return written(tmp_path, SMALL, "small.py")


@pytest.fixture
def run_on(monkeypatch: pytest.MonkeyPatch, small: str) -> Any:
    """Run the small suite on a given engine, with a part for every run."""
    from fakekafka.spark_bench.tables import store

    monkeypatch.setattr(store, "_FLUSH_RUNS", 1)

    def run(engine: Backwards, **more: Any) -> BatchResult:
        opened = contextlib.nullcontext(engine)
        monkeypatch.setattr(batch_module, "open_engine", lambda *_: opened)
        more = {"samples": 1, **more}
        return run_suite(small, engine="serial", **more)

    return run


def rows_of(out: Path) -> dict[str, Any]:
    return {name: BatchTables(out).table(name).to_pylist() for name in TABLES}


def test_tables_hold_what_the_batch_holds_whatever_order_the_runs_had(
    run_on: Any, small: str, tmp_path: Path
) -> None:
    """Tables are sorted, one file each, and equal the rows in memory, whatever the runs' order."""
    kept = run_on(Backwards(), out=None)
    run_on(Backwards(), out=tmp_path / "b")
    run_suite(small, engine="serial", out=tmp_path / "s", samples=1)
    assert rows_of(tmp_path / "b") == rows_of(tmp_path / "s")
    table = BatchTables(tmp_path / "s").table("runs")
    assert [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()] == [
        {name: row[name] for name in table.column_names} for row in kept.rows
    ]
    merged: dict[tuple[int, str, int], int] = {}
    for row in BatchTables(tmp_path / "b").table("hist").to_pylist():
        key = row["configuration"], row["metric"], row["bucket"]
        merged[key] = merged.get(key, 0) + row["n"]
        assert bucket_of(row["value"]) in (row["bucket"], row["bucket"] + 1)
    assert merged == {
        (number, metric, bucket): count
        for number, found in kept.configurations.items()
        for metric, histogram in found.histograms.items()
        for bucket, count in histogram.rows()
    }
    assert sorted(str(path.relative_to(tmp_path / "b")) for path in (tmp_path / "b").rglob("*.*")) \
        == ["batch.json", *(f"{name}/{name}.parquet" for name in
                            ("cost", "hist", "runs", "samples", "series"))]  # fmt: skip


def test_every_column_has_its_comment_in_the_file_itself(run_on: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_on(Backwards(), out=out)
    for name in (*TABLES, "cost"):
        schema = parquet.read_schema(out / name / f"{name}.parquet")
        undocumented = {field.name for field in schema if not (field.metadata or {}).get(b"doc")}
        assert undocumented == ({"even", "who"} if name == "runs" else set())
        assert schema.metadata[b"fakekafka.suite"] == b"small"
        if name != "runs":
            assert schema.names == list(COLUMNS[name])
    rule = parquet.read_schema(out / "hist" / "hist.parquet").metadata
    assert b"gamma = 1.01/0.99" in rule[b"fakekafka.bucket_rule"]
    facts = json.loads((out / "batch.json").read_text())
    assert (facts["runs"], facts["complete"], facts["varied"]) == (6, True, ["records"])


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), SystemExit(143)])
def test_a_batch_that_is_ended_can_be_read_and_resumed(
    cause: BaseException, run_on: Any, tmp_path: Path
) -> None:
    """A batch that ended early can be read and resumed, with each run done once."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    run_on(Backwards(), out=whole)
    first = Backwards(4, cause)
    with pytest.raises(BatchEnded, match="ended after 4 of 6 runs") as ended:
        run_on(first, out=out)
    assert ended.value.cause is cause
    assert sorted(row["run_id"] for row in rows_of(out)["runs"]) == sorted(first.ran)
    assert not json.loads((out / "batch.json").read_text())["complete"]
    second = Backwards()
    batch = run_on(second, out=out, resume=True)
    assert sorted(first.ran + second.ran) == [0, 1, 2, 3, 4, 5]
    assert (batch.runs, batch.ok) == (6, 6)
    assert batch.configurations[0].histograms["response_ms"].total > 0
    assert rows_of(out) == rows_of(whole)
    third = Backwards()
    assert run_on(third, out=out, resume=True).runs == 6
    assert third.ran == []
    assert rows_of(out) == rows_of(whole)


@pytest.mark.parametrize("at", ["counted", "stored"])
def test_ctrl_c_leaves_no_run_counted_but_not_stored(
    at: str, run_on: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal between the count of a run and its row in the tables is delivered after both."""
    owner, name = {"counted": (BatchResult, "add"), "stored": (BatchStore, "add")}[at]
    real = getattr(owner, name)
    calls: list[int] = []

    def interrupted(*args: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        real(*args)

    monkeypatch.setattr(owner, name, interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(BatchEnded, match="ended after 3 of 6 runs") as ended:
            run_on(Backwards(), out=tmp_path / "out")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert isinstance(ended.value.cause, KeyboardInterrupt)
    assert len(rows_of(tmp_path / "out")["runs"]) == 3


class Asked(Backwards):
    """An engine that records the order in which it gets the runs."""

    def run(self, work: SuiteWork, specs: Sequence[RunSpec]) -> Iterator[Outcome]:
        return super().run(work, specs[::-1])


def test_known_durations_decide_which_runs_start_first(run_on: Any, tmp_path: Path) -> None:
    """Known durations, from the same or another batch, decide which runs start first."""
    slow = {0: 5000.0, 1: 5000.0, 2: 5000.0}  # those of two records, declared to be shorter

    class Timed(Backwards):
        def run(self, work: SuiteWork, specs: Sequence[RunSpec]) -> Iterator[Outcome]:
            for outcome in super().run(work, specs):
                outcome.wall_ms = slow.get(outcome.row["run_id"], 10.0)
                yield outcome

    run_on(Timed(), out=tmp_path / "earlier")
    plain, told, resumed = Asked(), Asked(), Asked()
    run_on(plain, out=None)
    run_on(told, out=None, costs_from=tmp_path / "earlier")
    assert (plain.ran, told.ran) == ([3, 4, 5, 0, 1, 2], [0, 1, 2, 3, 4, 5])
    with pytest.raises(BatchEnded):
        run_on(Timed(4, KeyboardInterrupt()), out=tmp_path / "ended")
    run_on(resumed, out=tmp_path / "ended", resume=True)
    assert len(resumed.ran) == 2


def test_a_table_is_sorted_piece_by_piece_and_comes_out_the_same(
    run_on: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table is sorted in pieces with the same result, however few values fit in memory."""
    from fakekafka.spark_bench.tables import store

    run_on(Backwards(), out=tmp_path / "whole")
    monkeypatch.setattr(store, "_SORTED_VALUES_MAX", 1)
    run_on(Backwards(), out=tmp_path / "pieces")
    assert rows_of(tmp_path / "pieces") == rows_of(tmp_path / "whole")
    groups = parquet.ParquetFile(tmp_path / "pieces" / "hist" / "hist.parquet").num_row_groups
    assert groups == 6


def test_incomplete_parts_are_dropped_after_a_crash(run_on: Any, tmp_path: Path) -> None:
    """Parts without their part of ``runs``, which is written last, are dropped after a crash."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    run_on(Backwards(), out=whole)
    with pytest.raises(BatchEnded):
        run_on(Backwards(4, KeyboardInterrupt()), out=out)
    (out / "runs" / "part-00003.parquet").unlink()
    (out / "hist" / "part-00009.tmp").write_bytes(b"half")
    second = Backwards()
    run_on(second, out=out, resume=True)
    assert len(second.ran) == 3
    assert rows_of(out) == rows_of(whole)


def test_another_batch_is_neither_overwritten_nor_resumed_by_mistake(
    run_on: Any, tmp_path: Path
) -> None:
    """A directory with another batch is refused before anything is run."""
    out = tmp_path / "out"
    run_on(Backwards(), out=out)
    before = rows_of(out)
    with pytest.raises(UsageError, match=r"tables of another batch.*--resume.*--overwrite"):
        run_on(Backwards(), out=out)
    with pytest.raises(UsageError, match=r"has another batch .*resume it with the suite"):
        run_on(Backwards(), out=out, resume=True, seed=5)
    assert rows_of(out) == before
    run_on(Backwards(), out=out, overwrite=True, runs=1)
    assert len(rows_of(out)["runs"]) == 2


def test_a_directory_of_other_files_is_never_taken_for_tables(run_on: Any, tmp_path: Path) -> None:
    """A directory with other files is never taken for tables; hidden files are allowed."""
    out = tmp_path / "out"
    out.mkdir()
    (out / ".hidden").touch()
    (out / "runs").mkdir()
    (out / "runs" / "diary.txt").touch()
    for more in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(UsageError, match=r"has other files and no batch \(runs\): name a new"):
            run_on(Backwards(), out=out, **more)
    assert (out / "runs" / "diary.txt").exists()
    (out / "runs" / "diary.txt").unlink()
    (out / "runs").rmdir()
    run_on(Backwards(), out=out)
    assert len(rows_of(out)["runs"]) == 6


def test_a_batch_that_is_ended_before_its_first_run_leaves_no_directory(
    run_on: Any, tmp_path: Path
) -> None:
    """A batch that ends before its first run leaves the directory as it was."""
    (tmp_path / "kept").mkdir()
    for out in (tmp_path / "kept" / "new" / "newer", tmp_path / "kept"):
        with pytest.raises(BatchEnded, match="ended after 0 of 6 runs"):
            run_on(Backwards(0, KeyboardInterrupt()), out=out)
    assert list((tmp_path / "kept").rglob("*")) == []


def test_an_engine_that_is_ended_while_it_starts_ends_the_batch(
    monkeypatch: pytest.MonkeyPatch, small: str, tmp_path: Path
) -> None:
    """A batch can be ended while its engine starts, which takes Spark seconds."""

    def open_engine(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(batch_module, "open_engine", open_engine)
    with pytest.raises(BatchEnded, match="ended after 0 of 6 runs"):
        run_suite(small, engine="serial", out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_runs_without_figures_are_in_the_tables_too(tmp_path: Path) -> None:
    """Runs without measured values are in the tables, and a column has one type in any order."""
    suite = written(tmp_path, TROUBLE, "trouble.py")
    matrix = {"kind": ["raise", "promise", "none"]}
    run_suite(suite, runs=1, engine="serial", out=tmp_path / "out", matrix=matrix)
    runs = BatchTables(tmp_path / "out").runs()
    assert list(runs["status"]) == ["error", "violation", "ok"]
    assert list(runs["events"].isna()) == [True, False, False]


def test_a_directory_without_a_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no batch: there is no"):
        BatchTables(tmp_path)
