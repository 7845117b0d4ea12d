"""Tasks and futures with deterministic hashes.

``asyncio.wait`` and many programs keep tasks in sets, whose order depends on hashes. The hash of a
plain task is its address, which differs between processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class Future(asyncio.Future[T]):
    """A future that gets a number when it is first hashed, which most futures never are."""

    number: int = 0

    def __hash__(self) -> int:
        if not self.number:
            self.number = self.get_loop().next_number()  # type: ignore[attr-defined]
        return self.number


class Task(asyncio.Task[T]):
    """A task that has its number among the tasks of its loop."""

    def __init__(
        self,
        number: int,
        coroutine: Coroutine[Any, Any, T],
        loop: asyncio.AbstractEventLoop,
        **options: Any,
    ) -> None:
        self.number = number  # needed at once, as asyncio puts each new task into a set
        super().__init__(coroutine, loop=loop, **options)

    def __hash__(self) -> int:
        return self.number


def ordered_set(tasks: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Return the tasks in a new set, filled in the order of their numbers to have a fixed order."""
    return set(sorted_by_number(tasks))


def sorted_by_number(tasks: Iterable[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    """Return tasks in the order in which they were created."""
    return sorted(tasks, key=lambda task: getattr(task, "number", 0))
