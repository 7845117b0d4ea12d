"""A timer with at most one scheduled call."""

from __future__ import annotations

from collections.abc import Callable

from ..protocol.host import Host, Timer, name_as


class OneTimer:
    """A timer that has at most one scheduled call; setting it again replaces that call."""

    __slots__ = ("_host", "_timer")

    def __init__(self, host: Host) -> None:
        self._host = host
        self._timer: Timer | None = None

    def set(self, delay_ms: float, callback: Callable[[], object]) -> None:
        """Schedule one call after a delay, in place of any call scheduled before."""
        self.cancel()

        def fire() -> None:
            self._timer = None
            callback()

        name_as(fire, callback)
        self._timer = self._host.call_later_ms(delay_ms, fire)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
