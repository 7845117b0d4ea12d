"""Observes a run for a batch while all its events are recorded for a trace."""

from __future__ import annotations

from collections.abc import Callable

from ...actors.interfaces import EventSink
from ...tracing.fingerprint import UNSEEN_KINDS
from ...tracing.format import CHUNK_EVENTS
from ...tracing.recording.recorder import Recorder
from .budget import Budget
from .sink import WATCHED, LeadershipWatch, exceeded, limits


class RecordingSink(Recorder):
    """A recorder that also observes the events as a ``Sink`` does."""

    waiting_max = CHUNK_EVENTS  # other tasks need the memory

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self.intake: EventSink | None = None  # so that every event goes through ``event``
        self.watch: LeadershipWatch = LeadershipWatch()
        self.outlined = 0
        """Number of events in the outline so far, which are those that a ``Sink`` counts."""
        record = self._intake.event
        watch = self.watch.observe
        events_max, time_us_max = limits(budget)

        def event(
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
            seq = record(time_us, kind, actor, peer, message, message_id, cause, why, of)
            if kind in UNSEEN_KINDS:
                return seq
            self.outlined = number = self.outlined + 1
            if message.__class__ in WATCHED:
                watch(time_us, kind, actor, peer, message, message_id, why)
            if number > events_max or time_us > time_us_max:
                raise exceeded(number - 1, events_max, time_us_max)
            return seq

        self.event: Callable[..., int] = event
