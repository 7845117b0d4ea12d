"""Operations that wait until a condition holds or their time is up (data_plane 9.1).

An operation is watched under one or more keys; whoever changes something about a key pokes it with
``check_and_complete``. The first to ``force_complete`` an operation completes it, all others get
False, so it completes exactly once. One actor owns a purgatory: there are no locks, and the second
attempt that Kafka makes after watching (to close a race between threads) has nothing to find.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from .timing_wheel import TimerEntry, WheelTimer


class DelayedOperation(TimerEntry):
    """An operation that completes when its condition holds or after ``delay_ms``.

    Subclasses say how: ``try_complete`` tests and calls ``force_complete``, ``on_complete`` does
    what is to be done, once, ``on_expiration`` notes that it was the time that ran out.
    """

    __slots__ = ("_keys", "_purgatory", "delay_ms", "is_completed")

    def __init__(self, delay_ms: int) -> None:
        # TimerEntry's fields, without the call: made for every fetch.
        self.expiration_ms = 0
        self._bucket = None
        self.delay_ms = delay_ms
        self.is_completed = False
        self._purgatory: Purgatory | None = None
        """Where it counts as delayed; None before it is watched and after it completed."""
        self._keys: Sequence[Hashable] = ()

    def try_complete(self) -> bool:
        """Complete if the condition holds: ``return self.force_complete()``, else False."""
        raise NotImplementedError

    def on_complete(self) -> None:
        """What to do on completion, whatever brought it about; runs exactly once."""
        raise NotImplementedError

    def on_expiration(self) -> None:
        """Called after ``on_complete`` when the time was up."""

    def force_complete(self) -> bool:
        """Complete now; False if that happened before."""
        if self.is_completed:
            return False
        self.is_completed = True
        if self._purgatory is not None:
            self._leave()
        else:
            bucket = self._bucket
            if bucket is not None:
                self._bucket = None
                del bucket[self]
                bucket.wheel.size -= 1
        self.on_complete()
        return True

    def _leave(self) -> None:
        bucket = self._bucket
        if bucket is not None:
            self._bucket = None
            del bucket[self]
            bucket.wheel.size -= 1
        purgatory = self._purgatory
        if purgatory is not None:
            self._purgatory = None
            purgatory.delayed_count -= 1
            stale_keys = purgatory._stale_keys
            for key in self._keys:
                stale_keys[key] = None

    def run(self) -> None:
        """The time is up."""
        if self.force_complete():
            self.on_expiration()


class Purgatory:
    """The operations that wait, by key.

    A completed operation stays in the lists of its other keys until somebody touches them or
    until more than ``purge_interval`` operations have completed since the last purge.
    """

    __slots__ = (
        "_estimated_total",
        "_stale_keys",
        "_watchers",
        "delayed_count",
        "name",
        "purge_interval",
        "timer",
    )

    def __init__(self, name: str, timer: WheelTimer, purge_interval: int = 1000) -> None:
        self.name = name
        self.timer = timer
        self.purge_interval = purge_interval
        self.delayed_count = 0
        """Operations watched and not completed (Kafka: ``numDelayed``)."""
        self._estimated_total = 0
        self._watchers: dict[Hashable, list[DelayedOperation]] = {}
        self._stale_keys: dict[Hashable, None] = {}
        """Keys under which completed operations may still be listed."""

    @property
    def watched_count(self) -> int:
        """Entries in the lists, operation by key, completed ones that linger included."""
        return sum(map(len, self._watchers.values()))

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Sequence[Hashable]
    ) -> bool:
        """Complete the operation or watch it under ``keys`` (at least one); True if completed."""
        if not keys:
            raise ValueError("a delayed operation needs at least one key to be watched under")
        if operation.try_complete():
            return True
        watchers = self._watchers
        for key in keys:
            watched = watchers.get(key)
            if watched is None:
                watchers[key] = [operation]
            else:
                watched.append(operation)
        operation._keys = keys
        operation._purgatory = self
        self.delayed_count += 1
        self._estimated_total += 1
        if self._estimated_total - self.delayed_count > self.purge_interval:
            self.purge()
        self.timer.add(operation, operation.delay_ms)
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Try what is watched under a key; gives how many operations this call completed."""
        watched = self._watchers.get(key)
        if watched is None:
            return 0
        if len(watched) == 1:
            operation = watched[0]
            completed = not operation.is_completed and operation.try_complete()
            if operation.is_completed:
                # Unless completing put another operation under the key.
                if len(watched) == 1 and self._watchers.get(key) is watched:
                    del self._watchers[key]
                    self._stale_keys.pop(key, None)
                else:
                    self._drop_completed(key)
            return 1 if completed else 0
        count = 0
        # Completing may poke this key again or watch a new operation under it: walk a copy.
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
        if waiting:
            watched[:] = waiting
        else:
            del self._watchers[key]

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Take the operations of a key out, uncompleted and without a timeout."""
        operations = self._watchers.pop(key, [])
        for operation in operations:
            if not operation.is_completed:
                operation._leave()
        self._stale_keys.pop(key, None)
        return operations

    def purge(self) -> None:
        """Drop completed operations from the lists in which they linger."""
        self._estimated_total = self.delayed_count
        for key in tuple(self._stale_keys):
            self._drop_completed(key)
