"""The types of what tests of every runtime are handed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Settle(Protocol):
    """Runs until a condition holds: virtual time at once, the others by the wall clock."""

    def __call__(self, condition: Callable[[], object], timeout_s: float = 5) -> None: ...
