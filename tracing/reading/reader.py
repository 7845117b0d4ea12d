"""``Trace``: the public face of a recorded run.

It answers from what was recorded; nothing is run. ``open_trace`` reads a file, and
``Simulation.trace()`` shows what a simulation has recorded so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from ..events import Event
from ..story.timeline import timeline
from ..trace import EventList, StoredTrace
from ..trace_file import TraceReader
from ..verify import refusal
from . import causes, queries
from .places import seq_of
from .positions import Position
from .state_history import State, StateChange, changes, state_at


def open_trace(path: str | Path) -> Trace:
    """Open a ``.fktrace`` file. Raises ``TraceError`` when it is no trace or cannot be read."""
    return Trace(TraceReader(path))


class Trace:
    """A recorded run: events, the state after each, causes and effects.

    A *position* is an event's number (``1234``, ``"#1234"``), an event, a time (``"9.5s"``: the
    last event at or before it), or what happens there: ``"change broker-1/orders-0/isr"``,
    ``"last change broker-*/orders-0/role if new == 'leader'"``, ``"kind == expire"``.

    It is a context manager; ``close`` lets go of the file.
    """

    def __init__(self, stored: StoredTrace) -> None:
        self.stored: StoredTrace = stored
        """The stored events, as the reader of the file has them."""

    # -- what it is ----------------------------------------------------------------------------

    @property
    def header(self) -> dict[str, Any]:
        """The origin of the run: ``mode``, ``kafka_version``, ``seed``, ``scenario``,
        ``config``, ``reproduce``."""
        return self.stored.header

    @property
    def fingerprint(self) -> str | None:
        """Digest of all events; None when the run did not end in order."""
        return self.stored.fingerprint

    @property
    def problem(self) -> str | None:
        """The reason why the trace ends early; None when it is whole."""
        return self.stored.problem

    @property
    def cannot_replay(self) -> str | None:
        """The reason why this trace cannot be run again; None when it can."""
        return refusal(self.stored)

    @property
    def duration_us(self) -> int:
        """Virtual microseconds from the first event to the last."""
        return self.stored.duration_us

    @property
    def actors(self) -> list[str]:
        """Names of all that act in it, in order of appearance."""
        return self.stored.actors()

    # -- events --------------------------------------------------------------------------------

    @property
    def events(self) -> EventList:
        """All events as a sequence; they are read when they are asked for."""
        return EventList(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def event(self, position: Position) -> Event:
        """The event at a position; raises ``TraceError`` where there is none."""
        return self.stored.event(seq_of(self.stored, position))

    def between(self, start: Position, stop: Position) -> Iterator[Event]:
        """Events from one position to another, both included."""
        return self.stored.events(seq_of(self.stored, start), seq_of(self.stored, stop) + 1)

    def filter(
        self, expression: str, start: Position | None = None, stop: Position | None = None
    ) -> Iterator[Event]:
        """Events for which an expression holds, from ``start`` to ``stop``, both included.

        The language is that of ``fakekafka trace grep``. A mistake in it is a ``UsageError``.
        """
        stored = self.stored
        return queries.grep(
            stored,
            queries.compile_filter(expression, stored),
            0 if start is None else seq_of(stored, start),
            None if stop is None else seq_of(stored, stop) + 1,
        )

    @property
    def interesting(self) -> list[Event]:
        """Faults, crashes and restarts."""
        return [self.stored.event(seq) for seq in self.stored.interesting()]

    # -- state ---------------------------------------------------------------------------------

    def state_at(
        self, position: Position, actor: str | None = None, pattern: str | None = None
    ) -> State:
        """The state after the event at a position: of all, of one actor, or of the paths that
        match a pattern (``broker-*/orders-0``)."""
        return state_at(self.stored, seq_of(self.stored, position), actor, pattern)

    def changes(self, pattern: str | None = None) -> Iterator[StateChange]:
        """Every change of the paths that match a pattern, in order."""
        return changes(self.stored, pattern)

    # -- causes --------------------------------------------------------------------------------

    def why(self, position: Position, *, is_folded: bool = True) -> list[Event]:
        """The causes of an event that matter: itself first, the root last.

        With ``is_folded=False`` every step: sendings, questions that were answered, waiting.
        """
        return causes.why(self.stored, seq_of(self.stored, position), is_folded=is_folded)

    def effects(
        self, position: Position, limit: int = 1000, depth: int | None = None
    ) -> causes.Effect:
        """The tree of what followed from an event; ``is_whole`` tells whether it fitted in
        ``limit`` events."""
        return causes.effects(self.stored, seq_of(self.stored, position), limit, depth)

    def story(self) -> list[tuple[float, str]]:
        """Return who died, who noticed, who was elected: (milliseconds, text) lines."""
        return timeline(self.stored)

    # -- the file ------------------------------------------------------------------------------

    def check(self) -> None:
        """Read the whole trace; raises ``TraceError`` for what is damaged."""
        self.stored.check()

    def close(self) -> None:
        """Close the file; a ``with`` block does it."""
        self.stored.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Trace: {len(self)} events, seed {self.header.get('seed')}>"
