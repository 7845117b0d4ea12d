"""The interface of a program to its loop and its environment, and the program that is running."""

from __future__ import annotations

import random
import threading
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..actors.runtime.virtual import VirtualRuntime
    from .acts import Acts
    from .names import Names


class ProgramEnvironment(Protocol):
    """AbstractRuntime of a program while its callbacks run: clocks, random sources, executors."""

    def begin_turn(self, program: RunningProgram) -> None:
        """Prepare for callbacks of a program."""
        ...

    def end_turn(self) -> None:
        """Undo the preparations after the callbacks."""
        ...

    def executor(self) -> AbstractContextManager[Callable[[], float]]:
        """Set the state for a function of an executor; yield a function that returns the seconds it
        slept."""
        ...


class RunningProgram(Protocol):
    """The interface of a program to its loop and its environment."""

    name: str
    runtime: VirtualRuntime
    names: Names
    rng: random.Random
    node_number: int
    """MAC address of its machine, for UUIDs."""
    acts: Acts | None
    """Records its acts; None if they are not needed."""

    @property
    def environment(self) -> ProgramEnvironment: ...

    @property
    def loop(self) -> Any:
        """The loop of its current run; None while it is not running."""
        ...

    def now_us(self) -> int:
        """Return the microseconds of the monotonic clock."""
        ...

    def wall_us(self) -> int:
        """Return the microseconds since the Unix epoch by the clock of its machine."""
        ...

    def main_ended(self, loop: Any, main: Any) -> None:
        """Handle the end of main, which has returned or raised."""
        ...

    def report_unhandled_error(self, context: dict[str, Any]) -> None:
        """Handle an error of a callback, or of a task that is not awaited."""
        ...

    def handle_system_exit(self, exit_: SystemExit) -> None:
        """End the program, which has called ``sys.exit``."""
        ...

    def fail_blocked(self) -> None:
        """Fail the program, a callback of which did not return by itself."""
        ...

    def fail_endless_loop(self, call: str) -> None:
        """Fail the program, which repeats something forever without time passing."""
        ...


class RunningState:
    """The program whose callback is running, and the thread that runs events."""

    program: RunningProgram | None = None
    turn = 0
    """Number of the current turn among all turns of the simulation's programs."""
    thread = 0
    is_in_executor = False
    slept_s: float = 0.0
    """Seconds that the running function of an executor has slept."""


def running_program() -> RunningProgram | None:
    """Return the program whose callback is running in this thread; None outside callbacks."""
    return RunningState.program if threading.get_ident() == RunningState.thread else None
