"""An API: the mapping between the fields of Kafka's messages and the actors' messages.

A module of ``wire.kafka.apis`` declares only this mapping. The table of ``wire.kafka.messages``
defines how fields are encoded, and which versions have them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap
from typing import TYPE_CHECKING, Any

from ...protocol.values import frozen, message
from .messages import table
from .messages.varints import Buffer
from .topic_names import NO_TOPIC_NAMES, TopicNames

if TYPE_CHECKING:
    from .messages.readers import Reader
    from .messages.writers import Writer

Maker = Callable[..., Any]
NEVER = 1 << 15
"""A number higher than any version."""


@message
class ApiCall:
    """The context in which a message is decoded or encoded."""

    version: int
    topic_names: TopicNames = NO_TOPIC_NAMES
    """Topic names and ids, to resolve topic ids."""
    listener: str = "PLAINTEXT"
    """Name of the listener whose endpoints a response gives to the client."""
    request: Any = None
    """Request that a response answers; None while a request is decoded."""
    throttle_ms: int = 0
    """Throttle time in milliseconds that a response gives to the client."""


Reads = tuple[Maker, str, dict[str, Maker]]
"""Mapping from a request's fields to a message, as ``reads`` declares it."""
Writes = tuple[str, dict[str, Maker], Callable[[Any, ApiCall], Any] | None]
"""Mapping from a message to a response's fields, as ``writes`` declares it."""


def reads(make: Maker, selected: str, **makers: Maker) -> Reads:
    """Declare that a request is decoded by calling ``make`` with the selected fields, in order.

    ``selected`` has the syntax of ``messages.selection``; the word ``call`` selects the
    ``ApiCall``. An array of structures is passed as a tuple of tuples. A maker named like a field
    converts its value. ``make`` returns a message for the backend, a ``SplitRequest`` or a
    ``CodecAnswer``.
    """
    return make, selected, makers


def writes(
    selected: str, *, convert: Callable[[Any, ApiCall], Any] | None = None, **makers: Maker
) -> Writes:
    """Declare that the selected fields are encoded from the response, converted first if there is
    a function ``convert``.

    ``selected`` has the syntax of ``messages.selection``. A maker named like a field converts its
    value. Fields that are not selected have their defaults, except that the throttle time is the
    ``ApiCall``'s.
    """
    return selected, makers, convert


def each(make: Maker) -> Maker:
    """Return a maker that calls ``make`` with the values of each structure of an array."""
    return lambda structures: tuple(starmap(make, structures))


class Api:
    """An API key, with the readers and writers of its messages."""

    __slots__ = ("_flexible_from", "_readers", "_writers", "_writes", "key", "reads")

    def __init__(self, key: int, reads: Reads, writes: Writes) -> None:
        self.key: int = key
        self.reads: Reads = reads
        self._writes = writes
        self._readers: dict[int, Reader] = {}
        self._writers: dict[int, Writer] = {}
        self._flexible_from: int | None = None

    @property
    def flexible_from(self) -> int:
        """First version in the compact encoding with request header v2 (KIP-482)."""
        if self._flexible_from is None:
            flexible = table.message(self.key, "request").flexible
            self._flexible_from = NEVER if flexible == table.NO_VERSIONS else flexible[0]
        return self._flexible_from

    def decode(self, body: Buffer, call: ApiCall) -> Any:
        """Decode the body of a request.

        Raises ``ClientError``, ``struct.error`` or ``ValueError`` on malformed data.
        """
        read = self._readers.get(call.version)
        if read is None:
            from .messages.readers import reader  # imported on the first request

            read = reader(table.message(self.key, "request"), call.version, *self.reads)
            self._readers[call.version] = read
        return read(body, call)[0]

    def encode(self, response: Any, call: ApiCall) -> list[Buffer]:
        """Return the body of a response as buffers to be sent in order; records are not copied."""
        write = self._writers.get(call.version)
        if write is None:
            from .messages.writers import writer

            selected, makers, _ = self._writes
            found = table.message(self.key, "response")
            write = writer(found, call.version, selected, makers)
            self._writers[call.version] = write
        convert = self._writes[2]
        parts: list[Buffer] = []
        write(response if convert is None else convert(response, call), call, parts)
        return parts


@frozen
class SplitRequest:
    """A client's request that becomes several requests to the backend.

    Its answer is encoded from the tuple of their responses, in the order of the requests.
    """

    requests: tuple[Any, ...]
    whole: Any = None
    """The message that the requests are parts of, with ``join``."""
    join: Callable[[tuple[Any, ...]], Any] | None = None
    """Joins the responses to the one that is encoded. If set, the requests are submitted one by
    one, so that other clients are served in between."""


class UnknownElement(Exception):
    """Raised for a request about ACLs in which a value is 0, which means unknown."""

    def __init__(self, request: Any) -> None:
        super().__init__("the request contains elements of kind UNKNOWN (0)")
        self.request = request
        """The decoded request, for releases that accept it."""


@frozen
class CodecAnswer:
    """A request that the codec answers itself; the backend never sees it."""

    response: Any


class Dropped:
    """A request that is not answered; later requests of the connection are."""

    __slots__ = ()


DROPPED = Dropped()
