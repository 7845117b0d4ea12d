"""ZooKeeper's files in a data directory: torn, damaged, foreign, or being replaced at a kill."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka.protocol.errors import UsageError
from fakekafka.replication.disk.file_io import write_atomically
from fakekafka.testing import zookeeper_journal
from fakekafka.testing.zookeeper_journal import FileJournal, UnreadableState, open_storage
from fakekafka.zkfake.messages import CreateRequest, CreateSession
from fakekafka.zkfake.server.journal import Epochs
from fakekafka.zkfake.server.quorum_messages import Txn
from fakekafka.zkfake.server.storage import ZooKeeperStorage

SESSION = (1 << 56) + 1


def write(storage: ZooKeeperStorage, *paths: str) -> None:
    """Apply transactions as a standalone server does."""
    for path in paths:
        zxid = storage.tree.last_zxid + 1
        request = CreateSession(6000) if path == "session" else CreateRequest(path)
        storage.append_to_journal(Txn(zxid, zxid, SESSION, request))
        storage.tree.apply(zxid, zxid, SESSION, request)


def killed(storage: ZooKeeperStorage) -> None:
    """Close the journal as the end of a killed process does."""
    assert isinstance(storage.journal, FileJournal)
    storage.journal.close()


def reopened(directory: Path) -> ZooKeeperStorage:
    storage = open_storage(directory, 1)
    storage.apply_all()
    return storage


def found(directory: Path) -> list[str]:
    """Return the znodes that a new process would load."""
    storage = reopened(directory)
    killed(storage)
    return nodes(storage)


def nodes(storage: ZooKeeperStorage) -> list[str]:
    return list(storage.tree.walk())[1:]


def written(directory: Path) -> ZooKeeperStorage:
    """Write a log with a session and two znodes."""
    storage = open_storage(directory, 1)
    write(storage, "session", "/a", "/b")
    killed(storage)
    return storage


def test_a_directory_keeps_its_nodes_over_several_restarts(tmp_path: Path) -> None:
    written(tmp_path / "zookeeper-1")
    for number in range(3):
        storage = reopened(tmp_path / "zookeeper-1")
        assert nodes(storage) == ["/a", "/b", *(f"/n{i}" for i in range(number))]
        assert storage.tree.sessions == {SESSION: 6000}
        write(storage, f"/n{number}")
        killed(storage) if number % 2 else storage.close()


def test_a_log_cut_at_any_byte_loads_the_whole_records_before(tmp_path: Path) -> None:
    """A log cut at any byte loads the records before the cut, and writing continues there."""
    before = written(tmp_path / "whole")
    data = (tmp_path / "whole" / "log.0").read_bytes()
    whole = nodes(before)
    seen = set()
    for length in range(len(data) + 1):
        directory = tmp_path / f"cut-{length}"
        directory.mkdir()
        (directory / "log.0").write_bytes(data[:length])
        storage = reopened(directory)
        there = nodes(storage)
        assert there == whole[: len(there)]
        seen.add((bool(storage.tree.sessions), len(there)))
        if not storage.tree.sessions:
            write(storage, "session")
        write(storage, "/z")
        killed(storage)
        again = reopened(directory)
        assert nodes(again) == [*there, "/z"]
        killed(again)
    assert seen == {(False, 0), (True, 0), (True, 1), (True, 2)}


@pytest.mark.parametrize("tail", [bytes(4096), bytes(3)])
def test_a_tail_that_the_machine_did_not_write_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    """A tail of zeros, as a power failure may leave it, is cut off."""
    written(tmp_path)
    with (tmp_path / "log.0").open("ab") as file:
        file.write(tail)
    assert found(tmp_path) == ["/a", "/b"]


def test_the_last_record_may_be_garbled(tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / "log.0"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes((data[-1] ^ 1,)))
    assert found(tmp_path) == ["/a"]


def test_damage_before_the_end_is_an_error(tmp_path: Path) -> None:
    """Damage before the last record is an error: acknowledged records behind it must not vanish."""
    written(tmp_path)
    path = tmp_path / "log.0"
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(UnreadableState, match=r"log\.0 is damaged at byte 8"):
        open_storage(tmp_path, 1)
    assert path.read_bytes() == data


def test_a_damaged_snapshot_is_an_error(tmp_path: Path) -> None:
    written(tmp_path)
    reopened(tmp_path).close()
    path = tmp_path / "snapshot"
    data = path.read_bytes()
    for bad in (data[:-1], data[:12], data[:30] + b"\xff" + data[31:]):
        path.write_bytes(bad)
        with pytest.raises(UnreadableState, match="snapshot is damaged"):
            open_storage(tmp_path, 1)


@pytest.mark.parametrize("name", ["snapshot", "log.1"])
def test_a_newer_format_is_named(tmp_path: Path, name: str) -> None:
    written(tmp_path)
    reopened(tmp_path).close()
    path = tmp_path / name
    data = bytearray(path.read_bytes())
    data[7] = 2
    path.write_bytes(data)
    message = f"{name} has format 2, this release reads format 1; use the release that wrote it"
    with pytest.raises(UnreadableState, match=message):
        open_storage(tmp_path, 1)
    assert path.read_bytes() == data


@pytest.mark.parametrize("name", ["snapshot", "log.0"])
@pytest.mark.parametrize("data", [b"ZK", b"ZKSN\0\0\0\x02\xff\xff\xff\xff"])
def test_a_foreign_file_is_named_and_left_alone(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UnreadableState, match=f"{name} is not a file of fakekafka's ZooKeeper"):
        open_storage(tmp_path, 1)
    assert (tmp_path / name).read_bytes() == data


def test_a_process_killed_while_replacing_the_log_leaves_a_whole_log(tmp_path: Path) -> None:
    """A restart loads the old log until the snapshot has its final name, then the new log."""
    written(tmp_path)
    old_log = (tmp_path / "log.0").read_bytes()
    storage = reopened(tmp_path)
    storage.save()
    killed(storage)
    new = {name: (tmp_path / name).read_bytes() for name in ("snapshot", "log.1")}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "log.1", "snapshot"]
    moments: list[dict[str, bytes]] = [
        {"log.0": old_log, "log.1.tmp": new["log.1"][:5]},
        {"log.0": old_log, "log.1": new["log.1"]},
        {"log.0": old_log, "log.1": new["log.1"], "snapshot.tmp": new["snapshot"][:40]},
        {"log.0": old_log, **new},
    ]
    for number, files in enumerate(moments):
        directory = tmp_path / f"moment-{number}"
        directory.mkdir()
        for name, data in files.items():
            (directory / name).write_bytes(data)
        storage = reopened(directory)
        assert nodes(storage) == ["/a", "/b"]
        write(storage, "/c")
        storage.close()
        last = reopened(directory)
        assert nodes(last) == ["/a", "/b", "/c"]
        last.close()
        names = sorted(path.name for path in directory.iterdir())
        assert names[:1] + names[2:] == ["lock", "snapshot"]
        assert names[1].startswith("log.")


@pytest.mark.parametrize("at", [1, 2])
def test_entries_and_epochs_survive_a_failed_replacement_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """A failed replacement keeps entries and epoch: the next log is written before its snapshot."""
    storage = open_storage(tmp_path, 1)
    storage.accepted_epoch = 3
    storage.append(Txn(5, 5, SESSION, CreateRequest("/not-committed")))
    calls: list[str] = []

    def failing(path: str, data: bytes) -> None:
        calls.append(path)
        if len(calls) == at:
            raise OSError("no space left")
        write_atomically(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(zookeeper_journal, "write_atomically", failing)
        with pytest.raises(OSError, match="no space left"):
            storage.save()
    killed(storage)
    again = open_storage(tmp_path, 1)
    assert (again.accepted_epoch, [txn.zxid for txn in again.log]) == (3, [5])
    killed(again)


def test_a_long_log_is_replaced_by_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long log is replaced by a snapshot, the more rarely the larger the snapshot is; so a start
    replays a bounded part.
    """
    monkeypatch.setattr(zookeeper_journal, "_LOG_BYTES_MIN", 500)
    storage = open_storage(tmp_path, 1)
    write(storage, "session")
    numbers = []
    for number in range(200):
        write(storage, f"/node-{number:04d}")
        (log,) = tmp_path.glob("log.*")
        numbers.append(int(log.suffix[1:]))
        snapshot = tmp_path / "snapshot"
        bytes_before = snapshot.stat().st_size if snapshot.exists() else 0
        assert log.stat().st_size <= max(500, 2 * bytes_before) + 2 * 60
    assert 3 <= numbers[-1] <= 8
    killed(storage)
    assert found(tmp_path) == [f"/node-{number:04d}" for number in range(200)]


def test_after_a_failed_write_every_further_one_fails(tmp_path: Path) -> None:
    """After a failed write all later writes fail, even if they could succeed, to leave no gap."""
    written(tmp_path)
    journal = FileJournal(tmp_path)
    journal.open()
    for descriptor in (1_000_000, journal._descriptor):  # an invalid descriptor, then the original
        journal._descriptor = descriptor
        with pytest.raises(OSError, match="Bad file descriptor"):
            journal.append(Epochs(1, 1))
    journal.close()
    assert found(tmp_path) == ["/a", "/b"]


def test_a_directory_has_one_user_at_a_time(tmp_path: Path) -> None:
    """A directory in use is refused; the lock ends with the process or the journal."""
    storage = open_storage(tmp_path, 1)
    with pytest.raises(UsageError, match="is in use by another cluster"):
        open_storage(tmp_path, 1)
    write(storage, "session", "/a")
    killed(storage)
    assert found(tmp_path) == ["/a"]
