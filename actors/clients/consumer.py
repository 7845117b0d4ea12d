"""A modelled consumer, which continuously fetches its assigned partitions from their leaders."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...protocol.awaiting import Pending
from ...protocol.data import (
    CONSUMER_REPLICA_ID,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartition,
    ListOffsetsRequest,
)
from ...protocol.errors import ErrorCode
from ...protocol.names import broker_name
from ...protocol.records.batch import RecordBatch
from ...protocol.values import TopicPartition, frozen
from ..interfaces import AbstractRuntime, Process
from .client import RETRY_BACKOFF_MS, SimulatedClient, check_numbers, refuse_setting
from .committed_reading import visible_batches

_MINIMUMS = {
    "fetch_max_wait_ms": 0,
    "fetch_min_bytes": 0,
    "fetch_max_bytes": 0,
    "max_partition_fetch_bytes": 0,
    "request_timeout_ms": 0,
}
"""Minimum of each setting."""


@frozen
class ConsumerSettings:
    """Kafka's consumer settings, with the defaults of the 3.x clients."""

    fetch_max_wait_ms: int = 500
    """Maximum time in milliseconds for which a broker waits for ``fetch_min_bytes``."""
    fetch_min_bytes: int = 1
    """Number of bytes for which a broker waits before it answers."""
    fetch_max_bytes: int = 52428800
    """Maximum number of bytes in an answer."""
    max_partition_fetch_bytes: int = 1048576
    """Maximum number of bytes of one partition in an answer."""
    isolation_level: int = READ_UNCOMMITTED
    """0 (read uncommitted) or 1 (read committed)."""
    auto_offset_reset: str = "earliest"
    """Where to read from without a position: ``earliest`` or ``latest``."""
    request_timeout_ms: int = 30000
    """Time in milliseconds for which a request waits for its answer."""
    sends_leader_epoch: bool = True
    """True if fetch requests carry a leader epoch for fencing (KIP-320), as those of Java's
    consumer do since 2.3."""

    def __post_init__(self) -> None:
        """Raise ``UsageError`` for values that no consumer can work with."""
        if self.auto_offset_reset not in ("earliest", "latest"):
            refuse_setting(self, "auto_offset_reset", "'earliest' or 'latest'")
        if self.isolation_level not in (0, 1):
            refuse_setting(self, "isolation_level", "0 (read uncommitted) or 1 (read committed)")
        check_numbers(self, _MINIMUMS)


