"""What one request names twice.

Kafka collects the partitions of many requests in a map: the last mention counts, and it is
answered once, where the first one was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

_T = TypeVar("_T")


def by_partition(entry: Any) -> object:
    """What tells apart the entries of most requests."""
    return entry.topic_partition


def last_of_each(entries: Sequence[_T], key: Callable[[_T], object] = by_partition) -> Sequence[_T]:
    """The entries without those that a later one overrides."""
    if len(entries) < 2:
        return entries
    found = {key(entry): entry for entry in entries}
    return entries if len(found) == len(entries) else tuple(found.values())
