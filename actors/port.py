"""A port: a node as the network sees it, what is read and written for every single message.

One class for nodes of all kinds (one for each kind of network): CPython reads an attribute several
times faster where all objects are of one class, and every message passes here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..protocol.awaiting import Disconnected, RequestTimeout
from ..protocol.host import Timer
from .clock import Clock, rescaled
from .delivery import Delivery, Link
from .network.network import Network
from .surroundings import Named, Resident, Surroundings

Handler = Callable[[Any, Delivery], Any]
"""Called with message and delivery; gives the reply, or None if it comes later."""

_NEVER_US = 1 << 62
_NEVER_MS = float("inf")


class Port(Named):
    """The requests of one node that wait for their answers, and whether it takes messages."""

    __slots__ = (
        "_clock",
        "_expiry_timer",
        "_next_expiry_us",
        "_now_us",
        "_rate_ppm",
        "correlation",
        "handlers",
        "is_blocked",
        "is_stopped",
        "links",
        "machine",
        "network",
        "next_expiry_patience_ms",
        "node",
        "requests",
        "runtime",
        "takes_requests",
    )

    def __init__(
        self,
        runtime: Surroundings,
        network: Network,
        node: Resident,
        machine: str,
        handlers: dict[type, Handler],
    ) -> None:
        self.runtime: Surroundings = runtime
        self.node: Resident = node
        self.name: str = node.name
        self.network: Network = network
        self.machine: str = machine
        self.links: dict[str, Link] = network.links_from(machine)
        """By machine: the links that a message may take without a look at any rule."""
        self.handlers: dict[type, Handler] = handlers
        """By type of message; asked by who has seen that ``takes_requests``."""
        self.is_blocked: bool = False
        """While the node is stopped or paused: what arrives takes the slow path."""
        self.is_stopped: bool = False
        self.takes_requests: bool = False
        """Whether a request can go straight to its handler: neither blocked nor busy."""
        # By correlation: who takes the answer (a response or an exception), who was asked,
        # when (microseconds), how many milliseconds of patience there are, and in a recorded run
        # the event at which it was asked.
        self.requests: dict[int, tuple[Callable[[Any], object], str, int, float, int | None]] = {}
        self._now_us: Callable[[], int] = runtime.now_us
        self._clock: Clock = node.process.clock
        self._rate_ppm: int = self._clock.rate_ppm  # at which the open requests end
        self.correlation: int = 0  # of the last request
        self._next_expiry_us = _NEVER_US  # no open request ends before it
        self.next_expiry_patience_ms: float = _NEVER_MS
        """Patience of a request that ends then: one sent now with as much ends no sooner."""
        self._expiry_timer: Timer | None = None  # fires then

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
        if timeout_ms < self.next_expiry_patience_ms:
            self.expire_within(timeout_ms)
        self._put(destination, message, correlation)

    def _put(self, destination: str, message: Any, correlation: int) -> None:
        self.network.send(self.node, destination, message, correlation)

    def answer(self, request: Delivery, response: Any) -> None:
        """Answer a request if the asker waits for it; an exception is raised at the asker."""
        if request.correlation and not self.is_stopped:
            self.network.reply(self.node, request, response)

    # -- timeouts ------------------------------------------------------------------------------

    def expire_within(self, timeout_ms: float) -> None:
        """Make sure that a request sent now ends in time."""
        now_us = self._now_us()
        deadline_us = self._deadline_us(now_us, timeout_ms)
        if deadline_us < self._next_expiry_us:
            self._expire_at(deadline_us, now_us, timeout_ms)

    def _deadline_us(self, asked_at_us: int, timeout_ms: float) -> int:
        return asked_at_us + self._clock.lasts_us(int(timeout_ms * 1000))

    def _expire_at(self, deadline_us: int, now_us: int, patience_ms: float) -> None:
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        self._next_expiry_us = deadline_us
        self.next_expiry_patience_ms = patience_ms
        self._expiry_timer = self.runtime.wake_later(
            self.node, max(1, deadline_us - now_us), self._expire
        )

    def _expire(self) -> None:
        """Fail the requests whose time is up; look again when the next one's is."""
        self._expiry_timer = None
        self._next_expiry_us, self.next_expiry_patience_ms = _NEVER_US, _NEVER_MS
        now_us = self._now_us()
        requests = self.requests
        deadlines = [
            (self._deadline_us(asked_at_us, timeout_ms), correlation)
            for correlation, (_, _, asked_at_us, timeout_ms, _) in requests.items()
        ]
        for deadline_us, correlation in sorted(deadlines):
            if deadline_us > now_us:
                break
            waiting = requests.pop(correlation, None)
            if waiting is not None:
                answered, destination, _, timeout_ms, cause = waiting
                self.runtime.waited(self.name, (destination,), cause, timeout_ms)
                answered(
                    RequestTimeout(
                        f"{destination} did not answer {self.node.name} in {timeout_ms} ms"
                    )
                )
        if requests and not self.node.stopped:
            next_us, patience_ms = min(
                (self._deadline_us(asked_at_us, timeout_ms), timeout_ms)
                for _, _, asked_at_us, timeout_ms, _ in requests.values()
            )
            if next_us < self._next_expiry_us:
                self._expire_at(next_us, now_us, patience_ms)

    def follow_clock(self) -> None:
        """Have the open requests end when the clock of the machine says so, at its new rate.

        Each counts as asked at another time, so that as much of its patience is over as was. The
        runtime moves the timer by itself.
        """
        before_ppm, after_ppm = self._rate_ppm, self._clock.rate_ppm
        if before_ppm == after_ppm:
            return
        self._rate_ppm = after_ppm
        now_us = self._now_us()
        for correlation, waiting in list(self.requests.items()):
            answered, destination, asked_at_us, timeout_ms, cause = waiting
            asked_at_us = now_us - rescaled(now_us - asked_at_us, before_ppm, after_ppm)
            self.requests[correlation] = (answered, destination, asked_at_us, timeout_ms, cause)
        if self._next_expiry_us != _NEVER_US:
            left_us = rescaled(self._next_expiry_us - now_us, before_ppm, after_ppm)
            self._next_expiry_us = now_us + left_us

    def forget(self) -> None:
        """The node has halted: nobody waits for an answer any more."""
        self.requests.clear()
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None

    def lose(self, names: frozenset[str]) -> None:
        """Connections to these nodes broke: requests waiting for them fail at once."""
        lost = [c for c, waiting in self.requests.items() if waiting[1] in names]
        for correlation in lost:
            waiting = self.requests.pop(correlation, None)
            if waiting is not None:
                waiting[0](Disconnected(f"{waiting[1]} closed the connection"))
