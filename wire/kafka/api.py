"""An API: which fields of Kafka's messages become what of the actors' messages, and back.

A module of ``wire.kafka.apis`` says no more than this. How fields are encoded, and in which
versions they are there, stands in the table of ``wire.kafka.messages``.
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
"""More than any version."""


@message
class ApiCall:
    """The circumstances of a message beside its fields."""

    version: int
    names: TopicNames = NO_TOPIC_NAMES
    """What topic ids are resolved with."""
    listener: str = "PLAINTEXT"
    """The one whose endpoints the client is told."""
    request: Any = None
    """What is answered."""
    throttle_ms: int = 0
    """For how long the client is told to wait."""


Reads = tuple[Maker, str, dict[str, Maker]]
"""How the fields of a request become a message."""
Writes = tuple[str, dict[str, Maker], Callable[[Any, ApiCall], Any] | None]
"""How a response becomes the fields of an answer."""


def reads(make: Maker, selected: str, **makers: Maker) -> Reads:
    """``make`` is called with the fields selected (``messages.selection``), in this order.

    ``call`` among them is the ``ApiCall``. An array of structures is a tuple of tuples. A maker by
    the name of a field makes something else of its value. What ``make`` returns goes to the
    backend: a message, a ``SplitRequest``, a ``CodecAnswer``.
    """
    return make, selected, makers


def writes(
    selected: str, *, of: Callable[[Any, ApiCall], Any] | None = None, **makers: Maker
) -> Writes:
    """The fields selected (``messages.selection``) of the response, or of what ``of`` makes of it.

    A maker by the name of a field makes its value of what is found there. Fields that are not
    selected have their defaults. The time of throttling is the codec's if it is not selected.
    """
    return selected, makers, of


def each(make: Maker) -> Maker:
    """Make something of the values of each structure of an array."""
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
        """Return what a request asks for.

        Raises ``ClientError``, ``struct.error`` or ``ValueError`` on nonsense.
        """
        read = self._readers.get(call.version)
        if read is None:
            from .messages.readers import reader  # not before a request comes

            read = reader(table.message(self.key, "request"), call.version, *self.reads)
            self._readers[call.version] = read
        return read(body, call)[0]

    def encode(self, response: Any, call: ApiCall) -> list[Buffer]:
        """The body of an answer as buffers to be sent in order; records are not copied."""
        write = self._writers.get(call.version)
        if write is None:
            from .messages.writers import writer

            selected, makers, _ = self._writes
            found = table.message(self.key, "response")
            write = writer(found, call.version, selected, makers)
            self._writers[call.version] = write
        of = self._writes[2]
        parts: list[Buffer] = []
        write(response if of is None else of(response, call), call, parts)
        return parts


@frozen
class SplitRequest:
    """A client's request that stands for several of the backend's.

    Its answer is made of the tuple of responses, in the order of the requests.
    """

    requests: tuple[Any, ...]
    whole: Any = None
    """What they are parts of, if it has a message of its own: the parts are handed out one by one,
    so that others are served in between, and the answer is made of what ``join`` gives."""
    join: Callable[[tuple[Any, ...]], Any] | None = None


class UnknownElement(Exception):
    """A value that is called unknown, the number 0, stands in a request about ACLs."""

    def __init__(self, request: Any) -> None:
        super().__init__("an element is of the unknown kind")
        self.request = request
        """What was read, for releases that take it."""


@frozen
class CodecAnswer:
    """A request that the codec answers itself; the backend never sees it."""

    response: Any


class Dropped:
    """A request that is not answered; those after it are."""

    __slots__ = ()


DROPPED = Dropped()
