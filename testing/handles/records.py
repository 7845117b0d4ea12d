"""``produce`` and ``consume`` of a cluster, without a client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...protocol.awaiting import Cancelled, Disconnected, RequestTimeout
from ...protocol.data import (
    CONSUMER_REPLICA_ID,
    FetchPartition,
    FetchRequest,
    ProducePartition,
    ProduceRequest,
)
from ...protocol.errors import ErrorCode, KafkaError, UsageError
from ...protocol.host import sleep
from ...protocol.names import broker_name
from ...protocol.records.batch import build_batch, whole_batches
from ...protocol.records.format import Record
from ...protocol.values import TopicPartition
from ...protocol.znode_payloads import decode_topic
from .. import arguments
from ..views import ConsumerRecord
from .partitions import Partitions, partition_key
from .zookeeper import ZooKeeperHandle

if TYPE_CHECKING:
    from ..running import RunningCluster

_TIMEOUT_MS = 30000
_RETRY_MS = 20


class RecordClient:
    """Sends requests to the current leader of a partition, and retries as a client does.

    ``EmulatedCluster`` has the same methods for users and documents them.
    """

    def __init__(self, running: RunningCluster) -> None:
        self._running = running
        self._partitions = Partitions(running)

    def produce(
        self,
        topic: str,
        value: bytes | str | Iterable[bytes | str | None] | None,
        key: bytes | str | None,
        partition: int,
        acks: int,
        headers: Iterable[tuple[str, bytes | None]],
    ) -> int:
        where = partition_key(topic, partition)
        arguments.integer("acks", acks)
        values = arguments.record_values(value)
        key = arguments.record_bytes("key", key)
        pairs = arguments.headers(headers)
        wall_ms = self._running.runtime.wall_ms()
        data = build_batch(
            [Record(index, wall_ms, key, item, pairs) for index, item in enumerate(values)]
        )
        request = ProduceRequest(acks, _TIMEOUT_MS, (ProducePartition(where, data),))

        async def ask() -> int:
            response = await self._ask_leader(where, request)
            return int(response.base_offset)

        return self._running.call(ask, _TIMEOUT_MS + 5000)

    def consume(self, topic: str, partition: int, offset: int) -> list[ConsumerRecord]:
        where = partition_key(topic, partition)
        arguments.integer("offset", offset)

        async def read() -> list[ConsumerRecord]:
            position = offset
            found: list[ConsumerRecord] = []
            while True:
                wanted = FetchPartition(where, position, -1, 1 << 30)
                request = FetchRequest(CONSUMER_REPLICA_ID, 0, 0, 1 << 30, (wanted,))
                answer = await self._ask_leader(where, request)
                if not answer.records:
                    return found
                for batch in whole_batches(answer.records):
                    if not batch.is_control:
                        found += [
                            ConsumerRecord(where.topic, where.partition, *record)
                            for record in batch.records()
                            if record.offset >= position
                        ]
                    position = batch.last_offset + 1

        return self._running.call(read, _TIMEOUT_MS + 5000)

    async def _ask_leader(self, where: TopicPartition, request: Any) -> Any:
        admin = self._running.admin
        deadline_ms = admin.now_ms() + _TIMEOUT_MS
        error = ErrorCode.LEADER_NOT_AVAILABLE
        while True:
            leader = self.leader_in_metadata(where)
            if leader is None and not self._may_exist(where):
                raise self._partitions.no_such_partition(where)
            remaining_ms = deadline_ms - admin.now_ms()
            if leader is not None and remaining_ms > 0:
                try:
                    response = await admin.ask(broker_name(leader), request, remaining_ms)
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
        """Return whether a broker or ZooKeeper knows the partition, or ZooKeeper cannot be asked.

        A topic exists as soon as ZooKeeper has its assignment; brokers learn of it later.
        """
        if self._partitions.newest_metadata(where) is not None:
            return True
        zookeeper = ZooKeeperHandle(self._running)
        try:
            if where.topic not in zookeeper.children("/brokers/topics"):
                return False
            data = zookeeper.get(f"/brokers/topics/{where.topic}")
        except UsageError:  # no server runs, or the topic was deleted just now
            return True
        return any(number == where.partition for number, _ in decode_topic(data).assignment)

    def leader_in_metadata(self, where: TopicPartition) -> int | None:
        """Return the leader of the newest epoch that any living broker knows, or None."""
        newest = self._partitions.newest_metadata(where)
        return newest.leader if newest is not None and newest.leader >= 0 else None
