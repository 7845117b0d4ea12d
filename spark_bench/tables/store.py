"""The directory of a batch: tables that grow while it runs, and can be read at any time.

Results are written in parts. The part of ``runs`` comes last, so a run in it has its rows in every
table, and other remains of a part after a crash are dropped when the batch is resumed. When all
runs are done, the parts are merged into one file per table, in the order of the runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...protocol.errors import UsageError
from ..planning.carry_out import Outcome
from ..planning.plan import BatchPlan, labels, parameter_kinds, varied
from .files import (
    FACTS,
    clean_up,
    drop_damaged,
    read_facts,
    read_file,
    read_ids,
    table_files,
    write_file,
    writing,
)
from .rows import run_row, table_rows
from .schema import TABLES, arrow, column_docs, fixed_schema, ordered, runs_schema

_FLUSH_S = 2.0
_FLUSH_RUNS = 50
"""A part is written after this many seconds or finished runs, whichever comes first."""
_SORTED_VALUES_MAX = 150_000
"""Number of values that are sorted at a time at the end, which limits the memory for large batches.
"""
_ORDER = ("run_id", "metric", "second", "bucket", "at_us")
_FORMAT = 1


def make_directory(out: Path) -> list[Path]:
    """Make sure, before hours of runs, that tables can be written to ``out``.

    Returns the directories that were created, the innermost first. Raises ``UsageError`` if pyarrow
    is missing, or if ``out`` cannot be a directory or has other files and no batch.
    """
    arrow()
    other_files = [] if (out / FACTS).exists() else _names_in(out)
    if other_files:
        raise UsageError(
            f"{out} has other files and no batch ({other_files[0]}): "
            "name a new or an empty directory"
        )
    created = [path for path in (out, *out.parents) if not path.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(f"tables cannot be written to {out}: {error.strerror}") from None
    return created


def require_no_other_batch(out: Path, *, overwrite: bool, resume: bool) -> None:
    """Raise ``UsageError`` if ``out`` has a batch, unless ``overwrite`` or ``resume`` is set."""
    if (out / FACTS).exists() and not (overwrite or resume):
        raise UsageError(
            f"{out} has the tables of another batch: name another directory, or give --resume to "
            "continue it, or --overwrite to replace it"
        )


def _names_in(out: Path) -> list[str]:
    """Return the names in a directory except hidden files; none if it cannot be read."""
    try:
        return sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
    except OSError:
        return []


def remove_empty(created: list[Path]) -> None:
    """Remove the directories that ``make_directory`` created, if they are empty."""
    with contextlib.suppress(OSError):
        for path in created:
            path.rmdir()


class BatchStore:
    """Writes the tables of a batch."""

    def __init__(self, out: Path, plan: BatchPlan, engine: str, *, resume: bool = False) -> None:
        """Begin or, with ``resume``, continue; ``done`` has the ids of runs already stored."""
        self._out = out
        self._plan = plan
        self._engine = engine
        self._pending: list[Outcome] = []
        self._flushed_at = time.monotonic()
        suite = plan.suite
        self._parameters = kinds = parameter_kinds(plan)
        self._docs = column_docs(suite.measures, kinds)
        self._about = {"batch_id": plan.batch_id, "suite": plan.source.name, "format": _FORMAT}
        self.done: frozenset[int] = frozenset()
        self.dropped: list[str] = []
        """Lines about damaged files, whose runs are therefore not in ``done``."""
        self._next_part = 0
        if resume and (out / FACTS).exists():
            self._resume()
        else:
            for name in TABLES:
                shutil.rmtree(out / name, ignore_errors=True)
            self._write_json(is_complete=False)

    def _resume(self) -> None:
        facts = read_facts(self._out)
        if facts["batch_id"] != self._plan.batch_id:
            raise UsageError(
                f"{self._out} has another batch ({facts['command']}): resume it with the suite, "
                "the parameters, the seeds and the budgets that it was begun with"
            )
        clean_up(self._out)
        self.dropped = drop_damaged(self._out)
        parts = [int(path.stem.split("-")[1]) for path in (self._out / "runs").glob("part-*")]
        self._next_part = max(parts, default=-1) + 1
        self.done = frozenset(read_ids(self._out))

    def _write_json(self, *, is_complete: bool) -> None:
        plan = self._plan
        suite = plan.suite
        facts = {
            "format": _FORMAT,
            "batch_id": plan.batch_id,
            "suite": plan.source.name,
            "about": suite.about,
            "source": {"kind": plan.source.kind, "text": plan.source.text,
                       "path": plan.source.path},
            "command": f"fakekafka bench run {plan.source.path or plan.source.name}",
            "runs": len(plan.specs),
            "seeds": [plan.specs[0].seed, plan.specs[-1].seed],
            "configurations": plan.specs[-1].configuration + 1,
            "parameters": list(self._parameters),
            "varied": list(varied(plan)),
            "labels": labels(plan),
            "measures": dict(suite.measures),
            "headline": suite.headline,
            "published": [dict(row) for row in suite.published],
            "budget": {name: getattr(plan.budget, name) for name in
                       ("events", "virtual_s", "wall_s", "memory_mb")},
            "engine": self._engine,
            "machine": {"python": platform.python_version(), "system": platform.platform(),
                        "cores": os.cpu_count()},
            "complete": is_complete,
        }  # fmt: skip
        _replace(self._out / FACTS, json.dumps(facts, indent=2).encode())

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a run, which is written to disk soon."""
        self._pending.append(outcome)
        is_due = time.monotonic() - self._flushed_at >= _FLUSH_S
        if is_due or len(self._pending) >= _FLUSH_RUNS:
            self.flush()

    def flush(self) -> None:
        """Write the pending outcomes as a part."""
        pending, self._pending = self._pending, []
        self._flushed_at = time.monotonic()
        if not pending:
            return
        name = f"part-{self._next_part:05d}.parquet"
        self._next_part += 1
        for table in TABLES[1:]:
            rows = [row for outcome in pending for row in table_rows(table, outcome, self._engine)]
            if rows:
                self._write(table, name, rows)
        run_rows = [run_row(outcome) for outcome in pending]
        names = dict.fromkeys(column for row in run_rows for column in row)
        schema = runs_schema(names, run_rows, self._parameters, self._about, self._docs)
        write_file(arrow().Table.from_pylist(run_rows, schema=schema), self._out / "runs" / name)

    def _write(self, table: str, name: str, rows: list[tuple[Any, ...]]) -> None:
        schema = fixed_schema(table, self._about)
        columns = [arrow().array(list(column), field.type) for column, field in
                   zip(zip(*rows, strict=True), schema, strict=True)]  # fmt: skip
        write_file(arrow().table(columns, schema=schema), self._out / table / name)

    def read_done(self) -> Iterator[tuple[dict[str, Any], dict[str, list[tuple[int, int]]]]]:
        """Yield the row and the histograms of every stored run."""
        if not self.done:
            return
        counts: dict[int, dict[str, list[tuple[int, int]]]] = {}
        for path in table_files(self._out, "hist"):
            table = read_file(path, columns=["run_id", "metric", "bucket", "n"])
            for run_id, metric, bucket, count in zip(*table.to_pydict().values(), strict=True):
                counts.setdefault(run_id, {}).setdefault(metric, []).append((bucket, count))
        for path in table_files(self._out, "runs"):
            for row in read_file(path).to_pylist():
                yield row, counts.pop(row["run_id"], {})

    def remove(self) -> None:
        """Remove the file with the facts, if no run was done."""
        (self._out / FACTS).unlink(missing_ok=True)

    def finish(self) -> None:
        """Merge the parts into one sorted file per table, when all runs are stored."""
        self.flush()
        runs = len(self._plan.specs)
        _merge(self._out / "runs", runs, _full_runs_schema(self._out / "runs", self._parameters))
        for table in TABLES[1:]:
            _merge(self._out / table, runs, fixed_schema(table, self._about))
        self._write_json(is_complete=True)


