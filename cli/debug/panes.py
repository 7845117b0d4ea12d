"""The contents of the panes beside the list: lanes, state, payload, causes. Names and values may
come from an untrusted file, so they are never parsed as markup."""

from __future__ import annotations

import re
from typing import Any

from rich.text import Text

from ...debugger.debugger import Debugger
from ...debugger.moves import Progress
from ...tracing.events import Event, TraceError, jsonable
from ...tracing.reading.state_history import State
from ...tracing.text import format_event, format_time
from ...tracing.trace import StoredTrace
from .event_lines import KIND_COLOURS

_LANE_WIDTH = 6
_LANES_MAX = 14
_VALUE_WIDTH = 60
_STATE_LINES = 400
_ABBREVIATIONS = {"broker": "b", "controller": "c", "producer": "p", "consumer": "k", "zk": "zk"}


def lane_name(actor: str) -> str:
    """Abbreviate an actor: b1, c1, zk1; f3<2 is broker 3's fetcher from broker 2."""
    fetcher = re.fullmatch(r"fetcher-(\d+)-from-(\d+)", actor)
    if fetcher is not None:
        return f"f{fetcher[1]}<{fetcher[2]}"[: _LANE_WIDTH - 1]
    kind, _, number = actor.rpartition("-")
    for word, letter in _ABBREVIATIONS.items():
        if kind == word or kind.endswith("-" + word):
            return (letter + number)[: _LANE_WIDTH - 1]
    return actor[: _LANE_WIDTH - 1]


