"""Operations that wait until a condition holds or they time out
(docs/kafka/purgatory.md#purgatory).

An operation is watched under one or more keys; code that changes the state of a key then calls
``check_and_complete``. The first ``force_complete`` of an operation completes it and later ones
return False, so it completes exactly once. One actor owns a purgatory: there are no locks, and
Kafka's second attempt after watching, which closes a race between threads, is not needed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ...protocol.declaring.native import mypyc_attr
from ...protocol.host import Causes
from .timing_wheel import Bucket, TimerEntry, WheelTimer


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(TimerEntry):
    """An operation that completes when its condition holds or after ``delay_ms``.

    Subclasses define how: ``try_complete`` tests the condition and calls ``force_complete``,
    ``on_complete`` carries out the operation, once, and ``on_expiration`` reacts to a timeout.
    """

    __slots__ = ("_keys", "_purgatory", "cause", "delay_ms", "is_completed")

    cause: int | None
    """Sequence number of the event in which the operation began to wait, in a recorded run."""

    def __init__(self, delay_ms: int) -> None:
        # TimerEntry's fields, set without a call, as every fetch has an operation.
        self.expiration_ms = 0
        self.bucket: Bucket | None = None
        self.delay_ms: int = delay_ms
        self.is_completed: bool = False
        self._purgatory: Purgatory | None = None
        """Purgatory that counts the operation as delayed; None before it is watched and after it
        completed."""
        self._keys: Sequence[Hashable] = ()

    def try_complete(self) -> bool:
        """Complete if the condition holds: ``return self.force_complete()``, else False."""
        raise NotImplementedError

    def on_complete(self) -> None:
        """Carry out the operation, for whatever reason it completed; called exactly once."""
        raise NotImplementedError

    def on_expiration(self) -> None:
        """React to a timeout; called after ``on_complete``."""

    def force_complete(self) -> bool:
        """Complete now; return False if the operation has completed before."""
        if self.is_completed:
            return False
        self.is_completed = True
        self.leave()
        self.on_complete()
        return True

    def leave(self) -> None:
        """Leave timer and counts; note for a purge the keys that may still list the operation."""
        bucket = self.bucket
        if bucket is not None:
            self.bucket = None
            del bucket[self]
        purgatory = self._purgatory
        if purgatory is not None:
            self._purgatory = None
            purgatory.delayed_count -= 1
            keys, self._keys = self._keys, ()
            if len(keys) != 1 or keys[0] is not purgatory._poked_key:
                purgatory._lingering += 1
                stale_keys = purgatory._stale_keys
                for key in keys:
                    stale_keys[key] = None

    def awaited_brokers(self) -> list[str]:
        """Return the actors on which the operation depends; none if it waits only for a time."""
        return []

    def _report_expiry(self, causes: Causes) -> None:
        peers = self.awaited_brokers()
        if peers:
            causes.record_timeout(peers, self.cause, self.delay_ms)
        else:
            causes.record_due_entry(type(self).__name__, self.cause)

    def run(self) -> None:
        """Complete the operation, as it has timed out."""
        purgatory = self._purgatory
        if purgatory is not None and purgatory.timer.causes is not None:
            self._report_expiry(purgatory.timer.causes)
        if self.force_complete():
            self.on_expiration()


class Purgatory:
    """The waiting operations, by key.

    A completed operation stays in the lists of its other keys until these keys are checked, or
    until more than ``purge_interval`` such operations have completed since the last purge.
    """

    def __init__(self, name: str, timer: WheelTimer, purge_interval: int = 1000) -> None:
        self.name: str = name
        self.timer: WheelTimer = timer
        self.purge_interval: int = purge_interval
        self.delayed_count: int = 0
        """Number of operations watched and not completed (Kafka: ``numDelayed``)."""
        self._lingering = 0
        """Number of operations that completed since the last purge and may still be listed."""
        self._watchers: dict[Hashable, list[DelayedOperation]] = {}
        self._stale_keys: dict[Hashable, None] = {}
        """Keys under which completed operations may still be listed."""
        self._poked_key: Hashable = None
        """Key whose only operation is being tried, and is not left listed if it completes."""

    @property
    def watched_count(self) -> int:
        """Number of entries in all lists, including completed operations that are still listed."""
        return sum(map(len, self._watchers.values()))

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Sequence[Hashable], now_ms: int | None = None
    ) -> bool:
        """Complete the operation or watch it under ``keys``; return True if it completed.

        ``now_ms`` is the host's time, if the caller knows it. Raises ``ValueError`` without keys.
        """
        if not keys:
            raise ValueError("a delayed operation needs at least one key to be watched under")
        if operation.try_complete():
            return True
        self.watch(operation, keys, self.timer.now_ms() if now_ms is None else now_ms)
        return False

    def watch(self, operation: DelayedOperation, keys: Sequence[Hashable], now_ms: int) -> None:
        """Watch an operation of which the caller knows that it cannot complete yet."""
        watchers = self._watchers
        for key in keys:
            watched = watchers.get(key)
            if watched is None:
                watchers[key] = [operation]
            else:
                watched.append(operation)
        operation._keys = keys
        operation._purgatory = self
        causes = self.timer.causes
        if causes is not None:
            operation.cause = causes.current()
        self.delayed_count += 1
        if self._lingering > self.purge_interval:
            self.purge()
        self.timer.add_at(operation, operation.delay_ms, now_ms)

    def check_and_complete(self, key: Hashable) -> int:
        """Try the operations watched under a key; return the number completed by this call."""
        watched = self._watchers.get(key)
        if watched is None:
            return 0
        if len(watched) == 1:
            if watched[0].is_completed:
                self._drop_completed(key)
                return 0
            operation = watched[0]
            self._poked_key = operation._keys[0]
            completed = operation.try_complete()
            self._poked_key = None
            if operation.is_completed and watched and watched[0] is operation:
                # Completing may have watched another operation under the key, or checked it again.
                del watched[0]
                if not watched:
                    del self._watchers[key]
            return 1 if completed else 0
        count = 0
        # Completing may check this key again or watch a new operation under it: iterate a copy.
        for operation in tuple(watched):
            if not operation.is_completed and operation.try_complete():
                count += 1
        self._drop_completed(key)
        return count

    def _drop_completed(self, key: Hashable) -> None:
        self._stale_keys.pop(key, None)
        watched = self._watchers.get(key)
        if watched is None:
            return
        waiting = [operation for operation in watched if not operation.is_completed]
        watched[:] = waiting  # in place: an outer check of the key may hold the list
        if not waiting:
            del self._watchers[key]

    def purge(self) -> None:
        """Remove completed operations from the lists."""
        self._lingering = 0
        for key in tuple(self._stale_keys):
            self._drop_completed(key)
