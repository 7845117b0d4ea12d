"""Appending of group records to ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig
from ...protocol.data import (
    INTERNAL_CONTEXT,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
)
from ...protocol.internal_topics import OFFSETS_TOPIC
from ...protocol.records.batch import build_batch
from ...protocol.records.format import Record
from ...protocol.values import TopicPartition, assembled
from ...replication.log.validator import ORIGIN_COORDINATOR
from ...replication.log.verification import UNGUARDED, Unguarded, VerificationGuard
from ..partitioning import coordinating_partition

if TYPE_CHECKING:
    from ...protocol.host import Host
    from ...replication.replica_manager import ReplicaManager

ACKS_NONE = 0


@assembled
class OffsetsLog:
    """Appends records to the partitions of the internal topic that this broker leads."""

    host: Host
    config: BrokerConfig
    replica_manager: ReplicaManager

    def partition_for(self, group_id: str) -> int:
        """Return the partition of ``__consumer_offsets`` whose leader coordinates the group."""
        return coordinating_partition(
            OFFSETS_TOPIC, group_id, self.replica_manager.metadata_cache, self.config
        )

    def is_log_hosted(self, group_id: str) -> bool:
        """Return whether the log of the group's partition is on this broker."""
        return self._has_log(self._log_partition(group_id))

    def _has_log(self, partition: TopicPartition) -> bool:
        hosted = self.replica_manager.hosted.partition(partition)
        return hosted is not None and hosted.log is not None

    def _log_partition(self, group_id: str) -> TopicPartition:
        return TopicPartition(OFFSETS_TOPIC, self.partition_for(group_id))

    def append(
        self,
        group_id: str,
        pairs: Sequence[tuple[bytes, bytes | None]],
        done: Callable[[ProducePartitionResponse], object],
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        acks: int | None = None,
        guard: VerificationGuard | Unguarded | None = UNGUARDED,
    ) -> bool:
        """Append one batch to the partition of a group; return False if it has no log here.

        ``done`` is called with the outcome once the batch is replicated or has failed. ``guard`` is
        the guard with which a transaction was verified.
        """
        partition = self._log_partition(group_id)
        if not self._has_log(partition):
            return False
        wall_ms = self.host.wall_ms()
        data = build_batch(
            [Record(index, wall_ms, key, value, ()) for index, (key, value) in enumerate(pairs)],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            is_transactional=producer_id >= 0,
        )
        request = ProduceRequest(
            self.config["offsets.commit.required.acks"] if acks is None else acks,
            self.config["offsets.commit.timeout.ms"],
            (ProducePartition(partition, data),),
        )

        def appended(response: ProduceResponse) -> None:
            done(response.partitions[0])

        append = self.replica_manager.produce.append_records
        if isinstance(guard, Unguarded):
            append(request, INTERNAL_CONTEXT, appended, origin=ORIGIN_COORDINATOR)
        else:
            guards = {} if guard is None else {partition: guard}
            append(request, INTERNAL_CONTEXT, appended, origin=ORIGIN_COORDINATOR, guards=guards)
        return True
