"""Snapshots of a cluster: topics, partitions, replicas, and the records in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ...protocol.errors import NotThereYet, did_you_mean
from ...protocol.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    PartitionReplica,
    ReplicaAssignment,
    TopicPartition,
)
from .. import arguments
from ..views import ConsumerRecord, PartitionView, ReplicaView

if TYPE_CHECKING:
    from ...protocol.control import UpdateMetadataPartitionState
    from ...protocol.records.batch import RecordBatch
    from ...replication.log.log import Log
    from ..running import RunningCluster

T = TypeVar("T")


class Partitions:
    """Topics, partitions and stored records, as the controller and the brokers have them now."""

    def __init__(self, running: RunningCluster) -> None:
        self._running = running

    def topics(self) -> list[str]:
        """Return the sorted names of all topics that the living brokers know."""
        self._running.require_own_process()
        brokers = self._running.living_brokers()
        return sorted({topic for broker in brokers for topic in broker.metadata_cache.topics()})

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic, as the living brokers know it."""
        brokers = self._running.living_brokers()
        return max((b.metadata_cache.partition_count(topic) for b in brokers), default=0)

    def partition(self, topic: str, partition: int) -> PartitionView:
        """Return a snapshot of a partition; ``NotThereYet`` if it does not exist.

        While no controller is active, or a new one is still loading, the snapshot shows the newest
        state that a living broker knows, and the states of the controller are empty.
        """
        key = partition_key(topic, partition)
        controller = self._running.active_controller()
        if controller is not None:
            process = self._running.processes[controller.broker_id].process
            facts = self._running.in_process(process, lambda: _controller_facts(controller, key))
        else:
            facts = None
        if facts is None or facts[1] is None:  # no controller, or a new one is still loading
            facts = _metadata_facts(self.newest_metadata(key)) or facts
        if facts is None:
            raise self.no_such_partition(key)
        assignment, leadership, state, states = facts
        replicas = {
            broker_id: self._replica_view(key, broker_id, states.get(broker_id, ""))
            for broker_id in assignment.replicas
        }
        leader = leadership.leader_and_isr.leader if leadership is not None else -1
        at_leader = replicas.get(leader)
        return PartitionView(
            topic=topic,
            partition=partition,
            state=state,
            leader=leader if leader >= 0 else None,
            leader_epoch=leadership.leader_and_isr.leader_epoch if leadership else -1,
            controller_epoch=leadership.controller_epoch if leadership else -1,
            zk_version=leadership.leader_and_isr.zk_version if leadership else -1,
            replicas=assignment.replicas,
            isr=leadership.leader_and_isr.isr if leadership else (),
            adding=assignment.adding,
            removing=assignment.removing,
            high_watermark=at_leader.high_watermark if at_leader else -1,
            log_start_offset=at_leader.log_start_offset if at_leader else -1,
            log_end_offset=at_leader.log_end_offset if at_leader else -1,
            _replicas=replicas,
        )

    def _replica_view(self, key: TopicPartition, broker_id: int, state: str) -> ReplicaView:
        process = self._running.processes.get(broker_id)
        if process is None:  # the data directory is from a cluster with more brokers
            return ReplicaView(broker_id, "none", state, -1, -1, -1, -1, ())
        broker = process.broker

        def read_view() -> ReplicaView:
            log_dir = process.spec.disk.directory_of(key)
            hosted = None if broker is None else broker.replica_manager.hosted.partition(key)
            log = None if hosted is None else hosted.log
            if log is None:
                return ReplicaView(broker_id, "none", state, -1, -1, -1, -1, (), log_dir)
            assert hosted is not None
            return ReplicaView(
                broker_id=broker_id,
                role="leader" if hosted.is_leader else "follower",
                state=state,
                log_start_offset=log.log_start_offset,
                high_watermark=log.high_watermark,
                log_end_offset=log.log_end_offset,
                leader_epoch=hosted.leader_epoch,
                epochs=tuple(log.epochs),
                log_dir=log_dir,
            )

        return self._running.in_process(process.process, read_view)

    def records(
        self, topic: str, partition: int | None, replica: int | None = None
    ) -> list[ConsumerRecord]:
        """Return the decoded records that a replica holds, the leader's by default.

        Without a partition, return the records of all partitions, or of those with a replica on
        the broker, one partition after the other. Control records are left out. ``NotThereYet`` if
        there is no such replica.
        """
        if partition is not None:
            return self._records(partition_key(topic, partition), replica)
        keys = self.keys(topic)
        if not keys:
            raise self.no_such_topic(topic)
        if replica is not None:
            keys = [key for key in keys if replica in self.partition(*key).replicas]
            if not keys:
                raise NotThereYet(f"broker {replica} holds no replica of {topic!r}")
        return [record for key in keys for record in self._records(key, replica)]

    def _records(self, key: TopicPartition, replica: int | None) -> list[ConsumerRecord]:
        return [
            ConsumerRecord(key.topic, key.partition, *record)
            for batch in self.batches(key, replica)
            if not batch.is_control
            for record in batch.records()
        ]

    def batches(self, key: TopicPartition, replica: int | None = None) -> list[RecordBatch]:
        """Return all batches that a replica holds, the leader's by default."""
        return self.read_log(key, replica, lambda log: list(log.batches()))

    def read_log(self, key: TopicPartition, replica: int | None, read: Callable[[Log], T]) -> T:
        """Return the result of ``read`` for a replica's log, the leader's by default;
        ``NotThereYet`` if there is no such log."""
        broker_id = replica if replica is not None else self.partition(*key).leader
        if broker_id is None:
            raise NotThereYet(f"{key} has no leader; name a replica")
        broker = self._running.broker_process(broker_id).broker
        if broker is None:
            raise NotThereYet(f"broker {broker_id} is not running")
        find = broker.replica_manager.hosted.partition

        def read_hosted_log() -> T:
            hosted = find(key)
            if hosted is None or hosted.log is None:
                raise NotThereYet(f"broker {broker_id} holds no replica of {key}")
            return read(hosted.log)

        return self._running.in_process(broker.process, read_hosted_log)

    def keys(self, topic: str) -> list[TopicPartition]:
        """Return all partitions of a topic that the living brokers know."""
        first = partition_key(topic, 0)
        return [
            TopicPartition(topic, number) for number in range(self.partition_count(first.topic))
        ]

    def log_bytes(self, topic: str, partition: int, replica: int, from_offset: int = 0) -> bytes:
        """Return a replica's log as stored, from the batch with ``from_offset`` on, to compare
        replicas."""
        batches = self.batches(partition_key(topic, partition), replica)
        return b"".join(batch.data for batch in batches if batch.last_offset >= from_offset)

    def no_such_partition(self, where: TopicPartition) -> NotThereYet:
        """Return the error for a partition that no broker knows."""
        count = self.partition_count(where.topic)
        if not count:
            return self._unknown(where.topic, str(where), f"partition {where}")
        return NotThereYet(
            f"there is no partition {where}; {where.topic!r} has {count}, numbered from 0"
        )

    def no_such_topic(self, topic: str) -> NotThereYet:
        """Return the error for a topic that no broker knows."""
        return self._unknown(topic, f"topic {topic!r}", f"topic {topic!r}")

    def _unknown(self, topic: str, name: str, missing: str) -> NotThereYet:
        if not any(process.is_alive for process in self._running.processes.values()):
            return NotThereYet(f"no broker is running, so {name} is unknown; start one")
        topics = self.topics()
        hint = did_you_mean(topic, topics)
        return NotThereYet(f"there is no {missing}; topics are {topics}{hint}")

    def newest_metadata(self, where: TopicPartition) -> UpdateMetadataPartitionState | None:
        """Return the partition's state of the highest leader epoch that a living broker knows."""
        newest = None
        for broker in self._running.living_brokers():
            state = broker.metadata_cache.partition_state(where)
            if state is not None and (newest is None or state.leader_epoch > newest.leader_epoch):
                newest = state
        return newest


def partition_key(topic: Any, partition: Any) -> TopicPartition:
    """Return the key of a partition that a user named; ``UsageError`` for a wrong type."""
    number = arguments.integer("partition", partition, 0)
    return TopicPartition(arguments.text("topic", topic), number)


def _controller_facts(controller: Any, key: TopicPartition) -> Any:
    context = controller.context
    assignment = context.topics.partition_full_replica_assignment(key)
    if not assignment.replicas:
        return None
    states = {
        broker_id: _state_name(
            context.states.replica_state(PartitionReplica(key.topic, key.partition, broker_id))
        )
        for broker_id in assignment.replicas
    }
    return (
        assignment,
        context.topics.partition_leadership_info(key),
        _state_name(context.states.partition_state(key)),
        states,
    )


def _metadata_facts(state: UpdateMetadataPartitionState | None) -> Any:
    if state is None:
        return None
    leadership = LeaderIsrAndControllerEpoch(
        LeaderAndIsr(state.leader, state.leader_epoch, state.isr, state.zk_version),
        state.controller_epoch,
    )
    return ReplicaAssignment(state.replicas), leadership, "", {}


def _state_name(state: Any) -> str:
    return str(state)
