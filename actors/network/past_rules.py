"""Which event has a rule about links begun, and until when the rule was in force."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Place = tuple[str, str] | None
"""A link from one machine to another; None is every link."""


class _PastRule(NamedTuple):
    seq: int | None
    """The event that began it; None for what the cluster was made with."""
    amount: float
    until_us: int | None
    """When it ended; None while it lasts."""


class PastRules:
    """Memory of one kind of rule: of each place the last one, and the one before."""

    __slots__ = ("_by_place",)

    def __init__(self) -> None:
        self._by_place: dict[Place, tuple[_PastRule, ...]] = {}

    def begin(self, place: Place, seq: int | None, amount: float, now_us: int) -> None:
        """A rule is in force from now on, in place of the one that was; ``amount`` says how bad it
        is."""
        self.end(place, now_us)
        ended = self._by_place.get(place, ())[-1:]
        self._by_place[place] = (*ended, _PastRule(seq, amount, None))

    def end(self, place: Place, now_us: int) -> None:
        """The rule of a place is in force no longer."""
        known = self._by_place.get(place)
        if known and known[-1].until_us is None:
            self._by_place[place] = (*known[:-1], known[-1]._replace(until_us=now_us))

    def end_links(self, now_us: int) -> None:
        """The rules of single links are in force no longer."""
        for place in self._by_place:
            if place is not None:
                self.end(place, now_us)

    def end_all(self, now_us: int) -> None:
        """No rule is in force any longer."""
        for place in self._by_place:
            self.end(place, now_us)

    def of(
        self, one: str, other: str, since_us: int, is_bad: Callable[[float], object]
    ) -> int | None:
        """Seq of the event that began a rule between two machines, in either direction, that is
        bad enough and in force, or was after a time; one of a link before one of all links."""
        for place in ((one, other), (other, one), None):
            for known in reversed(self._by_place.get(place, ())):
                lasted = known.until_us is None or known.until_us > since_us
                if known.seq is not None and lasted and is_bad(known.amount):
                    return known.seq
        return None
