"""The threaded runtime: a stock Pykka thread per actor, for hunting real races."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any, TypeVar

import pykka

from ..clock import rescaled
from ..delivery import Delivery, Endpoint
from ..interfaces import AbstractNode, Process
from ..node import Node
from .live import LoopThread
from .runtime import Runtime
from .virtual_timer import name_of

T = TypeVar("T")


class ThreadedTimer:
    """A scheduled call, put into the inbox of its node when due."""

    __slots__ = ("_callback", "_cause", "_runtime", "_serves_many", "node", "uses_runtime_clock")

    def __init__(
        self,
        runtime: ThreadedRuntime,
        node: Endpoint | None,
        callback: Callable[[], object],
        *,
        serves_many: bool = False,
    ) -> None:
        self._runtime = runtime
        self.node: Endpoint | None = node
        self._cause = None if runtime.recorder is None else runtime.begin_step()
        self._serves_many = serves_many
        self.uses_runtime_clock: bool = False
        """True if the runtime's clock measures the delay, not the clock of the node's machine."""
        self._callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self._callback = None

    def due(self) -> None:
        """Pass the call to the node's own thread; called by the timer thread."""
        node = self.node
        if self._callback is None:
            return
        if not isinstance(node, AbstractNode):
            self._runtime.loop.call_soon_threadsafe(self.fire)
        elif not node.stopped:
            with contextlib.suppress(pykka.ActorDeadError):
                node.hand_over(self)

    def _due_after_resume(self) -> None:
        """Fire after the process has resumed, which becomes the cause of the firing."""
        self._cause = self._runtime.cause
        self.due()

    def fire(self) -> None:
        """Run the call, in the node's thread and under the lock of its process."""
        callback, node = self._callback, self.node
        if callback is None:
            return
        if isinstance(node, AbstractNode) and node.blocked:
            if not node.stopped:
                node.process.held.append(self._due_after_resume)
            return
        self._callback = None
        runtime = self._runtime
        if self._serves_many:
            runtime.cause = None
        else:
            runtime.begin_firing(node, callback, self._cause)
        try:
            callback()
        except Exception as error:
            runtime.report_failure(node, error)
        if self._serves_many and runtime.cause is None:
            runtime.record_firing_without_entries(node, callback, self._cause)
        runtime.cause = None


class _TimerThread(threading.Thread):
    """Fires timers in real time, sleeping until the earliest deadline."""

    def __init__(self) -> None:
        super().__init__(name="fakekafka-timers", daemon=True)
        self._condition = threading.Condition()
        self._heap: list[tuple[float, int, Callable[[], object], ThreadedTimer | None]] = []
        self._sequence = itertools.count()
        self._stopping = False

    def add(
        self, delay_s: float, due: Callable[[], object], timer: ThreadedTimer | None = None
    ) -> None:
        with self._condition:
            number = next(self._sequence)
            heapq.heappush(self._heap, (time.monotonic() + delay_s, number, due, timer))
            if self._heap[0][1] == number:
                self._condition.notify()

    def move(self, process: Process, before_ppm: int, after_ppm: int) -> None:
        """Reschedule the timers of a process after a change of its clock's rate."""
        with self._condition:
            now_s = time.monotonic()
            for place, (due_s, number, due, timer) in enumerate(self._heap):
                if (
                    timer is not None
                    and isinstance(timer.node, AbstractNode)
                    and timer.node.process is process
                    and not timer.uses_runtime_clock
                ):
                    remaining_us = rescaled(int((due_s - now_s) * 1e6), before_ppm, after_ppm)
                    self._heap[place] = (now_s + remaining_us / 1e6, number, due, timer)
            heapq.heapify(self._heap)
            self._condition.notify()

    def run(self) -> None:
        while True:
            with self._condition:
                while not self._stopping:
                    if not self._heap:
                        self._condition.wait()
                        continue
                    wait_s = self._heap[0][0] - time.monotonic()
                    if wait_s <= 0:
                        break
                    self._condition.wait(wait_s)
                if self._stopping:
                    return
                due = heapq.heappop(self._heap)[2]
            due()

    def stop(self) -> None:
        with self._condition:
            self._stopping = True
            self._heap.clear()
            self._condition.notify()
        self.join()


