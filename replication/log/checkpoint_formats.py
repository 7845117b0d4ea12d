"""The text formats of Kafka's checkpoint files (docs/kafka/log.md#files).

Line 1 is the version, line 2 the number of entries, then one entry per line.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from ...protocol.errors import FakeKafkaError
from ...protocol.values import TopicPartition

HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
CLEAN_SHUTDOWN_MARKER = ".kafka_cleanshutdown"
CLEAN_SHUTDOWN_WITH_EPOCH = b'{"version":0,"brokerEpoch":-1}'
"""Content of that file since 3.7; it is empty before. A broker with ZooKeeper stores -1
(``CleanShutdownFileHandler``)."""
META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"

_VERSION = "0"


class CorruptCheckpoint(FakeKafkaError, OSError):
    """Raised for an unreadable checkpoint file; as an ``OSError`` it fails the log directory."""


def format_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    """Format offsets as ``topic partition offset`` lines, in the given order."""
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items()]
    return f"{_VERSION}\n{len(lines)}\n{''.join(lines)}"


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Parse the output of ``format_offsets``; an empty file has no entries.

    Raises ``CorruptCheckpoint`` for an unknown version, a malformed line or a wrong count.
    """
    found: dict[TopicPartition, int] = {}
    for line in _entries(text, 3):
        topic, partition, offset = line
        found[TopicPartition(topic, _number(partition))] = _number(offset)
    return found


def format_epochs(epochs: Sequence[int], start_offsets: Sequence[int]) -> str:
    """Format epochs as ``epoch startOffset`` lines."""
    lines = [f"{epoch} {offset}\n" for epoch, offset in zip(epochs, start_offsets, strict=True)]
    return f"{_VERSION}\n{len(lines)}\n{''.join(lines)}"


def parse_epochs(text: str) -> tuple[list[int], list[int]]:
    """Parse epochs and their start offsets. Raises ``CorruptCheckpoint``."""
    epochs, offsets = [], []
    for epoch, offset in _entries(text, 2):
        epochs.append(_number(epoch))
        offsets.append(_number(offset))
    return epochs, offsets


def _entries(text: str, width: int) -> Iterable[list[str]]:
    lines = text.splitlines()
    if not lines:
        return []
    if lines[0].strip() != _VERSION:
        raise CorruptCheckpoint(f"checkpoint of unknown version {lines[0]!r}")
    if len(lines) < 2:
        raise CorruptCheckpoint("checkpoint without a number of entries")
    entries = [line.split() for line in lines[2:] if line.strip()]
    count = _number(lines[1])
    if count != len(entries):
        raise CorruptCheckpoint(f"checkpoint with {len(entries)} entries instead of {count}")
    for entry in entries:
        if len(entry) != width:
            raise CorruptCheckpoint(f"malformed checkpoint line {' '.join(entry)!r}")
    return entries


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise CorruptCheckpoint(f"{text!r} in a checkpoint is not a number") from None


def format_topic_id(topic_id: str) -> str:
    """Return the content of ``partition.metadata``; a topic id of 32 hexadecimal digits, with or
    without dashes, is encoded like Kafka's ``Uuid``."""
    plain = topic_id.replace("-", "")
    if len(plain) == 32:
        with suppress(ValueError):  # an id that is not hexadecimal is kept
            topic_id = base64.urlsafe_b64encode(bytes.fromhex(plain)).decode().rstrip("=")
    return f"version: 0\ntopic_id: {topic_id}\n"


def parse_topic_id(text: str) -> str:
    """Parse the topic id in ``partition.metadata``. Raises ``CorruptCheckpoint``."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields[name.strip()] = value.strip()
    if fields.get("version") != "0" or not fields.get("topic_id"):
        raise CorruptCheckpoint("malformed partition.metadata")
    return fields["topic_id"]


def format_properties(values: Mapping[str, str]) -> str:
    """Format ``meta.properties`` as key=value lines."""
    return "#\n" + "".join(f"{key}={value}\n" for key, value in values.items())


def parse_properties(text: str) -> dict[str, str]:
    """Parse key=value lines, skipping comments and malformed lines."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#") and "=" in line:
            key, value = line.split("=", 1)
            found[key.strip()] = value.strip()
    return found
