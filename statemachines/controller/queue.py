"""The controller's event queue and the loop that empties it.

One event at a time: the next is taken only when the coroutine that processes the last one has
returned, however often that was parked on ZooKeeper meanwhile. Each queued event is spent once:
either processed or, when the queue is cleared, preempted.

Whoever puts an event never processes it: a parked loop is woken by a timer of its host, so
that events are always handled by the controller's own actor, after the caller has finished.

Source: Kafka's ``ControllerEventManager``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from ...protocol.awaiting import Cancelled, Pending
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


class EventProcessor(Protocol):
    """Does what an event asks for."""

    async def process(self, event: ControllerEvent) -> None: ...


class QueuedEvent:
    """An event in the queue, since when, and whether its time has come."""

    __slots__ = ("_started", "enqueued_at_ms", "event", "spent")

    def __init__(self, event: ControllerEvent, enqueued_at_ms: int) -> None:
        self.event = event
        self.enqueued_at_ms = enqueued_at_ms
        self.spent = False
        """Processing has started, or the event was preempted."""
        self._started: Pending[None] | None = None

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
    """FIFO queue of events and its one consumer.

    ``preempt_queued_events`` false is Kafka before 2.0: cleared events vanish without a word.
    """

    def __init__(
        self,
        host: Host,
        processor: EventProcessor,
        *,
        preempt_queued_events: bool = True,
        log: Log = ignore_log,
        queue_time_reset_ms: int = QUEUE_TIME_RESET_MS,
    ) -> None:
        self._host = host
        self._processor = processor
        self._preempts = preempt_queued_events
        self._log = log
        self._queue: deque[QueuedEvent] = deque()
        self._parked: Pending[None] | None = None
        self._wake_is_due = False
        self._closing = False
        self._running = False
        self._ended: Pending[None] = Pending()
        self._queue_time_reset_ms = queue_time_reset_ms
        self._queue_times = Histogram()
        self._idle_since_ms = host.now_ms()
        self.state = ControllerState.IDLE
        """Kind of the event being processed."""
        self.current: ControllerEvent | None = None
        """The event being processed."""
        self.processed = 0
        """Events processed ever."""
        self.timers: dict[ControllerState, Histogram] = {
            state: Histogram() for state in ControllerState if state.timer_name is not None
        }
        """Processing times in ms by state; every state with a timer is there."""
        self.on_event: Callable[[ControllerEvent, str], object] | None = None
        """Told of (event, phase): enqueued, started, finished, preempted."""

    def __len__(self) -> int:
        return len(self._queue)

    def queued_events(self) -> list[ControllerEvent]:
        """What waits, next one first."""
        return [queued.event for queued in self._queue]

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
        """Append an event; harmless (and useless) once closed."""
        self._forget_old_queue_times()
        queued = QueuedEvent(event, self._host.now_ms())
        self._queue.append(queued)
        if self.on_event is not None:
            self.on_event(event, ENQUEUED)
        if not self._wake_is_due:
            self._wake_is_due = True
            self._host.call_later_ms(0, self._wake_up)
        return queued

    def _wake_up(self) -> None:
        self._wake_is_due = False
        parked, self._parked = self._parked, None
        if parked is not None:
            parked.set_result(None)

    def clear_and_put(self, event: ControllerEvent) -> QueuedEvent:
        """Preempt everything queued, in order, then append ``event``."""
        drained, self._queue = self._queue, deque()
        for queued in drained:
            queued.spend()
            if self.on_event is not None:
                self.on_event(queued.event, PREEMPTED)
            if self._preempts:
                queued.event.preempt()
        return self.put(event)

    async def run(self) -> None:
        """Process events until closed; run it as one task, once."""
        self._running = True
        try:
            while not self._closing:
                if not self._queue:
                    self._parked = Pending()
                    await self._parked
                    continue
                await self._process(self._queue.popleft())
        finally:
            self._running = False
            self._ended.set_result(None)

    async def _process(self, queued: QueuedEvent) -> None:
        event = queued.event
        if isinstance(event, ShutdownEventThread):
            queued.spend()
            return
        self.state = event.state
        self.current = event
        started_at_ms = self._host.now_ms()
        self._queue_times.update(started_at_ms - queued.enqueued_at_ms)
        if self.on_event is not None:
            self.on_event(event, STARTED)
        queued.spend()
        try:
            await self._processor.process(event)
        except Cancelled:
            raise
        except Exception as error:
            self._log("error", f"uncaught error processing event {event.name}: {error!r}")
        finally:
            self.current = None
            self.state = ControllerState.IDLE
            self.processed += 1
            self._idle_since_ms = self._host.now_ms()
            timer = self.timers.get(event.state)
            if timer is not None:
                timer.update(self._idle_since_ms - started_at_ms)
            if self.on_event is not None:
                self.on_event(event, FINISHED)

    async def close(self) -> None:
        """Preempt what waits, let the event in hand finish, stop the loop. Idempotent."""
        self._closing = True
        self.clear_and_put(ShutdownEventThread())
        self._wake_up()
        if self._running:
            await self._ended
        self._queue.clear()
        self._queue_times.clear()
        self.timers.clear()
