"""Latency models of links: constant, uniform, lognormal. Delays are drawn in microseconds."""

from __future__ import annotations

import math
import random
from typing import Protocol

from ...protocol.errors import UsageError


class LatencyModel(Protocol):
    """Draws the one-way delay of a message."""

    constant_us: int | None
    """The delay if it is constant, otherwise None."""
    typical_us: float
    """Median delay."""
    uniform_us: tuple[int, int] | None
    """Minimum delay and number of equally likely values from it on; None if they are not."""

    def draw_us(self, rng: random.Random) -> int: ...


def _microseconds(name: str, value_ms: float) -> int:
    if not value_ms >= 0 or math.isinf(value_ms):
        raise UsageError(f"{name} must be a number of milliseconds >= 0, not {value_ms!r}")
    return round(value_ms * 1000)


class Constant:
    """A constant delay of ``delay_ms``."""

    def __init__(self, delay_ms: float) -> None:
        self.constant_us: int | None = _microseconds("delay_ms", delay_ms)
        self.typical_us: float = float(self.constant_us or 0)
        self.uniform_us: tuple[int, int] | None = None

    def __str__(self) -> str:
        assert self.constant_us is not None
        return f"{self.constant_us / 1000:g} ms"

    def draw_us(self, rng: random.Random) -> int:
        assert self.constant_us is not None
        return self.constant_us


class Uniform:
    """Delays distributed uniformly from ``low_ms`` to ``high_ms``."""

    constant_us: int | None = None

    def __init__(self, low_ms: float, high_ms: float) -> None:
        self._low = _microseconds("low_ms", low_ms)
        self._values = _microseconds("high_ms", high_ms) - self._low + 1
        if self._values < 1:
            raise UsageError(f"high_ms {high_ms} is below low_ms {low_ms}")
        self.uniform_us: tuple[int, int] | None = (self._low, self._values)
        self.typical_us: float = self._low + self._values / 2

    def __str__(self) -> str:
        return f"{self._low / 1000:g} to {(self._low + self._values - 1) / 1000:g} ms"

    def draw_us(self, rng: random.Random) -> int:
        return self._low + int(rng.random() * self._values)


class Lognormal:
    """Lognormal delays with a long tail, of median ``median_ms`` and logarithmic ``sigma``."""

    constant_us: int | None = None
    uniform_us: tuple[int, int] | None = None

    def __init__(self, median_ms: float, sigma: float = 0.5) -> None:
        self._mu = math.log(max(_microseconds("median_ms", median_ms), 1))
        self.typical_us: float = math.exp(self._mu)
        if sigma < 0:
            raise UsageError(f"sigma must be >= 0, not {sigma!r}")
        self._sigma = sigma

    def __str__(self) -> str:
        return f"lognormal, median {math.exp(self._mu) / 1000:g} ms, sigma {self._sigma:g}"

    def draw_us(self, rng: random.Random) -> int:
        return round(math.exp(self._mu + _normal(rng) * self._sigma))


_KINDERMAN_MONAHAN = 4 * math.exp(-0.5) / math.sqrt(2)


def _normal(rng: random.Random) -> float:
    """Draw from the standard normal distribution, by the ratio of Kinderman and Monahan (1977).

    Python itself draws like this today, but guarantees only that ``random()`` stays the same.
    """
    while True:
        drawn = rng.random()
        other = 1 - rng.random()
        z = _KINDERMAN_MONAHAN * (drawn - 0.5) / other
        if z * z / 4 <= -math.log(other):
            return z
