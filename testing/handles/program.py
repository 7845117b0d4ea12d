"""Handle of a user's own program in virtual time (``simulation.program``)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .. import arguments
from ..running import WaitTimeout
from .network import NetworkHandle

if TYPE_CHECKING:
    from ...programs.program import Program
    from ..running import RunningCluster


_POLL_INTERVAL_S = 0.01


class ProgramHandle:
    """A program on the cluster's network, where rules refer to it by ``name``."""

    __slots__ = ("_program", "_running")

    def __init__(self, running: RunningCluster, program: Program) -> None:
        self._running = running
        self._program = program

    def __repr__(self) -> str:
        state = "paused" if self._program.is_paused else "running" if self.is_running else "ended"
        return f"<program {self.name}: {state}>"

    @property
    def name(self) -> str:
        """Name of the program on the network, in traces, and for other programs."""
        return self._program.name

    @property
    def is_running(self) -> bool:
        """True while the program's process exists, even if it is paused."""
        return self._program.is_running

    @property
    def is_paused(self) -> bool:
        """True while the program is frozen by ``pause``."""
        return self._program.is_paused

    def kill(self) -> None:
        """End the process as ``kill -9`` does: none of its code runs any more, not even
        ``finally``.

        Its connections are reset. ``UsageError`` if it is not running.
        """
        self._running.require_going()
        self._program.kill()

    def restart(self) -> None:
        """Start the program again with the same arguments, after killing it if it runs."""
        self._running.require_going()
        self._program.restart()

    def pause(self) -> None:
        """Freeze the program until ``resume``, as a long garbage collection does.

        Expired timers and received data wait until then.
        """
        self._running.require_going()
        self._program.pause()

    def resume(self) -> None:
        """Resume the program after ``pause``."""
        self._running.require_going()
        self._program.resume()

    def shift_clock(self, shift_ms: float) -> None:
        """Shift the program's wall clock forward, or back if negative.

        Clocks such as ``time.monotonic`` are not affected.
        """
        self._running.require_going()
        self._program.shift_clock(arguments.signed_number("shift_ms", shift_ms, "milliseconds"))

    def isolate(self) -> None:
        """Cut the program's machine off from all others until ``network.heal``."""
        NetworkHandle(self._running).isolate(self.name)

    def result(self, timeout_s: float = 60) -> Any:
        """Run until main has ended; return what it returned, or raise what it raised.

        Raises ``WaitTimeout`` when ``timeout_s`` virtual seconds pass first, and ``ProgramError``
        if the program was killed.
        """
        program = self._program
        if program.is_running:
            self._running.require_waiting()
            program.is_awaited = True
            try:

                def main_has_ended() -> bool:
                    return not program.is_running

                self._running.wait_until(main_has_ended, timeout_s)
            except WaitTimeout as error:
                error.add_note(program.describe_tasks())
                raise
            finally:
                program.is_awaited = False
        return program.outcome()

    async def ended(self) -> Any:
        """Wait until main has ended, from the code of another program such as an async test.

        Returns what main returned, or raises what it raised.
        """
        program = self._program
        program.is_awaited = True
        try:
            while program.is_running:
                await asyncio.sleep(_POLL_INTERVAL_S)
        finally:
            program.is_awaited = False
        return program.outcome()
