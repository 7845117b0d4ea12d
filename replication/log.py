"""The log of one replica: what a leader and a follower append and what everybody reads.

Batches are opaque: a leader patches offset and epoch into the header of what the client sent, all
replicas keep the same bytes, readers get them whole (data_plane 3.5, 6.2, 12.3; Kafka's ``Log``).
"""

from __future__ import annotations

import struct

from crc32c import crc32c

from ..protocol import compression as codecs
from ..protocol.config import TopicConfig
from ..protocol.errors import ErrorCode, KafkaError
from ..protocol.record_batch import (
    CONTROL_BIT,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    NO_TIMESTAMP,
    PREFIX,
    SEQUENCE_MAX,
    TRANSACTIONAL_BIT,
    Readable,
    RecordBatch,
    add_sequence,
)
from ..protocol.values import TopicPartition
from ..protocol.versions import Behaviour
from ..protocol.versions import behaviour as behaviour_of
from .log_appends import LogAppends
from .log_results import (
    NOTHING_APPENDED,
    AppendInfo,
)
from .log_settings import LogSettings
from .log_storage import LogDirectory, LogStorage
from .log_validator import (
    ORIGIN_CLIENT,
    ValidationContext,
    is_record_count_plausible,
    validate,
)
from .producer_state import BatchMetadata

_ZSTD = codecs.ZSTD
_SMALL = HEADER_SIZE + 65
"""Bytes of a batch below which the size of its only record fits into one byte."""
_LARGE = 4096
"""Bytes from which on a batch is looked at through a view."""
_unpack_plain = struct.Struct(">qi4xbIhi8xqqhii").unpack_from
"""``HEADER`` without leader epoch and base timestamp."""
_pack_prefix = PREFIX.pack
_new_tuple = tuple.__new__


class Log(LogAppends):
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
        else:
            settings = LogSettings(config, behaviour or behaviour_of(config.kafka_version))
        super().__init__(
            topic_partition,
            settings,
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
            info = self._append_plainly(records, leader_epoch, now_ms, origin)
            if info is not None:
                return info
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

    def _append_plainly(
        self, records: Readable, leader_epoch: int, now_ms: int, origin: str
    ) -> AppendInfo | None:
        """Append one batch that passes every check; None, and nothing done, if one fails.

        Whatever fails, or belongs to a transaction, is left to the validator.
        """
        (
            base_offset, length, magic, crc, attributes, last_delta, max_timestamp,
            producer_id, producer_epoch, base_sequence, count,
        ) = _unpack_plain(records)  # fmt: skip
        size = length + LENGTH_OVERHEAD
        settings = self.settings
        # Few bytes are copied sooner than looked at through a view.
        view = records if size < _LARGE else memoryview(records)
        if (
            magic != 2
            or size != len(records)
            or base_offset != 0
            or size > settings.max_message_bytes
            or count <= 0
            or last_delta != count - 1
            or not 0 <= attributes < _ZSTD
            or size > settings.segment_bytes
            or crc32c(view[CRC_START:]) != crc
            or not (
                # One small record that fills its batch, or a closer look.
                (
                    count == 1
                    and not attributes
                    and HEADER_SIZE < size < _SMALL
                    and records[HEADER_SIZE] == size - HEADER_SIZE - 1 << 1
                )
                or _holds_records(records, count, attributes)
            )
        ):
            return None
        entry = noted = None
        if producer_id >= 0:
            producers = self.producers
            if (
                producers is None
                or (entry := producers.entries.get(producer_id)) is None
                or entry.epoch != producer_epoch
                or not entry.batches
                or entry.batches[-1][1] + 1 != base_sequence
                or entry.transaction_first_offset >= 0
                or base_sequence + last_delta > SEQUENCE_MAX
                or origin != ORIGIN_CLIENT
            ):
                return None  # not plainly the producer's next batch
        offset = self.log_end_offset
        last_offset = offset + last_delta
        if self.latest_epoch != leader_epoch and leader_epoch >= 0:
            self.assign_epoch_start_offset(leader_epoch, offset)
        if entry is not None:
            last_sequence = base_sequence + last_delta
            noted = _new_tuple(  # without the call of ``BatchMetadata``: made for every batch
                BatchMetadata, (base_sequence, last_sequence, offset, last_offset, max_timestamp)
            )
        data = _pack_prefix(offset, length, leader_epoch) + view[16:]
        summary = (leader_epoch, max_timestamp, producer_id, producer_epoch, noted)
        batch = RecordBatch(data, offset, last_offset, summary)
        self._store(batch, max_timestamp, now_ms)
        if entry is not None and noted is not None:
            entry.add(noted, max_timestamp)
        if settings.flushes_by_count:
            self._flush_if_due()
        return AppendInfo(offset, last_offset, max_timestamp, NO_TIMESTAMP, (batch,))

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
        if producer_id >= 0:
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
        if self.settings.flushes_by_count:
            self._flush_if_due()
        return AppendInfo(offset, last_offset, max_timestamp, log_append_time_ms, (batch,))

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


def _holds_records(records: Readable, count: int, codec: int) -> bool:
    try:
        return is_record_count_plausible(records, count, codec)
    except codecs.CorruptPayload:
        return False
