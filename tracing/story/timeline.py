"""The story of a run, derived from its trace: which broker died, which controller noticed, which
leader was elected, what was lost.

``timeline`` returns lines for people, ``read_story`` the same findings as data: every crash and
fault, and every outage with its phases (``outages``). Leadership, truncated logs and groups are
read from the recorded state; notices, requests and acknowledgements from messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...protocol.errors import ErrorCode
from ...protocol.names import broker_id_of, broker_name, is_controller_name
from ..events import KIND_CODES, Event
from ..trace import StoredTrace, no_cyclic_collection
from .cuts import Cuts
from .disturbances import Disturbance
from .outages import Outage, OutageAccount

_PARTITION_LINES_MAX = 6
"""Maximum number of lines about partitions that change at the same moment."""
_TYPES = frozenset(
    {
        "LeaderAndIsrRequest",
        "UpdateMetadataRequest",
        "AlterIsrRequest",
        "ClientPacket",
        "WatchEvent",
        "ProduceRequest",
        "ProduceResponse",
        "produce",
    }
)
"""Types of the messages that a story reads, and the operation ``produce`` of a client."""
_KINDS = frozenset({"crash", "restart", "fault", "note", "stop"})
_STATE_NAMES = frozenset({"role", "leader", "leader_epoch", "isr", "controller_epoch"})
"""Last parts of the paths that hold a partition's leadership."""
_GROUP_STATES = frozenset({"state", "generation", "epoch", "members"})
_REBALANCES = ("Assigning", "Reconciling")
"""States of a group of the consumer protocol (KIP-848) between two assignments."""
_TOPICS = ["znodes", "brokers", "topics"]
_DELETIONS = ["znodes", "admin", "delete_topics"]
_END_OFFSET = "log_end_offset"
_START_OFFSET = "log_start_offset"
_KINDS_WITHOUT_TOPIC_CHANGES = frozenset({"start", "step", "stop", "crash", "restart", "fault"})
"""Kinds of events at which a ZooKeeper server loses its memory or reads what it has stored."""
_SYNCHRONIZATION_TYPES = frozenset({"SyncFollower", "NewLeader", "UpToDate"})
"""Messages with which a ZooKeeper server takes over what the others already have."""


@dataclass(slots=True)
class _Known:
    """The leadership of a partition as known so far."""

    leader: int
    leader_epoch: int
    isr: list[int]


@dataclass(slots=True)
class _Line:
    """A line of the story, which also stands for equal lines that follow it."""

    time_us: int
    text: str
    count: int = 1
    last_us: int = 0

    @property
    def entry(self) -> tuple[float, str]:
        if self.count == 1:
            return self.time_us / 1000, self.text
        again = f"({self.count} times, the last at {self.last_us / 1000:.1f} ms)"
        return self.time_us / 1000, f"{self.text} {again}"


class _Places(dict[str, tuple[str, str, str] | None]):
    """Maps a path to (actor, subject, name) if a story reports it, else to None.

    The subject is a partition, or a kind (``group``, ``topic``, ``deletion``, ``transaction``), a
    space and a name.
    """

    def __missing__(self, path: str) -> tuple[str, str, str] | None:
        place = self[path] = _place_of(path)
        return place


def _place_of(path: str) -> tuple[str, str, str] | None:
    parts = path.split("/")
    if len(parts) >= 3 and parts[1] == "transaction":
        is_more = len(parts) > 3 and parts[-1] in ("producer", "partitions")
        return None if is_more else (parts[0], f"transaction {'/'.join(parts[2:])}", "transaction")
    if len(parts) >= 4 and parts[1] == "groups" and parts[-1] in _GROUP_STATES:
        return parts[0], f"group {'/'.join(parts[2:-1])}", parts[-1]
    if len(parts) == 3:
        is_reported = parts[2] in _STATE_NAMES or parts[2] in (_END_OFFSET, _START_OFFSET)
        return (parts[0], parts[1], parts[2]) if is_reported else None
    if len(parts) == 5 and parts[1:4] == _TOPICS:
        return parts[0], f"topic {parts[4]}", "topic"
    if len(parts) == 5 and parts[1:4] == _DELETIONS:
        return parts[0], f"deletion {parts[4]}", "deletion"
    return None


