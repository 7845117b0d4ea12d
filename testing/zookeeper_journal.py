"""The files of a ZooKeeper server in a data directory: a snapshot and the log that continues it.

``snapshot`` names its log by a number; logs of other numbers are left over from an interrupted
replacement. Both files begin with a signature and the version of their format. A record consists
of length, CRC-32 and content. If the process was killed, its log may end inside a record; the log
is truncated before that.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from pathlib import Path
from struct import Struct

from ..protocol.errors import UsageError
from ..replication.disk.file_io import open_binary, read_file, write_all, write_atomically
from ..zkfake.server.journal import (
    Entry,
    Saved,
    decode_entry,
    decode_saved,
    encode_entry,
    encode_saved,
)
from ..zkfake.server.storage import ZooKeeperStorage

if sys.platform != "win32":
    import fcntl

FORMAT_VERSION = 1
_SNAPSHOT_SIGNATURE = b"FKZSNAP"
_LOG_SIGNATURE = b"FKZKLOG"
_RECORD = Struct(">II")
_LOG_NUMBER = Struct(">q")
_LOG_BYTES_MIN = 1 << 20
"""Minimum size in bytes, besides twice the snapshot's, at which a snapshot replaces the log."""


class UnreadableState(UsageError):
    """A file of a data directory is foreign, newer or damaged; the message names it."""


def _header(signature: bytes) -> bytes:
    return signature + bytes((FORMAT_VERSION,))


def _check_header(path: Path, data: bytes, signature: bytes) -> None:
    if data[: len(signature)] != signature:
        raise UnreadableState(f"{path} is not a file of fakekafka's ZooKeeper")
    version = data[len(signature)]
    if version != FORMAT_VERSION:
        raise UnreadableState(
            f"{path} has format {version}, this release reads format {FORMAT_VERSION}; "
            "use the release that wrote it, or another data directory"
        )


def _record(content: bytes) -> bytes:
    return _RECORD.pack(len(content), zlib.crc32(content)) + content


def _records(path: Path, data: bytes) -> tuple[list[bytes], int]:
    """Return the contents of a log's complete records, and the position after the last one."""
    position = len(_header(_LOG_SIGNATURE))
    contents: list[bytes] = []
    while position < len(data):
        start = position + _RECORD.size
        if start > len(data):
            break
        length, crc = _RECORD.unpack_from(data, position)
        end = start + length
        if end > len(data):
            break
        content = data[start:end]
        if not content or zlib.crc32(content) != crc:
            # An interrupted write may have left the length without all of the content.
            if end == len(data) or not any(data[start:]):
                break
            raise UnreadableState(f"{path} is damaged at byte {position}")
        contents.append(content)
        position = end
    return contents, position


class FileJournal:
    """The ``Journal`` of one server, in a directory of its own.

    Entries are handed to the operating system one by one, so they survive the end of the process;
    only snapshots are also synced to the device. After a failed write every further write fails,
    as a server must not continue after a gap; ZooKeeper's own server exits then.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = 0
        self._descriptor = -1
        self._lock = -1
        self._log_bytes = 0
        self._snapshot_bytes = 0
        self._failure: OSError | None = None

    # -- reading -------------------------------------------------------------------------------

    def open(self) -> tuple[Saved | None, list[Entry]]:
        """Open the directory for writing and return its snapshot and the entries after it.

        Raises ``UnreadableState`` for unreadable files, and ``UsageError`` while another process
        has the directory open.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        saved = self._read_snapshot()
        path = self._log_path(self._number)
        data = read_file(str(path)) or b""
        header = _header(_LOG_SIGNATURE)
        entries: list[Entry] = []
        position = 0
        if len(data) >= len(header) or not header.startswith(data):
            _check_header(path, data.ljust(len(header), b"\0"), _LOG_SIGNATURE)
            contents, position = _records(path, data)
            try:
                entries = [decode_entry(content) for content in contents]
            except (ValueError, IndexError, struct.error) as error:
                raise UnreadableState(f"{path} is damaged: {error}") from error
        self._start_log(path, position)
        for other in sorted(self._directory.glob("log.*")):
            if other != path:
                other.unlink()
        return saved, entries

    def _take_lock(self) -> None:
        """Lock the directory; the operating system releases the lock however the process ends."""
        self._lock = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        if sys.platform != "win32":
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{self._directory} is in use by another cluster") from None

    def _read_snapshot(self) -> Saved | None:
        path = self._directory / "snapshot"
        data = read_file(str(path))
        if data is None:
            return None
        _check_header(path, data.ljust(8, b"\0"), _SNAPSHOT_SIGNATURE)
        start = len(_header(_SNAPSHOT_SIGNATURE))
        content = data[start + _RECORD.size :]
        try:
            length, crc = _RECORD.unpack_from(data, start)
            is_whole = length == len(content) and crc == zlib.crc32(content)
        except struct.error:
            is_whole = False
        if not is_whole:
            raise UnreadableState(f"{path} is damaged")
        (self._number,) = _LOG_NUMBER.unpack_from(content)
        self._snapshot_bytes = len(data)
        return decode_saved(content[_LOG_NUMBER.size :])

    def _log_path(self, number: int) -> Path:
        return self._directory / f"log.{number}"

    # -- writing -------------------------------------------------------------------------------

    def _start_log(self, path: Path, position: int) -> None:
        """Continue a log file at ``position``; 0 starts a new one."""
        self._descriptor = open_binary(str(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.ftruncate(self._descriptor, position)
        self._log_bytes = position
        if not position:
            self._write(_header(_LOG_SIGNATURE))

    def _write(self, data: bytes) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            write_all(self._descriptor, data)
        except OSError as error:
            self._failure = error
            raise
        self._log_bytes += len(data)

    def append(self, entry: Entry) -> None:
        """Append an entry; ``OSError`` if this or an earlier write fails."""
        self._write(_record(encode_entry(entry)))

    @property
    def is_due(self) -> bool:
        return self._log_bytes > max(_LOG_BYTES_MIN, 2 * self._snapshot_bytes)

    def save(self, saved: Saved, entries: list[Entry]) -> None:
        """Write the next log, then a snapshot that names it; until then the old pair is valid."""
        if self._failure is not None:
            raise self._failure
        try:
            self._replace(saved, entries)
        except OSError as error:
            self._failure = error
            raise

    def _replace(self, saved: Saved, entries: list[Entry]) -> None:
        number = self._number + 1
        log = _header(_LOG_SIGNATURE) + b"".join(_record(encode_entry(e)) for e in entries)
        content = _LOG_NUMBER.pack(number) + encode_saved(saved)
        snapshot = _header(_SNAPSHOT_SIGNATURE) + _record(content)
        path = self._log_path(number)
        write_atomically(str(path), log)
        write_atomically(str(self._directory / "snapshot"), snapshot)
        before, self._number = self._number, number
        os.close(self._descriptor)
        self._start_log(path, len(log))
        self._snapshot_bytes = len(snapshot)
        self._log_path(before).unlink(missing_ok=True)

    def close(self) -> None:
        for descriptor in (self._descriptor, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._lock = -1


def open_storage(directory: Path, server_id: int) -> ZooKeeperStorage:
    """Return the storage of a server, restored from its directory and journaled there from now on.

    Raises ``UnreadableState`` for unreadable files, and ``OSError``.
    """
    journal = FileJournal(directory)
    try:
        storage = ZooKeeperStorage.restored(server_id, *journal.open())
    except BaseException:
        journal.close()
        raise
    storage.journal = journal
    return storage
