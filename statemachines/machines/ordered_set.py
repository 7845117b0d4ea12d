"""A set whose iteration order is the order of insertion, whatever the hash seed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


class OrderedSet(dict[K, None]):
    """A dict used as a set, whose members are its keys."""

    __slots__ = ()

    def __init__(self, members: Iterable[K] = ()) -> None:
        super().__init__(dict.fromkeys(members))

    def add(self, member: K) -> None:
        self[member] = None

    def add_all(self, members: Iterable[K]) -> None:
        for member in members:
            self[member] = None

    def discard(self, member: K) -> None:
        self.pop(member, None)

    def discard_all(self, members: Iterable[K]) -> None:
        for member in members:
            self.pop(member, None)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self)})"
