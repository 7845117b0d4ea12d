"""Java's string hash, by which Kafka distributes groups, transactions and fetchers."""

from __future__ import annotations

from collections.abc import Iterable

_INT_MIN = -(1 << 31)


def java_string_hash(text: str) -> int:
    """Return Java's ``String.hashCode``: a signed 32-bit number over UTF-16 code units."""
    value = 0
    units = text.encode("utf-16-be")
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def bucket_of(hash_value: int, count: int) -> int:
    """Return Kafka's ``Utils.abs(hash) % count``, where the absolute value of Java's smallest
    integer is 0."""
    return 0 if hash_value == _INT_MIN else abs(hash_value) % count


def in_hash_order(names: Iterable[str], size: int = 0) -> list[str]:
    """Return names in the iteration order of a Java hash map of ``size`` keys.

    The map has at least as many keys as there are names. Names in the same bucket keep their order.
    """
    ordered = list(names)
    buckets = 16
    while max(size, len(ordered)) > 0.75 * buckets:
        buckets *= 2

    def bucket(name: str) -> int:
        value = java_string_hash(name) & 0xFFFFFFFF
        return (value ^ value >> 16) & (buckets - 1)

    return sorted(ordered, key=bucket)
