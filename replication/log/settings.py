"""The topic configuration that a log uses, parsed once and shared by the logs of a topic."""

from __future__ import annotations

from ...protocol.config import LONG_MAX, TopicConfig
from ...protocol.records import compression as codecs
from ...protocol.records.format import CREATE_TIME, LOG_APPEND_TIME
from ...protocol.versions import Behaviour

_INDEX_ENTRY_SIZE = 8
_DECOMPRESSED_BYTES_TAKEN = 32 * 1024 * 1024
_MESSAGE_BYTES_USUAL = 1048588
"""Kafka's default of ``max.message.bytes``."""
_RECORD_BYTES_LEAST = 7


class LogSettings:
    """Kafka's ``LogConfig``, as far as a log needs it on every append."""

    __slots__ = (
        "behaviour",
        "checks_records",
        "codec",
        "config",
        "decompressed_bytes_max",
        "delete_retention_ms",
        "file_delete_delay_ms",
        "flush_messages",
        "flush_ms",
        "flushes_by_count",
        "index_entries_max",
        "index_interval_bytes",
        "is_compacted",
        "is_deleted",
        "max_compaction_lag_ms",
        "max_message_bytes",
        "min_cleanable_dirty_ratio",
        "min_compaction_lag_ms",
        "record_version",
        "records_max",
        "retention_bytes",
        "retention_ms",
        "segment_bytes",
        "segment_jitter_ms",
        "segment_ms",
        "segment_ms_least",
        "stores_batches_unchanged",
        "timestamp_difference_max_ms",
        "timestamp_type",
    )

    def __init__(self, config: TopicConfig, behaviour: Behaviour) -> None:
        self.config: TopicConfig = config
        self.behaviour: Behaviour = behaviour
        self.max_message_bytes: int = config["max.message.bytes"]
        self.decompressed_bytes_max: int = max(_DECOMPRESSED_BYTES_TAKEN, self.max_message_bytes)
        """Maximum decompressed size of a client's batch in bytes. Kafka has no limit, as it reads
        the batch as a stream; here the whole batch is in memory."""
        self.records_max: int = (
            max(_MESSAGE_BYTES_USUAL, self.max_message_bytes) // _RECORD_BYTES_LEAST
        )
        """Maximum number of records in a client's batch, and of headers in all its records: as
        many records as fit into an uncompressed batch. Without it, a megabyte could hold millions
        of records, each of which takes a microsecond."""
        self.segment_bytes: int = config["segment.bytes"]
        self.segment_ms: int = config["segment.ms"]
        self.segment_jitter_ms: int = config["segment.jitter.ms"]
        self.segment_ms_least: int = self.segment_ms - min(self.segment_jitter_ms, self.segment_ms)
        """Minimum time in ms until a segment rolls, with the largest jitter."""
        self.index_interval_bytes: int = config["index.interval.bytes"]
        self.index_entries_max: int = config["segment.index.bytes"] // _INDEX_ENTRY_SIZE
        compression: str = config["compression.type"]
        self.codec: int | None = (
            None if compression == "producer" else codecs.CODEC_IDS[compression]
        )
        """Codec in which batches are stored; None keeps the producer's."""
        policy = config["cleanup.policy"]
        self.is_compacted: bool = "compact" in policy
        self.is_deleted: bool = "delete" in policy
        self.timestamp_type = (
            LOG_APPEND_TIME if config["message.timestamp.type"] == "LogAppendTime" else CREATE_TIME
        )
        self.timestamp_difference_max_ms: int = config["message.timestamp.difference.max.ms"]
        self.flush_messages: int = config["flush.messages"]
        self.flushes_by_count: bool = self.flush_messages != LONG_MAX
        self.flush_ms: int = config["flush.ms"]
        self.retention_ms: int = config["retention.ms"]
        self.retention_bytes: int = config["retention.bytes"]
        self.file_delete_delay_ms: int = config["file.delete.delay.ms"]
        self.delete_retention_ms: int = config["delete.retention.ms"]
        self.min_cleanable_dirty_ratio: float = config["min.cleanable.dirty.ratio"]
        self.min_compaction_lag_ms: int = config["min.compaction.lag.ms"]
        self.max_compaction_lag_ms: int = config["max.compaction.lag.ms"]
        self.record_version: int = _record_version(config, behaviour)
        self.checks_records: bool = self.is_compacted or (
            self.timestamp_type == CREATE_TIME and self.timestamp_difference_max_ms < LONG_MAX
        )
        """True if the leader must check the key and timestamp of every record."""
        self.stores_batches_unchanged: bool = (
            self.codec is None
            and self.timestamp_type == CREATE_TIME
            and not self.checks_records
            and self.record_version == 2
        )
        """True if batches are stored as received, except for offset and leader epoch."""


def _record_version(config: TopicConfig, behaviour: Behaviour) -> int:
    """Return the configured message format of the topic; batches are stored as v2 regardless."""
    if not behaviour.message_format_config:
        return 2
    parts = str(config["message.format.version"]).split("-")[0].split(".")
    try:
        release = (int(parts[0]), int(parts[1]))
    except (ValueError, IndexError):
        return 2
    if release < (0, 10):
        return 0
    return 1 if release < (0, 11) else 2
