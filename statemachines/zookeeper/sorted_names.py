"""Sorted lists of names, and the difference between two of them.

With each topic that is created, the controller lists all topics. Comparing hash sets costs a
look-up per topic each time; comparing slices costs a pointer comparison per topic, since equal
names are the same objects.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar

_FEW = 16


def sorted_changes(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """Compare sorted lists; returns (names only in ``new``, names only in ``old``), both sorted."""
    added: list[str] = []
    removed: list[str] = []
    parts = [(old, new)]
    while parts:
        old, new = parts.pop()
        if old == new:
            continue
        if len(old) <= _FEW or len(new) <= _FEW:
            before, after = set(old), set(new)
            added += [name for name in new if name not in before]
            removed += [name for name in old if name not in after]
            continue
        middle = len(new) // 2
        cut = bisect_left(old, new[middle])
        # The left half is pushed last and so compared first, which keeps the results sorted.
        parts.append((old[cut:], new[middle:]))
        parts.append((old[:cut], new[:middle]))
    return added, removed


class SortedNames(Collection[str]):
    """A sorted set of names, as ZooKeeper lists children; takes a sorted list, each name once."""

    __slots__ = ("names",)

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names: Sequence[str] = names
        """Never changed in place, as the caller that made the list may keep it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SortedNames) and list(self.names) == list(other.names)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        index = bisect_left(self.names, name)
        return index < len(self.names) and self.names[index] == name

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str) -> None:
        if name not in self:
            index = bisect_left(self.names, name)
            self.names = [*self.names[:index], name, *self.names[index:]]

    def discard(self, name: str) -> None:
        if name in self:
            index = bisect_left(self.names, name)
            self.names = [*self.names[:index], *self.names[index + 1 :]]

    def __repr__(self) -> str:
        return f"SortedNames({list(self.names)})"
