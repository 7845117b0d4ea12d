"""Why an actor was not heard, and what a wait for it was, as a recorded run tells it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple


class Silence(enum.Enum):
    """Causes of an actor's silence: how one is told, and several."""

    OFF = "which was off", "which were off"
    PAUSED = "which was paused", "which were paused"
    CUT = "which was cut off", "which were cut off"
    HELD = "whose messages were held back", "whose messages were held back"
    LOST = "over a link that loses messages", "over links that lose messages"
    NARROW = "over a narrow link", "over narrow links"
    SLOW = "over a slow link", "over slow links"
    ITSELF = "and was paused itself", "and was paused itself"
    """It was the one who waited that could not listen."""


class Waited(NamedTuple):
    """An event: somebody was waited for in vain."""

    request: int | None
    """Seq of the event at which the waiting began, such as the arrival of a request."""
    waited_ms: float


def words_of_wait(waited_ms: float, peers: Sequence[tuple[str, Silence | None]]) -> str:
    """``waited 4.0 s for broker-2 and broker-3, which were paused``."""
    groups = []
    for silence, members in groupby(peers, key=lambda peer: peer[1]):
        names = [name for name, _ in members]
        told = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        groups.append(told if silence is None else f"{told}, {silence.value[len(names) > 1]}")
    return f"waited {waited_ms / 1000:.1f} s" + (f" for {', and '.join(groups)}" if groups else "")
