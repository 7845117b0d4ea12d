"""Disturbances that keep a partition from acknowledging: crashes, pauses, cut or slow links, lost
sessions.

Each begins with the event at which a test or a scenario causes it, and lasts until the event that
undoes it. The account of outages finds which of them was in force, and names it as the cause.
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
"""Kinds that only delay messages."""
_MESSAGES = 8
"""Maximum number of consecutive messages until a record is acknowledged: the produce request and
its response, those of a follower's two fetches, and those of a fetch that just missed the record.
"""
_PAST = {" is killed": " was killed", " loses power": " lost power", " halts": " halted"}
_MESSAGES_OF = re.compile(r"(.+?)(?: from (\S+))?(?: to (\S+))?")
_NUMBER = re.compile(r"([a-z]+)? ?(\d+(?:\.\d+)?(?:e[-+]?\d+)?)")


def _longest_us(text: str) -> float:
    """Return about the longest delay in microseconds of a recorded latency: three sigma above the
    median."""
    named = {name: float(number) for name, number in _NUMBER.findall(text.partition("latency ")[2])}
    longest_ms = max((value for name, value in named.items() if name != "sigma"), default=0.0)
    return longest_ms * 1000 * math.exp(3 * named.get("sigma", 0.0))


@dataclass(slots=True, eq=False)
class Disturbance:
    """A fault injected into the cluster; times are in microseconds since the run began."""

    kind: str
    """``crash``, ``pause``, ``session``, ``disk``, ``injection``, ``cut``, ``hold``, ``loss``,
    ``latency`` or ``bandwidth``."""
    text: str
    begun_us: int
    broker: int | None = None
    """The affected broker; None for a fault of the network."""
    ended_us: int | None = None
    """Time at which the fault was undone: the broker was back, the link repaired; for a lost
    session, the time at which the broker lost its leadership. None while it is in force."""
    is_succeeded: bool = False
    """True if a lost session has led to another leader."""
    noticed_us: int | None = None
    """Time of the first watch event that told a controller that a broker is gone."""
    elected_us: int | None = None
    """Time of the first decision of a controller for another leader in the broker's place."""
    machines: frozenset[str] = frozenset()
    """Machines on the smaller sides of a cut, or the ends of a link or a hold."""

    @property
    def back_us(self) -> int | None:
        """The time at which a broker that was off, silent or cut off was back."""
        return self.ended_us if self.kind in ("crash", "pause", "cut") else None

    @property
    def is_slow(self) -> bool:
        """True if the fault only delays messages, which no controller notices."""
        return self.kind in _SLOW

    def overlaps(self, begun_us: int, ended_us: int) -> bool:
        """Return whether the fault was in force at some moment of a span."""
        return self.begun_us <= ended_us and (self.ended_us is None or self.ended_us >= begun_us)

    def explains(self, length_us: int) -> bool:
        """Return whether the fault can explain an outage of some length. A latency can only if a
        few consecutive messages would take about as long."""
        return self.kind != "latency" or length_us <= _MESSAGES * _longest_us(self.text)

    def rank(self, leader: int | None, isr: Iterable[int], controller: int | None) -> int | None:
        """Return how close the fault is to a partition with this leader and ISR, 0 being closest;
        None if it cannot be the cause."""
        if self.kind in _FROM_BROKERS:
            if self.broker == leader:
                return 0
            return 1 if any(self.broker == member for member in isr) else None
        brokers = {broker_name(one) for one in isr}
        if self.kind in ("hold", "loss", *_SLOW):
            brokers |= {broker_name(one) for one in (leader, controller) if one is not None}
            if any(broker_id_of(end) is not None and end not in brokers for end in self.machines):
                return None  # the link belongs to a broker outside the partition
            return 4 if self.is_slow else 3
        if self.kind == "cut":
            if leader is not None and broker_name(leader) in self.machines:
                return 0
            if self.machines & brokers:
                return 1
            if controller is not None and broker_name(controller) in self.machines:
                return 2
            return 3 if not any(broker_id_of(name) for name in self.machines) else None
        return 3


