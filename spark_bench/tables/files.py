"""The Parquet files of a batch. A damaged one is reported in one line, and can be repaired.

A file has its own checksum in its footer, which reveals flipped bits as well as truncation. Parquet
has checksums of pages only, which do not cover names, types and numbers of rows.
"""

from __future__ import annotations

import json
import mmap
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...protocol.errors import UsageError
from .schema import TABLES, arrow

FACTS = "batch.json"
"""File with the facts of a batch: suite, parameters, seeds, machine."""
_CHECKSUM_KEY = b"crc32 of this file without these eight digits: "
_DIGITS = 8
_CHUNK_BYTES = 1 << 20


class DamagedFile(UsageError):
    """A file of a table cannot be read."""

    def __init__(self, path: Path, cause: Exception) -> None:
        first_line = (str(cause).splitlines() or [type(cause).__name__])[0]
        super().__init__(
            f"{path} is damaged ({first_line}): the command that made the batch makes its runs "
            "again, with --resume"
        )
        self.path = path


def read_facts(out: Path) -> dict[str, Any]:
    """Read ``batch.json``. Raises ``UsageError`` if it is not JSON or does not describe a batch."""
    path = out / FACTS
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(facts, dict) and "batch_id" in facts:
            return facts
        problem = "it has no batch_id"
    except ValueError as error:
        problem = str(error)
    raise UsageError(
        f"{path} is damaged ({problem}): without it the runs in the tables are unknown; "
        "--overwrite replaces the batch"
    )


def table_files(out: Path, table: str) -> list[Path]:
    """Return the files of a table: one, or the parts of a batch that has not ended."""
    merged = out / table / f"{table}.parquet"
    return [merged] if merged.exists() else sorted((out / table).glob("part-*.parquet"))


def read_file(path: Path, **options: Any) -> Any:
    """Read a file with the options of ``pyarrow.parquet.read_table``.

    Raises ``DamagedFile`` if the file is cut off or its checksum is wrong.
    """
    pyarrow = arrow()
    try:
        _verify_checksum(path)
        return pyarrow.parquet.read_table(path, page_checksum_verification=True, **options)
    except (pyarrow.ArrowException, OSError, _WrongChecksum) as error:
        if isinstance(error, (FileNotFoundError, PermissionError)):
            raise
        raise DamagedFile(path, error) from None


def write_file(table: Any, path: Path) -> None:
    """Write a table as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path, table.schema) as writer:
        writer.write_table(table)


@contextmanager
def writing(path: Path, schema: Any) -> Iterator[Any]:
    """Open a writer of tables into a file. The file has another name until it is complete, so that
    a crash leaves no partial file."""
    temporary = path.with_suffix(".tmp")
    placeholder = {"checksum": _CHECKSUM_KEY + b"0" * _DIGITS}
    with_placeholder = schema.with_metadata({**(schema.metadata or {}), **placeholder})
    with arrow().parquet.ParquetWriter(
        temporary, with_placeholder, write_page_checksum=True
    ) as writer:
        yield writer
    with temporary.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        position = data.rfind(_CHECKSUM_KEY) + len(_CHECKSUM_KEY)
        data[position : position + _DIGITS] = _checksum(data, position)
    temporary.replace(path)


class _WrongChecksum(Exception):
    """The checksum of a file is wrong."""


def _verify_checksum(path: Path) -> None:
    """Raise ``_WrongChecksum`` for a file with a wrong checksum. A file of an earlier release has
    only checksums of pages, and passes."""
    with path.open("rb") as file:
        if not file.seek(0, 2):
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            position = data.rfind(_CHECKSUM_KEY) + len(_CHECKSUM_KEY)
            if position >= len(_CHECKSUM_KEY) and data[position : position + _DIGITS] != _checksum(
                data, position
            ):
                raise _WrongChecksum("its checksum is wrong")


def _checksum(data: Any, position: int) -> bytes:
    """Return the crc32 of a file as digits, leaving out the digits at a place."""
    value = 0
    for first, last in ((0, position), (position + _DIGITS, len(data))):
        for start in range(first, last, _CHUNK_BYTES):
            value = zlib.crc32(data[start : min(start + _CHUNK_BYTES, last)], value)
    return b"%08x" % value


def read_ids(out: Path) -> list[int]:
    """Return the ids of the runs that are in the tables."""
    ids: list[int] = []
    for path in table_files(out, "runs"):
        ids += read_file(path, columns=["run_id"]).column(0).to_pylist()
    return ids


def clean_up(out: Path) -> None:
    """Remove incomplete parts that a crash left, and parts that were already merged."""
    for table in TABLES:
        if (out / table / f"{table}.parquet").exists():
            for path in (out / table).glob("part-*"):
                path.unlink()
    is_merged = (out / "runs" / "runs.parquet").exists()
    stored_parts = {path.name for path in (out / "runs").glob("part-*.parquet")}
    for table in TABLES:
        for path in (out / table).glob("*"):
            is_part = path.name.startswith("part-")
            if path.suffix == ".tmp" or (
                is_part and not is_merged and path.name not in stored_parts
            ):
                path.unlink()


def drop_damaged(out: Path) -> list[str]:
    """Remove unreadable files and all other rows of their runs; return lines about them.

    With a part, the parts of the same name in the other tables are removed. With the merged file of
    a table, or a part during merging, whose runs are no longer known, all tables are removed.
    """
    notes = []
    for table in TABLES:
        for path in table_files(out, table):
            if _is_readable(path):
                continue
            is_part = path.name.startswith("part-") and (out / "runs" / path.name).exists()
            for other_table in TABLES:
                paths = (
                    [out / other_table / path.name] if is_part else table_files(out, other_table)
                )
                for damaged in paths:
                    damaged.unlink(missing_ok=True)
            notes.append(f"{path} was damaged: its runs are repeated")
            if not is_part:
                return notes
    return notes


def _is_readable(path: Path) -> bool:
    """Return whether a file can be read to its end, piece by piece, as it may not fit in memory."""
    pyarrow = arrow()
    try:
        _verify_checksum(path)
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            for number in range(file.num_row_groups):
                file.read_row_group(number)
    except (pyarrow.ArrowException, OSError, _WrongChecksum):
        return not path.exists()
    return True
