"""Results of appends and reads, and the failures of an append."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records.batch import RecordBatch
from ...protocol.records.format import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP
from ...protocol.values import TopicPartition
from .settings import LogSettings


class UnexpectedAppendOffset(KafkaError):
    """Raised when a follower receives a batch that begins below its log end."""

    def __init__(self, topic_partition: TopicPartition, batch: RecordBatch, end: int) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"{topic_partition}: offsets {batch.base_offset} to {batch.last_offset} "
            f"cannot follow log end {end}",
        )
        self.first_offset: int = batch.base_offset
        self.last_offset: int = batch.last_offset


class OffsetsOutOfOrder(KafkaError):
    """Raised when a follower receives batches whose offsets do not increase."""

    def __init__(self, topic_partition: TopicPartition, batches: Sequence[RecordBatch]) -> None:
        offsets = ", ".join(str(batch.base_offset) for batch in batches)
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"{topic_partition}: offsets of fetched batches do not increase: {offsets}",
        )


class AppendInfo:
    """Result of an append."""

    __slots__ = (
        "batches",
        "duplicate",
        "first_offset",
        "last_offset",
        "log_append_time_ms",
        "max_timestamp",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        log_append_time_ms: int,
        batches: tuple[RecordBatch, ...] = (),
        duplicate: bool = False,
    ) -> None:
        self.first_offset: int = first_offset
        """First offset of the batch, or of the original if ``duplicate``; -1 if none."""
        self.last_offset: int = last_offset
        self.max_timestamp: int = max_timestamp
        self.log_append_time_ms: int = log_append_time_ms
        """Append time in ms, -1 unless the topic uses it; the original's timestamp if
        ``duplicate``."""
        self.batches: tuple[RecordBatch, ...] = batches
        self.duplicate: bool = duplicate


class ReadInfo:
    """Batches read from a log; the first contains the requested offset or follows it.

    The last may be a ``PartialBatch``.
    """

    __slots__ = ("batches", "size")

    def __init__(self, batches: tuple[RecordBatch, ...], size: int) -> None:
        self.batches: tuple[RecordBatch, ...] = batches
        self.size: int = size
        """Size of the batches in bytes."""


class TimestampOffset:
    """A record found by its timestamp."""

    __slots__ = ("leader_epoch", "offset", "timestamp")

    def __init__(self, timestamp: int, offset: int, leader_epoch: int) -> None:
        self.timestamp: int = timestamp
        self.offset: int = offset
        self.leader_epoch: int = leader_epoch


NOTHING_APPENDED = AppendInfo(-1, -1, NO_TIMESTAMP, -1)
NOTHING_READ = ReadInfo((), 0)


class RecordErrors:
    """Checks individual records and collects the errors of refused ones, until 2.4 of the first."""

    __slots__ = ("_any_timestamp", "_found", "_has_all", "_now_ms", "_settings")

    def __init__(self, settings: LogSettings, now_ms: int) -> None:
        self._settings = settings
        self._now_ms = now_ms
        self._has_all = settings.behaviour.all_record_errors
        self._found: list[tuple[int, str]] = []
        self._any_timestamp = False

    def add(self, index: int, reason: str, *, is_timestamp: bool = False) -> None:
        """Refuse a record, unless an earlier one decides the error already."""
        if self._has_all or not self._found:
            self._found.append((index, reason))
            self._any_timestamp |= is_timestamp

    def checker(self, timestamp_type: int) -> Callable[[int, int, bool], None]:
        """Return a function that checks a record by its index, timestamp and whether it has a key.

        ``timestamp_type`` is that of the record.
        """
        settings, now_ms = self._settings, self._now_ms
        difference_max_ms = settings.timestamp_difference_max_ms
        checks_times = settings.timestamp_type == CREATE_TIME
        least, most = now_ms - difference_max_ms, now_ms + difference_max_ms
        needs_key = settings.is_compacted

        def check(index: int, timestamp: int, has_key: bool) -> None:
            if needs_key and not has_key:
                self.add(index, "a record without a key on a compacted topic")
            elif checks_times and not least <= timestamp <= most and timestamp != NO_TIMESTAMP:
                distance = f"more than {difference_max_ms} ms away from {now_ms}"
                self.add(index, f"timestamp {timestamp} is {distance}", is_timestamp=True)
            elif timestamp_type == LOG_APPEND_TIME:
                reason = "a producer may not set the append time"
                self.add(index, reason, is_timestamp=True)

        return check

    def raise_if_any(self) -> None:
        """Raise ``KafkaError`` with the records that were refused (``LogValidator``)."""
        found = self._found
        if not found:
            return
        code = ErrorCode.INVALID_TIMESTAMP if self._any_timestamp else ErrorCode.INVALID_RECORD
        first = found[0][1]
        if not self._has_all:
            raise KafkaError(code, first, ((found[0][0], None),))
        reason = "timestamps are invalid" if self._any_timestamp else "records are invalid"
        message = f"{reason}; {len(found)} records were refused, the first: {first}"
        raise KafkaError(code, message, tuple(found))