def lanes(stored: StoredTrace, here: int, height: int) -> Text:
    """Draw the events around ``here``: a column for each actor, an arrow for each message."""
    above = max(height * 2 // 3, 1)
    first = max(here - above, stored.first_seq)
    events = list(stored.events(first, first + max(height - 1, 1)))
    seen = dict.fromkeys(name for e in events for name in (e.actor, e.peer) if name)
    names = sorted(seen, key=_rank)[:_LANES_MAX]
    column = {name: 2 + number * _LANE_WIDTH for number, name in enumerate(names)}
    drawn = Text(no_wrap=True, overflow="crop")
    drawn.append("  " + "".join(lane_name(name).ljust(_LANE_WIDTH) for name in names), "bold")
    drawn.append("\n")
    for event in events:
        cells = [" "] * (2 + len(names) * _LANE_WIDTH)
        for place in column.values():
            cells[place] = "│"
        _draw(event, column, cells)
        style = KIND_COLOURS.get(event.kind, "")
        if event.seq == here:
            style = f"reverse {style}"
        drawn.append("".join(cells), style)
        drawn.append(f"{event.seq} {event.type or event.kind}\n", style)
    return drawn


def _rank(actor: str) -> tuple[int, str]:
    order = ("zk", "controller", "broker")
    kind = actor.partition("-")[0]
    return (order.index(kind) if kind in order else len(order), actor)


def _draw(event: Event, column: dict[str, int], cells: list[str]) -> None:
    here = column.get(event.actor)
    there = None if event.peer is None else column.get(event.peer)
    if here is None:
        return
    if there is not None and there != here and event.kind in ("send", "deliver", "drop", "hold"):
        low, high = sorted((here, there))
        for place in range(low + 1, high):
            cells[place] = "─"
        sends = event.kind != "deliver"
        target = there if sends else here
        cells[target] = "✗" if event.kind == "drop" else "▶" if target == high else "◀"
        cells[here if sends else there] = "○" if sends else "┤" if here < there else "├"
        if not sends:
            cells[here] = "●"
        return
    cells[here] = {"crash": "✖", "fault": "⚡", "timer_fire": "◷"}.get(event.kind, "●")


def state_text(event: Event, state: State, *, shows_all: bool) -> Text:
    """Return an actor's state after an event as text, with the event's changes first, coloured."""
    drawn = Text()
    olds = {path: old for path, old, _ in event.delta}
    for path, old, new in event.delta:
        drawn.append(f"{path}\n", "bold")
        drawn.append(f"  {_short(old)}", "dim")
        drawn.append(" → ")
        drawn.append(f"{_short(new)}\n", "bold green" if new is not None else "bold red")
    if not event.delta:
        drawn.append("this event changes no state\n", "dim")
    others = [path for path in state if path not in olds]
    if not shows_all:
        drawn.append(f"\n{len(others)} values unchanged; u shows them\n", "dim")
        return drawn
    drawn.append("\n")
    for path in others[:_STATE_LINES]:
        drawn.append(f"{path.partition('/')[2] or path} ", "cyan")
        drawn.append(f"{_short(state[path])}\n")
    if len(others) > _STATE_LINES:
        drawn.append(f"and {len(others) - _STATE_LINES} more\n", "dim")
    return drawn


def _short(value: Any) -> str:
    text = "none" if value is None else str(jsonable(value))
    return text if len(text) <= _VALUE_WIDTH else text[: _VALUE_WIDTH - 1] + "…"


def payload_text(event: Event) -> Text:
    """Return the event with its payload, one value per line."""
    first, *values = format_event(event, 1).replace("\n          ", "\n").split("\n")
    # Drop the alignment of columns, which only helps in a list.
    return Text("\n".join([re.sub(" {2,}", " ", first), *values]))


def chain_text(chain: list[Event]) -> Text:
    """Return the causes of an event as text, itself first."""
    drawn = Text()
    for number, event in enumerate(chain):
        drawn.append("  because " if number else "")
        peer = f" ← {event.peer}" if event.kind == "deliver" else ""
        style = KIND_COLOURS.get(event.kind, "")
        when = format_time(event.time_us)
        drawn.append(
            f"#{event.seq} {when} {event.kind} {event.actor}{peer} {event.type or ''}", style
        )
        drawn.append(f" {event.why}\n" if event.why else "\n", "dim")
    return drawn


def title_text(stored: StoredTrace, event: Event, name: str) -> Text:
    """Return one line with the name of the run and the current event."""
    header = stored.header
    peer = f" ← {event.peer}" if event.peer else ""
    drawn = Text(no_wrap=True, overflow="ellipsis")
    drawn.append(f"{header.get('scenario_name') or name}", "bold")
    drawn.append(f"  seed {header.get('seed')}  Kafka {header.get('kafka_version')}  ")
    drawn.append(f"#{event.seq:,}/{stored.last_seq:,}", "bold")
    drawn.append(f"  t={format_time(event.time_us)} s  {event.actor}{peer}  {event.type or ''}")
    return drawn


def progress_text(progress: Progress, debugger: Debugger) -> Text:
    """Return one line about the progress of a move."""
    drawn = Text(no_wrap=True, overflow="ellipsis")
    drawn.append("running again " if progress.is_repeated else "running ", "bold")
    drawn.append(f"#{progress.number:,}", "bold")
    if progress.is_repeated:
        drawn.append(f" of {debugger.position:,}")
    elif not debugger.is_live:
        drawn.append(f" of {debugger.trace.stored.last_seq:,}")
    drawn.append(f"  t={format_time(progress.time_us)} s")
    ends_us = debugger.ends_us
    if ends_us is not None and progress.time_us <= ends_us:
        drawn.append(f" of {format_time(ends_us)} s")
    drawn.append("  Ctrl-C stops")
    return drawn


def cause_of(stored: StoredTrace, event: Event) -> int | None:
    """Return the number of an event's cause; None if the trace does not have it."""
    if event.cause is None:
        return None
    try:
        return stored.event(event.cause).seq
    except TraceError:
        return None


def first_effect(stored: StoredTrace, number: int, within: int = 50_000) -> int | None:
    """Return the next event caused by an event; None if the next ``within`` events have none."""
    for index in range(max(stored.chunk_of(number), 0), len(stored.chunks)):
        if stored.chunks[index].first_seq > number + within:
            return None
        for raw in stored.raw_events(index):
            if raw[7] == number and raw[0] > number:
                return int(raw[0])
    return None
