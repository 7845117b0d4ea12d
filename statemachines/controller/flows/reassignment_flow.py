"""Reassignment as far as it is the same in every version (docs/kafka/reassignment.md)."""

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
    """Reassignment as in every version; when it goes on, and what is remembered, differs."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts

    # --- at failover and resignation

    @abstractmethod
    async def load(self) -> None:
        """Read what is not in the topics' znodes."""

    @abstractmethod
    async def initialize(self) -> None:
        """Take up what the last controller left."""

    @abstractmethod
    def forget(self) -> None:
        """Drop what is remembered outside the context."""

    # --- events

    @abstractmethod
    async def process_zk_reassignment(self, event: ZkPartitionReassignment) -> None:
        """Reassign what ``/admin/reassign_partitions`` asks for."""

    @abstractmethod
    async def process_api_reassignment(self, event: ApiPartitionReassignment) -> None:
        """Answer an error code and message per partition."""

    async def process_isr_change(self, event: PartitionReassignmentIsrChange) -> None:
        await self.maybe_complete(event.topic_partition)

    async def process_list(self, event: ListPartitionReassignments) -> None:
        """Answer which of the partitions asked for are being reassigned."""
        from ....protocol.admin import OngoingReassignment  # administrators only

        parts = self._parts
        if not parts.is_active:
            event.callback(ErrorCode.NOT_CONTROLLER)
            return
        context = parts.context
        asked: Iterable[TopicPartition] = (
            context.topics.partitions_being_reassigned
            if event.partitions is None
            else event.partitions
        )
        found = [(tp, context.topics.partition_full_replica_assignment(tp)) for tp in asked]
        event.callback(
            tuple(
                OngoingReassignment(tp, a.replicas, a.adding, a.removing)
                for tp, a in found
                if a.is_being_reassigned
            )
        )

    # --- going on

    @abstractmethod
    async def resume_on_brokers(self, broker_ids: Iterable[int]) -> None:
        """Brokers came: go on with reassignments that move something to them."""

    @abstractmethod
    async def maybe_complete(self, topic_partition: TopicPartition) -> None:
        """The ISR changed: finish the reassignment if that was what it waited for."""

    # --- steps

    async def _update_leader_epoch(
        self, topic_partition: TopicPartition
    ) -> LeaderIsrAndControllerEpoch:
        """Raise the stored leader epoch, so that brokers accept a new list of replicas.

        Raises ``StateChangeFailed`` if a newer controller wrote the state, ``IllegalState`` if
        there is none, and what the write raises.
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
        """Tell replicas the assignment; only new ones may create their log where there is none."""
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
        """Rewrite the request znode, or delete it and look out for the next one."""
        parts = self._parts
        version = parts.context.epoch_zk_version
        if remaining:
            await parts.zk.admin.set_or_create_partition_reassignment(remaining, version)
        else:
            await parts.zk.admin.delete_partition_reassignment(version)
            parts.event_manager.put(ZkPartitionReassignment())
