"""Messages between nodes, and the links over which they pass."""

from __future__ import annotations

from typing import Any

from ..protocol.declaring.native import WeaklyReferable, mypyc_attr
from ..protocol.values import message


@mypyc_attr(allow_interpreted_subclasses=True)
class Endpoint(WeaklyReferable):
    """One end of a message: a node, or the asker of a request that came over TCP."""

    __slots__ = ()
    name: str
    """Its name, in traces and in the network."""
    machine: str
    """The machine it is on; rules of the network are for machines."""
    blocked: bool
    """While stopped or paused: what arrives is refused or waits."""
    stopped: bool
    is_paced_elsewhere: bool
    """Whether the delays of a link concern the bytes of a connection, and not its messages."""
    is_carried_elsewhere: bool
    """Whether cuts and losses concern these bytes, too."""

    def receive(self, delivery: Delivery) -> None:
        """Take one message that has arrived."""
        raise NotImplementedError

    def is_waiting_for(self, correlation: int) -> bool:
        """Return whether an answer to this request would still be taken."""
        raise NotImplementedError


@message
class Delivery:
    """A message on its way."""

    sender: Endpoint
    """Who sent it; has a ``name`` and the ``machine`` it is on."""
    target: Endpoint
    """Who gets it; has a ``name`` and a ``machine``, too."""
    message: Any
    """A request, a response, or the error that a request failed with."""
    correlation: int = 0
    """Number of the request that it is, or answers; 0: no answer is expected."""
    is_reply: bool = False
    """Whether it is an answer."""
    context: Any = None
    """What is known of the client that sent a request."""
    message_id: int = 0
    """Number of the message in the run."""
    event: int | None = None
    """In a recorded run, what it follows from: of an answer about to be sent the delivery of the
    request, then its own sending; for who handles it, its own delivery."""

    def following(self, event: int | None) -> Delivery:
        """The same, as following from an event."""
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
    """One direction between two machines; what is sent over it keeps its order."""

    __slots__ = ("free_at_us",)

    def __init__(self, free_at_us: int) -> None:
        self.free_at_us: int = free_at_us  # when the last message sent over it arrives
