"""Callbacks of a loop: handles of asyncio, and the event from which each follows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..actors.runtime.virtual_timer import VirtualTimer


class _Runs:
    """The act of a handle of asyncio when its turn has come."""

    __slots__ = ()

    def run(self: Any) -> None:
        """Call back in the context that was given, or was there when it was scheduled."""
        try:
            self._context.run(self._callback, *self._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            name = getattr(self._callback, "__qualname__", repr(self._callback))
            self._loop.call_exception_handler(
                {"message": f"Exception in callback {name}", "exception": error, "handle": self}
            )
        self = None  # else an exception that lives on would hold its own task


class ReadyCall(_Runs, asyncio.Handle):
    """A callback that is ready."""

    __slots__ = ("cause",)
    cause: int | None


class TimedCall(_Runs, asyncio.TimerHandle):
    """The same at a time."""

    __slots__ = ("cause", "timer")
    cause: int | None
    timer: VirtualTimer
    """What will fire, or has."""
    _scheduled: bool
    """Whether asyncio tells the loop when it is cancelled."""

    def due(self) -> None:
        """Its time has come."""
        self._loop.timer_fired(self)  # type: ignore[attr-defined]
