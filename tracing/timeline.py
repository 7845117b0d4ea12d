"""The story of a run, told from its recorded messages only: who died, who noticed, who was elected.

``timeline`` gives lines for people, ``crashes`` the same findings as numbers: how long until the
death was noticed, until leaders were chosen, until they took over, until the first record was
acknowledged again. Nothing is asked of the cluster; what no message said is not told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..protocol.names import broker_id_of, broker_name
from .events import Event
from .outages import BrokerCrash, Outage, OutageAccount

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
class _Known:
    """What is known of a partition from messages so far."""

    leader: int
    leader_epoch: int
    isr: list[int]


class Story:
    """Reads events in order; ``lines`` and ``crashes`` hold what was found."""

    def __init__(self) -> None:
        self._account = OutageAccount()
        self._lines: list[tuple[int, str, str]] = []  # (time, group, text)
        self._partitions: dict[str, _Known] = {}
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

    @property
    def crashes(self) -> list[BrokerCrash]:
        """Every broker crash with what followed, in order."""
        return self._account.crashes

    def _tell(self, event: Event, text: str, group: str = "") -> None:
        self._lines.append((event.time_us, group, text))

    # -- death and return ----------------------------------------------------------------------

    def _on_crash(self, event: Event) -> None:
        self._tell(event, event.why or f"{event.actor} crashes")
        broker = broker_id_of(event.actor)
        if broker is None:
            return
        led = [name for name, known in self._partitions.items() if known.leader == broker]
        led += [
            name
            for name, asked in self._asked.items()
            if asked == broker and name not in self._partitions
        ]
        self._account.crash(event.time_us, broker, led)

    def _on_restart(self, event: Event) -> None:
        text = event.why or f"{event.actor} starts again"
        crash = self._account.restart(event.time_us, broker_id_of(event.actor))
        if crash is not None:
            text += f" after {(event.time_us - crash.crashed_us) / 1000:.1f} ms"
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
        if key in self._seen_watches and not self._account.awaits_notice:
            return
        self._seen_watches[key] = None
        said = {
            "NodeDeleted": f"{path} is gone",
            "NodeCreated": f"{path} is there",
            "NodeDataChanged": f"{path} has changed",
            "NodeChildrenChanged": f"the children of {path} have changed",
        }.get(what, f"{path}: {what}")
        text = f"{event.actor} hears from ZooKeeper that {said}"
        for crash in self._account.watch(event.time_us, event.actor, what, path):
            after_ms = (event.time_us - crash.crashed_us) / 1000
            text += f" ({after_ms:.1f} ms after {broker_name(crash.broker)} died)"
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
            self._account.choose_leader(event.time_us, name, known.leader, leader)
        elif sorted(isr) != sorted(known.isr):
            self._tell(event, f"{name}: isr {known.isr} -> {isr}", "isr changed")

    def _on_leader_and_isr_arrival(self, event: Event, fields: dict[str, Any]) -> None:
        broker = broker_id_of(event.actor)
        for entry in fields.get("partition_states") or ():
            name = f"{entry['topic']}-{entry['partition']}"
            key = (name, entry["leader_epoch"])
            if broker is None or entry["leader"] != broker or key in self._taken_over:
                continue
            self._taken_over[key] = None
            self._account.take_over(event.time_us, broker, name)
            outages = (crash.outages.get(name) for crash in self.crashes)
            if any(outage is not None and outage.new_leader == broker for outage in outages):
                self._tell(
                    event,
                    f"{event.actor} learns that it leads {name} (epoch {entry['leader_epoch']})",
                    f"{event.actor} learns that it leads",
                )

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
            for crash, outage in self._account.acknowledge(event.time_us, broker, name):
                self._tell_end(event, crash, outage, broker)

    def _tell_end(self, event: Event, crash: BrokerCrash, outage: Outage, broker: int) -> None:
        text = f"{outage.partition} takes records again at {broker_name(broker)}"
        if outage.last_ack_us is not None and outage.unavailable_us is not None:
            text += f": unavailable for {outage.unavailable_us / 1000:.1f} ms"
        else:
            text += f", {(event.time_us - crash.crashed_us) / 1000:.1f} ms after the crash"
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


def crashes(events: Iterable[Event]) -> list[BrokerCrash]:
    """Every broker crash with what followed, as numbers."""
    return read_story(events).crashes
