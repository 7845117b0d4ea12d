"""The recorder: the one sink the runtime calls, only when a run is traced.

Events are kept as lists with the message itself in the payload's place; messages are immutable,
so packing waits until a chunk is full, which lets a handler add state changes to its event and
makes packing one call for a thousand events.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..protocol.errors import UsageError
from .chunks import Chunk, ChunkBuilder, ChunkInfo
from .events import EVENT_FIELDS, KIND_CODES
from .fingerprint import Fingerprint
from .format import CHUNK_EVENTS
from .packing import PayloadPacker, epochs_getter
from .schema import is_message_type
from .trace import EventList, MemoryTrace
from .writer import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORD_BYTES_LIMIT = 64
_NO_DELTA: tuple[()] = ()
_STATE = KIND_CODES["state"]
_DELTA = EVENT_FIELDS.index("delta")

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
        self._outline = Fingerprint()
        self._closed = False
        self.event: Callable[..., int] = self._event_function()
        """``event(time_us, kind, actor, peer, message, message_id, cause, why=None) -> seq``.

        Records one event; seq is dense from 0. ``message`` is a protocol message, or a string
        that names the type by itself (a timer).
        """

    def _event_function(self) -> Callable[..., int]:
        """``event`` with everything it touches in local reach: it runs for every message."""
        strings, types = self._strings, self._types
        outline_append = self._outline.append
        pending: list[Any] = self._builder.pending
        append = pending.append
        cut, next_seq = self._cut, self._seqs.__next__

        def event(
            time_us: int,
            kind: str,
            actor: str,
            peer: str | None,
            message: object | None,
            message_id: int | None,
            cause: int | None,
            why: str | None = None,
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
            append(
                [
                    seq, time_us * 1000, KIND_CODES[kind], strings[actor], strings[peer], type_id,
                    message_id, cause, epochs, payload, _NO_DELTA, why,
                ]
            )  # fmt: skip
            outline_append((time_us, kind, actor, peer, name, message_id))
            if len(pending) >= CHUNK_EVENTS:
                cut()
            return seq

        return event

    keeps_state = True
    """Cores are told to report their changes of state."""

    def state(
        self, seq: int | None, path: str, old: Any, new: Any, time_us: int | None = None
    ) -> None:
        """A state change made while handling event ``seq``: ``broker-1/orders-0/isr``, old, new.

        It joins that event; when the event's chunk is written already it becomes an event of
        its own, caused by that one. So does a change outside of any event (``seq`` None).
        """
        pending = self._pending
        tagged = self._packer.tagged
        change = (self._strings[path], tagged(old), tagged(new))
        if seq is not None and pending and pending[0][0] <= seq <= pending[-1][0]:
            event = pending[seq - pending[0][0]]
            if event[_DELTA]:
                event[_DELTA].append(change)
            else:
                event[_DELTA] = [change]
            return
        last = self._last_chunk
        if seq is not None and (last is None or not 0 <= seq <= last.last_seq):
            raise UsageError(f"a state change of {path} for event #{seq}, which is not recorded")
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
            ]
        )

    # -- chunks --------------------------------------------------------------------------------

    def _cut(self) -> None:
        self._builder.cut()
        self._outline.absorb()

    def _take(self, chunk: Chunk) -> None:
        self._last_chunk = chunk.info
        if self.writer is not None:
            self.writer.write_chunk(chunk)
        if not self._in_memory:
            return
        chunks = self._chunks
        chunks.append(chunk)
        if self._keep is not None:
            kept = chunk.info.last_seq + 1 - chunks[0].info.first_seq
            while len(chunks) > 1 and kept - chunks[0].info.events >= self._keep:
                kept -= chunks[0].info.events
                del chunks[0]

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
        )

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
        for index, chunk in enumerate(trace.stored):
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


class LockedRecorder(Recorder):
    """A recorder that several threads may call: the order of calls is the order of events."""

    def __init__(
        self,
        writer: TraceWriter | None = None,
        keep: int | None = None,
        record_bytes_limit: int = RECORD_BYTES_LIMIT,
    ) -> None:
        self._lock = threading.RLock()
        super().__init__(writer, keep, record_bytes_limit)

    def _event_function(self) -> Callable[..., int]:
        record = super()._event_function()

        def event(*args: Any, **kwargs: Any) -> int:
            with self._lock:
                return record(*args, **kwargs)

        return event

    def state(
        self, seq: int | None, path: str, old: Any, new: Any, time_us: int | None = None
    ) -> None:
        with self._lock:
            super().state(seq, path, old, new, time_us)

    def trace(self, header: Mapping[str, Any] | None = None) -> MemoryTrace:
        with self._lock:
            return super().trace(header)

    def fingerprint(self) -> str:
        with self._lock:
            return super().fingerprint()

    def close(self) -> None:
        with self._lock:
            super().close()
