"""The assumed size of a message: its records plus a constant."""

from __future__ import annotations

from ...protocol.data import FetchResponse, ProduceRequest

_OVERHEAD_BYTES = 100


def record_bytes(message: object) -> int:
    """Return the size in bytes of the records in a message."""
    if isinstance(message, ProduceRequest):
        return sum(len(partition.records or b"") for partition in message.partitions)
    if isinstance(message, FetchResponse):
        return sum(batch.size_in_bytes for part in message.partitions for batch in part.records)
    return 0


def message_bytes(message: object) -> int:
    """Return the assumed size in bytes of a message on a link."""
    return _OVERHEAD_BYTES + record_bytes(message)
