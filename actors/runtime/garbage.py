"""Tunes Python's collector of cyclic garbage while events run.

A recorder holds thousands of messages for a while. None of them is garbage, but each collection
would traverse all of them: a tenth of the time of a recorded run. So all objects that exist after a
part of a run are set aside (``gc.freeze``), and collected only so often that it takes a hundredth
of the time.
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
"""Allocations between two collections while a recorder holds messages."""
_INTERVAL_FACTOR = 100
"""Minimum interval between full collections, as a multiple of the time that one takes."""
_INTERVAL_MIN_S = 10.0
"""Minimum interval between full collections and before the first, in seconds."""
_COLLECTION_PER_OBJECT_S = 1e-6
"""Estimated time of a full collection per object set aside, in seconds."""


class _Garbage:
    """Settings of the collector; a singleton, as a Python process has one collector."""

    def __init__(self) -> None:
        self._has_frozen = False
        self._is_disabled = False  # the program that uses the cluster controls the collector itself
        self._due_s = 0.0
        self._collected_at_s = 0.0
        self._active_blocks = 0  # number of active blocks of ``raised_thresholds``
        self._outer_thresholds = (0, 0, 0)
        self._lock = threading.Lock()

    @contextmanager
    def raised_thresholds(self) -> Iterator[None]:
        """Raise the thresholds within a block: the start of a cluster, or a run of a batch from
        start to verdict. Objects created there live to its end, so they are no garbage."""
        with self._lock:
            self._active_blocks += 1
            if self._active_blocks == 1:
                self._outer_thresholds = self.raise_thresholds(is_recorded=False)
        try:
            yield
        finally:
            with self._lock:
                self._active_blocks -= 1
                if not self._active_blocks:
                    gc.set_threshold(*self._outer_thresholds)

    def raise_thresholds(self, *, is_recorded: bool) -> tuple[int, int, int]:
        """Raise the thresholds for a part of a run; returns the previous ones.

        A large cluster consists of millions of small long-lived objects, which the collector
        traverses again and again with Python's default thresholds.
        """
        before = gc.get_threshold()
        minimum = _THRESHOLD_RECORDED if is_recorded else _THRESHOLD
        gc.set_threshold(before[0] and max(before[0], minimum), *before[1:])
        return before

    def freeze(self) -> None:
        """Set aside all objects that exist now; run a full collection first if one is due."""
        now_s = time.perf_counter()
        if not self._has_frozen:
            self._is_disabled = self._is_disabled or not gc.isenabled() or gc.get_freeze_count() > 0
            if self._is_disabled:
                return
            self._has_frozen = True
            self._collected_at_s = now_s
            self._due_s = now_s + _INTERVAL_MIN_S
        elif now_s > self._due_s and not self._postpone(now_s):
            gc.unfreeze()
            gc.collect()
            took_s = time.perf_counter() - now_s
            self._collected_at_s = now_s
            self._due_s = now_s + max(_INTERVAL_MIN_S, took_s * _INTERVAL_FACTOR)
        gc.freeze()

    def _postpone(self, now_s: float) -> bool:
        """Postpone a full collection that would take more than its share of the time; returns False
        if it would not."""
        due_s = (
            self._collected_at_s
            + gc.get_freeze_count() * _COLLECTION_PER_OBJECT_S * _INTERVAL_FACTOR
        )
        if now_s < due_s:
            self._due_s = due_s
        return now_s < due_s

    def unfreeze(self) -> None:
        """Return all objects that were set aside to the collector."""
        if self._has_frozen:
            self._has_frozen = False
            gc.unfreeze()


garbage: _Garbage = _Garbage()
