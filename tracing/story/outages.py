"""How long partitions were unavailable when their leader died: the one account of it.

A crash takes the leader from some partitions. Each is unavailable from the last acknowledgement
of the dead leader to the first one of another. The time between is split where it can be seen: a
controller hears of the expired session, the new leader learns that it leads. The story of a trace
tells from what it recorded, and batches from what they observed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...protocol.control import LeaderAndIsrRequest
from ...protocol.data import ProduceResponse
from ...protocol.errors import ErrorCode
from ...protocol.names import broker_id_of, is_controller_name
from ...zkfake.messages import WatchEvent

_BROKERS = "/brokers/ids"
_CONTROLLER = "/controller"
_DEATHS = ("NodeDeleted", "NodeChildrenChanged")
"""What a watch says when a session has expired."""


@dataclass(slots=True)
class Outage:
    """One partition around a crash of its leader; times in microseconds since the run began."""

    partition: str
    crashed_us: int
    last_ack_us: int | None
    """Last acknowledgement before, None when none was recorded."""
    took_over_us: int | None = None
    """Arrival of the first LeaderAndIsr request at another leader."""
    first_ack_us: int | None = None
    new_leader: int | None = None

    @property
    def unavailable_us(self) -> int | None:
        """From the last acknowledgement before, or else the crash, to the first after."""
        if self.first_ack_us is None:
            return None
        return self.first_ack_us - (
            self.crashed_us if self.last_ack_us is None else self.last_ack_us
        )


@dataclass(slots=True)
class BrokerCrash:
    """A broker's death and what followed; times in microseconds since the run began."""

    broker: int
    crashed_us: int
    noticed_us: int | None = None
    """First watch event that told a controller."""
    elected_us: int | None = None
    """First LeaderAndIsr request that names another leader for one of its partitions."""
    returned_us: int | None = None
    outages: dict[str, Outage] = field(default_factory=dict)

    @property
    def took_over_us(self) -> int | None:
        """When the first of its partitions had another leader that knew."""
        times = [o.took_over_us for o in self.outages.values() if o.took_over_us is not None]
        return min(times, default=None)

    @property
    def worst(self) -> Outage | None:
        """The outage that lasted longest, of those that have ended."""
        ended = [outage for outage in self.outages.values() if outage.unavailable_us is not None]
        return max(ended, key=lambda outage: outage.unavailable_us or 0, default=None)

    @property
    def has_ended(self) -> bool:
        """Whether every partition takes records again."""
        return all(outage.first_ack_us is not None for outage in self.outages.values())


class OutageAccount:
    """Takes in order what happened, and keeps ``crashes``."""

    __slots__ = ("_acks", "crashes")

    def __init__(self) -> None:
        self.crashes: list[BrokerCrash] = []
        self._acks: dict[str, int] = {}  # partition -> time of the last acknowledgement

    def crash(self, time_us: int, broker: int, led: Iterable[str]) -> BrokerCrash:
        """A broker dies that led these partitions."""
        crash = BrokerCrash(broker, time_us)
        for partition in led:
            self._begin(crash, partition)
        self.crashes.append(crash)
        return crash

    def _begin(self, crash: BrokerCrash, partition: str) -> Outage:
        outage = crash.outages[partition] = Outage(
            partition, crash.crashed_us, self._acks.get(partition)
        )
        return outage

    def restart(self, time_us: int, broker: int | None) -> BrokerCrash | None:
        """A broker starts again; the crash from which it returns."""
        for crash in reversed(self.crashes):
            if crash.broker == broker and crash.returned_us is None:
                crash.returned_us = time_us
                return crash
        return None

    @property
    def awaits_notice(self) -> bool:
        """Whether there is a crash of which no controller has heard."""
        return any(crash.noticed_us is None for crash in self.crashes)

    def watch(self, time_us: int, actor: str, what: str, path: str) -> list[BrokerCrash]:
        """A watch event reaches a controller; the crashes of which it is the first notice."""
        if what not in _DEATHS or not is_controller_name(actor):
            return []
        noticed = []
        for crash in self.crashes:
            if crash.noticed_us is None and (
                path in (_CONTROLLER, _BROKERS) or path == f"{_BROKERS}/{crash.broker}"
            ):
                crash.noticed_us = time_us
                noticed.append(crash)
        return noticed

    def choose_leader(self, time_us: int, partition: str, old: int, new: int) -> None:
        """A controller decided that a partition has another leader."""
        for crash in self.crashes:
            outage = crash.outages.get(partition)
            if outage is None and crash.broker == old and crash.elected_us is None:
                outage = self._begin(crash, partition)
            if outage is None or outage.first_ack_us is not None or new < 0:
                continue
            outage.new_leader = new
            if crash.elected_us is None:
                crash.elected_us = time_us

    def take_over(self, time_us: int, broker: int, partition: str) -> None:
        """A LeaderAndIsr request tells a broker that it leads a partition."""
        for crash in self.crashes:
            outage = crash.outages.get(partition)
            if outage is None or outage.took_over_us is not None:
                continue
            if broker != crash.broker or crash.returned_us is not None:
                outage.took_over_us = time_us

    def acknowledge(
        self, time_us: int, broker: int, partition: str
    ) -> list[tuple[BrokerCrash, Outage]]:
        """A client hears from a broker that records are stored; the outages that end with it."""
        ended = []
        self._acks[partition] = time_us
        for crash in self.crashes:
            outage = crash.outages.get(partition)
            if outage is None or outage.first_ack_us is not None:
                continue
            if broker == crash.broker and crash.returned_us is None:
                outage.last_ack_us = time_us  # it was on its way when the broker died
                continue
            outage.first_ack_us = time_us
            ended.append((crash, outage))
        return ended

    def see(self, time_us: int, sender: str, target: str, message: object) -> None:
        """Take a message that is delivered; for those that observe a run and record nothing."""
        if isinstance(message, ProduceResponse):
            broker = broker_id_of(sender)
            if broker is not None:
                for answer in message.partitions:
                    if answer.error is ErrorCode.NONE:
                        self.acknowledge(time_us, broker, str(answer.topic_partition))
        elif isinstance(message, LeaderAndIsrRequest):
            broker = broker_id_of(target)
            for state in message.partition_states:
                if broker is not None and state.leader == broker:
                    self.take_over(time_us, broker, str(state.topic_partition))
        elif isinstance(message, WatchEvent):
            self.watch(time_us, target, message.type.value, message.path)
