"""Mermaid: a sequence diagram, small enough to be read.

Mermaid itself refuses a text of more than 50,000 characters, and people give up long before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from ...protocol.errors import UsageError
from ..events import Event
from ..text import format_time
from ..trace import StoredTrace

ARROWS_MAX = 400
_CHARACTERS_MAX = 50_000
_ARROWS = {"deliver": "->>", "drop": "-x"}
_NOTES = frozenset({"crash", "restart", "fault", "expire", "client_fail"})
_CHANGES = frozenset({"leader", "isr", "role"})
_CHANGES_SHOWN = 3


def write(trace: StoredTrace, stream: BinaryIO) -> None:
    """Write the diagram; raise ``UsageError`` with a hint if it would be unreadable."""
    participants: dict[str, str] = {}
    lines: list[str] = []
    arrows = characters = 0
    for event in trace.events():
        for line in _lines(event, participants):
            lines.append(line)
            characters += len(line) + 1
        arrows += event.kind in _ARROWS
        if arrows > ARROWS_MAX or characters > _CHARACTERS_MAX:
            raise UsageError(
                f"this trace is too long for a sequence diagram: its first {event.seq + 1} events "
                f"have {arrows} messages and {characters:,} characters, and the most are "
                f"{ARROWS_MAX} and {_CHARACTERS_MAX:,}; cut out a part first, such as\n"
                "    fakekafka trace slice FILE --time 12s:12.1s --actor broker-1 -o part.fktrace"
            )
    head = ["sequenceDiagram", *(f"participant {p} as {_text(n)}" for n, p in participants.items())]
    stream.write("\n".join([*head, *lines, ""]).encode())


def _lines(event: Event, participants: dict[str, str]) -> Iterator[str]:
    def name(lane: str) -> str:
        return participants.setdefault(lane, f"p{len(participants) + 1}")

    time = f"{format_time(event.time_us)} s"
    arrow = _ARROWS.get(event.kind)
    if arrow is not None and event.peer is not None:
        ends = [event.peer, event.actor] if event.kind == "deliver" else [event.actor, event.peer]
        yield f"{name(ends[0])}{arrow}{name(ends[1])}: {_text(event.type or '')} ({time})"
    elif event.kind in _NOTES:
        yield f"Note over {name(event.actor)}: {_text(event.why or event.kind)} ({time})"
    if event.kind == "stop":
        return
    changes = [
        f"{path} is {value}"
        for path, _, value in event.delta
        if path.rpartition("/")[2] in _CHANGES and "/znodes/" not in path
    ]
    if len(changes) > _CHANGES_SHOWN:
        changes[_CHANGES_SHOWN:] = [f"{len(changes) - _CHANGES_SHOWN} more"]
    if changes:
        yield f"Note over {name(event.actor)}: {_text(', '.join(changes))}"


def _text(value: str) -> str:
    """Escape a text for Mermaid, which takes special characters by their code."""
    return re.sub(r"[^\w .,()\[\]/=*+'-]", lambda sign: f"#{ord(sign[0])};", value)
