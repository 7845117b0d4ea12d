"""Requests to delete topics, and what brokers answer (docs/kafka/topics.md#deletion)."""

from __future__ import annotations

from ....protocol.errors import ErrorCode
from ....protocol.values import PartitionReplica
from ..events import TopicDeletion, TopicDeletionStopReplicaResponseReceived
from ..parts import ControllerParts


class TopicDeletionFlow:
    """Events that concern deletion."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts

    async def process_topic_deletion(self, _event: TopicDeletion) -> None:
        """Queue the topics named in ``/admin/delete_topics``; drop the names of unknown ones."""
        parts = self._parts
        context = parts.context
        asked = await parts.zk.admin.get_topic_deletions()
        unknown = [topic for topic in asked if topic not in context.topics.all_topics]
        if unknown:
            parts.log("warn", f"ignoring requests to delete unknown topics {unknown}")
            await parts.zk.admin.delete_topic_deletions(unknown, context.epoch_zk_version)
        known = [topic for topic in asked if topic in context.topics.all_topics]
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

    async def process_stop_replica_response(
        self, event: TopicDeletionStopReplicaResponseReceived
    ) -> None:
        """Count what a broker deleted and what it did not."""
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
