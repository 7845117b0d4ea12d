"""A bound on the memory of records, above which the oldest of the largest partitions go first."""

from __future__ import annotations

import functools
import heapq
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..protocol.errors import FakeKafkaError, KafkaError, UsageError
from ..replication.log.segments import split_segments

if TYPE_CHECKING:
    from ..actors.broker.broker import Broker
    from ..protocol.values import TopicPartition
    from ..replication.log.log import Log
    from .running import RunningCluster

T = TypeVar("T")

LEAST_BYTES = 1 << 20
_INTERVAL_S = 0.1
_SOON_S = 0.02
"""Interval in seconds between checks after one that deleted records."""
_SHARE_OF_TIME = 0.05
"""Maximum share of the cluster's time that checks take, however many partitions there are."""
_SEGMENTS = 64
"""The bound divided by this is the size above which a segment is rolled, and split if it is in
memory, as only whole segments are deleted."""
_BATCH_BYTES = 100
"""Memory in bytes that a batch takes in addition to its data, which all replicas share."""
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def bytes_of(name: str, value: Any) -> int:
    """Return a number of bytes, given as a number or as a text such as ``512M`` (powers of 1024).

    Raises ``UsageError`` for anything else, and for less than a megabyte.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", str(value).strip().upper())
        if found is None or not isinstance(value, str):
            raise UsageError(f"{name} takes bytes, or a text such as 512M or 1G, not {value!r}")
        number = int(float(found[1]) * (1 << _UNITS[found[2]]))
    if number < LEAST_BYTES:
        raise UsageError(f"{name} must be at least 1M, not {value!r}")
    return number


class Deleted(NamedTuple):
    """The result of a check that deleted records."""

    bytes_deleted: int
    kept_bytes: int
    log_starts: dict[TopicPartition, int]
    """New start offsets of the logs whose oldest records were deleted."""


class _LeaderLog(NamedTuple):
    """A log at the broker that leads it."""

    name: TopicPartition
    kept_bytes: int
    deletable: list[tuple[int, int]]
    """Segments that may be deleted, the oldest first: (next segment's base offset, bytes)."""


def _memory_bytes(segment: Any) -> int:
    return int(segment.size) + _BATCH_BYTES * len(segment.stored)


def _leader_logs(broker: Broker, segment_bytes: int) -> list[_LeaderLog]:
    """Return the logs that a broker leads.

    Large active segments of all logs are rolled, whether the broker leads or follows.
    """
    found = []
    for name, partition in broker.replica_manager.hosted.by_name.items():
        log = partition.log
        if log is None or log.storage.directory.is_offline:
            continue
        if _memory_bytes(log.active) > segment_bytes:
            log.roll(broker.wall_ms())
            split_segments(log.storage, segment_bytes, log.settings.index_interval_bytes)
        if partition.is_leader:
            sizes = [_memory_bytes(segment) for segment in log.segments]
            found.append(
                _LeaderLog(
                    name,
                    sum(sizes),
                    _deletable_segments(log, sizes) if _may_delete_records(log) else [],
                )
            )
    return found


def _may_delete_records(log: Log) -> bool:
    """Return whether the oldest records of a log may be deleted; a compacted log keeps all keys."""
    return log.settings.is_deleted and not log.settings.is_compacted


def _deletable_segments(log: Log, sizes: list[int]) -> list[tuple[int, int]]:
    return [
        (following.base_offset, size)
        for size, following in zip(sizes, log.segments[1:], strict=False)
        if following.base_offset <= log.high_watermark
    ]


class MemoryBound:
    """Checks regularly how much memory records take, and deletes the oldest above a bound.

    Like Kafka's retention, it deletes whole segments from the start of a log, up to the high
    watermark at most. Compacted topics, such as the internal topics, lose nothing.
    """

    def __init__(self, running: RunningCluster, bytes_max: int) -> None:
        self._running = running
        self.bytes_max: int = bytes_max
        """Maximum number of bytes that records may take."""
        self.kept_bytes: int = 0
        """Bytes that records took at the last check; replicas of a partition count once."""
        self.deleted_bytes: int = 0
        """Bytes that have been deleted so far."""
        self.on_deleted: Callable[[Deleted], object] | None = None
        """Called with the result of each check that deleted records, in the thread that checks."""
        self._busy_s = 0.0  # the cluster's time that the last check took
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fakekafka-memory", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop checking."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        rest_s = _INTERVAL_S
        while not self._ending.wait(rest_s):
            self._busy_s = 0.0
            try:
                deleted = self.look()
            except FakeKafkaError:  # a log directory has just failed, or the cluster stops
                deleted = None
            if deleted is not None and self.on_deleted is not None:
                self.on_deleted(deleted)
            if deleted is None:
                rest_s = max(_INTERVAL_S, self._busy_s / _SHARE_OF_TIME)
            else:  # memory was above the bound, and more records may be coming
                rest_s = max(_SOON_S, 2 * self._busy_s)

    def _run_in_broker(self, broker: Broker, function: Callable[[], T]) -> T:
        """Run a function as part of a broker, and add up the time it takes there."""

        def run() -> T:
            began_s = time.perf_counter()
            try:
                return function()
            finally:
                self._busy_s += time.perf_counter() - began_s

        return self._running.in_process(broker.process, run)

    def look(self) -> Deleted | None:
        """Check once; return what was deleted, or None if nothing was."""
        running = self._running
        leader_logs: dict[TopicPartition, _LeaderLog] = {}
        for broker in running.living_brokers():
            read = functools.partial(_leader_logs, broker, self.bytes_max // _SEGMENTS)
            leader_logs.update((one.name, one) for one in self._run_in_broker(broker, read))
        self.kept_bytes = sum(one.kept_bytes for one in leader_logs.values())
        starts = self._new_log_starts(leader_logs)
        if not starts:
            return None
        before = {name: leader_logs[name].kept_bytes for name in starts}
        deleted: Counter[TopicPartition] = Counter()
        for broker in running.living_brokers():
            delete = functools.partial(_delete, broker, starts)
            deleted |= self._run_in_broker(broker, delete)
        bytes_deleted = sum(min(deleted[name], before[name]) for name in starts)
        self.kept_bytes -= bytes_deleted
        self.deleted_bytes += bytes_deleted
        return Deleted(bytes_deleted, self.kept_bytes, starts)

    def _new_log_starts(
        self, leader_logs: dict[TopicPartition, _LeaderLog]
    ) -> dict[TopicPartition, int]:
        """Return the new start offsets of logs that bring the memory below the bound."""
        excess = self.kept_bytes - self.bytes_max
        starts: dict[TopicPartition, int] = {}
        largest = [(-one.kept_bytes, name, 0) for name, one in leader_logs.items() if one.deletable]
        heapq.heapify(largest)
        while excess > 0 and largest:
            size, name, number = heapq.heappop(largest)
            end, segment_bytes = leader_logs[name].deletable[number]
            starts[name] = end
            excess -= segment_bytes
            if number + 1 < len(leader_logs[name].deletable):
                heapq.heappush(largest, (size + segment_bytes, name, number + 1))
        return starts


def _delete(broker: Broker, starts: dict[TopicPartition, int]) -> Counter[TopicPartition]:
    """Delete records below these offsets at one broker; return the bytes deleted per partition."""
    deleted_bytes: Counter[TopicPartition] = Counter()
    manager = broker.replica_manager
    for name, offset in starts.items():
        partition = manager.hosted.partition(name)
        if partition is None or partition.log is None:
            continue
        before = sum(map(_memory_bytes, partition.log.segments))
        try:
            manager.upkeep.delete_below(name, partition, offset)
        except KafkaError:  # the log directory went offline
            continue
        deleted_bytes[name] = before - sum(map(_memory_bytes, partition.log.segments))
    return deleted_bytes
