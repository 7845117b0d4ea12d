"""Histories: their steps are drawn, and what one can do without is left out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from .cluster_steps import Wait
from .step import Step

World = TypeVar("World")
Choose = Callable[[World, random.Random], Iterator[Step[Any]]]
"""Draws what may happen next in a world: no step if nothing is there to be done, or several, each
of which is done before the next is drawn."""
Choices = Mapping[str, tuple[int, Choose[Any]]]
"""The choices that may be drawn, by name, with their weights."""


class Draws(NamedTuple):
    """The way a history is drawn."""

    choices: Choices
    counts: tuple[int, int]
    """The least and the most choices."""
    pauses_ms: Sequence[int] = ()
    """One of these passes after each choice."""
    always: frozenset[str] = frozenset()
    """Choices that are always on: they undo what others do."""


_OFTEN = (1, 3, 9)
"""Factors by which a choice that is on comes in one history, beside its weight."""


def swarmed(draws: Draws, rng: random.Random) -> Draws:
    """Draw which choices are on in one history, and how often each comes.

    A fault that is rare among many others is frequent where few are on, and some show only
    where others are missing (Groce et al., *Swarm testing*).
    """
    on = {}
    for name, (weight, choose) in draws.choices.items():
        is_on, often = rng.random() < 0.5, rng.choice(_OFTEN)
        if is_on or name in draws.always:
            on[name] = weight * often, choose
    return draws._replace(choices=on or draws.choices)


def draw(draws: Draws, world: Any, rng: random.Random) -> Iterator[Step[Any]]:
    """Draw steps; whoever takes one does it before asking for the next.

    Every choice has a generator of its own: one that draws more than before leaves the others as
    they were.
    """
    draws = swarmed(draws, random.Random(rng.randrange(1 << 24)))
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
    """Leave out ever smaller parts as long as the rest shows what the whole did (ddmin).

    ``possible`` leaves out steps that others made possible.
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
