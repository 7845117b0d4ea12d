"""The virtual runtime: events in the order of (time, sequence), no wall clock, one seed.

Order. Events due now that were scheduled earlier come first. Events scheduled for the current time
while it is being processed wait in ``_ready``, and come later in sequence by construction. So the
order is (time, sequence), without a heap operation for messages that have no delay.

Two heaps. Few messages are under way at a time, but dozens of timers are pending for long; in the
same heap every message would be compared with many timers.

Fast path. Most links of a simulation have the latency model of all links and no other rule. A
message sent over such a link goes straight into a heap, without a check of any rule and without a
``Delivery`` before it arrives.
"""

from __future__ import annotations

import functools
import gc
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, cast

from ...protocol.errors import UsageError
from ..clock import rescaled
from ..delivery import Delivery, Endpoint, Link
from ..interfaces import (
    AbstractNode,
    AbstractRuntime,
    Process,
    RowBuffer,
    Sent,
)
from ..network.network import Network
from ..node import Node
from ..port import Handler, Port
from .garbage import garbage
from .runtime import VIRTUAL_EPOCH_MS, LoopRuntime
from .virtual_timer import VirtualTimer, name_of

_SHORT_RUN_EVENTS_MAX = 5_000
"""Maximum number of events in a run after which the garbage collector is left alone."""

_NEVER_US = 1 << 62
_EVENTS_AT_INSTANT_MAX = 2_000_000
"""Maximum number of events at one instant, far beyond that of the largest cluster: a run with more
events is taken for an endless loop."""


def _call_and_test(action: Callable[[], object], until: Callable[[], object] | None) -> object:
    action()
    return until is not None and until()


class _UserFunctionFailed(BaseException):
    """Ends a run with the error of a user's function; a ``BaseException``, so that no handler
    catches it."""

    def __init__(self, error: Exception) -> None:
        self.error = error


Message = tuple[int, int, Port, Port, Any, int, bool, Sent | None]
"""A message on the fast path: time of arrival, sequence, target, sender, message, correlation,
is_reply and, in a recorded run, its sending."""
Entry = tuple[int, int, "VirtualTimer | Delivery | None"]
"""Time, sequence, and the item that is due; None ends the loop."""


