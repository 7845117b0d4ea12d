"""Python's collector of cyclic garbage, while events run.

A recorder holds thousands of messages for a while. None of them is garbage, and each collection
would walk over all of them: a tenth of the time of a recorded run. So what there is after a part of
a run is set aside (``gc.freeze``), and is looked at whenever that takes a hundredth of the time.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLD = 50_000
"""Allocations between two collections while events run."""
_THRESHOLD_RECORDED = 1_000_000
"""The same while a recorder holds on to messages."""
_SHARE = 100
"""So many times as long as the last look took, there is no other."""
_PAUSE_S = 10.0
"""The same before the first one, and at least."""
_OBJECT_S = 1e-6
"""A look takes about so long for each object that was set aside."""


class _Garbage:
    """The collector is one for the whole process, and so is this."""

    def __init__(self) -> None:
        self._has_frozen = False
        self._is_refused = False  # the program around has its own way
        self._due_s = 0.0
        self._looked_s = 0.0
        self._rarely = 0  # blocks of ``looking_rarely`` that go on now
        self._before_rarely = (0, 0, 0)
        self._lock = threading.Lock()

    @contextmanager
    def looking_rarely(self) -> Iterator[None]:
        """While a cluster starts, or a run of a batch goes on from its start to its verdict: what
        is made there lives to the end, so none of it is garbage."""
        with self._lock:
            self._rarely += 1
            if self._rarely == 1:
                self._before_rarely = self.look_rarely(is_recorded=False)
        try:
            yield
        finally:
            with self._lock:
                self._rarely -= 1
                if not self._rarely:
                    gc.set_threshold(*self._before_rarely)

    def look_rarely(self, *, is_recorded: bool) -> tuple[int, int, int]:
        """Raise the thresholds for a part of a run; gives what they were.

        A large cluster is millions of small objects that live long: with Python's default
        thresholds the collector walks them again and again.
        """
        before = gc.get_threshold()
        least = _THRESHOLD_RECORDED if is_recorded else _THRESHOLD
        gc.set_threshold(before[0] and max(before[0], least), *before[1:])
        return before

    def set_aside(self) -> None:
        """Have the collector pass over what there is now."""
        now_s = time.perf_counter()
        if not self._has_frozen:
            self._is_refused = self._is_refused or not gc.isenabled() or gc.get_freeze_count() > 0
            if self._is_refused:
                return
            self._has_frozen = True
            self._looked_s = now_s
            self._due_s = now_s + _PAUSE_S
        elif now_s > self._due_s and not self._put_off(now_s):
            gc.unfreeze()
            gc.collect()
            took_s = time.perf_counter() - now_s
            self._looked_s = now_s
            self._due_s = now_s + max(_PAUSE_S, took_s * _SHARE)
        gc.freeze()

    def _put_off(self, now_s: float) -> bool:
        """Put a look off until it takes its share only; False if it does so now."""
        due_s = self._looked_s + gc.get_freeze_count() * _OBJECT_S * _SHARE
        if now_s < due_s:
            self._due_s = due_s
        return now_s < due_s

    def take_back(self) -> None:
        """Have the collector look at everything again."""
        if self._has_frozen:
            self._has_frozen = False
            gc.unfreeze()


garbage: _Garbage = _Garbage()
