"""The recorder: the one sink the runtime calls, only when a run is traced.

Events are kept as lists with the message itself in the payload's place; messages are immutable,
so packing waits until a chunk is full, which lets a handler add state changes to its event and
makes packing one call for a thousand events.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..protocol.errors import UsageError
from .chunks import Chunk, ChunkBuilder, ChunkInfo, Snapshot
from .events import EVENT_FIELDS, KIND_CODES, Event
from .fingerprint import Fingerprint
from .format import CHUNK_EVENTS
from .operations import Operations
from .packing import PayloadPacker, epochs_getter, unpack
from .recorded_state import RecordedState
from .schema import Schema, is_message_type
from .trace import EventList, MemoryTrace
from .writer import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORD_BYTES_LIMIT = 64
_NO_DELTA: tuple[()] = ()
_STATE = KIND_CODES["state"]
_DELTA = EVENT_FIELDS.index("delta")
_APART = frozenset({"spawn", "stop", "client_ok", "client_fail"})
_UNSEEN = frozenset({"client_invoke", "client_retry", "client_ok", "client_fail", "expire"})
"""Kinds that only a recorder is told: no part of the outline, which others compute too."""
SNAPSHOT_EVENTS = 4_000
"""Events between two snapshots of the state; more when the state is large."""

_TypeEntry = tuple[int | None, str, Callable[[Any], Any] | None, Callable[[Any], Any] | None]


def _single_field(convert: Callable[[Any], Any], value: Any) -> tuple[Any]:
    return (convert(value),)


class _Types(dict[type, _TypeEntry]):
    """Per message class: number of its name, the name, its epochs, how to wrap the payload."""

    __slots__ = ("_packer", "_strings")

    def __init__(self, strings: dict[str | None, int | None], packer: PayloadPacker) -> None:
        super().__init__({type(None): (None, "NoneType", None, None)})
        self._strings = strings
        self._packer = packer

    def __missing__(self, cls: type) -> _TypeEntry:
        name = cls.__name__
        wrap: Callable[[Any], Any] | None = None
        self._packer.declare(cls)
        if not (is_message_type(cls) or issubclass(cls, BaseException)):
            wrap = partial(_single_field, self._packer.tagged)
        entry = (self._strings[name], name, epochs_getter(cls), wrap)
        self[cls] = entry
        return entry


class Recorder:
    """Records the events of one run: to a file, in memory, or both.

    With a ``writer`` chunks go to its file; without one, or with ``keep``, they stay in memory:
    all of them, or at least the last ``keep`` events. Bytes longer than ``record_bytes_limit``
    are cut, their length is kept.
    """

    def __init__(
        self,
        writer: TraceWriter | None = None,
        keep: int | None = None,
        record_bytes_limit: int = RECORD_BYTES_LIMIT,
    ) -> None:
        self.writer = writer
        self.record_bytes_limit = record_bytes_limit
        self._keep = keep
        self._in_memory = writer is None or keep is not None
        self._chunks: list[Chunk] = []
        self._last_chunk: ChunkInfo | None = None
        self._packer = PayloadPacker(record_bytes_limit)
        self._builder = ChunkBuilder(self._packer, self._take)
        self._strings = self._builder.strings
        self._types = _Types(self._strings, self._packer)
        self._pending = self._builder.pending
        self._seqs = itertools.count()
        self._sent: dict[int | None, int] = {}  # number of a message under way: its sending
        self._operations = Operations()
        self._answers: dict[int | None, int] = {}  # message about to be sent: its operation
        self._state = RecordedState(self._strings.__getitem__)
        self._snapshots: list[Snapshot] = []
        self._snapshot_due = SNAPSHOT_EVENTS
        self._base: dict[int, tuple[Any, int]] = {}  # state before the first chunk that is kept
        self._outline = Fingerprint()
        self._closed = False
        self.event: Callable[..., int] = self._event_function()
        """``event(time_us, kind, actor, peer, message, message_id, cause, why=None) -> seq``.

        Records one event; seq is dense from 0. ``message`` is a protocol message, or a string
        that names the type by itself (a timer).
        """

    def _event_function(self) -> Callable[..., int]:
        """Make ``event`` as a closure over all it touches: it runs for every message."""
        strings, types = self._strings, self._types
        outline_append = self._outline.append
        pending: list[Any] = self._builder.pending
        append = pending.append
        cut, next_seq = self._cut, self._seqs.__next__
        sent, answers = self._sent, self._answers
        operations = self._operations
        op_of, carry = operations.by_event.get, operations.carry

        def event(
            time_us: int,
            kind: str,
            actor: str,
            peer: str | None,
            message: object | None,
            message_id: int | None,
            cause: int | None,
            why: str | None = None,
            op: int | None = None,
        ) -> int:
            seq = next_seq()
            cls = message.__class__
            if cls is str:
                type_id: int | None = strings[message]  # type: ignore[index]
                name: Any = message
                payload = epochs = None
            else:
                type_id, name, epochs_of, wrap = types[cls]
                payload = message if wrap is None else wrap(message)
                epochs = None if epochs_of is None else epochs_of(message)
            if kind == "deliver" or kind == "drop":
                cause = sent.pop(message_id, cause)
            elif kind == "send":
                sent[message_id] = seq
                if answers:
                    op = answers.pop(message_id, None)
            elif kind == "client_invoke":
                op = operations.begin(seq)
            if op is None:
                op = op_of(cause)
            if op is not None:
                op = carry(seq, op, message_id)
            append(
                [
                    seq, time_us * 1000, KIND_CODES[kind], strings[actor], strings[peer], type_id,
                    message_id, cause, epochs, payload, _NO_DELTA, why, op,
                ]
            )  # fmt: skip
            if kind in _APART:
                self._take_apart(kind, actor, peer, op)
            if kind not in _UNSEEN:
                outline_append((time_us, kind, actor, peer, name, message_id))
            if len(pending) >= CHUNK_EVENTS:
                cut()
            return seq

        return event

    def _take_apart(self, kind: str, actor: str, peer: str | None, op: int | None) -> None:
        """End an operation of a client; begin an actor, or end it with its state."""
        if kind == "spawn":
            self._state.begin(actor)
        elif kind != "stop":
            self._operations.end(op)
        elif peer is not None:  # a node; without a peer it is news of a process
            delta = self._state.halt(actor)
            if delta:
                self._pending[-1][_DELTA] = delta

    def answers(self, answer_id: int, request_id: int) -> None:
        """A message about to be sent answers another: it belongs to the same operation."""
        op = self._operations.by_message.get(request_id)
        if op is not None:
            self._answers[answer_id] = op

    keeps_state = True
    """Cores are told to report their changes of state."""

    def state(
        self, seq: int | None, path: str, old: Any, new: Any, time_us: int | None = None
    ) -> None:
        """A state change made while handling event ``seq``: ``broker-1/orders-0/isr``, old, new.

        It joins that event; when the event's chunk is written already it becomes an event of
        its own, caused by that one. So does a change outside of any event (``seq`` None). What is
        known of the path goes before ``old``.
        """
        pending = self._pending
        tagged = self._packer.tagged
        joins = seq is not None and pending and pending[0][0] <= seq <= pending[-1][0]
        last = self._last_chunk
        if seq is not None and not joins and (last is None or not 0 <= seq <= last.last_seq):
            raise UsageError(f"a state change of {path} for event #{seq}, which is not recorded")
        place = seq if joins and seq is not None else len(self)
        change = self._state.change(place, path, tagged(old), tagged(new))
        if change is None:
            return
        if joins and seq is not None:
            event = pending[seq - pending[0][0]]
            if event[_DELTA]:
                event[_DELTA].append(change)
            else:
                event[_DELTA] = [change]
            return
        number = next(self._seqs)
        if time_us is not None:
            time_ns = time_us * 1000
        elif pending:
            time_ns = pending[-1][1]
        else:
            time_ns = 0 if last is None else last.time_last_us * 1000
        actor = self._strings[path.partition("/")[0]]
        pending.append(
            [
                number,
                time_ns,
                _STATE,
                actor,
                None,
                None,
                None,
                seq,
                None,
                None,
                [change],
                None,
                None,
            ]
        )

    # -- chunks --------------------------------------------------------------------------------

    def _cut(self) -> None:
        self._builder.cut()
        self._outline.absorb()
        self._snap()

    def _take(self, chunk: Chunk) -> None:
        self._last_chunk = chunk.info
        if self.writer is not None:
            self.writer.write_chunk(chunk)
        if self._in_memory:
            self._keep_chunk(chunk)

    def _snap(self) -> None:
        """Keep the state of this moment, from where readers begin: after whole chunks only."""
        last = self._last_chunk
        if last is None or last.last_seq + 1 < self._snapshot_due or not self._state.count:
            return
        entries = self._state.snapshot()
        self._snapshot_due = last.last_seq + 1 + max(SNAPSHOT_EVENTS, 2 * len(entries))
        snapshot = Snapshot(last.last_seq, self._packer.pack([last.last_seq, entries]))
        if self.writer is not None:
            self.writer.write_snapshot(snapshot)
        if self._in_memory:
            self._snapshots.append(snapshot)

    def _keep_chunk(self, chunk: Chunk) -> None:
        chunks = self._chunks
        chunks.append(chunk)
        if self._keep is not None:
            kept = chunk.info.last_seq + 1 - chunks[0].info.first_seq
            while len(chunks) > 1 and kept - chunks[0].info.events >= self._keep:
                kept -= chunks[0].info.events
                self._forget(chunks.pop(0))

    def _forget(self, chunk: Chunk) -> None:
        """Let go of the oldest chunk; the state that it led to is kept."""
        base = self._base
        for seq, delta in chunk.deltas:
            for number, _, new in delta:
                if new is None:
                    base.pop(number, None)
                else:
                    base[number] = (new, seq)
        last_seq = chunk.info.last_seq
        self._snapshots = [snap for snap in self._snapshots if snap.seq > last_seq]

    # -- asking --------------------------------------------------------------------------------

    def __len__(self) -> int:
        if self._pending:
            return int(self._pending[-1][0]) + 1
        return self._last_chunk.last_seq + 1 if self._last_chunk else 0

    def fingerprint(self) -> str:
        """blake2b-256 of all events with their payloads, hexadecimal."""
        return self._builder.digest().hex()

    def outline(self) -> str:
        """What ``Fingerprint`` gives for the same run: the order of events, no payloads."""
        return self._outline.fingerprint()

    def trace(self, header: Mapping[str, Any] | None = None) -> MemoryTrace:
        """What is kept in memory, as a readable trace of this moment."""
        chunks = list(self._chunks)
        last = self._builder.pending_chunk()
        if last is not None:
            chunks.append(last)
        return MemoryTrace(
            chunks,
            list(self._strings.ordered),
            list(self._packer.schema.items()),
            dict(header or {}),
            self.fingerprint(),
            self.outline(),
            self._kept_snapshots(chunks),
        )

    def _kept_snapshots(self, chunks: list[Chunk]) -> list[Snapshot]:
        if not self._base or not chunks:
            return list(self._snapshots)
        before = chunks[0].info.first_seq - 1
        entries = [(number, value, seq) for number, (value, seq) in self._base.items()]
        return [Snapshot(before, self._packer.pack([before, entries])), *self._snapshots]

    def raw_since(self, first: int) -> list[Any]:
        """Events from a number on, as they are kept: those not packed yet at no cost."""
        pending = self._pending
        if pending and pending[0][0] <= first:
            return pending[first - pending[0][0] :]
        trace = self.trace()
        kept = range(max(trace.chunk_of(first), 0), len(trace.chunks))
        return [raw for index in kept for raw in trace.raw_events(index) if raw[0] >= first]

    def decoded(self, raw: list[Any]) -> Event:
        """One of them as readers see it."""
        packer = self._packer
        plain = unpack(packer.pack(raw))
        return Event(plain, self._strings.ordered, Schema(list(packer.schema.items())))

    @property
    def strings(self) -> list[str]:
        """Names by number, as raw events have them."""
        return self._strings.ordered

    @property
    def events(self) -> EventList:
        """Events kept in memory at this moment, as a read-only sequence."""
        return EventList(self.trace())

    # -- ending --------------------------------------------------------------------------------

    def close(self) -> None:
        """Write what is pending and end the file; further events are a mistake."""
        if self._closed:
            return
        self._closed = True
        if self.writer is not None:
            self._builder.cut()
            self.writer.close(
                self._strings.ordered,
                list(self._packer.schema.items()),
                self._builder.digest(),
                self.outline(),
            )

    def save(self, path: str | Path, header: Mapping[str, Any], *, codec: str = "zstd") -> None:
        """Write what is kept in memory to a file of its own; recording goes on."""
        trace = self.trace()
        whole = not trace.chunks or trace.chunks[0].first_seq == 0
        head = {**header, "record_bytes_limit": self.record_bytes_limit}
        if not whole:
            head["part"] = f"the last events, from #{trace.chunks[0].first_seq} on"
        writer = TraceWriter(path, head, codec=codec)
        strings, schema = trace.strings, list(self._packer.schema.items())
        snapshots = deque(trace.snapshots)
        for index, chunk in enumerate(trace.stored):
            while snapshots and snapshots[0].seq < chunk.info.first_seq:
                writer.write_snapshot(snapshots.popleft())
            if index == 0 and not whole:
                # The tables that the dropped chunks had brought along.
                chunk = trace.with_tables(chunk, strings, schema)
            elif not whole:
                chunk = trace.with_tables(chunk, [], [])
            writer.write_chunk(chunk)
        writer.close(strings, schema, self._builder.digest(), self.outline())

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
