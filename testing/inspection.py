"""Looking into a cluster: partitions, replicas, records; a quick way in and out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..protocol.awaiting import Cancelled, Disconnected, RequestTimeout
from ..protocol.data import (
    ACKS_ALL,
    CONSUMER_REPLICA_ID,
    FetchPartition,
    FetchRequest,
    ProducePartition,
    ProduceRequest,
)
from ..protocol.errors import ErrorCode, KafkaError, UsageError
from ..protocol.host import sleep
from ..protocol.names import broker_name
from ..protocol.records.batch import Record, build_batch, whole_batches
from ..protocol.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    PartitionReplica,
    ReplicaAssignment,
    TopicPartition,
)
from ..protocol.znode_payloads import decode_topic
from . import arguments
from .checks import partition_count
from .cluster_parts import ClusterParts
from .views import PartitionView, ReplicaView

if TYPE_CHECKING:
    from ..actors.broker.broker import Broker
    from ..protocol.control import UpdateMetadataPartitionState

_TIMEOUT_MS = 30000
_RETRY_MS = 20


class Inspection(ClusterParts):
    """Mixed into ``Cluster`` and ``Simulation``."""

    def topics(self) -> list[str]:
        """Names of all topics as the living brokers know them, sorted."""
        self._require_own_process()
        caches = [p.broker.metadata_cache for p in self.processes.values() if p.broker is not None]
        return sorted({topic for cache in caches for topic in cache.topics()})

    def partition(self, topic: str, partition: int) -> PartitionView:
        """A snapshot of a partition; ``UsageError`` when it does not exist.

        While no controller is active, or a new one still loads, it shows the newest that a
        living broker has heard, and its states are empty.
        """
        key = _partition_key(topic, partition)
        controller = self.controller._active()
        if controller is not None:
            process = self.processes[controller.broker_id].process
            facts = self._in_process(process, lambda: _controller_facts(controller, key))
        else:
            facts = None
        if facts is None or facts[1] is None:  # between two controllers, or the new one still loads
            facts = _metadata_facts(self._newest_metadata(key)) or facts
        if facts is None:
            raise self._no_such(key)
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
        process = self.processes.get(broker_id)
        if process is None:  # of a former cluster, which had more brokers
            return ReplicaView(broker_id, "none", state, -1, -1, -1, -1, ())
        broker = process.broker

        def look() -> ReplicaView:
            log_dir = process.spec.disk.directory_of(key)
            hosted = None if broker is None else broker.replica_manager.partition(key)
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

        return self._in_process(process.process, look)

    def records(self, topic: str, partition: int, replica: int | None = None) -> list[Record]:
        """Decoded records as a replica holds them: the leader's when none is named.

        Control records are left out. ``UsageError`` when that replica is not there.
        """
        key = _partition_key(topic, partition)
        broker_id = replica if replica is not None else self.partition(topic, partition).leader
        if broker_id is None:
            raise UsageError(f"{key} has no leader; name a replica")
        broker = self.processes[self.broker(broker_id).id].broker
        if broker is None:
            raise UsageError(f"broker {broker_id} is not running")
        batches = self._in_process(broker.process, lambda: _stored_batches(broker, key))
        return [record for batch in batches if not batch.is_control for record in batch.records()]

    def log_bytes(self, topic: str, partition: int, replica: int) -> bytes:
        """A replica's whole log as stored, for comparing replicas byte by byte."""
        broker = self.processes[self.broker(replica).id].broker
        if broker is None:
            raise UsageError(f"broker {replica} is not running")
        key = _partition_key(topic, partition)
        batches = self._in_process(broker.process, lambda: _stored_batches(broker, key))
        return b"".join(batch.data for batch in batches)

    # -- in and out without a client -----------------------------------------------------------

    def produce(
        self,
        topic: str,
        value: bytes | str | Iterable[bytes | str | None] | None,
        key: bytes | str | None = None,
        partition: int = 0,
        acks: int = ACKS_ALL,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> int:
        """Append one record, or several given as a list; gives the first offset.

        Waits and retries as a client does while the partition has no leader; ``UsageError`` when
        it does not exist: nothing is created by producing to it here.
        """
        where = _partition_key(topic, partition)
        arguments.integer("acks", acks)
        values = arguments.record_values(value)
        key = arguments.record_bytes("key", key)
        pairs = arguments.headers(headers)
        now_ms = self.runtime.now_ms()
        data = build_batch(
            [Record(index, now_ms, key, item, pairs) for index, item in enumerate(values)]
        )
        request = ProduceRequest(acks, _TIMEOUT_MS, (ProducePartition(where, data),))

        async def ask() -> int:
            response = await self._ask_leader(where, request)
            return int(response.base_offset)

        return self.call(ask, _TIMEOUT_MS + 5000)

    def consume(self, topic: str, partition: int = 0, offset: int = 0) -> list[Record]:
        """Records from ``offset`` to the high watermark, as a consumer sees them now.

        ``UsageError`` when the partition does not exist.
        """
        where = _partition_key(topic, partition)
        arguments.integer("offset", offset)

        async def read() -> list[Record]:
            position = offset
            found: list[Record] = []
            while True:
                wanted = FetchPartition(where, position, -1, 1 << 30)
                request = FetchRequest(CONSUMER_REPLICA_ID, 0, 0, 1 << 30, (wanted,))
                answer = await self._ask_leader(where, request)
                if not answer.records:
                    return found
                for batch in whole_batches(answer.records):
                    if not batch.is_control:
                        found += [r for r in batch.records() if r.offset >= position]
                    position = batch.last_offset + 1

        return self.call(read, _TIMEOUT_MS + 5000)

    async def _ask_leader(self, where: TopicPartition, request: Any) -> Any:
        admin = self._admin
        deadline_ms = admin.now_ms() + _TIMEOUT_MS
        error = ErrorCode.LEADER_NOT_AVAILABLE
        while True:
            leader = self._leader_in_metadata(where)
            if leader is None and not self._may_exist(where):
                raise self._no_such(where)
            left_ms = deadline_ms - admin.now_ms()
            if leader is not None and left_ms > 0:
                try:
                    response = await admin.ask(broker_name(leader), request, left_ms)
                    error = response.partitions[0].error
                    if error == ErrorCode.NONE:
                        return response.partitions[0]
                    if not error.is_retriable:
                        raise KafkaError(error, f"{type(request).__name__} for {where}")
                except Cancelled:
                    raise
                except (Disconnected, RequestTimeout):
                    error = ErrorCode.NETWORK_EXCEPTION
            if admin.now_ms() >= deadline_ms:
                raise KafkaError(error, f"{type(request).__name__} for {where}")
            await sleep(admin, _RETRY_MS)

    def _may_exist(self, where: TopicPartition) -> bool:
        """Whether a broker or ZooKeeper knows of the partition, or nobody can tell.

        A topic is there from the moment ZooKeeper has its assignment; brokers hear of it later.
        """
        if self._newest_metadata(where) is not None:
            return True
        try:
            if where.topic not in self.zookeeper.children("/brokers/topics"):
                return False
            data = self.zookeeper.get(f"/brokers/topics/{where.topic}")
        except UsageError:  # no server runs, or the topic went at this moment
            return True
        return any(number == where.partition for number, _ in decode_topic(data).assignment)

    def _no_such(self, where: TopicPartition) -> UsageError:
        if not any(process.is_alive for process in self.processes.values()):
            return UsageError(f"nobody can tell of {where}: no broker is running")
        topics = self.topics()
        if where.topic in topics:
            count = partition_count(self, where.topic)
            return UsageError(
                f"there is no partition {where}; {where.topic!r} has {count}, numbered from 0"
            )
        hint = arguments.did_you_mean(where.topic, topics)
        return UsageError(f"there is no partition {where}; topics are {topics}{hint}")

    def _leader_in_metadata(self, where: TopicPartition) -> int | None:
        """The leader with the newest epoch any living broker has heard of."""
        newest = self._newest_metadata(where)
        return newest.leader if newest is not None and newest.leader >= 0 else None

    def _newest_metadata(self, where: TopicPartition) -> UpdateMetadataPartitionState | None:
        newest = None
        for process in self.processes.values():
            broker = process.broker
            state = None if broker is None else broker.metadata_cache.partition_state(where)
            if state is not None and (newest is None or state.leader_epoch > newest.leader_epoch):
                newest = state
        return newest


def _partition_key(topic: Any, partition: Any) -> TopicPartition:
    """A partition that a user named."""
    number = arguments.integer("partition", partition, 0)
    return TopicPartition(arguments.text("topic", topic), number)


def _controller_facts(controller: Any, key: TopicPartition) -> Any:
    context = controller.context
    assignment = context.partition_full_replica_assignment(key)
    if not assignment.replicas:
        return None
    states = {
        broker_id: _state_name(
            context.replica_state(PartitionReplica(key.topic, key.partition, broker_id))
        )
        for broker_id in assignment.replicas
    }
    return (
        assignment,
        context.partition_leadership_info(key),
        _state_name(context.partition_state(key)),
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


def _stored_batches(broker: Broker, key: TopicPartition) -> list[Any]:
    hosted = broker.replica_manager.partition(key)
    log = None if hosted is None else hosted.log
    if log is None:
        raise UsageError(f"broker {broker.broker_id} holds no replica of {key}")
    return list(log.batches())
