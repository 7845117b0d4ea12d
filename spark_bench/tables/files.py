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
_SEAL = b"crc32 of this file without these eight digits: "
_DIGITS = 8
_PIECE_BYTES = 1 << 20


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
    whole = out / table / f"{table}.parquet"
    return [whole] if whole.exists() else sorted((out / table).glob("part-*.parquet"))


def read_file(path: Path, **options: Any) -> Any:
    """Read a file with the options of ``pyarrow.parquet.read_table``.

    Raises ``DamagedFile`` if the file is cut off or its checksum is wrong.
    """
    pyarrow = arrow()
    try:
        _check_seal(path)
        return pyarrow.parquet.read_table(path, page_checksum_verification=True, **options)
    except (pyarrow.ArrowException, OSError, _BrokenSeal) as error:
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
    seal = {"checksum": _SEAL + b"0" * _DIGITS}
    sealed = schema.with_metadata({**(schema.metadata or {}), **seal})
    with arrow().parquet.ParquetWriter(temporary, sealed, write_page_checksum=True) as writer:
        yield writer
    with temporary.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        place = data.rfind(_SEAL) + len(_SEAL)
        data[place : place + _DIGITS] = _checksum(data, place)
    temporary.replace(path)


class _BrokenSeal(Exception):
    """The checksum of a file is wrong."""


def _check_seal(path: Path) -> None:
    """Raise ``_BrokenSeal`` for a file with a wrong checksum. A file of an earlier release, which
    has only checksums of pages, passes."""
    with path.open("rb") as file:
        if not file.seek(0, 2):
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            place = data.rfind(_SEAL) + len(_SEAL)
            if place >= len(_SEAL) and data[place : place + _DIGITS] != _checksum(data, place):
                raise _BrokenSeal("its checksum is wrong")


def _checksum(data: Any, place: int) -> bytes:
    """Return the crc32 of a file as digits, leaving out the digits at a place."""
    value = 0
    for first, last in ((0, place), (place + _DIGITS, len(data))):
        for start in range(first, last, _PIECE_BYTES):
            value = zlib.crc32(data[start : min(start + _PIECE_BYTES, last)], value)
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
    whole = (out / "runs" / "runs.parquet").exists()
    have = {path.name for path in (out / "runs").glob("part-*.parquet")}
    for table in TABLES:
        for path in (out / table).glob("*"):
            is_part = path.name.startswith("part-")
            if path.suffix == ".tmp" or (is_part and not whole and path.name not in have):
                path.unlink()


def drop_damaged(out: Path) -> list[str]:
    """Remove unreadable files and all other rows of their runs; return lines about them.

    With a part, the parts of the same name in the other tables are removed. With the merged file of
    a table, or a part during merging, whose runs are no longer known, all tables are removed.
    """
    said = []
    for table in TABLES:
        for path in table_files(out, table):
            if _is_whole(path):
                continue
            is_part = path.name.startswith("part-") and (out / "runs" / path.name).exists()
            for other in TABLES:
                gone = [out / other / path.name] if is_part else table_files(out, other)
                for one in gone:
                    one.unlink(missing_ok=True)
            said.append(f"{path} was damaged: its runs are made again")
            if not is_part:
                return said
    return said


def _is_whole(path: Path) -> bool:
    """Return whether a file can be read to its end, piece by piece, as it may not fit in memory."""
    pyarrow = arrow()
    try:
        _check_seal(path)
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            for number in range(file.num_row_groups):
                file.read_row_group(number)
    except (pyarrow.ArrowException, OSError, _BrokenSeal):
        return not path.exists()
    return True
