"""The clock of a machine: it may be set, and run at a rate of its own.

All that a process takes for elapsed goes by the clock of its machine, and so do its timers. The
runtime's time is that of the world: messages are under way in it, and traces tell it. A rate is
counted in whole parts per million, so that every machine computes the same.
"""

from __future__ import annotations

USUAL_PPM = 1_000_000


def rescaled(span_us: int, before_ppm: int, after_ppm: int) -> int:
    """How long the rest of a wait takes, not less, from the moment on at which the rate of the
    clock that it goes by changes."""
    return -(-span_us * before_ppm // after_ppm)


class Clock:
    """How far one machine's clock is ahead of the runtime's.

    A change of its rate makes no jump. What it is ahead by then it keeps when the rate is the
    usual one again.
    """

    def __init__(self) -> None:
        self.rate_ppm: int = USUAL_PPM
        """How many microseconds it goes on in a second."""
        self.shift_ms: int = 0
        """How far its wall clock was set forward."""
        self._since_us = 0  # the runtime's time at the last change of the rate
        self._ahead_ps = 0  # how far it was ahead by its rates then, to the picosecond

    @property
    def has_drifted(self) -> bool:
        """Whether it may differ from the runtime's in what it takes for elapsed."""
        return self.rate_ppm != USUAL_PPM or self._ahead_ps != 0

    def ahead_us(self, now_us: int) -> int:
        """How far it has come to be ahead by its rates, when the runtime's clock says ``now_us``;
        below 0 if it is behind."""
        return self._ahead_ps_at(now_us) // USUAL_PPM

    def _ahead_ps_at(self, now_us: int) -> int:
        return self._ahead_ps + (now_us - self._since_us) * (self.rate_ppm - USUAL_PPM)

    def wall_ahead_ms(self, now_us: int) -> int:
        """How far its wall clock is ahead, as it was set and by its rates."""
        return self.shift_ms + self.ahead_us(now_us) // 1000

    def set_rate(self, rate_ppm: int, now_us: int) -> None:
        """Run at another rate from now on."""
        self._ahead_ps = self._ahead_ps_at(now_us)
        self._since_us = now_us
        self.rate_ppm = rate_ppm

    def lasts_us(self, span_us: int) -> int:
        """How long it is until this clock has gone on by a span, by that of the runtime."""
        if self.rate_ppm == USUAL_PPM:
            return span_us
        return -(-span_us * USUAL_PPM // self.rate_ppm)
