"""What happens in the cluster, as a stream: elections, ISR changes, states of brokers.

The cluster is looked at some twenty times a second. What changed in between is one event: its
leader epoch and partition epoch count how many decisions there were.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..protocol.errors import FakeKafkaError
from ..protocol.values import TopicPartition

if TYPE_CHECKING:
    from ..protocol.values import LeaderAndIsr
    from ..testing.cluster import Cluster

INTERVAL_S = 0.05
KEPT = 500
"""Events that are kept for who asks later."""
QUEUED_MAX = 5000
"""Events that wait for a reader; who reads no faster loses the rest and is told so."""

Event = dict[str, Any]


class EventQueue:
    """Events on their way to one reader; ``wake`` is called when there are some."""

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
        """The events that came; an event ``lost`` says how many found no room."""
        events = list(self._events)
        for _ in events:
            self._events.popleft()
        lost, self._lost = self._lost, 0
        return [*events, {"type": "lost", "count": lost}] if lost else events


class Look:
    """What is compared from one look at the cluster to the next."""

    def __init__(self, cluster: Cluster) -> None:
        running = cluster.running
        controller = running.active_controller()
        self.controller = None if controller is None else controller.broker_id
        self.epoch = -1 if controller is None else controller.epoch
        self.partitions: Mapping[TopicPartition, Any] | None = None
        self.topics: frozenset[str] = frozenset()
        if controller is not None:
            topics = controller.context.topics
            process = running.processes[controller.broker_id].process
            self.partitions, self.topics = running.in_process(
                process,
                lambda: (dict(topics.partitions_leadership_info), frozenset(topics.all_topics)),
            )
        self.brokers = {
            broker_id: "paused" if process.process.paused else process.state
            for broker_id, process in running.processes.items()
        }
        self.zookeepers = {
            server_id: "running" if process.is_alive else "not_running"
            for server_id, process in running.zookeepers.items()
        }


class Comparison:
    """Finds what changed; partitions are remembered while no controller knows them."""

    def __init__(self, first: Look) -> None:
        self._last = first
        self._partitions = dict(first.partitions or {})
        self._missing_since: dict[str, int] = {}

    def changes(self, look: Look) -> Iterator[Event]:
        """Return what differs from the previous look."""
        last, self._last = self._last, look
        for kind, name, before, now in (
            ("broker", "broker", last.brokers, look.brokers),
            ("zookeeper", "server", last.zookeepers, look.zookeepers),
        ):
            for number, state in now.items():
                if before.get(number) != state:
                    yield {"type": kind, name: number, "state": state, "was": before.get(number)}
        if (look.controller, look.epoch) != (last.controller, last.epoch):
            yield {
                "type": "controller",
                "broker": look.controller,
                "epoch": look.epoch,
                "was": last.controller,
            }
        if look.partitions is not None:
            yield from self._partition_changes(look.partitions)
            yield from self._deletions(look)

    def _partition_changes(self, now: Mapping[TopicPartition, Any]) -> Iterator[Event]:
        created: dict[str, int] = {}
        for key, decided in now.items():
            known = self._partitions.get(key)
            if known is decided:
                continue
            self._partitions[key] = decided
            if known is None:
                created[key.topic] = created.get(key.topic, 0) + 1
            else:
                yield from _leadership_changes(key, known.leader_and_isr, decided.leader_and_isr)
        for topic, count in created.items():
            yield {"type": "topic", "topic": topic, "change": "created", "partitions": count}

    def _deletions(self, look: Look) -> Iterator[Event]:
        """Topics that are gone. A new controller forgets all before it reads them again."""
        gone = {key.topic for key in self._partitions} - look.topics
        self._missing_since = {
            topic: self._missing_since.get(topic, 0) + 1 for topic in sorted(gone)
        }
        for topic, looks in list(self._missing_since.items()):
            if looks * INTERVAL_S >= 0.5 or look.topics:
                for key in [key for key in self._partitions if key.topic == topic]:
                    del self._partitions[key]
                yield {"type": "topic", "topic": topic, "change": "deleted"}


def _leadership_changes(
    key: TopicPartition, before: LeaderAndIsr, now: LeaderAndIsr
) -> Iterator[Event]:
    event = {
        "topic": key.topic,
        "partition": key.partition,
        "leader": now.leader if now.leader >= 0 else None,
        "leader_epoch": now.leader_epoch,
        "partition_epoch": now.zk_version,
        "isr": list(now.isr),
    }
    has_new_isr = sorted(before.isr) != sorted(now.isr)
    # With the ISR the controller raises the epoch of a leader that stays.
    is_elected_again = before.leader_epoch != now.leader_epoch and not has_new_isr
    if before.leader != now.leader or is_elected_again:
        was = before.leader if before.leader >= 0 else None
        yield {"type": "election", **event, "was": was, "was_epoch": before.leader_epoch}
    if has_new_isr:
        yield {"type": "isr", **event, "was": list(before.isr)}


class EventFeed:
    """Looks at a cluster in a thread of its own, and tells subscribers what changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._subscriptions: list[EventQueue] = []
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._last_id = 0
        self._ending = threading.Event()
        self._comparison: Comparison
        self._thread = threading.Thread(target=self._run, name="fakekafka-events", daemon=True)

    def start(self) -> None:
        """Look for the first time: what changes from now on is told."""
        self._comparison = Comparison(Look(self._cluster))
        self._thread.start()

    def close(self) -> None:
        """Stop looking; subscribers get no further event."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()

    def publish(self, event: Event) -> None:
        """Number an event, keep it, and hand it to every subscriber."""
        with self._lock:
            self._last_id += 1
            event = {"id": self._last_id, "at_ms": int(time.time() * 1000), **event}
            self._kept.append(event)
            for subscription in self._subscriptions:
                subscription.put(event)

    def subscribe(self, wake: Callable[[], object], since: int | None = None) -> EventQueue:
        """Get every event from now on, and before these the kept ones after ``since``."""
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
        while not self._ending.wait(INTERVAL_S):
            try:
                look = Look(self._cluster)
            except FakeKafkaError:  # it is being stopped
                continue
            for event in self._comparison.changes(look):
                self.publish(event)
