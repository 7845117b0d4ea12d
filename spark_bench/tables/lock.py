"""The lock of a batch's directory, into which only one process at a time may write."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from ...protocol.errors import UsageError

if sys.platform != "win32":
    import fcntl

NAME = ".lock"


@contextlib.contextmanager
def locked(out: Path) -> Iterator[None]:
    """Keep other processes from writing into a directory.

    The operating system releases the lock when a process ends, for whatever reason. Raises
    ``UsageError``, which names the process that holds the lock. On Windows and on file systems
    without locks there is no protection.
    """
    path = out / NAME
    descriptor = _acquire(path)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()} {socket.gethostname()}".encode())
        yield
    finally:
        with contextlib.suppress(PermissionError):  # Windows cannot remove an open file
            path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if sys.platform == "win32":
            return descriptor
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 300, 0).decode(errors="replace")
            os.close(descriptor)
            raise UsageError(_refusal(path.parent, holder)) from None
        except OSError:
            return descriptor
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)  # the previous holder has removed the file meanwhile


def _refusal(out: Path, holder: str) -> str:
    pid, _, host = holder.partition(" ")
    location = "" if host in ("", socket.gethostname()) else f" on {host}"
    owner = f"process {pid}{location}" if pid else "another process"
    return (
        f"{owner} writes a batch into {out}: name another directory, or wait until that process "
        "has ended"
    )
