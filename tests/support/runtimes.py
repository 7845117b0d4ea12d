"""Types of the fixtures for tests on every runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Settle(Protocol):
    """Runs until a condition holds, in virtual or in real time."""

    def __call__(self, condition: Callable[[], object], timeout_s: float = 5) -> None: ...
