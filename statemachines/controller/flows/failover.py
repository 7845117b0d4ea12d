"""Becoming and ceasing to be the controller (docs/kafka/controller-failover.md).

The order of the steps is Kafka's and matters: watches are registered before what they watch is
read, brokers learn of each other before they learn of leaders, and the replica state machine
starts before the partition state machine, so that dead brokers have left the ISRs when leaders
are elected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....protocol import znode_paths
from ....protocol.values import TopicPartition

if TYPE_CHECKING:
    from ..controller import KafkaController


class Failover:
    """Takes over the cluster's state from ZooKeeper; drops it again."""

    def __init__(self, controller: KafkaController) -> None:
        self._controller = controller

    async def on_controller_failover(self) -> None:
        """Everything a new controller does before its first event."""
        controller = self._controller
        context = controller.context
        await controller.features.setup()
        drops_requests = controller.behaviour.disabled_deletion_drops_requests
        controller.watches.watch_children(controller.topic_deletion.enabled or drops_requests)
        await controller.watches.watch_preferred_election()
        await controller.watches.watch_reassignment()
        await self._drop_notifications()
        await self._initialize_context()
        queued, ineligible = await self._fetch_topic_deletions()
        await controller.topic_deletion.init(queued, ineligible)
        # Brokers refuse to follow leaders they have not heard of: tell who lives first.
        await controller.send_update_metadata(context.live_or_shutting_down_broker_ids)
        await controller.replica_state_machine.startup()
        await controller.partition_state_machine.startup()
        controller.log("info", f"ready to serve as the controller of epoch {context.epoch}")
        await controller.reassignments.initialize()
        await controller.topic_deletion.try_topic_deletion()
        await controller.elections.resume_pending()
        controller.rebalance.start()

    def on_controller_resignation(self) -> None:
        """Stop watching, stop timers and senders, forget; ``/controller`` stays watched."""
        controller = self._controller
        watches = controller.watches
        watches.unwatch_children(znode_paths.ISR_CHANGE_NOTIFICATION)
        watches.unwatch_requests()
        watches.unwatch_children(znode_paths.LOG_DIR_EVENT_NOTIFICATION)
        watches.unwatch_brokers()
        controller.rebalance.stop()
        watches.unwatch_partition_states()
        controller.partition_state_machine.shutdown()
        watches.unwatch_children(znode_paths.BROKER_TOPICS)
        watches.unwatch_topics()
        watches.unwatch_children(znode_paths.DELETE_TOPICS)
        controller.replica_state_machine.shutdown()
        watches.unwatch_children(znode_paths.BROKER_IDS)
        controller.channels.shutdown()
        controller.batch.clear()
        controller.reassignments.forget()
        controller.context.reset_context()

    async def _drop_notifications(self) -> None:
        """What was announced to the last controller is in the state that is read next.

        The lists read here arm the child watches. Before 1.1 announced ISRs were left for the
        next announcement to bring them up.
        """
        zk = self._controller.zk
        version = self._controller.context.epoch_zk_version
        if self._controller.behaviour.log_dir_failure_handling:
            log_dir_events = await zk.get_all_log_dir_event_notifications()
            await zk.delete_log_dir_event_notifications(log_dir_events, version)
        isr_changes = await zk.get_all_isr_change_notifications()
        if self._controller.behaviour.failover_drops_notifications:
            await zk.delete_isr_change_notifications(isr_changes, version)

    async def _initialize_context(self) -> None:
        controller = self._controller
        context, zk, watches = controller.context, controller.zk, controller.watches
        brokers = await zk.get_all_broker_and_epochs_in_cluster()
        context.set_live_brokers(controller.features.compatible(brokers))
        context.set_all_topics(await zk.get_all_topics_in_cluster(register_watch=True))
        await watches.watch_topics(context.all_topics)
        topics = await zk.get_replica_assignment_and_topic_ids_for_topics(context.all_topics)
        await controller.topic_changes.process_topic_ids(topics)
        for topic in topics:
            for topic_partition, assignment in topic.assignment:
                context.update_partition_full_replica_assignment(topic_partition, assignment)
                if assignment.is_being_reassigned:
                    context.partitions_being_reassigned.add(topic_partition)
        context.clear_partition_leadership_info()
        context.shutting_down_broker_ids.clear()
        await watches.watch_brokers(context.live_or_shutting_down_broker_ids)
        await controller.isr_changes.update_leadership_cache(list(context.all_partitions()))
        controller.channels.startup(context.live_or_shutting_down_brokers())
        await controller.reassignments.load()

    async def _fetch_topic_deletions(self) -> tuple[list[str], list[str]]:
        """Topics to be deleted, and those of them that cannot be now."""
        controller = self._controller
        context = controller.context
        queued = await controller.zk.get_topic_deletions()
        busy = {tp.topic for tp in context.partitions_being_reassigned}
        if controller.behaviour.preferred_election_blocks_deletion:
            busy |= {tp.topic for tp in await controller.zk.get_preferred_replica_election()}
        ineligible = [
            topic
            for topic in queued
            if topic in busy
            or not all(
                context.is_replica_online(broker_id, TopicPartition(name, partition))
                for name, partition, broker_id in context.replicas_for_topic(topic)
            )
        ]
        return queued, ineligible
