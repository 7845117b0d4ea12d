"""Draws a chain of causes as SVG: a lane for each actor, time running downwards, an arrow from each
cause to its effect. Used by trace_gallery.py."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from fakekafka import Event
from fakekafka.tracing.text import summary

MARGIN, TIME_WIDTH, LANE, ROW, HEAD = 12, 74, 78, 34, 46
CHARACTER, BOLD_CHARACTER, LABEL_LENGTH, SLANT = 6.4, 7.4, 46, 7
TEXT, GREY, LINE = "#1f2328", "#57606a", "#d0d7de"
COLOURS = {
    "crash": "#cf222e", "fault": "#cf222e", "restart": "#1a7f37", "expire": "#bc4c00",
    "client_ok": "#1a7f37", "client_invoke": "#1a7f37", "client_fail": "#cf222e",
}  # fmt: skip
ORDINARY = "#0969da"
TOLD = ("role", "leader", "isr")


def draw(title: str, chain: list[Event]) -> str:
    """Return the picture as SVG text; ``chain`` has the latest event first, as in ``trace why``."""
    events = chain[::-1]
    lanes = {actor: number for number, actor in enumerate(dict.fromkeys(e.actor for e in events))}
    left = MARGIN + TIME_WIDTH
    labels_at = left + LANE * len(lanes)
    height = HEAD + ROW * len(events) + MARGIN

    def place(number: int) -> tuple[float, float]:
        return left + LANE * (lanes[events[number].actor] + 0.5), HEAD + ROW * (number + 0.5)

    parts = [_lane(actor, left + LANE * (n + 0.5), height) for actor, n in lanes.items()]
    for number in range(1, len(events)):
        parts.append(_arrow(*place(number - 1), *place(number)))
    right: float = labels_at
    for number, event in enumerate(events):
        x, y = place(number)
        parts.append(_dot(event, x, y))
        time = f"{event.time_us / 1e6:.4f} s"
        parts.append(_text(MARGIN, y + 4, time, f'fill="{GREY}"'))
        label = label_of(event)
        wide = BOLD_CHARACTER if event.kind in COLOURS else CHARACTER
        right = max(right, labels_at + len(label) * wide)
        weight = ' font-weight="bold"' if event.kind in COLOURS else ""
        parts.append(_text(labels_at, y + 4, label, f'fill="{_colour(event)}"{weight}'))
    width = int(right) + MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'width="{width}" aria-label="{escape(title, {chr(34): "&quot;"})}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def label_of(event: Event) -> str:
    """Return a short label for an event: a change of leadership if any, else the message."""
    text = words_of(event)
    return text if len(text) <= LABEL_LENGTH else text[: LABEL_LENGTH - 2] + ".."


def words_of(event: Event) -> str:
    """Return the text of an event, without parts that only matter to programs."""
    return _change(event) or _answer(event) or _message(event)


def _change(event: Event) -> str:
    """Return the first change of a partition's leader, role or ISR at a delivery, else empty."""
    for path, old, new in event.delta:
        _, _, rest = path.partition("/")
        about, _, name = rest.rpartition("/")
        if event.kind == "deliver" and name in TOLD and "/" not in about and old != new:
            return f"{about} {name}: {_value(old)} → {_value(new)}"
    return ""


def _value(value: object) -> str:
    return "none" if value in (None, -1) else str(value)


def _answer(event: Event) -> str:
    """Return a text about an answer or watch event of ZooKeeper with its znode, else empty."""
    if event.type == "WatchEvent" and event.kind == "deliver":
        return f"{event.fields.get('type')} {event.fields.get('path')}"
    if event.type != "ServerPacket" or event.kind != "deliver":
        return ""
    response = event.fields.get("response")
    path = response.get("path") if isinstance(response, dict) else None
    return f"ZooKeeper answers: {path}" if path else "ZooKeeper answers"


def _message(event: Event) -> str:
    """Return the summary of an event without the numbers of messages."""
    words = [word for word in summary(event).split(" ") if not _is_number(word, event)]
    what = event.type or ("" if event.why else event.kind)
    text = " ".join(filter(None, [what, *words]))
    text = re.sub(r"session 0x\w+ of", "session of", text)
    return text if event.type else text.removeprefix("(").removesuffix(")")


def _is_number(word: str, event: Event) -> bool:
    return word == f"m{event.message_id}" or word.startswith(("xid=", "op=", "Δ"))


def _colour(event: Event) -> str:
    return COLOURS.get(event.kind, TEXT)


def _lane(actor: str, x: float, height: int) -> str:
    return f'<path d="M{x:g} {HEAD - 12} V{height - MARGIN}" stroke="{LINE}"/>' + _text(
        x, HEAD - 22, actor, f'fill="{GREY}" text-anchor="middle" font-size="11"'
    )


def _dot(event: Event, x: float, y: float) -> str:
    colour = COLOURS.get(event.kind, ORDINARY)
    fill = colour if event.kind in COLOURS or not event.delta else "#ffffff"
    return f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{fill}" stroke="{colour}" stroke-width="2"/>'


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """Return an arrow from a dot to the next, with its head at the edge of the dot."""
    length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
    along_x, along_y = (to_x - x) / length, (to_y - y) / length
    tip_x, tip_y = to_x - along_x * SLANT, to_y - along_y * SLANT
    back_x, back_y = tip_x - along_x * SLANT, tip_y - along_y * SLANT
    points = (
        (tip_x, tip_y),
        (back_x - along_y * 4, back_y + along_x * 4),
        (back_x + along_y * 4, back_y - along_x * 4),
    )
    head = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    return (
        f'<path d="M{x:g} {y:g} L{back_x:.1f} {back_y:.1f}" stroke="{GREY}"/>'
        f'<polygon points="{head}" fill="{GREY}"/>'
    )


def _text(x: float, y: float, text: str, more: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" {more}>{escape(text)}</text>'
