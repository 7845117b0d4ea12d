"""Periodic work that pauses while there is nothing to do."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...protocol.host import Host, Timer, name_as


class Periodic:
    """Calls ``work`` at multiples of an interval after ``started_ms``, while ``is_wanted``."""

    def __init__(
        self,
        host: Host,
        interval_ms: int,
        work: Callable[[], object],
        is_wanted: Callable[[], object],
        started_ms: int,
    ) -> None:
        self._host = host
        self._interval_ms = interval_ms
        self._work = work
        self._is_wanted = is_wanted
        self._started_ms = started_ms
        self._timer: Timer | None = None
        self._fire = functools.partial(self._work_if_wanted)
        name_as(self._fire, work)

    def wake(self) -> None:
        """Schedule the next call, as there may be work from now on."""
        if self._timer is None:
            passed_ms = (self._host.now_ms() - self._started_ms) % self._interval_ms
            delay_ms = self._interval_ms - passed_ms
            self._timer = self._host.call_later_ms(delay_ms, self._fire)

    def _work_if_wanted(self) -> None:
        self._timer = None
        if self._is_wanted():
            self.wake()
            self._work()
