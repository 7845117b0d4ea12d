"""The live runtime: one event-loop thread on the wall clock runs all nodes and all sockets."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from ...protocol.errors import UsageError
from ..clock import rescaled
from ..delivery import Delivery, Endpoint
from ..interfaces import AbstractNode, Process
from .runtime import LoopRuntime
from .virtual_timer import name_of

T = TypeVar("T")

_HEARTBEAT_S = 0.05
"""Interval of the loop's heartbeat, which shows that the loop runs."""
_STALL_NS = 250_000_000
"""Maximum time by which the clock advances between two heartbeats."""
_TASK_END_TIMEOUT_S = 1
"""Time that running tasks have to end when the loop is stopped."""
_DRAIN_LIMIT = 512
"""Maximum number of deliveries handled before the loop polls its sockets again."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Create an event loop: uvloop's if that is installed, otherwise asyncio's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class LoopThread:
    """An event loop in a daemon thread of its own."""

    def __init__(self, name: str) -> None:
        self.loop: asyncio.AbstractEventLoop = new_event_loop()
        self._process_id = os.getpid()
        self._own_thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._own_thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        # Done in this thread, as the thread that calls ``stop`` may run a loop of its own.
        with contextlib.suppress(Exception):
            self.loop.run_until_complete(self._end())
        self.loop.close()

    async def _end(self) -> None:
        """End running tasks, as connections being established would leave their sockets open."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_TASK_END_TIMEOUT_S)
            for task in late:
                task.cancel()
            await asyncio.sleep(0)
        await self.loop.shutdown_asyncgens()

    @property
    def is_current(self) -> bool:
        return threading.current_thread() is self._own_thread

    @property
    def is_forked_away(self) -> bool:
        """True in a forked child, which lacks the thread that runs the loop."""
        return os.getpid() != self._process_id

    def require_own_process(self) -> None:
        """Raise ``UsageError`` in a forked child."""
        if self.is_forked_away:
            raise UsageError(
                "this process was forked from the one that runs the cluster: use the cluster "
                "there, and here only clients of its bootstrap_servers"
            )

    def call(self, function: Callable[[], T]) -> T:
        """Run a function on the loop's thread and return its result.

        Raises ``UsageError`` in a forked child.
        """
        if self.is_current:
            return function()
        self.require_own_process()
        done: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            try:
                done.set_result(function())
            except BaseException as error:
                done.set_exception(error)

        self.loop.call_soon_threadsafe(run)
        return done.result()

    def stop(self) -> None:
        """Stop the loop and free its descriptors; idempotent, and without effect in a forked
        child."""
        if self.loop.is_closed() or self.is_forked_away:
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._own_thread.join()


class LiveTimer:
    """A scheduled call on the loop; it can still be cancelled while it is held back."""

    __slots__ = (
        "_waiting",
        "callback",
        "cause",
        "due_us",
        "handle",
        "node",
        "serves_many",
        "stalled_ns",
        "uses_runtime_clock",
    )

    def __init__(
        self,
        node: Endpoint | None,
        callback: Callable[[], object],
        due_us: int,
        stalled_ns: int,
        waiting: dict[LiveTimer, None],
    ) -> None:
        self._waiting = waiting
        self.due_us: int = due_us
        """Time by the runtime's clock at which the timer is due."""
        self.stalled_ns: int = stalled_ns
        """Total of the clock's stalls when the call was last scheduled on the loop."""
        self.node: Endpoint | None = node
        self.cause: int | None = None
        """Seq of the event that set the timer, while the run is recorded."""
        self.serves_many: bool = False
        """True if each entry that the timer serves is recorded as an event of its own; the firing
        is then recorded only if no entry is due."""
        self.uses_runtime_clock: bool = False
        """True if the runtime's clock measures the delay, not the clock of the node's machine."""
        self.callback: Callable[[], object] | None = callback
        self.handle: asyncio.Handle | None = None

    def cancel(self) -> None:
        self.callback = None
        self._waiting.pop(self, None)
        if self.handle is not None:
            self.handle.cancel()


