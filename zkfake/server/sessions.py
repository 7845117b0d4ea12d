"""Expiry of sessions (ZooKeeper: ``SessionTrackerImpl``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from ...protocol.host import Host, SessionHost, Timer


def tell_owner(host: SessionHost, session_id: int, client: str) -> None:
    """Report the client of a session to the recorder of the run."""
    if host.state_listener is not None:
        host.record_session_owner(session_id, client)


def tell_expiry(host: SessionHost, session_id: int, timeouts_ms: Mapping[int, int]) -> None:
    """Report to the recorder of the run that a session expires."""
    if host.state_listener is not None:
        host.record_session_expiry(session_id, timeouts_ms.get(session_id, 0))


class SessionTracker:
    """Expires sessions that are silent for longer than their timeout, in buckets of one tick.

    As in ZooKeeper, a session expires between its timeout and one tick later. A tick is
    ``tick_time_ms``, or a third of the timeout for sessions shorter than three ticks. One timer
    runs for the earliest bucket, and none if there are no sessions.
    """

    def __init__(self, host: Host, tick_time_ms: int, on_expire: Callable[[int], object]) -> None:
        self._host = host
        self._tick_time_ms = tick_time_ms
        self._on_expire = on_expire
        self._timeout_ms: dict[int, int] = {}
        self._expiry_ms: dict[int, int] = {}  # session to the time of its bucket
        self._buckets: dict[int, dict[int, None]] = {}  # time to sessions; may be empty
        self._due: list[int] = []  # heap of the bucket times
        self._last_heard_event: dict[int, int | None] = {}
        """Event at which each session was last heard from, while a run is recorded."""
        self._timer: Timer | None = None
        self._timer_at_ms = 0

    def __contains__(self, session_id: int) -> bool:
        return session_id in self._timeout_ms

    def add(self, session_id: int, timeout_ms: int) -> None:
        """Track a session, whose timeout starts now."""
        self._timeout_ms[session_id] = timeout_ms
        self.touch(session_id)

    def touch(self, session_id: int) -> bool:
        """Restart a session's timeout; return False if it is not tracked (expired or closed)."""
        timeout_ms = self._timeout_ms.get(session_id)
        if timeout_ms is None:
            return False
        causes = self._host.causes
        if causes is not None:
            self._last_heard_event[session_id] = causes.current()
        tick = min(self._tick_time_ms, max(1, timeout_ms // 3))
        expiry_ms = ((self._host.now_ms() + timeout_ms) // tick + 1) * tick
        previous_expiry_ms = self._expiry_ms.get(session_id)
        if previous_expiry_ms is not None:
            if previous_expiry_ms >= expiry_ms:
                return True
            del self._buckets[previous_expiry_ms][session_id]
        self._expiry_ms[session_id] = expiry_ms
        bucket = self._buckets.get(expiry_ms)
        if bucket is None:
            bucket = self._buckets[expiry_ms] = {}
            heappush(self._due, expiry_ms)
            self._arm()
        bucket[session_id] = None
        return True

    def touch_all(self, session_ids: Iterable[int]) -> None:
        for session_id in session_ids:
            self.touch(session_id)

    def remove(self, session_id: int) -> None:
        """Stop tracking a session that was closed."""
        if self._timeout_ms.pop(session_id, None) is None:
            return
        self._last_heard_event.pop(session_id, None)
        del self._buckets[self._expiry_ms.pop(session_id)][session_id]
        if not self._timeout_ms:
            self.stop()

    def stop(self) -> None:
        """Forget all sessions and the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timeout_ms.clear()
        self._last_heard_event.clear()
        self._expiry_ms.clear()
        self._buckets.clear()
        self._due.clear()

    def _arm(self) -> None:
        due_ms = self._due[0]
        if self._timer is not None:
            if self._timer_at_ms <= due_ms:
                return
            self._timer.cancel()
        self._timer_at_ms = due_ms
        host = self._host
        call_later_ms = (
            host.call_later_ms if host.causes is None else host.causes.set_shared_timer_ms
        )
        self._timer = call_later_ms(due_ms - host.now_ms(), self._tick)

    def _tick(self) -> None:
        self._timer = None
        now_ms = self._host.now_ms()
        expired: list[int] = []
        while self._due and self._due[0] <= now_ms:
            expired.extend(self._buckets.pop(heappop(self._due)))
        for session_id in expired:
            del self._timeout_ms[session_id]
            del self._expiry_ms[session_id]
        # Empty buckets need no timer.
        while self._due and not self._buckets[self._due[0]]:
            del self._buckets[heappop(self._due)]
        if self._due:
            self._arm()
        causes = self._host.causes
        for session_id in expired:
            last_heard_event = self._last_heard_event.pop(session_id, None)
            if causes is not None:
                causes.record_due_entry("SessionTracker", last_heard_event)
            self._on_expire(session_id)
