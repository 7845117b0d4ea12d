"""The requests of a debugger's page: parts of the trace, steps, breakpoints, faults.

The page keeps the position, and each request names the event at which it is made. Requests are
answered one after another.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from ..protocol.errors import UsageError
from ..tracing.events import INTERESTING_KINDS
from ..tracing.web.overview import index_of, overview
from ..tracing.web.page import packed, packed_json
from .debugger import Debugger
from .forks import standalone_text

_STEPS_MAX = 100_000
_FAULT_EVENTS_MAX = 500
"""Maximum number of events in which the first sign of an injected fault is searched."""


class WebSession:
    """Answers the requests of a page with a debugger."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger
        self._lock = threading.Lock()
        self._generation = 0

    def part(self, name: str) -> bytes:
        """Return a packed part of the trace so far; ``UsageError`` for an unknown part."""
        with self._lock:
            stored = self._debugger.trace.stored
            if name == "index":
                return packed_json({**index_of(stored), "generation": self._generation})
            if name == "overview":
                return packed_json(overview(stored))
            kind, _, number = name.partition("-")
            parts = {"chunk": len(stored.chunks), "snapshot": len(stored.snapshot_seqs)}
            if not number.isdecimal() or int(number) >= parts.get(kind, 0):
                raise UsageError(f"there is no part {name!r}")
            read = stored.page_chunk if kind == "chunk" else stored.packed_snapshot
            return packed(read(int(number)))

    def answer(self, verb: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out a request of the page; ``UsageError`` if it is invalid."""
        verbs = {
            "position": lambda asked: None,
            "step": self._step,
            "run": self._run,
            "run_for": self._run_for,
            "act": self._act,
            "scenario": self._scenario,
        }
        if verb not in verbs:
            raise UsageError(f"there is no {verb!r}; there are {', '.join(verbs)}")
        with self._lock:
            if "seq" in asked:
                self._debugger.goto(_integer(asked, "seq", 1 << 53))
            note = verbs[verb](asked)
            event = self._debugger.event
            return {
                "seq": event.seq,
                "time_us": event.time_us,
                "generation": self._generation,
                "is_live": self._debugger.is_live,
                "note": note,
            }

    def _step(self, asked: Mapping[str, Any]) -> str | None:
        count = _integer(asked, "count", _STEPS_MAX)
        return None if self._debugger.step(count) else "the run has ended"

    def _run(self, asked: Mapping[str, Any]) -> str | None:
        """Go forward to the requested breakpoint, or to one that was set before."""
        text = asked.get("until", "")
        debugger = self._debugger
        if not isinstance(text, str) or not (text.strip() or debugger.breakpoints):
            raise UsageError("say where to stop, such as crash of broker-1, or at 9.5s")
        before = list(debugger.breakpoints)
        if text.strip():
            debugger.break_on(text)
        try:
            return debugger.run().reason
        finally:
            debugger.breakpoints[:] = before

    def _run_for(self, asked: Mapping[str, Any]) -> str | None:
        time_us = self._debugger.event.time_us + 1000 * _integer(asked, "ms", 3_600_000)
        self._debugger.goto(f"{time_us}us")
        return None

    def _act(self, asked: Mapping[str, Any]) -> str | None:
        action = asked.get("action")
        arguments = asked.get("arguments", {})
        if not isinstance(action, str) or not isinstance(arguments, dict):
            raise UsageError("say an action and its arguments")
        debugger = self._debugger
        debugger.inject(action, **arguments)
        self._generation += 1
        place, moment = debugger.position, debugger.event.time_us
        for _ in range(_FAULT_EVENTS_MAX):
            if not debugger.step() or debugger.event.time_us > moment + 1:
                break
            if debugger.event.kind in INTERESTING_KINDS:
                return "done; from here on this is another run"
        debugger.goto(place)
        return "it is done at this moment; step to see what follows"

    def _scenario(self, asked: Mapping[str, Any]) -> str | None:
        return standalone_text(self._debugger.header)


def _integer(asked: Mapping[str, Any], name: str, most: int) -> int:
    value = asked.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise UsageError(f"{name} must be a number from 0 to {most}")
    return value
