"""``spark.read.format("fakekafka")``: the rows of ``bench run`` read by Spark itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from fakekafka import UsageError
from fakekafka.spark_bench.batch import run_suite
from fakekafka.spark_bench.data_source import BatchReader, BatchSource, register
from fakekafka.spark_bench.engines.engine import open_engine
from fakekafka.spark_bench.tables.reader import BatchTables
from fakekafka.spark_bench.tables.schema import COLUMNS, TABLES
from fakekafka.tests.spark_bench.suites_for_tests import SCENARIO, SMALL, TROUBLE, written
from fakekafka.tests.support.spark_marks import ON_SPARK

LATE = '''
"""A run has a column of its own"""
MATRIX = {"kind": ["first", "middle", "last"]}
def scenario(run, kind: str = "first"):
    run.simulation(1)
    run.value("number", 1 if kind != "middle" else "none")
    if kind == "middle":
        run.value("late", 7)
'''


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("suites"), SMALL, "small.py")


def read(options: dict[str, str]) -> list[dict[str, Any]]:
    """Read schema and partitions as Spark does, without Spark."""
    source = BatchSource(options)
    reader = source.reader(source.schema())
    assert isinstance(reader, BatchReader)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    rows: list[dict[str, Any]] = pyarrow.Table.from_batches(batches).to_pylist()
    return rows


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("table", ["runs", "hist", "series", "samples"])
def test_a_table_has_the_rows_and_the_types_of_the_batch(
    table: str, small: str, tmp_path: Path
) -> None:
    """The data source has the rows and types of the batch, in any order, and a null ``other``."""
    run_suite(small, engine="serial", seed=1, out=tmp_path / "out", samples=1)
    theirs = BatchTables(tmp_path / "out").table(table)
    options = {"path": small, "table": table, "seed": "1", "samples": "1", "tasks": "4"}
    rows = read(options)
    if table == "runs":
        assert [row.pop("other") for row in rows] == [None] * 6
    assert in_order(rows) == in_order(theirs.to_pylist())
    fields = {one.name: one.dataType for one in BatchSource(options).schema()}
    fields.pop("other", None)
    assert list(fields) == theirs.column_names


def test_every_column_has_a_comment(small: str) -> None:
    """Every column of the package has a comment, which Spark shows."""
    for table in ("runs", "hist"):
        schema = BatchSource({"suite": small, "table": table}).schema()
        silent = {one.name for one in schema if not one.metadata["comment"]}
        assert silent == ({"even", "who"} if table == "runs" else set())


def test_options_are_those_of_the_command_and_the_parameters_of_the_suite(small: str) -> None:
    """Options are those of the command and the suite's parameters, in lower case and as text."""
    options = {"suite": small, "runs": "2", "matrix": "records=1,3; fast=true,false",
               "name": "topic", "budget": "wall_s=60; events=9", "set": "wait_ms=2.5"}  # fmt: skip
    plan = BatchSource(options).plan
    assert (len(plan.specs), plan.budget.wall_s, plan.budget.events) == (8, 60, 9)
    assert dict(plan.specs[-1].parameters) == {
        "records": 3, "name": "topic", "fast": False, "wait_ms": 2.5,
    }  # fmt: skip
    assert len(BatchSource({"suite": small, "matrix": "", "runs": "1"}).plan.specs) == 1


def test_a_scenario_file_is_a_suite_whose_keys_are_set(tmp_path: Path) -> None:
    """Any key of a scenario is an option; keys with capital letters need the option ``set``."""
    path = written(tmp_path, SCENARIO, "dies.toml")
    options = {"suite": path, "runs": "1", "matrix": "", "cluster.brokers": "2",
               "set": "workload.name=Name; stop.at_ms=2000"}  # fmt: skip
    (spec,) = BatchSource(options).plan.specs
    assert dict(spec.parameters) == {
        "workload.name": "Name", "stop.at_ms": 2000, "cluster.brokers": 2,
    }  # fmt: skip
    (row,) = read(options)
    assert (row["status"], row["cluster_brokers"], row["other"]) == ("ok", 2, None)


