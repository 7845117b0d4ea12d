"""Reassignment before 2.4, which is requested and stored in ``/admin/reassign_partitions`` only.

The topic's znode has no lists of adding and removing replicas: during a reassignment, the
assignment is the union of old and new replicas. Another request for a partition that is being
reassigned is ignored. A request for the current assignment, or for an unknown partition, is dropped
with an error. Source: Kafka 1.1's ``KafkaController``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....protocol.errors import ErrorCode
from ....protocol.values import ReplicaAssignment, TopicPartition
from ...machines.transitions import ReplicaState
from ...zookeeper.errors import ControllerMoved
from ..events import ApiPartitionReassignment, ZkPartitionReassignment
from ..parts import ControllerParts
from .reassignment_flow import ReassignmentFlow


class LegacyReassignments(ReassignmentFlow):
    """Reassignments that the request znode contains."""

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts)
        self._targets: dict[TopicPartition, tuple[int, ...]] = {}
        """Target replicas by partition, for all partitions that are being reassigned."""

    def forget(self) -> None:
        self._targets.clear()

    async def load(self) -> None:
        """Read the requested reassignments, so that their topics are not deleted meanwhile."""
        self._targets = dict(await self._parts.zk.admin.get_partition_reassignment())
        self._parts.context.topics.partitions_being_reassigned.add_all(self._targets)

    async def initialize(self) -> None:
        await self._parts.watches.watch_reassignment()
        await self._trigger(list(self._targets))

    async def resume_on_brokers(self, broker_ids: Iterable[int]) -> None:
        came = set(broker_ids)
        for topic_partition, target in list(self._targets.items()):
            if not came.isdisjoint(target):
                await self.on_partition_reassignment(topic_partition, target)

    async def process_zk_reassignment(self, _event: ZkPartitionReassignment) -> None:
        parts = self._parts
        if not parts.is_active or not await parts.watches.watch_reassignment():
            return
        requested = await parts.zk.admin.get_partition_reassignment()
        fresh = {tp: target for tp, target in requested.items() if tp not in self._targets}
        self._targets.update(fresh)
        parts.context.topics.partitions_being_reassigned.add_all(fresh)
        await self._trigger(list(fresh))

    async def process_api_reassignment(self, event: ApiPartitionReassignment) -> None:
        """Answer UNSUPPORTED_VERSION, as there was no such API."""
        event.callback(ErrorCode.UNSUPPORTED_VERSION)

    async def maybe_complete(self, topic_partition: TopicPartition) -> None:
        target = self._targets.get(topic_partition)
        if target is not None and await self._is_in_isr(topic_partition, target):
            await self.on_partition_reassignment(topic_partition, target)

    async def _trigger(self, partitions: Sequence[TopicPartition]) -> None:
        """Start reassignments, and drop requests that are invalid or fail."""
        parts = self._parts
        dropped: list[TopicPartition] = []
        for topic_partition in partitions:
            target = self._targets[topic_partition]
            problem = self._target_error(topic_partition, target)
            if problem is None:
                parts.topic_deletion.mark_topic_ineligible_for_deletion(
                    [topic_partition.topic], "topic reassignment in progress"
                )
                parts.watches.watch_partition_state(topic_partition)
                try:
                    await self.on_partition_reassignment(topic_partition, target)
                    continue
                except ControllerMoved:
                    raise
                except Exception as error:
                    problem = f"it failed: {error!r}"
            parts.log("error", f"dropping the reassignment of {topic_partition}: {problem}")
            dropped.append(topic_partition)
        if dropped:
            await self._remove(dropped)

    def _target_error(self, topic_partition: TopicPartition, target: tuple[int, ...]) -> str | None:
        parts = self._parts
        if parts.topic_deletion.is_topic_queued_up_for_deletion(topic_partition.topic):
            return "its topic is being deleted"
        assigned = parts.context.topics.partition_replica_assignment(topic_partition)
        if not assigned:
            return "it does not exist"
        if assigned == target:
            return f"it is already assigned to {list(target)}"
        return None

    async def on_partition_reassignment(
        self, topic_partition: TopicPartition, target: tuple[int, ...]
    ) -> None:
        """Add the new replicas to the assignment or, once they are in sync, remove the old ones."""
        parts = self._parts
        context = parts.context
        assigned = context.topics.partition_replica_assignment(topic_partition)
        if not await self._is_in_isr(topic_partition, target):
            wide = ReplicaAssignment(tuple(dict.fromkeys(target + assigned)))
            await self._assign(topic_partition, wide)
            leadership = await self._update_leader_epoch(topic_partition)
            await self._send_leader_and_isr(topic_partition, leadership, wide, wide.replicas)
            new = [broker_id for broker_id in target if broker_id not in assigned]
            await self._move_replicas(topic_partition, new, ReplicaState.NEW)
            return
        old = [broker_id for broker_id in assigned if broker_id not in target]
        for broker_id in target:
            await self._move_replicas(topic_partition, [broker_id], ReplicaState.ONLINE)
        await self._move_leader_if_required(topic_partition, assigned, target)
        await self._stop_removed_replicas(topic_partition, old)
        await self._assign(topic_partition, ReplicaAssignment(target))
        await self._remove([topic_partition])
        await parts.requests.send_update_metadata(
            context.brokers.live_or_shutting_down_broker_ids, [topic_partition]
        )
        await parts.topic_deletion.resume_deletion_for_topics([topic_partition.topic])

    async def _move_leader_if_required(
        self, topic_partition: TopicPartition, assigned: tuple[int, ...], target: tuple[int, ...]
    ) -> None:
        context = self._parts.context
        narrow = ReplicaAssignment(target)
        # In memory first, so that the leader does not take old replicas back into the ISR.
        context.topics.update_partition_full_replica_assignment(topic_partition, narrow)
        leadership = context.topics.partition_leadership_info(topic_partition)
        leader = -1 if leadership is None else leadership.leader_and_isr.leader
        if leader in target and context.brokers.is_replica_online(leader, topic_partition):
            leadership = await self._update_leader_epoch(topic_partition)
            await self._send_leader_and_isr(topic_partition, leadership, narrow, assigned)
        else:
            await self._elect_among_target(topic_partition)

    async def _assign(self, topic_partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        await self._write_assignment(topic_partition, assignment)
        self._parts.context.topics.update_partition_full_replica_assignment(
            topic_partition, assignment
        )

    async def _is_in_isr(self, topic_partition: TopicPartition, replicas: tuple[int, ...]) -> bool:
        stored = await self._parts.zk.topics.get_topic_partition_state(topic_partition)
        return stored is not None and set(replicas) <= set(stored.leader_and_isr.isr)

    async def _remove(self, partitions: Sequence[TopicPartition]) -> None:
        """Remove completed or dropped reassignments here and from the znode."""
        parts = self._parts
        for topic_partition in partitions:
            parts.watches.unwatch_partition_state(topic_partition)
        requested = await parts.zk.admin.get_partition_reassignment()
        await self._write_remaining({tp: t for tp, t in requested.items() if tp not in partitions})
        for topic_partition in partitions:
            self._targets.pop(topic_partition, None)
        parts.context.topics.partitions_being_reassigned.discard_all(partitions)
