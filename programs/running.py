"""A program as its loop and its ambience see it, and which one runs now."""

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


class Surrounding(Protocol):
    """The surroundings of a program while its callbacks run: clocks, chance, executors."""

    def begin_turn(self, program: RunningProgram) -> None:
        """Callbacks of a program follow."""
        ...

    def end_turn(self) -> None:
        """They have run."""
        ...

    def executor(self) -> AbstractContextManager[Callable[[], float]]:
        """While a function of an executor runs; gives what tells how long it has slept."""
        ...


class RunningProgram(Protocol):
    """A program as its loop and its surrounding see it."""

    name: str
    runtime: VirtualRuntime
    names: Names
    chance: random.Random
    node_number: int
    """Number of its network card, for UUIDs."""
    acts: Acts | None
    """Where its acts are kept; None if nothing asks for them."""

    @property
    def ambience(self) -> Surrounding: ...

    @property
    def loop(self) -> Any:
        """The loop of its present run, None while it does not run."""
        ...

    def now_us(self) -> int:
        """Microseconds by a clock that nobody sets."""
        ...

    def wall_us(self) -> int:
        """Microseconds since the Unix epoch by the clock of its machine."""
        ...

    def main_ended(self, loop: Any, main: Any) -> None:
        """Main has returned, or raised."""
        ...

    def failed_aside(self, context: dict[str, Any]) -> None:
        """A callback, or a task that nobody waits for, has raised."""
        ...

    def exited(self, exit_: SystemExit) -> None:
        """The program has called ``sys.exit``."""
        ...

    def stuck(self) -> None:
        """A callback did not end by itself."""
        ...

    def goes_round(self, call: str) -> None:
        """It does something over and over, without any time passing."""
        ...


class Now:
    """The program whose callback runs, and the thread that runs events."""

    program: RunningProgram | None = None
    turn = 0
    """Which turn of the simulation's programs it is, while there is a program."""
    thread = 0
    is_in_executor = False
    slept_s: float = 0.0
    """How long the function of an executor has slept."""


def running_program() -> RunningProgram | None:
    """Return the program whose callback runs in this thread."""
    return Now.program if threading.get_ident() == Now.thread else None
