"""The story of a run, told from its recorded messages only: who died, who noticed, who was elected.

``timeline`` gives lines for people, ``failovers`` the same findings as numbers: how long until the
death was noticed, until leaders were chosen, until they took over, until the first record was
acknowledged again. Nothing is asked of the cluster; what no message said is not told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..protocol.names import broker_id_of, broker_name
from .events import Event

_PARTITION_LINES_MAX = 6
"""Partitions told one by one when many change at the same moment."""
_TYPES = frozenset(
    {
        "LeaderAndIsrRequest",
        "UpdateMetadataRequest",
        "AlterIsrResponse",
        "WatchEvent",
        "ProduceResponse",
        "ProduceRequest",
    }
)


@dataclass(slots=True)
class Outage:
    """One partition around a crash of its leader; times in microseconds since the run began."""

    partition: str
    last_ack_us: int | None
    """Last acknowledgement before, None when none was recorded."""
    first_ack_us: int | None = None
    new_leader: int | None = None

    @property
    def unavailable_us(self) -> int | None:
        """From the last acknowledgement before to the first after."""
        if self.last_ack_us is None or self.first_ack_us is None:
            return None
        return self.first_ack_us - self.last_ack_us


@dataclass(slots=True)
class Failover:
    """A broker's death and what followed; times in microseconds since the run began."""

    broker: int
    crashed_us: int
    noticed_us: int | None = None
    """First watch event that told a controller."""
    noticed_by: str | None = None
    elected_us: int | None = None
    """First LeaderAndIsr request that names another leader for one of its partitions."""
    took_over_us: int | None = None
    """First arrival of such a request at the new leader."""
    returned_us: int | None = None
    outages: dict[str, Outage] = field(default_factory=dict)


@dataclass(slots=True)
class _Known:
    """What is known of a partition from messages so far."""

    leader: int
    leader_epoch: int
    isr: list[int]


