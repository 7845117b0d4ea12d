"""Drawing the steps of a history at random, and shrinking a list of steps."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from .cluster_steps import Wait
from .step import Step

World = TypeVar("World")
Choose = Callable[[World, random.Random], Iterator[Step[Any]]]
"""Draws the next steps for the state of a world: any number of them, each of which is done before
the next one is drawn."""
Choices = Mapping[str, tuple[int, Choose[Any]]]
"""The choices that may be drawn, by name, with their weights."""


class Draws(NamedTuple):
    """Settings for drawing a history."""

    choices: Choices
    counts: tuple[int, int]
    """Minimum and maximum number of choices drawn."""
    pauses_ms: Sequence[int] = ()
    """Milliseconds of which one value, drawn anew, passes after each choice."""
    always: frozenset[str] = frozenset()
    """Names of choices that are always on, because they undo others."""


_WEIGHT_FACTORS = (1, 3, 9)
"""Factors for the weight of a choice, one of which is drawn for each history."""


def draw_swarm(draws: Draws, rng: random.Random) -> Draws:
    """Draw which choices are on in one history, and how frequent each of them is.

    A fault that is rare among many others is frequent if few are on, and some bugs show only in the
    absence of other faults (Groce et al., *Swarm testing*).
    """
    on = {}
    for name, (weight, choose) in draws.choices.items():
        is_on, factor = rng.random() < 0.5, rng.choice(_WEIGHT_FACTORS)
        if is_on or name in draws.always:
            on[name] = weight * factor, choose
    return draws._replace(choices=on or draws.choices)


def draw(draws: Draws, world: Any, rng: random.Random) -> Iterator[Step[Any]]:
    """Yield steps at random; the caller must do each step before it asks for the next.

    Each choice gets a random generator of its own. So a change in how much one choice draws does
    not affect the others.
    """
    draws = draw_swarm(draws, random.Random(rng.randrange(1 << 24)))
    names = list(draws.choices)
    weights = [weight for weight, _ in draws.choices.values()]
    for _ in range(rng.randint(*draws.counts)):
        _, choose = draws.choices[rng.choices(names, weights)[0]]
        own = random.Random(rng.randrange(1 << 24))
        pause_ms = rng.choice(draws.pauses_ms) if draws.pauses_ms else None
        yield from choose(world, own)
        if pause_ms is not None:
            yield Wait(pause_ms)


def shrink(
    steps: Iterable[Step[Any]],
    still_shows: Callable[[list[Step[Any]]], bool],
    possible: Callable[[list[Step[Any]]], list[Step[Any]]] = list,
) -> list[Step[Any]]:
    """Remove ever smaller parts of the steps while ``still_shows`` is true for the rest (ddmin).

    ``possible`` is applied to the steps before they are tried, and may drop or join some of them.
    """
    kept = list(steps)
    size = max(len(kept) // 2, 1)
    while True:
        start = 0
        while start < len(kept):
            tried = possible(kept[:start] + kept[start + size :])
            if len(tried) < len(kept) and still_shows(tried):
                kept = tried
            else:
                start += size
        if size == 1:
            return kept
        size = max(size // 2, 1)
