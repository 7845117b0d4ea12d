"""Work done aside, by a copy of this process: what it needs is in its memory already.

A copy has all of the process but of its threads only one: so there is one only where there is a
single thread. Where a second core is missing, it would not help.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable

_DESCRIPTORS_MAX = 1 << 20
_DONE = b"done"
_left_behind: list[int] = []  # copies for which nobody waits


def is_worthwhile() -> bool:
    """Whether a copy could work while this process goes on."""
    return (
        sys.platform == "linux" and hasattr(os, "memfd_create") and len(os.sched_getaffinity(0)) > 1
    )


def is_possible() -> bool:
    """Whether this process has a single thread now, those that Python does not know included."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


class Aside:
    """A copy of this process that does some work; raises ``OSError`` when there can be none."""

    def __init__(self, work: Callable[[], bytes]) -> None:
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

    def outcome(self) -> bytes | None:
        """What the work gave, once it is done; None when it failed or was killed."""
        if os.getpid() != self._parent:
            return None  # this is a copy itself, made by somebody else
        with contextlib.suppress(ChildProcessError):  # when somebody waited for all children
            os.waitpid(self._pid, 0)
        self._pid = 0
        memory = self._memory
        data = os.pread(memory, os.fstat(memory).st_size, 0)
        os.close(memory)
        return data[: -len(_DONE)] if data.endswith(_DONE) else None

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


def _do(work: Callable[[], bytes], memory: int) -> None:
    """In the copy: work, leave the outcome in the memory that both share, and end at once."""
    try:
        gc.disable()
        sys.settrace(None)
        sys.setprofile(None)
        # Else connections and pipes of the process stay open as long as its copy works.
        os.closerange(0, memory)
        os.closerange(memory + 1, _DESCRIPTORS_MAX)
        data = memoryview(work() + _DONE)
        while data:
            data = data[os.write(memory, data) :]
    finally:
        os._exit(0)
