"""``Trace``: the public interface of a recorded run.

It answers from the recording; nothing is run again. ``open_trace`` reads a file, and
``Simulation.trace()`` returns what a simulation has recorded so far.
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
    """Open a ``.fktrace`` file. Raises ``TraceError`` if it is not a trace or cannot be read."""
    return Trace(TraceReader(path))


class Trace:
    """A recorded run: events, the state after each, causes and effects.

    A *position* is an event's number (``1234``, ``"#1234"``), an event, a time (``"9.5s"``: the
    last event at or before it), or a description: ``"change broker-1/orders-0/isr"``,
    ``"last change broker-*/orders-0/role if new == 'leader'"``, ``"kind == expire"``.

    A trace is a context manager, which closes the file.
    """

    def __init__(self, stored: StoredTrace) -> None:
        self.stored: StoredTrace = stored
        """The stored trace, from which all answers are read."""

    # -- origin and extent ---------------------------------------------------------------------

    @property
    def header(self) -> dict[str, Any]:
        """The origin of the run: ``mode``, ``kafka_version``, ``seed``, ``scenario``,
        ``config``, ``reproduce``."""
        return self.stored.header

    @property
    def fingerprint(self) -> str | None:
        """Digest of all events; None if the run did not end properly."""
        return self.stored.fingerprint

    @property
    def problem(self) -> str | None:
        """The reason why the trace ends early; None if it is complete."""
        return self.stored.problem

    @property
    def cannot_replay(self) -> str | None:
        """The reason why this trace cannot be run again; None if it can."""
        return refusal(self.stored)

    @property
    def duration_us(self) -> int:
        """Virtual microseconds from the first event to the last."""
        return self.stored.duration_us

    @property
    def actors(self) -> list[str]:
        """Names of all actors, in order of appearance."""
        return self.stored.actors()

    # -- events --------------------------------------------------------------------------------

    @property
    def events(self) -> EventList:
        """All events as a sequence; each is read on demand."""
        return EventList(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def event(self, position: Position) -> Event:
        """Return the event at a position; raise ``TraceError`` if there is none."""
        return self.stored.event(seq_of(self.stored, position))

    def between(self, start: Position, stop: Position) -> Iterator[Event]:
        """Iterate over the events from one position to another, both included."""
        return self.stored.events(seq_of(self.stored, start), seq_of(self.stored, stop) + 1)

    def filter(
        self, expression: str, start: Position | None = None, stop: Position | None = None
    ) -> Iterator[Event]:
        """Iterate over the events from ``start`` to ``stop``, both included, that satisfy an
        expression.

        The language is that of ``fakekafka trace grep``. A mistake in it raises ``UsageError``.
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
        """All faults, crashes and restarts."""
        return [self.stored.event(seq) for seq in self.stored.interesting()]

    # -- state ---------------------------------------------------------------------------------

    def state_at(
        self, position: Position, actor: str | None = None, pattern: str | None = None
    ) -> State:
        """Return the state after the event at a position: of all actors, of one actor, or of the
        paths that match a pattern (``broker-*/orders-0``)."""
        return state_at(self.stored, seq_of(self.stored, position), actor, pattern)

    def changes(self, pattern: str | None = None) -> Iterator[StateChange]:
        """Iterate over every change of the paths that match a pattern, in order."""
        return changes(self.stored, pattern)

    # -- causes --------------------------------------------------------------------------------

    def why(self, position: Position, *, is_folded: bool = True) -> list[Event]:
        """Return the causes of an event that matter: itself first, the root last.

        With ``is_folded=False`` all steps, including sendings, answered requests and waiting.
        """
        return causes.why(self.stored, seq_of(self.stored, position), is_folded=is_folded)

    def effects(
        self, position: Position, limit: int = 1000, depth: int | None = None
    ) -> causes.Effect:
        """Return the tree of an event's effects; ``is_whole`` is False if it has more than
        ``limit`` events."""
        return causes.effects(self.stored, seq_of(self.stored, position), limit, depth)

    def story(self) -> list[tuple[float, str]]:
        """Return the story of the run (which broker died, who noticed, who was elected) as lines
        of (milliseconds, text)."""
        return timeline(self.stored)

    # -- the file ------------------------------------------------------------------------------

    def check(self) -> None:
        """Read the whole trace; raise ``TraceError`` if it is damaged."""
        self.stored.check()

    def close(self) -> None:
        """Close the file; a ``with`` block does so at its end."""
        self.stored.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Trace: {len(self)} events, seed {self.header.get('seed')}>"
