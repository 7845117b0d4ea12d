"""Brokers appear, disappear and change, and log directories fail (docs/kafka/brokers.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....protocol.errors import ErrorCode
from ....protocol.values import BrokerInfo, PartitionReplica, TopicPartition
from ...machines.ordered_set import OrderedSet
from ...machines.transitions import PartitionState, ReplicaState
from ..events import (
    BrokerChange,
    BrokerModifications,
    LeaderAndIsrResponseReceived,
    LogDirEventNotification,
    UpdateMetadataResponseReceived,
)
from ..parts import ControllerParts
from .features import Features
from .reassignment_flow import ReassignmentFlow


class BrokerChanges:
    """Handles changes of ``/brokers/ids``, failed log directories, and brokers' responses."""

    def __init__(
        self, parts: ControllerParts, features: Features, reassignments: ReassignmentFlow
    ) -> None:
        self._parts = parts
        self._features = features
        self._reassignments = reassignments

    # --- registrations

    async def process_broker_change(self, _event: BrokerChange) -> None:
        """Compare the registrations with the known brokers, and handle new, bounced and dead
        brokers, in this order (docs/kafka/brokers.md#a-change-of-brokers)."""
        parts = self._parts
        context, channels = parts.context, parts.channels
        found = {
            b.id: (b, e) for b, e in await parts.zk.brokers.get_all_broker_and_epochs_in_cluster()
        }
        known = dict(context.brokers.live_broker_id_and_epochs)
        new = [broker_id for broker_id in found if broker_id not in known]
        dead = sorted(broker_id for broker_id in known if broker_id not in found)
        bounced: list[int] = []
        if parts.behaviour.broker_epochs:
            bounced = [b for b, (_, epoch) in found.items() if b in known and epoch > known[b]]
        if new or bounced or dead:
            parts.log(
                "info",
                f"brokers new: {new}, bounced: {bounced}, gone: {dead}, registered: {list(found)}",
            )
        for broker_id in new:
            channels.add_broker(found[broker_id][0])
        for broker_id in bounced:
            channels.remove_broker(broker_id)
        for broker_id in bounced:
            channels.add_broker(found[broker_id][0])
        for broker_id in dead:
            channels.remove_broker(broker_id)
        if new:
            self._add(found[broker_id] for broker_id in new)
            await self.on_broker_startup(new)
        if bounced:
            context.brokers.remove_live_brokers(bounced)
            await self.on_broker_failure(bounced)
            self._add(found[broker_id] for broker_id in bounced)
            await self.on_broker_startup(bounced)
        if dead:
            context.brokers.remove_live_brokers(dead)
            await self.on_broker_failure(dead)

    def _add(self, brokers: Iterable[tuple[BrokerInfo, int]]) -> None:
        self._parts.context.brokers.add_live_brokers(self._features.compatible(brokers))

    async def process_broker_modifications(self, event: BrokerModifications) -> None:
        """Send brokers changed endpoints or features; a changed rack alone is ignored."""
        parts = self._parts
        context = parts.context
        new = await parts.zk.brokers.get_broker(event.broker_id)
        old = context.brokers.live_or_shutting_down_broker(event.broker_id)
        if new is None or old is None:
            return
        if (new.endpoints, new.features) != (old.endpoints, old.features):
            context.brokers.update_broker_metadata(old, new)
            await parts.requests.send_update_metadata(
                context.brokers.live_or_shutting_down_broker_ids
            )

    async def on_broker_startup(self, new_brokers: Sequence[int]) -> None:
        """Send new brokers their roles, and all brokers the changed metadata
        (docs/kafka/brokers.md#a-broker-appears)."""
        parts = self._parts
        context = parts.context
        for broker_id in new_brokers:
            context.brokers.replicas_on_offline_dirs.pop(broker_id, None)
        if parts.behaviour.empty_update_metadata_means_all:
            await parts.requests.send_update_metadata(
                context.brokers.live_or_shutting_down_broker_ids
            )
        else:
            others = [
                b for b in context.brokers.live_or_shutting_down_broker_ids if b not in new_brokers
            ]
            await parts.requests.send_update_metadata(others)
            # Before LeaderAndIsr, as a follower must know its leader's address.
            partitions = context.topics.partitions_with_leaders()
            await parts.requests.send_update_metadata(new_brokers, partitions)
        replicas = context.topics.replicas_on_brokers(new_brokers)
        await parts.replica_state_machine.handle_state_changes(replicas, ReplicaState.ONLINE)
        await parts.partition_state_machine.trigger_online_partition_state_change()
        await self._reassignments.resume_on_brokers(new_brokers)
        deleting = dict.fromkeys(
            r.topic for r in replicas if r.topic in context.topics.topics_to_be_deleted
        )
        if deleting:
            await parts.topic_deletion.resume_deletion_for_topics(deleting)
        await parts.watches.watch_brokers(new_brokers)

    async def on_broker_failure(self, dead_brokers: Sequence[int]) -> None:
        """Move leaderships off dead brokers, and remove these brokers from ISRs
        (docs/kafka/brokers.md#a-broker-disappears)."""
        parts = self._parts
        context = parts.context
        for broker_id in dead_brokers:
            context.brokers.replicas_on_offline_dirs.pop(broker_id, None)
            context.brokers.shutting_down_broker_ids.discard(broker_id)
        leaderless = None
        if parts.behaviour.failure_concerns_led_partitions:
            leaderless = context.topics.partitions_led_by(dead_brokers)
        replicas = context.topics.replicas_on_brokers(dead_brokers)
        await self.on_replicas_become_offline(replicas, leaderless)
        parts.watches.unwatch_brokers(dead_brokers)

    async def on_replicas_become_offline(
        self,
        replicas: Iterable[PartitionReplica],
        leaderless: Sequence[TopicPartition] | None = None,
    ) -> None:
        """Elect new leaders where needed, then take the replicas offline.

        If ``leaderless`` is None, it is computed from all partitions of the cluster.
        """
        parts = self._parts
        context = parts.context
        deleting: list[PartitionReplica] = []
        staying: list[PartitionReplica] = []
        for replica in replicas:
            is_deleting = parts.topic_deletion.is_topic_queued_up_for_deletion(replica.topic)
            (deleting if is_deleting else staying).append(replica)
        if leaderless is None:
            leaderless = context.topics.partitions_with_offline_leader()
        partitions = parts.partition_state_machine
        await partitions.handle_state_changes(leaderless, PartitionState.OFFLINE)
        outcomes = await partitions.trigger_online_partition_state_change()
        await parts.replica_state_machine.handle_state_changes(staying, ReplicaState.OFFLINE)
        await parts.topic_deletion.fail_replica_deletion(deleting)
        if parts.behaviour.announce_dead_broker_unless_elected:
            must_announce = not staying and all(
                isinstance(outcome, Exception) for outcome in outcomes.values()
            )
        else:
            # As in Kafka, any leaderless partition in the cluster suppresses the announcement.
            must_announce = not leaderless
        if must_announce:
            await parts.requests.send_update_metadata(
                context.brokers.live_or_shutting_down_broker_ids
            )

    # --- log directories

    async def process_log_dir_event(self, _event: LogDirEventNotification) -> None:
        """Send LeaderAndIsr for every replica of brokers that reported a failed directory, to learn
        from the response which replicas are affected (docs/kafka/brokers.md#failed-disks)."""
        parts = self._parts
        zk, context = parts.zk, parts.context
        numbers = await zk.admin.get_all_log_dir_event_notifications()
        try:
            broker_ids = await zk.admin.get_broker_ids_from_log_dir_events(numbers)
            replicas = context.topics.replicas_on_brokers(dict.fromkeys(broker_ids))
            await parts.replica_state_machine.handle_state_changes(replicas, ReplicaState.ONLINE)
        finally:
            await zk.admin.delete_log_dir_event_notifications(numbers, context.epoch_zk_version)

    async def process_leader_and_isr(self, event: LeaderAndIsrResponseReceived) -> None:
        """Record which replicas are on failed directories; other errors are ignored
        (docs/kafka/brokers.md#failed-disks)."""
        parts = self._parts
        if event.response.error != ErrorCode.NONE:
            parts.log(
                "error",
                f"LeaderAndIsr to broker {event.broker_id} failed: {event.response.error.name}",
            )
            return
        if not parts.behaviour.log_dir_failure_handling:
            return
        context, broker_id = parts.context, event.broker_id
        known = context.brokers.replicas_on_offline_dirs.get(broker_id)
        offline: list[TopicPartition] = []
        online: list[TopicPartition] = []
        for topic_partition, error in event.response.partitions:
            if error == ErrorCode.KAFKA_STORAGE_ERROR:
                offline.append(topic_partition)
            elif known is not None and error == ErrorCode.NONE:
                online.append(topic_partition)
        if not offline and not online:
            return
        now_offline: OrderedSet[TopicPartition] = OrderedSet(known or ())
        now_offline.discard_all(online)
        newly = [tp for tp in offline if known is None or tp not in known]
        now_offline.add_all(offline)
        if now_offline:
            context.brokers.replicas_on_offline_dirs[broker_id] = now_offline
        else:
            context.brokers.replicas_on_offline_dirs.pop(broker_id, None)
        if newly:
            parts.log(
                "info", f"replicas of broker {broker_id} are on failed log directories: {newly}"
            )
            await self.on_replicas_become_offline(
                PartitionReplica(tp.topic, tp.partition, broker_id) for tp in newly
            )

    async def process_update_metadata(self, event: UpdateMetadataResponseReceived) -> None:
        if event.response.error != ErrorCode.NONE:
            self._parts.log(
                "error",
                f"UpdateMetadata to broker {event.broker_id} failed: {event.response.error.name}",
            )
