"""The Parquet files of a batch: read so that a damaged one is told in one line, and repaired.

Pages are written with checksums, so a flipped bit is found as well as a file that is cut off.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...protocol.errors import UsageError
from .schema import TABLES, arrow

FACTS = "batch.json"
"""What a batch is: suite, parameters, seeds, machine."""


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
    """What ``batch.json`` says. Raises ``UsageError`` where it is not JSON, or of no batch."""
    path = out / FACTS
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(facts, dict) and "batch_id" in facts:
            return facts
        problem = "it has no batch_id"
    except ValueError as error:
        problem = str(error)
    raise UsageError(
        f"{path} is damaged ({problem}): without it nobody knows which runs the tables hold; "
        "--overwrite replaces the batch"
    )


def table_files(out: Path, table: str) -> list[Path]:
    """The files of a table: one, or the parts of a batch that has not ended."""
    whole = out / table / f"{table}.parquet"
    return [whole] if whole.exists() else sorted((out / table).glob("part-*.parquet"))


def read_file(path: Path, **options: Any) -> Any:
    """Read a file with the options of ``pyarrow.parquet.read_table``.

    Raises ``DamagedFile`` for one that is cut off or whose checksums are wrong.
    """
    pyarrow = arrow()
    try:
        return pyarrow.parquet.read_table(path, page_checksum_verification=True, **options)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, (FileNotFoundError, PermissionError)):
            raise
        raise DamagedFile(path, error) from None


def write_file(table: Any, path: Path) -> None:
    """Write under another name first, so that a crash leaves no half file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    arrow().parquet.write_table(table, temporary, write_page_checksum=True)
    temporary.replace(path)


def read_ids(out: Path) -> list[int]:
    """The runs that are in the tables."""
    ids: list[int] = []
    for path in table_files(out, "runs"):
        ids += read_file(path, columns=["run_id"]).column(0).to_pylist()
    return ids


def clean_up(out: Path) -> None:
    """Remove what a crash left of a part, and parts that were merged already."""
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
    """Remove what cannot be read, and with it all else that its runs left; say what, in lines.

    A part takes the parts of its name in the other tables along. The file of a whole table holds
    every run, and whose runs a part holds is not known any more while the parts are merged.
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
            said.append(f"{path} is damaged: its runs are made again")
            if not is_part:
                return said
    return said


def _is_whole(path: Path) -> bool:
    """Whether a file can be read to its end, a piece at a time: it may be larger than memory."""
    pyarrow = arrow()
    try:
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            for number in range(file.num_row_groups):
                file.read_row_group(number)
    except (pyarrow.ArrowException, OSError):
        return not path.exists()
    return True
