"""The network: the only way from one node to another, and the one point that all messages pass.

Delay, loss, partitions, holding back, injected answers, observing and tracing all happen here.
Messages over a link keep their order, as over a TCP connection. Messages between nodes of the same
process have no delay and no loss. With no rule in force, a message costs one check of
``_is_plain``.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

from ...protocol.awaiting import Disconnected
from ...protocol.names import machine_of
from ..delivery import Delivery, Endpoint, Link
from ..interfaces import AbstractNode, AbstractRuntime, Letter
from ..silence import Silence
from .latency import LatencyModel
from .past_rules import PastRules
from .rules import NetworkRules
from .sizes import message_bytes

Filter = Callable[[Delivery], bool]
_SLOW_LINK_DIVISOR = 10
"""Divisor of a wait: a link that takes less than this part of the wait did not cause it."""
Interceptor = Callable[[Delivery], bool]
"""Called with a message before its target gets it; returns True to handle the message itself."""


class ConnectionAttempt(NamedTuple):
    """A request to a process that is not running, while a cut link prevents its refusal."""

    sender: Endpoint
    destination: str
    message: Any
    correlation: int

    def is_pending(self) -> bool:
        """Return whether the requester still waits for an answer."""
        return self.sender.is_waiting_for(self.correlation)


def _no_delay(_rng: random.Random) -> int:
    return 0


def _has_byte_delays(delivery: Delivery) -> bool:
    """Return whether a message crosses a TCP connection on which the bytes are delayed instead."""
    requester = delivery.target if delivery.is_reply else delivery.sender
    return requester.has_byte_delays


def _has_byte_faults(delivery: Delivery) -> bool:
    """Return whether cuts and losses, too, apply to the bytes of the message's connection."""
    requester = delivery.target if delivery.is_reply else delivery.sender
    return requester.has_byte_faults


