"""Log lines about clients, at a bounded rate: whoever connects in a loop must not fill the disk."""

from __future__ import annotations

import asyncio
import logging

LINES_MAX = 100
PERIOD_S = 10.0


class BoundedLog:
    """At most ``LINES_MAX`` lines in a period; how many more there were is said at its end."""

    __slots__ = ("_left_out", "_lines", "_logger", "_loop", "_owner", "_timer")

    def __init__(self, logger: logging.Logger, loop: asyncio.AbstractEventLoop, owner: str) -> None:
        self._logger = logger
        self._loop = loop
        self._owner = owner
        self._lines = 0
        self._left_out = 0
        self._timer: asyncio.TimerHandle | None = None

    def log(
        self, level: int, text: str, *args: object, exc_info: BaseException | None = None
    ) -> None:
        """Write a line, or count it where there are too many."""
        if self._timer is None:
            self._timer = self._loop.call_later(PERIOD_S, self.end_period)
        if self._lines >= LINES_MAX:
            self._left_out += 1
            return
        self._lines += 1
        self._logger.log(level, text, *args, exc_info=exc_info)

    def end_period(self) -> None:
        """Say what was left out; from now on lines are written again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        left_out, self._left_out, self._lines = self._left_out, 0, 0
        if left_out:
            self._logger.warning(
                "%s: %d more lines like the last ones were left out", self._owner, left_out
            )
