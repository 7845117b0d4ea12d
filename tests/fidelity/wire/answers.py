"""Recorded answers: a file for each API and release, which joins versions with equal answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fakekafka.tests.fidelity.recording import FOLDER, Outcomes, Recording

_LABEL = re.compile(r"(.*) v(\d+)(?:-(\d+))?")
Step = tuple[str, dict[str, Outcomes]]


def path(kafka_version: str, api: str) -> Path:
    return FOLDER / f"{kafka_version}-wire" / f"{api}.txt"


def load(kafka_version: str, api: str) -> Recording | None:
    """Return the recording with a step for each version; None if there is none."""
    file = path(kafka_version, api)
    if not file.exists():
        return None
    recording = Recording.read(file.read_text(encoding="utf-8"))
    recording.steps = apart(recording.steps)
    return recording


def save(kafka_version: str, api: str, recording: Recording) -> None:
    file = path(kafka_version, api)
    file.parent.mkdir(parents=True, exist_ok=True)
    shown = Recording(recording.release, recording.date, recording.times, together(recording.steps))
    file.write_text(shown.text(), encoding="utf-8")


def together(steps: Sequence[Step]) -> list[Step]:
    """Join the steps of neighbouring versions of a request that have equal answers."""
    ranges: dict[str, list[tuple[int, int, dict[str, Outcomes]]]] = {}
    for label, seen in steps:
        name, low, high = _parsed(label)
        known = ranges.setdefault(name, [])
        if known and known[-1][2] == seen and known[-1][1] == low - 1:
            known[-1] = (known[-1][0], high, seen)
        else:
            known.append((low, high, seen))
    return [
        (f"{name} v{low}" if low == high else f"{name} v{low}-{high}", seen)
        for name, found in ranges.items()
        for low, high, seen in found
    ]


def apart(steps: Sequence[Step]) -> list[Step]:
    """Split joined steps into one for each version, in the order of the requests."""
    found: list[tuple[int, str, dict[str, Outcomes]]] = []
    for label, seen in steps:
        name, low, high = _parsed(label)
        found += [(version, f"{name} v{version}", dict(seen)) for version in range(low, high + 1)]
    return [(label, seen) for _, label, seen in sorted(found, key=lambda one: one[:2])]


def _parsed(label: str) -> tuple[str, int, int]:
    match = _LABEL.fullmatch(label)
    assert match is not None, label
    name, low, high = match.groups()
    return name, int(low), int(high or low)
