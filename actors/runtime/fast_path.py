"""The network of the virtual runtime: messages that no rule is about take a short way.

Most links of a simulation have the one latency model and nothing else. What is sent over such a
link goes straight into a heap of the runtime: no look at rules, no ``Delivery`` before it arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from typing import Any, Protocol

from ..delivery import Delivery, Link
from ..network.network import Network
from ..node import Node
from ..port import Handler, Port
from ..surroundings import Resident, RowBuffer, Sent, Surroundings

Message = tuple[int, int, Port, Port, Any, int, bool, Sent | None]
"""On its way: time, sequence, target, sender, message, correlation, is_reply, and in a recorded
run its sending."""


class MessageHeap(Surroundings, Protocol):
    """Virtual runtime as the short way needs it: its clock and its heap, as plain slots."""

    now: int
    """Microseconds since the runtime started."""
    sequence: int
    """Of the last entry of any heap."""
    messages: list[Message]
    """A heap of what takes the short way."""
    is_recorded: bool
    row_buffer: RowBuffer | None
    """Of the recorder, if it lets others write there."""
    entries_made: int
    """Of those that the other heap got, and of messages with a number; the rest of ``sequence``
    are messages without."""

    def put_back(self, time: int, sequence: int, delivery: Delivery) -> None:
        """Put a message that took the short way back as an entry, in its old place."""
        ...


class VirtualPort(Port):
    """``Port`` in fewer steps, where a clock is read by looking at it."""

    __slots__ = ("_posting",)

    def __init__(
        self,
        runtime: Surroundings,
        network: VirtualNetwork,
        node: Resident,
        machine: str,
        handlers: dict[type, Handler],
    ) -> None:
        super().__init__(runtime, network, node, machine, handlers)
        self._posting = network

    def ask_then(
        self,
        destination: str,
        message: Any,
        timeout_ms: float,
        answered: Callable[[Any], object],
    ) -> None:
        network = self._posting
        self.correlation = correlation = self.correlation + 1
        clock, cause = network.clock, None
        if clock.is_recorded:
            cause = clock.cause
            if cause is None:
                cause = clock.begin_step()
        self.requests[correlation] = (answered, destination, clock.now, timeout_ms, cause)
        if timeout_ms < self.next_expiry_patience_ms:
            self.expire_within(timeout_ms)
        target = network.ports.get(destination)
        if target is None:
            network.send(self.node, destination, message, correlation)
        else:
            network.post(self, target, message, correlation, False)

    def answer(self, request: Delivery, response: Any) -> None:
        correlation = request.correlation
        if not correlation or self.is_stopped:
            return
        if not request.message_id:  # it came by the short way, from a node
            self._posting.post(self, request.sender.port, response, correlation, True)
        elif request.event is not None and (port := getattr(request.sender, "port", None)):
            self._posting.post(self, port, response, correlation, True, request.event)
        else:
            self.network.reply(self.node, request, response)

    def _put(self, destination: str, message: Any, correlation: int) -> None:
        network = self._posting
        target = network.ports.get(destination)
        if target is None:
            network.send(self.node, destination, message, correlation)
        else:
            network.post(self, target, message, correlation, False)


class VirtualNetwork(Network):
    """``Port.links`` are the links of the short way; closed whenever a rule or watcher changes."""

    def __init__(self, runtime: MessageHeap) -> None:
        super().__init__(runtime)
        self.clock = runtime
        self.ports: dict[str, Port] = {}
        self._messages = runtime.messages
        self._random = runtime.rng.random
        self._open_links: dict[str, dict[str, Link]] = {}  # source -> target -> link
        # The delay of a message: at least this, plus what is drawn from so many values.
        self._low_us = 0
        self._values_us = 0  # 0: nothing is drawn

    @property
    def messages_sent(self) -> int:
        """Number of messages sent, those without a number of their own included."""
        runtime = self.clock
        return self._numbered + runtime.sequence - runtime.entries_made

    def add(self, node: Resident) -> None:
        super().add(node)
        if isinstance(node, Node):
            self.ports[node.name] = node.port

    def remove(self, node: Resident) -> None:
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
        """Send from node to node; ``of`` is the delivery of the request that this answers, in a
        recorded run."""
        link = sender.links.get(target.machine)
        if link is None:
            delivery = self._deliver_to(target.node, sender.node, message, correlation, is_reply)
            self.transmit(delivery if of is None else delivery._replace(event=of))
            self._open(sender, target)
            return
        runtime = self.clock
        arrival_us = runtime.now + self._low_us
        # Drawn as ``latency.Uniform`` draws: the call would cost more than the drawing.
        if self._values_us:
            random = self._random
            arrival_us += int(random() * self._values_us)
        if arrival_us < link.free_at_us:
            arrival_us = link.free_at_us
        else:
            link.free_at_us = arrival_us
        sent: Sent | None = None
        buffer = runtime.row_buffer
        if buffer is not None:  # what ``TraceSink.event`` does, without its steps
            cause = runtime.cause
            if cause is None:
                cause = runtime.begin_step()
            self._numbered = number = self._numbered + 1
            runtime.entries_made += 1
            rows = buffer.rows
            seq = buffer.first + len(rows)
            sent = (runtime.now, sender, target, number, message, cause, of, seq, arrival_us)
            rows.append(sent)
            if seq == buffer.last_of_chunk:
                buffer.cut()
        runtime.sequence = sequence = runtime.sequence + 1
        heappush(
            self._messages,
            (arrival_us, sequence, target, sender, message, correlation, is_reply, sent),
        )

    def _open(self, sender: Port, target: Port) -> None:
        """Open the short way for the next message if no rule is about it."""
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
        """Return whether nobody looks at what arrives but a recorder that takes rows."""
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
            # Without a least delay no link is opened: nothing may arrive at the very time at
            # which it is sent, before what waits for that time already.
            self._low_us, self._values_us = model.uniform_us or (0, 0)

    def watchers_changed(self) -> None:
        super().watchers_changed()
        self._rules_changed()
        # What is on its way gets the form in which it can be watched.
        messages, self._messages[:] = self._messages[:], ()
        for time, sequence, target, sender, message, correlation, is_reply, sent in messages:
            number, event = (-sequence, None) if sent is None else (sent[3], sent[7])
            delivery = Delivery(
                sender.node, target.node, message, correlation, is_reply, None, number, event
            )
            self.clock.put_back(time, sequence, delivery)
