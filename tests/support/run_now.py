"""Run a coroutine of the cores to its end, where everything it awaits is there at once."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from fakekafka.protocol.awaiting import Task

T = TypeVar("T")


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never really parks; raises ``RuntimeError`` if it does."""
    task = Task(coroutine)
    if not task.done:
        task.cancel()
        raise RuntimeError("the coroutine parked on something that is not done yet")
    return task.result()
