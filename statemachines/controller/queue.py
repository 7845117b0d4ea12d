"""The controller's event queue, which is its actor's mailbox.

Every event is a message that the controller's actor sends to itself. It is delivered when its
turn has come: one event at a time, the next only when the coroutine that processes the last one
has returned, however often that was parked on ZooKeeper meanwhile. Each event is spent once:
processed, preempted when the queue is cleared, or dropped by whoever watches the messages.

Whoever puts an event never processes it: a timer of the host delivers it, so that events are
always handled by the controller's own actor, after the caller has finished.

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
"""An idle time after which the queue-time histogram starts anew."""

ENQUEUED = "enqueued"
STARTED = "started"
FINISHED = "finished"
PREEMPTED = "preempted"


class Mailbox(Protocol):
    """Queue of events: they are messages of an actor to itself."""

    def post(self, queued: QueuedEvent) -> bool:
        """Number and record an event that is sent.

        False: somebody holds it back, and calls ``queued.arrive`` when it may come.
        """
        ...

    def deliver(self, queued: QueuedEvent) -> None:
        """Its turn has come: call ``queued.take``, unless somebody drops the message."""
        ...

    def withdraw(self, queued: QueuedEvent) -> None:
        """Record that a posted event will not be delivered."""
        ...


_TOLD_MAX = 20
"""Events of the queue that a recorded run names; of all it has the number."""


class QueuedEvent:
    """An event in the queue, since when, and whether its time has come."""

    __slots__ = ("_manager", "_started", "enqueued_at_ms", "event", "letter", "spent")

    def __init__(
        self, manager: ControllerEventManager, event: ControllerEvent, enqueued_at_ms: int
    ) -> None:
        self._manager = manager
        self.event: ControllerEvent = event
        self.enqueued_at_ms: int = enqueued_at_ms
        self.letter: Any = None
        """The message that carries the event; of the mailbox."""
        self.spent: bool = False
        """Processing has started, or the event was preempted or dropped."""
        self._started: Pending[None] | None = None

    def arrive(self) -> None:
        """Join the queue: nobody holds the event back any more."""
        self._manager.arrived(self)

    def take(self) -> None:
        """Be processed now: the message that carries the event was delivered."""
        self._manager.take(self)

    async def await_processing(self) -> None:
        """Park until processing starts (or the event is preempted)."""
        if self.spent:
            return
        if self._started is None:
            self._started = Pending()
        await self._started

    def spend(self) -> None:
        """Mark the event as used up and wake who waits for that."""
        self.spent = True
        if self._started is not None:
            self._started.set_result(None)


class ControllerEventManager:
    """FIFO queue of events, and ``process``, its one consumer.

    ``preempt_queued_events`` false is Kafka before 2.2: cleared events vanish without a word.
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
        self._in_hand: Task[None] | None = None
        """Processes the event that was taken last, until that is done."""
        self._is_due = False
        """A timer of the host will take the next event."""
        self._closing = False
        self._running = False
        self._ended: Pending[None] = Pending()
        self._queue_time_reset_ms = queue_time_reset_ms
        self._queue_times = Histogram()
        self._idle_since_ms = host.now_ms()
        self.state: ControllerState = ControllerState.IDLE
        """Kind of the event being processed."""
        self.current: ControllerEvent | None = None
        """The event being processed."""
        self.timers: dict[ControllerState, Histogram] = {
            state: Histogram() for state in ControllerState if state.timer_name is not None
        }
        """Processing times in ms by state; every state with a timer is there."""
        self.on_event: Callable[[ControllerEvent, str], object] | None = None
        """Told of (event, phase): enqueued, started, finished, preempted."""

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def is_closed(self) -> bool:
        return self._closing

    @property
    def queue_times(self) -> Histogram:
        """Times in ms that events waited; starts anew after five idle minutes."""
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
        """Send an event; harmless (and useless) once closed."""
        self._forget_old_queue_times()
        queued = QueuedEvent(self, event, self._host.now_ms())
        if self.on_event is not None:
            self.on_event(event, ENQUEUED)
        if self._mailbox.post(queued):
            self.arrived(queued)
        return queued

    def arrived(self, queued: QueuedEvent) -> None:
        """Append an event that was sent."""
        self._queue.append(queued)
        self._tell_queue()
        self._look_soon()

    def _tell_queue(self) -> None:
        """Tell whoever records the run what waits."""
        tell = self._host.state_listener
        if tell is not None:
            names = [queued.event.name for queued in islice(self._queue, _TOLD_MAX)]
            tell("queue", None, names or None)
            tell("queue_length", None, len(self._queue))

    def _tell_event(self, event: ControllerEvent | None) -> None:
        """Tell whoever records the run what is being processed."""
        tell = self._host.state_listener
        if tell is not None:
            tell("event", None, None if event is None else event.name)

    def _look_soon(self) -> None:
        if self._queue and self._running and self._in_hand is None and not self._is_due:
            self._is_due = True
            self._host.call_later_ms(0, self._deliver_next)

    def _deliver_next(self) -> None:
        """Deliver the first event, unless another one is still in hand."""
        self._is_due = False
        if not self._running or self._in_hand is not None or not self._queue:
            return
        queued = self._queue.popleft()
        self._tell_queue()
        self._mailbox.deliver(queued)
        if not queued.spent:  # somebody who watches messages took it away
            queued.spend()
        self._look_soon()

    def clear_and_put(self, event: ControllerEvent) -> QueuedEvent:
        """Preempt everything queued, in order, then append ``event``."""
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
        """Take events until closed; once."""
        self._running = True
        self._look_soon()

    def take(self, queued: QueuedEvent) -> None:
        """Process an event that was delivered; one that comes late takes its turn again."""
        if self._in_hand is not None:
            self._queue.append(queued)
            self._tell_queue()
            return
        if isinstance(queued.event, ShutdownEventThread):
            queued.spend()
            self._running = False
            self._ended.set_result(None)
            return
        self._in_hand = task = Task(self._process(queued))
        task.add_done_callback(self._done)

    def _done(self, task: Pending[None]) -> None:
        self._in_hand = None
        self._look_soon()

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
        """Preempt what waits, let the event in hand finish, take no more. Idempotent."""
        self._closing = True
        self.clear_and_put(ShutdownEventThread())
        if self._running:
            await self._ended
        self._queue.clear()
        self._queue_times.clear()
        self.timers.clear()

    def crash(self) -> None:
        """Stop at once, wherever the event in hand is."""
        self._running = False
        if self._in_hand is not None:
            self._in_hand.cancel()
