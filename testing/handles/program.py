"""``simulation.program``: a user's own program in virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .. import arguments
from ..running import WaitTimeout
from .network import NetworkHandle

if TYPE_CHECKING:
    from ...programs.program import Program
    from ..running import RunningCluster


_LOOK_S = 0.01


class ProgramHandle:
    """A program. Its network is that of the cluster: rules name it by ``name``."""

    __slots__ = ("_program", "_running")

    def __init__(self, running: RunningCluster, program: Program) -> None:
        self._running = running
        self._program = program

    def __repr__(self) -> str:
        state = "paused" if self._program.is_paused else "running" if self.is_running else "ended"
        return f"<program {self.name}: {state}>"

    @property
    def name(self) -> str:
        """Its name in the network, in traces, and for other programs."""
        return self._program.name

    @property
    def is_running(self) -> bool:
        """True while its process exists; it may be paused."""
        return self._program.is_running

    @property
    def is_paused(self) -> bool:
        """True while it is frozen by ``pause``."""
        return self._program.is_paused

    def kill(self) -> None:
        """End the process as ``kill -9`` does: no code of it runs any more, not even ``finally``.

        Its connections are reset. ``UsageError`` if it is not running.
        """
        self._running.require_going()
        self._program.kill()

    def restart(self) -> None:
        """Start it again, with the same arguments; kill it first if it runs."""
        self._running.require_going()
        self._program.restart()

    def pause(self) -> None:
        """Run none of its code until ``resume``, as a long garbage collection does.

        What is due meanwhile, and what comes to it, waits.
        """
        self._running.require_going()
        self._program.pause()

    def resume(self) -> None:
        """Continue it after ``pause``."""
        self._running.require_going()
        self._program.resume()

    def shift_clock(self, shift_ms: float) -> None:
        """Set its wall clock forward, or back; clocks such as ``time.monotonic`` go on."""
        self._running.require_going()
        self._program.shift_clock(arguments.signed_number("shift_ms", shift_ms, "milliseconds"))

    def isolate(self) -> None:
        """Cut its machine off from every other one, until ``network.heal``."""
        NetworkHandle(self._running).isolate(self.name)

    def result(self, timeout_s: float = 60) -> Any:
        """Run until main has ended, and return what it returned; raise what it raised.

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
                error.add_note(program.whereabouts())
                raise
            finally:
                program.is_awaited = False
        return program.outcome()

    async def ended(self) -> Any:
        """Wait in the code of another program, such as an async test, until main has ended.

        Returns what it returned, and raises what it raised.
        """
        program = self._program
        program.is_awaited = True
        try:
            while program.is_running:
                await asyncio.sleep(_LOOK_S)
        finally:
            program.is_awaited = False
        return program.outcome()