class VirtualRuntime(LoopRuntime):
    """Deterministic: same seed, same code, same events."""

    name = "virtual"

    def __init__(
        self, seed: int = 0, make_network: Callable[[AbstractRuntime], Network] | None = None
    ) -> None:
        """Create a runtime; ``make_network`` replaces the fast network of virtual time."""
        self._make_network = make_network
        self.now: int = 0  # microseconds since the start
        self.sequence: int = 0  # of the last item put into a heap
        self.messages: list[Message] = []  # the heap of messages on the fast path
        self.entries_made: int = 0  # sequence numbers not used for unnumbered messages
        self._entries: list[Entry] = []  # the heap of everything else
        self._due_us = _NEVER_US  # time of the first entry
        self._ready: deque[VirtualTimer | Delivery] = deque()
        self.is_running: bool = False
        self.handled: int = 0
        """Number of messages delivered and timers run. A trace has more events, such as
        sendings."""
        self.condition_held: bool = False  # True if the condition ended the last run
        self.after_each: Callable[[], object] | None = None
        """Called after every event, before the next one."""
        super().__init__(seed)

    def _create_network(self) -> Network:
        return VirtualNetwork(self) if self._make_network is None else self._make_network(self)

    def create_port(self, node: Node, machine: str, handlers: dict[type, Handler]) -> Port:
        network = self.network
        if not isinstance(network, VirtualNetwork):
            return super().create_port(node, machine, handlers)
        return VirtualPort(self, network, node, machine, handlers)

    def now_us(self) -> int:
        return self.now

    def now_ms(self) -> int:
        return VIRTUAL_EPOCH_MS + self.now // 1000

    def wall_ms(self) -> int:
        return self.now_ms()  # virtual time misses nothing

    def now_ms_ahead(self, ahead_us: int) -> int:
        return VIRTUAL_EPOCH_MS + (self.now + ahead_us) // 1000

    def wall_ms_ahead(self, ahead_us: int) -> int:
        return self.now_ms_ahead(ahead_us)

    def call_later(
        self, node: Endpoint | None, delay_us: int, callback: Callable[[], object]
    ) -> VirtualTimer:
        if self.recorder is None:
            timer = VirtualTimer(node, callback)
        else:
            cause = self.cause
            timer = VirtualTimer(node, callback, self.begin_step() if cause is None else cause)
        if delay_us <= 0:
            self._ready.append(timer)
        else:
            self.add_entry(timer, delay_us)
        return timer

    def move_timers(self, process: Process, before_ppm: int, after_ppm: int) -> None:
        entries, now = self._entries, self.now
        for place, (time, sequence, item) in enumerate(entries):
            if (
                type(item) is VirtualTimer
                and isinstance(item.node, AbstractNode)
                and item.node.process is process
                and not item.uses_runtime_clock
            ):
                remaining_us = rescaled(time - now, before_ppm, after_ppm)
                entries[place] = (now + remaining_us, sequence, item)
        heapify(entries)
        self._due_us = entries[0][0] if entries else _NEVER_US

    def enqueue(self, delivery: Delivery, delay_us: int) -> None:
        if delay_us <= 0:
            self._ready.append(delivery)
        else:
            self.add_entry(delivery, delay_us)

    def add_entry(self, item: VirtualTimer | Delivery, delay_us: int) -> None:
        """Schedule an item after a delay that is above 0."""
        self.entries_made += 1
        self.sequence = sequence = self.sequence + 1
        time = self.now + delay_us
        heappush(self._entries, (time, sequence, item))
        if time < self._due_us:
            self._due_us = time

    def put_back(self, time: int, sequence: int, delivery: Delivery) -> None:
        """Turn a message on the fast path into an entry at the same place in the order."""
        heappush(self._entries, (time, sequence, delivery))
        self._due_us = self._entries[0][0]

    def next_time_us(self) -> int | None:
        """Return the time of the next event; None if there is none."""
        if self._ready:
            return self.now
        entries = self._entries
        while entries:
            item = entries[0][2]
            if type(item) is not VirtualTimer or item.callback is not None:
                break
            self._pop_entry()
        if self.messages:
            return min(self.messages[0][0], self._due_us)
        return self._due_us if entries else None

    def step(self) -> bool:
        """Run one event; returns False if there is none."""
        next_us = self.next_time_us()
        if next_us is None:
            return False
        self.handled += 1
        if self._ready and not self._is_due(self.now):
            try:
                self._run_item(self._ready.popleft())
            except _UserFunctionFailed as failed:
                raise failed.error from None
            return True
        self.now = next_us
        if self._is_message_first():
            self._deliver_by_slow_path(heappop(self.messages))
        else:
            item = self._pop_entry()
            assert item is not None
            self._run_item(item)
        return True

    def _deliver_by_slow_path(self, under_way: Message) -> None:
        """Deliver a message of the fast path to its target, with all checks."""
        _, _, target, sender, message, correlation, is_reply, sent = under_way
        number, event = (0, None) if sent is None else (sent.message_id, sent.seq)
        self.network.arrive(
            Delivery(sender.node, target.node, message, correlation, is_reply, None, number, event)
        )

    def _is_due(self, now: int) -> bool:
        """Return whether an item in one of the heaps is due at a time."""
        messages = self.messages
        return self._due_us <= now or (bool(messages) and messages[0][0] <= now)

    def _is_message_first(self) -> bool:
        messages, entries = self.messages, self._entries
        return bool(messages) and (not entries or messages[0][:2] < entries[0][:2])

    def _pop_entry(self) -> VirtualTimer | Delivery | None:
        entries = self._entries
        item = heappop(entries)[2]
        self._due_us = entries[0][0] if entries else _NEVER_US
        return item

    def _run_item(self, item: VirtualTimer | Delivery) -> None:
        if type(item) is VirtualTimer:
            self._fire(item)
        else:
            self.network.arrive(item)  # type: ignore[arg-type]

    def run(self, limit_us: int | None, until: Callable[[], object] | None = None) -> int:
        """Run events up to a time (inclusive), or until a condition holds after an event.

        Returns the number of events run. If no events are left before ``limit_us``, the clock moves
        to the limit. ``condition_held`` is set if the condition ended the run. Raises
        ``RuntimeError`` if called from within an event.
        """
        if self.is_running:
            raise RuntimeError("an event cannot run events; it has to end first")
        # The limit is an entry of the heap, after all that is due by then and before the rest.
        end: Entry = (_NEVER_US if limit_us is None else limit_us + 1, 0, None)
        heappush(self._entries, end)
        self._due_us = self._entries[0][0]
        thresholds = garbage.raise_thresholds(is_recorded=self.row_buffer is not None)
        if self.after_each is not None:
            until = functools.partial(_call_and_test, self.after_each, until)
        self.is_running = True
        self.condition_held = False
        events_before = self.handled
        has_reached_end = False
        try:
            has_reached_end = self._run(until)
        except _UserFunctionFailed as failed:
            raise failed.error from None
        finally:
            self.is_running = False
            gc.set_threshold(*thresholds)
            if self.row_buffer is not None and self.handled > _SHORT_RUN_EVENTS_MAX:
                garbage.freeze()
            if not has_reached_end and end in self._entries:
                self._entries.remove(end)
                heapify(self._entries)
                self._due_us = self._entries[0][0] if self._entries else _NEVER_US
        if has_reached_end and limit_us is not None and self.now < limit_us:
            self.now = limit_us
        return self.handled - events_before

    def _run(self, until: Callable[[], object] | None) -> bool:
        """Run events; returns True at the limit, and False if the condition holds before."""
        messages, ready, count, count_at_instant, instant_us = self.messages, self._ready, 0, 0, -1
        try:
            while True:
                if ready and not self._is_due(self.now):
                    count_at_instant = count_at_instant + 1 if self.now == instant_us else 1
                    instant_us = self.now
                    if count_at_instant > _EVENTS_AT_INSTANT_MAX:
                        raise self._endless_loop_error(ready[0])
                    due = ready.popleft()
                    if type(due) is VirtualTimer and due.callback is None:
                        continue
                    self._run_item(due)
                elif messages and (
                    (time := messages[0][0]) < self._due_us
                    or (time == self._due_us and self._is_message_first())
                ):
                    under_way = heappop(messages)
                    self.now, _, target, sender, message, correlation, is_reply, sent = under_way
                    # The same as ``arrive`` and ``TraceSink.event``, in fewer steps.
                    number = 0
                    seq: int | None = None
                    if sent is not None and (
                        target.accepts_requests or (is_reply and not target.is_blocked)
                    ):
                        buffer: RowBuffer = self.row_buffer  # type: ignore[assignment]
                        rows = buffer.rows
                        arrived = buffer.first + len(rows)
                        rows.append(sent)
                        self.cause = seq = arrived
                        number = sent.message_id
                        if arrived == buffer.last_of_chunk:
                            buffer.cut()
                    try:
                        if is_reply and not target.is_blocked:
                            waiting = target.requests.pop(correlation, None)
                            if waiting is not None:
                                waiting[0](message)
                        elif target.accepts_requests and not is_reply:
                            node = target.node
                            delivery = Delivery(
                                sender.node, node, message, correlation, False, None, number, seq
                            )
                            handler = target.handlers.get(type(message))
                            if handler is None:
                                handler = node.find_handler(type(message))
                            try:
                                response = handler(message, delivery)
                            except Exception as error:
                                node.handler_failed(error, delivery)
                            else:
                                if response is not None:
                                    target.answer(delivery, response)
                        else:
                            self._deliver_by_slow_path(under_way)
                    except Exception as error:
                        self.report_failure(target.node, error)
                    if seq is not None:
                        self.cause = None
                else:
                    now = self._due_us
                    item = self._pop_entry()
                    if item is None:
                        return True
                    if type(item) is VirtualTimer and item.callback is None:
                        continue
                    self.now = now
                    self._run_item(item)
                count += 1
                if until is not None and until():
                    self.condition_held = True
                    return False
        finally:
            self.handled += count

    def _endless_loop_error(self, item: VirtualTimer | Delivery) -> UsageError:
        node: Endpoint | None
        if type(item) is VirtualTimer:
            node, what = item.node, f"a call of {getattr(item.callback, '__qualname__', '?')}"
        else:
            node, what = item.target, type(item.message).__name__  # type: ignore[union-attr]
        where = f" at {node.name}" if node is not None else ""
        return UsageError(
            f"{_EVENTS_AT_INSTANT_MAX:,} events have run at {self.now / 1000:g} ms without any "
            f"time passing; next is {what}{where}. This looks like an endless loop: give the "
            "network a latency, or add a delay to what repeats"
        )

    def _fire(self, timer: VirtualTimer) -> None:
        callback, node = timer.callback, timer.node
        if callback is None:
            return  # cancelled while its process was paused
        if isinstance(node, AbstractNode) and node.blocked:
            if not node.stopped:
                self._hold(timer, node)
            return
        timer.callback = None
        if self.recorder is None:
            try:
                callback()
            except Exception as error:
                self.report_failure(node, error)
            return
        if timer.serves_many:
            self.cause = None
        elif node is not None:
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

    def _hold(self, timer: VirtualTimer, node: AbstractNode) -> None:
        def fire_after_resume() -> None:
            timer.cause = self.cause  # the event that resumed the process
            self._fire(timer)

        node.process.held.append(fire_after_resume)

    def report_user_failure(self, kind: str, function: object, error: Exception) -> None:
        """End the run with the error after the current event."""

        def end() -> None:
            raise _UserFunctionFailed(error)

        self._ready.appendleft(VirtualTimer(None, end))

    def stop(self) -> None:
        garbage.unfreeze()
        self.halt_all()
        self.messages.clear()
        self._entries.clear()
        self._ready.clear()
        self._due_us = _NEVER_US
        if self.is_running:
            heappush(self._entries, (0, 0, None))
            self._due_us = 0
        self.network.clear()


