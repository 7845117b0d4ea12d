"""Parquet: a row for each event, for DuckDB, Spark and pandas."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any, BinaryIO

import pyarrow
from pyarrow import parquet

from ..events import Event
from ..trace import StoredTrace

_ROWS = 10_000
"""Number of rows in a row group, and of events in memory at once."""
SCHEMA = pyarrow.schema(
    [
        ("seq", pyarrow.int64()),
        ("time_us", pyarrow.int64()),
        ("kind", pyarrow.string()),
        ("actor", pyarrow.string()),
        ("peer", pyarrow.string()),
        ("type", pyarrow.string()),
        ("message_id", pyarrow.int64()),
        ("cause", pyarrow.int64()),
        ("op", pyarrow.int64()),
        ("controller_epoch", pyarrow.int64()),
        ("leader_epoch", pyarrow.int64()),
        ("zk_version", pyarrow.int64()),
        ("fields", pyarrow.string()),
        ("delta", pyarrow.string()),
        ("why", pyarrow.string()),
    ]
)
"""The columns of the table; ``fields`` and ``delta`` are JSON."""


def write(trace: StoredTrace, stream: BinaryIO) -> None:
    header = json.dumps(trace.header, ensure_ascii=False, default=str)
    schema = SCHEMA.with_metadata({"fakekafka.header": header})
    with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        rows = map(_row, trace.events())
        while group := list(islice(rows, _ROWS)):
            writer.write_table(pyarrow.Table.from_pylist(group, schema))


def _row(event: Event) -> dict[str, Any]:
    row = event.as_dict()
    epochs = row.pop("epochs") or (None, None, None)
    row.update(zip(("controller_epoch", "leader_epoch", "zk_version"), epochs, strict=True))
    for name in ("fields", "delta"):
        row[name] = json.dumps(row[name], ensure_ascii=False) if row[name] else None
    return row
