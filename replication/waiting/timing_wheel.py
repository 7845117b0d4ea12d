"""A hierarchical timing wheel, and the timer that drives one from a single host timer.

A wheel of ``wheel_size`` slots of ``tick_ms``; what lies beyond its span goes to an overflow wheel
whose tick is the span of the one below, and falls down level by level as time passes
(docs/kafka/purgatory.md#timing-wheel, Kafka's ``TimingWheel`` and ``SystemTimer``). Buckets live in
a dictionary by level and start instead of a ring of slots: the same buckets exist at the same
times, the empty ones cost nothing.
"""

from __future__ import annotations

from heapq import heappop, heappush

from ...protocol.declaring.native import mypyc_attr
from ...protocol.host import Causes, Host, Timer

_WIDE_MS = 20
_RECENT_MAX = 64


class Bucket(dict["TimerEntry", None]):
    """Entries whose expiration falls into one slot; in the order they came."""

    __slots__ = ("end_ms", "start_ms")

    def __init__(self, start_ms: int, end_ms: int) -> None:
        self.start_ms: int = start_ms
        self.end_ms: int = end_ms
        """End (exclusive) of the slot; 0 once the wheel has the bucket no more."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerEntry:
    """Something that runs once its time has come, unless it is cancelled before."""

    __slots__ = ("bucket", "expiration_ms")

    def __init__(self, expiration_ms: int = 0) -> None:
        self.expiration_ms: int = expiration_ms
        self.bucket: Bucket | None = None
        """The bucket it waits in; None while it does not wait."""

    def run(self) -> None:
        """Called by the wheel when the entry is due."""
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
    """Orders timer entries by time; moved by ``advance_clock`` only."""

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
        """Whether no entry waits."""
        return not any(self._buckets.values())

    def add(self, entry: TimerEntry) -> bool:
        """Take an entry in; False if it is due already and the caller has to run it."""
        expiration_ms = entry.expiration_ms
        tick = self._tick_ms
        now = self.current_ms
        if expiration_ms < now + tick:
            return False
        wheel_size = self._wheel_size
        interval = tick * wheel_size
        level = 0
        remaining_ms = expiration_ms - now
        while remaining_ms >= interval:  # beyond the wheel's span wherever in a slot now is
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
        """Start of the earliest bucket that holds an entry: when the clock must advance next."""
        due = self._due
        while due:
            start, key = due[0]
            if self._buckets[key]:
                return start
            heappop(due)
            self._buckets.pop(key).end_ms = 0
        return None

    def advance_clock(self, now_ms: int) -> int:
        """Run what is due by ``now_ms``; gives the number of entries run."""
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
        """Drop every entry unrun."""
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
    """A wheel on the host's clock: however many entries wait, the host keeps one timer."""

    def __init__(
        self,
        host: Host,
        tick_ms: int = 1,
        wheel_size: int = 20,
        causes: Causes | None = None,
    ) -> None:
        self._host = host
        self.causes: Causes | None = causes
        """Told by each entry that is due what had set it, while a run is recorded."""
        self._call_later_ms = host.call_later_ms if causes is None else causes.wake_later_ms
        self.wheel: HierarchicalTimingWheel = HierarchicalTimingWheel(
            tick_ms, wheel_size, host.now_ms()
        )
        self._host_timer: Timer | None = None
        self._wakes_at_ms = 0
        """When the host timer fires; meaningful while there is one."""
        self._recent: dict[int, Bucket] = {}
        """The wide bucket the last entry of a delay went to. Timeouts are few and long, so the
        next one belongs there too, and the host timer is set for it already."""

    def now_ms(self) -> int:
        """The host's time."""
        return self._host.now_ms()

    def add(self, entry: TimerEntry, delay_ms: int) -> None:
        """Run ``entry`` after a delay; at once if there is none."""
        self.add_at(entry, delay_ms, self._host.now_ms())

    def add_at(self, entry: TimerEntry, delay_ms: int, now_ms: int) -> None:
        """``add`` for a caller who knows the host's time."""
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
        # What ran may have added an entry and with it a host timer.
        if wakes_at_ms is not None and (
            self._host_timer is None or wakes_at_ms < self._wakes_at_ms
        ):
            self._wake_at(wakes_at_ms, now_ms)

    def close(self) -> None:
        """Stop the host timer and forget every entry."""
        if self._host_timer is not None:
            self._host_timer.cancel()
            self._host_timer = None
        self.wheel.clear()
