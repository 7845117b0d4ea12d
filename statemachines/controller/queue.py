"""The controller's event queue, which is its actor's mailbox.

Every event is a message that the controller's actor sends to itself. Events are delivered one at a
time: the next one only when the coroutine that processes the last one has returned, however often
that coroutine waits for ZooKeeper. Each event is spent once: it is processed, preempted when the
queue is cleared, or dropped on delivery.

``put`` never processes an event itself: a timer of the host delivers it, so that the controller's
own actor handles all events, after the caller has finished.

Source: Kafka's ``ControllerEventManager``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any, Protocol

from ...protocol.awaiting import Cancelled, Pending, Task
from ...protocol.host import Host
from ..zookeeper.errors import Log, ignore_log
from .events import ControllerEvent, ControllerState, ShutdownEventThread
from .histogram import Histogram

QUEUE_TIME_RESET_MS = 300_000
"""Idle time in milliseconds after which the histogram of queue times is reset."""

ENQUEUED = "enqueued"
STARTED = "started"
FINISHED = "finished"
PREEMPTED = "preempted"


class Mailbox(Protocol):
    """The mailbox of an actor, which carries events as messages of the actor to itself."""

    def post(self, queued: QueuedEvent) -> bool:
        """Number and record an event that is sent.

        Returns False if the message is held back; ``queued.arrive`` is called on its release.
        """
        ...

    def deliver(self, queued: QueuedEvent) -> None:
        """Call ``queued.take``, as the event's turn has come, unless the message is dropped."""
        ...

    def withdraw(self, queued: QueuedEvent) -> None:
        """Record that a posted event will not be delivered."""
        ...


_RECORDED_NAMES_MAX = 20
"""Maximum number of queued events recorded by name; the length of the queue is always recorded."""


class QueuedEvent:
    """An event in the queue, with the time of its arrival."""

    __slots__ = ("_manager", "_started", "enqueued_at_ms", "event", "letter", "spent")

    def __init__(
        self, manager: ControllerEventManager, event: ControllerEvent, enqueued_at_ms: int
    ) -> None:
        self._manager = manager
        self.event: ControllerEvent = event
        self.enqueued_at_ms: int = enqueued_at_ms
        self.letter: Any = None
        """The mailbox's message that carries the event."""
        self.spent: bool = False
        """True once processing has started, or the event was preempted or dropped."""
        self._started: Pending[None] | None = None

    def arrive(self) -> None:
        """Join the queue, as the message is no longer held back."""
        self._manager.arrived(self)

    def take(self) -> None:
        """Process the event, as the message that carries it was delivered."""
        self._manager.take(self)

    async def await_processing(self) -> None:
        """Wait until processing starts, or the event is preempted or dropped."""
        if self.spent:
            return
        if self._started is None:
            self._started = Pending()
        await self._started

    def spend(self) -> None:
        """Mark the event as spent, and wake the coroutine in ``await_processing``."""
        self.spent = True
        if self._started is not None:
            self._started.set_result(None)


