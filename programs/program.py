"""A program: its runs, each with its own loop, and their outcomes."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..actors.runtime.runtime import VIRTUAL_EPOCH_MS
from ..protocol.errors import UsageError
from . import places
from .acts import Acts
from .disposal import dispose
from .errors import ProgramError
from .program_loop import ProgramLoop
from .running import running_program
from .tasks import sorted_by_number
from .watchdog import watchdog

if TYPE_CHECKING:
    from ..actors.interfaces import Process
    from ..actors.runtime.virtual import VirtualRuntime
    from .environment import SimulatedEnvironment
    from .names import Names
    from .tcp import EndTransport, Machine

Main = Callable[..., Awaitable[Any]]

_CANCEL_TIMEOUT_S = 60.0
"""Virtual seconds within which cancelled tasks must end after main has ended."""


def _name_of(main: object) -> str:
    return getattr(main, "__qualname__", repr(main))


class Program:
    """A program of the simulation, which can be started repeatedly."""

    def __init__(
        self,
        runtime: VirtualRuntime,
        seed: int,
        names: Names,
        environment: SimulatedEnvironment,
        name: str,
        main: Main,
        args: tuple[Any, ...],
        options: dict[str, Any],
        acts: Acts | None = None,
    ) -> None:
        self.runtime = runtime
        self.acts: Acts | None = acts
        self.names = names
        self.environment = environment
        self.name = name
        self._seed = seed
        self._main = main
        self._args = args
        self._options = options
        self.machine: Machine = names.add(name, 1)
        self.process: Process = runtime.process(name)
        self.starts: int = 0
        self.rng: random.Random = random.Random()
        self.node_number: int = 0
        self._ahead_us = 0
        self.loop: ProgramLoop | None = None
        self.is_awaited = False
        """True if a caller waits for the outcome, and so receives an error of main."""
        self.is_done: bool = False
        """True if the last run ended on its own."""
        self._result: Any = None
        self.failure: BaseException | None = None
        self.supervise: Callable[[BaseException], bool] | None = None
        """Called when main has failed and no caller waits; returns True if it handled the error."""

    @property
    def is_running(self) -> bool:
        return self.loop is not None

    @property
    def is_paused(self) -> bool:
        return self.loop is not None and self.loop.is_paused

    @property
    def call(self) -> tuple[Main, tuple[Any, ...], dict[str, Any]]:
        """Main and its arguments."""
        return self._main, self._args, self._options

    # -- its clock -----------------------------------------------------------------------------

    def now_us(self) -> int:
        """Return the microseconds of the monotonic clock."""
        return self.runtime.now

    def wall_us(self) -> int:
        """Return the microseconds since the Unix epoch by the clock of its machine."""
        return VIRTUAL_EPOCH_MS * 1000 + self.runtime.now + self._ahead_us

    def shift_clock(self, shift_ms: float) -> None:
        """Set the wall clock of its machine forward or back."""
        self.runtime.note("fault", self.name, f"the clock of {self.name} is set {shift_ms:+g} ms")
        self._ahead_us += round(shift_ms * 1000)

    # -- its life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Call main in a new loop."""
        if self.is_running:
            raise UsageError(f"{self.name} is already running; kill it first, or use restart")
        self.starts += 1
        self.rng = random.Random(f"chance of {self.name}, start {self.starts}, {self._seed}")
        self.node_number = self.rng.getrandbits(47) << 1 | 1 << 40
        self.is_done, self._result, self.failure = False, None, None
        runtime = self.runtime
        before, is_first = runtime.cause, self.starts == 1
        text = f"{self.name} starts: {_name_of(self._main)}"
        runtime.note("note" if is_first else "restart", self.name, text)
        self.process = runtime.process(self.name)
        self.process.responsive_since_us = runtime.now
        self.loop = ProgramLoop(self, self.machine)  # type: ignore[abstract]
        self.loop.call_soon(self._begin, self.loop)
        runtime.cause = before

    def _begin(self, loop: ProgramLoop) -> None:
        try:
            awaited = self._main(*self._args, **self._options)
            if not inspect.isawaitable(awaited):
                raise UsageError(
                    f"{_name_of(self._main)} returned {awaited!r}; the main of a program must be "
                    "an `async def` function"
                )
        except Exception as error:
            self._end(None, error)
            return
        coroutine: Any = awaited if inspect.iscoroutine(awaited) else _awaiting(awaited)
        loop.main = loop.create_task(coroutine, name="main")
        loop.main.add_done_callback(loop.main_ended)

    def main_ended(self, loop: ProgramLoop, main: asyncio.Task[Any]) -> None:
        """Clean up and exit after main has returned or raised."""
        error: BaseException | None
        if main.cancelled():
            error = ProgramError(f"main of {self.name} was cancelled")
        else:
            error = main.exception()
        if isinstance(error, SystemExit):
            return  # the turn ends with it
        result = None if error is not None else main.result()
        cleanup = loop.create_task(self._cancel_remaining_tasks(loop), name="the end of main")
        cleanup.add_done_callback(lambda done: self._end(result, error or _error_of(done)))

    async def _cancel_remaining_tasks(self, loop: ProgramLoop) -> None:
        """Cancel the tasks that main has left behind, as ``asyncio.run`` does."""
        remaining = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
        if remaining:
            tasks = sorted_by_number(remaining)
            descriptions = ", ".join(map(places.of_task, tasks))
            text = (
                f"main has ended and leaves {len(tasks)} tasks, which are cancelled: {descriptions}"
            )
            self.runtime.note("note", self.name, f"warn: {text}")
            for task in tasks:
                task.cancel()
            _, pending = await asyncio.wait(tasks, timeout=_CANCEL_TIMEOUT_S)
            uncancelled = [places.of_task(task) for task in tasks if task in pending]
            if uncancelled:
                raise ProgramError(
                    f"main of {self.name} has ended, and tasks that were cancelled still run "
                    f"after {_CANCEL_TIMEOUT_S:g} s: {', '.join(uncancelled)}; a task that "
                    "catches CancelledError has to end, or raise it again"
                )
            for task in tasks:
                if not task.cancelled() and (error := task.exception()) is not None:
                    loop.call_exception_handler(
                        {
                            "message": f"unhandled exception of {places.of_task(task)} at the end",
                            "exception": error,
                            "task": task,
                        }
                    )
        await loop.shutdown_asyncgens()

    def _end(self, result: Any, error: BaseException | None) -> None:
        """End the run: the process exits on its own."""
        if self.loop is None:
            return
        self.is_done, self._result, self.failure = True, result, error
        text = "has ended" if error is None else f"error: has failed: {error!r}"
        self.runtime.note("note", self.name, text)
        self._stop_loop()
        self.machine.acceptors.clear()
        for end in tuple(self.machine.ends):
            if end.transport is not None:
                end.transport.detach()
                end.transport = None
            end.close()
        if error is not None:
            self._deliver_error(error)

    def _deliver_error(self, error: BaseException) -> None:
        """Pass an error to the caller that waits for the outcome, or else raise it from the call
        that runs events."""
        if not self.is_awaited and self.supervise is not None and self.supervise(error):
            return
        now_s = self.runtime.now / 1e6
        error.add_note(f"raised in {self.name}, seed {self._seed}, at {now_s:g} virtual s")
        if not self.is_awaited:
            wrapped = error if isinstance(error, Exception) else ProgramError(repr(error))
            self.runtime.report_user_failure("program", self._main, wrapped)

    def report_unhandled_error(self, context: dict[str, Any]) -> None:
        """Handle an error of a callback, or of a task that is not awaited."""
        message, error = context.get("message") or "Unhandled exception", context.get("exception")
        self.runtime.note("note", self.name, f"error: {message}: {error!r}")
        if isinstance(error, Exception):
            error.add_note(f"{self.name}: {message}")
            now_s = self.runtime.now / 1e6
            error.add_note(f"raised in {self.name}, seed {self._seed}, at {now_s:g} virtual s")
            self.runtime.report_user_failure("program", self._main, error)

    def handle_system_exit(self, exit_: SystemExit) -> None:
        """End the program, which has called ``sys.exit``."""
        code = exit_.code
        self._end(
            None,
            None if code in (None, 0) else ProgramError(f"{self.name} exited with code {code!r}"),
        )

    def fail_blocked(self) -> None:
        """Fail the program, a callback of which did not return by itself."""
        place, watchdog.stuck_at = watchdog.stuck_at, None
        self._fail_at_once(
            f"{self.name} has blocked its event loop for {watchdog.limit_s:g} real s: it is at "
            f"{place}. Virtual time stands still while its code runs, so it cannot wait for a "
            "later time without `await asyncio.sleep(...)`"
        )

    def fail_endless_loop(self, call: str) -> None:
        """Fail the program, which repeats something forever without time passing."""
        tasks = sorted_by_number(asyncio.all_tasks(self.loop))
        self._fail_at_once(
            f"{self.name} is in an endless loop in which no time passes: next is {call}; "
            f"its tasks are {', '.join(map(places.of_task, tasks))}. "
            "Sleep for more than 0 s in a loop that polls"
        )

    def _fail_at_once(self, text: str) -> None:
        error = ProgramError(text)
        self.is_done, self.failure = True, error
        self._end_abruptly(f"error: {text}")
        self._deliver_error(error)

    def kill(self) -> None:
        """End the process at once, as ``kill -9`` does; no code of it runs any more."""
        self._require_running()
        self._require_outside("kill itself; let its main return, or raise")
        self._end_abruptly(f"{self.name} is killed")

    def _end_abruptly(self, text: str) -> None:
        self.runtime.note("crash", self.name, text)
        loop, transports = self._require_running(), self._transports()
        objects = [*asyncio.all_tasks(loop), loop, *transports, *self._stop_loop()]
        self.machine.process_died()
        _dispose(loop, transports, objects)

    def _stop_loop(self) -> list[object]:
        loop, self.loop = self.loop, None
        assert loop is not None
        self.runtime.kill_process(self.process)
        return loop.drop_pending()

    def discard(self) -> None:
        """Drop the program at the end of the simulation."""
        loop = self.loop
        if loop is not None:
            transports = self._transports()
            self.loop = None
            _dispose(
                loop,
                transports,
                [*asyncio.all_tasks(loop), loop, *transports, *loop.drop_pending()],
            )

    def _transports(self) -> list[EndTransport]:
        return [end.transport for end in self.machine.ends if end.transport is not None]

    def restart(self) -> None:
        """Start the program again; kill it first if it is running."""
        if self.is_running:
            self.kill()
        self.start()

    def pause(self) -> None:
        """Run none of its code until ``resume``; its machine still receives bytes."""
        loop = self._require_running()
        self._require_outside("pause itself; use `await asyncio.sleep(...)`")
        self.runtime.note("fault", self.name, f"{self.name} is paused")
        self.runtime.pause(self.process)
        loop.pause()

    def resume(self) -> None:
        loop = self._require_running()
        self.runtime.note("fault", self.name, f"{self.name} goes on")
        self.runtime.resume(self.process)
        loop.resume()

    def _require_running(self) -> ProgramLoop:
        if self.loop is None:
            raise UsageError(f"{self.name} is not running")
        return self.loop

    def _require_outside(self, what: str) -> None:
        if running_program() is self:
            raise UsageError(f"{self.name} cannot {what}")

    def describe_tasks(self) -> str:
        """Return a description of the places where its tasks wait."""
        if self.loop is None:
            return f"{self.name} does not run"
        tasks = ", ".join(map(places.of_task, sorted_by_number(asyncio.all_tasks(self.loop))))
        return f"{self.name} {'is paused' if self.is_paused else 'runs'}; its tasks are {tasks}"

    def outcome(self) -> Any:
        """Return the result of main, or raise its error."""
        if self.failure is not None:
            raise self.failure
        if not self.is_done:
            raise ProgramError(f"{self.name} was killed before its main had a result")
        return self._result


def _dispose(loop: ProgramLoop, transports: Iterable[EndTransport], objects: list[object]) -> None:
    """Dispose of the objects of a run, without their references to the simulation."""
    loop.detach()
    for transport in transports:
        transport.detach()
    dispose(objects)


async def _awaiting(awaited: Awaitable[Any]) -> Any:
    return await awaited


def _error_of(task: asyncio.Task[Any]) -> BaseException | None:
    return None if task.cancelled() else task.exception()
