"""Breakpoints: descriptions of the events after which a run stops.

    LeaderAndIsrRequest to broker-2 if controller_epoch > 1     a message that arrives
    crash of broker-1                                           an event of a kind
    change broker-*/orders-0/isr if len(new) < 3                a change of state
    if kind == drop and type == FetchRequest                    any event that satisfies it
    when leader('orders', 0) == 2                               a condition of a scenario
    invariant                                                   a violated invariant
    at 12.5s                                                    a time, or an event's number

``on`` may precede each of them. In an expression ``state('broker-1/orders-0/isr')`` is the value of
a path after the event; after ``change`` the names ``path``, ``old`` and ``new`` are also defined.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...protocol.errors import UsageError
from ..events import KIND_CODES, KINDS, MESSAGE_KINDS, Event
from ..expressions import Expression, takes_scope
from ..message_types import message_fields, message_type_names
from ..reading.positions import number_or_time
from ..reading.queries import compile_event_expression
from ..reading.state_history import path_matches
from .invariants import broken_invariant, is_watched

_ON = re.compile(
    r"(?P<what>\w+)(?:\s+of\s+(?P<of>\S+))?(?:\s+from\s+(?P<source>\S+))?"
    r"(?:\s+to\s+(?P<target>\S+))?(?:\s+if\s+(?P<condition>.+))?"
)
_CHANGE = re.compile(r"change\s+(?P<path>\S+)(?:\s+if\s+(?P<condition>.+))?")


class Moment:
    """An event and the state after it: the scope of a breakpoint's expression."""

    __slots__ = ("event", "more", "state")

    def __init__(self, event: Event, state: Mapping[str, Any], more: Mapping[str, Any]) -> None:
        self.event: Event = event
        self.state: Mapping[str, Any] = state
        self.more: Mapping[str, Any] = more


class Breakpoint:
    """A place to stop. ``columns`` are values that an event must have before the test is run."""

    def __init__(
        self,
        text: str,
        test: Callable[[Event, Mapping[str, Any]], str | None],
        columns: Mapping[str, str] | None = None,
        *,
        needs_change: Callable[[str], bool] | None = None,
        is_plain: bool = False,
        condition: str | None = None,
        time_us: int | None = None,
    ) -> None:
        self.text = text
        self.columns: dict[str, str] = dict(columns or {})
        self.needs_change = needs_change
        """Called with a path; an event must change at least one path for which it is true."""
        self.is_plain = is_plain
        """True if the breakpoint tests nothing but its columns."""
        self.condition = condition
        """A condition on the running cluster, which a recording cannot evaluate."""
        self.time_us = time_us
        """A time in microseconds: the breakpoint is at the first event at or after it, whether the
        run goes forwards or backwards."""
        self.hits = 0
        self._test = test

    def reason(self, event: Event, state: Mapping[str, Any]) -> str | None:
        """Return the reason why the run stops after an event; None if it goes on."""
        return self._test(event, state)

    def __repr__(self) -> str:
        return f"<Breakpoint {self.text!r}: {self.hits} hits>"


def parse_breakpoint(text: str) -> Breakpoint:
    """Parse a breakpoint; raise ``UsageError`` with the part that is not understood."""
    text = text.strip()
    words = text.removeprefix("on ").strip()
    if not words:
        raise UsageError(
            "a breakpoint is missing; write one such as 'change broker-1/orders-0/isr'"
        )
    head, _, rest = words.partition(" ")
    if words == "invariant":
        return Breakpoint(text, _invariant, needs_change=is_watched)
    if head == "at":
        return _at(text, rest.strip())
    if head == "when":
        return Breakpoint(text, lambda event, state: None, condition=rest.strip())
    if head == "change":
        return _change(text, words)
    if head == "if":
        return _expression(text, rest, {})
    match = _ON.fullmatch(words)
    if match is None or head not in (*KINDS, *message_type_names()):
        if re.fullmatch(r"\w+", head) and (match is not None or " " not in words):
            raise _unknown(text, head)
        return _expression(text, words, {})
    return _expression(text, match["condition"], _columns(text, head, match))


