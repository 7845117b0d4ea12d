"""A batch as a data source of Spark: ``spark.read.format("fakekafka")``.

The runs are carried out when Spark reads, by the reading tasks, and again whenever an action reads
them again. Each produces the row that ``fakekafka bench run`` writes.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from ..protocol.errors import UsageError
from .engines.spark import TASK_S
from .engines.spark_worker import freeze_modules, ship_package
from .measuring.parameters import hint
from .planning.carry_out import Outcome, carry_out
from .planning.plan import BatchPlan, make_plan, parameter_kinds
from .planning.schedule import CostModel
from .planning.settings import read_matrix, read_numbers, read_settings
from .planning.suite import Suite, find_source, load_suite
from .tables.rows import run_row, table_rows
from .tables.schema import TABLES, column_docs, fixed_schema, runs_schema

NAME = "fakekafka"
OPTIONS = ("suite", "table", "runs", "seed", "matrix", "set", "budget", "samples", "tasks")
"""Options of the format; every other option is a parameter of the suite."""
OTHER_COLUMN = "other"
OTHER_COLUMN_DOC = (
    "as JSON, what the run measured and the columns before do not have; null as a rule"
)


def register(session: SparkSession) -> None:
    """Let a session read the format ``fakekafka``; send this package to a cluster's workers."""
    ship_package(session.sparkContext)
    session.dataSource.register(BatchSource)


