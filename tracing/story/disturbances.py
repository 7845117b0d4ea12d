"""Disturbances that keep a partition from acknowledging: crashes, pauses, cuts, lost sessions, slow
links.

Each is known from the event at which a test or a scenario does it, and lasts until the event that
undoes it. The account of outages asks which of them was in force, and names it as the cause.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...protocol.names import broker_id_of, broker_name

_FROM_BROKERS = ("crash", "pause", "session", "disk", "injection")
_SLOW = ("latency", "bandwidth")
"""Kinds, the first to blame first."""
_MESSAGES = 8
"""Messages one after the other until a record is acknowledged: to the leader and back, and as many
for its followers' two fetches, with one of each that just missed it."""
_PAST = {" is killed": " was killed", " loses power": " lost power", " halts": " halted"}
_MESSAGES_OF = re.compile(r"(.+?)(?: from (\S+))?(?: to (\S+))?")
_NUMBER = re.compile(r"([a-z]+)? ?(\d+(?:\.\d+)?(?:e[-+]?\d+)?)")


def _longest_us(text: str) -> float:
    """About the longest delay of a latency as it is recorded, three sigma above a median."""
    named = {name: float(number) for name, number in _NUMBER.findall(text.partition("latency ")[2])}
    longest_ms = max((value for name, value in named.items() if name != "sigma"), default=0.0)
    return longest_ms * 1000 * math.exp(3 * named.get("sigma", 0.0))


@dataclass(slots=True, eq=False)
class Disturbance:
    """A fault that was done to the cluster; times in microseconds since the run began."""

    kind: str
    """``crash``, ``pause``, ``session``, ``disk``, ``injection``, ``cut``, ``hold``, ``loss``,
    ``latency`` or ``bandwidth``."""
    text: str
    begun_us: int
    broker: int | None = None
    """The broker that it befell, None for those of the network."""
    ended_us: int | None = None
    """When it was undone: the broker was back, the link whole; of a lost session, when it took the
    leadership from the broker. None while it is in force."""
    is_succeeded: bool = False
    """Whether a lost session has led to another leader."""
    noticed_us: int | None = None
    """First watch event that told a controller that a broker is gone."""
    elected_us: int | None = None
    """First decision of a controller for another leader of one of its partitions."""
    apart: frozenset[str] = frozenset()
    """Machines of the smaller sides of a cut, or the ends of a link or a hold."""

    @property
    def back_us(self) -> int | None:
        """The time at which a broker that was off, silent or cut off was back."""
        return self.ended_us if self.kind in ("crash", "pause", "cut") else None

    @property
    def is_slow(self) -> bool:
        """True if it delays messages only, which nobody can notice."""
        return self.kind in _SLOW

    def overlaps(self, begun_us: int, ended_us: int) -> bool:
        """Return whether it was in force at some moment of a span."""
        return self.begun_us <= ended_us and (self.ended_us is None or self.ended_us >= begun_us)

    def explains(self, length_us: int) -> bool:
        """Return whether it can be why something took so long: a latency only if a few messages,
        one after the other, would take about as long."""
        return self.kind != "latency" or length_us <= _MESSAGES * _longest_us(self.text)

    def rank(self, leader: int | None, isr: Iterable[int], controller: int | None) -> int | None:
        """Return how near it is to a partition with this leader and ISR, 0 the nearest; None if it
        cannot be to blame."""
        if self.kind in _FROM_BROKERS:
            if self.broker == leader:
                return 0
            return 1 if any(self.broker == member for member in isr) else None
        brokers = {broker_name(one) for one in isr}
        if self.kind in ("hold", "loss", *_SLOW):
            brokers |= {broker_name(one) for one in (leader, controller) if one is not None}
            if any(broker_id_of(end) is not None and end not in brokers for end in self.apart):
                return None  # a link of a broker that has nothing to do with it
            return 4 if self.is_slow else 3
        if self.kind == "cut":
            if leader is not None and broker_name(leader) in self.apart:
                return 0
            if self.apart & brokers:
                return 1
            if controller is not None and broker_name(controller) in self.apart:
                return 2
            return 3 if not any(broker_id_of(name) for name in self.apart) else None
        return 3


