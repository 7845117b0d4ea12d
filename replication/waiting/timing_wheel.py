"""A hierarchical timing wheel, and a timer that drives it from a single host timer.

A wheel has ``wheel_size`` slots of ``tick_ms``. Entries beyond its span go to an overflow wheel,
whose tick is the span of the wheel below, and move down level by level as time passes
(docs/kafka/purgatory.md#timing-wheel, Kafka's ``TimingWheel`` and ``SystemTimer``). Buckets are in
a dictionary by level and start instead of a ring of slots: the same buckets exist at the same
times, and empty ones cost nothing.
"""

from __future__ import annotations

from heapq import heappop, heappush

from ...protocol.declaring.native import mypyc_attr
from ...protocol.host import Causes, Host, Timer

_WIDE_MS = 20
_RECENT_MAX = 64


class Bucket(dict["TimerEntry", None]):
    """Entries whose expiration falls into one slot, in the order added."""

    __slots__ = ("end_ms", "start_ms")

    def __init__(self, start_ms: int, end_ms: int) -> None:
        self.start_ms: int = start_ms
        self.end_ms: int = end_ms
        """End (exclusive) of the slot; 0 once the wheel has dropped the bucket."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerEntry:
    """An entry that runs when it expires, unless it is cancelled before."""

    __slots__ = ("bucket", "expiration_ms")

    def __init__(self, expiration_ms: int = 0) -> None:
        self.expiration_ms: int = expiration_ms
        self.bucket: Bucket | None = None
        """Bucket in which the entry waits; None while it does not wait."""

    def run(self) -> None:
        """Run the entry; called by the wheel when it is due."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Leave the wheel; no effect if not waiting."""
        bucket = self.bucket
        if bucket is not None:
            self.bucket = None
            del bucket[self]

    @property
    def is_waiting(self) -> bool:
        return self.bucket is not None


class HierarchicalTimingWheel:
    """Orders timer entries by time; advanced only by ``advance_clock``."""

    def __init__(self, tick_ms: int = 1, wheel_size: int = 20, start_ms: int = 0) -> None:
        self._tick_ms = tick_ms
        self._wheel_size = wheel_size
        self.current_ms: int = start_ms - start_ms % tick_ms
        """Time of the wheel, a multiple of its tick; never later than the host's."""
        self._buckets: dict[int, Bucket] = {}
        self._due: list[tuple[int, int]] = []
        """Heap of (bucket start, bucket key) of all buckets, some of them emptied since."""

    @property
    def size(self) -> int:
        """Number of waiting entries."""
        return sum(map(len, self._buckets.values()))

    @property
    def is_empty(self) -> bool:
        """True if no entry waits."""
        return not any(self._buckets.values())

    def add(self, entry: TimerEntry) -> bool:
        """Add an entry; return False if it is due already and the caller has to run it."""
        expiration_ms = entry.expiration_ms
        tick = self._tick_ms
        now = self.current_ms
        if expiration_ms < now + tick:
            return False
        wheel_size = self._wheel_size
        interval = tick * wheel_size
        level = 0
        remaining_ms = expiration_ms - now
        while remaining_ms >= interval:  # beyond the span, wherever in its slot the time is
            tick = interval
            interval *= wheel_size
            level += 1
        if expiration_ms >= now - now % tick + interval:
            tick = interval
            level += 1
        start = expiration_ms - expiration_ms % tick
        key = start << 5 | level
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = Bucket(start, start + tick)
            heappush(self._due, (start, key))
        bucket[entry] = None
        entry.bucket = bucket
        return True

    def next_expiration_ms(self) -> int | None:
        """Return the time to advance the clock to: the start of the earliest bucket with an entry.

        Return None if no entry waits.
        """
        due = self._due
        while due:
            start, key = due[0]
            if self._buckets[key]:
                return start
            heappop(due)
            self._buckets.pop(key).end_ms = 0
        return None

    def advance_clock(self, now_ms: int) -> int:
        """Run the entries that are due by ``now_ms``; return their number."""
        due = self._due
        count = 0
        while due and due[0][0] <= now_ms:
            start, key = heappop(due)
            bucket = self._buckets.pop(key)
            bucket.end_ms = 0
            if start > self.current_ms:
                self.current_ms = start
            while bucket:
                entry, _ = bucket.popitem() if len(bucket) == 1 else _pop_first(bucket)
                entry.bucket = None
                if not self.add(entry):
                    count += 1
                    entry.run()
        if now_ms > self.current_ms:
            self.current_ms = now_ms - now_ms % self._tick_ms
        return count

    def clear(self) -> None:
        """Drop every entry without running it."""
        for bucket in self._buckets.values():
            bucket.end_ms = 0
            for entry in bucket:
                entry.bucket = None
        self._buckets.clear()
        self._due.clear()