class BatchSource(DataSource):
    """The runs of a suite; ``docs/guides/batches.md`` explains the options."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Raises ``UsageError`` for a batch that cannot be run."""
        super().__init__(dict(options))
        remaining = {name.lower(): text for name, text in options.items()}
        path = remaining.pop("path", None)  # the argument of load(...)
        name = remaining.pop("suite", path)
        if not name:
            raise UsageError("name a suite, or a file: load('failover') or option('suite', ...)")
        self.table: str = remaining.pop("table", "runs")
        if self.table not in TABLES:
            raise UsageError(f"there is no table {self.table!r}; there are {', '.join(TABLES)}")
        suite = load_suite(find_source(name))
        self.tasks: int | None = _take_whole_number(remaining, "tasks")
        matrix = remaining.pop("matrix", None)
        self.plan: BatchPlan = make_plan(
            name,
            _take_whole_number(remaining, "runs"),
            _take_whole_number(remaining, "seed") or 0,
            matrix=None if matrix is None else _read_matrix(suite, matrix),
            budget=read_numbers("the option budget", _split_settings(remaining.pop("budget", ""))),
            samples=_take_whole_number(remaining, "samples") or 0,
            values=_read_values(suite, remaining),
        )
        if self.table == "samples" and not self.plan.samples:
            raise UsageError("the table samples needs the option samples: of how many runs of each "
                             "configuration every value is kept")  # fmt: skip

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the table; those of ``runs`` are found by carrying out two runs."""
        if self.table != "runs":
            return _spark_schema(fixed_schema(self.table, {}))
        plan = self.plan
        # The first and the last configuration; further values of other runs go into one column.
        specs = {spec.configuration: spec for spec in plan.specs[:: max(1, len(plan.specs) - 1)]}
        rows = [run_row(carry_out(plan, spec)) for spec in specs.values()]
        names = dict.fromkeys(name for row in rows for name in row)
        kinds = parameter_kinds(plan)
        docs = column_docs(plan.suite.measures, kinds)
        spark_schema = _spark_schema(runs_schema(names, rows, kinds, {}, docs))
        return spark_schema.add(
            StructField(OTHER_COLUMN, _STRING, metadata={"comment": OTHER_COLUMN_DOC})
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        return BatchReader(self.plan, self.table, schema, self.tasks)


class BatchReader(DataSourceReader):
    """Carries out the runs of a partition, and returns a batch of rows for each."""

    def __init__(
        self, plan: BatchPlan, table: str, schema: StructType, tasks: int | None = None
    ) -> None:
        self.plan = plan
        self.table = table
        self.tasks = tasks
        self.arrow_schema: Any = to_arrow_schema(schema, timezone="UTC")

    def partitions(self) -> list[InputPartition]:
        """Return the longest runs first, as Spark starts tasks in order; short ones share tasks."""
        model = CostModel(self.plan)
        indices = {spec.run_id: index for index, spec in enumerate(self.plan.specs)}
        order = model.longest_first(self.plan.specs)
        if self.tasks is not None:
            shares = [order[first :: self.tasks] for first in range(min(self.tasks, len(order)))]
            return [InputPartition([indices[spec.run_id] for spec in share]) for share in shares]
        tasks: list[list[int]] = []
        work_s = TASK_S
        for spec in order:
            if work_s >= TASK_S:
                tasks.append([])
                work_s = 0.0
            tasks[-1].append(indices[spec.run_id])
            work_s += model.estimate_s(spec)
        return [InputPartition(share) for share in tasks]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        freeze_modules()
        worker = f"{socket.gethostname()}, process {os.getpid()}"
        for index in partition.value:
            outcome = carry_out(self.plan, self.plan.specs[index], worker)
            yield self._batch(outcome)

    def _batch(self, outcome: Outcome) -> pyarrow.RecordBatch:
        if self.table == "runs":
            row = _fit_to_schema(run_row(outcome), self.arrow_schema)
            return pyarrow.RecordBatch.from_pylist([row], schema=self.arrow_schema)
        rows = table_rows(self.table, outcome, "spark")
        columns = zip(*rows, strict=True) if rows else [()] * len(self.arrow_schema)
        arrays = [pyarrow.array(list(column), field.type) for column, field in
                  zip(columns, self.arrow_schema, strict=True)]  # fmt: skip
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)


def _fit_to_schema(row: dict[str, Any], schema: pyarrow.Schema) -> dict[str, Any]:
    """Return a row with the columns of a schema; values that do not fit are in ``other``."""
    columns: dict[str, Any] = {}
    other: dict[str, Any] = {}
    for name, value in row.items():
        index = schema.get_field_index(name)
        fits = index >= 0 and (value is None or _fits(value, schema.field(index).type))
        (columns if fits else other)[name] = value
    if other and schema.get_field_index(OTHER_COLUMN) >= 0:
        columns[OTHER_COLUMN] = json.dumps(other)
    return columns


def _fits(value: Any, kind: pyarrow.DataType) -> bool:
    if isinstance(value, bool):
        return bool(pyarrow.types.is_boolean(kind))
    if isinstance(value, int):
        return bool(pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind))
    if isinstance(value, float):
        return bool(pyarrow.types.is_floating(kind))
    return bool(pyarrow.types.is_string(kind))


# -- options -----------------------------------------------------------------------------------


def _take_whole_number(remaining: dict[str, str], name: str) -> int | None:
    """Take a whole number from the options."""
    text = remaining.pop(name, None)
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        value = -1
    minimum = 1 if name in ("tasks", "runs") else 0
    if value < minimum:
        raise UsageError(f"the option {name} must be a whole number >= {minimum}, not {text!r}")
    return value


def _split_settings(text: str) -> list[str]:
    """Split settings that are separated by semicolons."""
    return [part.strip() for part in text.split(";") if part.strip()]


def _read_matrix(suite: Suite, text: str) -> dict[str, Any]:
    """Parse ``name=value,value; name=value``; an empty text leaves a single configuration."""
    return (
        read_matrix(suite, _split_settings(text), is_disabled=False, option="the option matrix")
        or {}
    )


def _read_values(suite: Suite, remaining: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters given in the option ``set`` and as options of their own."""
    settings = _split_settings(remaining.get("set", ""))
    for name, text in remaining.items():
        if name == "set":
            continue
        # Spark converts the names of options to lower case.
        known = {parameter.lower(): parameter for parameter in suite.parameters}
        if suite.parameters and name not in known:
            raise UsageError(
                f"there is no option {name!r}{hint(name, (*OPTIONS, *known))}; options are "
                f"{', '.join(OPTIONS)}, and the parameters of {suite.name}"
            )
        settings.append(f"{known.get(name, name)}={text}")
    return read_settings(suite, settings, option="the option set")


# -- columns -----------------------------------------------------------------------------------

_STRING = from_arrow_type(pyarrow.string())


def _spark_schema(schema: Iterable[pyarrow.Field]) -> StructType:
    """Return Spark's columns, with their meanings as comments."""
    return StructType(
        [
            StructField(
                field.name,
                from_arrow_type(field.type),
                metadata={"comment": (field.metadata or {}).get(b"doc", b"").decode()},
            )
            for field in schema
        ]
    )