def test_columns_that_the_first_runs_lack_are_in_the_column_other(tmp_path: Path) -> None:
    """Columns and types that the first runs lack are preserved as JSON in ``other``."""
    rows = read({"suite": written(tmp_path, LATE, "late.py"), "runs": "1"})
    by_kind = {row["kind"]: row for row in rows}
    assert by_kind["first"]["other"] is by_kind["last"]["other"] is None
    assert (by_kind["first"]["number"], by_kind["middle"]["number"]) == (1.0, None)
    assert json.loads(by_kind["middle"]["other"]) == {"number": "none", "late": 7.0}


def test_a_failed_run_is_a_row(tmp_path: Path) -> None:
    path = written(tmp_path, TROUBLE, "trouble.py")
    rows = read({"suite": path, "runs": "1", "matrix": "kind=none,raise,promise,none"})
    assert [(row["kind"], row["status"]) for row in sorted(rows, key=lambda row: row["run_id"])] \
        == [("none", "ok"), ("raise", "error"), ("promise", "violation")]  # fmt: skip


def test_long_runs_come_first_and_short_ones_share_a_task(small: str) -> None:
    """Long runs come first and short ones share tasks, by the suite's own cost estimate."""
    reader = BatchReader(BatchSource({"suite": small, "runs": "40"}).plan, "hist",
                         BatchSource({"suite": small, "table": "hist"}).schema())  # fmt: skip
    shares = [part.value for part in reader.partitions()]
    assert sorted(place for share in shares for place in share) == list(range(80))
    lengths = [len(share) for share in shares]
    assert lengths == [9, 9, 9, 9, 14, 20, 10]
    assert shares[0] == [40, 41, 42, 43, 44, 45, 46, 47, 48]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "name a suite, or a file"),
        ({"path": "failovr"}, "did you mean 'failover'"),
        ({"path": "failover", "table": "run"}, "there is no table 'run'; there are runs, hist"),
        ({"path": "failover", "runs": "many"}, "option runs must be a whole number >= 1"),
        ({"path": "failover", "tasks": "0"}, "option tasks must be a whole number >= 1, not '0'"),
        ({"path": "failover", "brokrs": "3"}, "no option 'brokrs'; did you mean 'brokers'"),
        ({"path": "failover", "brokers": "x"}, "brokers must be int, not 'x'"),
        ({"path": "failover", "matrix": "brokers"}, "the option matrix takes name=value,value"),
        ({"path": "failover", "set": "brokers"}, "the option set takes name=value"),
        ({"path": "failover", "budget": "x=1"}, "there is no budget 'x'"),
        ({"path": "failover", "table": "samples"}, "needs the option samples"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_run(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        BatchSource(options)


class TestSpark:
    """Tests in one Spark session, which takes seconds to start."""

    pytestmark = ON_SPARK

    def test_spark_reads_the_rows_of_the_batch(self, small: str, tmp_path: Path) -> None:
        """Spark reads tables as frames and by SQL; a wrong option gets a suggestion."""
        run_suite(small, engine="serial", seed=1, out=tmp_path / "out", samples=1)
        with open_engine("spark", 2) as engine:
            session: Any = engine.session  # type: ignore[attr-defined]
            register(session)
            source = session.read.format("fakekafka").options(suite=small, seed=1, samples=1)
            for table in ("runs", "hist"):
                frame = source.option("table", table).load()
                assert frame.rdd.getNumPartitions() == 1
                rows = frame.drop("other").toArrow().to_pylist()
                theirs = BatchTables(tmp_path / "out").table(table).to_pylist()
                assert in_order(rows) == in_order(theirs)
            runs = (
                session.read.format("fakekafka").option("tasks", 3).option("matrix", "").load(small)
            )
            runs.createOrReplaceTempView("runs")
            assert runs.rdd.getNumPartitions() == 3
            query = "SELECT count(*) AS n, max(took_ms) > 0 AS took FROM runs"
            (row,) = session.sql(query).collect()
            assert (row.n, row.took) == (3, True)
            with pytest.raises(Exception, match="did you mean 'records'"):
                session.read.format("fakekafka").option("record", 3).load(small)


def test_tables_are_those_that_a_batch_writes() -> None:
    """The guide names every table, and each has its columns declared."""
    guide = Path(__file__).parents[2] / "docs" / "guides" / "batches.md"
    assert all(f"| `{table}` |" in guide.read_text(encoding="utf-8") for table in TABLES)
    assert set(COLUMNS) | {"runs"} == set(TABLES)