class Story:
    """Reads events in order; ``lines`` and ``failovers`` hold what was found."""

    def __init__(self) -> None:
        self.failovers: list[Failover] = []
        self._lines: list[tuple[int, str, str]] = []  # (time, group, text)
        self._partitions: dict[str, _Known] = {}
        self._acks: dict[str, tuple[int, int]] = {}  # partition -> (time, broker)
        self._asked: dict[str, int] = {}  # partition -> broker last asked to write
        self._controller_epoch: int | None = None
        self._taken_over: dict[tuple[str, int], None] = {}
        self._seen_watches: dict[tuple[int, str, str], None] = {}
        self._handlers = {
            "LeaderAndIsrRequest": self._on_leader_and_isr,
            "UpdateMetadataRequest": self._on_update_metadata,
            "AlterIsrResponse": self._on_alter_isr,
            "WatchEvent": self._on_watch,
            "ProduceResponse": self._on_produce_response,
            "ProduceRequest": self._on_produce_request,
        }

    def add(self, event: Event) -> None:
        """Take the next event."""
        kind = event.kind
        if kind in ("send", "deliver"):
            if event.type in _TYPES:
                self._handlers[event.type](event)
        elif kind == "crash":
            self._on_crash(event)
        elif kind == "restart":
            self._on_restart(event)
        elif kind in ("fault", "note", "invariant", "zk_expire") or (
            kind == "stop" and event.why is not None
        ):
            text = event.why or event.type or kind
            mine = text.startswith(event.actor)
            self._tell(event, text if mine else f"{event.actor}: {text}")

    @property
    def lines(self) -> list[tuple[float, str]]:
        """(milliseconds since the run began, text), in order; crowds of equal news summed up."""
        lines: list[tuple[float, str]] = []
        groups: dict[tuple[int, str], int] = {}
        for time_us, group, _ in self._lines:
            if group:
                groups[time_us, group] = groups.get((time_us, group), 0) + 1
        told: dict[tuple[int, str], int] = {}
        for time_us, group, text in self._lines:
            count = groups.get((time_us, group), 0)
            if count > _PARTITION_LINES_MAX:
                told[time_us, group] = number = told.get((time_us, group), 0) + 1
                if number == _PARTITION_LINES_MAX:
                    text = f"... and {count - number + 1} more partitions: {group}"
                elif number > _PARTITION_LINES_MAX:
                    continue
            lines.append((time_us / 1000, text))
        return lines

    def _tell(self, event: Event, text: str, group: str = "") -> None:
        self._lines.append((event.time_us, group, text))

    # -- death and return ----------------------------------------------------------------------

    def _on_crash(self, event: Event) -> None:
        self._tell(event, event.why or f"{event.actor} crashes")
        broker = broker_id_of(event.actor)
        if broker is None:
            return
        failover = Failover(broker, event.time_us)
        led = [name for name, known in self._partitions.items() if known.leader == broker]
        led += [
            name
            for name, asked in self._asked.items()
            if asked == broker and name not in self._partitions
        ]
        for name in led:
            ack = self._acks.get(name)
            failover.outages[name] = Outage(name, None if ack is None else ack[0])
        self.failovers.append(failover)

    def _on_restart(self, event: Event) -> None:
        text = event.why or f"{event.actor} starts again"
        broker = broker_id_of(event.actor)
        for failover in reversed(self.failovers):
            if failover.broker == broker and failover.returned_us is None:
                failover.returned_us = event.time_us
                away_ms = (event.time_us - failover.crashed_us) / 1000
                text += f" after {away_ms:.1f} ms"
                break
        self._tell(event, text)

    def _on_watch(self, event: Event) -> None:
        fields = event.fields
        path = str(fields.get("path"))
        what = str(fields.get("type"))
        if event.kind != "deliver" or not (
            path == "/controller" or path.startswith("/brokers/ids")
        ):
            return
        key = (event.time_us // 1000, path, what)
        waiting = [f for f in self.failovers if f.noticed_us is None]
        if key in self._seen_watches and not waiting:
            return
        self._seen_watches[key] = None
        said = {
            "NodeDeleted": f"{path} is gone",
            "NodeCreated": f"{path} is there",
            "NodeDataChanged": f"{path} has changed",
            "NodeChildrenChanged": f"the children of {path} have changed",
        }.get(what, f"{path}: {what}")
        text = f"{event.actor} hears from ZooKeeper that {said}"
        for failover in waiting:
            if path.startswith("/brokers/ids/") and path != f"/brokers/ids/{failover.broker}":
                continue
            if what in ("NodeCreated", "NodeDataChanged"):
                continue
            failover.noticed_us, failover.noticed_by = event.time_us, event.actor
            after_ms = (event.time_us - failover.crashed_us) / 1000
            text += f" ({after_ms:.1f} ms after broker-{failover.broker} died)"
        self._tell(event, text)

    # -- decisions -----------------------------------------------------------------------------

    def _on_leader_and_isr(self, event: Event) -> None:
        fields = event.fields
        if event.kind == "deliver":
            self._on_leader_and_isr_arrival(event, fields)
            return
        self._on_controller(event, fields)
        for entry in fields.get("partition_states") or ():
            self._learn(event, entry, broker_id_of(event.actor))

    def _on_update_metadata(self, event: Event) -> None:
        if event.kind != "send":
            return
        fields = event.fields
        self._on_controller(event, fields)
        for entry in fields.get("partition_states") or ():
            self._learn(event, entry, broker_id_of(event.actor))

    def _on_controller(self, event: Event, fields: dict[str, Any]) -> None:
        epoch = fields.get("controller_epoch", -1)
        if self._controller_epoch is None or epoch > self._controller_epoch:
            said = (
                "is the controller" if self._controller_epoch is None else "is now the controller"
            )
            self._controller_epoch = epoch
            self._tell(
                event, f"{broker_name(fields.get('controller_id', -1))} {said}, epoch {epoch}"
            )

    def _learn(self, event: Event, entry: dict[str, Any], by: int | None) -> None:
        name = f"{entry['topic']}-{entry['partition']}"
        leader, epoch, isr = entry["leader"], entry["leader_epoch"], list(entry["isr"])
        known = self._partitions.get(name)
        if known is not None and epoch < known.leader_epoch:
            return
        if known is None and name in self._asked and self._asked[name] != leader:
            known = _Known(self._asked[name], epoch - 1, isr)  # recording began in mid-run
        self._partitions[name] = _Known(leader, epoch, isr)
        if known is None:
            self._tell(event, f"{name}: leader {_leader(leader)}, epoch {epoch}, isr {isr}", "new")
            return
        if leader != known.leader:
            decided = f" by controller-{by}" if by is not None else ""
            verb = "loses its leader" if leader < 0 else f"gets leader {leader}"
            self._tell(
                event,
                f"{name} {verb} (was {_leader(known.leader)}), leader epoch {epoch}, "
                f"isr {isr}, decided{decided} in epoch {entry.get('controller_epoch')}",
                f"leaders chosen{decided}",
            )
            self._elected(event, name, known.leader, leader)
        elif sorted(isr) != sorted(known.isr):
            self._tell(event, f"{name}: isr {known.isr} -> {isr}", "isr changed")

    def _elected(self, event: Event, name: str, old: int, new: int) -> None:
        for failover in self.failovers:
            outage = failover.outages.get(name)
            if outage is None and failover.broker == old and failover.elected_us is None:
                ack = self._acks.get(name)
                outage = failover.outages[name] = Outage(name, None if ack is None else ack[0])
            if outage is None or outage.first_ack_us is not None or new < 0:
                continue
            outage.new_leader = new
            if failover.elected_us is None:
                failover.elected_us = event.time_us

    def _on_leader_and_isr_arrival(self, event: Event, fields: dict[str, Any]) -> None:
        broker = broker_id_of(event.actor)
        for entry in fields.get("partition_states") or ():
            name = f"{entry['topic']}-{entry['partition']}"
            key = (name, entry["leader_epoch"])
            if entry["leader"] != broker or key in self._taken_over:
                continue
            self._taken_over[key] = None
            for failover in self.failovers:
                outage = failover.outages.get(name)
                if outage is None or outage.new_leader != broker:
                    continue
                if failover.took_over_us is None:
                    failover.took_over_us = event.time_us
                self._tell(
                    event,
                    f"{event.actor} learns that it leads {name} (epoch {entry['leader_epoch']})",
                    f"{event.actor} learns that it leads",
                )
                break

    def _on_alter_isr(self, event: Event) -> None:
        if event.kind != "deliver" or event.fields.get("error") != "NONE":
            return
        for entry in event.fields.get("partitions") or ():
            stored = entry.get("leader_and_isr")
            if entry.get("error") != "NONE" or not stored:
                continue
            name = entry["topic_partition"]
            known = self._partitions.get(name)
            isr = list(stored["isr"])
            if known is None or sorted(known.isr) != sorted(isr):
                before = f"{known.isr} -> " if known is not None else ""
                self._tell(event, f"{name}: isr {before}{isr}", "isr changed")
            self._partitions[name] = _Known(stored["leader"], stored["leader_epoch"], isr)

    # -- acknowledgements ----------------------------------------------------------------------

    def _on_produce_request(self, event: Event) -> None:
        broker = broker_id_of(event.actor)
        if event.kind == "deliver" and broker is not None:
            for entry in event.fields.get("partitions") or ():
                self._asked[entry["topic_partition"]] = broker

    def _on_produce_response(self, event: Event) -> None:
        broker = broker_id_of(event.peer or "")
        if event.kind != "deliver" or broker is None:
            return
        for entry in event.fields.get("partitions") or ():
            if entry.get("error") != "NONE":
                continue
            name = entry["topic_partition"]
            self._acks[name] = (event.time_us, broker)
            for failover in self.failovers:
                outage = failover.outages.get(name)
                if outage is not None and outage.first_ack_us is None:
                    self._on_ack(event, failover, outage, broker)

    def _on_ack(self, event: Event, failover: Failover, outage: Outage, broker: int) -> None:
        if broker == failover.broker and failover.returned_us is None:
            outage.last_ack_us = event.time_us  # it was on its way when the broker died
            return
        outage.first_ack_us = event.time_us
        since_ms = (event.time_us - failover.crashed_us) / 1000
        text = f"{outage.partition} takes records again at broker-{broker}"
        if outage.unavailable_us is not None:
            text += f": unavailable for {outage.unavailable_us / 1000:.1f} ms"
        else:
            text += f", {since_ms:.1f} ms after the crash"
        self._tell(event, text, "take records again")


def _leader(leader: int) -> str:
    return "none" if leader < 0 else str(leader)


def read_story(events: Iterable[Event]) -> Story:
    """Read all events of a trace (``Trace.events()`` or ``Recorder.events``)."""
    story = Story()
    for event in events:
        story.add(event)
    return story


def timeline(events: Iterable[Event]) -> list[tuple[float, str]]:
    """The story as (milliseconds since the run began, text) lines."""
    return read_story(events).lines


def failovers(events: Iterable[Event]) -> list[Failover]:
    """Every broker crash with what followed, as numbers."""
    return read_story(events).failovers
