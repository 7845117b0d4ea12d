"""Invariants of a cluster's state; a breakpoint can stop where one is violated.

A replica's high watermark is not beyond its log's end, and no two brokers lead one partition in
the same leader epoch. Both are checked on the recorded state, after each event that changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_WATCHED = frozenset({"role", "leader_epoch", "high_watermark", "log_end_offset"})


def is_watched(path: str) -> bool:
    """Return whether a change of this path may break an invariant."""
    return path.rpartition("/")[2] in _WATCHED


def broken_invariant(state: Mapping[str, Any], changed: Iterable[str]) -> str | None:
    """Return a description of the invariant violated after an event that changed these paths; None
    if all hold."""
    partitions: dict[str, None] = {}
    for path in changed:
        place, _, name = path.rpartition("/")
        if name in _WATCHED and place:
            partitions[place] = None
    for place in partitions:
        found = _watermark_beyond_end(state, place) or _second_leader(state, place)
        if found is not None:
            return found
    return None


def _watermark_beyond_end(state: Mapping[str, Any], place: str) -> str | None:
    watermark = state.get(f"{place}/high_watermark")
    end = state.get(f"{place}/log_end_offset")
    if not isinstance(watermark, int) or not isinstance(end, int) or watermark <= end:
        return None
    return f"{place}: the high watermark {watermark} is beyond the log's end {end}"


def _second_leader(state: Mapping[str, Any], place: str) -> str | None:
    if state.get(f"{place}/role") != "leader":
        return None
    epoch = state.get(f"{place}/leader_epoch")
    ending = f"/{place.partition('/')[2]}/role"
    for path, role in state.items():
        other = path.removesuffix("/role")
        if role != "leader" or other == place or not path.endswith(ending):
            continue
        if state.get(f"{other}/leader_epoch") == epoch:
            return f"{place} and {other} both lead in leader epoch {epoch}"
    return None
