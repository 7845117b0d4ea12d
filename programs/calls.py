"""Callbacks of a loop: asyncio handles that know the event that caused them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..actors.runtime.virtual_timer import VirtualTimer


class _RunMixin:
    """The execution of an asyncio handle."""

    __slots__ = ()

    def run(self: Any) -> None:
        """Call the callback in the given context, or in the context in which it was scheduled."""
        try:
            self._context.run(self._callback, *self._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            name = getattr(self._callback, "__qualname__", repr(self._callback))
            self._loop.call_exception_handler(
                {"message": f"Exception in callback {name}", "exception": error, "handle": self}
            )
        self = None  # otherwise a surviving exception would refer to its own task


class ReadyCall(_RunMixin, asyncio.Handle):
    """A callback that is ready to run."""

    __slots__ = ("cause",)
    cause: int | None


class TimedCall(_RunMixin, asyncio.TimerHandle):
    """A callback that is scheduled for a time."""

    __slots__ = ("cause", "timer")
    cause: int | None
    timer: VirtualTimer
    """Timer of the runtime, which will fire or has fired."""
    _scheduled: bool
    """True if asyncio has to notify the loop when the call is cancelled."""

    def due(self) -> None:
        """Run the call, whose time has come."""
        self._loop.timer_fired(self)  # type: ignore[attr-defined]
