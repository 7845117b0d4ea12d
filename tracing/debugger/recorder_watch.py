"""Checks breakpoints on the events that a recorder has taken in since the last check."""

from __future__ import annotations

from typing import Any

from ..recording.recorder import Recorder
from .breakpoints import Breakpoint, Watcher


class RecorderWatch:
    """Passes every event recorded from now on to a watcher."""

    def __init__(self, recorder: Recorder, watcher: Watcher) -> None:
        self._recorder = recorder
        self._watcher = watcher
        self.seen: int = len(recorder)
        """Number of the first event that was not passed on yet."""
        self.hit: tuple[int, Breakpoint, str] | None = None
        """The event after which a breakpoint stops, the breakpoint, and why."""

    def check(self) -> bool:
        """Pass new events to the watcher; return True if a breakpoint stops at one of them."""
        recorder, watcher = self._recorder, self._watcher
        raw: list[Any]
        for raw in recorder.raw_since(self.seen):
            self.seen = raw[0] + 1
            found = watcher.advance(raw, recorder.strings, recorder.decoded)
            if found is not None:
                self.hit = (raw[0], *found)
                return True
        return False
