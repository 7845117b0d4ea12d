"""The events of which a trace consists.

The order of ``EVENT_FIELDS`` and the codes of ``KINDS`` are part of the file format: append to
them, or raise ``format.FORMAT``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..protocol.errors import FakeKafkaError, UsageError

if TYPE_CHECKING:
    from .schema import Schema

KINDS = (
    "send", "deliver", "drop", "hold", "release",
    "timer_fire",
    "spawn", "stop", "crash", "restart",
    "state",
    "fault", "note",
    "start", "step", "expire",
    "client_invoke", "client_retry", "client_ok", "client_fail",
)  # fmt: skip
"""The closed list of event kinds; an event stores the position in this tuple.

A change of state inside an actor has no kind of its own: it is in the delta of the event during
which it occurred, or of a ``state`` event if no event was being handled.
"""

ROOT_KINDS = frozenset({"start", "step", "fault", "crash", "restart", "client_invoke"})
"""Kinds at which chains of causes end: the start of the run, an action of a scenario or a test on
the cluster, a fault, an operation of a client."""
_CLIENT_INITIATED_OPERATIONS = frozenset(
    {"join_group", "heartbeat", "find_coordinator", "offset_fetch"}
)
"""Operations that no application requests: a client begins them in reaction to a message."""
WAITED = "Waited"
"""Type of an ``expire`` event that records a wait; its field ``request`` is the event at which the
wait began."""
MESSAGE_KINDS = frozenset({"send", "deliver", "drop", "hold", "release"})
INTERESTING_KINDS = frozenset({"crash", "restart", "fault"})
"""Kinds of events that a reader of a long trace wants to jump to."""

EVENT_FIELDS = (
    "seq", "t", "kind", "actor", "peer", "type", "msg", "cause", "epochs", "payload", "delta",
    "why", "op",
)  # fmt: skip
"""Fields of an event in the order of the file; ``t`` is in nanoseconds since the run began."""


class TraceError(FakeKafkaError):
    """A trace cannot be read, or does not contain what a call asked for; the text says why."""


class Truncated(NamedTuple):
    """Bytes that were truncated when they were recorded."""

    length: int
    """Number of bytes in the original."""
    head: bytes

    def __str__(self) -> str:
        return f"{bytes_text(self.head)}..({self.length} bytes)"


def bytes_text(value: bytes) -> str:
    """Return bytes as text if they are printable UTF-8, else in hexadecimal."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return "0x" + value.hex()
    return text if text.isprintable() else "0x" + value.hex()


class KindCodes(dict[str, int]):
    """Maps a kind to its code; raises ``UsageError`` for an unknown kind."""

    def __missing__(self, kind: str) -> int:
        raise UsageError(f"{kind!r} is not an event kind; use one of {', '.join(KINDS)}")


KIND_CODES = KindCodes((kind, code) for code, kind in enumerate(KINDS))


class Payloads(Protocol):
    """A source from which payloads and epochs are read on first use."""

    def payload(self, place: int) -> Any: ...

    def epochs(self, place: int) -> Any: ...


class Unread(NamedTuple):
    """A placeholder in an event for a payload or epochs that are not read yet."""

    chunk: Payloads
    place: int


class Event:
    """An event as readers see it; ``fields`` names the values of the payload."""

    __slots__ = (
        "_epochs", "_fields", "_payload", "_schema", "actor", "cause", "delta", "kind",
        "message_id", "op", "peer", "seq", "time_us", "type", "why",
    )  # fmt: skip

    def __init__(self, raw: list[Any], strings: list[str], schema: Schema) -> None:
        (
            seq,
            time_ns,
            kind,
            actor,
            peer,
            type_,
            message_id,
            cause,
            epochs,
            payload,
            delta,
            why,
            op,
        ) = raw[:13]  # a newer writer may append fields
        self.seq: int = seq
        """Number of the event in its run."""
        self.time_us: int = time_ns // 1000
        """Microseconds since the run began."""
        self.kind: str = KINDS[kind] if kind < len(KINDS) else f"kind-{kind}"
        """``send``, ``deliver``, ``drop``, ``hold``, ``release``, ``timer_fire``, ``spawn``,
        ``stop``, ``crash``, ``restart``, ``state``, ``fault``, ``note``, ``start``, ``step``,
        ``expire``, ``client_invoke``, ``client_retry``, ``client_ok`` or ``client_fail``."""
        self.actor: str = strings[actor]
        """The actor at which the event happened."""
        self.peer: str | None = None if peer is None else strings[peer]
        """The other end of a message."""
        self.type: str | None = None if type_ is None else strings[type_]
        """Name of the message or the timer."""
        self.message_id: int | None = message_id
        """Number of the message, shared by its sending and its delivery."""
        self.cause: int | None = cause
        """Seq of the event that caused this one: the sending of a message for its delivery, the
        event that armed a timer for its firing, the event being handled for anything else."""
        self._epochs = epochs
        self._payload = payload
        self.delta: list[tuple[str, Any, Any]] = [(strings[p], old, new) for p, old, new in delta]
        """The changes of state during the event: (path, old, new)."""
        self.why: str | None = why
        """A reason in words, such as that of a fault."""
        self.op: int | None = op
        """Seq of the ``client_invoke`` that began the client operation this event belongs to."""
        self._schema = schema
        self._fields: dict[str, Any] | None = None

    @property
    def payload(self) -> list[Any] | None:
        """The values of the message's fields, in their order."""
        payload = self._payload
        if payload.__class__ is Unread:
            payload = self._payload = payload.chunk.payload(payload.place)
        return payload  # type: ignore[no-any-return]

    @property
    def epochs(self) -> list[int | None] | None:
        """[controller epoch, leader epoch, znode version], each None if it does not apply."""
        epochs = self._epochs
        if epochs.__class__ is Unread:
            epochs = self._epochs = epochs.chunk.epochs(epochs.place)
        return epochs  # type: ignore[no-any-return]

    @property
    def fields(self) -> dict[str, Any]:
        """The payload by field name, nested messages as dictionaries; empty without a payload."""
        if self._fields is None:
            if self.payload is None or self.type is None:
                self._fields = {}
            else:
                self._fields = self._schema.name_fields(self.type, self.payload)
        return self._fields

    def as_dict(self) -> dict[str, Any]:
        """Return the event as plain values, for JSON."""
        return {
            "seq": self.seq,
            "time_us": self.time_us,
            "kind": self.kind,
            "actor": self.actor,
            "peer": self.peer,
            "type": self.type,
            "message_id": self.message_id,
            "cause": self.cause,
            "epochs": self.epochs,
            "fields": jsonable(self.fields),
            "delta": [[path, jsonable(old), jsonable(new)] for path, old, new in self.delta],
            "why": self.why,
            "op": self.op,
        }

    def __repr__(self) -> str:
        peer = f" {self.peer}" if self.peer else ""
        return f"<#{self.seq} {self.time_us}us {self.kind} {self.actor}{peer} {self.type}>"


def jsonable(value: Any) -> Any:
    """Return a value with all bytes in it turned into text."""
    if isinstance(value, bytes):
        return bytes_text(value)
    if isinstance(value, Truncated):
        return {"length": value.length, "head": bytes_text(value.head)}
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    return value


def is_root(event: Event) -> bool:
    """Return whether a chain of causes ends at an event."""
    if event.kind != "client_invoke":
        return event.kind in ROOT_KINDS
    return event.cause is None or event.type not in _CLIENT_INITIATED_OPERATIONS
