"""An asyncio event loop whose timers and callbacks are entries of the simulation's heap.

Ready callbacks run in turns, as in asyncio's own loops: a turn is one entry of the heap and runs
the callbacks that were ready when it began. A timer is an entry, too. So everything happens in the
order of the virtual runtime, (time, sequence). In a trace, the cause of each callback is the event
that scheduled it.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from ..protocol.errors import UsageError
from .calls import ReadyCall, TimedCall
from .tasks import Future, Task

if TYPE_CHECKING:
    from ..actors.runtime.virtual import VirtualRuntime
    from ..actors.runtime.virtual_timer import VirtualTimer
    from .acts import Acts

T = TypeVar("T")
logger: logging.Logger = logging.getLogger("fakekafka.programs")

_FREE_TURNS_MAX = 100
"""Number of turns at one instant that take no time; each further turn takes a realistic time."""
_TURN_US = 50
_BUSY_TURNS_MAX = 400_000
"""Number of turns of that kind after which a program is considered to loop forever."""
_NEVER_US = 1 << 60


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Timers, callbacks, tasks and futures in virtual time, as needed by a broker's listeners.

    ``ProgramLoop`` adds the other features that a program may use.
    """

    __deletable__: tuple[str, ...] = ("_runtime",)
    reads_at_once = True
    """True if protocols read as soon as bytes arrive, not in a turn; brokers run no other code."""
    acts: Acts | None = None
    """Records the acts of the program; None if they are not needed."""

    def __init__(self, runtime: VirtualRuntime, name: str) -> None:
        self._runtime = runtime
        self.name = name
        self._ready: deque[ReadyCall | TimedCall] = deque()
        self._timers: dict[VirtualTimer, TimedCall] = {}
        self._turn_is_due = False
        self.is_paused: bool = False
        self._is_closed = False
        self._last_number = 0
        self._debug = False
        self._task_factory: Any = None
        self._exception_handler: Any = None
        self._turn_at_us = -1
        self._turns_at_instant = 0
        self._busy_turns = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.name}>"

    # -- time and callbacks --------------------------------------------------------------------

    def time(self) -> float:
        """Virtual seconds since the run began."""
        return self._runtime.now / 1e6

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        if self._is_closed:
            self._require_open()
        call = ReadyCall(callback, args, self, context)
        runtime = self._runtime
        cause = runtime.cause
        call.cause = runtime.begin_step() if cause is None else cause
        self._ready.append(call)
        if not self._turn_is_due:
            self._turn_is_due = True
            self._runtime.call_later(None, 0, self._turn)
        return call

    def call_soon_threadsafe(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        if delay is None:
            raise TypeError("delay must not be None")
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        if self._is_closed:
            self._require_open()
        runtime = self._runtime
        if self.acts is not None:
            self.record_act(f"waits until {when:.6f} s")
        call = TimedCall(when, callback, args, self, context)
        call._scheduled = True
        # Slightly late, as any real timer: the difference of two floats may be too small.
        delay_us = math.floor(round(when * 1e6 - runtime.now, 2)) + 1
        delay_us = min(max(1, delay_us), _NEVER_US)
        call.timer = timer = runtime.call_later(None, delay_us, call.due)
        call.cause = timer.cause
        self._timers[timer] = call
        return call

    def timer_fired(self, call: TimedCall) -> None:
        """Run a scheduled call whose time has come."""
        call._scheduled = False
        self._timers.pop(call.timer, None)
        self._ready.append(call)
        if not self._turn_is_due:
            self._turn_is_due = True
            self._runtime.call_later(None, 0, self._turn)

    def _timer_handle_cancelled(self, call: TimedCall) -> None:
        """Cancel the timer of a call; asyncio's handle calls this method when it is cancelled."""
        self._timers.pop(call.timer, None)
        call.timer.cancel()

    def _turn(self) -> None:
        if self.is_paused or self._is_closed:
            self._turn_is_due = False
            return
        ready, runtime = self._ready, self._runtime
        if runtime.now != self._turn_at_us:
            if runtime.now != self._turn_at_us + _TURN_US:
                self._busy_turns = 0
            self._turn_at_us, self._turns_at_instant = runtime.now, 0
        self._turns_at_instant += 1
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        self._begin_turn()
        try:
            for _ in range(len(ready)):
                call = ready.popleft()
                if not call.cancelled():
                    runtime.cause = call.cause
                    call.run()
                del call  # lets the objects of its callback be freed here
                if not ready:
                    break
        finally:
            self._end_turn()
            asyncio._set_running_loop(outer)
            self._turn_is_due = bool(ready)
            if ready:
                runtime.call_later(None, self._pause_us(), self._turn)

    def _pause_us(self) -> int:
        """Return the delay of the next turn if turns follow each other without a pause."""
        if self._busy_turns == 0 and self._turns_at_instant < _FREE_TURNS_MAX:
            return 0
        self._busy_turns += 1
        if self._busy_turns > _BUSY_TURNS_MAX:
            self._fail_endless_loop(self._ready[0])
        return _TURN_US

    def _begin_turn(self) -> None:
        """Prepare for the callbacks of a turn."""

    def _end_turn(self) -> None:
        """Undo the preparations."""

    def _fail_endless_loop(self, call: ReadyCall | TimedCall | None) -> None:
        raise UsageError(f"{self.name} does {call!r} over and over without any time passing")

    def pause(self) -> None:
        """Run nothing until ``resume``; callbacks that become due meanwhile wait."""
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        if self._ready and not self._turn_is_due:
            self._turn_is_due = True
            self._runtime.call_later(None, 0, self._turn)

    def _require_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("Event loop is closed")

    def record_act(self, what: str, data: bytes = b"") -> None:
        """Record an act of the program's code."""
        assert self.acts is not None
        self.acts.add(self._runtime.now, self.name, self, what, data)

    # -- tasks and futures ---------------------------------------------------------------------

    def next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def create_future(self) -> asyncio.Future[Any]:
        return Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
        **options: Any,
    ) -> asyncio.Task[T]:
        self._require_open()
        if context is not None:
            options["context"] = context
        task: asyncio.Task[T]
        if self._task_factory is not None:
            task = self._task_factory(self, coro, **options)
            if name is not None and hasattr(task, "set_name"):
                task.set_name(name)
            return task
        number = self.next_number()
        name = f"Task-{number}" if name is None else name
        task = Task(number, coro, self, name=name, **options)  # type: ignore[arg-type]
        return task

    def set_task_factory(self, factory: Any) -> None:
        self._task_factory = factory

    def get_task_factory(self) -> Any:
        return self._task_factory

    # -- errors and debugging ------------------------------------------------------------------

    def set_exception_handler(self, handler: Any) -> None:
        self._exception_handler = handler

    def get_exception_handler(self) -> Any:
        return self._exception_handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        logger.error("%s: %s", self.name, context.get("message"), exc_info=context.get("exception"))

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        handler = self._exception_handler
        if handler is None:
            self.default_exception_handler(context)
            return
        try:
            handler(self, context)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self.default_exception_handler(
                {"message": "Unhandled error in exception handler", "exception": error}
            )

    def get_debug(self) -> bool:
        return self._debug

    def set_debug(self, enabled: bool) -> None:
        self._debug = enabled

    # -- life ----------------------------------------------------------------------------------

    def is_running(self) -> bool:
        return not self._is_closed

    def is_closed(self) -> bool:
        return self._is_closed

    def drop_pending(self) -> list[object]:
        """Stop running anything; return all pending objects, for the caller to hold."""
        self._is_closed = True
        for timer in self._timers:
            timer.cancel()
        dropped: list[object] = [*self._ready, *self._timers.values()]
        self._ready.clear()
        self._timers.clear()
        return dropped

    def detach(self) -> None:
        """Drop the reference to the simulation, so that the loop does not keep it alive."""
        del self._runtime