class VirtualPort(Port):
    """A ``Port`` with fewer steps, which reads the virtual clock as an attribute."""

    __slots__ = ("_virtual_network",)

    def __init__(
        self,
        runtime: AbstractRuntime,
        network: VirtualNetwork,
        node: AbstractNode,
        machine: str,
        handlers: dict[type, Handler],
    ) -> None:
        super().__init__(runtime, network, node, machine, handlers)
        self._virtual_network = network

    def ask_then(
        self,
        destination: str,
        message: Any,
        timeout_ms: float,
        answered: Callable[[Any], object],
    ) -> None:
        network = self._virtual_network
        correlation = self.correlation + 1
        self.correlation: int = correlation
        clock, cause = network.clock, None
        if clock.recorder is not None:
            cause = clock.cause
            if cause is None:
                cause = clock.begin_step()
        self.requests[correlation] = (answered, destination, clock.now, timeout_ms, cause)
        if timeout_ms < self.next_expiry_timeout_ms:
            self.schedule_expiry(timeout_ms)
        target = network.ports.get(destination)
        if target is None:
            network.send(self.node, destination, message, correlation)
        else:
            network.post(self, target, message, correlation, False)

    def answer(self, request: Delivery, response: Any) -> None:
        correlation = request.correlation
        if not correlation or self.is_stopped:
            return
        requester = request.sender
        if not request.message_id:  # the request took the fast path
            requester_node = cast(Node, requester)
            self._virtual_network.post(self, requester_node.port, response, correlation, True)
        elif request.event is not None and isinstance(requester, Node):
            self._virtual_network.post(
                self, requester.port, response, correlation, True, request.event
            )
        else:
            self.network.reply(self.node, request, response)

    def _put(self, destination: str, message: Any, correlation: int) -> None:
        network = self._virtual_network
        target = network.ports.get(destination)
        if target is None:
            network.send(self.node, destination, message, correlation)
        else:
            network.post(self, target, message, correlation, False)


