"""Topics and partitions appear, and topics are deleted (docs/kafka/topics.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....election.strategies import OfflinePartition
from ....protocol import znode_paths
from ....protocol.errors import ErrorCode
from ....protocol.values import PartitionReplica, ReplicaAssignment, TopicPartition
from ...machines.transitions import PartitionState, ReplicaState
from ...zookeeper.sorted_names import sorted_changes
from ...zookeeper.topic_ids import random_topic_id
from ...zookeeper.topics import TopicIdReplicaAssignment
from ..events import (
    PartitionModifications,
    TopicChange,
    TopicDeletion,
    TopicDeletionStopReplicaResponseReceived,
)
from ..parts import ControllerParts


class TopicChanges:
    """Handles changes of ``/brokers/topics``, of each topic's node, and of deletion requests."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts

    async def process_topic_change(self, _event: TopicChange) -> None:
        """Compare the topics with the known ones: create new ones and forget removed ones."""
        parts = self._parts
        context, zk = parts.context, parts.zk
        topics = await zk.topics.get_all_topics_in_cluster(register_watch=True)
        new, removed = sorted_changes(context.topics.all_topics.names, topics)
        context.topics.set_all_topics(topics)
        await parts.watches.watch_topics(new)
        added = await zk.topics.get_replica_assignment_and_topic_ids_for_topics(new)
        for topic in removed:
            context.topics.remove_topic(topic)
        await self.process_topic_ids(added)
        partitions: list[TopicPartition] = []
        for found in added:
            for topic_partition, assignment in found.assignment:
                context.topics.update_partition_full_replica_assignment(topic_partition, assignment)
                partitions.append(topic_partition)
        if new or removed:
            parts.log(
                "info",
                f"topics new: {len(new)}, gone: {len(removed)}, new partitions: {len(partitions)}",
            )
        if partitions:
            await self.on_new_partition_creation(partitions)

    async def process_partition_modifications(self, event: PartitionModifications) -> None:
        """Create partitions that were added; changed replica lists are ignored."""
        parts = self._parts
        context, topic = parts.context, event.topic
        stored = await parts.zk.topics.get_full_replica_assignment_for_topics([topic])
        added = {
            tp: assignment
            for tp, assignment in stored.items()
            if not context.topics.partition_replica_assignment(tp)
        }
        if not added:
            return
        if parts.topic_deletion.is_topic_queued_up_for_deletion(topic):
            parts.log("warn", f"partitions {list(added)} are not added: {topic} is deleted")
            await self._restore_assignment(topic, stored)
            return
        for topic_partition, assignment in added.items():
            context.topics.update_partition_full_replica_assignment(topic_partition, assignment)
        await self.on_new_partition_creation(list(added))

    async def _restore_assignment(
        self, topic: str, stored: Mapping[TopicPartition, ReplicaAssignment]
    ) -> None:
        """Restore the node of a topic that got new partitions although it is being deleted."""
        parts = self._parts
        context = parts.context
        existing = set(
            await parts.zk.requests.get_children(znode_paths.topic_partitions_path(topic), False)
        )
        restored = {
            tp: context.topics.partition_full_replica_assignment(tp)
            for tp in stored
            if str(tp.partition) in existing
        }
        await parts.zk.topics.set_topic_assignment(
            topic, context.topics.topic_ids.get(topic), restored, context.epoch_zk_version
        )

    async def on_new_partition_creation(self, partitions: Sequence[TopicPartition]) -> None:
        """Move new partitions and all their replicas, including dead ones, to New, then Online."""
        parts = self._parts
        context = parts.context
        partition_states = parts.partition_state_machine
        replica_states = parts.replica_state_machine
        await partition_states.handle_state_changes(partitions, PartitionState.NEW)
        await replica_states.handle_state_changes_by_broker(
            context.topics.partitions_by_replica(partitions), ReplicaState.NEW
        )
        await partition_states.handle_state_changes(
            partitions, PartitionState.ONLINE, OfflinePartition(allow_unclean=False)
        )
        await replica_states.handle_state_changes_by_broker(
            context.topics.partitions_by_replica(partitions), ReplicaState.ONLINE
        )

    async def process_topic_ids(self, topics: Sequence[TopicIdReplicaAssignment]) -> None:
        """Remember topic ids; topics of older releases get new ids, which are written."""
        parts = self._parts
        if not parts.behaviour.topic_ids:
            return
        rng = parts.host.rng
        named = [
            TopicIdReplicaAssignment(t.topic, random_topic_id(rng), t.assignment)
            for t in topics
            if t.topic_id is None
        ]
        if named:
            await parts.zk.topics.set_topic_ids(named, parts.context.epoch_zk_version)
        for topic in [t for t in topics if t.topic_id is not None] + named:
            assert topic.topic_id is not None, "it was found or given above"
            parts.context.topics.add_topic_id(topic.topic, topic.topic_id)

    # --- deletion

    async def process_topic_deletion(self, _event: TopicDeletion) -> None:
        """Queue the topics in ``/admin/delete_topics``, and remove requests for unknown topics.

        If deletion is disabled, all requests are removed.
        """
        parts = self._parts
        context = parts.context
        requested = await parts.zk.admin.get_topic_deletions()
        unknown = [topic for topic in requested if topic not in context.topics.all_topics]
        if unknown:
            parts.log("warn", f"ignoring requests to delete unknown topics {unknown}")
            await parts.zk.admin.delete_topic_deletions(unknown, context.epoch_zk_version)
        known = [topic for topic in requested if topic in context.topics.all_topics]
        deletion = parts.topic_deletion
        if not deletion.enabled:
            await parts.zk.admin.delete_topic_deletions(known, context.epoch_zk_version)
            return
        if not known:
            return
        reassigned = {tp.topic for tp in context.topics.partitions_being_reassigned}
        deletion.mark_topic_ineligible_for_deletion(
            [topic for topic in known if topic in reassigned], "topic reassignment in progress"
        )
        await deletion.enqueue_topics_for_deletion(known)

    async def process_stop_replica(self, event: TopicDeletionStopReplicaResponseReceived) -> None:
        """Sort replicas by whether their broker deleted them, and continue the deletion."""
        parts = self._parts
        failed: list[PartitionReplica] = []
        deleted: list[PartitionReplica] = []
        for (topic, partition), error in event.partition_errors:
            replica = PartitionReplica(topic, partition, event.broker_id)
            has_failed = event.error != ErrorCode.NONE or error != ErrorCode.NONE
            (failed if has_failed else deleted).append(replica)
        await parts.topic_deletion.fail_replica_deletion(failed)
        if deleted:
            await parts.topic_deletion.complete_replica_deletion(deleted)