class ControllerEventManager:
    """FIFO queue of events with a single consumer, ``process``.

    Without ``preempt_queued_events``, cleared events vanish without a callback, as before 2.2.
    """

    def __init__(
        self,
        host: Host,
        process: Callable[[ControllerEvent], Awaitable[None]],
        mailbox: Mailbox,
        *,
        preempt_queued_events: bool = True,
        log: Log = ignore_log,
        queue_time_reset_ms: int = QUEUE_TIME_RESET_MS,
    ) -> None:
        self._host = host
        self._process_event = process
        self._mailbox = mailbox
        self._preempts = preempt_queued_events
        self._log = log
        self._queue: deque[QueuedEvent] = deque()
        self._processing_task: Task[None] | None = None
        """Task that processes the current event; None if there is none."""
        self._is_delivery_scheduled = False
        """True while a timer of the host is set to deliver the next event."""
        self._closing = False
        self._running = False
        self._stopped: Pending[None] = Pending()
        self._queue_time_reset_ms = queue_time_reset_ms
        self._queue_times = Histogram()
        self._idle_since_ms = host.now_ms()
        self.state: ControllerState = ControllerState.IDLE
        """State of the event being processed."""
        self.current: ControllerEvent | None = None
        """The event being processed."""
        self.timers: dict[ControllerState, Histogram] = {
            state: Histogram() for state in ControllerState if state.timer_name is not None
        }
        """Processing times in milliseconds by state, for every state that has a timer."""
        self.on_event: Callable[[ControllerEvent, str], object] | None = None
        """Called with (event, phase); the phase is enqueued, started, finished or preempted."""

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def is_closed(self) -> bool:
        return self._closing

    @property
    def queue_times(self) -> Histogram:
        """Times in milliseconds that events waited; reset after five idle minutes."""
        self._forget_old_queue_times()
        return self._queue_times

    def _forget_old_queue_times(self) -> None:
        if (
            self.current is None
            and not self._queue
            and self._host.now_ms() - self._idle_since_ms > self._queue_time_reset_ms
        ):
            self._queue_times.clear()

    def put(self, event: ControllerEvent) -> QueuedEvent:
        """Queue an event; once the queue is closed, the event is never processed."""
        self._forget_old_queue_times()
        queued = QueuedEvent(self, event, self._host.now_ms())
        if self.on_event is not None:
            self.on_event(event, ENQUEUED)
        if self._mailbox.post(queued):
            self.arrived(queued)
        return queued

    def arrived(self, queued: QueuedEvent) -> None:
        """Append an event whose message was sent or released."""
        self._queue.append(queued)
        self._tell_queue()
        self._schedule_delivery()

    def _tell_queue(self) -> None:
        """Report the waiting events to the recorder of the run."""
        tell = self._host.state_listener
        if tell is not None:
            names = [queued.event.name for queued in islice(self._queue, _RECORDED_NAMES_MAX)]
            tell("queue", None, names or None)
            tell("queue_length", None, len(self._queue))

    def _tell_event(self, event: ControllerEvent | None) -> None:
        """Report the event being processed to the recorder of the run."""
        tell = self._host.state_listener
        if tell is not None:
            tell("event", None, None if event is None else event.name)

    def _schedule_delivery(self) -> None:
        if (
            self._queue
            and self._running
            and self._processing_task is None
            and not self._is_delivery_scheduled
        ):
            self._is_delivery_scheduled = True
            self._host.call_later_ms(0, self._deliver_next)

    def _deliver_next(self) -> None:
        """Deliver the first event, unless another one is still being processed."""
        self._is_delivery_scheduled = False
        if not self._running or self._processing_task is not None or not self._queue:
            return
        queued = self._queue.popleft()
        self._tell_queue()
        self._mailbox.deliver(queued)
        if not queued.spent:  # the network dropped the message, or holds it for a paused process
            queued.spend()
        self._schedule_delivery()

    def clear_and_put(self, event: ControllerEvent) -> QueuedEvent:
        """Preempt all queued events in order, then append ``event``."""
        drained, self._queue = self._queue, deque()
        for queued in drained:
            queued.spend()
            self._mailbox.withdraw(queued)
            if self.on_event is not None:
                self.on_event(queued.event, PREEMPTED)
            if self._preempts:
                queued.event.preempt()
        return self.put(event)

    def start(self) -> None:
        """Start to process events, until closed; call this once."""
        self._running = True
        self._schedule_delivery()

    def take(self, queued: QueuedEvent) -> None:
        """Process a delivered event; if another is being processed, append it to the queue."""
        if self._processing_task is not None:
            self._queue.append(queued)
            self._tell_queue()
            return
        if isinstance(queued.event, ShutdownEventThread):
            queued.spend()
            self._running = False
            self._stopped.set_result(None)
            return
        self._processing_task = task = Task(self._process(queued))
        task.add_done_callback(self._on_processed)

    def _on_processed(self, task: Pending[None]) -> None:
        self._processing_task = None
        self._schedule_delivery()

    async def _process(self, queued: QueuedEvent) -> None:
        event = queued.event
        self.state = event.state
        self.current = event
        self._tell_event(event)
        started_at_ms = self._host.now_ms()
        self._queue_times.update(started_at_ms - queued.enqueued_at_ms)
        if self.on_event is not None:
            self.on_event(event, STARTED)
        queued.spend()
        try:
            await self._process_event(event)
        except Cancelled:
            raise
        except Exception as error:
            self._log("error", f"uncaught error processing event {event.name}: {error!r}")
        finally:
            self.current = None
            self._tell_event(None)
            self.state = ControllerState.IDLE
            self._idle_since_ms = self._host.now_ms()
            timer = self.timers.get(event.state)
            if timer is not None:
                timer.update(self._idle_since_ms - started_at_ms)
            if self.on_event is not None:
                self.on_event(event, FINISHED)

    async def close(self) -> None:
        """Preempt waiting events, let the current one finish, and process no more. Idempotent."""
        self._closing = True
        self.clear_and_put(ShutdownEventThread())
        if self._running:
            await self._stopped
        self._queue.clear()
        self._queue_times.clear()
        self.timers.clear()

    def crash(self) -> None:
        """Stop at once, in the middle of the current event."""
        self._running = False
        if self._processing_task is not None:
            self._processing_task.cancel()
