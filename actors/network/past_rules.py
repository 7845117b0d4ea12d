"""History of rules about links: the event that began a rule, and when the rule ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Place = tuple[str, str] | None
"""A link from one machine to another; None stands for all links."""


class _PastRule(NamedTuple):
    seq: int | None
    """Event that began the rule; None for a rule that the cluster was created with."""
    amount: float
    until_us: int | None
    """Time at which the rule ended; None while it is in force."""


class PastRules:
    """History of one kind of rule: for each place, the latest rule and the one before."""

    __slots__ = ("_by_place",)

    def __init__(self) -> None:
        self._by_place: dict[Place, tuple[_PastRule, ...]] = {}

    def begin(self, place: Place, seq: int | None, amount: float, now_us: int) -> None:
        """Begin a rule in place of the current one; ``amount`` is its severity."""
        self.end(place, now_us)
        ended = self._by_place.get(place, ())[-1:]
        self._by_place[place] = (*ended, _PastRule(seq, amount, None))

    def end(self, place: Place, now_us: int) -> None:
        """End the rule of a place."""
        known = self._by_place.get(place)
        if known and known[-1].until_us is None:
            self._by_place[place] = (*known[:-1], known[-1]._replace(until_us=now_us))

    def end_links(self, now_us: int) -> None:
        """End the rules of all single links."""
        for place in self._by_place:
            if place is not None:
                self.end(place, now_us)

    def end_all(self, now_us: int) -> None:
        """End all rules."""
        for place in self._by_place:
            self.end(place, now_us)

    def find_event(
        self, one: str, other: str, since_us: int, is_bad: Callable[[float], object]
    ) -> int | None:
        """Return the seq of the event that began a bad rule between two machines, in either
        direction, that is in force or ended after ``since_us``. Rules of a link take precedence
        over rules of all links."""
        for place in ((one, other), (other, one), None):
            for known in reversed(self._by_place.get(place, ())):
                lasted = known.until_us is None or known.until_us > since_us
                if known.seq is not None and lasted and is_bad(known.amount):
                    return known.seq
        return None