class ThreadedRuntime(Runtime):
    """Runs every node in a thread of its own, and all sockets in one event-loop thread."""

    name = "threaded"

    def __init__(self, seed: int | None = None) -> None:
        self._started_ns = time.monotonic_ns()
        self._epoch_ns = time.time_ns()
        self.thread: LoopThread = LoopThread("fakekafka-sockets")
        self.loop: AbstractEventLoop = self.thread.loop
        self._timers = _TimerThread()
        self._timers.start()
        self._causes = threading.local()
        self._threads: dict[str, threading.Thread] = {}
        self._ended: list[threading.Thread] = []
        self._stopped = False
        super().__init__(seed)

    @property
    def cause(self) -> int | None:
        """Sequence number of the event that the current thread handles."""
        return getattr(self._causes, "seq", None)

    @cause.setter
    def cause(self, seq: int | None) -> None:
        self._causes.seq = seq

    @property
    def is_own_thread(self) -> bool:
        """True on a thread of a node, of the timers or of the sockets."""
        here = threading.current_thread()
        return (
            self.thread.is_current or here is self._timers or here in list(self._threads.values())
        )

    def now_us(self) -> int:
        return (time.monotonic_ns() - self._started_ns) // 1000

    def now_ms(self) -> int:
        return (self._epoch_ns + time.monotonic_ns() - self._started_ns) // 1_000_000

    def now_ms_ahead(self, ahead_us: int) -> int:
        return (self._epoch_ns + (self.now_us() + ahead_us) * 1000) // 1_000_000

    def create_lock(self) -> Any:
        return threading.RLock()

    def call_later(
        self, node: Endpoint | None, delay_us: int, callback: Callable[[], object]
    ) -> ThreadedTimer:
        return self._set(ThreadedTimer(self, node, callback), delay_us)

    def set_shared_timer(
        self, node: AbstractNode, delay_us: int, callback: Callable[[], object]
    ) -> ThreadedTimer:
        return self._set(ThreadedTimer(self, node, callback, serves_many=True), delay_us)

    def _set(self, timer: ThreadedTimer, delay_us: int) -> ThreadedTimer:
        if delay_us <= 0:
            timer.due()
        else:
            self._timers.add(delay_us / 1e6, timer.due, timer)
        return timer

    def move_timers(self, process: Process, before_ppm: int, after_ppm: int) -> None:
        self._timers.move(process, before_ppm, after_ppm)

    def begin_firing(
        self, node: Endpoint | None, callback: Callable[[], object], cause: int | None
    ) -> None:
        """Make the firing of a timer the cause of what this thread does now."""
        if self.recorder is not None and node is not None:
            cause = self.record_firing(node.name, name_of(callback), cause)
        self.cause = cause

    def enqueue(self, delivery: Delivery, delay_us: int) -> None:
        if delay_us > 0:
            self._timers.add(delay_us / 1e6, lambda: self._post(delivery))
        else:
            self._post(delivery)

    def _post(self, delivery: Delivery) -> None:
        target = delivery.target
        if target.stopped:
            self.network.arrive(delivery)
        elif isinstance(target, Node):
            try:
                target.hand_over(delivery)
            except pykka.ActorDeadError:  # the target has just stopped
                self.network.arrive(delivery)
        elif not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.network.arrive, delivery)

    # -- actors, exactly as pykka.ThreadingActor runs them --------------------------------------

    def create_inbox(self, node: Node) -> Any:
        return pykka.ThreadingActor._create_actor_inbox()

    def create_future(self) -> Any:
        return pykka.ThreadingActor._create_future()

    def start_actor_loop(self, node: Node) -> None:
        def loop() -> None:
            lock = node.process.lock
            with lock:
                node.on_start()
            node._actor_loop_running()

        thread = threading.Thread(target=loop, name=node.name, daemon=True)
        self._threads[node.actor_urn] = thread
        thread.start()

    def discard(self, node: Node) -> None:
        super().discard(node)
        node.actor_stopped.set()
        node.actor_inbox.put(_NoOperationEnvelope())  # type: ignore[arg-type]
        thread = self._threads.pop(node.actor_urn, None)
        if thread is not None:
            self._ended = [*(t for t in self._ended if t.is_alive()), thread]

    def run_in(self, process: Process | None, function: Callable[[], T]) -> T:
        if process is None or process.lock is None:
            return function()
        with process.lock:
            return function()

    def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        self._timers.stop()
        for process in list(self.processes.values()):
            with process.lock:
                for node in list(process.nodes.values()):
                    node.halt()
        self.processes.clear()
        self.network.clear()
        for thread in self._ended:
            thread.join(5)
        self._ended.clear()
        self.thread.stop()


class _NoOperation:
    """A message without effect, which makes a stopping actor check its stop flag."""

    def fire(self) -> None:
        """Do nothing."""


class _NoOperationEnvelope:
    """The envelope of ``_NoOperation``, in the form that Pykka's loop expects."""

    message = _NoOperation()
    reply_to = None
