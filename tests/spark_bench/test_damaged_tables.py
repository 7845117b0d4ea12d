"""Damaged tables and concurrent processes: reported in one line, and repaired or refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as parquet
import pytest
from fakekafka import UsageError
from fakekafka.spark_bench.batch import BatchEnded, run_suite
from fakekafka.spark_bench.planning.carry_out import carry_out
from fakekafka.spark_bench.planning.plan import make_plan
from fakekafka.spark_bench.tables.files import DamagedFile, read_file, write_file
from fakekafka.spark_bench.tables.lock import locked
from fakekafka.spark_bench.tables.reader import BatchTables
from fakekafka.spark_bench.tables.store import BatchStore
from fakekafka.tests.spark_bench.suites_for_tests import SMALL, written


@pytest.fixture
def small(tmp_path: Path) -> str:
    return written(tmp_path, SMALL, "small.py")


def cut(path: Path) -> None:
    """Truncate a file to its first half."""
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    """Change a byte of the values, which the footer does not reveal."""
    content = bytearray(path.read_bytes())
    column = parquet.read_metadata(path).row_group(0).column(0)
    begins = column.dictionary_page_offset or column.data_page_offset
    content[begins + column.total_compressed_size - 1] ^= 0xFF
    path.write_bytes(content)


def test_a_flipped_bit_is_detected_anywhere_in_a_table(tmp_path: Path) -> None:
    """A flipped bit anywhere in a table is detected unless it is insignificant."""
    path = tmp_path / "cost.parquet"
    rows = pyarrow.table({"run_id": [0, 1, 2], "engine": ["serial"] * 3, "wall_ms": [1.5, 2.5, 4]})
    write_file(rows, path)
    assert read_file(path).equals(rows)
    content = path.read_bytes()
    told: list[str] = []
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            assert read_file(path, columns=["run_id", "engine", "wall_ms"]).equals(rows)
        except DamagedFile as error:
            told.append(str(error))
    assert len(told) > len(content) - 64
    assert not any("\n" in line for line in told)


def test_a_file_without_a_checksum_is_read(tmp_path: Path) -> None:
    """A file of an earlier release, without a checksum, is read; Parquet's own finds damage."""
    path = tmp_path / "cost.parquet"
    rows = pyarrow.table({"run_id": [0, 1, 2]})
    parquet.write_table(rows, path, write_page_checksum=True)
    assert read_file(path).equals(rows)
    flip(path)
    with pytest.raises(DamagedFile, match=r"cost.parquet is damaged \(.*checksum"):
        read_file(path)


def write_incomplete_batch(small: str, out: Path) -> None:
    """Write four of six runs of a batch, each as a part of its own."""
    plan = make_plan(small, 3)
    out.mkdir()
    store = BatchStore(out, plan, "serial")
    for spec in plan.specs[:4]:
        store.add(carry_out(plan, spec))
        store.flush()


def tables(out: Path) -> dict[str, Any]:
    return {name: BatchTables(out).table(name).to_pylist() for name in ("runs", "hist", "series")}


@pytest.mark.parametrize("damage", [cut, flip])
@pytest.mark.parametrize("table", ["runs", "hist", "cost"])
def test_the_runs_of_a_damaged_part_are_made_again(
    damage: Any, table: str, small: str, tmp_path: Path
) -> None:
    """A damaged part of any table has its runs repeated; other parts are kept."""
    out = tmp_path / "out"
    run_suite(small, engine="serial", runs=3, out=tmp_path / "whole")
    write_incomplete_batch(small, out)
    kept = (out / "hist" / "part-00002.parquet").stat().st_ino
    damaged = out / table / "part-00001.parquet"
    damage(damaged)
    with pytest.raises(UsageError, match=r"part-00001.parquet is damaged \(.*with --resume$"):
        BatchTables(out).table(table)
    again = BatchStore(out, make_plan(small, 3), "serial", resume=True)
    assert again.dropped == [f"{damaged} was damaged: its runs are repeated"]
    assert again.done == {0, 2, 3}
    assert (out / "hist" / "part-00002.parquet").stat().st_ino == kept
    run_suite(small, engine="serial", runs=3, out=out, resume=True)
    assert tables(out) == tables(tmp_path / "whole")


