"""Keys and values of ``__transaction_state``
(docs/kafka/transactions.md#the-log), as Kafka writes them."""

from __future__ import annotations

import struct

from ...protocol.errors import ClientError
from ...protocol.internal_topics import TRANSACTIONS_TOPIC
from ...protocol.values import TopicPartition
from ..record_fields import Cursor, string
from .metadata import TransactionMetadata, TransitMetadata
from .states import TransactionState

_VERSION = struct.Struct(">h")
_PRODUCER = struct.Struct(">hqhib")
_COUNT = struct.Struct(">i")
_TIMES = struct.Struct(">qq")


def encode_key(transactional_id: str) -> bytes:
    """Encode a key in version 0."""
    return _VERSION.pack(0) + string(transactional_id)


def encode_value(target: TransitMetadata) -> bytes:
    """Encode a value in version 0, with null partitions in state Empty."""
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
            parts.append(string(topic))
            parts.append(struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    parts.append(_TIMES.pack(target.updated_ms, target.start_ms))
    return b"".join(parts)


def decode_key(data: bytes) -> str | None:
    """Return the transactional id of a key; None for a later key version, which is skipped.

    Raises ``ClientError`` for a key that ends too early.
    """
    cursor = Cursor(data)
    return cursor.string() if cursor.number(">h") == 0 else None


def decode_value(transactional_id: str, data: bytes) -> TransactionMetadata:
    """Return the state of a transactional id.

    Raises ``ClientError`` for an unknown version or malformed bytes.
    """
    cursor = Cursor(data)
    version = cursor.number(">h")
    if version != 0:
        raise ClientError(f"unknown value version {version} in {TRANSACTIONS_TOPIC}")
    producer_id, epoch, timeout_ms = (cursor.number(form) for form in (">q", ">h", ">i"))
    number = cursor.number(">b")
    try:
        state = TransactionState(number)
    except ValueError:
        raise ClientError(f"unknown transaction state {number} in {TRANSACTIONS_TOPIC}") from None
    partitions: list[TopicPartition] = []
    for _ in range(cursor.number(">i")):
        topic = cursor.string()
        numbers = [cursor.number(">i") for _ in range(cursor.number(">i"))]
        partitions += [TopicPartition(topic, number) for number in numbers]
    updated_ms, start_ms = cursor.number(">q"), cursor.number(">q")
    return TransactionMetadata(
        transactional_id, producer_id, epoch, timeout_ms, state, updated_ms, partitions, start_ms
    )