class Disturbances:
    """All disturbances of a run, in the order in which they began."""

    __slots__ = ("all",)

    def __init__(self) -> None:
        self.all: list[Disturbance] = []

    def _in_force(self, kinds: Iterable[str]) -> Iterator[Disturbance]:
        return (one for one in self.all if one.ended_us is None and one.kind in kinds)

    def crash(self, time_us: int, broker: int, text: str) -> Disturbance:
        """Note that a broker's process ends, which also ends a pause of the broker."""
        self.end(time_us, "pause", broker)
        for present, past in _PAST.items():
            text = text.replace(present, past, 1)
        crash = Disturbance("crash", text, time_us, broker)
        self.all.append(crash)
        return crash

    def _is_off(self, broker: int) -> bool:
        return any(one.broker == broker for one in self._in_force(("crash",)))

    def end(self, time_us: int, kind: str, broker: int | None) -> Disturbance | None:
        """End a broker's disturbances of a kind; return the last of them."""
        ended = None
        for one in self._in_force((kind,)):
            if one.broker == broker:
                one.ended_us, ended = time_us, one
        return ended

    def depose(self, time_us: int, broker: int, *, has_successor: bool) -> None:
        """Note that a broker has lost the leadership of a partition, because of a lost session if
        there is one."""
        for one in self.all:
            if one.kind == "session" and one.broker == broker and (
                not one.is_succeeded or one.ended_us == time_us
            ):  # fmt: skip
                one.ended_us, one.is_succeeded = time_us, has_successor

    def fault(self, time_us: int, actor: str, text: str) -> None:
        """Note a fault, given by the actor and the text of its event."""
        broker = broker_id_of(actor)
        if actor == "network":
            self._network_fault(time_us, text)
        elif broker is None:
            return
        elif text == "resumed":
            self.end(time_us, "pause", broker)
        else:
            if text == "session expired" and self._is_off(broker):
                return  # a dead broker's session expires because of its death
            kind = "pause" if text == "paused" else "session" if text == "session expired" else (
                "disk" if text.startswith("log directory") else "injection")  # fmt: skip
            at_once = time_us if kind in ("session", "injection") else None
            description = {
                "pause": f"{broker_name(broker)} was paused",
                "session": f"the session of {broker_name(broker)} expired",
            }.get(kind, f"{broker_name(broker)}: {text}")
            self.all.append(Disturbance(kind, description, time_us, broker, at_once))

    def _network_fault(self, time_us: int, text: str) -> None:
        if text == "heal":
            for one in self._in_force(("cut", "loss")):
                one.ended_us = time_us
        elif text.startswith("partition "):
            machines = _smaller_sides(text)
            description = (
                f"{', '.join(sorted(machines))} {'was' if len(machines) == 1 else 'were'} cut off"
            )
            self.all.append(Disturbance("cut", description, time_us, machines=machines))
        elif text.endswith(" are held back"):
            self.all.append(Disturbance("hold", text, time_us))
        elif text.endswith(": held back"):
            _, source, target = _messages_of(text)
            ends = frozenset(end for end in (source, target) if end is not None)
            self.all.append(Disturbance("hold", text, time_us, machines=ends))
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
                if where == one.text.partition(": ")[0]:  # settings of other links stay in force
                    one.ended_us = time_us
            if not what.endswith(("probability 0", "without a limit")):
                source, _, target = where.partition(" to ")
                ends = frozenset((source, target)) if target else frozenset[str]()
                self.all.append(Disturbance(kind, text, time_us, machines=ends))

    def cause(
        self,
        begun_us: int,
        ended_us: int,
        leader: int | None,
        isr: Iterable[int],
        controller: int | None,
    ) -> Disturbance | None:
        """Return the disturbance to blame for a partition's outage over a span: the closest that
        was in force, and of equally close ones the last to begin."""
        best: tuple[int, int] | None = None
        cause = None
        members = tuple(isr)
        for one in self.all:
            if one.overlaps(begun_us, ended_us) and one.explains(ended_us - begun_us):
                rank = one.rank(leader, members, controller)
                if rank is not None and (best is None or (rank, -one.begun_us) <= best):
                    best, cause = (rank, -one.begun_us), one
        return cause


def _messages_of(text: str) -> tuple[frozenset[str] | None, str | None, str | None]:
    """Return kinds, source and target of the messages held or released; None stands for any."""
    found = _MESSAGES_OF.fullmatch(text.rpartition(": ")[0])
    assert found is not None
    kinds = None if found[1] == "all messages" else frozenset(found[1].split(", "))
    return kinds, found[2], found[3]


def _covers(text: str, other: str) -> bool:
    """Return whether one such text covers all messages that the other is about."""
    kinds, *ends = _messages_of(text)
    other_kinds, *other_ends = _messages_of(other)
    is_kind = kinds is None or (other_kinds is not None and other_kinds <= kinds)
    return is_kind and all(end in (None, own) for end, own in zip(ends, other_ends, strict=True))


def _smaller_sides(text: str) -> frozenset[str]:
    """Return the machines of a recorded network partition, except those of the largest group."""
    groups = ast.literal_eval(text.removeprefix("partition ").removesuffix(" (one way)"))
    largest = max(range(len(groups)), key=lambda place: (len(groups[place]), place))
    return frozenset(
        str(name) for place, group in enumerate(groups) if place != largest for name in group
    )
