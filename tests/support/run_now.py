"""Running a core's coroutine to its end, if everything it awaits is there at once."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from fakekafka.protocol.awaiting import Task

T = TypeVar("T")


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never parks; raise ``RuntimeError`` if it parks."""
    task = Task(coroutine)
    if not task.done:
        task.cancel()
        raise RuntimeError("the coroutine parked on something that is not done yet")
    return task.result()