class LiveRuntime(LoopRuntime):
    """Wall clock, one thread: a handler never waits for a lock or a thread switch.

    The runtime's clock leaves out time in which the loop did not run, because a request took long
    or the process was stopped. Otherwise messages that the cluster's members had no chance to send
    in time, above all heartbeats of their sessions, would count as missing. Dates use the wall
    clock.
    """

    name = "live"

    def __init__(self, seed: int | None = None) -> None:
        self._started_ns = time.monotonic_ns()
        self._stalled_ns = 0
        """Total time that the clock has left out."""
        self._clock_limit_ns = _STALL_NS
        """Time beyond which the clock does not advance until the next heartbeat."""
        self._epoch_ns = time.time_ns()
        self.thread: LoopThread = LoopThread("fakekafka")
        self.loop: asyncio.AbstractEventLoop = self.thread.loop
        self._ready: deque[Delivery] = deque()
        self._waiting: dict[LiveTimer, None] = {}
        """Pending timers of nodes."""
        self._draining = False
        self._stopped = False
        super().__init__(seed)
        self.loop.call_soon_threadsafe(self._heartbeat)

    @property
    def is_own_thread(self) -> bool:
        """True on the thread that runs the nodes, which must not wait for them."""
        return self.thread.is_current

    def _heartbeat(self) -> None:
        """Let the clock advance, leaving out a stall since the last heartbeat."""
        now_ns = time.monotonic_ns() - self._started_ns - self._stalled_ns
        if now_ns > self._clock_limit_ns:
            self._stalled_ns += now_ns - self._clock_limit_ns
            now_ns = self._clock_limit_ns
        self._clock_limit_ns = now_ns + _STALL_NS
        self.loop.call_later(_HEARTBEAT_S, self._heartbeat)

    # Each message reads the time, so both methods repeat the computation to save a call.

    def now_us(self) -> int:
        now_ns = time.monotonic_ns() - self._started_ns - self._stalled_ns
        return (now_ns if now_ns < self._clock_limit_ns else self._clock_limit_ns) // 1000

    def now_ms(self) -> int:
        now_ns = time.monotonic_ns() - self._started_ns - self._stalled_ns
        if now_ns > self._clock_limit_ns:
            now_ns = self._clock_limit_ns
        return (self._epoch_ns + now_ns) // 1_000_000

    def now_ms_ahead(self, ahead_us: int) -> int:
        return (self._epoch_ns + (self.now_us() + ahead_us) * 1000) // 1_000_000

    def call_later(
        self, node: Endpoint | None, delay_us: int, callback: Callable[[], object]
    ) -> LiveTimer:
        waiting = self._waiting
        timer = LiveTimer(node, callback, self.now_us() + delay_us, self._stalled_ns, waiting)
        if self.recorder is not None:
            timer.cause = self.begin_step()
        if delay_us <= 0:
            timer.handle = self.loop.call_soon(self._fire, timer)
        else:
            timer.handle = self.loop.call_later(delay_us / 1e6, self._fire, timer)
            if node is not None:
                waiting[timer] = None
        return timer

    def move_timers(self, process: Process, before_ppm: int, after_ppm: int) -> None:
        now_us = self.now_us()
        for timer in list(self._waiting):
            if (
                isinstance(timer.node, AbstractNode)
                and timer.node.process is process
                and timer.handle is not None
                and not timer.uses_runtime_clock
            ):
                remaining_us = rescaled(max(timer.due_us - now_us, 0), before_ppm, after_ppm)
                timer.due_us = now_us + remaining_us
                timer.stalled_ns = self._stalled_ns
                timer.handle.cancel()
                timer.handle = self.loop.call_later(remaining_us / 1e6, self._fire, timer)

    def _fire(self, timer: LiveTimer) -> None:
        node, callback = timer.node, timer.callback
        if callback is None:
            return
        if timer.stalled_ns != self._stalled_ns:
            timer.stalled_ns = self._stalled_ns
            remaining_us = timer.due_us - self.now_us()
            if remaining_us > 0:
                timer.handle = self.loop.call_later(remaining_us / 1e6, self._fire, timer)
                return
        self._waiting.pop(timer, None)
        if isinstance(node, AbstractNode) and node.blocked:
            if not node.stopped:
                node.process.held.append(lambda: self._fire_after_resume(timer))
            return
        timer.callback = None
        if timer.serves_many:
            self.cause = None
        elif self.recorder is not None and node is not None:
            self.cause = self.record_firing(node.name, name_of(callback), timer.cause)
        else:
            self.cause = timer.cause
        try:
            callback()
        except Exception as error:
            self.report_failure(node, error)
        if timer.serves_many and self.cause is None:
            self.record_firing_without_entries(node, callback, timer.cause)
        self.cause = None

    def _fire_after_resume(self, timer: LiveTimer) -> None:
        timer.cause = self.cause  # the event that resumed the process
        self._fire(timer)

    def enqueue(self, delivery: Delivery, delay_us: int) -> None:
        if delay_us > 0:
            self.loop.call_later(delay_us / 1e6, self.network.arrive, delivery)
            return
        self._ready.append(delivery)
        if not self._draining:
            self._draining = True
            self.loop.call_soon(self._drain)

    def _drain(self) -> None:
        ready = self._ready
        arrive = self.network.arrive
        try:
            for _ in range(_DRAIN_LIMIT):
                if not ready:
                    self._draining = False
                    return
                arrive(ready.popleft())
        except Exception as error:  # one message must not block all others for ever
            self.report_failure(None, error)
        self.loop.call_soon(self._drain)

    def run_in(self, process: Process | None, function: Callable[[], T]) -> T:
        return self.thread.call(function)

    def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True

        def halt() -> None:
            self.halt_all()
            self.network.clear()
            self._ready.clear()
            self._waiting.clear()

        self.thread.call(halt)
        self.thread.stop()
