"""ShiViz: a log with vector clocks, which ShiViz draws as a space-time diagram.

The clocks are computed from the order of each actor's events and from the events' causes.
"""

from __future__ import annotations

import json
from typing import BinaryIO

from ...protocol.errors import UsageError
from ..text import format_event
from ..trace import StoredTrace

EVENTS_MAX = 5_000
"""Maximum number of events, as ShiViz draws all of them at once."""
EXPRESSION = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"
"""The pattern by which ShiViz reads the log: its own default."""


def write(trace: StoredTrace, stream: BinaryIO) -> None:
    """Write the log; raise ``UsageError`` with a hint if ShiViz could not draw it."""
    if len(trace) > EVENTS_MAX:
        raise UsageError(
            f"this trace has {len(trace):,} events, and ShiViz draws at most about "
            f"{EVENTS_MAX:,}; cut out a part first, such as\n"
            "    fakekafka trace slice FILE --time 12s:12.5s -o part.fktrace"
        )
    stream.write(f"{EXPRESSION}\n\n".encode())
    latest: dict[str, dict[str, int]] = {}
    clocks: dict[int, dict[str, int]] = {}
    for event in trace.events():
        host = "_".join(event.actor.split()) or "_"
        clock = dict(latest.get(host, ()))
        for name, count in clocks.get(-1 if event.cause is None else event.cause, {}).items():
            if count > clock.get(name, 0):
                clock[name] = count
        clock[host] = clock.get(host, 0) + 1
        latest[host] = clocks[event.seq] = clock
        line = " ".join(format_event(event).split())
        stream.write(f"{line}\n{host} {json.dumps(clock)}\n".encode())
