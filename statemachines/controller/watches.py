"""The controller's watches in ZooKeeper and of its session. Each handler only queues an event.

Source: the handler classes of Kafka's ``KafkaController``. A watch is armed by the read that
follows the registration of its handler; a watch that fires for a handler no longer registered is
ignored by the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from ...protocol import znode_paths
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from ..zookeeper.client import KafkaZkClient
from .events import (
    BrokerChange,
    BrokerModifications,
    ControllerChange,
    ControllerEvent,
    Expire,
    IsrChangeNotification,
    LogDirEventNotification,
    PartitionModifications,
    PartitionReassignmentIsrChange,
    Reelect,
    RegisterBrokerAndReelect,
    ReplicaLeaderElection,
    TopicChange,
    TopicDeletion,
    ZkPartitionReassignment,
)
from .queue import ControllerEventManager

_MakeEvent = Callable[[], ControllerEvent]

CHILD_EVENTS: tuple[tuple[str, _MakeEvent], ...] = (
    (znode_paths.BROKER_IDS, BrokerChange),
    (znode_paths.BROKER_TOPICS, TopicChange),
    (znode_paths.DELETE_TOPICS, TopicDeletion),
    (znode_paths.LOG_DIR_EVENT_NOTIFICATION, LogDirEventNotification),
    (znode_paths.ISR_CHANGE_NOTIFICATION, IsrChangeNotification),
)
"""Child watches of the active controller, in the order of their registration."""


class _EventOnChange:
    """Handler that queues an event for the kinds of changes of a node that have one. Most deletions
    are reported by a child watch of the parent instead."""

    __slots__ = ("_changed", "_created", "_deleted", "_events")

    def __init__(
        self,
        events: ControllerEventManager,
        created: _MakeEvent | None = None,
        deleted: _MakeEvent | None = None,
        changed: _MakeEvent | None = None,
    ) -> None:
        self._events = events
        self._created = created
        self._deleted = deleted
        self._changed = changed

    def on_creation(self) -> None:
        self._put(self._created)

    def on_deletion(self) -> None:
        self._put(self._deleted)

    def on_data_change(self) -> None:
        self._put(self._changed)

    def _put(self, event: _MakeEvent | None) -> None:
        if event is not None:
            self._events.put(event())


class _EventOnChildChange:
    """Handler that queues an event when children are created or deleted."""

    def __init__(self, events: ControllerEventManager, event: _MakeEvent) -> None:
        self._events = events
        self._event = event

    def on_child_change(self) -> None:
        self._events.put(self._event())


class ControllerWatches:
    """Registry of the controller's handlers."""

    def __init__(self, zk: KafkaZkClient, events: ControllerEventManager) -> None:
        self._requests = zk.requests
        self._client = zk.requests.client
        self._events = events
        self._controller = _EventOnChange(events, ControllerChange, Reelect, ControllerChange)
        self._preferred = self._on_request(_zk_triggered_election)
        self._reassignment = self._on_request(ZkPartitionReassignment)
        self._brokers: dict[int, None] = {}
        self._topics: dict[str, None] = {}
        self._states: dict[TopicPartition, None] = {}

    def _on_request(self, event: _MakeEvent) -> _EventOnChange:
        """Return a handler for the creation of a request node or, with ZkClient, for any change.

        ZkClient armed the watch again after each change; here the handler of the event does.
        """
        if self._requests.behaviour.request_node_changes_heeded:
            return _EventOnChange(self._events, event, event, event)
        return _EventOnChange(self._events, created=event)

    async def watch_controller(self) -> bool:
        """Watch ``/controller``, whether it exists or not; returns whether it exists."""
        return await self._requests.register_znode_change_handler_and_check_existence(
            znode_paths.CONTROLLER, self._controller
        )

    async def watch_preferred_election(self) -> bool:
        """Watch for the creation of the election request; returns whether it exists."""
        return await self._requests.register_znode_change_handler_and_check_existence(
            znode_paths.PREFERRED_REPLICA_ELECTION, self._preferred
        )

    async def watch_reassignment(self) -> bool:
        """Watch for the creation of the reassignment request; returns whether it exists."""
        return await self._requests.register_znode_change_handler_and_check_existence(
            znode_paths.REASSIGN_PARTITIONS, self._reassignment
        )

    def watch_children(self, watches_deletions: bool = True) -> None:
        """Register all child handlers; the next listing of each path arms its watch."""
        for path, event in CHILD_EVENTS:
            if path == znode_paths.DELETE_TOPICS and not watches_deletions:
                continue
            handler = _EventOnChildChange(self._events, event)
            self._client.register_child_change_handler(path, handler)

    def unwatch_children(self, path: str) -> None:
        self._client.unregister_child_change_handler(path)

    def unwatch_requests(self) -> None:
        """Unregister the handlers of the reassignment and election requests."""
        self._client.unregister_change_handler(znode_paths.REASSIGN_PARTITIONS)
        self._client.unregister_change_handler(znode_paths.PREFERRED_REPLICA_ELECTION)

    # --- brokers

    async def watch_brokers(self, broker_ids: Iterable[int]) -> None:
        """Watch the data of brokers' registrations."""
        ids = list(broker_ids)
        for broker_id in ids:
            handler = _EventOnChange(self._events, changed=partial(BrokerModifications, broker_id))
            self._client.register_change_handler(znode_paths.broker_id_path(broker_id), handler)
            self._brokers[broker_id] = None
        await self._requests.exist([znode_paths.broker_id_path(broker_id) for broker_id in ids])

    def unwatch_brokers(self, broker_ids: Iterable[int] | None = None) -> None:
        """Stop watching the registrations of brokers, or all for None."""
        for broker_id in list(self._brokers if broker_ids is None else broker_ids):
            self._client.unregister_change_handler(znode_paths.broker_id_path(broker_id))
            self._brokers.pop(broker_id, None)

    # --- topics

    async def watch_topics(self, topics: Iterable[str]) -> None:
        """Register handlers for the data of topics' nodes; reading the nodes arms the watches."""
        for topic in topics:
            handler = _EventOnChange(self._events, changed=partial(PartitionModifications, topic))
            self._client.register_change_handler(znode_paths.topic_path(topic), handler)
            self._topics[topic] = None
        if self._requests.behaviour.topic_watch_by_exists:
            await self._requests.exist([znode_paths.topic_path(topic) for topic in topics])

    def unwatch_topic(self, topic: str) -> None:
        self._client.unregister_change_handler(znode_paths.topic_path(topic))
        self._topics.pop(topic, None)

    def unwatch_topics(self) -> None:
        for topic in list(self._topics):
            self.unwatch_topic(topic)

    # --- states of partitions being reassigned, in releases without AlterIsr

    def watch_partition_state(self, topic_partition: TopicPartition) -> None:
        """Register a handler for a partition's state node; reading the node arms the watch."""
        handler = _EventOnChange(
            self._events, changed=partial(PartitionReassignmentIsrChange, topic_partition)
        )
        path = znode_paths.topic_partition_state_path(topic_partition)
        self._client.register_change_handler(path, handler)
        self._states[topic_partition] = None

    def unwatch_partition_state(self, topic_partition: TopicPartition) -> None:
        path = znode_paths.topic_partition_state_path(topic_partition)
        self._client.unregister_change_handler(path)
        self._states.pop(topic_partition, None)

    def unwatch_partition_states(self) -> None:
        for topic_partition in list(self._states):
            self.unwatch_partition_state(topic_partition)


def _zk_triggered_election() -> ControllerEvent:
    return ReplicaLeaderElection(None)


class SessionWatcher:
    """Queues the events of an expired ZooKeeper session and of its replacement
    (docs/kafka/controller-failover.md#session-expiry)."""

    def __init__(self, behaviour: Behaviour, events: ControllerEventManager) -> None:
        self._behaviour = behaviour
        self._events = events

    async def before_initializing_session(self) -> None:
        """Preempt queued events and wait until the resignation begins; nothing before 1.1."""
        if self._behaviour.pipelined_zookeeper:
            expiring = self._events.clear_and_put(Expire())
            await expiring.await_processing()

    def after_initializing_session(self) -> None:
        self._events.put(RegisterBrokerAndReelect())

    def on_auth_failure(self) -> None:
        """Do nothing, as there is no authentication that could fail."""
