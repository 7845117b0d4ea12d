"""A timer of virtual time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...protocol.host import qualified_name
from ..delivery import Endpoint


class VirtualTimer:
    """A scheduled call; a cancelled timer stays in the heap and is skipped later."""

    __slots__ = ("callback", "cause", "node", "serves_many", "uses_runtime_clock")

    def __init__(
        self, node: Endpoint | None, callback: Callable[[], object], cause: int | None = None
    ) -> None:
        self.node = node
        self.cause: int | None = cause
        """Seq of the event that set the timer, while the run is recorded."""
        self.serves_many: bool = False
        """True if each entry that the timer serves is recorded as an event of its own; the firing
        is then recorded only if no entry is due."""
        self.uses_runtime_clock: bool = False
        """True if the runtime's clock measures the delay, not the clock of the node's machine."""
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None
        self.node = None


@functools.cache
def _name_in(qualified: str) -> str:
    """Return the name of the function that set a timer, without names local to it."""
    return qualified.rpartition(".<locals>")[0] or qualified


def name_of(callback: Callable[[], object]) -> str:
    """Return the name that a timer with this callback has in a recorded run."""
    function: Any = callback
    if isinstance(function, functools.partial) and not hasattr(function, "__qualname__"):
        function = function.func
    return _name_in(qualified_name(function) or "timer")