def _is_reported(place: tuple[str, str, str] | None, old: Any, new: Any) -> bool:
    """Return whether a story reports a change of state: of a log's end offset only if it does not
    grow, of its start offset only if it grows."""
    if place is None:
        return False
    if place[2] == _START_OFFSET:
        return old is not None and new is not None and bool(new > old)
    return place[2] != _END_OFFSET or old is None or new is None or new < old


class Story:
    """Reads events in order; ``lines``, ``crashes`` and ``outages`` hold what was found."""

    def __init__(self) -> None:
        self._account = OutageAccount()
        self._lines: list[tuple[int, str, str]] = []  # (time, group, text)
        self._partitions: dict[str, _Known] = {}
        self._places = _Places()
        self._states: dict[tuple[str, str], dict[str, Any]] = {}  # (actor, subject) -> state
        self._controller_epoch: int | None = None
        self._seen_watches: dict[tuple[int, str, str], None] = {}
        self._cuts = Cuts()
        self._moved: set[str] = set()  # partitions whose new leader has not taken over
        self._leaderless: set[str] = set()  # partitions whose dead leader was not replaced
        self._topics: set[str] = set()  # topics that exist
        self._zxids: dict[str, int] = {}  # topic -> the last known zxid of its znode
        self._deletions: dict[str, int] = {}  # topic -> the zxid of its last deletion's znode
        self._coordinators: dict[str, str] = {}  # group -> the broker that last coordinated it
        self._operations: dict[int, str] = {}  # open client_invoke -> partition
        self._time_us = 0
        self._handlers = {
            "LeaderAndIsrRequest": self._on_leader_and_isr,
            "UpdateMetadataRequest": self._on_controller,
            "AlterIsrRequest": self._on_alter_isr,
            "ClientPacket": self._on_client_packet,
            "WatchEvent": self._on_watch,
            "ProduceRequest": self._on_produce_request,
            "ProduceResponse": self._on_produce_response,
        }

    def add(self, event: Event) -> None:
        """Read the next event."""
        kind = event.kind
        self._time_us = event.time_us
        if kind in ("send", "deliver", "drop"):
            if event.type in self._handlers:
                self._handlers[event.type](event)
        elif event.type == "produce":
            self._on_operation(event)
        elif kind == "crash":
            self._on_crash(event)
        elif kind == "restart":
            self._on_restart(event)
        elif kind in ("fault", "note") or (kind == "stop" and event.why is not None):
            text = event.why or event.type or kind
            if kind == "fault":
                self._account.disturbances.fault(event.time_us, event.actor, text)
            names_actor = text.startswith(event.actor)
            self._report(event, text if names_actor else f"{event.actor}: {text}")
        if event.delta:
            self._on_state(event)

    def end(self, time_us: int) -> None:
        """Note that the trace lasts until ``time_us``, with no further events for the story."""
        self._time_us = max(self._time_us, time_us)

    @property
    def lines(self) -> list[tuple[float, str]]:
        """Lines of (milliseconds since the run began, text) in order; equal lines are summed up.

        Outages that had not ended come last.
        """
        groups = Counter((time_us, group) for time_us, group, _ in self._lines if group)
        reported: Counter[tuple[int, str]] = Counter()
        lines: list[_Line] = []
        troubles: dict[str, _Line] = {}
        for time_us, group, text in self._lines:
            count = groups[time_us, group]
            if count > _PARTITION_LINES_MAX:
                reported[time_us, group] += 1
                number = reported[time_us, group]
                if number > _PARTITION_LINES_MAX:
                    continue
                if number == _PARTITION_LINES_MAX:
                    text = f"... and {count - number + 1} more partitions: {group}"
            before = troubles.get(text, lines[-1] if lines else None)
            if before is not None and before.text == text:
                before.count, before.last_us = before.count + 1, time_us
                continue
            lines.append(line := _Line(time_us, text))
            if _is_trouble(text):
                troubles[text] = line
        end_us = self._time_us
        ends = [_Line(end_us, _open_text(outage, end_us)) for outage in self.open_outages]
        return [line.entry for line in lines + ends]

    @property
    def crashes(self) -> list[Disturbance]:
        """Every crash of a broker, in order."""
        return self._account.crashes

    @property
    def outages(self) -> list[Outage]:
        """Every outage that has ended, in the order of their ends."""
        return self._account.outages

    @property
    def open_outages(self) -> list[Outage]:
        """The outages that had not ended when the trace ended."""
        return self._account.open_outages(self._time_us)

    def _report(self, event: Event, text: str, group: str = "") -> None:
        self._lines.append((event.time_us, group, text))

    # -- death and return ----------------------------------------------------------------------

    def _on_crash(self, event: Event) -> None:
        self._report(event, event.why or f"{event.actor} crashes")
        broker = broker_id_of(event.actor)
        if broker is None:
            return
        self._leaderless |= {n for n, known in self._partitions.items() if known.leader == broker}
        for key in [key for key in self._states if key[0] == event.actor]:
            del self._states[key]
        self._account.crash(event.time_us, broker, event.why or "")

    def _on_restart(self, event: Event) -> None:
        text = event.why or f"{event.actor} starts again"
        crash = self._account.restart(event.time_us, broker_id_of(event.actor))
        if crash is not None:
            text += f" after {(event.time_us - crash.begun_us) / 1000:.1f} ms"
        self._report(event, text)

    def _on_watch(self, event: Event) -> None:
        fields = event.fields
        path = str(fields.get("path"))
        what = str(fields.get("type"))
        if event.kind != "deliver" or not (
            path == "/controller" or path.startswith("/brokers/ids")
        ):
            return
        key = (event.time_us // 1000, path, what)
        if key in self._seen_watches and not self._account.has_unnoticed_failure:
            return
        self._seen_watches[key] = None
        said = {
            "NodeDeleted": f"{path} is gone",
            "NodeCreated": f"{path} is there",
            "NodeDataChanged": f"{path} has changed",
            "NodeChildrenChanged": f"the children of {path} have changed",
        }.get(what, f"{path}: {what}")
        text = f"{event.actor} hears from ZooKeeper that {said}"
        for one in self._account.note_watch_event(event.time_us, event.actor, what, path):
            after_ms = (event.time_us - one.begun_us) / 1000
            if one.kind == "crash" and one.broker is not None:
                text += f" ({after_ms:.1f} ms after {broker_name(one.broker)} died)"
            elif one.broker is not None:
                text += f" ({after_ms:.1f} ms after {one.text})"
        self._report(event, text)

    # -- decisions -----------------------------------------------------------------------------

    def _on_leader_and_isr(self, event: Event) -> None:
        fields = event.fields
        broker = broker_id_of(event.actor)
        for state in fields.get("partition_states") or ():
            name = f"{state['topic']}-{state['partition']}"
            leader, epoch = state["leader"], state["leader_epoch"]
            if event.kind == "send":
                controller = fields.get("controller_id", -1)
                self._account.decide(
                    event.time_us, controller, name, leader, epoch, state["isr"]
                )  # fmt: skip
            elif event.kind == "deliver" and leader == broker:
                self._account.take_over(event.time_us, leader, name, epoch)
        self._on_controller(event)

    def _on_alter_isr(self, event: Event) -> None:
        if event.kind == "send":
            for asked in event.fields.get("partitions") or ():
                self._account.note_isr_request(
                    event.time_us, asked["topic_partition"], asked["leader_epoch"], asked["new_isr"]
                )

    def _on_client_packet(self, event: Event) -> None:
        request = event.fields.get("request")
        if event.kind == "send" and isinstance(request, dict) and "data" in request:
            self._account.note_znode_write(event.time_us, request.get("path"), request["data"])

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
            self._report(
                event, f"{broker_name(fields.get('controller_id', -1))} {said}, epoch {epoch}"
            )

    def _on_state(self, event: Event) -> None:
        """Read the changes of state during an event, grouped by actor and subject."""
        changed: dict[tuple[str, str], dict[str, Any]] = {}  # name -> the value before
        for path, old, new in event.delta:
            place = self._places[path]
            if place is None:
                continue
            actor, what, name = place
            if name == _END_OFFSET:
                self._on_end_offset(event, actor, what, old, new)
            elif name == _START_OFFSET:
                self._on_start_offset(event, actor, what, old, new)
            elif name in ("topic", "deletion"):
                self._on_topic(event, what, old, new)
            elif name == "transaction":
                self._on_transaction(event, actor, what, new)
            else:
                changed.setdefault((actor, what), {})[name] = old
                self._states.setdefault((actor, what), {})[name] = new
                if name == "leader_epoch" and not is_controller_name(actor):
                    self._cuts.take_part(actor, what, old, new)
        for (actor, what), before in changed.items():
            state = self._states.get((actor, what), {})
            if what.startswith("group "):
                self._on_group(event, actor, what, before, state)
            elif is_controller_name(actor):
                self._on_decision(event, actor, what, before, state)
            elif state.get("role") == "leader":
                self._on_leader(event, actor, what, before, state)

    def _on_end_offset(self, event: Event, actor: str, partition: str, old: Any, new: Any) -> None:
        if new is None and event.type == "StopReplicaRequest":
            self._cuts.delete(actor, partition)
            topic = partition.rpartition("-")[0]
            if self._deletions.get(topic, -1) <= self._zxids.get(topic, -1):
                group = f"{actor} deletes replicas"
                self._report(
                    event, f"{actor} deletes its replica of {partition}, up to {old}", group
                )
            return
        cut = self._cuts.end_offset(actor, partition, old, new)
        if cut is not None:
            self._report(event, cut, f"{actor} throws records away")

    def _on_start_offset(
        self, event: Event, actor: str, partition: str, old: Any, new: Any
    ) -> None:
        """Report that the leader of a partition has deleted its oldest records; its followers only
        do the same."""
        if old is None or new is None or new <= old:
            return
        if self._states.get((actor, partition), {}).get("role") == "leader":
            reason = "as retention says" if event.kind == "timer_fire" else "as a client asked"
            self._report(
                event,
                f"{actor} deletes the records of {partition} from {old} to {new}, {reason}",
                f"{actor} deletes records",
            )

    def _on_topic(self, event: Event, what: str, old: Any, new: Any) -> None:
        """Report a topic's creation, its deletion, or a request for that.

        ZooKeeper's servers apply each change one after the other: only the first is reported. A
        server that dies or restarts reports nothing new.
        """
        kind, _, name = what.partition(" ")
        if event.kind in _KINDS_WITHOUT_TOPIC_CHANGES or event.type in _SYNCHRONIZATION_TYPES:
            return
        zxid = (old if new is None else new)["zxid"]
        known = self._zxids.get(name, -1)
        if kind == "deletion":
            if new is not None and zxid > max(known, self._deletions.get(name, -1)):
                self._deletions[name] = zxid
                self._report(event, f"topic {name} is to be deleted")
        elif new is None:
            if zxid > known or (zxid == known and name in self._topics):
                self._delete_topic(event, name, zxid)
        elif zxid > known:
            self._zxids[name] = zxid
            if old is None:
                self._report(event, f"topic {name} is made")
            self._topics.add(name)

    def _delete_topic(self, event: Event, name: str, zxid: int) -> None:
        self._zxids[name] = zxid
        self._topics.discard(name)
        self._report(event, f"topic {name} is deleted")
        for known in [one for one in self._partitions if one.rpartition("-")[0] == name]:
            del self._partitions[known]
            self._account.forget(known)
            self._cuts.forget(known)

    def _on_transaction(self, event: Event, actor: str, what: str, new: Any) -> None:
        if new == "PrepareAbort":
            name = what.partition(" ")[2]
            self._report(event, f"{actor} aborts the transaction of {name}", "transactions aborted")

    def _on_group(
        self, event: Event, actor: str, group: str, before: dict[str, Any], state: dict[str, Any]
    ) -> None:
        now = state.get("state")
        if "state" not in before or now is None or now == before["state"]:
            return
        count = _counted(len(state.get("members") or ()), "member")
        generation = state.get("generation", state.get("epoch"))
        earlier = self._coordinators.get(group, actor)
        self._coordinators[group] = actor
        if before["state"] is None and earlier != actor:
            self._report(
                event,
                f"{group} is coordinated by {actor} now (was {earlier}): {now}, {count}",
                f"groups coordinated by {actor}",
            )
            return
        if now in _REBALANCES and before["state"] not in _REBALANCES:
            self._report(event, f"{group} rebalances at {actor} with {count}")
        said = {
            "PreparingRebalance": f"rebalances at {actor}, {count} so far",
            "Stable": f"is stable in generation {generation} with {count}",
            "Empty": "has no members" if before["state"] is not None else None,
            "Dead": "is gone",
        }.get(now)
        if said is not None:
            self._report(event, f"{group} {said}")

    def _on_decision(
        self,
        event: Event,
        controller: str,
        partition: str,
        before: dict[str, Any],
        state: dict[str, Any],
    ) -> None:
        """Report that a controller knows of a new leadership of a partition."""
        known = self._partitions.get(partition)
        if known is None:
            # A recording that began in mid-run has the earlier leadership in the old values.
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
        if known is not None:
            self._account.note_earlier_leadership(
                partition, known.leader, known.leader_epoch, known.isr
            )
        now = self._partitions[partition] = _Known(leader, epoch, list(isr))
        is_read = "leader" in before and before["leader"] is None
        if known is not None and known.leader == leader >= 0 and is_read:
            self._report_retained_leader(event, controller, partition, now)
        if known is None:
            text = f"{partition}: leader {_leader(leader)}, epoch {epoch}, isr {now.isr}"
            self._report(event, text, "new")
        elif leader != known.leader:
            verb = "loses its leader" if leader < 0 else f"gets leader {leader}"
            was = f"was {_leader(known.leader)}"
            if leader >= 0 and leader not in known.isr:
                was += f", unclean: not in the isr {known.isr}"
            decided = f"decided by {controller}"
            if state.get("controller_epoch") is not None:
                decided += f" in epoch {state['controller_epoch']}"
            self._report(
                event,
                f"{partition} {verb} ({was}), leader epoch {epoch}, isr {now.isr}, {decided}",
                f"leaders chosen by {controller}",
            )
            self._account.note_election(event.time_us, known.leader, leader)
            self._moved.add(partition)
            self._leaderless.discard(partition)
        else:
            self._report_isr_change(event, partition, known.isr, now.isr)

    def _report_retained_leader(
        self, event: Event, controller: str, partition: str, now: _Known
    ) -> None:
        """Report that a controller has read a partition whose leader had died, but is back and
        still leads it."""
        if partition in self._leaderless and not self._account.is_off(now.leader):
            self._leaderless.discard(partition)
            self._report(
                event,
                f"{partition} has leader {now.leader} again, leader epoch {now.leader_epoch}, "
                f"isr {now.isr}: {controller} has read it from ZooKeeper",
                f"leaders read by {controller}",
            )

    def _on_leader(
        self,
        event: Event,
        actor: str,
        partition: str,
        before: dict[str, Any],
        state: dict[str, Any],
    ) -> None:
        """Report that a broker has become the leader of a partition, or that its ISR changed."""
        broker, epoch = broker_id_of(actor), state.get("leader_epoch")
        if broker is None:
            return
        if "role" in before and partition in self._moved:
            self._moved.discard(partition)
            group = f"{actor} becomes leader"
            self._report(event, f"{group} of {partition} (epoch {epoch})", group)
        known = self._partitions.get(partition)
        if (
            "isr" in before
            and known is not None
            and (known.leader, known.leader_epoch) == (broker, epoch)
        ):
            isr = list(state["isr"])
            self._report_isr_change(event, partition, known.isr, isr)
            known.isr = isr

    def _report_isr_change(
        self, event: Event, partition: str, old: list[int], new: list[int]
    ) -> None:
        if sorted(old) != sorted(new):
            self._report(event, f"{partition}: isr {old} -> {new}", "isr changed")

    # -- acknowledgements ----------------------------------------------------------------------

    def _on_operation(self, event: Event) -> None:
        """Note that a modelled client begins or ends a wait for an acknowledgement."""
        account = self._account
        if event.kind == "client_invoke":
            if ":" not in event.actor and event.why is not None:  # not a client over TCP
                account.modelled.add(event.actor)
                self._operations[event.seq] = event.why
                account.begin_wait(event.time_us, event.why)
        elif event.kind in ("client_ok", "client_fail") and event.op is not None:
            partition = self._operations.pop(event.op, None)
            if partition is not None:
                is_failed = event.kind == "client_fail"
                outage = account.end_wait(event.time_us, partition, failed=is_failed)
                self._report_outage_end(event, outage)

    def _report_outage_end(self, event: Event, outage: Outage | None, broker: str = "") -> None:
        """Report the end of an outage, by an acknowledgement or because the last client gave up."""
        if outage is None:
            return
        length = f"unavailable for {((outage.ended_us or 0) - outage.begun_us) / 1000:.1f} ms"
        if outage.follows_epoch:
            length += " after the new leader epoch"
        end, group = f"{outage.partition} accepts records again", "accept records again"
        if not outage.is_acknowledged:
            end, group = (
                f"no client waits for {outage.partition} any longer",
                "no client waits any longer",
            )
        elif broker:
            end += f" at {broker}"
        self._report(event, f"{end}: {length}{_because(outage)}", group)

    def _on_produce_request(self, event: Event) -> None:
        fields, account, broker = event.fields, self._account, event.peer or ""
        if event.kind == "deliver" or not fields.get("acks"):
            return
        for part in fields.get("partitions") or ():
            name = part["topic_partition"]
            if event.kind == "send":
                account.note_produce_request(event.time_us, event.actor, broker, name)
            else:
                was_sent = event.message_id is not None
                account.note_lost_produce_request(
                    event.time_us, event.actor, broker, name, was_sent=was_sent
                )

    def _on_produce_response(self, event: Event) -> None:
        if event.kind == "send":
            return
        is_lost = event.kind == "drop"
        broker, client = event.peer or "", event.actor
        if is_lost:
            broker, client = client, broker
        for entry in event.fields.get("partitions") or ():
            name, error = entry["topic_partition"], entry.get("error")
            if is_lost:
                self._account.note_lost_response(name, client, broker)
                continue
            if error == "NONE":
                self._cuts.acknowledge(broker, name, entry.get("base_offset", -1))
            outage = self._account.note_produce_response(
                event.time_us, broker, client, name, ErrorCode[error]
            )
            self._report_outage_end(event, outage, broker)


def _is_trouble(text: str) -> bool:
    return ": error: " in text or ": warn: " in text or ": already registered: " in text


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _open_text(outage: Outage, now_us: int) -> str:
    lasted_ms = (now_us - outage.begun_us) / 1000
    return f"{outage.partition} takes no records at the end: {lasted_ms:.1f} ms so far" + (
        _because(outage)
    )


def _because(outage: Outage) -> str:
    if outage.cause is not None:
        return f", because {outage.cause.text}"
    if outage.new_leader is not None:
        return f", because its leader moved from {outage.leader} to {outage.new_leader}"
    return ""


def _leader(leader: int) -> str:
    return "none" if leader < 0 else str(leader)


def story_events(trace: StoredTrace) -> Iterator[Event]:
    """Yield the events of a trace that matter to a story; no others are decoded."""
    strings, schema = trace.strings, trace.schema
    kinds = {KIND_CODES[kind] for kind in _KINDS}
    types = {number for number, text in enumerate(strings) if text in _TYPES}
    places = _Places()
    reported_places = {
        number: place for number, text in enumerate(strings) if (place := places[text])
    }
    for index in range(len(trace.chunks)):
        view = trace.new_view(index)
        if view is not None:
            with no_cyclic_collection():
                first, changes = view.first_seq, view.changes()
                wanted = {
                    seq - first
                    for seq, path, old, new in changes
                    if path in reported_places and _is_reported(reported_places[path], old, new)
                }
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
                or any(
                    _is_reported(reported_places.get(one[0]), one[1], one[2])
                    for one in raw[10] or ()
                )
            ):
                yield Event(raw, strings, schema)


def read_story(events: Iterable[Event]) -> Story:
    """Read the story of events (``Trace.events`` or ``Recorder.events``)."""
    story = Story()
    with no_cyclic_collection():  # payloads are decoded here
        for event in events:
            story.add(event)
    return story


def timeline(trace: StoredTrace) -> list[tuple[float, str]]:
    """Return the story of a trace as lines of (milliseconds since the run began, text)."""
    story = read_story(story_events(trace))
    if trace.chunks:
        story.end(trace.chunks[-1].time_last_us)
    return story.lines
