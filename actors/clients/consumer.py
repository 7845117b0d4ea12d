"""A modelled consumer: fetches its assigned partitions from their leaders, for ever."""

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
from ..surroundings import Process, Surroundings
from .client import RETRY_BACKOFF_MS, SimulatedClient, check_numbers, refuse_setting
from .committed_reading import handed_out

_LEAST = {
    "fetch_max_wait_ms": 0,
    "fetch_min_bytes": 0,
    "fetch_max_bytes": 0,
    "max_partition_fetch_bytes": 0,
    "request_timeout_ms": 0,
}
"""The least value of each setting."""


@frozen
class ConsumerSettings:
    """Kafka's consumer settings, with the defaults of the 3.x clients."""

    fetch_max_wait_ms: int = 500
    """How long a broker waits for ``fetch_min_bytes``."""
    fetch_min_bytes: int = 1
    """What a broker waits for before it answers."""
    fetch_max_bytes: int = 52428800
    """What an answer holds at most."""
    max_partition_fetch_bytes: int = 1048576
    """What an answer holds at most of one partition."""
    isolation_level: int = READ_UNCOMMITTED
    """0 (read uncommitted) or 1 (read committed)."""
    auto_offset_reset: str = "earliest"
    """``earliest`` or ``latest``: where to read without a position."""
    request_timeout_ms: int = 30000
    """How long a request waits for its answer."""
    sends_leader_epoch: bool = True
    """Fetch requests carry an epoch for fencing since KIP-320; False with older brokers."""

    def __post_init__(self) -> None:
        """Raise ``UsageError`` for values no consumer can work with."""
        if self.auto_offset_reset not in ("earliest", "latest"):
            refuse_setting(self, "auto_offset_reset", "'earliest' or 'latest'")
        if self.isolation_level not in (0, 1):
            refuse_setting(self, "isolation_level", "0 (read uncommitted) or 1 (read committed)")
        check_numbers(self, _LEAST)


class SimulatedConsumer(SimulatedClient):
    """Reads its partitions; ``on_batch`` sees every batch once per position passed."""

    def __init__(
        self,
        runtime: Surroundings,
        name: str,
        process: Process,
        bootstrap: tuple[int, ...],
        settings: ConsumerSettings,
    ) -> None:
        super().__init__(runtime, name, process, bootstrap, settings.request_timeout_ms)
        self.settings: ConsumerSettings = settings
        """Its settings."""
        self.positions: dict[TopicPartition, int] = {}
        """The next offset of each partition; -1 while it is not known."""
        self.on_batch: Callable[[TopicPartition, RecordBatch, int], object] | None = None
        """A function to call with (partition, batch, position before it) for every batch; None at
        first."""
        self.records_read: int = 0
        """How many records it has read."""
        # By leader: its partitions and their epochs; None unless all have leader and position.
        # While it is known, every leader in it is asked or left alone.
        self._plan: dict[int, list[tuple[TopicPartition, int]]] | None = None
        self._resetting: dict[TopicPartition, None] = {}
        self._fetching: dict[int, None] = {}  # leaders with a fetch in flight
        self._not_before_ms: dict[int, int] = {}  # leaders left alone until then
        self._position_paths: dict[TopicPartition, str] = {}

    def _tell_position(self, topic_partition: TopicPartition, position: int | None) -> None:
        """Report the position in a partition to the recorder, if there is one."""
        if self.state_listener is None:
            return
        path = self._position_paths.get(topic_partition)
        if path is None:
            path = self._position_paths[topic_partition] = f"{topic_partition}/position"
        self.state_listener(path, None, position)

    def assign(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions from where ``auto_offset_reset`` says."""
        for topic_partition in topic_partitions:
            self._tell_position(topic_partition, self.positions.setdefault(topic_partition, -1))
            self.use_topic(topic_partition.topic)
        self.on_metadata()

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, too, from these positions; -1 for where
        ``auto_offset_reset`` says."""
        self.positions.update(positions)
        for topic_partition, position in positions.items():
            self._tell_position(topic_partition, position)
        self._plan = None
        self._poll()

    def unassign(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these; answers that are still on their way are dropped."""
        for topic_partition in topic_partitions:
            self.positions.pop(topic_partition, None)
            self._tell_position(topic_partition, None)
        self._plan = None

    def on_metadata(self) -> None:
        self._poll()

    def _poll(self) -> None:
        """Send one fetch to every leader that has none in flight."""
        plan: dict[int, list[tuple[TopicPartition, int]]] = {}
        is_whole = True
        for topic_partition, position in self.positions.items():
            leader = self.leaders.get(topic_partition)
            if leader is None:
                self.refresh_metadata()
                is_whole = False
            elif position < 0:
                self._reset(topic_partition, leader[0])
                is_whole = False
            else:
                epoch = leader[1] if self.settings.sends_leader_epoch else -1
                plan.setdefault(leader[0], []).append((topic_partition, epoch))
        self._plan = plan if is_whole else None
        for leader_id, partitions in plan.items():
            if leader_id not in self._fetching and leader_id not in self._not_before_ms:
                self._fetch(leader_id, partitions)

    def _poll_again(self, leader_id: int) -> None:
        """``_poll`` after an answer of this leader; if all is well, no other one is asked."""
        if self._plan is None:
            self._poll()
        else:
            partitions = self._plan.get(leader_id)
            if partitions is not None and leader_id not in self._not_before_ms:
                self._fetch(leader_id, partitions)

    def _fetch(self, leader_id: int, wanted: list[tuple[TopicPartition, int]]) -> None:
        self._fetching[leader_id] = None
        settings = self.settings
        positions = self.positions
        max_bytes = settings.max_partition_fetch_bytes
        partitions = []
        for topic_partition, epoch in wanted:
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
        trouble = False
        for partition in outcome.partitions:
            trouble |= self._take(partition)
        if trouble:
            self._back_off(leader_id)
        else:
            self._poll_again(leader_id)

    def _take(self, partition: FetchPartitionResponse) -> bool:
        """Advance over what was read; True when the leader has to be looked up again."""
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
            self._tell_position(topic_partition, -1)
            self._plan = None
            return False
        position = self.positions.get(topic_partition, -1)
        shown: set[int] | None = None
        for batch in partition.records:
            next_offset = batch.last_offset + 1
            if next_offset <= position or not next_offset:
                continue  # read before, or cut off at the end of the answer
            if batch.summary is None and (batch.is_control or batch.is_transactional):
                if shown is None:
                    is_committed_only = self.settings.isolation_level == READ_COMMITTED
                    shown = {id(found) for found in handed_out(partition, is_committed_only)}
                if id(batch) not in shown:
                    position = next_offset
                    continue
            if self.on_batch is not None:
                self.on_batch(topic_partition, batch, position)
            self.records_read += min(batch.record_count, next_offset - position)
            position = next_offset
        if position >= 0 and position != self.positions[topic_partition]:
            self.positions[topic_partition] = position
            if self.state_listener is not None:
                self._tell_position(topic_partition, position)
        return False

    def _back_off(self, leader_id: int) -> None:
        """Leave a broker alone for a while after a failure; fetching from the others goes on."""
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
            self._tell_position(topic_partition, answer.offset)
        self._poll()
