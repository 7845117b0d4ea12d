"""What can keep a partition from acknowledging: crashes, pauses, cuts, lost sessions, slow links.

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
_OF_LINKS = ("cut", "hold", "loss")
_SLOW = ("latency", "bandwidth")
"""Kinds, the first to blame first."""
_MESSAGES = 8
"""Messages one after the other until a record is acknowledged: to the leader and back, and as many
for its followers' two fetches, with one of each that just missed it."""
_NUMBER = re.compile(r"([a-z]+)? ?(\d+(?:\.\d+)?(?:e[-+]?\d+)?)")


def _longest_us(text: str) -> float:
    """About the longest delay of a latency as it is recorded, three sigma above a median."""
    named = {name: float(number) for name, number in _NUMBER.findall(text.partition("latency ")[2])}
    longest_ms = max((value for name, value in named.items() if name != "sigma"), default=0.0)
    return longest_ms * 1000 * math.exp(3 * named.get("sigma", 0.0))


@dataclass(slots=True, eq=False)
class Disturbance:
    """One thing that was done to the cluster; times in microseconds since the run began."""

    kind: str
    """``crash``, ``pause``, ``session``, ``disk``, ``injection``, ``cut``, ``hold``, ``loss``,
    ``latency`` or ``bandwidth``."""
    text: str
    begun_us: int
    broker: int | None = None
    """The broker that it befell, None for those of the network."""
    ended_us: int | None = None
    """When it was undone: the broker was back, the link whole. None while it is in force."""
    noticed_us: int | None = None
    """First watch event that told a controller that a broker is gone."""
    elected_us: int | None = None
    """First decision of a controller for another leader of one of its partitions."""
    apart: frozenset[str] = frozenset()
    """Machines of the smaller sides of a cut."""

    @property
    def is_slow(self) -> bool:
        """Whether it delays messages only, so that nobody can notice it."""
        return self.kind in _SLOW

    def overlaps(self, begun_us: int, ended_us: int) -> bool:
        """Whether it was in force at some moment of a span."""
        return self.begun_us <= ended_us and (self.ended_us is None or self.ended_us >= begun_us)

    def explains(self, length_us: int) -> bool:
        """Whether it can be why something took so long: a latency only if a few messages, one
        after the other, would take about as long."""
        return self.kind != "latency" or length_us <= _MESSAGES * _longest_us(self.text)

    def rank(self, leader: int | None, isr: Iterable[int], controller: int | None) -> int | None:
        """How near it is to a partition with this leader and ISR, 0 the nearest; None if it
        cannot be to blame."""
        if self.kind in _FROM_BROKERS:
            if self.broker == leader:
                return 0
            return 1 if any(self.broker == member for member in isr) else None
        if self.is_slow:
            return 4
        if self.kind == "cut":
            brokers = {broker_name(one) for one in isr}
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
        crash = Disturbance("crash", text.replace(" is ", " was ", 1), time_us, broker)
        self.found.append(crash)
        return crash

    def end(self, time_us: int, kind: str, broker: int | None) -> Disturbance | None:
        """What befell a broker is undone; gives the last of that kind."""
        ended = None
        for one in self._in_force((kind,)):
            if one.broker == broker:
                one.ended_us, ended = time_us, one
        return ended

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
            kind = "pause" if text == "paused" else "session" if text == "session expired" else (
                "disk" if text.startswith("log directory") else "injection")  # fmt: skip
            at_once = time_us if kind in ("session", "injection") else None
            said = f"{broker_name(broker)}: {text}" if kind != "pause" else (
                f"{broker_name(broker)} was paused")  # fmt: skip
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
                if where in ("all links", one.text.partition(": ")[0]):
                    one.ended_us = time_us
            if not what.endswith(("probability 0", "without a limit")):
                self.found.append(Disturbance(kind, text, time_us))

    def cause(
        self,
        begun_us: int,
        ended_us: int,
        leader: int | None,
        isr: Iterable[int],
        controller: int | None,
    ) -> Disturbance | None:
        """What is to blame for a partition's outage over a span: of what was in force the nearest,
        and of the equally near the last that began."""
        best: tuple[int, int] | None = None
        cause = None
        members = tuple(isr)
        for one in self.found:
            if one.overlaps(begun_us, ended_us) and one.explains(ended_us - begun_us):
                rank = one.rank(leader, members, controller)
                if rank is not None and (best is None or (rank, -one.begun_us) <= best):
                    best, cause = (rank, -one.begun_us), one
        return cause


def _smaller_sides(text: str) -> frozenset[str]:
    """Machines of a recorded partition, without those of the largest group."""
    groups = ast.literal_eval(text.removeprefix("partition ").removesuffix(" (one way)"))
    largest = max(range(len(groups)), key=lambda place: (len(groups[place]), place))
    return frozenset(
        str(name) for place, group in enumerate(groups) if place != largest for name in group
    )
