"""A rate in bytes per second (Kafka's ``SimpleRate``)."""

from __future__ import annotations


class ByteRate:
    """A rate over the last ``samples`` windows of ``window_ms`` each.

    The sum is divided by the time since the oldest window began, but at least by one window.
    """

    __slots__ = ("_samples", "_samples_max", "_window_ms")

    def __init__(self, samples: int, window_ms: int) -> None:
        self._samples_max = samples
        self._window_ms = window_ms
        self._samples: list[tuple[int, int]] = []
        """(start time in ms, bytes) of each window, oldest first."""

    def record(self, size: int, now_ms: int) -> None:
        """Record ``size`` bytes at ``now_ms``."""
        self._forget_old(now_ms)
        samples = self._samples
        if samples and now_ms - samples[-1][0] < self._window_ms:
            begin, before = samples[-1]
            samples[-1] = (begin, before + size)
        else:
            samples.append((now_ms, size))

    def fill(self, size: int, since_ms: int, now_ms: int) -> None:
        """Record ``size`` bytes for each window since ``since_ms``, if none are recorded."""
        self._forget_old(now_ms)
        if not self._samples:
            window_ms = self._window_ms
            first_ms = max(since_ms, now_ms - (self._samples_max - 1) * window_ms)
            self._samples = [(begin, size) for begin in range(first_ms, now_ms + 1, window_ms)]

    def clear(self) -> None:
        """Remove all windows."""
        self._samples = []

    def per_second(self, now_ms: int) -> float:
        """Return the rate as of ``now_ms``."""
        self._forget_old(now_ms)
        if not self._samples:
            return 0.0
        elapsed_ms = max(now_ms - self._samples[0][0], self._window_ms)
        return 1000 * sum(size for _, size in self._samples) / elapsed_ms

    def _forget_old(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._samples_max * self._window_ms
        self._samples = [sample for sample in self._samples if sample[0] > oldest_ms]
