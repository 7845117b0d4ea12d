"""What appending to and reading from a log give, and how a follower's append can fail."""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records.batch import RecordBatch
from ...protocol.records.format import NO_TIMESTAMP
from ...protocol.values import TopicPartition


class UnexpectedAppendOffset(KafkaError):
    """A follower was given a batch that begins below its log end."""

    def __init__(self, topic_partition: TopicPartition, batch: RecordBatch, end: int) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"{topic_partition}: offsets {batch.base_offset} to {batch.last_offset} "
            f"cannot follow log end {end}",
        )
        self.first_offset = batch.base_offset
        self.last_offset = batch.last_offset


class OffsetsOutOfOrder(KafkaError):
    """A follower was given batches whose offsets do not increase."""

    def __init__(self, topic_partition: TopicPartition, batches: Sequence[RecordBatch]) -> None:
        offsets = ", ".join(str(batch.base_offset) for batch in batches)
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"{topic_partition}: offsets of fetched batches do not increase: {offsets}",
        )


class AppendInfo:
    """What an append did."""

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
        self.first_offset = first_offset
        """-1 if nothing was appended; of the original if ``duplicate``."""
        self.last_offset = last_offset
        self.max_timestamp = max_timestamp
        self.log_append_time_ms = log_append_time_ms
        """-1 unless the topic goes by append time."""
        self.batches = batches
        self.duplicate = duplicate


class ReadInfo:
    """Batches read, the first of which holds the offset asked for or follows it.

    The last may be a ``PartialBatch``.
    """

    __slots__ = ("batches", "size")

    def __init__(self, batches: tuple[RecordBatch, ...], size: int) -> None:
        self.batches = batches
        self.size = size
        """Bytes of the batches."""


class TimestampOffset:
    """A record found by its time."""

    __slots__ = ("leader_epoch", "offset", "timestamp")

    def __init__(self, timestamp: int, offset: int, leader_epoch: int) -> None:
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


NOTHING_APPENDED = AppendInfo(-1, -1, NO_TIMESTAMP, -1)
NOTHING_READ = ReadInfo((), 0)
