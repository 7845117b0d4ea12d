"""The story of a run, told from its trace: who died, who noticed, who was elected.

``timeline`` gives lines for people, ``crashes`` the same findings as numbers: how long until the
death was noticed, until leaders were chosen, until they took over, until the first record was
acknowledged again. Leadership is read from the recorded state of controllers and leaders; notices
and acknowledgements are messages. The cluster is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...protocol.names import broker_id_of, broker_name, is_controller_name
from ..events import KIND_CODES, Event
from ..trace import StoredTrace, no_cyclic_collection
from .outages import BrokerCrash, Outage, OutageAccount

_PARTITION_LINES_MAX = 6
"""Partitions told one by one when many change at the same moment."""
_TYPES = frozenset(
    {
        "LeaderAndIsrRequest",
        "UpdateMetadataRequest",
        "WatchEvent",
        "ProduceResponse",
    }
)


_KINDS = frozenset({"crash", "restart", "fault", "note", "stop"})
_STATE_NAMES = frozenset({"role", "leader", "leader_epoch", "isr", "controller_epoch"})
"""The last part of the paths that tell of leadership."""


@dataclass(slots=True)
class _Known:
    """What is known of a partition so far."""

    leader: int
    leader_epoch: int
    isr: list[int]


class _Places(dict[str, tuple[str, str, str] | None]):
    """Path to (actor, partition, name) when it tells of leadership, else to None."""

    def __missing__(self, path: str) -> tuple[str, str, str] | None:
        parts = path.split("/")
        tells = len(parts) == 3 and parts[2] in _STATE_NAMES
        place = self[path] = (parts[0], parts[1], parts[2]) if tells else None
        return place


class Story:
    """Reads events in order; ``lines`` and ``crashes`` hold what was found."""

    def __init__(self) -> None:
        self._account = OutageAccount()
        self._lines: list[tuple[int, str, str]] = []  # (time, group, text)
        self._partitions: dict[str, _Known] = {}
        self._places = _Places()
        self._states: dict[tuple[str, str], dict[str, Any]] = {}  # (actor, partition) -> state
        self._controller_epoch: int | None = None
        self._seen_watches: dict[tuple[int, str, str], None] = {}
        self._handlers = {
            "LeaderAndIsrRequest": self._on_controller,
            "UpdateMetadataRequest": self._on_controller,
            "WatchEvent": self._on_watch,
            "ProduceResponse": self._on_produce_response,
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
        elif kind in ("fault", "note") or (kind == "stop" and event.why is not None):
            text = event.why or event.type or kind
            mine = text.startswith(event.actor)
            self._tell(event, text if mine else f"{event.actor}: {text}")
        if event.delta:
            self._on_state(event)

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
        for actor, name in [key for key in self._states if key[0] == event.actor]:
            del self._states[actor, name]
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

    def _on_controller(self, event: Event) -> None:
        if event.kind != "send":
            return
        fields = event.fields
        epoch = fields.get("controller_epoch", -1)
        if self._controller_epoch is None or epoch > self._controller_epoch:
            said = (
                "is the controller" if self._controller_epoch is None else "is now the controller"
            )
            self._controller_epoch = epoch
            self._tell(
                event, f"{broker_name(fields.get('controller_id', -1))} {said}, epoch {epoch}"
            )

    def _on_state(self, event: Event) -> None:
        """Take the changes of leadership that came with an event, per actor and partition."""
        changed: dict[tuple[str, str], dict[str, Any]] = {}  # with the values before
        for path, old, new in event.delta:
            place = self._places[path]
            if place is not None:
                actor, partition, name = place
                key = actor, partition
                changed.setdefault(key, {})[name] = old
                self._states.setdefault(key, {})[name] = new
        for (actor, partition), before in changed.items():
            state = self._states[actor, partition]
            if is_controller_name(actor):
                self._on_decision(event, actor, partition, before, state)
            elif state.get("role") == "leader":
                self._on_leader(event, actor, partition, before, state)

    def _on_decision(
        self,
        event: Event,
        controller: str,
        partition: str,
        before: dict[str, Any],
        state: dict[str, Any],
    ) -> None:
        """A controller knows of other leadership of a partition than before."""
        known = self._partitions.get(partition)
        if known is None:
            # What a recording that began in mid-run did not see is in the values before.
            earlier = {**state, **before}
            if all(earlier.get(name) is not None for name in ("leader", "leader_epoch", "isr")):
                known = _Known(earlier["leader"], earlier["leader_epoch"], list(earlier["isr"]))
        leader = state.get("leader", None if known is None else known.leader)
        epoch = state.get("leader_epoch", None if known is None else known.leader_epoch)
        isr = state.get("isr", None if known is None else known.isr)
        if leader is None or epoch is None or isr is None:
            return
        if known is not None and epoch < known.leader_epoch:
            return
        now = self._partitions[partition] = _Known(leader, epoch, list(isr))
        if known is None:
            text = f"{partition}: leader {_leader(leader)}, epoch {epoch}, isr {now.isr}"
            self._tell(event, text, "new")
        elif leader != known.leader:
            verb = "loses its leader" if leader < 0 else f"gets leader {leader}"
            decided = f"decided by {controller}"
            if state.get("controller_epoch") is not None:
                decided += f" in epoch {state['controller_epoch']}"
            self._tell(
                event,
                f"{partition} {verb} (was {_leader(known.leader)}), leader epoch {epoch}, "
                f"isr {now.isr}, {decided}",
                f"leaders chosen by {controller}",
            )
            self._account.choose_leader(event.time_us, partition, known.leader, leader)
        else:
            self._tell_isr(event, partition, known.isr, now.isr)

    def _on_leader(
        self,
        event: Event,
        actor: str,
        partition: str,
        before: dict[str, Any],
        state: dict[str, Any],
    ) -> None:
        """A broker leads a partition, and has just become its leader or has another ISR."""
        broker, epoch = broker_id_of(actor), state.get("leader_epoch")
        if broker is None:
            return
        if "role" in before:
            self._account.take_over(event.time_us, broker, partition)
            outages = (crash.outages.get(partition) for crash in self.crashes)
            if any(outage is not None and outage.new_leader == broker for outage in outages):
                group = f"{actor} becomes leader"
                self._tell(event, f"{group} of {partition} (epoch {epoch})", group)
        known = self._partitions.get(partition)
        if (
            "isr" in before
            and known is not None
            and (known.leader, known.leader_epoch) == (broker, epoch)
        ):
            isr = list(state["isr"])
            self._tell_isr(event, partition, known.isr, isr)
            known.isr = isr

    def _tell_isr(self, event: Event, partition: str, old: list[int], new: list[int]) -> None:
        if sorted(old) != sorted(new):
            self._tell(event, f"{partition}: isr {old} -> {new}", "isr changed")

    # -- acknowledgements ----------------------------------------------------------------------

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


def story_events(trace: StoredTrace) -> Iterator[Event]:
    """The events of a trace that a story tells of; all others are not even made."""
    strings, schema = trace.strings, trace.schema
    kinds = {KIND_CODES[kind] for kind in _KINDS}
    types = {number for number, text in enumerate(strings) if text in _TYPES}
    paths = {
        number
        for number, text in enumerate(strings)
        if text.count("/") == 2 and text.rpartition("/")[2] in _STATE_NAMES
    }
    for index in range(len(trace.chunks)):
        view = trace.new_view(index)
        if view is not None:
            with no_cyclic_collection():
                first, told = view.first_seq, view.changes()
                wanted = {seq - first for seq, path, _, _ in told if path in paths}
                wanted.update(
                    place
                    for place, (_, kind, _, _, name, _) in enumerate(view.heads())
                    if name in _TYPES or kind in _KINDS
                )
                events = [trace.event_of(view, first + place) for place in sorted(wanted)]
            yield from events
            continue
        for raw in trace.raw_events(index):
            if (
                raw[5] in types
                or raw[2] in kinds
                or (raw[10] and any(change[0] in paths for change in raw[10]))
            ):
                yield Event(raw, strings, schema)


def read_story(events: Iterable[Event]) -> Story:
    """Read all events of a trace (``Trace.events()`` or ``Recorder.events``)."""
    story = Story()
    with no_cyclic_collection():  # payloads are decoded here
        for event in events:
            story.add(event)
    return story


def timeline(events: Iterable[Event]) -> list[tuple[float, str]]:
    """The story as (milliseconds since the run began, text) lines."""
    return read_story(events).lines


def crashes(events: Iterable[Event]) -> list[BrokerCrash]:
    """Every broker crash with what followed, as numbers."""
    return read_story(events).crashes
