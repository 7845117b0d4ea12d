"""Tasks and futures whose hash is a number.

``asyncio.wait`` and many programs keep tasks in sets, and the order of a set follows from hashes.
That of a plain task is its address, which differs between processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class Future(asyncio.Future[T]):
    """A future that is numbered when it is first put into a set or a dictionary.

    Most never are.
    """

    number: int = 0

    def __hash__(self) -> int:
        if not self.number:
            self.number = self.get_loop().next_number()  # type: ignore[attr-defined]
        return self.number


class Task(asyncio.Task[T]):
    """A task that knows the how manyth of its loop it is."""

    def __init__(
        self,
        number: int,
        coroutine: Coroutine[Any, Any, T],
        loop: asyncio.AbstractEventLoop,
        **options: Any,
    ) -> None:
        self.number = number  # asked for at once: asyncio puts each new task into a set
        super().__init__(coroutine, loop=loop, **options)

    def __hash__(self) -> int:
        return self.number


def in_order(tasks: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Return the tasks of a set in one that was filled by their numbers, and so has one order."""
    return set(by_number(tasks))


def by_number(tasks: Iterable[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    """Return tasks in the order in which they were made."""
    return sorted(tasks, key=lambda task: getattr(task, "number", 0))
