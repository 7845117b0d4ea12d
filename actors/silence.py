"""Why an actor was silent, and how a recorded run describes a wait for it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple


class Silence(enum.Enum):
    """Cause of silence; the values describe one silent actor, and several."""

    OFF = "which was off", "which were off"
    PAUSED = "which was paused", "which were paused"
    CUT = "which was cut off", "which were cut off"
    HELD = "whose messages were held back", "whose messages were held back"
    LOST = "over a link that loses messages", "over links that lose messages"
    NARROW = "over a narrow link", "over narrow links"
    SLOW = "over a slow link", "over slow links"
    ITSELF = "and was paused itself", "and was paused itself"
    """The waiting actor itself was paused, so that it could not listen."""


class Waited(NamedTuple):
    """A wait in vain, as the message of the event that records it."""

    request: int | None
    """Seq of the event at which the wait began, such as the arrival of a request."""
    waited_ms: float


def describe_wait(waited_ms: float, peers: Sequence[tuple[str, Silence | None]]) -> str:
    """Return, say, ``waited 4.0 s for broker-2 and broker-3, which were paused``."""
    groups = []
    for silence, members in groupby(peers, key=lambda peer: peer[1]):
        names = [name for name, _ in members]
        actors = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        groups.append(actors if silence is None else f"{actors}, {silence.value[len(names) > 1]}")
    return f"waited {waited_ms / 1000:.1f} s" + (f" for {', and '.join(groups)}" if groups else "")