class Disturbances:
    """All of a run, in the order in which they began."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[Disturbance] = []

    def _in_force(self, kinds: Iterable[str]) -> Iterator[Disturbance]:
        return (one for one in self.found if one.ended_us is None and one.kind in kinds)

    def crash(self, time_us: int, broker: int, text: str) -> Disturbance:
        """A broker's process ends; a pause of it is over."""
        self.end(time_us, "pause", broker)
        for present, past in _PAST.items():
            text = text.replace(present, past, 1)
        crash = Disturbance("crash", text, time_us, broker)
        self.found.append(crash)
        return crash

    def _is_off(self, broker: int) -> bool:
        return any(one.broker == broker for one in self._in_force(("crash",)))

    def end(self, time_us: int, kind: str, broker: int | None) -> Disturbance | None:
        """Return what befell a broker is undone; gives the last of that kind."""
        ended = None
        for one in self._in_force((kind,)):
            if one.broker == broker:
                one.ended_us, ended = time_us, one
        return ended

    def depose(self, time_us: int, broker: int, *, has_successor: bool) -> None:
        """A broker has lost the leadership of a partition; a session that it lost was why."""
        for one in self.found:
            if one.kind == "session" and one.broker == broker and (
                not one.is_succeeded or one.ended_us == time_us
            ):  # fmt: skip
                one.ended_us, one.is_succeeded = time_us, has_successor

    def fault(self, time_us: int, actor: str, text: str) -> None:
        """A fault's event: its actor and what it says."""
        broker = broker_id_of(actor)
        if actor == "network":
            self._network_fault(time_us, text)
        elif broker is None:
            return
        elif text == "resumed":
            self.end(time_us, "pause", broker)
        else:
            if text == "session expired" and self._is_off(broker):
                return  # that of a dead broker is part of its death
            kind = "pause" if text == "paused" else "session" if text == "session expired" else (
                "disk" if text.startswith("log directory") else "injection")  # fmt: skip
            at_once = time_us if kind in ("session", "injection") else None
            said = {
                "pause": f"{broker_name(broker)} was paused",
                "session": f"the session of {broker_name(broker)} expired",
            }.get(kind, f"{broker_name(broker)}: {text}")
            self.found.append(Disturbance(kind, said, time_us, broker, at_once))

    def _network_fault(self, time_us: int, text: str) -> None:
        if text == "heal":
            for one in self._in_force(("cut", "loss")):
                one.ended_us = time_us
        elif text.startswith("partition "):
            apart = _smaller_sides(text)
            said = f"{', '.join(sorted(apart))} {'was' if len(apart) == 1 else 'were'} cut off"
            self.found.append(Disturbance("cut", said, time_us, apart=apart))
        elif text.endswith(" are held back"):
            self.found.append(Disturbance("hold", text, time_us))
        elif text.endswith(": held back"):
            _, source, target = _messages_of(text)
            ends = frozenset(end for end in (source, target) if end is not None)
            self.found.append(Disturbance("hold", text, time_us, apart=ends))
        elif text.endswith((": released", ": lost")):
            for one in self._in_force(("hold",)):
                if one.text.endswith(": held back") and _covers(text, one.text):
                    one.ended_us = time_us
        elif text.endswith(" are released"):
            which = text.removesuffix(" are released")
            for one in self._in_force(("hold",)):
                if which == "all messages" or one.text.startswith(which):
                    one.ended_us = time_us
        else:
            where, _, what = text.partition(": ")
            kind = "loss" if what.startswith("messages are lost") else what.partition(" ")[0]
            if kind not in ("loss", *_SLOW):
                return
            for one in self._in_force((kind,)):
                if where == one.text.partition(": ")[0]:  # a link keeps what is its own
                    one.ended_us = time_us
            if not what.endswith(("probability 0", "without a limit")):
                source, _, target = where.partition(" to ")
                ends = frozenset((source, target)) if target else frozenset[str]()
                self.found.append(Disturbance(kind, text, time_us, apart=ends))

    def cause(
        self,
        begun_us: int,
        ended_us: int,
        leader: int | None,
        isr: Iterable[int],
        controller: int | None,
    ) -> Disturbance | None:
        """Return what is to blame for a partition's outage over a span: of what was in force the
        nearest, and of the equally near the last that began."""
        best: tuple[int, int] | None = None
        cause = None
        members = tuple(isr)
        for one in self.found:
            if one.overlaps(begun_us, ended_us) and one.explains(ended_us - begun_us):
                rank = one.rank(leader, members, controller)
                if rank is not None and (best is None or (rank, -one.begun_us) <= best):
                    best, cause = (rank, -one.begun_us), one
        return cause


def _messages_of(text: str) -> tuple[frozenset[str] | None, str | None, str | None]:
    """Kinds, source and target of messages that are held back or let go; None is any."""
    found = _MESSAGES_OF.fullmatch(text.rpartition(": ")[0])
    assert found is not None
    kinds = None if found[1] == "all messages" else frozenset(found[1].split(", "))
    return kinds, found[2], found[3]


def _covers(text: str, other: str) -> bool:
    """Return whether one of these is about all messages that the other is about."""
    kinds, *ends = _messages_of(text)
    other_kinds, *other_ends = _messages_of(other)
    is_kind = kinds is None or (other_kinds is not None and other_kinds <= kinds)
    return is_kind and all(end in (None, own) for end, own in zip(ends, other_ends, strict=True))


def _smaller_sides(text: str) -> frozenset[str]:
    """Machines of a recorded partition, without those of the largest group."""
    groups = ast.literal_eval(text.removeprefix("partition ").removesuffix(" (one way)"))
    largest = max(range(len(groups)), key=lambda place: (len(groups[place]), place))
    return frozenset(
        str(name) for place, group in enumerate(groups) if place != largest for name in group
    )