class Network:
    """Links between machines. Rules apply to machines: ``broker-1`` includes its fetchers."""

    def __init__(self, runtime: AbstractRuntime) -> None:
        self._runtime = runtime
        self.latency_us: int = 0  # delay of every link while ``_is_plain``
        self._is_plain = True  # constant latency and no rule
        self._has_rules = False  # some rule beside the model of all links
        self._model: LatencyModel | None = None
        self._draw_us: Callable[[random.Random], int] = _no_delay
        self._link_models: dict[tuple[str, str], LatencyModel] = {}
        self._cut: dict[tuple[str, str], int | None] = {}  # link -> event that cut it
        # link -> event that cut it, time at which it was restored
        self._restored_cuts: dict[tuple[str, str], tuple[int | None, int]] = {}
        self._loss = 0.0
        self._losses = PastRules()
        self._delays = PastRules()
        self._link_loss: dict[tuple[str, str], float] = {}
        self._bandwidth = 0.0  # bytes per microsecond; 0 is unlimited
        self._link_bandwidth: dict[tuple[str, str], float] = {}
        self._bandwidth_by: int | None = None  # the event that set it
        self._link_bandwidth_by: dict[tuple[str, str], int | None] = {}
        self._sending_until_us: dict[tuple[str, str], float] = {}  # of links with a bandwidth
        self._links: dict[tuple[str, str], Link] = {}  # by (source, target) machine
        # A message sent under new rules must not overtake messages under way under old ones.
        self._free_at_min_us = 0
        self._hold_filters: list[Filter] = []
        self._hold_causes: list[int | None] = []  # the event that began each filter
        self._interceptors: list[Interceptor] = []
        self._observers: list[Callable[[Delivery], object]] = []
        self.nodes: dict[str, AbstractNode] = {}
        # Messages sent over links that are now cut: TCP keeps and retransmits them.
        self._stalled: dict[tuple[str, str], list[Delivery]] = {}
        # Attempts to reach a process that had ended, over links that are now cut.
        self._attempts: dict[tuple[str, str], list[ConnectionAttempt]] = {}
        # Nodes that do not know yet that a process has ended, as the link from it was cut then.
        self._pending_disconnects: dict[
            tuple[str, str], list[tuple[AbstractNode, frozenset[str]]]
        ] = {}
        self._held: list[tuple[Delivery, int, Filter]] = []
        self._heal_listeners: list[Callable[[], object]] = []
        self._numbered = 0  # messages with a number; also the number of the last one

    @property
    def messages_sent(self) -> int:
        return self._numbered

    # -- nodes ---------------------------------------------------------------------------------

    def add(self, node: AbstractNode) -> None:
        self.nodes[node.name] = node

    def remove(self, node: AbstractNode) -> None:
        if self.nodes.get(node.name) is node:
            del self.nodes[node.name]

    def clear(self) -> None:
        self.nodes.clear()
        self._held.clear()
        self._stalled.clear()
        self._attempts.clear()
        self._pending_disconnects.clear()
        self._interceptors.clear()
        self._observers.clear()

    def process_died(self, machine: str, names: frozenset[str]) -> None:
        """Break the connections of all peers to a killed process, after the usual delay.

        Its machine notifies the peers; over a cut link, it does so once the link is mended.
        """
        for node in list(self.nodes.values()):
            link = (machine, node.machine)
            if link in self._cut:
                self._pending_disconnects.setdefault(link, []).append((node, names))
            elif node.machine != machine:
                self._break_connections(node, machine, names)

    def _break_connections(self, node: AbstractNode, machine: str, names: frozenset[str]) -> None:
        lost = functools.partial(node.peer_lost, machine, names)
        self._runtime.call_later_by_runtime_clock(node, self.latency_us, lost)

    # -- sending -------------------------------------------------------------------------------

    def send(
        self,
        sender: Endpoint,
        destination: str,
        message: Any,
        correlation: int = 0,
        context: Any = None,
    ) -> None:
        target = self.nodes.get(destination)
        if target is None:
            self.refuse(sender, destination, message, correlation)
        else:
            self.transmit(self._deliver_to(target, sender, message, correlation, False, context))

    def reply(self, sender: Endpoint, request: Delivery, response: Any) -> None:
        answer = self._deliver_to(request.sender, sender, response, request.correlation, True)
        if request.event is not None:
            answer = answer.following(request.event)
        self.transmit(answer)

    def _deliver_to(
        self,
        target: Endpoint,
        sender: Endpoint,
        message: Any,
        correlation: int,
        is_reply: bool,
        context: Any = None,
    ) -> Delivery:
        self._numbered += 1
        return Delivery(sender, target, message, correlation, is_reply, context, self._numbered)

    def post_to_self(
        self, node: AbstractNode, message: object, letter: Letter
    ) -> tuple[Delivery, bool]:
        """Number and record a message from a node to itself; returns whether it is held back, too.

        The node keeps a message that is not held back, and passes it to ``arrive`` when its turn
        has come. The release of one that is held back calls ``letter.arrive``.
        """
        delivery = self._deliver_to(node, node, message, 0, False, letter)
        if self._runtime.recorder is not None:
            delivery = delivery.following(self._trace(delivery, "send"))
        holding_filter = self._holding_filter(delivery) if self._hold_filters else None
        if holding_filter is not None:
            self._trace(delivery, "hold")
            self._held.append((delivery, 0, holding_filter))
        return delivery, holding_filter is not None

    def withdraw(self, delivery: Delivery, why: str) -> None:
        """Record that a message that was sent will not be delivered."""
        self._drop(delivery, why)

    def links_from(self, machine: str) -> dict[str, Link]:
        """Return the fast-path links from a machine, by target machine; in this class none."""
        return {}

    def transmit(self, delivery: Delivery) -> None:
        """Send a delivery over its link."""
        runtime = self._runtime
        if runtime.recorder is not None:
            delivery = delivery.following(self._trace(delivery, "send"))
        source, target = delivery.sender.machine, delivery.target.machine
        if source == target:
            runtime.enqueue(delivery, 0)
        elif self._is_plain:
            is_delayed = self.latency_us and not _has_byte_delays(delivery)
            runtime.enqueue(delivery, self.latency_us if is_delayed else 0)
        elif _has_byte_delays(delivery):
            self._transmit_by_rules(delivery)
        elif not self._has_rules:
            # The latency model of all links is the only rule.
            link = self._link(source, target)
            link.free_at_us = runtime.enqueue_not_before(
                delivery, self._draw_us(runtime.rng), link.free_at_us
            )
        else:
            self._transmit_by_rules(delivery)

    def _transmit_by_rules(self, delivery: Delivery) -> None:
        source, target = delivery.sender.machine, delivery.target.machine
        runtime = self._runtime
        link = (source, target)
        is_exempt = _has_byte_faults(delivery)
        if self._cut and link in self._cut and not is_exempt:
            self._trace(delivery, "hold", "partitioned")
            self._stalled.setdefault(link, []).append(delivery)
            return
        if (self._loss or self._link_loss) and not is_exempt:
            loss = self._link_loss.get(link, self._loss)
            if loss and runtime.rng.random() < loss:
                self._drop(delivery, "lost")
                return
        now = arrival = runtime.now_us()
        if not _has_byte_delays(delivery):
            arrival += self._draw_latency_us(link)
            if self._bandwidth or self._link_bandwidth:
                arrival += self._occupy_bandwidth_us(link, message_bytes(delivery.message), now)
            used = self._link(source, target)
            arrival = used.free_at_us = max(arrival, used.free_at_us)
        holding_filter = self._holding_filter(delivery) if self._hold_filters else None
        if holding_filter is not None:
            self._trace(delivery, "hold")
            self._held.append((delivery, arrival - now, holding_filter))
            return
        runtime.enqueue(delivery, arrival - now)

    def transit_us(self, source: str, target: str, size: int) -> int:
        """Return the microseconds that ``size`` bytes take between two machines if sent now.

        For connections whose bytes are delayed before they become messages; the caller keeps their
        order. Cuts, losses and holding back apply to the messages.
        """
        link = (source, target)
        delay_us = self._draw_latency_us(link)
        if self._bandwidth or self._link_bandwidth:
            delay_us += self._occupy_bandwidth_us(link, size, self._runtime.now_us())
        return delay_us

    def _draw_latency_us(self, link: tuple[str, str]) -> int:
        """Draw the latency of one message over a link."""
        model = self._model
        if self._link_models:
            model = self._link_models.get(link, model)
        return self.latency_us if model is None else model.draw_us(self._runtime.rng)

    def _occupy_bandwidth_us(self, link: tuple[str, str], size: int, now_us: int) -> int:
        """Occupy a link's bandwidth with ``size`` more bytes; returns the microseconds until they
        are sent, 0 without a limit."""
        rate = self._link_bandwidth.get(link, self._bandwidth)
        if not rate:
            return 0
        begun_us = max(now_us, self._sending_until_us.get(link, 0.0))
        sent_us = begun_us + size / rate
        self._sending_until_us[link] = sent_us
        return math.ceil(sent_us - now_us)

    def _link(self, source: str, target: str) -> Link:
        link = self._links.get((source, target))
        if link is None:
            link = self._links[source, target] = Link(self._free_at_min_us)
        return link

    def work(self, machine: str, kind: str, amount: int) -> None:
        """Note work of a process besides sending; only a cost model takes time for it."""

    def refuse(self, sender: Endpoint, destination: str, message: Any, correlation: int) -> None:
        """Refuse a connection to a process that is not running, after the usual delay.

        Over a cut link neither the attempt nor the refusal gets through. TCP retries until the link
        is mended; the requester waits that long, or until its timeout.
        """
        machine = machine_of(destination)
        for link in ((sender.machine, machine), (machine, sender.machine)):
            if link in self._cut:
                self._trace_refusal(sender, destination, message, "partitioned")
                if correlation:
                    pending = [each for each in self._attempts.get(link, ()) if each.is_pending()]
                    attempt = ConnectionAttempt(sender, destination, message, correlation)
                    self._attempts[link] = [*pending, attempt]
                return
        self._trace_refusal(sender, destination, message, "not running")
        if correlation:
            runtime = self._runtime
            error = Disconnected(f"{destination} is not running")
            runtime.enqueue(
                Delivery(sender, sender, error, correlation, True, runtime.cause), self.latency_us
            )

    def _trace_refusal(self, sender: Endpoint, destination: str, message: Any, why: str) -> None:
        runtime = self._runtime
        if runtime.recorder is not None:
            runtime.recorder.event(
                runtime.now_us(),
                "drop",
                sender.name,
                destination,
                message,
                None,
                runtime.begin_step(),
                why,
            )

    def _drop(self, delivery: Delivery, why: str) -> None:
        self._trace(delivery, "drop", why)

    def _trace(self, delivery: Delivery, kind: str, why: str | None = None) -> int | None:
        runtime = self._runtime
        if runtime.recorder is None:
            return None
        cause = runtime.begin_step()
        return runtime.recorder.event(
            runtime.now_us(),
            kind,
            delivery.sender.name,
            delivery.target.name,
            delivery.message,
            delivery.message_id,
            delivery.event if kind == "drop" and delivery.event is not None else cause,
            why,
            delivery.event if kind == "send" else None,
        )

    # -- arriving ------------------------------------------------------------------------------

    def arrive(self, delivery: Delivery) -> None:
        """Pass a delivery to its target; called by the runtime inside the target."""
        target = delivery.target
        runtime = self._runtime
        if target.blocked:
            if not target.stopped:
                node = cast(AbstractNode, target)  # a requester over TCP is never blocked
                node.process.held.append(lambda: self._arrive_after_resume(delivery))
                return
            refused_by = self._trace(delivery, "drop", "stopped")
            if delivery.correlation and not delivery.is_reply and not delivery.sender.stopped:
                error = Disconnected(f"{target.name} closed the connection")
                runtime.enqueue(
                    Delivery(
                        target, delivery.sender, error, delivery.correlation, True, refused_by
                    ),
                    self.latency_us,
                )
            return
        if runtime.recorder is not None:
            runtime.cause = runtime.recorder.event(
                runtime.now_us(),
                "deliver",
                target.name,
                delivery.sender.name,
                delivery.message,
                delivery.message_id,
                # A refusal has no sending; its cause is in its context.
                delivery.event if delivery.message_id else delivery.context,
            )
            delivery = delivery.following(runtime.cause)
        if self._observers:
            self._call_observers(delivery)
        if self._interceptors:
            for interceptor in list(self._interceptors):
                if interceptor(delivery):
                    runtime.cause = None
                    return
        try:
            target.receive(delivery)
        except Exception as error:
            runtime.report_failure(target, error)
        runtime.cause = None

    def _arrive_after_resume(self, delivery: Delivery) -> None:
        """Pass on a delivery that arrived while the process of its target was paused."""
        self._trace(delivery, "release", "resumed")
        self.arrive(delivery)

    # -- functions of the cluster's user -------------------------------------------------------

    def _call_observers(self, delivery: Delivery) -> None:
        for observer in tuple(self._observers):
            try:
                observer(delivery)
            except Exception as error:
                if self.stop_observing(observer):  # True in one of the threads where it raised
                    self._runtime.report_user_failure("observer", observer, error)

    def _holding_filter(self, delivery: Delivery) -> Filter | None:
        """Return the filter that holds a message back; None if there is none."""
        for matches in tuple(self._hold_filters):
            try:
                if matches(delivery):
                    return matches
            except Exception as error:
                if self.stop_holding(matches):
                    self._runtime.report_user_failure("filter of hold", matches, error)
        return None

    # -- rules ---------------------------------------------------------------------------------

    def _update_plain(self) -> None:
        was_plain = self._is_plain
        has_rules = bool(
            self._cut or self._loss or self._link_loss or self._hold_filters or self._link_models
            or self._bandwidth or self._link_bandwidth
        )  # fmt: skip
        varies = self._model is not None and self._model.constant_us is None
        self._is_plain = not (has_rules or varies or self._still_under_way())
        self._has_rules = has_rules or self._model is None
        if was_plain and not self._is_plain:
            self._links.clear()
        self._rules_changed()

    def _rules_changed(self) -> None:
        """Called when a rule has changed."""

    def _still_under_way(self) -> bool:
        """Return whether messages sent under earlier rules could be overtaken without rules."""
        now = self._runtime.now_us()
        soonest = now + self.latency_us
        return self._free_at_min_us > soonest or any(
            link.free_at_us > soonest for link in self._links.values()
        )

    def set_latency(
        self, model: LatencyModel, source: str | None = None, target: str | None = None
    ) -> None:
        """Set the latency of all links, or of one link in one direction."""
        self._free_at_min_us = max(self._free_at_min_us, self._runtime.now_us() + self.latency_us)
        if source is None or target is None:
            self._model = model
            self.latency_us = model.constant_us if model.constant_us is not None else 0
            self._draw_us = model.draw_us
        else:
            self._link_models[source, target] = model
        place = None if source is None or target is None else (source, target)
        runtime = self._runtime
        self._delays.begin(place, runtime.cause, model.typical_us, runtime.now_us())
        self._update_plain()

    def clear_link_latencies(self) -> None:
        """Remove the latency models of single links, so that all have the same again."""
        self._link_models.clear()
        self._delays.end_links(self._runtime.now_us())
        self._update_plain()

    def set_bandwidth(
        self, mb_per_s: float, source: str | None = None, target: str | None = None
    ) -> None:
        """Limit the bandwidth of every link, or of one link in one direction; 0 for no limit."""
        if source is None or target is None:
            self._bandwidth = mb_per_s
            self._bandwidth_by = self._runtime.cause
        else:
            self._link_bandwidth[source, target] = mb_per_s
            self._link_bandwidth_by[source, target] = self._runtime.cause
        self._update_plain()

    def clear_bandwidths(self) -> None:
        """Remove every limit of bandwidth."""
        self._bandwidth = 0.0
        self._link_bandwidth.clear()
        self._link_bandwidth_by.clear()
        self._sending_until_us.clear()
        self._update_plain()

    def set_loss(
        self, probability: float, source: str | None = None, target: str | None = None
    ) -> None:
        """Set the probability that a message is lost, on all links or on one."""
        runtime = self._runtime
        place = None if source is None or target is None else (source, target)
        self._losses.begin(place, runtime.cause, probability, runtime.now_us())
        if source is None or target is None:
            self._loss = probability
        else:
            self._link_loss[source, target] = probability
        self._update_plain()

    def cut(self, source: str, target: str) -> None:
        """Cut one direction: nothing passes from one machine to another.

        Messages sent meanwhile arrive when the link is mended, as with TCP, unless the requester
        has given up by then, which closes the connection.
        """
        self._cut[source, target] = self._runtime.cause
        self._update_plain()

    def cut_event(self, one: str, other: str, since_us: int) -> int | None:
        """Return the seq of the event that cut the link between two machines, in either direction,
        if the cut is still in force or was mended after ``since_us``."""
        for link in ((one, other), (other, one)):
            seq = self._cut.get(link)
            if seq is not None:
                return seq
        for link in ((one, other), (other, one)):
            seq, restored_us = self._restored_cuts.get(link, (None, 0))
            if seq is not None and restored_us > since_us:
                return seq
        return None

    def disturbance_event(self, one: str, other: str, since_us: int) -> tuple[int, Silence] | None:
        """Return the seq of the event because of which messages between two machines were held
        back, lost or delayed since a time, and the kind of silence."""
        for delivery, _, rule in self._held:
            if {delivery.sender.machine, delivery.target.machine} == {one, other}:
                for matches, seq in zip(self._hold_filters, self._hold_causes, strict=True):
                    if matches is rule and seq is not None:
                        return seq, Silence.HELD
        seq = self._losses.find_event(one, other, since_us, lambda probability: probability > 0)
        if seq is not None:
            return seq, Silence.LOST
        now_us = self._runtime.now_us()
        slow_us = (now_us - since_us) / _SLOW_LINK_DIVISOR
        for link in ((one, other), (other, one)):
            seq = self._link_bandwidth_by.get(link, self._bandwidth_by)
            busy_until_us = min(self._sending_until_us.get(link, 0.0), now_us)
            if seq is not None and busy_until_us - since_us > slow_us:
                return seq, Silence.NARROW
        seq = self._delays.find_event(one, other, since_us, lambda delay_us: delay_us > slow_us)
        return None if seq is None else (seq, Silence.SLOW)

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    def typical_us(self, source: str, target: str) -> int:
        """Return the median delay of a link in microseconds."""
        model = self._link_models.get((source, target), self._model)
        return self.latency_us if model is None else int(model.typical_us)

    def loss_on(self, source: str, target: str) -> float:
        """Return the probability that a message over a link is lost."""
        return self._link_loss.get((source, target), self._loss)

    def on_heal(self, action: Callable[[], object]) -> None:
        """Call a function at every ``heal``, for connections whose bytes wait for a link."""
        self._heal_listeners.append(action)

    def describe(self) -> str:
        """Describe the rules in force."""
        rules = [f"{source} to {target} cut" for source, target in self._cut]
        if self._loss:
            rules.append(f"loses {self._loss:.0%} of all messages")
        rules += [f"loses {loss:.0%} from {a} to {b}" for (a, b), loss in self._link_loss.items()]
        if self._held:
            rules.append(f"{len(self._held)} messages held back")
        return ", ".join(rules) or "no faults"

    def heal(self) -> None:
        """Remove every cut and every loss."""
        now_us = self._runtime.now_us()
        self._restored_cuts.update((link, (seq, now_us)) for link, seq in self._cut.items())
        self._cut.clear()
        self._loss = 0.0
        self._link_loss.clear()
        self._losses.end_all(now_us)
        self._resend_stalled()
        for action in self._heal_listeners:
            action()
        self._update_plain()

    def restore(self, links: Iterable[tuple[str, str]]) -> None:
        """Remove the cut, loss, latency and bandwidth that were set for single links."""
        now_us = self._runtime.now_us()
        for link in links:
            if link in self._cut:
                self._restored_cuts[link] = (self._cut.pop(link), now_us)
            self._link_loss.pop(link, None)
            self._losses.end(link, now_us)
            self._link_models.pop(link, None)
            self._delays.end(link, now_us)
            self._link_bandwidth.pop(link, None)
            self._link_bandwidth_by.pop(link, None)
        self._free_at_min_us = max(self._free_at_min_us, now_us + self.latency_us)
        self._resend_stalled()
        self._update_plain()

    def _resend_stalled(self) -> None:
        """Send the messages that stalled on links that are mended now, in order; likewise break
        connections to ended processes, and repeat attempts to connect."""
        for link in [link for link in self._stalled if link not in self._cut]:
            for delivery in self._stalled.pop(link):
                requester = delivery.target if delivery.is_reply else delivery.sender
                if delivery.correlation and not requester.is_waiting_for(delivery.correlation):
                    self._drop(delivery, "given up")
                else:
                    self._trace(delivery, "release")
                    self._transmit_by_rules(delivery)
        for link in [link for link in self._pending_disconnects if link not in self._cut]:
            machine, _ = link
            is_back = any(node.machine == machine for node in self.nodes.values())
            for node, names in self._pending_disconnects.pop(link):
                if not is_back and self.nodes.get(node.name) is node:
                    self._break_connections(node, machine, names)
        for link in [link for link in self._attempts if link not in self._cut]:
            for attempt in self._attempts.pop(link):
                if attempt.is_pending():
                    self.send(*attempt)

    def power_lost(self, machine: str) -> None:
        """Drop what a machine without power had yet to send over its cut links."""
        for link in [link for link in self._pending_disconnects if link[0] == machine]:
            del self._pending_disconnects[link]
        for link in [link for link in self._stalled if link[0] == machine]:
            for delivery in self._stalled.pop(link):
                self._drop(delivery, "lost")

    # -- holding back --------------------------------------------------------------------------

    def hold(self, matches: Filter) -> None:
        """Hold back messages that match a filter, until ``release``."""
        self._hold_filters.append(matches)
        self._hold_causes.append(self._runtime.cause)
        self._update_plain()

    def release(self, matches: Filter | None = None) -> int:
        """Deliver the held messages in order and stop holding; returns their number.

        With ``matches`` only held messages that match it are delivered, and all filters stay.
        """
        if matches is None:
            self._hold_filters.clear()
            self._hold_causes.clear()
        released = self._take_held(matches)
        self._deliver_released(released)
        return len(released)

    def held_by(self, matches: Filter) -> list[Delivery]:
        """Return the messages that a filter of ``hold`` holds back, the oldest first."""
        return [delivery for delivery, _, holding_filter in self._held if holding_filter is matches]

    def release_held_by(self, matches: Filter, count: int | None = None) -> int:
        """Deliver the oldest messages that a filter holds back, all without ``count``; returns
        their number. The filter stays."""
        released: list[tuple[Delivery, int, Filter]] = []
        kept: list[tuple[Delivery, int, Filter]] = []
        for entry in self._held:
            is_due = entry[2] is matches and (count is None or len(released) < count)
            (released if is_due else kept).append(entry)
        self._held = kept
        self._deliver_released(released)
        return len(released)

    def _deliver_released(self, released: list[tuple[Delivery, int, Filter]]) -> None:
        """Deliver messages that were held back, in order on each link."""
        now = self._runtime.now_us()
        for delivery, delay_us, _ in released:
            self._trace(delivery, "release")
            if delivery.sender is delivery.target:
                self._runtime.call_later(delivery.target, 0, delivery.context.arrive)
                continue
            link = self._link(delivery.sender.machine, delivery.target.machine)
            link.free_at_us = max(now + delay_us, link.free_at_us)
            self._runtime.enqueue(delivery, link.free_at_us - now)
        self._update_plain()

    def lose_held(self, matches: Filter) -> int:
        """Drop the held messages that match ``matches``; returns their number."""
        released = self._take_held(matches)
        for delivery, _, _ in released:
            self._drop(delivery, "lost")
        return len(released)

    def stop_holding(self, matches: Filter) -> bool:
        """Remove a filter; messages it holds back stay held. False if it was removed before."""
        try:
            index = self._hold_filters.index(matches)
        except ValueError:
            return False
        del self._hold_filters[index], self._hold_causes[index]
        self._update_plain()
        return True

    def _take_held(self, matches: Filter | None) -> list[tuple[Delivery, int, Filter]]:
        taken = [entry for entry in self._held if matches is None or matches(entry[0])]
        self._held = [
            entry for entry in self._held if matches is not None and not matches(entry[0])
        ]
        return taken

    @property
    def held_count(self) -> int:
        return len(self._held)

    def rules(self) -> NetworkRules:
        """Return the rules that are in force now."""
        return NetworkRules(
            cuts=tuple(self._cut),
            loss=self._loss,
            link_losses=dict(self._link_loss),
            latency="0 ms" if self._model is None else str(self._model),
            link_latencies={link: str(model) for link, model in self._link_models.items()},
            bandwidth_mb_per_s=self._bandwidth or None,
            link_bandwidths={link: rate or None for link, rate in self._link_bandwidth.items()},
            held_count=len(self._held),
        )

    # -- watching ------------------------------------------------------------------------------

    def observe(self, observer: Callable[[Delivery], object]) -> None:
        """Call a function with every message that arrives, before its target gets it."""
        self._observers.append(observer)
        self.watchers_changed()

    def stop_observing(self, observer: Callable[[Delivery], object]) -> bool:
        """Remove an observer; returns False if it is not installed, as after it has raised."""
        try:
            self._observers.remove(observer)
        except ValueError:
            return False
        self.watchers_changed()
        return True

    def intercept(self, interceptor: Interceptor) -> None:
        """Call a function with every message that arrives; if it returns True, the message is not
        delivered."""
        self._interceptors.append(interceptor)
        self.watchers_changed()

    def stop_intercepting(self, interceptor: Interceptor | None = None) -> None:
        """Remove this interceptor if it is installed; with None, remove all."""
        if interceptor is None:
            self._interceptors.clear()
        elif interceptor in self._interceptors:
            self._interceptors.remove(interceptor)
        self.watchers_changed()

    @property
    def interceptors(self) -> tuple[Interceptor, ...]:
        """The interceptors that are installed."""
        return tuple(self._interceptors)

    def remove_watchers(self) -> None:
        """Remove all observers and interceptors."""
        self._observers.clear()
        self._interceptors.clear()
        self.watchers_changed()

    @property
    def is_watched(self) -> bool:
        """True if an observer, an interceptor or a recorder is installed."""
        return bool(self._observers or self._interceptors or self._runtime.recorder is not None)

    def watchers_changed(self) -> None:
        """Called when ``is_watched`` may have changed."""
