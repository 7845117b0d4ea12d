"""Mutations of histories that reached something new: steps added, removed, or reordered."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from .cluster_steps import Wait
from .step import Step

_Steps = list[Step[Any]]
_WAITS_MS = (0, 1, 10, 200, 1000, 4000, 8000)
_CHANGES_MAX = 4
_STEPS_MAX = 60


def _remove(steps: _Steps, _other: Sequence[Step[Any]], rng: random.Random) -> None:
    del steps[rng.randrange(len(steps))]


def _repeat(steps: _Steps, _other: Sequence[Step[Any]], rng: random.Random) -> None:
    steps.insert(rng.randrange(len(steps) + 1), rng.choice(steps))


def _swap(steps: _Steps, _other: Sequence[Step[Any]], rng: random.Random) -> None:
    one, other = rng.randrange(len(steps)), rng.randrange(len(steps))
    steps[one], steps[other] = steps[other], steps[one]


def _change_wait(steps: _Steps, _other: Sequence[Step[Any]], rng: random.Random) -> None:
    place = rng.randrange(len(steps))
    wait = Wait(rng.choice(_WAITS_MS))
    if isinstance(steps[place], Wait):
        steps[place] = wait
    else:
        steps.insert(place, wait)


def _insert_from_other(steps: _Steps, other: Sequence[Step[Any]], rng: random.Random) -> None:
    """Insert some steps of another history; the run skips those that do not apply."""
    begin = rng.randrange(len(other))
    place = rng.randrange(len(steps) + 1)
    steps[place:place] = other[begin : begin + rng.randint(1, 4)]


_CHANGES: tuple[Callable[[_Steps, Sequence[Step[Any]], random.Random], None], ...] = (
    _remove,
    _repeat,
    _swap,
    _change_wait,
    _insert_from_other,
)


def mutate(
    steps: Sequence[Step[Any]], other: Sequence[Step[Any]], rng: random.Random
) -> tuple[Step[Any], ...]:
    """Return the steps of a history with one to four mutations.

    ``other`` are the steps of another history, from which some may be inserted.
    """
    changed = list(steps)
    for _ in range(rng.randint(1, _CHANGES_MAX)):
        if not changed or not other:
            return tuple(other)
        rng.choice(_CHANGES)(changed, other, rng)
    return tuple(changed[:_STEPS_MAX])
