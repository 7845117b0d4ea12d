"""Runs a trace's scenario again and checks that it still produces the same events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .diff import Difference, first_difference
from .events import TraceError
from .recording.recorder import Recorder
from .trace import StoredTrace

RunAgain = Callable[[dict[str, Any], Recorder], object]
"""Called with a trace's header and a recorder, to run the scenario again into the recorder."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of running a trace's scenario again."""

    holds: bool
    recorded: str
    """Fingerprint in the file."""
    replayed: str
    events: int
    """Number of events in the new run."""
    difference: Difference | None
    """The first event that differs; None if all are equal."""


def refusal(trace: StoredTrace) -> str | None:
    """Return the reason why a trace cannot be run again; None if it can."""
    mode = trace.header.get("mode")
    if mode != "sim":
        return (
            f"it was recorded in mode {mode!r}: real time and threads do not repeat; only "
            "simulations (mode 'sim') can be run again"
        )
    if trace.header.get("part"):
        return f"it holds only a part of its run ({trace.header['part']})"
    if trace.problem is not None or trace.fingerprint is None:
        return f"it is not whole ({trace.problem}), so there is no fingerprint to compare with"
    if trace.header.get("seed") is None:
        return "its header has no seed"
    if not trace.header.get("scenario"):
        return "its header has no scenario to run"
    return None


def verify(trace: StoredTrace, run_again: RunAgain) -> Verification:
    """Run the scenario in the header again and compare fingerprints.

    Raises ``TraceError`` with the reason if the trace cannot be run again or is damaged. All its
    frames are read, as the fingerprint at its end does not prove them intact.
    """
    reason = refusal(trace)
    recorded = trace.fingerprint
    if reason is not None or recorded is None:
        raise TraceError(f"this trace cannot be verified: {reason}")
    trace.check()
    limit = trace.header.get("record_bytes_limit", 64)
    recorder = Recorder(record_bytes_limit=limit)
    run_again(trace.header, recorder)
    replayed = recorder.fingerprint()
    difference = None
    if replayed != recorded:
        difference = first_difference(trace, recorder.trace(trace.header))
    return Verification(replayed == recorded, recorded, replayed, len(recorder), difference)
