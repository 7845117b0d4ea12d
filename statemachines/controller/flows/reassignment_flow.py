"""The parts of reassignment that all releases have in common (docs/kafka/reassignment.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from ....election.errors import StateChangeFailed
from ....election.strategies import Reassign
from ....protocol.errors import ErrorCode
from ....protocol.values import (
    LeaderIsrAndControllerEpoch,
    PartitionReplica,
    ReplicaAssignment,
    TopicPartition,
    changed,
)
from ...machines.transitions import PartitionState, ReplicaState
from ...zookeeper.errors import ControllerMoved, IllegalState
from ..events import (
    ApiPartitionReassignment,
    ListPartitionReassignments,
    PartitionReassignmentIsrChange,
    ZkPartitionReassignment,
)
from ..parts import ControllerParts


class ReassignmentFlow(ABC):
    """Base class of reassignment, whose steps are the same in all releases; subclasses decide when
    a reassignment proceeds, and which state is kept."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts

    # --- at failover and resignation

    @abstractmethod
    async def load(self) -> None:
        """Read state that is not in the topics' znodes."""

    @abstractmethod
    async def initialize(self) -> None:
        """Resume the reassignments of the previous controller."""

    @abstractmethod
    def forget(self) -> None:
        """Drop state outside the context."""

    # --- events

    @abstractmethod
    async def process_zk_reassignment(self, event: ZkPartitionReassignment) -> None:
        """Start the reassignments in ``/admin/reassign_partitions``."""

    @abstractmethod
    async def process_api_reassignment(self, event: ApiPartitionReassignment) -> None:
        """Start reassignments, and answer with an error code and a message per partition."""

    async def process_isr_change(self, event: PartitionReassignmentIsrChange) -> None:
        await self.maybe_complete(event.topic_partition)

    async def process_list(self, event: ListPartitionReassignments) -> None:
        """Answer which of the requested partitions are being reassigned."""
        from ....protocol.admin import OngoingReassignment  # rarely needed, so imported here

        parts = self._parts
        if not parts.is_active:
            event.callback(ErrorCode.NOT_CONTROLLER)
            return
        context = parts.context
        requested: Iterable[TopicPartition] = (
            context.topics.partitions_being_reassigned
            if event.partitions is None
            else event.partitions
        )
        found = [(tp, context.topics.partition_full_replica_assignment(tp)) for tp in requested]
        event.callback(
            tuple(
                OngoingReassignment(tp, a.replicas, a.adding, a.removing)
                for tp, a in found
                if a.is_being_reassigned
            )
        )

    # --- progress

    @abstractmethod
    async def resume_on_brokers(self, broker_ids: Iterable[int]) -> None:
        """Resume reassignments with target replicas on the given new brokers."""

    @abstractmethod
    async def maybe_complete(self, topic_partition: TopicPartition) -> None:
        """Complete the partition's reassignment if all its target replicas are in the ISR now."""

    # --- steps

    async def _update_leader_epoch(
        self, topic_partition: TopicPartition
    ) -> LeaderIsrAndControllerEpoch:
        """Raise the stored leader epoch, so that brokers accept a new list of replicas.

        Raises ``StateChangeFailed`` if a newer controller wrote the state, ``IllegalState`` if
        there is no state, and any error of the write.
        """
        parts = self._parts
        context, zk = parts.context, parts.zk
        while True:
            stored = await zk.topics.get_topic_partition_state(topic_partition)
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
            update = await zk.topics.update_leader_and_isr(
                {topic_partition: raised}, context.epoch, context.epoch_zk_version
            )
            if topic_partition in update.to_retry:
                continue
            written = update.finished[topic_partition]
            if isinstance(written, Exception):
                raise written
            leadership = LeaderIsrAndControllerEpoch(written, context.epoch)
            context.topics.put_partition_leadership_info(topic_partition, leadership)
            return leadership

    async def _send_leader_and_isr(
        self,
        topic_partition: TopicPartition,
        leadership: LeaderIsrAndControllerEpoch,
        assignment: ReplicaAssignment,
        old_replicas: Sequence[int],
        new_replicas: Sequence[int] = (),
    ) -> None:
        """Send LeaderAndIsr with the assignment; only new replicas may create a missing log."""
        parts = self._parts
        try:
            parts.batch.new_batch()
            parts.batch.add_leader_and_isr_request_for_brokers(
                old_replicas, topic_partition, leadership, assignment, is_new=False
            )
            parts.batch.add_leader_and_isr_request_for_brokers(
                new_replicas, topic_partition, leadership, assignment, is_new=True
            )
            parts.batch.send_requests_to_brokers(parts.context.epoch)
        except IllegalState as error:
            await parts.requests.handle_illegal_state(error)

    async def _move_replicas(
        self, topic_partition: TopicPartition, broker_ids: Iterable[int], *targets: ReplicaState
    ) -> None:
        replicas = [PartitionReplica(*topic_partition, broker_id) for broker_id in broker_ids]
        for target in targets:
            await self._parts.replica_state_machine.handle_state_changes(replicas, target)

    async def _stop_removed_replicas(
        self, topic_partition: TopicPartition, broker_ids: Sequence[int]
    ) -> None:
        """Remove replicas from the ISR, delete their logs without waiting, and forget them."""
        await self._move_replicas(
            topic_partition,
            broker_ids,
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_SUCCESSFUL,
            ReplicaState.NON_EXISTENT,
        )

    async def _elect_among_target(self, topic_partition: TopicPartition) -> None:
        """Elect a leader among the target; a failure is only logged, as in Kafka."""
        outcomes = await self._parts.partition_state_machine.handle_state_changes(
            [topic_partition], PartitionState.ONLINE, Reassign()
        )
        for outcome in outcomes.values():
            if isinstance(outcome, ControllerMoved):
                raise outcome

    async def _write_assignment(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        """Rewrite the topic's znode with one partition changed."""
        parts = self._parts
        context, topic = parts.context, topic_partition.topic
        of_topic = context.topics.partition_full_replica_assignment_for_topic(topic)
        of_topic[topic_partition] = assignment
        await parts.zk.topics.set_topic_assignment(
            topic, context.topics.topic_ids.get(topic), of_topic, context.epoch_zk_version
        )

    async def _write_remaining(self, remaining: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Rewrite the request znode, or delete it and queue an event that watches for the next."""
        parts = self._parts
        version = parts.context.epoch_zk_version
        if remaining:
            await parts.zk.admin.set_or_create_partition_reassignment(remaining, version)
        else:
            await parts.zk.admin.delete_partition_reassignment(version)
            parts.event_manager.put(ZkPartitionReassignment())
