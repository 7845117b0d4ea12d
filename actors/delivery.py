"""Messages between nodes, and the links over which they pass."""

from __future__ import annotations

from typing import Any

from ..protocol.declaring.native import WeaklyReferable, mypyc_attr
from ..protocol.values import message


@mypyc_attr(allow_interpreted_subclasses=True)
class Endpoint(WeaklyReferable):
    """One end of a message: a node, or the sender of a request that came over TCP."""

    __slots__ = ()
    name: str
    """Name of the endpoint in traces and in the network."""
    machine: str
    """Machine of the endpoint; network rules apply to machines."""
    blocked: bool
    """True while stopped, when messages are refused, or paused, when they have to wait."""
    stopped: bool
    has_byte_delays: bool
    """True if link delays apply to the bytes of a connection instead of to messages."""
    has_byte_faults: bool
    """True if cuts and losses apply to these bytes as well."""

    def receive(self, delivery: Delivery) -> None:
        """Handle a message that has arrived."""
        raise NotImplementedError

    def is_waiting_for(self, correlation: int) -> bool:
        """Return whether a request is still open, so that an answer would be accepted."""
        raise NotImplementedError


@message
class Delivery:
    """A message under way from one endpoint to another."""

    sender: Endpoint
    """Sender of the message, with its ``name`` and ``machine``."""
    target: Endpoint
    """Receiver of the message, with its ``name`` and ``machine``."""
    message: Any
    """A request, a response, or the error that a request failed with."""
    correlation: int = 0
    """Number of the request that the message is or answers; 0 if no answer is expected."""
    is_reply: bool = False
    """True if the message is an answer."""
    context: Any = None
    """Context of the client that sent a request."""
    message_id: int = 0
    """Number of the message in the run."""
    event: int | None = None
    """In a recorded run, the event that the message follows from: of an answer about to be sent,
    the delivery of its request; once sent, its own sending; while handled, its own delivery."""

    def following(self, event: int | None) -> Delivery:
        """Return the same delivery as following from an event."""
        return Delivery(
            self.sender,
            self.target,
            self.message,
            self.correlation,
            self.is_reply,
            self.context,
            self.message_id,
            event,
        )


class Link:
    """One direction between two machines; messages sent over it keep their order."""

    __slots__ = ("free_at_us",)

    def __init__(self, free_at_us: int) -> None:
        self.free_at_us: int = free_at_us  # arrival time of the last message sent
