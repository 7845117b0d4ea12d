"""Java's string hash: which partition of an internal topic a group or an id belongs to."""

from __future__ import annotations


def java_hash(text: str) -> int:
    """``String.hashCode``: 32 bit, signed."""
    value = 0
    for unit in _utf16_units(text):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 0x100000000 if value >= 0x80000000 else value


def _utf16_units(text: str) -> list[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    return [data[i] << 8 | data[i + 1] for i in range(0, len(data), 2)]


def partition_of(key: str, partitions: int) -> int:
    """Kafka's ``Utils.abs(hash) % partitions``, where abs of the smallest integer is 0."""
    value = java_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partitions
