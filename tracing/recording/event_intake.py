"""Takes in events while a run goes on, with as little work as possible.

An event is stored as a row that refers to the message itself; changes of state are in another list.
As messages are immutable, all other work can wait (``chunk_maker``). The virtual network writes the
rows of messages itself (``row_buffer``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...actors.interfaces import EventSink, Row
from ...protocol.errors import UsageError
from ..chunk_codec import NO_TYPE
from ..events import KIND_CODES, KINDS
from ..fingerprint import UNSEEN_KINDS
from ..packing import PayloadPacker
from ..schema import is_message_type
from .chunk_maker import ChunkMaker, PlainValue
from .pending_events import PendingEvents
from .recorded_state import (
    NOT_REPORTED,
    ActorState,
    Halted,
    LatestValues,
    NewOffsets,
    NewValue,
    Started,
    latest_reported_value,
)

if TYPE_CHECKING:
    from ...actors.interfaces import AbstractRuntime
    from ...protocol.host import LogListener, LogOffsets, StateListener

_OPERATION_KINDS = frozenset({"client_invoke", "client_retry", "client_ok", "client_fail"})
_PLAIN_ROW_KINDS = frozenset(KINDS) - UNSEEN_KINDS - {"send", "deliver", "drop", "spawn", "stop"}
"""Kinds of events that leave only a row, and no other note."""
_PLAIN_CLASSES = frozenset({int, str, type(None), bool, float})
"""Classes whose values are recorded unchanged."""


class _ValuePacker(PayloadPacker):
    """Prepares values that are not messages, and remembers at which event each type first came."""

    def __init__(self, record_bytes_limit: int, pending: PendingEvents) -> None:
        super().__init__(record_bytes_limit)
        self._pending = pending

    def declare(self, cls: type) -> None:
        known = len(self.schema)
        super().declare(cls)
        if len(self.schema) > known:
            pending = self._pending
            pending.declared += [(len(pending), name) for name in list(self.schema)[known:]]


class EventIntake(EventSink):
    """Takes in events and changes of state, and keeps them until chunks are made of them."""

    def __init__(self, cut: Callable[[], None], record_bytes_limit: int) -> None:
        """``cut`` is called whenever there are rows for another chunk."""
        pending = PendingEvents(cut)
        super().__init__(pending)
        self.pending: PendingEvents = pending
        self._value_packer: _ValuePacker = _ValuePacker(record_bytes_limit, pending)
        self.maker: ChunkMaker = ChunkMaker(record_bytes_limit, self._value_packer.schema)
        self.first: int = 0
        """Number of the first event of the chunk that is not full yet."""
        self._sent: dict[int | None, int] = {}
        """Number of each message in transit to the event of its sending."""
        self._started_actors: set[str] = set()
        """Actors that started in this recording."""
        self.latest: LatestValues = LatestValues()

    def event(
        self,
        time_us: int,
        kind: str,
        actor: str,
        peer: str | None,
        message: object | None,
        message_id: int | None,
        cause: int | None,
        why: str | None = None,
        of: int | None = None,
    ) -> int:
        """Record an event as ``Recorder.event`` describes."""
        cls = message.__class__
        if cls is str:
            name: Any = message
            message = None
        else:
            name = cls.__name__
            if message is not None and not (is_message_type(cls) or issubclass(cls, BaseException)):
                self._value_packer.declare(cls)
                message = PlainValue((self._value_packer.tagged(message),))
        pending = self.pending
        rows = pending.rows
        seq = pending.first + len(rows)
        if kind in _OPERATION_KINDS:
            of = pending.mark_operation(kind, seq, of)
        elif kind == "deliver" or kind == "drop":
            cause = self._sent.pop(message_id, cause)
        elif kind == "send":
            self._sent[message_id] = seq
        elif kind not in _PLAIN_ROW_KINDS:
            self._note(kind, seq, actor, peer)
        rows.append(Row(time_us, kind, actor, peer, name, message_id, message, cause, why, of))
        if seq == pending.last_of_chunk:
            pending.cut()
        return seq

    def _note(self, kind: str, seq: int, actor: str, peer: str | None) -> None:
        """Note that an actor starts or halts, or that an event is not part of the outline."""
        KIND_CODES[kind]  # raises UsageError for an unknown kind
        pending = self.pending
        if kind in UNSEEN_KINDS:
            pending.unseen.append(seq)
        elif kind == "spawn":
            self._started_actors.add(actor)
            pending.reports.append(Started(seq, self.maker.state.actor_state(actor)))
        elif kind == "stop" and peer is not None:  # a node stops; of a process there is no peer
            pending.reports.append(Halted(seq, self.maker.state.actor_state(actor)))

    def state_listener(self, runtime: AbstractRuntime, actor: str) -> StateListener:
        """Return the listener of changes of an actor's state."""
        state = self.maker.state.actor_state(actor)
        pending, tagged = self.pending, self._value_packer.tagged

        def changed(path: str, old: Any, new: Any) -> None:
            if type(new) is not int and type(new) not in _PLAIN_CLASSES:
                new = tagged(new)
            if old is not None and type(old) not in _PLAIN_CLASSES:
                old = tagged(old)
            seq = runtime.cause
            if seq is not None and seq >= self.first:
                pending.reports.append(NewValue(seq, state, path, old, new))
            else:
                self._state(seq, state, path, old, new, runtime.now_us())

        return changed

    def log_listener(
        self, runtime: AbstractRuntime, actor: str, paths: tuple[str, str, str]
    ) -> LogListener:
        """Return the listener of the offsets of an actor's log."""
        state, pending = self.maker.state.actor_state(actor), self.pending
        names: Sequence[str] = paths  # typed as a tuple, compiled code would copy it for each move

        def moved(log: LogOffsets) -> None:
            seq = runtime.cause
            end, mark, start = log.log_end_offset, log.high_watermark, log.log_start_offset
            if seq is not None and seq >= self.first:
                pending.reports.append(NewOffsets(seq, state, names, end, mark, start))
            else:
                for path, offset in zip(paths, (end, mark, start), strict=True):
                    self._state(seq, state, path, None, offset, runtime.now_us())

        return moved

    def state_at(self, seq: int | None, path: str, old: Any, new: Any, time_us: int | None) -> None:
        """Record a change of state as ``Recorder.state`` describes."""
        if seq is not None and not 0 <= seq < len(self.pending):
            raise UsageError(f"a state change of {path} for event #{seq}, which is not recorded")
        actor, _, rest = path.partition("/")
        old, new = self._value_packer.tagged(old), self._value_packer.tagged(new)
        self._state(seq, self.maker.state.actor_state(actor), rest, old, new, time_us)

    def _state(
        self, seq: int | None, state: ActorState, path: str, old: Any, new: Any, time_us: int | None
    ) -> None:
        pending = self.pending
        place = seq
        if seq is None or seq < self.first:
            if not self._would_change(state, path, old, new):
                return
            if time_us is None:
                time_us = pending.last_time_us()
            place = len(pending)
            pending.unseen.append(place)
            pending.rows.append(
                Row(time_us, "state", state.name, None, NO_TYPE, None, None, seq, None, None)
            )
        assert place is not None
        pending.reports.append(NewValue(place, state, path, old, new))
        if place is not seq and place == pending.last_of_chunk:
            pending.cut()

    def _would_change(self, state: ActorState, path: str, old: Any, new: Any) -> bool:
        """Return whether a reported value differs from the known one."""
        reports = self.pending.reports
        known = latest_reported_value(reports, state, path)
        if known is NOT_REPORTED:
            self.latest.update(reports)
            known = self.latest.value(state, path)
        if known is not None:
            return bool(known != new)
        return bool(new is not None if state.name in self._started_actors else old != new)