class AsyncGenerators:
    """The asynchronous generators of a loop that have started and not ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._started: weakref.WeakValueDictionary[int, AsyncGenerator[Any, Any]] = (
            weakref.WeakValueDictionary()
        )
        self._count = 0

    def register(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Register a generator that starts."""
        self._count += 1
        self._started[self._count] = generator

    def finalize(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Close a generator that is no longer referenced."""
        if not self._loop.is_closed():
            self._loop.call_soon(self._close, generator)

    def _close(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._loop.create_task(_closing(generator))

    async def close_all(self) -> None:
        """Close the remaining generators, the oldest first."""
        started = [generator for _, generator in sorted(self._started.items())]
        self._started.clear()
        results = await asyncio.gather(*map(_closing, started), return_exceptions=True)
        for result, generator in zip(results, started, strict=True):
            if isinstance(result, Exception):
                self._loop.call_exception_handler(
                    {
                        "message": f"an error occurred during closing of {generator!r}",
                        "exception": result,
                        "asyncgen": generator,
                    }
                )


def generator_hooks(outer: Any) -> tuple[Any, Any]:
    """Return hooks for asynchronous generators; generators outside programs use the outer hooks."""

    def begin(generator: AsyncGenerator[Any, Any]) -> None:
        generators = getattr(asyncio._get_running_loop(), "generators", None)
        if generators is not None:
            generators.register(generator)
        elif outer.firstiter is not None:
            outer.firstiter(generator)

    def finalize(generator: AsyncGenerator[Any, Any]) -> None:
        generators = getattr(asyncio._get_running_loop(), "generators", None)
        if generators is not None:
            generators.finalize(generator)
        elif outer.finalizer is not None:
            outer.finalizer(generator)

    return begin, finalize


async def _closing(generator: AsyncGenerator[Any, Any]) -> None:
    await generator.aclose()
