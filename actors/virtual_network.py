"""The network of the virtual runtime: messages that no rule is about take a short way.

Most links of a simulation have the one latency model and nothing else. What is sent over such a
link goes straight into the runtime's heap: no look at rules, no ``Delivery`` before it arrives.
"""

from __future__ import annotations

from heapq import heappush
from typing import TYPE_CHECKING, Any

from .network import Network
from .node import Delivery, Link, Node

if TYPE_CHECKING:
    from .virtual import VirtualRuntime


class VirtualNetwork(Network):
    """``Node.links`` are the links of the short way; closed whenever a rule or watcher changes."""

    _runtime: VirtualRuntime

    def __init__(self, runtime: VirtualRuntime) -> None:
        super().__init__(runtime)
        self._heap = runtime.heap
        self._random = runtime.rng.random
        self._open_links: dict[str, dict[str, Link]] = {}  # source -> target -> link
        # The delay of a message: at least this, plus what is drawn from so many values.
        self._low_us = 0
        self._values_us = 0  # 0: nothing is drawn

    @property
    def messages_sent(self) -> int:
        """Those with a number, and those that went the short way into the heap."""
        runtime = self._runtime
        return self._numbered + runtime.sequence - runtime.other_entries

    def links_from(self, machine: str) -> dict[str, Link]:
        return self._open_links.setdefault(machine, {})

    def post(
        self, sender: Node, target: Any, message: Any, correlation: int, is_reply: bool
    ) -> None:
        link = sender.links.get(target.machine)
        if link is None:
            Network.post(self, sender, target, message, correlation, is_reply)
            self._open(sender, target)
            return
        runtime = self._runtime
        arrival_us = runtime.now + self._low_us
        # Drawn as ``latency.Uniform`` draws: the call would cost more than the drawing.
        if self._values_us:
            arrival_us += int(self._random() * self._values_us)
        if arrival_us < link.free_at_us:
            arrival_us = link.free_at_us
        else:
            link.free_at_us = arrival_us
        runtime.sequence = sequence = runtime.sequence + 1
        heappush(self._heap, (arrival_us, sequence, target, sender, message, correlation, is_reply))

    def _open(self, sender: Node, target: Any) -> None:
        """Let the next message take the short way if no rule is about it."""
        source, destination = sender.machine, target.machine
        pair = (source, destination)
        if not (
            source == destination
            or self.is_watched
            or not self._low_us
            or self._loss
            or self._hold_filters
            or pair in self._cut
            or pair in self._link_loss
            or pair in self._link_models
            or not isinstance(target, Node)
        ):
            sender.links[destination] = self._link(source, destination)

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
        self._rules_changed()
        # What is on its way gets the form in which it can be watched.
        heap = self._heap
        for index, (time, sequence, target, sender, message, number, is_reply) in enumerate(heap):
            if target is not None:
                delivery = Delivery(sender, target, message, number, is_reply, None, -sequence)
                heap[index] = (time, sequence, None, delivery, None, 0, False)
