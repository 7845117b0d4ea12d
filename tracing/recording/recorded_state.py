"""The state of all actors, as the recorder knows it from the reported changes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

Change = tuple[int, str, Any, Any]
"""Number of the event, path, old value, new value; None stands for no value."""


class _WholePaths(dict[str, str]):
    """Maps a path within an actor to the whole path, which begins with the actor's name."""

    __slots__ = ("_prefix",)

    def __init__(self, actor: str) -> None:
        super().__init__()
        self._prefix = f"{actor}/"

    def __missing__(self, path: str) -> str:
        whole = self[path] = self._prefix + path
        return whole


class ActorState(dict[str, tuple[int, Any]]):
    """Maps each path of an actor to the event that set its value, and the value."""

    __slots__ = ("has_started", "name", "whole_paths")

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name: str = name
        self.whole_paths: _WholePaths = _WholePaths(name)
        self.has_started: bool = False
        """True if the actor started in this recording, and so without any values."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class ReportedChange:
    """A reported change of an actor's state."""

    __slots__ = ("seq", "state")

    def __init__(self, seq: int, state: ActorState) -> None:
        self.seq: int = seq
        """Number of the event during which the state changed."""
        self.state: ActorState = state


class NewValue(ReportedChange):
    """A new value of a path; None stands for no value."""

    __slots__ = ("new", "old", "path")

    def __init__(self, seq: int, state: ActorState, path: str, old: Any, new: Any) -> None:
        super().__init__(seq, state)
        self.path: str = path
        self.old: Any = old
        self.new: Any = new


class NewOffsets(ReportedChange):
    """The offsets of a log, some of which may be unchanged."""

    __slots__ = ("high_watermark", "log_end_offset", "log_start_offset", "paths")

    def __init__(
        self,
        seq: int,
        state: ActorState,
        paths: Sequence[str],
        log_end_offset: int,
        high_watermark: int,
        log_start_offset: int,
    ) -> None:
        super().__init__(seq, state)
        self.paths: Sequence[str] = paths
        """Paths of the end offset, the high watermark and the start offset."""
        self.log_end_offset: int = log_end_offset
        self.high_watermark: int = high_watermark
        self.log_start_offset: int = log_start_offset

    def values(self) -> tuple[int, int, int]:
        return self.log_end_offset, self.high_watermark, self.log_start_offset


class Started(ReportedChange):
    """The actor started, without any state."""

    __slots__ = ()


class Halted(ReportedChange):
    """The actor halted and lost its state."""

    __slots__ = ()


class RecordedState:
    """Values by actor and path. Old values come from here, so that every change can be undone; an
    actor that halts loses its state.

    Reporting a change costs next to nothing; ``settle`` applies many reports at once.
    """

    __slots__ = ("_actors", "settled")

    def __init__(self) -> None:
        self._actors: dict[str, ActorState] = {}
        self.settled: list[Change] = []
        """The changes since the list was last cleared, in their order."""

    def actor_state(self, actor: str) -> ActorState:
        """Return the state of an actor, which is always the same object."""
        state = self._actors.get(actor)
        if state is None:
            state = self._actors[actor] = ActorState(actor)
        return state

    def settle(self, reports: Sequence[ReportedChange], start: int, stop: int) -> int:
        """Apply the reports from place ``start`` on that concern events before ``stop``, which is
        the end of a chunk or beyond all events; return the place of the first one left.

        A known value takes precedence over the old value in a report.
        """
        end = bisect_left(reports, True, start, key=lambda report: report.seq >= stop)
        for report in reports[start:end]:
            seq, state = report.seq, report.state
            if isinstance(report, NewOffsets):
                for path, offset in zip(report.paths, report.values(), strict=True):
                    known = state.get(path)
                    if known is None or known[1] != offset:  # most are unchanged
                        self._change(seq, state, path, None, offset)
            elif isinstance(report, NewValue):
                self._change(seq, state, report.path, report.old, report.new)
            elif isinstance(report, Started):
                state.has_started = True
            else:
                self._halt(seq, state)
        return end

    def _change(self, seq: int, state: ActorState, path: str, old: Any, new: Any) -> None:
        known = state.get(path)
        if known is not None:
            old = known[1]
        elif state.has_started:
            old = None
        if old == new:
            return
        self.settled.append((seq, state.whole_paths[path], old, new))
        if new is not None:
            state[path] = seq, new
        elif known is not None:
            del state[path]

    def _halt(self, seq: int, state: ActorState) -> None:
        whole_paths = state.whole_paths
        self.settled.extend((seq, whole_paths[path], old, None) for path, (_, old) in state.items())
        state.clear()

    def values(self) -> Iterator[tuple[str, Any, int]]:
        """Yield every path with its value and the number of the event that set it."""
        for state in self._actors.values():
            whole_paths = state.whole_paths
            for path, (seq, value) in state.items():
                yield whole_paths[path], value, seq


NOT_REPORTED = object()
_REPORTS_SEARCHED_MAX = 2_000


def latest_reported_value(reports: Sequence[ReportedChange], state: ActorState, path: str) -> Any:
    """Return an actor's value of a path according to the latest reports; ``NOT_REPORTED`` if
    they do not mention it. Most paths in a report were also in another shortly before."""
    for place in range(len(reports) - 1, max(len(reports) - _REPORTS_SEARCHED_MAX, 0) - 1, -1):
        report = reports[place]
        if report.state is not state:
            continue
        if isinstance(report, NewOffsets):
            if path in report.paths:
                return report.values()[report.paths.index(path)]
        elif isinstance(report, NewValue):
            if report.path == path:
                return report.new
        elif isinstance(report, Halted):
            return None
    return NOT_REPORTED


class LatestValues:
    """The values of paths, taking into account the reports that are not settled yet."""

    __slots__ = ("_halted", "_seen", "_values")

    def __init__(self) -> None:
        self._values: dict[ActorState, dict[str, Any]] = {}
        self._halted: set[ActorState] = set()
        self._seen = 0

    def update(self, reports: Sequence[ReportedChange]) -> None:
        """Take into account the reports since the last call."""
        values, seen = self._values, self._seen
        self._seen = len(reports)
        for report in reports[seen:]:
            state = report.state
            if isinstance(report, Halted):
                self._halted.add(state)
                values.pop(state, None)
                continue
            known = values.get(state)
            if known is None:
                known = values[state] = {}
            if isinstance(report, NewOffsets):
                known.update(zip(report.paths, report.values(), strict=True))
            elif isinstance(report, NewValue):
                known[report.path] = report.new

    def value(self, state: ActorState, path: str) -> Any:
        """Return the value of an actor's path; None if it has none."""
        known = self._values.get(state)
        if known is not None and path in known:
            return known[path]
        if state in self._halted:
            return None
        settled = state.get(path)
        return None if settled is None else settled[1]