# -- merging -----------------------------------------------------------------------------------


class _Part:
    """A file of a table with some of the runs."""

    __slots__ = ("first", "last", "path", "rows")

    def __init__(self, path: Path) -> None:
        metadata = arrow().parquet.read_metadata(path)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        column = metadata.schema.names.index("run_id")
        spans = [group.column(column).statistics for group in groups]
        self.path = path
        self.rows = metadata.num_rows
        self.first = min((span.min for span in spans), default=0)
        self.last = max((span.max for span in spans), default=-1)


def _merge(folder: Path, runs: int, schema: Any) -> None:
    """Merge the parts into one file, in the order of the runs.

    A few runs are merged at a time, as the table may be larger than memory.
    """
    merged_file = folder / f"{folder.name}.parquet"
    existing = [merged_file] if merged_file.exists() else []
    parts = [_Part(path) for path in (*existing, *sorted(folder.glob("part-*.parquet")))]
    if len(parts) == len(existing):
        return
    keys = [(name, "ascending") for name in _ORDER if name in schema.names]
    value_count = sum(part.rows for part in parts) * len(schema)
    step = max(1, runs * _SORTED_VALUES_MAX // max(1, value_count))
    with writing(merged_file, schema) as writer:
        for first in range(0, runs, step):
            last = first + step - 1
            filters = [("run_id", ">=", first), ("run_id", "<=", last)]
            tables = [
                _in_schema(read_file(part.path, filters=filters, use_threads=False), schema)
                for part in parts
                if part.first <= last and part.last >= first
            ]
            merged = arrow().concat_tables(tables).sort_by(keys) if tables else None
            if merged is not None and merged.num_rows:
                writer.write_table(merged.combine_chunks())
    for part in parts[len(existing) :]:
        part.path.unlink()


def _full_runs_schema(folder: Path, parameters: dict[str, type]) -> Any:
    """Return the schema of ``runs``, as a column may be in only some of the parts."""
    pyarrow = arrow()
    schemas = [pyarrow.parquet.read_schema(path) for path in sorted(folder.glob("*.parquet"))]
    if not schemas:
        return pyarrow.schema([])
    fields = {field.name: field for schema in schemas for field in schema}
    names = ordered(fields, parameters)
    return pyarrow.schema([fields[name] for name in names], metadata=schemas[0].metadata)


def _in_schema(table: Any, schema: Any) -> Any:
    """Return the rows with all columns of the schema; columns that the table lacks are null."""
    pyarrow = arrow()
    columns = [
        table[field.name] if field.name in table.column_names
        else pyarrow.nulls(table.num_rows, field.type)
        for field in schema
    ]  # fmt: skip
    return pyarrow.table(columns, names=schema.names).cast(schema)


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(content)
    temporary.replace(path)
