"""The cluster's events as a stream: elections, ISR changes, brokers, groups, clients.

The cluster's state is polled about twenty times a second. Several changes between two polls are one
event, whose leader epoch and partition epoch show the number of decisions. Refusals of clients'
requests come from the listeners. The page, the streams and the log of a server all read this feed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ...protocol.errors import FakeKafkaError
from .clients import Clients, observe_clients
from .snapshots import GROUPS_EVERY, INTERVAL_S, ClusterSnapshot, Comparison, Event
from .words import DEBUG, level, words

if TYPE_CHECKING:
    from ...testing.cluster import Cluster
    from ...testing.memory_bound import Deleted

KEPT = 500
"""Number of events that are kept for later subscribers."""
_MEMORY_S = 5.0
"""Minimum interval in seconds of events about records deleted to save memory."""
QUEUED_MAX = 5000
"""Maximum number of events queued for a reader. Further events are lost, which the reader learns
from an event ``lost``."""


class EventQueue:
    """The queue of events for one reader; ``wake`` is called when events arrive."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._events: deque[Event] = deque()
        self._lost = 0

    def put(self, event: Event) -> None:
        if len(self._events) >= QUEUED_MAX:
            self._lost += 1
        else:
            self._events.append(event)
        self._wake()

    def take(self) -> list[Event]:
        """Take the queued events, followed by an event ``lost`` if the queue was full."""
        events = list(self._events)
        for _ in events:
            self._events.popleft()
        lost, self._lost = self._lost, 0
        if lost:
            event: Event = {"type": "lost", "count": lost}
            events.append({**event, "text": words(event)})
        return events


class EventFeed:
    """Polls a cluster in a thread of its own, and publishes changes to subscribers."""

    def __init__(self, cluster: Cluster, *, with_details: bool = False) -> None:
        """``with_details`` adds events for connections and for usual errors of clients."""
        self._cluster = cluster
        self._lock = threading.Lock()
        self._subscriptions: list[EventQueue] = []
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._last_id = 0
        self._closing = threading.Event()
        self._clients = Clients(self.publish, with_details=with_details)
        self._memory_s = 0.0  # time of the last event about deleted records
        self._deletions: list[Deleted] = []
        self._faults: Callable[[], Iterable[str]] = tuple
        self._known_faults: dict[str, None] = {}
        self._comparison: Comparison
        self._thread = threading.Thread(target=self._run, name="fakekafka-events", daemon=True)

    def start(self) -> None:
        """Take the first snapshot, and publish changes from now on."""
        self._comparison = Comparison(ClusterSnapshot(self._cluster, with_groups=True))
        observe_clients(self._cluster, self._clients)
        if self._cluster.memory is not None:
            self._cluster.memory.on_deleted = self._deletions.append
        self._thread.start()

    def close(self) -> None:
        """Stop polling; subscribers get no further events after the last snapshot."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()
            with contextlib.suppress(FakeKafkaError):  # the cluster may have been stopped
                observe_clients(self._cluster, None)

    def watch_faults(self, faults: Callable[[], Iterable[str]]) -> None:
        """Publish faults that begin or end; the function returns the active faults in words."""
        self._faults = faults

    def publish(self, event: Event) -> None:
        """Number an event, describe it in ``text``, keep it, and queue it for every subscriber."""
        with self._lock:
            self._last_id += 1
            numbered = {"id": self._last_id, "at_ms": int(time.time() * 1000), **event}
            numbered["text"] = words(event)
            if level(event) != DEBUG:
                self._kept.append(numbered)
            for subscription in self._subscriptions:
                subscription.put(numbered)

    def subscribe(self, wake: Callable[[], object], since: int | None = None) -> EventQueue:
        """Return a queue of every event from now on, preceded by kept events after ``since``."""
        subscription = EventQueue(wake)
        with self._lock:
            for event in self._kept:
                if since is not None and event["id"] > since:
                    subscription.put(event)
            self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: EventQueue) -> None:
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def _run(self) -> None:
        number = 0
        while not self._closing.wait(INTERVAL_S):
            number += 1
            self._poll(with_groups=number % GROUPS_EVERY == 0)
        self._poll(with_groups=True)

    def _poll(self, *, with_groups: bool) -> None:
        try:
            snapshot = ClusterSnapshot(self._cluster, with_groups=with_groups)
            events = list(self._comparison.changes(snapshot))
            faults = dict.fromkeys(self._faults())
        except FakeKafkaError:  # the cluster is being stopped
            return
        for event in events:
            if event["type"] == "topic" and event["change"] == "created":
                event |= self._clients.creation_request(event["topic"])
            self.publish(event)
        for event in (*_fault_changes(self._known_faults, faults), *self._clients.repeated()):
            self.publish(event)
        self._known_faults = faults
        if self._deletions and time.monotonic() - self._memory_s >= _MEMORY_S:
            self._memory_s = time.monotonic()
            deletions, self._deletions[:] = [*self._deletions], ()
            self.publish(self._memory_event(deletions))

    def _memory_event(self, deletions: list[Deleted]) -> Event:
        """Return one event about all records deleted since the last event of this kind."""
        assert self._cluster.memory is not None
        starts = {str(name): start for one in deletions for name, start in one.log_starts.items()}
        return {
            "type": "memory",
            "bytes": sum(one.bytes_deleted for one in deletions),
            "kept_bytes": deletions[-1].kept_bytes,
            "bytes_max": self._cluster.memory.bytes_max,
            "log_starts": starts,
        }


def _fault_changes(before: Mapping[str, None], now: Mapping[str, None]) -> list[Event]:
    return [
        *({"type": "fault", "change": "ends", "fault": one} for one in before if one not in now),
        *({"type": "fault", "change": "begins", "fault": one} for one in now if one not in before),
    ]