class VirtualNetwork(Network):
    """A network with a fast path, over the links in ``Port.links``. A link is removed from them
    when any rule or watcher changes, and added again by the next message that no rule affects."""

    def __init__(self, runtime: VirtualRuntime) -> None:
        super().__init__(runtime)
        self.clock = runtime
        self.ports: dict[str, Port] = {}
        self._messages = runtime.messages
        self._random = runtime.rng.random
        self._open_links: dict[str, dict[str, Link]] = {}  # source -> target -> link
        # The delay of a message is drawn uniformly from ``_values_us`` values from ``_low_us`` on.
        self._low_us = 0
        self._values_us = 0  # 0 if the delay is constant

    @property
    def messages_sent(self) -> int:
        """Number of messages sent, including those without a number of their own."""
        runtime = self.clock
        return self._numbered + runtime.sequence - runtime.entries_made

    def add(self, node: AbstractNode) -> None:
        super().add(node)
        if isinstance(node, Node):
            self.ports[node.name] = node.port

    def remove(self, node: AbstractNode) -> None:
        super().remove(node)
        if node.name not in self.nodes:
            self.ports.pop(node.name, None)

    def clear(self) -> None:
        super().clear()
        self.ports.clear()

    def links_from(self, machine: str) -> dict[str, Link]:
        return self._open_links.setdefault(machine, {})

    def post(
        self,
        sender: Port,
        target: Port,
        message: Any,
        correlation: int,
        is_reply: bool,
        of: int | None = None,
    ) -> None:
        """Send a message from node to node; in a recorded run, ``of`` is the delivery of the
        request that the message answers."""
        link = sender.links.get(target.machine)
        if link is None:
            delivery = self._deliver_to(target.node, sender.node, message, correlation, is_reply)
            self.transmit(delivery if of is None else delivery.following(of))
            self._open_fast_path(sender, target)
            return
        runtime = self.clock
        arrival_us = runtime.now + self._low_us
        # The same as ``latency.Uniform.draw_us``, as a call would cost more than the draw.
        if self._values_us:
            random = self._random
            arrival_us += int(random() * self._values_us)
        if arrival_us < link.free_at_us:
            arrival_us = link.free_at_us
        else:
            link.free_at_us = arrival_us
        sent: Sent | None = None
        buffer = runtime.row_buffer
        if buffer is not None:  # the same as ``TraceSink.event``, in fewer steps
            cause = runtime.cause
            if cause is None:
                cause = runtime.begin_step()
            self._numbered = number = self._numbered + 1
            runtime.entries_made += 1
            rows = buffer.rows
            seq = buffer.first + len(rows)
            sent = Sent(runtime.now, sender, target, number, message, cause, of, seq, arrival_us)
            rows.append(sent)
            if seq == buffer.last_of_chunk:
                buffer.cut()
        runtime.sequence = sequence = runtime.sequence + 1
        heappush(
            self._messages,
            (arrival_us, sequence, target, sender, message, correlation, is_reply, sent),
        )

    def _open_fast_path(self, sender: Port, target: Port) -> None:
        """Open the fast path between two machines for the next message, unless a rule applies."""
        source, destination = sender.machine, target.machine
        pair = (source, destination)
        if not (
            source == destination
            or (self.is_watched and not self._is_recorded_only())
            or not self._low_us
            or self._loss
            or self._hold_filters
            or self._bandwidth
            or pair in self._link_bandwidth
            or pair in self._cut
            or pair in self._link_loss
            or pair in self._link_models
        ):
            sender.links[destination] = self._link(source, destination)

    def _is_recorded_only(self) -> bool:
        """Return whether a recorder that takes rows is the only watcher."""
        return not (self._observers or self._interceptors) and self.clock.row_buffer is not None

    def _rules_changed(self) -> None:
        for links in self._open_links.values():
            links.clear()
        model = self._model
        if model is None:
            self._low_us = 0
        elif model.constant_us is not None:
            self._low_us, self._values_us = model.constant_us, 0
        else:
            # If the delay may be 0, no link is opened: a message must not arrive at the time at
            # which it is sent before other items that are already due at that time.
            self._low_us, self._values_us = model.uniform_us or (0, 0)

    def watchers_changed(self) -> None:
        super().watchers_changed()
        self._rules_changed()
        # Messages under way become deliveries, which can be watched.
        messages, self._messages[:] = self._messages[:], ()
        for time, sequence, target, sender, message, correlation, is_reply, sent in messages:
            number, event = (-sequence, None) if sent is None else (sent.message_id, sent.seq)
            delivery = Delivery(
                sender.node, target.node, message, correlation, is_reply, None, number, event
            )
            self.clock.put_back(time, sequence, delivery)