def _columns(text: str, head: str, match: re.Match[str]) -> dict[str, str]:
    """Return the kind, type, actor and peer that an event must have."""
    is_kind = head in KINDS
    if is_kind and head not in MESSAGE_KINDS and (match["source"] or match["target"]):
        raise UsageError(f"breakpoint {text!r}: write `{head} of ACTOR`; it is no message")
    is_at_sender = is_kind and head != "deliver"
    source, target = ("actor", "peer") if is_at_sender else ("peer", "actor")
    found = {
        "kind": head if is_kind else "deliver",
        "type": None if is_kind else head,
        source: match["source"],
        target: match["target"],
    }
    if match["of"]:
        found["actor"] = match["of"]
    return {name: value for name, value in found.items() if value is not None}


def breakpoint_of(what: str | Callable[[Event], object]) -> Breakpoint:
    """Return a breakpoint from its text, or one at every event for which a function is true."""
    if isinstance(what, str):
        point = parse_breakpoint(what)
        if point.condition is not None:
            raise UsageError(f"{what!r} asks the running cluster: use run_until with a function")
        return point
    if not callable(what):
        raise UsageError(f"{what!r} is no breakpoint; write a text, or a function of an event")
    name = getattr(what, "__name__", repr(what))
    return Breakpoint(name, lambda event, state: name if what(event) else None)


def _unknown(text: str, word: str) -> UsageError:
    known = ("change", "when", "if", "at", "invariant", *KINDS, *message_type_names())
    if number_or_time(word) != (None, None):
        raise UsageError(f"breakpoint {text!r}: write `at {word}` for an event's number or a time")
    near = difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "write a message type, a kind, or `if ...`"
    return UsageError(f"breakpoint {text!r}: there is no message or kind {word!r}; {hint}")


def _at(text: str, rest: str) -> Breakpoint:
    number, time_us = number_or_time(rest)
    if number is not None:
        return Breakpoint(text, lambda event, state: text if event.seq == number else None)
    if time_us is None:
        raise UsageError(f"breakpoint {text!r}: write a time or an event, as in at 9.5s or at #12")
    return Breakpoint(text, lambda event, state: text, time_us=time_us)


def _compiled(text: str, condition: str, *more: str) -> Expression:
    def lookup_state(moment: Moment, path: Any) -> Any:
        return moment.state.get(str(path))

    try:
        return compile_event_expression(
            condition,
            of_event=lambda moment: moment.event,
            fields=message_fields(),
            words=(*KINDS, *message_type_names()),
            more={name: _named(name) for name in more},
            functions={"state": takes_scope(lookup_state)},
        )
    except UsageError as error:
        raise UsageError(f"breakpoint {text!r}: {error}") from None


def _named(name: str) -> Callable[[Moment], Any]:
    return lambda moment: moment.more[name]


def _expression(text: str, condition: str | None, columns: dict[str, str]) -> Breakpoint:
    if condition is None:
        return Breakpoint(text, lambda event, state: text, columns, is_plain=True)
    expression = _compiled(text, condition)
    for name in ("kind", "type", "actor", "peer"):
        value = expression.required.get(name)
        if isinstance(value, str):
            columns.setdefault(name, value)

    def holds(event: Event, state: Mapping[str, Any]) -> str | None:
        return text if expression.holds(Moment(event, state, {})) else None

    return Breakpoint(text, holds, columns)


def _change(text: str, words: str) -> Breakpoint:
    match = _CHANGE.fullmatch(words)
    if match is None:
        raise UsageError(f"breakpoint {text!r}: write it like change broker-1/orders-0/isr")
    pattern = match["path"]
    condition = match["condition"]
    expression = None if condition is None else _compiled(text, condition, "path", "old", "new")

    def changed(event: Event, state: Mapping[str, Any]) -> str | None:
        for path, old, new in event.delta:
            if not path_matches(path, pattern):
                continue
            more = {"path": path, "old": old, "new": new}
            if expression is None or expression.holds(Moment(event, state, more)):
                return f"{path}: {old} -> {new}"
        return None

    return Breakpoint(text, changed, needs_change=lambda path: path_matches(path, pattern))


