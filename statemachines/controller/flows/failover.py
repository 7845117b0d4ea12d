"""Failover to this controller, and its resignation (docs/kafka/controller-failover.md).

The order of the steps is Kafka's and matters: watches are registered before the nodes are read,
brokers get the list of brokers before they get leaders (after them before 0.10.2), and the replica
state machine starts before the partition state machine, so that dead brokers have left the ISRs
when leaders are elected.
"""

from __future__ import annotations

from ....protocol import znode_paths
from ....protocol.values import TopicPartition, assembled
from ..parts import ControllerParts
from .elections import Elections
from .features import Features
from .isr_changes import IsrChanges
from .reassignment_flow import ReassignmentFlow
from .rebalance import Rebalance
from .topic_changes import TopicChanges


@assembled
class Failover:
    """Loads the cluster's state from ZooKeeper at failover, and drops it at resignation."""

    parts: ControllerParts
    features: Features
    topic_changes: TopicChanges
    isr_changes: IsrChanges
    reassignments: ReassignmentFlow
    elections: Elections
    rebalance: Rebalance

    async def on_controller_failover(self) -> None:
        """Do all that a new controller does before its first event."""
        parts = self.parts
        context = parts.context
        await self.features.setup()
        drops_requests = parts.behaviour.disabled_deletion_drops_requests
        parts.watches.watch_children(parts.topic_deletion.enabled or drops_requests)
        await parts.watches.watch_preferred_election()
        await parts.watches.watch_reassignment()
        await self._drop_notifications()
        await self._initialize_context()
        queued, ineligible = await self._fetch_topic_deletions()
        await parts.topic_deletion.init(queued, ineligible)
        announces_first = parts.behaviour.failover_announces_brokers_first
        if announces_first:
            # Sent first, as brokers refuse to follow leaders that they do not know.
            await parts.requests.send_update_metadata(
                context.brokers.live_or_shutting_down_broker_ids
            )
        await parts.replica_state_machine.startup()
        await parts.partition_state_machine.startup()
        parts.log("info", f"ready to serve as the controller of epoch {context.epoch}")
        await self.reassignments.initialize()
        if announces_first:
            await parts.topic_deletion.try_topic_deletion()
            await self.elections.resume_pending()
        else:
            await self.elections.resume_pending()
            await parts.requests.send_update_metadata(
                context.brokers.live_or_shutting_down_broker_ids
            )
            await parts.topic_deletion.try_topic_deletion()
        self.rebalance.start()

    def on_controller_resignation(self) -> None:
        """Stop timers, channels and all watches except that of ``/controller``, and clear the
        context."""
        parts = self.parts
        watches = parts.watches
        watches.unwatch_children(znode_paths.ISR_CHANGE_NOTIFICATION)
        watches.unwatch_requests()
        watches.unwatch_children(znode_paths.LOG_DIR_EVENT_NOTIFICATION)
        watches.unwatch_brokers()
        self.rebalance.stop()
        watches.unwatch_partition_states()
        parts.partition_state_machine.shutdown()
        watches.unwatch_children(znode_paths.BROKER_TOPICS)
        watches.unwatch_topics()
        watches.unwatch_children(znode_paths.DELETE_TOPICS)
        parts.replica_state_machine.shutdown()
        watches.unwatch_children(znode_paths.BROKER_IDS)
        parts.channels.shutdown()
        parts.batch.clear()
        self.reassignments.forget()
        parts.context.reset_context()

    async def _drop_notifications(self) -> None:
        """Delete notifications to the previous controller, as the state read next includes them.

        The listings here arm the child watches. Before 1.1 the notifications of ISR changes stayed,
        and were processed with the next one.
        """
        zk = self.parts.zk
        version = self.parts.context.epoch_zk_version
        if self.parts.behaviour.log_dir_failure_handling:
            log_dir_events = await zk.admin.get_all_log_dir_event_notifications()
            await zk.admin.delete_log_dir_event_notifications(log_dir_events, version)
        isr_changes = await zk.admin.get_all_isr_change_notifications()
        if self.parts.behaviour.failover_drops_notifications:
            await zk.admin.delete_isr_change_notifications(isr_changes, version)

    async def _initialize_context(self) -> None:
        parts = self.parts
        context, zk, watches = parts.context, parts.zk, parts.watches
        brokers = await zk.brokers.get_all_broker_and_epochs_in_cluster()
        context.brokers.set_live_brokers(self.features.compatible(brokers))
        context.topics.set_all_topics(
            await zk.topics.get_all_topics_in_cluster(register_watch=True)
        )
        await watches.watch_topics(context.topics.all_topics)
        topics = await zk.topics.get_replica_assignment_and_topic_ids_for_topics(
            context.topics.all_topics
        )
        await self.topic_changes.process_topic_ids(topics)
        for topic in topics:
            for topic_partition, assignment in topic.assignment:
                context.topics.update_partition_full_replica_assignment(topic_partition, assignment)
                if assignment.is_being_reassigned:
                    context.topics.partitions_being_reassigned.add(topic_partition)
        context.topics.clear_partition_leadership_info()
        context.brokers.shutting_down_broker_ids.clear()
        await watches.watch_brokers(context.brokers.live_or_shutting_down_broker_ids)
        await self.isr_changes.update_leadership_cache(list(context.topics.all_partitions()))
        parts.channels.startup(context.brokers.live_or_shutting_down_brokers())
        await self.reassignments.load()

    async def _fetch_topic_deletions(self) -> tuple[list[str], list[str]]:
        """Return (topics to be deleted, those of them that are not eligible now)."""
        parts = self.parts
        context = parts.context
        queued = await parts.zk.admin.get_topic_deletions()
        busy = {tp.topic for tp in context.topics.partitions_being_reassigned}
        if parts.behaviour.preferred_election_blocks_deletion:
            busy |= {tp.topic for tp in await parts.zk.admin.get_preferred_replica_election()}
        ineligible = [
            topic
            for topic in queued
            if topic in busy
            or not all(
                context.brokers.is_replica_online(broker_id, TopicPartition(name, partition))
                for name, partition, broker_id in context.topics.replicas_for_topic(topic)
            )
        ]
        return queued, ineligible
