"""Writing files of the real disk, even where the system writes less than it was given."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from fakekafka.replication.disk import file_io
from fakekafka.tests.support.paths import ROOT

RECORDS = bytes(range(256)) * 4

pytestmark = pytest.mark.pure  # it replaces what the compiled module calls


@pytest.fixture(params=["whole", "cut short"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A system that writes all it is given, and one that writes at most 100 bytes at a time."""
    if request.param == "cut short":
        write = os.write
        monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:100]))
    return str(request.param)


@pytest.mark.usefixtures("system")
def test_a_file_is_replaced_by_all_that_is_written(tmp_path: Path) -> None:
    """A replaced file has every byte, and no other file stays in the directory."""
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_bytes(b"before")
    file_io.write_atomically(str(path), RECORDS)
    assert path.read_bytes() == RECORDS
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("system")
def test_records_are_appended_whole(tmp_path: Path) -> None:
    """Records are appended whole behind the existing ones."""
    handles = file_io.FileHandles()
    path = tmp_path / "00000000000000000000.log"
    handles.append(str(path), RECORDS)
    handles.append(str(path), RECORDS)
    handles.close_all()
    assert path.read_bytes() == RECORDS * 2


def test_files_are_opened_for_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows would write two bytes for each byte 10, unless a file is opened with O_BINARY."""
    monkeypatch.setattr(file_io, "_BINARY", 1 << 40)
    asked: list[int] = []

    def opened(path: str, flags: int, mode: int) -> int:
        asked.append(flags)
        return 0

    monkeypatch.setattr(os, "open", opened)
    file_io.open_binary(str(tmp_path / "log"), os.O_WRONLY)
    assert asked == [os.O_WRONLY | 1 << 40]


def test_no_other_place_opens_a_file_for_writing_by_its_descriptor() -> None:
    """Only the function above opens files for writing by descriptor; lock files, which hold no
    data, are exempt."""
    allowed = {"replication/disk/file_io.py", "spark_bench/tables/lock.py", "cli/exits.py"}
    found = set()
    for folder in ("replication", "testing", "tracing", "cli", "zkfake", "wire", "spark_bench"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if re.search(r"\bos\.open\((?!self\._directory / \"lock\")", text):
                found.add(path.relative_to(ROOT).as_posix())
    assert found == allowed
