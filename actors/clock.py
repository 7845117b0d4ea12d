"""The clock of a machine, which can be set and can run at a rate of its own.

A process measures elapsed time by the clock of its machine, and its timers fire by it. The
runtime's time is the true time: it governs the delays of messages, and traces record it. A rate is
an integer in parts per million, so that results are the same on every platform.
"""

from __future__ import annotations

NORMAL_RATE_PPM = 1_000_000


def rescaled(span_us: int, before_ppm: int, after_ppm: int) -> int:
    """Return how long the rest of a wait takes after its clock changes its rate, rounded up."""
    return -(-span_us * before_ppm // after_ppm)


class Clock:
    """A machine's clock, kept as its lead over the runtime's clock.

    A change of the rate causes no jump: when the usual rate returns, the clock keeps its lead.
    """

    def __init__(self) -> None:
        self.rate_ppm: int = NORMAL_RATE_PPM
        """Microseconds by which the clock advances in a second of the runtime's time."""
        self.shift_ms: int = 0
        """Milliseconds by which the wall clock was set forward; negative if it was set back."""
        self._since_us = 0  # the runtime's time at the last change of the rate
        self._ahead_ps = 0  # the lead at that time due to the rates, in picoseconds

    @property
    def has_drifted(self) -> bool:
        """True if elapsed time by this clock may differ from the runtime's."""
        return self.rate_ppm != NORMAL_RATE_PPM or self._ahead_ps != 0

    def ahead_us(self, now_us: int) -> int:
        """Return the lead due to the rates at the runtime's time ``now_us``; below 0 if behind."""
        return self._ahead_ps_at(now_us) // NORMAL_RATE_PPM

    def _ahead_ps_at(self, now_us: int) -> int:
        return self._ahead_ps + (now_us - self._since_us) * (self.rate_ppm - NORMAL_RATE_PPM)

    def wall_ahead_ms(self, now_us: int) -> int:
        """Return the lead of the wall clock, due to its being set and to the rates."""
        return self.shift_ms + self.ahead_us(now_us) // 1000

    def set_rate(self, rate_ppm: int, now_us: int) -> None:
        """Change the rate at the runtime's time ``now_us``."""
        self._ahead_ps = self._ahead_ps_at(now_us)
        self._since_us = now_us
        self.rate_ppm = rate_ppm

    def to_runtime_us(self, span_us: int) -> int:
        """Return the runtime's time in which this clock advances by a span, rounded up."""
        if self.rate_ppm == NORMAL_RATE_PPM:
            return span_us
        return -(-span_us * NORMAL_RATE_PPM // self.rate_ppm)
