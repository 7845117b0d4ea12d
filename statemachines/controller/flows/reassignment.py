"""Reassignment of replicas to other brokers (docs/kafka/reassignment.md, KIP-455).

Theory of operation. The assignment in the topic's znode lists the replicas being added and removed.
A reassignment is in *phase A* until every target replica is in the ISR: new replicas have been told
to start, and the controller waits for ISR changes. Then *phase B* makes the target the assignment:
the leader moves if necessary, removed replicas leave the ISR and are deleted, and the znode is
rewritten. ``on_partition_reassignment`` determines the phase, and may be called at any time.

Requests arrive by API or in ``/admin/reassign_partitions``; the latest wins.

Source: Kafka's ``KafkaController.onPartitionReassignment`` and the code around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ....protocol.errors import ErrorCode
from ....protocol.values import ReplicaAssignment, TopicPartition
from ...machines.transitions import ReplicaState
from ...zookeeper.errors import ControllerMoved, IllegalState
from ..events import ApiPartitionReassignment, ZkPartitionReassignment
from .reassignment_flow import ReassignmentFlow

_FAILED = "The server experienced an unexpected error when processing the request."
_Result: TypeAlias = tuple[ErrorCode, "str | None"]

UNKNOWN_PARTITION = "The partition does not exist."


class Reassignments(ReassignmentFlow):
    """Reassignment since 2.4: requested by API or znode, stored in the topic's znode."""

    def forget(self) -> None:
        """Do nothing, as there is no state outside the context."""

    async def load(self) -> None:
        """Do nothing, as the topics' znodes have been read already."""

    # --- requests

    async def initialize(self) -> None:
        """Resume the previous controller's reassignments: first those in the request znode."""
        taken = await self._process_znode()
        context = self._parts.context
        for topic_partition in list(context.topics.partitions_being_reassigned):
            if topic_partition not in taken:
                assignment = context.topics.partition_full_replica_assignment(topic_partition)
                await self.on_partition_reassignment(topic_partition, assignment)

    async def resume_on_brokers(self, broker_ids: Iterable[int]) -> None:
        """Resume reassignments with target replicas on the given new brokers."""
        context = self._parts.context
        came = set(broker_ids)
        for topic_partition in list(context.topics.partitions_being_reassigned):
            assignment = context.topics.partition_full_replica_assignment(topic_partition)
            if not came.isdisjoint(assignment.target):
                await self.on_partition_reassignment(topic_partition, assignment)

    async def process_zk_reassignment(self, _event: ZkPartitionReassignment) -> None:
        await self._process_znode()

    async def _process_znode(self) -> dict[TopicPartition, None]:
        """Start the reassignments in ``/admin/reassign_partitions``; returns those accepted."""
        parts = self._parts
        if not parts.is_active or not await parts.watches.watch_reassignment():
            return {}
        results: dict[TopicPartition, _Result] = {}
        accepted: dict[TopicPartition, ReplicaAssignment] = {}
        for tp, target in (await parts.zk.admin.get_partition_reassignment()).items():
            assignment = self._build(tp, target)
            if assignment is None:
                results[tp] = (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
            else:
                accepted[tp] = assignment
        results.update(await self._trigger(accepted))
        failed = {tp: error for tp, (error, _) in results.items() if error != ErrorCode.NONE}
        if failed:
            parts.log("warn", f"reassignments asked for by znode failed: {failed}")
            await self._remove_from_znode(lambda tp, _target: tp in failed)
        return {tp: None for tp in results if tp not in failed}

    async def process_api_reassignment(self, event: ApiPartitionReassignment) -> None:
        """Start reassignments, and answer with an error code and a message per partition."""
        parts = self._parts
        if not parts.is_active:
            event.callback(ErrorCode.NOT_CONTROLLER)
            return
        results: dict[TopicPartition, _Result] = {}
        accepted: dict[TopicPartition, ReplicaAssignment] = {}
        for topic_partition, target in event.reassignments:
            problem = None if target is None else self._target_error(topic_partition, target)
            if problem is not None:
                results[topic_partition] = (ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
                continue
            assignment = self._build(topic_partition, target)
            if assignment is None:
                results[topic_partition] = (
                    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
                    "No partition reassignment is in progress.",
                )
            else:
                accepted[topic_partition] = assignment
        # The latest request wins, so an older one must not be read from the znode again.
        await self._remove_from_znode(lambda tp, _target: tp in accepted)
        results.update(await self._trigger(accepted))
        event.callback(results)

    def _target_error(self, topic_partition: TopicPartition, target: tuple[int, ...]) -> str | None:
        """Return why a requested list of replicas is invalid, or None; for API requests only."""
        if not target:
            return "Empty replica list specified in partition reassignment."
        replicas = f"ArrayBuffer({', '.join(map(str, target))})"
        if len(set(target)) != len(target):
            return f"Duplicate replica ids in partition reassignment replica list: {replicas}"
        if any(broker_id < 0 for broker_id in target):
            return f"Invalid broker id in replica list: {replicas}"
        context = self._parts.context
        adding = (
            context.topics.partition_full_replica_assignment(topic_partition)
            .reassign_to(target)
            .adding
        )
        live = context.brokers.live_broker_ids
        if any(broker_id not in live for broker_id in adding):
            return (
                "Replica assignment has brokers that are not alive. Replica list: "
                f"ArrayBuffer({', '.join(map(str, adding))}), "
                f"live broker list: Set({', '.join(map(str, live))})"
            )
        return None

    def _build(
        self, topic_partition: TopicPartition, target: tuple[int, ...] | None
    ) -> ReplicaAssignment | None:
        """Return the requested assignment; None if there is no reassignment to cancel."""
        current = self._parts.context.topics.partition_full_replica_assignment(topic_partition)
        if target is None:
            if not current.is_being_reassigned:
                return None
            target = current.origin
        return current.reassign_to(target)

    async def _trigger(
        self, reassignments: Mapping[TopicPartition, ReplicaAssignment]
    ) -> dict[TopicPartition, _Result]:
        parts = self._parts
        results: dict[TopicPartition, _Result] = {}
        for topic_partition, assignment in reassignments.items():
            if parts.topic_deletion.is_topic_queued_up_for_deletion(
                topic_partition.topic
            ) or not parts.context.topics.partition_replica_assignment(topic_partition):
                results[topic_partition] = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_PARTITION)
            else:
                results[topic_partition] = await self._start(topic_partition, assignment)
        return results

    async def _start(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> _Result:
        try:
            await self.on_partition_reassignment(topic_partition, assignment)
        except ControllerMoved:
            raise
        except Exception as error:
            self._parts.log("error", f"reassigning {topic_partition} failed: {error!r}")
            return ErrorCode.UNKNOWN_SERVER_ERROR, _FAILED
        return ErrorCode.NONE, None

    # --- phases

    async def on_partition_reassignment(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        """Start or resume a reassignment: run phase A or B, depending on the ISR."""
        parts = self._parts
        context = parts.context
        parts.topic_deletion.mark_topic_ineligible_for_deletion(
            [topic_partition.topic], "topic reassignment in progress"
        )
        await self._update_current(topic_partition, assignment)
        if not await self._is_complete(topic_partition, assignment):
            leadership = await self._update_leader_epoch(topic_partition)
            await self._send_leader_and_isr(
                topic_partition, leadership, assignment, assignment.origin, assignment.adding
            )
            await self._move_replicas(topic_partition, assignment.adding, ReplicaState.NEW)
            return
        await self._move_replicas(topic_partition, assignment.adding, ReplicaState.ONLINE)
        completed = ReplicaAssignment(assignment.target)
        context.topics.update_partition_full_replica_assignment(topic_partition, completed)
        await self._move_leader_if_required(topic_partition, completed)
        await self._stop_removed_replicas(topic_partition, assignment.removing)
        await self._write_assignment(topic_partition, completed)
        await self._remove_from_reassigning(topic_partition, completed)
        await parts.requests.send_update_metadata(
            context.brokers.live_or_shutting_down_broker_ids, [topic_partition]
        )
        await parts.topic_deletion.resume_deletion_for_topics([topic_partition.topic])

    async def _update_current(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        """Make the assignment current, and stop replicas that only an earlier one needed."""
        parts = self._parts
        context = parts.context
        current = context.topics.partition_full_replica_assignment(topic_partition)
        if current != assignment:
            await self._write_assignment(topic_partition, assignment)
            context.topics.update_partition_full_replica_assignment(topic_partition, assignment)
            unneeded = [r for r in current.replicas if r not in assignment.replicas]
            if unneeded:
                await self._stop_removed_replicas(topic_partition, unneeded)
        if not parts.behaviour.alter_isr:
            parts.watches.watch_partition_state(topic_partition)
        context.topics.partitions_being_reassigned.add(topic_partition)

    async def _is_complete(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> bool:
        """Return whether every target replica is in the ISR stored in ZooKeeper."""
        if not assignment.is_being_reassigned:
            return True
        stored = await self._parts.zk.topics.get_topic_partition_state(topic_partition)
        return stored is not None and set(assignment.target) <= set(stored.leader_and_isr.isr)

    async def _move_leader_if_required(
        self, topic_partition: TopicPartition, completed: ReplicaAssignment
    ) -> None:
        context = self._parts.context
        leadership = context.topics.partition_leadership_info(topic_partition)
        if leadership is None:
            raise IllegalState(f"{topic_partition} has no leadership")
        leader = leadership.leader_and_isr.leader
        if leader in completed.replicas and context.brokers.is_replica_online(
            leader, topic_partition
        ):
            leadership = await self._update_leader_epoch(topic_partition)
            await self._send_leader_and_isr(
                topic_partition, leadership, completed, completed.replicas
            )
        else:
            await self._elect_among_target(topic_partition)

    async def _remove_from_reassigning(
        self, topic_partition: TopicPartition, completed: ReplicaAssignment
    ) -> None:
        parts = self._parts
        if topic_partition not in parts.context.topics.partitions_being_reassigned:
            raise IllegalState(f"{topic_partition} is not being reassigned")
        if not parts.behaviour.alter_isr:
            parts.watches.unwatch_partition_state(topic_partition)
        await self._remove_from_znode(
            lambda tp, target: tp == topic_partition and target == completed.replicas
        )
        parts.context.topics.partitions_being_reassigned.discard(topic_partition)

    async def _remove_from_znode(
        self, should_remove: Callable[[TopicPartition, tuple[int, ...]], bool]
    ) -> None:
        """Remove entries from the request znode, if it exists."""
        zk = self._parts.zk
        if not await zk.admin.reassign_partitions_in_progress():
            return
        remaining = {
            tp: target
            for tp, target in (await zk.admin.get_partition_reassignment()).items()
            if not should_remove(tp, target)
        }
        await self._write_remaining(remaining)

    async def maybe_complete(self, topic_partition: TopicPartition) -> None:
        """Complete the partition's reassignment if all its target replicas are in the ISR now."""
        context = self._parts.context
        if topic_partition not in context.topics.partitions_being_reassigned:
            return
        assignment = context.topics.partition_full_replica_assignment(topic_partition)
        if await self._is_complete(topic_partition, assignment):
            await self.on_partition_reassignment(topic_partition, assignment)
