"""The log of one replica: what a leader and a follower append and what everybody reads.

Batches are opaque: a leader patches offset and epoch into the header of what the client sent, all
replicas keep the same object, readers get it whole (data_plane 3.5, 6.2, 12.3; Kafka's ``Log``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..protocol import compression as codecs
from ..protocol.config import LONG_MAX, TopicConfig
from ..protocol.data import MAX_TIMESTAMP, AbortedTransaction
from ..protocol.errors import ErrorCode, KafkaError
from ..protocol.record_batch import (
    CODEC_MASK,
    CONTROL_BIT,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    NO_TIMESTAMP,
    PREFIX,
    TRANSACTIONAL_BIT,
    Readable,
    Record,
    RecordBatch,
    add_sequence,
    crc32c,
)
from ..protocol.values import TopicPartition
from ..protocol.versions import Behaviour
from ..protocol.versions import behaviour as behaviour_of
from .log_segments import LogSegments
from .log_settings import LogSettings
from .log_storage import LogDirectory, LogStorage
from .log_validator import (
    ORIGIN_CLIENT,
    ValidationContext,
    is_record_count_plausible,
    validate,
)
from .segment import Segment

_PLAIN_ATTRIBUTES = CODEC_MASK | TRANSACTIONAL_BIT


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
    """Whole batches read, the first of which holds the offset asked for or follows it."""

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


class Log(LogSegments):
    """The log of one replica. Raises ``KafkaError`` KAFKA_STORAGE_ERROR once its directory failed.

    An instance belongs to one broker process; its ``storage`` outlives it.
    """

    __slots__ = ()

    def __init__(
        self,
        topic_partition: TopicPartition,
        config: TopicConfig | LogSettings,
        behaviour: Behaviour | None = None,
        storage: LogStorage | None = None,
        log_start_offset: int = 0,
    ) -> None:
        if isinstance(config, LogSettings):
            settings = config
            behaviour = behaviour or behaviour_of(config.config.kafka_version)
        else:
            behaviour = behaviour or behaviour_of(config.kafka_version)
            settings = LogSettings(config, behaviour)
        super().__init__(
            topic_partition,
            settings,
            behaviour,
            storage or LogStorage(LogDirectory("memory")),
            log_start_offset,
        )

    # -- appending as leader ------------------------------------------------------------------

    def append_as_leader(
        self,
        records: Readable | None,
        leader_epoch: int,
        now_ms: int,
        origin: str = ORIGIN_CLIENT,
        api_version: int | None = None,
    ) -> AppendInfo:
        """Validate what a client (or a coordinator of this broker) sends and append it.

        ``api_version`` is that of the Produce request; None for what never was one. Raises
        ``KafkaError`` with the codes of data_plane 12.3 and 13.1; nothing is appended then.

        A single v2 batch on a topic that stores batches as they come takes the short way: header
        and checksum are checked, records are not decoded (a compressed body is decompressed, the
        header's maximum timestamp is believed).
        """
        if self.storage.directory.is_offline:
            self.storage.directory.check()
        if not records:
            records = b""
        elif self.settings.is_plain and len(records) >= HEADER_SIZE:
            fields = HEADER.unpack_from(records)
            if self._takes_short_way(records, fields, origin, api_version):
                return self._append_patched(
                    records, fields, leader_epoch, now_ms, origin, NO_TIMESTAMP
                )
        validated = validate(
            records,
            ValidationContext(self.settings, self.behaviour, now_ms, origin, api_version),
        )
        if validated is None:
            return NOTHING_APPENDED
        data = validated.data
        epoch = leader_epoch if self.settings.record_version == 2 else -1
        return self._append_patched(
            data, HEADER.unpack_from(data), epoch, now_ms, origin, validated.log_append_time_ms
        )

    def _takes_short_way(
        self,
        records: Readable,
        fields: tuple[int, ...],
        origin: str,
        api_version: int | None,
    ) -> bool:
        """Whether one plain batch passes every check; whatever fails is left to the validator."""
        base_offset, length, _, magic, crc, attributes, last_delta = fields[:7]
        producer_id, _, base_sequence, count = fields[9:]
        size = length + LENGTH_OVERHEAD
        codec = attributes & CODEC_MASK
        if (
            magic != 2
            or size != len(records)
            or base_offset != 0
            or size > self.settings.max_message_bytes
            or count <= 0
            or last_delta != count - 1
            or attributes & ~_PLAIN_ATTRIBUTES
            or (producer_id >= 0 and base_sequence < 0 and origin == ORIGIN_CLIENT)
            or codec >= codecs.ZSTD
            or crc32c(memoryview(records)[CRC_START:]) != crc
        ):
            return False
        try:
            return is_record_count_plausible(records, count, codec)
        except codecs.CorruptPayload:
            return False

    def _append_patched(
        self,
        records: Readable,
        fields: tuple[int, ...],
        leader_epoch: int,
        now_ms: int,
        origin: str,
        log_append_time_ms: int,
    ) -> AppendInfo:
        """Give a valid batch its offset and epoch and append it, unless it is a duplicate."""
        length = fields[1]
        size = length + LENGTH_OVERHEAD
        if size > self.settings.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes exceed segment.bytes, which is {self.settings.segment_bytes}",
            )
        producer_id = fields[9]
        if producer_id >= 0:
            known = self._check_producer(records, fields, origin)
            if known is not None:
                return known
        offset = self.log_end_offset
        last_offset = offset + fields[6]
        max_timestamp = fields[8]
        if self._needs_roll(size, max_timestamp, last_offset, now_ms):
            self.roll(now_ms)
        if self.latest_epoch != leader_epoch and leader_epoch >= 0:
            self.assign_epoch_start_offset(leader_epoch, offset)
        batch = RecordBatch(
            PREFIX.pack(offset, length, leader_epoch) + memoryview(records)[16:],
            offset,
            last_offset,
        )
        segment = self.active
        self._store(segment, batch, max_timestamp, now_ms)
        if producer_id >= 0:
            self._note_producer(batch, segment)
        if self.settings.flush_messages != LONG_MAX:
            self._flush_if_due()
        return AppendInfo(offset, last_offset, max_timestamp, log_append_time_ms, (batch,))

    def _store(self, segment: Segment, batch: RecordBatch, max_timestamp: int, now_ms: int) -> None:
        storage = self.storage
        indexed = segment.append(batch, max_timestamp, now_ms, self.settings.index_interval_bytes)
        self.log_end_offset = batch.last_offset + 1
        if storage.is_real:
            storage.on_append(segment, batch, indexed)

    def _flush_if_due(self) -> None:
        if self.log_end_offset - self.recovery_point >= self.settings.flush_messages:
            self.flush()

    def _check_producer(
        self, records: Readable, fields: tuple[int, ...], origin: str
    ) -> AppendInfo | None:
        """Check sequence and epoch; the answer to a duplicate, which is not appended again."""
        attributes, last_delta = fields[5:7]
        producer_id, epoch, base_sequence = fields[9:12]
        producers = self.producers
        if attributes & CONTROL_BIT:
            if producers is not None:
                marker = RecordBatch.of(bytes(records)).control_marker()
                if marker is not None:
                    producers.check_marker(producer_id, epoch, marker)
            return None
        is_client = origin == ORIGIN_CLIENT
        refuse_unknown = self.behaviour.unknown_producer_id_refused
        if producers is None:
            if refuse_unknown and is_client and base_sequence != 0:
                raise KafkaError(
                    ErrorCode.UNKNOWN_PRODUCER_ID,
                    f"sequence {base_sequence} of producer {producer_id}, unknown here",
                )
            return None
        last_sequence = base_sequence
        if base_sequence >= 0:
            last_sequence = add_sequence(base_sequence, last_delta)
        duplicate = producers.check_data_batch(
            producer_id,
            epoch,
            base_sequence,
            last_sequence,
            bool(attributes & TRANSACTIONAL_BIT),
            is_client,
            refuse_unknown,
        )
        if duplicate is None:
            return None
        return AppendInfo(
            duplicate.first_offset,
            duplicate.last_offset,
            duplicate.timestamp,
            duplicate.timestamp,
            duplicate=True,
        )

    # -- appending as follower ----------------------------------------------------------------

    def append_as_follower(
        self, batches: Sequence[RecordBatch], now_ms: int = -1, verify: bool = False
    ) -> AppendInfo:
        """Append the leader's batches as they are: the same objects, offsets and epochs.

        ``verify`` checks their checksums, which a leader in this process has done already. Raises
        ``UnexpectedAppendOffset``, ``OffsetsOutOfOrder`` or ``KafkaError`` CORRUPT_MESSAGE before
        anything is appended.
        """
        if self.storage.directory.is_offline:
            self.storage.directory.check()
        if not batches:
            return NOTHING_APPENDED
        expected = self.log_end_offset
        if batches[0].base_offset < expected:
            raise UnexpectedAppendOffset(self.topic_partition, batches[0], expected)
        for batch in batches:
            if batch.base_offset < expected or batch.last_offset < batch.base_offset:
                raise OffsetsOutOfOrder(self.topic_partition, batches)
            expected = batch.last_offset + 1
            if verify and not batch.is_intact():
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"{self.topic_partition}: the batch at {batch.base_offset} is damaged",
                )
        largest = NO_TIMESTAMP
        for batch in batches:
            max_timestamp = batch.max_timestamp
            if max_timestamp > largest:
                largest = max_timestamp
            self._append_replicated(batch, max_timestamp, now_ms)
        if self.settings.flush_messages != LONG_MAX:
            self._flush_if_due()
        return AppendInfo(
            batches[0].base_offset, batches[-1].last_offset, largest, -1, tuple(batches)
        )

    def _append_replicated(self, batch: RecordBatch, max_timestamp: int, now_ms: int) -> None:
        epoch = batch.partition_leader_epoch
        if epoch >= 0 and epoch != self.latest_epoch:
            self.assign_epoch_start_offset(epoch, batch.base_offset)
        when = now_ms if now_ms >= 0 else max_timestamp
        if self._needs_roll(len(batch.data), max_timestamp, batch.last_offset, when):
            self.roll(when)
        if not self.active.size and batch.base_offset > self.active.base_offset:
            # The first batch may begin later: compaction left a gap before it.
            self.log_end_offset = max(self.log_end_offset, self.active.base_offset)
        segment = self.active
        self._store(segment, batch, max_timestamp, when)
        if batch.data[43] < 0x80:  # the sign bit of the producer id
            self._note_producer(batch, segment)

    # -- reading ------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        upper_bound_offset: int,
        minimum_one_batch: bool = True,
    ) -> ReadInfo:
        """Whole batches from the one that holds ``offset`` on, out of one segment.

        They end below ``upper_bound_offset`` and within ``max_bytes``, except that with
        ``minimum_one_batch`` the first may be larger. Raises ``KafkaError`` OFFSET_OUT_OF_RANGE
        below the log start and above the log end (data_plane 6.2).
        """
        if self.storage.directory.is_offline:
            self.storage.directory.check()
        if offset > self.log_end_offset or offset < self.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition} holds {self.log_start_offset} to "
                f"{self.log_end_offset}, not {offset}",
            )
        if offset >= upper_bound_offset or offset == self.log_end_offset:
            return NOTHING_READ
        segments = self.segments
        for index in range(self._segment_index(offset), len(segments)):
            segment = segments[index]
            position = segment.find(offset)
            batches = segment.batches
            if position < len(batches):
                break
        else:
            return NOTHING_READ
        first = batches[position]
        size = len(first.data)
        if first.last_offset >= upper_bound_offset or (size > max_bytes and not minimum_one_batch):
            return NOTHING_READ
        end = position + 1
        for end in range(position + 1, len(batches)):
            batch = batches[end]
            larger = size + len(batch.data)
            if larger > max_bytes or batch.last_offset >= upper_bound_offset:
                break
            size = larger
        else:
            end = len(batches)
        return ReadInfo(tuple(batches[position:end]), size)

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions that touch offsets ``start`` up to ``end`` (data_plane 13.3)."""
        found: list[AbortedTransaction] = []
        if self.producers is None:
            return found
        for segment in self.segments[self._segment_index(start) :]:
            for entry in segment.aborted or ():
                if entry.last_offset >= start and entry.first_offset < end:
                    found.append(AbortedTransaction(entry.producer_id, entry.first_offset))
                if entry.last_stable_offset >= end:
                    return found
        return found

    # -- looking up by time -------------------------------------------------------------------

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at or after a time (or of ``MAX_TIMESTAMP``), from the log start on.

        Only the first segment that reaches the time is searched. Raises ``KafkaError``
        UNSUPPORTED_FOR_MESSAGE_FORMAT for a topic whose messages carry no time.
        """
        if self.settings.record_version < 1:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
                f"the message format of {self.topic_partition} has no timestamps",
            )
        if timestamp == MAX_TIMESTAMP:
            return self.max_timestamp_offset()
        for segment in self.segments:
            if segment.max_timestamp >= timestamp and segment.batches:
                position = segment.first_batch_with_time(timestamp)
                return self._find_time(segment.batches[position:], timestamp)
        return None

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the greatest timestamp; None in an empty log."""
        largest = max(segment.max_timestamp for segment in self.segments)
        for segment in self.segments:
            if segment.batches and segment.max_timestamp == largest:
                batches = segment.batches[segment.max_timestamp_batch :]
                return self._find_time(batches, largest)
        return None

    def _find_time(self, batches: Iterable[RecordBatch], timestamp: int) -> TimestampOffset | None:
        start = self.log_start_offset
        for batch in batches:
            if batch.max_timestamp < timestamp or batch.last_offset < start:
                continue
            for record in batch.records():
                if record.timestamp >= timestamp and record.offset >= start:
                    return TimestampOffset(
                        record.timestamp, record.offset, batch.partition_leader_epoch
                    )
        return None

    def legacy_fetch_offsets_before(self, timestamp: int, offsets_max: int) -> list[int]:
        """ListOffsets v0: starts of segments last written by ``timestamp``, newest first.

        -1 begins with the log end, -2 with the oldest segment.
        """
        starts = [
            (max(segment.base_offset, self.log_start_offset), segment.last_modified_ms)
            for segment in self.segments
        ]
        if self.active.size:
            starts.append((self.log_end_offset, LONG_MAX))
        if timestamp == -1:
            candidates = starts
        elif timestamp == -2:
            candidates = starts[:1]
        else:
            candidates = starts
            while candidates and candidates[-1][1] > timestamp:
                candidates = candidates[:-1]
        return [offset for offset, _ in reversed(candidates)][:offsets_max]

    def records(self) -> list[Record]:
        """Every record from the log start on, markers included; for tests and views."""
        return [
            record
            for batch in self.batches(self.log_start_offset)
            for record in batch.records()
            if record.offset >= self.log_start_offset
        ]