def _pop_first(bucket: Bucket) -> tuple[TimerEntry, None]:
    entry = next(iter(bucket))
    return entry, bucket.pop(entry)


class WheelTimer:
    """A wheel on the host's clock, with a single host timer however many entries wait."""

    def __init__(
        self,
        host: Host,
        tick_ms: int = 1,
        wheel_size: int = 20,
        causes: Causes | None = None,
    ) -> None:
        self._host = host
        self.causes: Causes | None = causes
        """Receives the cause of each entry that comes due, in a recorded run; else None."""
        self._call_later_ms = host.call_later_ms if causes is None else causes.set_shared_timer_ms
        self.wheel: HierarchicalTimingWheel = HierarchicalTimingWheel(
            tick_ms, wheel_size, host.now_ms()
        )
        self._host_timer: Timer | None = None
        self._wakes_at_ms = 0
        """Time at which the host timer fires; meaningful while there is one."""
        self._recent: dict[int, Bucket] = {}
        """Wide bucket of the last entry with each delay. Different timeouts are few and long, so
        the next entry usually belongs there too, and the host timer is set for it already."""

    def now_ms(self) -> int:
        """Return the host's time."""
        return self._host.now_ms()

    def add(self, entry: TimerEntry, delay_ms: int) -> None:
        """Run ``entry`` after a delay, or at once if the delay is 0."""
        self.add_at(entry, delay_ms, self._host.now_ms())

    def add_at(self, entry: TimerEntry, delay_ms: int, now_ms: int) -> None:
        """Do the same as ``add``, given the host's time."""
        expiration_ms = entry.expiration_ms = now_ms + delay_ms
        bucket = self._recent.get(delay_ms)
        if bucket is not None and bucket.start_ms <= expiration_ms < bucket.end_ms:
            bucket[entry] = None
            entry.bucket = bucket
            return
        wheel = self.wheel
        if now_ms > wheel.current_ms and wheel.is_empty:
            wheel.advance_clock(now_ms)
        if not wheel.add(entry):
            entry.run()
            return
        bucket = entry.bucket
        assert bucket is not None
        if bucket.end_ms - bucket.start_ms >= _WIDE_MS:
            if len(self._recent) >= _RECENT_MAX:
                self._recent.clear()
            self._recent[delay_ms] = bucket
        if self._host_timer is None or bucket.start_ms < self._wakes_at_ms:
            self._wake_at(bucket.start_ms, now_ms)

    def _wake_at(self, wakes_at_ms: int, now_ms: int) -> None:
        if self._host_timer is not None:
            self._host_timer.cancel()
        self._wakes_at_ms = wakes_at_ms
        self._host_timer = self._call_later_ms(max(0, wakes_at_ms - now_ms), self._advance)

    def _advance(self) -> None:
        self._host_timer = None
        now_ms = self._host.now_ms()
        self.wheel.advance_clock(now_ms)
        self._wake_for_next(now_ms)

    def _wake_for_next(self, now_ms: int) -> None:
        wakes_at_ms = self.wheel.next_expiration_ms()
        # The entries that ran may have added others, and with them a host timer.
        if wakes_at_ms is not None and (
            self._host_timer is None or wakes_at_ms < self._wakes_at_ms
        ):
            self._wake_at(wakes_at_ms, now_ms)

    def close(self) -> None:
        """Stop the host timer and drop every entry."""
        if self._host_timer is not None:
            self._host_timer.cancel()
            self._host_timer = None
        self.wheel.clear()
