"""Batch of the control requests that one event of the controller causes.

Theory of operation (docs/kafka/control-requests.md). A batch is opened (``new_batch``), filled by
the state machines and sent as a whole: first every LeaderAndIsr, then every UpdateMetadata, then
every StopReplica. Each broker gets one request of each kind, except that before 2.6 StopReplica is
split. A partition added twice for a broker is sent once, as last decided, but the flags ``is_new``
and ``delete_partition`` stay set once they were. Brokers that are no longer registered when the
batch is sent get nothing.

Requests share their parts to save memory: all brokers get the same partition state objects, and
every broker's UpdateMetadata the same tuple of them.

Source: Kafka's ``AbstractControllerBrokerRequestBatch``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol, TypeAlias

from ...protocol.control import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from ...protocol.errors import ErrorCode
from ...protocol.values import (
    EPOCH_UNKNOWN,
    LEADER_DURING_DELETE,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
    changed,
)
from ...protocol.versions import Behaviour
from ..zookeeper.errors import ControllerMoved, IllegalState, Log, ignore_log
from .context import ControllerContext

ControlRequest: TypeAlias = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest


class BrokerChannels(Protocol):
    """A FIFO queue of requests per registered broker
    (docs/kafka/control-requests.md#channels)."""

    def send_request(
        self, broker_id: int, request: ControlRequest, callback: Callable[[Any], object] | None
    ) -> object:
        """Queue a request; ``callback`` is called with the response, if one ever arrives."""
        ...


class ResponseEvents(Protocol):
    """Puts brokers' responses into the controller's event queue."""

    def on_leader_and_isr_response(
        self, response: LeaderAndIsrResponse, broker_id: int
    ) -> object: ...

    def on_stop_replica_deletion_response(
        self, broker_id: int, error: ErrorCode, partition_errors: dict[TopicPartition, ErrorCode]
    ) -> object:
        """Called with the errors of partitions that were sent with ``delete_partition``, for topics
        whose deletion is in progress."""
        ...

    def on_update_metadata_response(
        self, response: UpdateMetadataResponse, broker_id: int
    ) -> object: ...


class ControllerBrokerRequestBatch:
    """Collects the control requests of one controller event, and sends them."""

    def __init__(
        self,
        controller_id: int,
        behaviour: Behaviour,
        context: ControllerContext,
        channels: BrokerChannels,
        event_callbacks: ResponseEvents,
        log: Log = ignore_log,
    ) -> None:
        self.controller_id = controller_id
        self._behaviour = behaviour
        self._context = context
        self._channels = channels
        self._events = event_callbacks
        self._log = log
        self._leader_and_isr: dict[int, dict[TopicPartition, LeaderAndIsrPartitionState]] = {}
        self._stop_replica: dict[int, dict[TopicPartition, StopReplicaPartitionState]] = {}
        self._update_metadata_brokers: dict[int, None] = {}
        self._update_metadata: dict[TopicPartition, UpdateMetadataPartitionState] = {}
        self._merged_registered: object = None
        """The set of registered brokers last merged into ``_update_metadata_brokers``."""

    def new_batch(self) -> None:
        """Open a batch; raises ``IllegalState`` if part of the previous one was not sent."""
        leftovers = {
            "LeaderAndIsr": tuple(self._leader_and_isr),
            "StopReplica": tuple(self._stop_replica),
            "UpdateMetadata": tuple(self._update_metadata_brokers),
        }
        for kind, left in leftovers.items():
            if left:
                raise IllegalState(
                    f"the batch of {kind} requests to brokers {sorted(left)} was not sent yet"
                )

    def clear(self) -> None:
        """Drop everything collected."""
        self._leader_and_isr = {}
        self._stop_replica = {}
        self._update_metadata_brokers = {}
        self._update_metadata = {}
        self._merged_registered = None

    def abandon(self, action: str, error: Exception) -> None:
        """Drop the collected requests, as the next batch could not open otherwise, and log why."""
        self.clear()
        if isinstance(error, ControllerMoved):
            self._log("error", f"another controller took over while {action}: {error}")
        else:
            self._log("error", f"{action} failed: {error!r}")

    # --- collecting

    def add_leader_and_isr_request_for_brokers(
        self,
        broker_ids: Iterable[int],
        topic_partition: TopicPartition,
        leader_isr_and_controller_epoch: LeaderIsrAndControllerEpoch,
        replica_assignment: ReplicaAssignment,
        is_new: bool,
    ) -> None:
        """Send brokers their role in a partition, and all registered brokers its metadata.

        Negative broker ids are ignored.
        """
        decision = leader_isr_and_controller_epoch.leader_and_isr
        state = LeaderAndIsrPartitionState(
            topic_partition.topic,
            topic_partition.partition,
            leader_isr_and_controller_epoch.controller_epoch,
            decision.leader,
            decision.leader_epoch,
            decision.isr,
            decision.zk_version,
            replica_assignment.replicas,
            replica_assignment.adding,
            replica_assignment.removing,
            is_new,
        )
        for broker_id in broker_ids:
            if broker_id < 0:
                continue
            of_broker = self._leader_and_isr.setdefault(broker_id, {})
            earlier = of_broker.get(topic_partition)
            if earlier is not None and earlier.is_new and not is_new:
                of_broker[topic_partition] = changed(state, is_new=True)
            else:
                of_broker[topic_partition] = state
        self._add_all_registered()
        self._add_partition_metadata(topic_partition)

    def add_update_metadata_request_for_brokers(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """Send brokers the list of registered brokers and the metadata of partitions.

        Recipients accumulate, and each of them gets *all* partitions of the batch. Without
        partitions only the broker list is sent; before 2.2, the metadata of every partition.
        """
        if broker_ids is self._context.brokers.live_or_shutting_down_broker_ids:
            self._add_all_registered()
        else:
            for broker_id in broker_ids:
                if broker_id >= 0:
                    self._update_metadata_brokers[broker_id] = None
        chosen: Iterable[TopicPartition] = tuple(partitions)
        if not chosen and self._behaviour.empty_update_metadata_means_all:
            chosen = self._context.topics.partitions_leadership_info
        for topic_partition in chosen:
            self._add_partition_metadata(topic_partition)

    def add_stop_replica_request_for_brokers(
        self, broker_ids: Iterable[int], topic_partition: TopicPartition, delete_partition: bool
    ) -> None:
        """Send brokers a request to stop a replica; ``delete_partition`` stays set once it was."""
        leader_epoch = EPOCH_UNKNOWN
        if self._behaviour.stop_replica_per_partition_delete:
            leader_epoch = self._context.topics.leader_epoch(topic_partition)
        for broker_id in broker_ids:
            if broker_id < 0:
                continue
            of_broker = self._stop_replica.setdefault(broker_id, {})
            earlier = of_broker.get(topic_partition)
            of_broker[topic_partition] = StopReplicaPartitionState(
                topic_partition.topic,
                topic_partition.partition,
                leader_epoch,
                delete_partition or (earlier is not None and earlier.delete_partition),
            )

    def _add_all_registered(self) -> None:
        registered = self._context.brokers.live_or_shutting_down_broker_ids
        if self._merged_registered is not registered:
            self._update_metadata_brokers.update(registered)
            self._merged_registered = registered

    def _add_partition_metadata(self, topic_partition: TopicPartition) -> None:
        context = self._context
        leadership = context.topics.partition_leadership_info(topic_partition)
        if leadership is None:
            return
        replicas = context.topics.partition_replica_assignment(topic_partition)
        known = leadership.leader_and_isr
        leader, leader_epoch, zk_version = known.leader, known.leader_epoch, known.zk_version
        topic = topic_partition.topic
        if (
            topic in context.topics.topics_to_be_deleted
            or topic in context.topics.topics_announced_as_deleted
        ):
            leader, leader_epoch, zk_version = LEADER_DURING_DELETE, 0, 0
        added = self._update_metadata.get(topic_partition)
        if (
            added is not None
            and added.zk_version == zk_version
            and added.leader == leader
            and added.leader_epoch == leader_epoch
            and added.controller_epoch == leadership.controller_epoch
            and added.isr == known.isr
            and added.replicas == replicas
        ):
            return  # added already for another replica; live brokers do not change within a batch
        offline_replicas: tuple[int, ...] = ()
        if self._behaviour.log_dir_failure_handling:
            offline_replicas = tuple(
                [r for r in replicas if not context.brokers.is_replica_online(r, topic_partition)]
            )
        self._update_metadata[topic_partition] = UpdateMetadataPartitionState(
            topic_partition.topic,
            topic_partition.partition,
            leadership.controller_epoch,
            leader,
            leader_epoch,
            known.isr,
            zk_version,
            replicas,
            offline_replicas,
        )

    def _add_metadata_of_deleted_topics(self) -> None:
        context = self._context
        for topics in (
            context.topics.topics_to_be_deleted,
            context.topics.topics_announced_as_deleted,
        ):
            for topic in topics:
                for topic_partition in context.topics.partitions_for_topic(topic):
                    self._add_partition_metadata(topic_partition)

    # --- sending

    def send_requests_to_brokers(self, controller_epoch: int) -> None:
        """Send all collected requests; raises ``IllegalState`` if sending fails."""
        try:
            self._send_leader_and_isr(controller_epoch)
            self._send_update_metadata(controller_epoch)
            self._send_stop_replica(controller_epoch)
        except Exception as error:
            self._log("error", f"sending control requests failed: {error!r}")
            raise IllegalState(f"control requests could not be sent: {error!r}") from error

    def _destinations(self, broker_ids: Iterable[int]) -> list[tuple[int, int]]:
        """Return (id, broker epoch for the request) of each given broker that is registered."""
        epochs = self._context.brokers.live_broker_id_and_epochs
        stamped = self._behaviour.broker_epochs
        return [
            (broker_id, epochs[broker_id] if stamped else -1)
            for broker_id in sorted(broker_ids)
            if broker_id in epochs
        ]

    def _topic_ids(self, topics: Iterable[str]) -> tuple[tuple[str, str], ...]:
        if not self._behaviour.topic_ids:
            return ()
        ids = self._context.topics.topic_ids
        return tuple((topic, ids[topic]) for topic in dict.fromkeys(topics) if topic in ids)

    def _send_leader_and_isr(self, controller_epoch: int) -> None:
        context = self._context
        for broker_id, broker_epoch in self._destinations(self._leader_and_isr):
            states = tuple(self._leader_and_isr[broker_id].values())
            leaders = sorted({state.leader for state in states})
            live_leaders = [
                context.brokers.live_or_shutting_down_broker(leader) for leader in leaders
            ]
            request = LeaderAndIsrRequest(
                self.controller_id,
                controller_epoch,
                broker_epoch,
                states,
                tuple(broker for broker in live_leaders if broker is not None),
                self._topic_ids(state.topic for state in states),
            )
            respond = partial(self._events.on_leader_and_isr_response, broker_id=broker_id)
            self._channels.send_request(broker_id, request, respond)
        self._leader_and_isr = {}

    def _send_update_metadata(self, controller_epoch: int) -> None:
        destinations = self._destinations(self._update_metadata_brokers)
        if destinations:
            if self._behaviour.update_metadata_names_all_deleted:
                self._add_metadata_of_deleted_topics()
            states = tuple(self._update_metadata.values())
            live_brokers = tuple(self._context.brokers.live_or_shutting_down_brokers())
            topic_ids = self._topic_ids(state.topic for state in states)
            for broker_id, broker_epoch in destinations:
                request = UpdateMetadataRequest(
                    self.controller_id,
                    controller_epoch,
                    broker_epoch,
                    states,
                    live_brokers,
                    topic_ids,
                )
                respond = partial(self._events.on_update_metadata_response, broker_id=broker_id)
                self._channels.send_request(broker_id, request, respond)
        self._update_metadata_brokers = {}
        self._update_metadata = {}
        self._merged_registered = None

    def _send_stop_replica(self, controller_epoch: int) -> None:
        for broker_id, broker_epoch in self._destinations(self._stop_replica):
            states = tuple(self._stop_replica[broker_id].values())
            groups = [states]
            if self._behaviour.stop_replica_one_by_one:
                groups = [(state,) for state in states]
                if self._behaviour.stop_replica_empty_request:
                    # These releases also sent the partitions without a callback in one request,
                    # which is always empty, as all partitions have a callback.
                    groups.insert(0, ())
            elif not self._behaviour.stop_replica_per_partition_delete:
                # The old request has one delete flag for all its partitions.
                deleted = tuple(state for state in states if state.delete_partition)
                kept = tuple(state for state in states if not state.delete_partition)
                groups = [group for group in (deleted, kept) if group]
            for group in groups:
                self._channels.send_request(
                    broker_id,
                    StopReplicaRequest(self.controller_id, controller_epoch, broker_epoch, group),
                    self._on_stop_replica_response(broker_id, group),
                )
        self._stop_replica = {}

    def _on_stop_replica_response(
        self, broker_id: int, sent: tuple[StopReplicaPartitionState, ...]
    ) -> Callable[[StopReplicaResponse], object]:
        def callback(response: StopReplicaResponse) -> object:
            deleted = {state.topic_partition for state in sent if state.delete_partition}
            errors = {
                tp: error
                for tp, error in response.partitions
                if tp in deleted and self._context.topics.is_topic_deletion_in_progress(tp.topic)
            }
            if not errors:
                return None
            return self._events.on_stop_replica_deletion_response(broker_id, response.error, errors)

        return callback
