"""Keys and values of ``__transaction_state``
(docs/kafka/transactions.md#the-log), as Kafka writes them."""

from __future__ import annotations

import struct

from ...protocol.errors import ClientError
from ...protocol.internal_topics import TRANSACTIONS_TOPIC
from ...protocol.values import TopicPartition
from .metadata import TransactionMetadata, TransitMetadata
from .states import TransactionState

_VERSION = struct.Struct(">h")
_PRODUCER = struct.Struct(">hqhib")
_COUNT = struct.Struct(">i")
_TIMES = struct.Struct(">qq")


def encode_key(transactional_id: str) -> bytes:
    """Key version 0."""
    return _VERSION.pack(0) + _string(transactional_id)


def encode_value(target: TransitMetadata) -> bytes:
    """Value version 0; without partitions while the transaction is empty."""
    parts = [
        _PRODUCER.pack(
            0, target.producer_id, target.producer_epoch, target.timeout_ms, target.state
        )
    ]
    if target.state is TransactionState.EMPTY:
        parts.append(_COUNT.pack(-1))
    else:
        topics: dict[str, list[int]] = {}
        for topic, number in target.partitions:
            topics.setdefault(topic, []).append(number)
        parts.append(_COUNT.pack(len(topics)))
        for topic, numbers in topics.items():
            parts.append(_string(topic))
            parts.append(struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    parts.append(_TIMES.pack(target.updated_ms, target.start_ms))
    return b"".join(parts)


def decode_key(data: bytes) -> str | None:
    """The transactional id of a record; None for a key of a later version, which is skipped.

    Raises ``ClientError`` for a key that ends too early.
    """
    (version,) = _read(_VERSION, data, 0)
    if version != 0:
        return None
    return _read_string(data, _VERSION.size)[0]


def decode_value(transactional_id: str, data: bytes) -> TransactionMetadata:
    """The state of an id; raises ``ClientError`` for an unknown version or broken bytes."""
    version, producer_id, epoch, timeout_ms, number = _read(_PRODUCER, data, 0)
    if version != 0:
        raise ClientError(f"value version {version} of {TRANSACTIONS_TOPIC} is unknown")
    try:
        state = TransactionState(number)
    except ValueError:
        raise ClientError(f"{number} is no state of a transaction") from None
    at = _PRODUCER.size
    (topic_count,) = _read(_COUNT, data, at)
    at += _COUNT.size
    partitions: list[TopicPartition] = []
    for _ in range(topic_count):
        topic, at = _read_string(data, at)
        (count,) = _read(_COUNT, data, at)
        numbers = _read(struct.Struct(f">{max(count, 0)}i"), data, at + _COUNT.size)
        at += _COUNT.size + 4 * len(numbers)
        partitions += [TopicPartition(topic, number) for number in numbers]
    updated_ms, start_ms = _read(_TIMES, data, at)
    return TransactionMetadata(
        transactional_id, producer_id, epoch, timeout_ms, state, updated_ms, partitions, start_ms
    )


def _string(text: str) -> bytes:
    data = text.encode()
    return _VERSION.pack(len(data)) + data


def _read(layout: struct.Struct, data: bytes, at: int) -> tuple[int, ...]:
    try:
        return layout.unpack_from(data, at)
    except struct.error:
        raise ClientError(f"a record of {len(data)} bytes ends too early, at byte {at}") from None


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _read(_VERSION, data, at)
    end = at + _VERSION.size + length
    if length < 0 or end > len(data):
        raise ClientError(f"a string of {length} bytes does not fit at byte {at}")
    try:
        return data[at + _VERSION.size : end].decode(), end
    except UnicodeDecodeError as error:
        raise ClientError(f"the string at byte {at} is no UTF-8: {error.reason}") from None
