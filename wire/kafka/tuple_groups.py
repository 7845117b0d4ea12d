"""Results that are tuples, grouped as answers group them: by topic."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeVar

P = TypeVar("P", bound=tuple[Any, ...])


def tuples_by_topic(results: Sequence[P]) -> Collection[tuple[str, Sequence[P]]]:
    """Group tuples that begin with their partition, topics in order of first appearance."""
    groups: dict[str, list[P]] = {}
    for result in results:
        groups.setdefault(result[0].topic, []).append(result)
    return groups.items()
