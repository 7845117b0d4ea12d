"""Java's hash of a string, by which Kafka spreads groups, transactions and fetchers."""

from __future__ import annotations

from collections.abc import Iterable

_INT_MIN = -(1 << 31)


def java_string_hash(text: str) -> int:
    """Java's ``String.hashCode``: a signed 32-bit number over UTF-16 code units."""
    value = 0
    units = text.encode("utf-16-be")
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def bucket_of(hash_value: int, count: int) -> int:
    """Kafka's ``Utils.abs(hash) % count``: Java's smallest integer has no positive twin."""
    return 0 if hash_value == _INT_MIN else abs(hash_value) % count


def in_hash_order(names: Iterable[str], size: int = 0) -> list[str]:
    """Names in the order in which a Java hash map of ``size`` keys has them, by default of theirs.

    Names that share a bucket keep the order that they are given in.
    """
    ordered = list(names)
    buckets = 16
    while max(size, len(ordered)) > 0.75 * buckets:
        buckets *= 2

    def bucket(name: str) -> int:
        value = java_string_hash(name) & 0xFFFFFFFF
        return (value ^ value >> 16) & (buckets - 1)

    return sorted(ordered, key=bucket)
