"""The list of events. Only the lines on the screen are read and drawn, however long it is."""

from __future__ import annotations

from bisect import bisect_left
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ...tracing.events import Event
from ...tracing.expressions import Expression
from ...tracing.text import format_time, summary
from ...tracing.trace import StoredTrace

KIND_COLOURS = {
    "fault": "bold red", "crash": "bold red", "restart": "bold green", "spawn": "green",
    "drop": "red", "hold": "yellow", "release": "yellow", "send": "grey62",
    "timer_fire": "magenta", "client_ok": "green", "client_fail": "red", "note": "bold yellow",
    "expire": "bold red", "state": "cyan",
}  # fmt: skip
_FILTERED_AT_ONCE = 4000
"""Number of events that a filter tests before the screen is drawn again."""
_WIDTH = 220


def event_line(event: Event, number_width: int, time_width: int) -> str:
    """Format an event as one line, narrower than ``tracing.text`` does."""
    peer = f" {_ARROWS.get(event.kind, ' ')} {event.peer}" if event.peer else ""
    return (
        f"{event.seq:>{number_width}} {format_time(event.time_us):>{time_width}} {event.kind:<13} "
        f"{event.actor + peer:<28} {event.type or '':<22} {summary(event)}"
    )


_ARROWS = {"send": "→", "deliver": "←", "drop": "✗", "hold": "‖", "release": "▷"}


class EventLines(ScrollView, can_focus=True, inherit_bindings=False):
    """All events of a trace, or those of a filter, with one of them marked."""

    # Left and right are missing: they step through the run.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", "scroll up", show=False),
        Binding("down", "scroll_down", "scroll down", show=False),
        Binding("pageup", "page_up", "page up", show=False),
        Binding("pagedown", "page_down", "page down", show=False),
        Binding("end", "scroll_end", "to the end", show=False),
    ]

    class Chosen(Message):
        """The user clicked on an event."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, stored: StoredTrace, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._stored = stored
        self._filter: Expression | None = None
        self._matching: list[int] = []
        self._looked_at = 0
        self._widths = 1, 1
        """Widths of numbers and times: no more than the last event needs, so that 80 columns have
        room for the type of a message."""
        self.here: int = 0
        self.marks: set[int] = set()

    def on_mount(self) -> None:
        self.set_interval(0.03, self._filter_more)
        self._resize()

    # -- content -------------------------------------------------------------------------------

    def show(self, stored: StoredTrace, here: int) -> None:
        """Mark the event at which the debugger stands, and scroll it into view."""
        if stored is not self._stored:
            if stored.last_seq < self._looked_at:
                self._matching, self._looked_at = [], stored.first_seq
            self._stored = stored
        self.here = here
        self._resize()
        row = self._row_of(here)
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if not top <= row < top + height - 1:
            self.scroll_to(y=max(row - height // 2, 0), animate=False, force=True)
        self.refresh()

    def use_filter(self, expression: Expression | None) -> None:
        """Show only the events that satisfy an expression; None shows all."""
        self._filter = expression
        self._matching, self._looked_at = [], self._stored.first_seq
        self._resize()
        self.refresh()

    @property
    def is_filtering(self) -> bool:
        """True while there are events that the filter has not tested yet."""
        return self._filter is not None and self._looked_at <= self._stored.last_seq

    @property
    def rows(self) -> int:
        """Current number of lines."""
        return len(self._stored) if self._filter is None else len(self._matching)

    def _filter_more(self) -> None:
        if self._filter is None or not self.is_filtering:
            return
        stop = min(self._looked_at + _FILTERED_AT_ONCE, self._stored.last_seq + 1)
        holds = self._filter.holds
        found = (e.seq for e in self._stored.events(self._looked_at, stop) if holds(e))
        self._matching.extend(found)
        self._looked_at = stop
        self._resize()
        self.refresh()

    def _resize(self) -> None:
        chunks = self._stored.chunks
        last_us = chunks[-1].time_last_us if chunks else 0
        self._widths = len(str(self._stored.last_seq)), len(format_time(last_us))
        self.virtual_size: Size = Size(_WIDTH, self.rows)

    def _number_at(self, row: int) -> int | None:
        if not 0 <= row < self.rows:
            return None
        return self._matching[row] if self._filter is not None else self._stored.first_seq + row

    def _row_of(self, number: int) -> int:
        if self._filter is None:
            return number - self._stored.first_seq
        return min(bisect_left(self._matching, number), max(len(self._matching) - 1, 0))

    # -- drawing -------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen."""
        left, top = self.scroll_offset
        number = self._number_at(top + y)
        width = self.size.width
        if number is None:
            return Strip.blank(width, self.rich_style)
        event = self._stored.event(number)
        style = self.rich_style + Style.parse(KIND_COLOURS.get(event.kind, ""))
        gutter = "▶" if number == self.here else "●" if number in self.marks else " "
        if number == self.here:
            style += Style(reverse=True)
        elif number > self.here:
            style += Style(dim=True)
        text = f"{gutter}{event_line(event, *self._widths)}".expandtabs()
        strip = Strip([Segment(text.ljust(left + width), style)])
        return strip.crop_extend(left, left + width, style)

    def on_click(self, click: Click) -> None:
        place = click.get_content_offset(self)
        number = None if place is None else self._number_at(self.scroll_offset.y + place.y)
        if number is not None:
            self.post_message(self.Chosen(number))
