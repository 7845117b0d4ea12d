"""Tables of a batch as Parquet: ``runs`` (a row a run), ``histograms``, ``cost``."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..protocol.errors import UsageError

if TYPE_CHECKING:
    from .results import BatchResult


TABLES = ("runs", "histograms", "cost")


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError("writing Parquet needs pyarrow: pip install 'fakekafka[spark]'") from None
    return pyarrow


def _write(table: Any, out: Path, name: str) -> None:
    """Write under another name first: a broken batch leaves no half file."""
    import pyarrow.parquet as parquet

    path = out / name / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    parquet.write_table(table, temporary)
    os.replace(temporary, path)


def prepare(out: Path, *, overwrite: bool) -> list[Path]:
    """Make sure, before hours of runs, that tables can be written to ``out``.

    Gives the directories that it made for that, the innermost first. Raises ``UsageError`` when
    pyarrow is missing, ``out`` cannot be a directory, or it has tables that nobody said may be
    overwritten.
    """
    _arrow()
    taken = [name for name in TABLES if (out / name / f"{name}.parquet").exists()]
    if taken and not overwrite:
        raise UsageError(
            f"{out} has the tables of another batch ({', '.join(taken)}): name another directory, "
            "or say --overwrite"
        )
    made = [path for path in (out, *out.parents) if not path.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"tables cannot be written to {out}: {error.strerror}") from None
    return made


def remove_empty(made: list[Path]) -> None:
    """Remove the directories that ``prepare`` made, as far as nothing is in them."""
    with contextlib.suppress(OSError):
        for path in made:
            path.rmdir()


def write_tables(out: Path, batch: BatchResult, results: list[dict[str, Any]]) -> None:
    """Write the three tables under ``out``; the first two depend on nothing but the specs."""
    arrow = _arrow()
    names = list(dict.fromkeys(name for row in batch.rows for name in row))
    columns = {name: [row.get(name) for row in batch.rows] for name in names}
    _write(arrow.table(columns), out, "runs")
    counts = [
        (result["row"]["run_id"], metric, bucket, count)
        for result in results
        for metric, rows in result["histograms"].items()
        for bucket, count in rows
    ]
    schema = arrow.schema(
        [
            ("run_id", arrow.int64()),
            ("metric", arrow.string()),
            ("bucket", arrow.int32()),
            ("n", arrow.int64()),
        ]
    )
    parts = [list(part) for part in zip(*counts, strict=True)] or [[], [], [], []]
    _write(arrow.table(parts, schema=schema), out, "histograms")
    cost = {
        "run_id": [result["row"]["run_id"] for result in results],
        "engine": [batch.engine] * len(results),
        "wall_ms": [result["wall_ms"] for result in results],
    }
    _write(arrow.table(cost), out, "cost")