@pytest.mark.parametrize("table", ["runs", "hist"])
def test_a_damaged_whole_table_makes_every_run_again(
    table: str, small: str, tmp_path: Path
) -> None:
    """A damaged whole table has every run repeated, with a notice in the result."""
    out = tmp_path / "out"
    run_suite(small, engine="serial", runs=3, out=out)
    expected = tables(out)
    cut(out / table / f"{table}.parquet")
    heard: list[str] = []
    batch = run_suite(small, engine="serial", runs=3, out=out, resume=True, notice=heard.append)
    assert heard == batch.notes
    assert len(heard) == 1
    assert f"{table}.parquet was damaged" in heard[0]
    assert tables(out) == expected


def test_a_damaged_part_of_a_merge_that_was_interrupted_makes_every_run_again(
    small: str, tmp_path: Path
) -> None:
    """A damaged part of an interrupted merge has every run repeated, as its runs are unknown."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    run_suite(small, engine="serial", runs=3, out=whole)
    run_suite(small, engine="serial", runs=3, out=out)
    (out / "hist" / "hist.parquet").rename(out / "hist" / "part-00000.parquet")
    cut(out / "hist" / "part-00000.parquet")
    store = BatchStore(out, make_plan(small, 3), "serial", resume=True)
    assert (store.done, len(store.dropped)) == (frozenset(), 1)
    run_suite(small, engine="serial", runs=3, out=out, resume=True)
    assert tables(out) == tables(whole)


def test_a_table_is_read_while_its_parts_become_one_file(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table can be read while its parts are merged into one file."""
    plan = make_plan(small, 2)
    store = BatchStore(tmp_path, plan, "serial")
    for spec in plan.specs:
        store.add(carry_out(plan, spec))
        store.flush()
    read: list[Path] = []

    def read_at_last(path: Path) -> Any:
        if not read:
            store.finish()
        read.append(path)
        return read_file(path)

    monkeypatch.setattr("fakekafka.spark_bench.tables.reader.read_file", read_at_last)
    assert BatchTables(tmp_path).runs("arrow")["run_id"].to_pylist() == [0, 1, 2, 3]
    assert [path.name for path in read] == ["part-00000.parquet", "runs.parquet"]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"suite": "failover"}'])
def test_damaged_facts_of_a_batch_are_named(text: str, small: str, tmp_path: Path) -> None:
    run_suite(small, engine="serial", runs=1, out=tmp_path / "out")
    (tmp_path / "out" / "batch.json").write_text(text)
    with pytest.raises(UsageError, match=r"batch.json is damaged \(.*--overwrite"):
        BatchTables(tmp_path / "out")
    with pytest.raises(UsageError, match=r"batch.json is damaged \(.*--overwrite"):
        run_suite(small, engine="serial", runs=1, out=tmp_path / "out", resume=True)
    assert run_suite(small, engine="serial", runs=1, out=tmp_path / "out", overwrite=True).runs == 2


HOLDS = """
import sys
from pathlib import Path
from fakekafka.spark_bench.tables.lock import locked
with locked(Path(sys.argv[1])):
    print("holds", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start another process that locks ``out``."""
    (tmp_path / "out").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path / "out")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        yield process
        process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such lock")
@pytest.mark.parametrize("how", [{}, {"resume": True}, {"overwrite": True}])
def test_a_second_process_is_refused_with_the_number_of_the_first(
    how: dict[str, Any], holder: subprocess.Popen[str], small: str, tmp_path: Path
) -> None:
    """A second process is refused with the pid of the first, until the first is killed."""
    out = tmp_path / "out"
    with pytest.raises(UsageError, match=rf"^process {holder.pid} writes a batch into .*out: "):
        run_suite(small, engine="serial", runs=1, out=out, **how)
    assert [path.name for path in out.iterdir()] == [".lock"]
    holder.kill()
    holder.wait()
    assert run_suite(small, engine="serial", runs=1, out=out, **how).runs == 2
    assert not (out / ".lock").exists()


def test_a_batch_that_ended_early_releases_its_directory(small: str, tmp_path: Path) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(BatchEnded):
        run_suite(small, engine="serial", runs=3, out=tmp_path / "out", progress=interrupt)
    with locked(tmp_path / "out"), pytest.raises(UsageError, match=f"process {os.getpid()} "):
        run_suite(small, engine="serial", runs=3, out=tmp_path / "out", resume=True)
    batch = run_suite(small, engine="serial", runs=3, out=tmp_path / "out", resume=True)
    assert batch.runs == 6
