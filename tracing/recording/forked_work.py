"""Work done by a copy of this process: what it needs is in its memory already.

A copy has all of the process but of its threads only one: so there is one only where there is a
single thread. Where a second core is missing, it would not help.
"""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any

_DESCRIPTORS_MAX = 1 << 20
_DONE = b"done"
_LENGTH = struct.Struct("<Q")
_left_behind: list[int] = []  # copies for which nobody waits


def is_worthwhile() -> bool:
    """Return whether a copy could work while this process goes on."""
    return (
        sys.platform == "linux" and hasattr(os, "memfd_create") and len(os.sched_getaffinity(0)) > 1
    )


def is_possible() -> bool:
    """Return whether this process has a single thread now, those that Python does not know
    included."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


class ForkedWork:
    """A copy of this process that does some work; raises ``OSError`` when there can be none."""

    def __init__(self, work: Callable[[], object]) -> None:
        """Pickle what the work gives; of a ``PickleBuffer`` in it there is one copy only."""
        _reap()
        self._parent = os.getpid()
        self._pid = 0
        self._memory = os.memfd_create("fakekafka")
        # Ctrl-C and whatever else has a handler is for the process itself, never for the copy.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._pid = os.fork()
            if self._pid == 0:
                _do(work, self._memory)
        except OSError:
            os.close(self._memory)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def outcome(self) -> Any:
        """Return what the work gave, once it is done; None when it failed or was killed. A buffer
        in it is a view of memory that goes with the last such view."""
        if os.getpid() != self._parent:
            return None  # this is a copy itself, made by somebody else
        with contextlib.suppress(ChildProcessError):  # when somebody waited for all children
            os.waitpid(self._pid, 0)
        self._pid = 0
        memory = self._memory
        size = os.fstat(memory).st_size
        try:
            if size <= len(_DONE):
                return None
            whole = memoryview(mmap.mmap(memory, size, prot=mmap.PROT_READ))
        finally:
            os.close(memory)
        if bytes(whole[-len(_DONE) :]) != _DONE:
            return None
        parts: list[memoryview] = []
        place = 0
        while place < size - len(_DONE):
            (length,) = _LENGTH.unpack_from(whole, place)
            place += _LENGTH.size
            parts.append(whole[place : place + length])
            place += length
        return pickle.loads(parts[0], buffers=parts[1:])

    def __del__(self) -> None:
        """Nobody wants the outcome."""
        if self._pid and os.getpid() == self._parent:
            os.close(self._memory)
            _left_behind.append(self._pid)


def _reap() -> None:
    for pid in _left_behind[:]:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        _left_behind.remove(pid)


def _write(outcome: object, memory: int) -> None:
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(outcome, protocol=5, buffer_callback=buffers.append)
    parts: list[bytes | memoryview] = [head, *(buffer.raw() for buffer in buffers)]
    pieces = [piece for part in parts for piece in (_LENGTH.pack(len(part)), part)]
    for piece in (*pieces, _DONE):
        data = memoryview(piece)
        while data:
            data = data[os.write(memory, data) :]


def _do(work: Callable[[], object], memory: int) -> None:
    """In the copy: work, leave the outcome in the memory that both share, and end at once."""
    try:
        gc.disable()
        sys.settrace(None)
        sys.setprofile(None)
        # Else connections and pipes of the process stay open as long as its copy works.
        os.closerange(0, memory)
        os.closerange(memory + 1, _DESCRIPTORS_MAX)
        _write(work(), memory)
    finally:
        os._exit(0)
