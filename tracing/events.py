"""The event of a run, of which a trace is made.

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

What changes inside an actor has no kind of its own: it is in the delta of the event at which it
changed, or of a ``state`` event when no event was being handled.
"""

ROOT_KINDS = frozenset({"start", "step", "fault", "crash", "restart", "client_invoke"})
"""Where chains of causes end: the start of the run, what a scenario or a test does to the cluster,
a fault, an operation of a client."""
_OF_ITS_OWN_ACCORD = frozenset({"join_group", "heartbeat", "find_coordinator", "offset_fetch"})
"""Operations that no application asks for: a client begins them because of what it was told."""
WAITED = "Waited"
"""Type of an ``expire`` event that tells of a wait; its field ``request`` is the event at which
that began."""
MESSAGE_KINDS = frozenset({"send", "deliver", "drop", "hold", "release"})
INTERESTING_KINDS = frozenset({"crash", "restart", "fault"})
"""What a reader of a long trace wants to jump to."""

EVENT_FIELDS = (
    "seq", "t", "kind", "actor", "peer", "type", "msg", "cause", "epochs", "payload", "delta",
    "why", "op",
)  # fmt: skip
"""Positions of an event in the file; ``t`` is nanoseconds since the run began."""


class TraceError(FakeKafkaError):
    """A trace cannot be read, or does not contain what the call asked for; says where, and why."""


class Truncated(NamedTuple):
    """Bytes of which the trace kept only the beginning."""

    length: int
    """Bytes in the original."""
    head: bytes

    def __str__(self) -> str:
        return f"{bytes_text(self.head)}..({self.length} bytes)"


def bytes_text(value: bytes) -> str:
    """Bytes as one printable word: text where it is text, else hexadecimal."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return "0x" + value.hex()
    return text if text.isprintable() else "0x" + value.hex()


class KindCodes(dict[str, int]):
    """Kind to code; an unknown kind is a bug of whoever recorded it."""

    def __missing__(self, kind: str) -> int:
        raise UsageError(f"{kind!r} is not an event kind; use one of {', '.join(KINDS)}")


KIND_CODES = KindCodes((kind, code) for code, kind in enumerate(KINDS))


class Payloads(Protocol):
    """The source of payloads, which are read when they are asked for."""

    def payload(self, place: int) -> Any: ...

    def epochs(self, place: int) -> Any: ...


class Unread(NamedTuple):
    """In an event that is not read whole: where its payload and its epochs are."""

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
        """Its number."""
        self.time_us: int = time_ns // 1000
        """Microseconds since the run began."""
        self.kind: str = KINDS[kind] if kind < len(KINDS) else f"kind-{kind}"
        """``send``, ``deliver``, ``drop``, ``hold``, ``release``, ``timer_fire``, ``spawn``,
        ``stop``, ``crash``, ``restart``, ``state``, ``fault``, ``note``, ``start``, ``step``,
        ``expire``, ``client_invoke``, ``client_retry``, ``client_ok`` or ``client_fail``."""
        self.actor: str = strings[actor]
        """The actor at which it happened."""
        self.peer: str | None = None if peer is None else strings[peer]
        """The other end of a message."""
        self.type: str | None = None if type_ is None else strings[type_]
        """Name of the message or the timer."""
        self.message_id: int | None = message_id
        """Number of the message: its sending and its delivery have the same."""
        self.cause: int | None = cause
        """Seq of the event from which this one follows: the sending of a message for its delivery,
        what armed a timer for its firing, what was being handled for anything else."""
        self._epochs = epochs
        self._payload = payload
        self.delta: list[tuple[str, Any, Any]] = [(strings[p], old, new) for p, old, new in delta]
        """The changes of state that came with it: (path, old, new)."""
        self.why: str | None = why
        """A reason in words, such as that of a fault."""
        self.op: int | None = op
        """Seq of the ``client_invoke`` of the client's operation to which this belongs."""
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
        """[controller epoch, leader epoch, znode version], each None when not meaningful."""
        epochs = self._epochs
        if epochs.__class__ is Unread:
            epochs = self._epochs = epochs.chunk.epochs(epochs.place)
        return epochs  # type: ignore[no-any-return]

    @property
    def fields(self) -> dict[str, Any]:
        """The payload by field name, nested messages as dictionaries; empty without payload."""
        if self._fields is None:
            if self.payload is None or self.type is None:
                self._fields = {}
            else:
                self._fields = self._schema.name_fields(self.type, self.payload)
        return self._fields

    def as_dict(self) -> dict[str, Any]:
        """The event as plain values, for JSON."""
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
    """The value with bytes turned into text, recursively."""
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
    """Return whether a chain of causes ends here."""
    if event.kind != "client_invoke":
        return event.kind in ROOT_KINDS
    return event.cause is None or event.type not in _OF_ITS_OWN_ACCORD