class SimulatedConsumer(SimulatedClient):
    """Reads its partitions; ``on_batch`` gets every batch once per position passed."""

    def __init__(
        self,
        runtime: AbstractRuntime,
        name: str,
        process: Process,
        bootstrap: tuple[int, ...],
        settings: ConsumerSettings,
    ) -> None:
        super().__init__(runtime, name, process, bootstrap, settings.request_timeout_ms)
        self.settings: ConsumerSettings = settings
        """Settings of the consumer."""
        self.positions: dict[TopicPartition, int] = {}
        """The next offset of each partition; -1 while it is unknown."""
        self.on_batch: Callable[[TopicPartition, RecordBatch, int], object] | None = None
        """Called with (partition, batch, position before it) for every batch; initially None."""
        self.records_read: int = 0
        """Number of records read."""
        # By leader: its partitions and their epochs; None unless all have leader and position.
        # While it is set, every leader in it has a fetch in flight or is backed off from.
        self._plan: dict[int, list[tuple[TopicPartition, int]]] | None = None
        self._resetting: dict[TopicPartition, None] = {}
        self._fetching: dict[int, None] = {}  # leaders with a fetch in flight
        self._not_before_ms: dict[int, int] = {}  # leader -> end of the back-off
        self._position_paths: dict[TopicPartition, str] = {}

    def _report_position(self, topic_partition: TopicPartition, position: int | None) -> None:
        """Report the position in a partition to the recorder, if there is one."""
        if self.state_listener is None:
            return
        path = self._position_paths.get(topic_partition)
        if path is None:
            path = self._position_paths[topic_partition] = f"{topic_partition}/position"
        self.state_listener(path, None, position)

    def assign(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Read partitions, too, from where ``auto_offset_reset`` says."""
        for topic_partition in topic_partitions:
            self._report_position(topic_partition, self.positions.setdefault(topic_partition, -1))
            self.use_topic(topic_partition.topic)
        self.on_metadata()

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read partitions, too, from given positions; -1 for where ``auto_offset_reset`` says."""
        self.positions.update(positions)
        for topic_partition, position in positions.items():
            self._report_position(topic_partition, position)
        self._plan = None
        self._poll()

    def unassign(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Stop reading partitions; answers still under way are dropped."""
        for topic_partition in topic_partitions:
            self.positions.pop(topic_partition, None)
            self._report_position(topic_partition, None)
        self._plan = None

    def on_metadata(self) -> None:
        self._poll()

    def _poll(self) -> None:
        """Send one fetch to every leader that has none in flight."""
        plan: dict[int, list[tuple[TopicPartition, int]]] = {}
        is_complete = True
        for topic_partition, position in self.positions.items():
            leader = self.leaders.get(topic_partition)
            if leader is None:
                self.refresh_metadata()
                is_complete = False
            elif position < 0:
                self._reset(topic_partition, leader[0])
                is_complete = False
            else:
                epoch = leader[1] if self.settings.sends_leader_epoch else -1
                plan.setdefault(leader[0], []).append((topic_partition, epoch))
        self._plan = plan if is_complete else None
        for leader_id, partitions in plan.items():
            if leader_id not in self._fetching and leader_id not in self._not_before_ms:
                self._fetch(leader_id, partitions)

    def _fetch_again(self, leader_id: int) -> None:
        """Fetch again from a leader after its answer; all are polled only if there is no plan."""
        if self._plan is None:
            self._poll()
        else:
            partitions = self._plan.get(leader_id)
            if partitions is not None and leader_id not in self._not_before_ms:
                self._fetch(leader_id, partitions)

    def _fetch(self, leader_id: int, planned: list[tuple[TopicPartition, int]]) -> None:
        self._fetching[leader_id] = None
        settings = self.settings
        positions = self.positions
        max_bytes = settings.max_partition_fetch_bytes
        partitions = []
        for topic_partition, epoch in planned:
            position = positions[topic_partition]
            partitions.append(FetchPartition(topic_partition, position, -1, max_bytes, epoch))
        request = FetchRequest(
            CONSUMER_REPLICA_ID,
            settings.fetch_max_wait_ms,
            settings.fetch_min_bytes,
            settings.fetch_max_bytes,
            tuple(partitions),
            settings.isolation_level,
        )
        self.port.ask_then(
            broker_name(leader_id),
            request,
            settings.request_timeout_ms,
            functools.partial(self._fetched, leader_id),
        )

    def _fetched(self, leader_id: int, outcome: FetchResponse | BaseException) -> None:
        if self.stopped:
            return
        self._fetching.pop(leader_id, None)
        if isinstance(outcome, BaseException):
            if self.state_listener is not None:
                self.record("client_fail", "fetch", f"{outcome}")
            self._back_off(leader_id)
            return
        must_back_off = False
        for partition in outcome.partitions:
            must_back_off |= self._process_partition(partition)
        if must_back_off:
            self._back_off(leader_id)
        else:
            self._fetch_again(leader_id)

    def _process_partition(self, partition: FetchPartitionResponse) -> bool:
        """Advance past the records of an answer; returns True if the leader may have changed."""
        topic_partition = partition.topic_partition
        if topic_partition not in self.positions:
            return False
        if partition.error:
            if self.state_listener is not None:
                text = f"{topic_partition}: {partition.error.name}"
                self.record("client_fail", "fetch", text)
            if partition.error != ErrorCode.OFFSET_OUT_OF_RANGE:
                return True
            self.positions[topic_partition] = -1
            self._report_position(topic_partition, -1)
            self._plan = None
            return False
        position = self.positions.get(topic_partition, -1)
        visible: set[int] | None = None
        for batch in partition.records:
            next_offset = batch.last_offset + 1
            if next_offset <= position or not next_offset:
                continue  # read before, or cut off at the end of the answer
            if batch.summary is None and (batch.is_control or batch.is_transactional):
                if visible is None:
                    is_committed_only = self.settings.isolation_level == READ_COMMITTED
                    visible = {id(found) for found in visible_batches(partition, is_committed_only)}
                if id(batch) not in visible:
                    position = next_offset
                    continue
            if self.on_batch is not None:
                self.on_batch(topic_partition, batch, position)
            self.records_read += min(batch.record_count, next_offset - position)
            position = next_offset
        if position >= 0 and position != self.positions[topic_partition]:
            self.positions[topic_partition] = position
            if self.state_listener is not None:
                self._report_position(topic_partition, position)
        return False

    def _back_off(self, leader_id: int) -> None:
        """Back off from one broker after a failure; fetching from the others goes on."""
        self.refresh_metadata()
        self._not_before_ms[leader_id] = self.now_ms() + RETRY_BACKOFF_MS
        self.call_later_ms(RETRY_BACKOFF_MS, functools.partial(self._end_back_off, leader_id))

    def _end_back_off(self, leader_id: int) -> None:
        if self._not_before_ms.get(leader_id, 0) <= self.now_ms():
            self._not_before_ms.pop(leader_id, None)
            self._poll()

    def _reset(self, topic_partition: TopicPartition, leader_id: int) -> None:
        if topic_partition in self._resetting or leader_id in self._not_before_ms:
            return
        self._resetting[topic_partition] = None
        earliest = self.settings.auto_offset_reset == "earliest"
        timestamp = EARLIEST_TIMESTAMP if earliest else LATEST_TIMESTAMP
        request = ListOffsetsRequest(
            CONSUMER_REPLICA_ID, (ListOffsetsPartition(topic_partition, timestamp),)
        )
        pending = self.ask(broker_name(leader_id), request, self.settings.request_timeout_ms)
        pending.add_done_callback(
            lambda done: self._reset_answered(topic_partition, leader_id, done)
        )

    def _reset_answered(
        self, topic_partition: TopicPartition, leader_id: int, pending: Pending[Any]
    ) -> None:
        if self.stopped:
            return
        self._resetting.pop(topic_partition, None)
        if pending.exception is not None:
            self._back_off(leader_id)
            return
        answer = pending.result().partitions[0]
        if answer.error != ErrorCode.NONE:
            self._back_off(leader_id)
            return
        if self.positions.get(topic_partition) == -1:
            self.positions[topic_partition] = answer.offset
            self._report_position(topic_partition, answer.offset)
        self._poll()