def _invariant(event: Event, state: Mapping[str, Any]) -> str | None:
    return broken_invariant(state, (path for path, _, _ in event.delta))


class Watcher:
    """Checks raw events one after the other against breakpoints, and keeps the state up to date.

    An event is decoded only if its columns match a breakpoint. ``time_us`` is the time of the event
    before the first one seen: breakpoints at later times are still ahead.
    """

    def __init__(
        self, breakpoints: list[Breakpoint], state: dict[str, Any], time_us: int = -1
    ) -> None:
        self.breakpoints: list[Breakpoint] = [
            point for point in breakpoints if point.condition is None
        ]
        self.state = state
        self._before_us = time_us
        self._codes: list[tuple[Breakpoint, list[tuple[int, Any]], dict[int, bool]]]
        self._codes = [(point, self._wanted(point), {}) for point in self.breakpoints]

    @staticmethod
    def _wanted(point: Breakpoint) -> list[tuple[int, Any]]:
        columns = {"kind": 2, "actor": 3, "peer": 4, "type": 5}
        return [
            (columns[name], KIND_CODES[value] if name == "kind" else value)
            for name, value in point.columns.items()
        ]

    def advance(
        self, raw: list[Any], strings: list[str], decoded: Callable[[list[Any]], Event]
    ) -> tuple[Breakpoint, str] | None:
        """Apply an event to the state; return the breakpoint that stops the run after it, and why.

        Returns None if the run goes on.
        """
        if raw[10]:
            apply(self.state, raw, strings)
        before_us, self._before_us = self._before_us, raw[1] // 1000
        return self.match(raw, strings, decoded, before_us)

    def match(
        self,
        raw: list[Any],
        strings: list[str],
        decoded: Callable[[list[Any]], Event],
        before_us: int,
    ) -> tuple[Breakpoint, str] | None:
        """Return the breakpoint at an event that is already applied to the state, and the reason.

        ``before_us`` is the time of the event before it.
        """
        event: Event | None = None
        for point, wanted, paths in self._codes:
            if not _matches_columns(raw, wanted, strings):
                continue
            if point.needs_change and not _changes(raw, point.needs_change, paths, strings):
                continue
            if point.time_us is not None and not before_us < point.time_us <= raw[1] // 1000:
                continue
            if event is None:
                event = decoded(raw)
            reason = point.reason(event, self.state)
            if reason is not None:
                point.hits += 1
                return point, reason
        return None


def _matches_columns(raw: list[Any], wanted: list[tuple[int, Any]], strings: list[str]) -> bool:
    for column, value in wanted:
        found = raw[column]
        if column != 2 and found is not None:
            found = strings[found]
        if found != value:
            return False
    return True


def _changes(
    raw: list[Any], is_accepted: Callable[[str], bool], known: dict[int, bool], strings: list[str]
) -> bool:
    """Return whether an event changes a path accepted by a function; ``known`` caches results."""
    for number, _, _ in raw[10]:
        found = known.get(number)
        if found is None:
            found = known[number] = is_accepted(strings[number])
        if found:
            return True
    return False


def apply(state: dict[str, Any], raw: list[Any], strings: list[str]) -> None:
    """Apply the changes of an event to a state."""
    for number, _, new in raw[10]:
        if new is None:
            state.pop(strings[number], None)
        else:
            state[strings[number]] = new


def undo(state: dict[str, Any], raw: list[Any], strings: list[str]) -> None:
    """Undo the changes of an event in a state."""
    for number, old, _ in reversed(raw[10]):
        if old is None:
            state.pop(strings[number], None)
        else:
            state[strings[number]] = old


def conditions(breakpoints: list[Breakpoint]) -> Iterator[Breakpoint]:
    """Return the breakpoints with a condition on the running cluster."""
    return (point for point in breakpoints if point.condition is not None)
