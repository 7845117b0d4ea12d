"""The log of one replica: what a leader and a follower append and what everybody reads.

Batches are opaque: a leader patches offset and epoch into the header of what the client sent, all
replicas keep the same bytes, readers get them whole (data_plane 3.5, 6.2, 12.3; Kafka's ``Log``).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from crc32c import crc32c

from ..protocol import compression as codecs
from ..protocol.config import LONG_MAX, TopicConfig
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
    RecordBatch,
    add_sequence,
)
from ..protocol.values import TopicPartition
from ..protocol.versions import Behaviour
from ..protocol.versions import behaviour as behaviour_of
from .log_reads import LogReads
from .log_results import (
    NOTHING_APPENDED,
    AppendInfo,
    OffsetsOutOfOrder,
    UnexpectedAppendOffset,
)
from .log_settings import LogSettings
from .log_storage import LogDirectory, LogStorage
from .log_validator import (
    ORIGIN_CLIENT,
    ValidationContext,
    is_record_count_plausible,
    validate,
)
from .segment import RELATIVE_OFFSET_MAX, Segment

_REPLICATED = struct.Struct(">12xi5xh12xqqhi")
"""Of a batch header: leader epoch, attributes, maximum timestamp, producer id, producer epoch,
base sequence."""
_ZSTD = codecs.ZSTD
_PLAIN_ATTRIBUTES = CODEC_MASK | TRANSACTIONAL_BIT


class Log(LogReads):
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
        (
            base_offset,
            length,
            _,
            magic,
            crc,
            attributes,
            last_delta,
            _,
            _,
            producer_id,
            _,
            base_sequence,
            count,
        ) = fields
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
            or codec >= _ZSTD
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
        attributes = fields[5]
        is_transactional = attributes & TRANSACTIONAL_BIT != 0
        producer_id = fields[9]
        producers = self.producers
        if producer_id >= 0 and (
            producers is None
            or attributes & CONTROL_BIT
            or origin != ORIGIN_CLIENT
            or not producers.is_next(producer_id, fields[10], fields[11], is_transactional)
        ):
            known = self._check_producer(records, fields, origin)
            if known is not None:
                return known
        offset = self.log_end_offset
        last_offset = offset + fields[6]
        max_timestamp = fields[8]
        if self.latest_epoch != leader_epoch and leader_epoch >= 0:
            self.assign_epoch_start_offset(leader_epoch, offset)
        batch = RecordBatch(
            PREFIX.pack(offset, length, leader_epoch) + memoryview(records)[16:],
            offset,
            last_offset,
        )
        segment = self._store(batch, max_timestamp, now_ms)
        if producer_id >= 0:
            if attributes & CONTROL_BIT:
                self._note_producer(batch, segment)
            else:
                if producers is None:
                    producers = self._producer_state()
                producers.append_data_batch(
                    producer_id,
                    fields[10],
                    fields[11],
                    offset,
                    last_offset,
                    max_timestamp,
                    is_transactional,
                )
        if self.settings.flush_messages != LONG_MAX:
            self._flush_if_due()
        return AppendInfo(offset, last_offset, max_timestamp, log_append_time_ms, (batch,))

    def _store(self, batch: RecordBatch, max_timestamp: int, now_ms: int) -> Segment:
        """Put a batch behind the last, in a new segment if one is due; gives its segment."""
        segment = self.active
        settings = self.settings
        size = len(batch.data)
        last_offset = batch.last_offset
        if (
            segment.size + size > settings.segment_bytes
            or (first_timestamp := segment.first_timestamp) < 0
            or max_timestamp - first_timestamp > settings.segment_ms_least
            or segment.index_entries >= settings.index_entries_max
            or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
        ) and self._needs_roll(size, max_timestamp, last_offset, now_ms):
            segment = self.roll(now_ms)
        indexed = segment.append(batch, max_timestamp, now_ms, settings.index_interval_bytes)
        self.log_end_offset = last_offset + 1
        storage = self.storage
        if storage.is_real:
            storage.on_append(segment, batch, indexed)
        return segment

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
        """Append the leader's batches as they are: the same bytes, offsets and epochs.

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
            largest = max(largest, self._append_replicated(batch, now_ms))
        if self.settings.flush_messages != LONG_MAX:
            self._flush_if_due()
        return AppendInfo(
            batches[0].base_offset, batches[-1].last_offset, largest, -1, tuple(batches)
        )

    def append_next(self, batch: RecordBatch, now_ms: int) -> bool:
        """``append_as_follower`` of the one batch that begins at the log's end.

        False, and nothing done, if it is another one.
        """
        offset = self.log_end_offset
        if (
            batch.base_offset != offset
            or batch.last_offset < offset
            or self.storage.directory.is_offline
        ):
            return False
        self._append_replicated(batch, now_ms)
        if self.settings.flush_messages != LONG_MAX:
            self._flush_if_due()
        return True

    def _append_replicated(self, batch: RecordBatch, now_ms: int) -> int:
        """Append a batch as it is; gives its largest timestamp."""
        epoch, attributes, max_timestamp, producer_id, producer_epoch, base_sequence = (
            _REPLICATED.unpack_from(batch.data)
        )
        epochs = self._epochs
        if epoch >= 0 and (epochs is None or not epochs.epochs or epochs.epochs[-1] != epoch):
            self.assign_epoch_start_offset(epoch, batch.base_offset)
        if now_ms < 0:
            now_ms = max_timestamp
        segment = self._store(batch, max_timestamp, now_ms)
        if producer_id >= 0:
            if attributes & CONTROL_BIT:
                self._note_producer(batch, segment)
            else:
                producers = self.producers
                if producers is None:
                    producers = self._producer_state()
                producers.append_data_batch(
                    producer_id,
                    producer_epoch,
                    base_sequence,
                    batch.base_offset,
                    batch.last_offset,
                    max_timestamp,
                    attributes & TRANSACTIONAL_BIT != 0,
                )
        return max_timestamp  # type: ignore[no-any-return]
