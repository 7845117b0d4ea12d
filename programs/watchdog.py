"""Stops callbacks of programs that block the loop forever.

Virtual time stands still while a callback runs, so a callback that waits for it would never return.
The watchdog is a thread that checks several times a second, in real time, whether the same turn is
still running.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

from . import places
from .running import RunningState

_CHECK_INTERVAL_S = 0.25
_REPEAT_INTERVAL_S = 1.0
_real_perf_counter = time.perf_counter


class Stuck(BaseException):
    """Raised in a callback that takes too long; not an ``Exception``, which handlers may catch."""


class Watchdog:
    """The watchdog of the process, as only one simulation with programs runs at a time."""

    limit_s: float = 10.0
    """Real seconds that one turn of a program may take."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._process = 0
        self._is_active = threading.Event()
        self._owner = 0
        self.stuck_at: str | None = None
        """Place of the callback that was stopped."""

    def begin(self, owner: int) -> None:
        """Watch a thread that runs events."""
        self._owner = owner
        if self._thread is None or self._process != os.getpid():
            self._process = os.getpid()
            self._is_active = threading.Event()
            self._thread = threading.Thread(
                target=self._watch, name="fakekafka-watchdog", daemon=True
            )
            self._thread.start()
        self._is_active.set()

    def end(self) -> None:
        self._is_active.clear()

    def _watch(self) -> None:
        last, since_s = (RunningState.program, RunningState.turn), 0.0
        active, process = self._is_active, self._process
        sleep = threading.Event().wait
        while process == os.getpid():
            active.wait()
            sleep(min(_CHECK_INTERVAL_S, self.limit_s / 2))
            now_s = _real_perf_counter()
            current = (RunningState.program, RunningState.turn)
            if RunningState.program is None or current != last:
                last, since_s = current, now_s
            elif now_s - since_s > self.limit_s:
                if self.stuck_at is None:
                    self.stuck_at = places.of_stack(sys._current_frames().get(self._owner))
                since_s += _REPEAT_INTERVAL_S
                _raise_in(self._owner)


def _raise_in(thread: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Stuck))


watchdog: Watchdog = Watchdog()
