"""A data directory: Kafka's files, recovery after every kind of crash and damage."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.disk.file_disk import FileDisk
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.lookups import aborted_transactions
from fakekafka.replication.log.retention import delete_old_segments
from fakekafka.tests.support.batches import parse_batches
from fakekafka.tests.support.logs import Tools

SEGMENT = "00000000000000000000"


def open_log(tmp_path: Path, tools: type[Tools], **overrides: Any) -> tuple[FileDisk, Any]:
    disk = FileDisk(tmp_path, sync=False)
    return disk, disk.open_log(tools.name, tools.config(**overrides))


def directory(tmp_path: Path, tools: type[Tools]) -> Path:
    return tmp_path / str(tools.name)


def written(log: Any) -> bytes:
    return b"".join(batch.data for batch in log.batches())


@pytest.mark.parametrize("end", ["kill", "close"])
def test_everything_appended_is_there_again(tmp_path: Path, tools: type[Tools], end: str) -> None:
    """A process that was killed or closed leaves records, epochs and topic id to the next one."""
    disk, log = open_log(tmp_path, tools, segment_bytes=300, index_interval_bytes=100)
    log.assign_topic_id("ABEiM0RVZneImaq7zN3u_w")
    tools.fill(log, 5, epoch=0)
    tools.fill(log, 5, epoch=3)
    before, bases = written(log), [s.base_offset for s in log.segments]
    getattr(disk, end)()
    disk, log = open_log(tmp_path, tools, segment_bytes=300, index_interval_bytes=100)
    assert (written(log), log.epochs) == (before, ((0, 0), (3, 5)))
    assert [s.base_offset for s in log.segments] == bases
    assert log.topic_id == "ABEiM0RVZneImaq7zN3u_w"
    tools.fill(log, 1, epoch=4)
    assert log.log_end_offset == 11


def test_the_files_are_kafkas(tmp_path: Path, tools: type[Tools]) -> None:
    """The files hold raw batches, indexes of (relative offset, position) and (time, relative
    offset), and text."""
    disk, log = open_log(tmp_path, tools, segment_bytes=600, index_interval_bytes=100)
    for number in range(12):
        append_as_leader(log, tools.data(b"v", times=[1000 + number]), 7, tools.now_ms)
    size = log.segments[0].batches[0].size_in_bytes
    per_segment = len(log.segments[0].batches)
    folder = directory(tmp_path, tools)
    data = (folder / f"{SEGMENT}.log").read_bytes()
    assert [b.base_offset for b in parse_batches(data, verify=True)] == list(range(per_segment))
    index = list(struct.iter_unpack(">ii", (folder / f"{SEGMENT}.index").read_bytes()))
    assert index == [(n, n * size) for n in range(2, per_segment, 2)]
    times = list(struct.iter_unpack(">qi", (folder / f"{SEGMENT}.timeindex").read_bytes()))
    last = per_segment - 1
    assert times == [(1000 + n, n) for n in sorted({*range(2, per_segment, 2), last})]
    assert (folder / "leader-epoch-checkpoint").read_text() == "0\n1\n7 0\n"
    disk.checkpoint_high_watermarks({tools.name: 3})
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    disk.write_meta_properties({"broker.id": "1"})
    assert "broker.id=1\n" in (tmp_path / "meta.properties").read_text()
    disk.close()
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b""
    text = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    assert text == "0\n1\norders 0 12\n"


def test_transaction_index_and_snapshot_files(tmp_path: Path, tools: type[Tools]) -> None:
    """Aborted transactions have entries of 34 bytes; snapshots are named by offset."""
    disk, log = open_log(tmp_path, tools)
    tools.produce(log, 5, 0, 0, txn=True)
    tools.end(log, 5, False)
    log.update_high_watermark(2)
    aborted = aborted_transactions(log, 0, 2)
    entry = (directory(tmp_path, tools) / f"{SEGMENT}.txnindex").read_bytes()
    assert struct.unpack(">hqqqq", entry) == (0, 5, 0, 1, 2)
    disk.close()
    assert (directory(tmp_path, tools) / "00000000000000000002.snapshot").exists()
    _, log = open_log(tmp_path, tools)
    log.update_high_watermark(2)
    assert (aborted_transactions(log, 0, 2), log.last_stable_offset) == (aborted, 2)


def test_every_truncation_of_a_segment_recovers(tmp_path: Path, tools: type[Tools]) -> None:
    """A segment truncated anywhere ends with its last whole batch, and appends continue from
    there."""
    disk, log = open_log(tmp_path, tools)
    for _ in range(3):
        append_as_leader(log, tools.data(b"a", b"b"), 0, tools.now_ms)
    disk.kill()
    path = directory(tmp_path, tools) / f"{SEGMENT}.log"
    whole = path.read_bytes()
    size = len(whole) // 3
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        disk, log = open_log(tmp_path, tools)
        batches = end // size
        assert log.log_end_offset == batches * 2
        assert path.read_bytes() == whole[: batches * size]
        disk.kill()


def test_every_flipped_byte_ends_the_log_there(tmp_path: Path, tools: type[Tools]) -> None:
    """Damage above the recovery point truncates the log before the damaged batch."""
    disk, log = open_log(tmp_path, tools)
    tools.fill(log, 3)
    disk.kill()
    path = directory(tmp_path, tools) / f"{SEGMENT}.log"
    whole = path.read_bytes()
    size = len(whole) // 3
    for position in range(size, 2 * size):
        in_batch = position - size
        if 12 <= in_batch < 16:  # the leader epoch is not under the checksum
            continue
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xA5]) + whole[position + 1 :])
        disk, log = open_log(tmp_path, tools)
        # A base offset that is a little larger is a gap, which is legal.
        is_gap = 4 < in_batch < 8
        assert is_gap or log.log_end_offset == 1
        disk.kill()


def test_segments_after_the_damage_are_deleted(tmp_path: Path, tools: type[Tools]) -> None:
    """Segments behind a torn batch are deleted, as they cannot be trusted."""
    disk, log = open_log(tmp_path, tools, segment_bytes=200)
    tools.fill(log, 8, epoch=0)
    tools.fill(log, 2, epoch=6)
    disk.kill()
    (tmp_path / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    path = directory(tmp_path, tools) / "00000000000000000002.log"
    path.write_bytes(path.read_bytes()[:-1])
    _, log = open_log(tmp_path, tools, segment_bytes=200)
    assert (log.log_end_offset, log.epochs) == (3, ((0, 0),))
    names = sorted(p.name for p in directory(tmp_path, tools).glob("*.log"))
    assert names == [f"{SEGMENT}.log", "00000000000000000002.log"]


def test_below_the_recovery_point_nothing_is_checked(tmp_path: Path, tools: type[Tools]) -> None:
    """A flipped byte below the recovery point is not noticed, as flushed data is not checked."""
    disk, log = open_log(tmp_path, tools, segment_bytes=200)
    tools.fill(log, 6)
    log.flush()
    disk.checkpoint_log_offsets()
    disk.kill()
    path = directory(tmp_path, tools) / f"{SEGMENT}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 0xFF
    path.write_bytes(data)
    _, log = open_log(tmp_path, tools, segment_bytes=200)
    assert log.log_end_offset == 6


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
@pytest.mark.parametrize("damage", [None, b"", b"\xff" * 7, b"\xff" * 340])
@pytest.mark.parametrize("end", ["kill", "close"])
def test_damaged_indexes_are_rebuilt(
    tmp_path: Path, tools: type[Tools], suffix: str, damage: bytes | None, end: str
) -> None:
    """An index that is missing, empty, torn or invalid is rebuilt from the batches."""
    disk, log = open_log(tmp_path, tools, index_interval_bytes=0)
    tools.fill(log, 3)
    tools.produce(log, 5, 0, 0, txn=True)
    tools.end(log, 5, False)
    tools.fill(log, 1)
    path = directory(tmp_path, tools) / (SEGMENT + suffix)
    getattr(disk, end)()
    right = path.read_bytes()
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    # A snapshot says nothing about aborts before it: with the index lost they are lost.
    for snapshot in directory(tmp_path, tools).glob("*.snapshot"):
        snapshot.unlink()
    disk, log = open_log(tmp_path, tools, index_interval_bytes=0)
    assert log.log_end_offset == 6
    log.update_high_watermark(6)
    assert len(aborted_transactions(log, 0, 6)) == 1
    disk.close()
    assert path.read_bytes() == right


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"9\n0\n", b"0\n5\n0 0\n", b"0\n1\nx y\n"])
def test_damaged_epoch_file_fails_the_directory(
    tmp_path: Path, tools: type[Tools], damage: bytes
) -> None:
    """A corrupt leader-epoch checkpoint takes the log directory offline."""
    disk, log = open_log(tmp_path, tools)
    tools.fill(log, 1)
    disk.kill()
    (directory(tmp_path, tools) / "leader-epoch-checkpoint").write_bytes(damage)
    disk = FileDisk(tmp_path, sync=False)
    with pytest.raises(KafkaError) as caught:
        disk.open_log(tools.name, tools.config())
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert disk.offline_dirs == (str(tmp_path),)


def test_lost_epoch_file_is_rebuilt_by_the_scan(tmp_path: Path, tools: type[Tools]) -> None:
    """Re-scanning after a crash finds the epochs in the batches."""
    disk, log = open_log(tmp_path, tools)
    tools.fill(log, 2, epoch=1)
    tools.fill(log, 2, epoch=4)
    disk.kill()
    (directory(tmp_path, tools) / "leader-epoch-checkpoint").unlink()
    _, log = open_log(tmp_path, tools)
    assert log.epochs == ((1, 0), (4, 2))


@pytest.mark.parametrize(
    ("name", "fails"),
    [
        ("replication-offset-checkpoint", True),
        ("recovery-point-offset-checkpoint", False),
        ("log-start-offset-checkpoint", False),
    ],
)
def test_damaged_checkpoints(tmp_path: Path, tools: type[Tools], name: str, fails: bool) -> None:
    """Recovery points and log starts are rebuilt from the logs; damaged high watermarks are an
    error."""
    disk, log = open_log(tmp_path, tools)
    tools.fill(log, 3)
    disk.checkpoint_high_watermarks({tools.name: 3})
    disk.close()
    (tmp_path / name).write_text("0\n77\n")
    disk = FileDisk(tmp_path, sync=False)
    disk.start()
    assert bool(disk.offline_dirs) is fails
    if not fails:
        assert disk.open_log(tools.name, tools.config()).log_end_offset == 3


def test_power_failure_cuts_the_files(tmp_path: Path, tools: type[Tools]) -> None:
    """The emulated power failure leaves the flushed prefix in the files, across segments."""
    disk, log = open_log(tmp_path, tools, segment_bytes=200)
    tools.fill(log, 3)
    log.flush()
    tools.fill(log, 1)
    flushed = log.storage.flushed_offset
    disk.power_off()
    _, log = open_log(tmp_path, tools, segment_bytes=200)
    assert (flushed, log.log_end_offset) == (3, 3)


def test_torn_write_is_found_and_cut_off(tmp_path: Path, tools: type[Tools]) -> None:
    """A file that ends in the middle of a batch is cut there at the next start; index, epochs and
    producer snapshots follow (Kafka: ``LogSegment.recover``)."""
    disk, log = open_log(tmp_path, tools, index_interval_bytes=0)
    tools.fill(log, 2, epoch=0)
    log.flush()
    whole = tools.fill(log, 1, epoch=0).size_in_bytes
    tools.produce(log, producer_id=4, epoch=0, sequence=0)
    tools.fill(log, 2, epoch=7)
    log.take_producer_snapshot()
    disk.power_off(torn=lambda unflushed: whole // 3 + 20)
    file, index = (directory(tmp_path, tools) / f"{SEGMENT}.{end}" for end in ("log", "index"))
    assert (file.stat().st_size, index.stat().st_size) == (whole + 20, 5 * 8)
    _, log = open_log(tmp_path, tools, index_interval_bytes=0)
    assert (log.log_end_offset, log.epochs, log.producers) == (3, ((0, 0),), None)
    assert (file.stat().st_size, index.stat().st_size) == (whole, 2 * 8)
    assert log.storage.snapshots in (None, {})


@pytest.mark.parametrize("is_torn", [False, True])
def test_flushed_data_survives_a_second_power_failure(
    tmp_path: Path, tools: type[Tools], is_torn: bool
) -> None:
    """Flushed data survives a second power failure, though no checkpoint recorded it before the
    first."""
    disk, log = open_log(tmp_path, tools)
    tools.fill(log, 3)
    log.flush()
    for _ in range(2):
        disk.power_off(torn=(lambda _unflushed: 0) if is_torn else None)
        assert disk.open_log(tools.name, tools.config()).log_end_offset == 3


def test_torn_write_takes_later_segments(tmp_path: Path, tools: type[Tools]) -> None:
    """Segments behind the torn batch are deleted, as they follow a gap."""
    disk, log = open_log(tmp_path, tools, segment_bytes=200)
    tools.fill(log, 6)
    log.storage.flushed_offset = 0  # as if rolling had not flushed
    size = log.segments[0].batches[0].size_in_bytes
    disk.power_off(torn=lambda _unflushed: size + 5)
    assert [path.name for path in directory(tmp_path, tools).glob("*.log")] == [f"{SEGMENT}.log"]
    _, log = open_log(tmp_path, tools, segment_bytes=200)
    assert (log.log_end_offset, len(log.segments)) == (1, 1)


def test_truncation_reaches_the_files(tmp_path: Path, tools: type[Tools]) -> None:
    """A truncation reaches the files at once: a kill right afterwards changes nothing."""
    disk, log = open_log(tmp_path, tools, segment_bytes=200, index_interval_bytes=0)
    tools.fill(log, 9)
    log.truncate_to(3)
    tools.fill(log, 1, epoch=8)
    before = written(log)
    disk.kill()
    disk, log = open_log(tmp_path, tools, segment_bytes=200, index_interval_bytes=0)
    assert (written(log), log.epochs) == (before, ((0, 0), (8, 3)))
    log.truncate_fully_and_start_at(20)
    disk.kill()
    _, log = open_log(tmp_path, tools)
    assert (log.log_start_offset, log.log_end_offset, log.epochs) == (20, 20, ())


def test_retention_renames_then_removes(tmp_path: Path, tools: type[Tools]) -> None:
    """Deleted segments linger as ``.deleted`` files for ``file.delete.delay.ms``."""
    disk, log = open_log(tmp_path, tools, segment_bytes=200, retention_ms=10)
    tools.fill(log, 6)
    log.update_high_watermark(6)
    assert delete_old_segments(log, tools.now_ms + 11) == 3
    folder = directory(tmp_path, tools)
    assert len(list(folder.glob("*.log.deleted"))) == 3
    delete_old_segments(log, tools.now_ms + 11 + 60_000)
    assert list(folder.glob("*.deleted")) == []
    disk.kill()
    _, log = open_log(tmp_path, tools)
    assert (log.log_start_offset, log.log_end_offset) == (6, 6)


def test_deleted_partition_is_gone(tmp_path: Path, tools: type[Tools]) -> None:
    """The directory of a deleted partition disappears; a half-deleted one is removed at the next
    start."""
    disk, log = open_log(tmp_path, tools)
    tools.fill(log, 1)
    disk.delete_log(tools.name)
    assert not directory(tmp_path, tools).exists()
    (tmp_path / "old-0-delete").mkdir()
    (tmp_path / "dotted.name-with-dash-7").mkdir()
    disk = FileDisk(tmp_path, sync=False)
    assert disk.existing_partitions() == [TopicPartition("dotted.name-with-dash", 7)]
    assert not (tmp_path / "old-0-delete").exists()


def test_interrupted_compaction_is_finished_or_undone(tmp_path: Path, tools: type[Tools]) -> None:
    """A ``.swap`` file replaces the segments it covers; a ``.cleaned`` file is discarded."""
    disk, log = open_log(tmp_path, tools, segment_bytes=200)
    tools.fill(log, 6)
    before = written(log)
    disk.kill()
    folder = directory(tmp_path, tools)
    first, second = folder / f"{SEGMENT}.log", folder / "00000000000000000002.log"
    (folder / f"{SEGMENT}.log.cleaned").write_bytes(b"half")
    disk, log = open_log(tmp_path, tools, segment_bytes=200)
    assert written(log) == before
    disk.kill()
    (folder / f"{SEGMENT}.log.swap").write_bytes(first.read_bytes() + second.read_bytes())
    _, log = open_log(tmp_path, tools, segment_bytes=200)
    assert written(log) == before
    assert not second.exists()


def test_unknown_files_are_left_alone(tmp_path: Path, tools: type[Tools]) -> None:
    """Files with foreign names in a partition's directory are left alone, also by compaction."""
    disk, log = open_log(tmp_path, tools, segment_bytes=200)
    tools.fill(log, 6)
    before = written(log)
    disk.kill()
    folder = directory(tmp_path, tools)
    names = ("notes.txt", "notes.log", "notes.log.swap", "notes.index", ".log", "\u00b2.log")
    for name in names:
        (folder / name).write_text("mine")
    data = (folder / f"{SEGMENT}.log").read_bytes()
    (folder / f"{SEGMENT}.log.swap").write_bytes(data)
    _, log = open_log(tmp_path, tools, segment_bytes=200)
    assert written(log) == before
    assert [(folder / name).read_text() for name in names] == ["mine"] * len(names)


