"""A port: the part of a node that the network reads and writes for every single message.

Nodes of all kinds share one class of port (per kind of network), as CPython reads an attribute
several times faster where all objects are of one class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..protocol.awaiting import Disconnected, RequestTimeout
from ..protocol.host import Timer
from .clock import Clock, rescaled
from .delivery import Delivery, Link
from .interfaces import AbstractNode, AbstractRuntime, Named
from .network.network import Network

Handler = Callable[[Any, Delivery], Any]
"""Called with message and delivery; returns the reply, or None if it comes later."""

_NEVER_US = 1 << 62
_NEVER_MS = float("inf")


class Port(Named):
    """The open requests of one node, and whether the node accepts messages."""

    __slots__ = (
        "_clock",
        "_expiry_timer",
        "_next_expiry_us",
        "_now_us",
        "_rate_ppm",
        "accepts_requests",
        "correlation",
        "handlers",
        "is_blocked",
        "is_stopped",
        "links",
        "machine",
        "network",
        "next_expiry_timeout_ms",
        "node",
        "requests",
        "runtime",
    )

    def __init__(
        self,
        runtime: AbstractRuntime,
        network: Network,
        node: AbstractNode,
        machine: str,
        handlers: dict[type, Handler],
    ) -> None:
        self.runtime: AbstractRuntime = runtime
        self.node: AbstractNode = node
        self.name: str = node.name
        self.network: Network = network
        self.machine: str = machine
        self.links: dict[str, Link] = network.links_from(machine)
        """Links of the fast path by target machine: no rule has to be checked for them."""
        self.handlers: dict[type, Handler] = handlers
        """Handlers by type of message; may be called directly while ``accepts_requests``."""
        self.is_blocked: bool = False
        """True while the node is stopped or paused, so that messages take the slow path."""
        self.is_stopped: bool = False
        self.accepts_requests: bool = False
        """True while the node is neither blocked nor busy: requests go straight to handlers."""
        # By correlation: the function called with the answer (a response or an exception), the
        # destination, the time of sending in microseconds, the timeout in milliseconds and, in a
        # recorded run, the event at which the request was sent.
        self.requests: dict[int, tuple[Callable[[Any], object], str, int, float, int | None]] = {}
        self._now_us: Callable[[], int] = runtime.now_us
        self._clock: Clock = node.process.clock
        self._rate_ppm: int = self._clock.rate_ppm  # the rate that the expiry times assume
        self.correlation: int = 0  # of the last request
        self._next_expiry_us = _NEVER_US  # no open request expires before it
        self.next_expiry_timeout_ms: float = _NEVER_MS
        """Timeout of the next request to expire; a new one with the same expires no sooner."""
        self._expiry_timer: Timer | None = None  # fires at the next expiry

    # -- sending -------------------------------------------------------------------------------

    def send(self, destination: str, message: Any) -> None:
        """Send a message that expects no answer."""
        self._put(destination, message, 0)

    def ask_then(
        self,
        destination: str,
        message: Any,
        timeout_ms: float,
        answered: Callable[[Any], object],
    ) -> None:
        """Send a request; ``answered`` is called once with the reply or with the exception."""
        correlation = self.correlation = self.correlation + 1
        now_us = self._now_us
        runtime = self.runtime
        cause = runtime.cause
        if cause is None and runtime.recorder is not None:
            cause = runtime.begin_step()
        self.requests[correlation] = (answered, destination, now_us(), timeout_ms, cause)
        if timeout_ms < self.next_expiry_timeout_ms:
            self.schedule_expiry(timeout_ms)
        self._put(destination, message, correlation)

    def _put(self, destination: str, message: Any, correlation: int) -> None:
        self.network.send(self.node, destination, message, correlation)

    def answer(self, request: Delivery, response: Any) -> None:
        """Answer a request that expects an answer; an exception is raised at the requester."""
        if request.correlation and not self.is_stopped:
            self.network.reply(self.node, request, response)

    # -- timeouts ------------------------------------------------------------------------------

    def schedule_expiry(self, timeout_ms: float) -> None:
        """Make sure that a request sent now expires after its timeout."""
        now_us = self._now_us()
        deadline_us = self._deadline_us(now_us, timeout_ms)
        if deadline_us < self._next_expiry_us:
            self._expire_at(deadline_us, now_us, timeout_ms)

    def _deadline_us(self, sent_at_us: int, timeout_ms: float) -> int:
        return sent_at_us + self._clock.to_runtime_us(int(timeout_ms * 1000))

    def _expire_at(self, deadline_us: int, now_us: int, timeout_ms: float) -> None:
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        self._next_expiry_us = deadline_us
        self.next_expiry_timeout_ms = timeout_ms
        self._expiry_timer = self.runtime.set_shared_timer(
            self.node, max(1, deadline_us - now_us), self._expire
        )

    def _expire(self) -> None:
        """Fail the requests that have timed out, and set the timer for the next."""
        self._expiry_timer = None
        self._next_expiry_us, self.next_expiry_timeout_ms = _NEVER_US, _NEVER_MS
        now_us = self._now_us()
        requests = self.requests
        deadlines = [
            (self._deadline_us(sent_at_us, timeout_ms), correlation)
            for correlation, (_, _, sent_at_us, timeout_ms, _) in requests.items()
        ]
        for deadline_us, correlation in sorted(deadlines):
            if deadline_us > now_us:
                break
            waiting = requests.pop(correlation, None)
            if waiting is not None:
                answered, destination, _, timeout_ms, cause = waiting
                self.runtime.record_timeout(self.name, (destination,), cause, timeout_ms)
                answered(
                    RequestTimeout(
                        f"{destination} did not answer {self.node.name} in {timeout_ms} ms"
                    )
                )
        if requests and not self.node.stopped:
            next_us, timeout_ms = min(
                (self._deadline_us(sent_at_us, timeout_ms), timeout_ms)
                for _, _, sent_at_us, timeout_ms, _ in requests.values()
            )
            if next_us < self._next_expiry_us:
                self._expire_at(next_us, now_us, timeout_ms)

    def rescale_timeouts(self) -> None:
        """Let the open requests expire by the machine's clock at its new rate.

        The time of sending of each is moved such that the same part of its timeout has passed as
        before. The runtime itself moves the timer.
        """
        before_ppm, after_ppm = self._rate_ppm, self._clock.rate_ppm
        if before_ppm == after_ppm:
            return
        self._rate_ppm = after_ppm
        now_us = self._now_us()
        for correlation, waiting in list(self.requests.items()):
            answered, destination, sent_at_us, timeout_ms, cause = waiting
            sent_at_us = now_us - rescaled(now_us - sent_at_us, before_ppm, after_ppm)
            self.requests[correlation] = (answered, destination, sent_at_us, timeout_ms, cause)
        if self._next_expiry_us != _NEVER_US:
            remaining_us = rescaled(self._next_expiry_us - now_us, before_ppm, after_ppm)
            self._next_expiry_us = now_us + remaining_us

    def drop_requests(self) -> None:
        """Drop all open requests of a halted node without an answer."""
        self.requests.clear()
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None

    def fail_requests_to(self, names: frozenset[str]) -> None:
        """Fail all open requests to nodes whose connections broke."""
        lost = [c for c, waiting in self.requests.items() if waiting[1] in names]
        for correlation in lost:
            waiting = self.requests.pop(correlation, None)
            if waiting is not None:
                waiting[0](Disconnected(f"{waiting[1]} closed the connection"))
