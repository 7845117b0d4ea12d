"""Deletion of topics (docs/kafka/topics.md#deletion).

Theory of operation. A topic is *queued* when its deletion is requested, and *started* once its
replicas are told to delete their logs. Every replica moves independently through the states
Offline, DeletionStarted, DeletionSuccessful and NonExistent; when all are DeletionSuccessful, the
topic's znodes are removed. A replica that is dead, or that answers with an error, becomes
DeletionIneligible and makes its topic *ineligible*: its deletion waits until the broker comes back,
a reassignment ends or another controller takes over. ``resume_deletions`` checks every queued topic
and takes the steps that its replicas' states allow; all methods that can change these call it.

Source: Kafka's ``TopicDeletionManager``.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.values import PartitionReplica, TopicPartition, assembled
from ...protocol.versions import Behaviour
from ..machines.context import ControllerContext
from ..machines.partition_machine import PartitionStateMachine
from ..machines.replica_machine import ReplicaStateMachine
from ..machines.transitions import PartitionState, ReplicaState
from ..zookeeper.client import KafkaZkClient
from ..zookeeper.errors import Log, ignore_log
from .control_requests import ControlRequests
from .watches import ControllerWatches


@assembled
class DeletionClient:
    """Effects of a deletion outside the controller's context: on znodes, watches and brokers."""

    context: ControllerContext
    zk: KafkaZkClient
    watches: ControllerWatches
    requests: ControlRequests

    async def delete_topic(self, topic: str, epoch_zk_version: int) -> None:
        """Delete the topic's znode, its configuration and the request for its deletion."""
        await self.zk.topics.delete_topic_znode(topic, epoch_zk_version)
        await self.zk.admin.delete_topic_configs([topic], epoch_zk_version)
        await self.zk.admin.delete_topic_deletions([topic], epoch_zk_version)

    async def delete_topic_deletions(self, topics: list[str], epoch_zk_version: int) -> None:
        await self.zk.admin.delete_topic_deletions(topics, epoch_zk_version)

    def mute_partition_modifications(self, topic: str) -> None:
        """Stop watching the topic's znode."""
        self.watches.unwatch_topic(topic)

    async def send_metadata_update(self, partitions: list[TopicPartition]) -> None:
        """Send all brokers the metadata of partitions."""
        brokers = self.context.brokers.live_or_shutting_down_broker_ids
        await self.requests.send_update_metadata(brokers, partitions)