def test_several_directories(tmp_path: Path, tools: type[Tools]) -> None:
    """Partitions are found in the directory in which they were created."""
    paths = [tmp_path / "a", tmp_path / "b"]
    disk = FileDisk(directories=paths, sync=False)
    for number in range(4):
        tools.fill(disk.open_log(TopicPartition("t", number), tools.config()), number)
    disk.checkpoint_high_watermarks({TopicPartition("t", n): n for n in range(4)})
    disk.close()
    disk = FileDisk(directories=paths, sync=False)
    assert [disk.directory_of(TopicPartition("t", n)) for n in range(4)] == [
        str(paths[n % 2]) for n in range(4)
    ]
    assert disk.read_high_watermarks() == {TopicPartition("t", n): n for n in range(4)}
    ends = [disk.open_log(TopicPartition("t", n), tools.config()).log_end_offset for n in range(4)]
    assert ends == [0, 1, 2, 3]


def test_failing_writes_take_the_directory_offline(tmp_path: Path, tools: type[Tools]) -> None:
    """An I/O error of an append raises KAFKA_STORAGE_ERROR, and so does each later append."""
    disk, log = open_log(tmp_path, tools)
    tools.fill(log, 1)
    disk._handles.close_all()
    os.replace(directory(tmp_path, tools), tmp_path / "elsewhere")
    with pytest.raises(KafkaError) as caught:
        tools.fill(log, 1)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert disk.offline_dirs == (str(tmp_path),)


def test_many_logs_share_few_handles(tmp_path: Path, tools: type[Tools]) -> None:
    """Logs are written to even when there are more of them than file handles."""
    disk = FileDisk(tmp_path, sync=False)
    disk._handles._limit = 4
    names = [TopicPartition("t", n) for n in range(5)]
    for _ in range(3):
        for name in names:
            tools.fill(disk.open_log(name, tools.config()), 1)
    disk.kill()
    disk = FileDisk(tmp_path, sync=False)
    assert [disk.open_log(n, tools.config()).log_end_offset for n in names] == [3] * 5
