"""A timer of virtual time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...protocol.host import qualified_name
from ..delivery import Endpoint


class VirtualTimer:
    """A scheduled call; cancelling leaves the entry in the heap, to be skipped."""

    __slots__ = ("callback", "cause", "comes_from_elsewhere", "node", "serves_many")

    def __init__(
        self, node: Endpoint | None, callback: Callable[[], object], cause: int | None = None
    ) -> None:
        self.node = node
        self.cause: int | None = cause
        """Seq of the event that armed it, while the run is recorded."""
        self.serves_many: bool = False
        """Whether each that it serves is an event; itself it is one only if it serves nobody."""
        self.comes_from_elsewhere: bool = False
        """Whether no clock of the node's machine measures the delay."""
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None
        self.node = None


@functools.cache
def _name_in(qualified: str) -> str:
    """Return the name of a timer: the function that set it, without what is local in it."""
    return qualified.rpartition(".<locals>")[0] or qualified


def name_of(callback: Callable[[], object]) -> str:
    """Return the name of a timer in a recorded run."""
    function: Any = callback
    if isinstance(function, functools.partial) and not hasattr(function, "__qualname__"):
        function = function.func
    return _name_in(qualified_name(function) or "timer")
