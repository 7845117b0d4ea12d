"""Steps of a reassignment that are the same in every version (docs/kafka/reassignment.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ....election.strategies import Reassign
from ....protocol.admin import OngoingReassignment
from ....protocol.errors import ErrorCode
from ....protocol.values import (
    LeaderIsrAndControllerEpoch,
    PartitionReplica,
    ReplicaAssignment,
    TopicPartition,
    changed,
)
from ...machines.transitions import PartitionState, ReplicaState
from ...zookeeper.errors import ControllerMoved, IllegalState, StateChangeFailed
from ..events import ListPartitionReassignments, ZkPartitionReassignment

if TYPE_CHECKING:
    from ..controller import KafkaController


class ReassignmentSteps:
    """Steps that reassignment takes in every version."""

    def __init__(self, controller: KafkaController) -> None:
        self._controller = controller

    async def _update_leader_epoch(
        self, topic_partition: TopicPartition
    ) -> LeaderIsrAndControllerEpoch:
        """Raise the stored leader epoch, so that brokers accept a new list of replicas.

        Raises ``StateChangeFailed`` if a newer controller wrote the state, ``IllegalState`` if
        there is none, and what the write raises.
        """
        controller = self._controller
        context, zk = controller.context, controller.zk
        while True:
            stored = await zk.get_topic_partition_state(topic_partition)
            if stored is None:
                raise IllegalState(
                    f"cannot raise the leader epoch of {topic_partition}: it has no state"
                )
            if stored.controller_epoch > context.epoch:
                raise StateChangeFailed(
                    f"state of {topic_partition} was written by a controller of epoch "
                    f"{stored.controller_epoch}, newer than {context.epoch}"
                )
            known = stored.leader_and_isr
            raised = changed(known, leader_epoch=known.leader_epoch + 1)
            update = await zk.update_leader_and_isr(
                {topic_partition: raised}, context.epoch, context.epoch_zk_version
            )
            if topic_partition in update.to_retry:
                continue
            written = update.finished[topic_partition]
            if isinstance(written, Exception):
                raise written
            leadership = LeaderIsrAndControllerEpoch(written, context.epoch)
            context.put_partition_leadership_info(topic_partition, leadership)
            return leadership

    async def _send_leader_and_isr(
        self,
        topic_partition: TopicPartition,
        leadership: LeaderIsrAndControllerEpoch,
        assignment: ReplicaAssignment,
        old_replicas: Sequence[int],
        new_replicas: Sequence[int] = (),
    ) -> None:
        """Tell replicas the assignment; only new ones may create their log where there is none."""
        controller = self._controller
        try:
            controller.batch.new_batch()
            controller.batch.add_leader_and_isr_request_for_brokers(
                old_replicas, topic_partition, leadership, assignment, is_new=False
            )
            controller.batch.add_leader_and_isr_request_for_brokers(
                new_replicas, topic_partition, leadership, assignment, is_new=True
            )
            controller.batch.send_requests_to_brokers(controller.context.epoch)
        except IllegalState as error:
            await controller.handle_illegal_state(error)

    async def _move_replicas(
        self, topic_partition: TopicPartition, broker_ids: Iterable[int], *targets: ReplicaState
    ) -> None:
        replicas = [PartitionReplica(*topic_partition, broker_id) for broker_id in broker_ids]
        for target in targets:
            await self._controller.replica_state_machine.handle_state_changes(replicas, target)

    async def _stop_removed_replicas(
        self, topic_partition: TopicPartition, broker_ids: Sequence[int]
    ) -> None:
        """Out of the ISR, log deleted, forgotten; nobody waits for the deletion to succeed."""
        await self._move_replicas(
            topic_partition,
            broker_ids,
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_SUCCESSFUL,
            ReplicaState.NON_EXISTENT,
        )

    async def _elect_among_target(self, topic_partition: TopicPartition) -> None:
        """A failed election is only logged, and the reassignment goes on, as in Kafka."""
        outcomes = await self._controller.partition_state_machine.handle_state_changes(
            [topic_partition], PartitionState.ONLINE, Reassign()
        )
        for outcome in outcomes.values():
            if isinstance(outcome, ControllerMoved):
                raise outcome

    async def _write_assignment(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        """Rewrite the topic's znode with one partition changed."""
        controller = self._controller
        context, topic = controller.context, topic_partition.topic
        of_topic = context.partition_full_replica_assignment_for_topic(topic)
        of_topic[topic_partition] = assignment
        await controller.zk.set_topic_assignment(
            topic, context.topic_ids.get(topic), of_topic, context.epoch_zk_version
        )

    async def _write_remaining(self, remaining: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Rewrite the request znode, or delete it and look out for the next one."""
        controller = self._controller
        version = controller.context.epoch_zk_version
        if remaining:
            await controller.zk.set_or_create_partition_reassignment(remaining, version)
        else:
            await controller.zk.delete_partition_reassignment(version)
            controller.event_manager.put(ZkPartitionReassignment())

    async def process_list(self, event: ListPartitionReassignments) -> None:
        """Answer which of the partitions asked for are being reassigned."""
        controller = self._controller
        if not controller.is_active:
            event.callback(ErrorCode.NOT_CONTROLLER)
            return
        context = controller.context
        asked: Iterable[TopicPartition] = (
            context.partitions_being_reassigned if event.partitions is None else event.partitions
        )
        found = [(tp, context.partition_full_replica_assignment(tp)) for tp in asked]
        event.callback(
            tuple(
                OngoingReassignment(tp, a.replicas, a.adding, a.removing)
                for tp, a in found
                if a.is_being_reassigned
            )
        )