@assembled
class TopicDeletionManager:
    """Deletes queued topics, unless deletion is disabled."""

    enabled: bool
    context: ControllerContext
    replicas: ReplicaStateMachine
    partitions: PartitionStateMachine
    client: DeletionClient
    behaviour: Behaviour
    log: Log = ignore_log

    async def init(self, queued: Iterable[str], ineligible: Iterable[str]) -> None:
        """Start a tenure with the requests in ZooKeeper; if deletion is disabled, remove these.

        Before 0.10.2 requests stay there while deletion is disabled, and are only read at failover.
        """
        topics = list(queued)
        if self.enabled:
            self.context.topics.queue_topic_deletion(topics)
            self.context.topics.topics_ineligible_for_deletion.add_all(
                topic for topic in ineligible if topic in self.context.topics.topics_to_be_deleted
            )
        elif not self.behaviour.disabled_deletion_drops_requests:
            # As in Kafka, UpdateMetadata announces that these topics are being deleted.
            self.context.topics.topics_announced_as_deleted.add_all(topics)
        else:
            self.log("info", f"deletion is disabled: dropping requests to delete {topics}")
            await self.client.delete_topic_deletions(topics, self.context.epoch_zk_version)

    async def try_topic_deletion(self) -> None:
        if self.enabled:
            await self.resume_deletions()

    async def enqueue_topics_for_deletion(self, topics: Iterable[str]) -> None:
        if self.enabled:
            self.context.topics.queue_topic_deletion(topics)
            await self.resume_deletions()

    async def resume_deletion_for_topics(self, topics: Iterable[str]) -> None:
        """Try to delete queued topics again, as the cause of their ineligibility may be gone."""
        if not self.enabled:
            return
        resumed = [t for t in topics if t in self.context.topics.topics_to_be_deleted]
        if resumed:
            self.context.topics.topics_ineligible_for_deletion.discard_all(resumed)
            await self.resume_deletions()

    async def fail_replica_deletion(self, replicas: Iterable[PartitionReplica]) -> None:
        """Mark dead replicas, or replicas that answered with an error, and their topics as
        ineligible."""
        if not self.enabled:
            return
        failed = [r for r in replicas if r.topic in self.context.topics.topics_to_be_deleted]
        if failed:
            topics = list(dict.fromkeys(replica.topic for replica in failed))
            await self.replicas.handle_state_changes(failed, ReplicaState.DELETION_INELIGIBLE)
            self.mark_topic_ineligible_for_deletion(topics, "replica deletion failure")
            await self.resume_deletions()

    async def complete_replica_deletion(self, replicas: Iterable[PartitionReplica]) -> None:
        """Mark replicas whose brokers confirmed the deletion as successful."""
        deleted = [r for r in replicas if self.is_topic_queued_up_for_deletion(r.topic)]
        await self.replicas.handle_state_changes(deleted, ReplicaState.DELETION_SUCCESSFUL)
        await self.resume_deletions()

    def mark_topic_ineligible_for_deletion(self, topics: Iterable[str], reason: str) -> None:
        """Mark topics that are queued already; the call has no effect on topics queued later."""
        if not self.enabled:
            return
        marked = [t for t in topics if t in self.context.topics.topics_to_be_deleted]
        if marked:
            self.context.topics.topics_ineligible_for_deletion.add_all(marked)
            self.log("info", f"deletion of topics {marked} is halted: {reason}")

    def is_topic_queued_up_for_deletion(self, topic: str) -> bool:
        return self.enabled and topic in self.context.topics.topics_to_be_deleted

    def is_topic_deletion_in_progress(self, topic: str) -> bool:
        return self.enabled and topic in self.context.topics.topics_with_deletion_started

    async def resume_deletions(self) -> None:
        """Finish, retry or start the deletion of every queued topic, as its replicas permit."""
        context = self.context
        to_retry: list[str] = []
        to_start: list[str] = []
        for topic in context.topics.topics_queued_for_deletion():
            states = {
                context.states.replica_state(r) for r in context.topics.replicas_for_topic(topic)
            }
            is_running = ReplicaState.DELETION_STARTED in states
            if states <= {ReplicaState.DELETION_SUCCESSFUL}:
                await self._complete_delete_topic(topic)
                self.log("info", f"deletion of topic {topic} is complete")
                continue
            if not is_running and ReplicaState.DELETION_INELIGIBLE in states:
                to_retry.append(topic)
            if not is_running and context.topics.is_topic_eligible_for_deletion(topic):
                to_start.append(topic)
        if to_retry:
            await self._retry_ineligible_replicas(to_retry)
        if to_start:
            await self._on_topic_deletion(to_start)

    async def _complete_delete_topic(self, topic: str) -> None:
        context = self.context
        # Unregister first, so that a new topic of the same name is not mistaken for this one.
        self.client.mute_partition_modifications(topic)
        deleted = context.states.replicas_in_state(topic, ReplicaState.DELETION_SUCCESSFUL)
        await self.replicas.handle_state_changes(deleted, ReplicaState.NON_EXISTENT)
        if not self.behaviour.nonexistent_at_deletion_start:
            await self._remove_partitions(context.topics.partitions_for_topic(topic))
        await self.client.delete_topic(topic, context.epoch_zk_version)
        context.topics.remove_topic(topic)

    async def _remove_partitions(self, partitions: list[TopicPartition]) -> None:
        await self.partitions.handle_state_changes(partitions, PartitionState.OFFLINE)
        await self.partitions.handle_state_changes(partitions, PartitionState.NON_EXISTENT)

    async def _retry_ineligible_replicas(self, topics: list[str]) -> None:
        failed = [
            replica
            for topic in topics
            for replica in self.context.states.replicas_in_state(
                topic, ReplicaState.DELETION_INELIGIBLE
            )
        ]
        await self.replicas.handle_state_changes(failed, ReplicaState.OFFLINE)

    async def _on_topic_deletion(self, topics: list[str]) -> None:
        context = self.context
        fresh = [t for t in topics if t not in context.topics.topics_with_deletion_started]
        if fresh and self.behaviour.nonexistent_at_deletion_start:
            await self._remove_partitions(
                [tp for topic in fresh for tp in context.topics.partitions_for_topic(topic)]
            )
        # Only now, so that the count of offline partitions includes the transitions above.
        context.topics.begin_topic_deletion(fresh)
        await self.client.send_metadata_update(
            [tp for topic in topics for tp in context.topics.partitions_for_topic(topic)]
        )
        await self._on_partition_deletion(topics)

    async def _on_partition_deletion(self, topics: list[str]) -> None:
        context = self.context
        dead: list[PartitionReplica] = []
        to_delete: list[PartitionReplica] = []
        halted: dict[str, None] = {}
        for topic in topics:
            for replica in context.topics.replicas_for_topic(topic):
                if not context.brokers.is_replica_online(
                    replica.broker_id, replica.topic_partition
                ):
                    dead.append(replica)
                    halted[topic] = None
                elif context.states.replica_state(replica) is not ReplicaState.DELETION_SUCCESSFUL:
                    to_delete.append(replica)
        await self.replicas.handle_state_changes(dead, ReplicaState.DELETION_INELIGIBLE)
        # Offline first, so that followers stop fetching before any log is deleted.
        await self.replicas.handle_state_changes(to_delete, ReplicaState.OFFLINE)
        await self.replicas.handle_state_changes(to_delete, ReplicaState.DELETION_STARTED)
        if halted:
            self.mark_topic_ineligible_for_deletion(halted, "offline replicas")
