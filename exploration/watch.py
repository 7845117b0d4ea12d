"""The observer of an explored run, called with changes of state like a recorder, but keeping none.

The observer translates the changes that brokers, controllers and ZooKeeper servers report
(``StateObserver``) into events for the invariants: a replica changed its role, a log has grown, a
leadership was stored. Events without a listener cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..protocol.names import broker_id_of, is_controller_name
from ..protocol.values import TopicPartition
from ..tracing.recording.recorder import Recorder

if TYPE_CHECKING:
    from ..actors.interfaces import AbstractRuntime
    from ..protocol.host import LogListener, LogOffsets, StateListener

_TOPICS = "znodes/brokers/topics/"
_ROLE_NAMES = frozenset({"role", "leader", "leader_epoch", "isr"})


class ReportedReplica:
    """The state of a replica that its broker last reported, since the broker's process started."""

    __slots__ = (
        "broker", "has_requested_epoch_end", "has_unreported_change", "high_watermark", "isr",
        "leader", "leader_epoch", "log", "log_end_offset", "role", "truncations", "where",
    )  # fmt: skip

    def __init__(self, where: TopicPartition, broker: int) -> None:
        self.where: TopicPartition = where
        self.broker: int = broker
        self.role: str | None = None
        """``leader``, ``follower``, or None before the replica is assigned a role."""
        self.leader: int | None = None
        self.leader_epoch: int = -1
        self.isr: tuple[int, ...] = ()
        """The ISR that a leader presumes; empty on followers."""
        self.log: Any = None
        self.log_end_offset: int = 0
        """Log end offset."""
        self.high_watermark: int = 0
        """High watermark."""
        self.truncations: int = 0
        """Number of times that the log was truncated."""
        self.has_requested_epoch_end: bool = False
        """True if the replica has looked for its truncation offset since its leader epoch began."""
        self.has_unreported_change: bool = False
        """True if a change of role, leader, epoch or ISR has not been passed to listeners yet."""

    @property
    def is_leader(self) -> bool:
        return self.role == "leader"


class StoredLeadership(NamedTuple):
    """The leadership of a partition as stored in ZooKeeper."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    zxid: int


class Watch:
    """An observer that calls the functions registered by ``add_listener``.

    It has no method ``event`` on purpose, so that no events are created for it.
    """

    def __init__(self) -> None:
        self.replicas: dict[TopicPartition, dict[int, ReportedReplica]] = {}
        self.stored: dict[TopicPartition, StoredLeadership] = {}
        self.deleted: set[str] = set()
        """Topics that were deleted at least once, and may have been created again from scratch."""
        self.controller_epoch: int = 0
        """The newest stored controller epoch."""
        self.is_alive: Callable[[int], bool] = lambda _broker: True
        self._queues: dict[int, int] = {}
        self._listeners: dict[str, list[Any]] = {}

    def add_listener(self, name: str, function: Callable[..., object]) -> None:
        """Call a function at each event of a name, which is that of a method of ``Invariant``."""
        self._listeners_of(name).append(function)

    def _listeners_of(self, name: str) -> list[Any]:
        """Return the list of listeners for an event, to which later listeners are appended."""
        return self._listeners.setdefault(name, [])

    def replica(self, where: TopicPartition, broker: int) -> ReportedReplica | None:
        """Return a replica that its broker has reported; None if the broker is not alive."""
        found = self.replicas.get(where, {}).get(broker)
        return None if found is None or not self.is_alive(broker) else found

    def leader_of(self, where: TopicPartition) -> ReportedReplica | None:
        """Return the leader with the newest epoch among the replicas on live brokers."""
        found = [r for r in self.replicas.get(where, {}).values() if r.is_leader]
        living = [replica for replica in found if self.is_alive(replica.broker)]
        return max(living, key=lambda replica: replica.leader_epoch, default=None)

    # -- a StateObserver -----------------------------------------------------------------------

    def state_listener(self, _runtime: AbstractRuntime, actor: str) -> StateListener | None:
        if is_controller_name(actor):
            return self._controller_listener(int(actor.rpartition("-")[2]))
        if actor.startswith("zk-"):
            return self._on_znode_change
        broker = broker_id_of(actor)
        return None if broker is None else self._broker_listener(broker)

    def log_listener(
        self, _runtime: AbstractRuntime, actor: str, paths: tuple[str, str, str]
    ) -> LogListener | None:
        broker = broker_id_of(actor)
        if broker is None:
            return None
        replica = self._replica_of(_parse_partition(paths[0].partition("/")[0]), broker)
        on_role, on_offsets = self._listeners_of("on_role"), self._listeners_of("on_offsets")

        def on_log_change(log: LogOffsets) -> None:
            end, high_watermark = log.log_end_offset, log.high_watermark
            log_end_offset_before = replica.log_end_offset
            high_watermark_before = replica.high_watermark
            if replica.log is not log:  # the log was just opened
                replica.log = log
                log_end_offset_before, high_watermark_before = end, high_watermark
            replica.log_end_offset, replica.high_watermark = end, high_watermark
            if replica.has_unreported_change:
                replica.has_unreported_change = False
                for listener in on_role:
                    listener(replica)
            if end != log_end_offset_before or high_watermark != high_watermark_before:
                if end < log_end_offset_before:
                    replica.truncations += 1
                for listener in on_offsets:
                    listener(replica, log_end_offset_before, high_watermark_before)

        return on_log_change

    # -- brokers -------------------------------------------------------------------------------

    def _replica_of(self, where: TopicPartition, broker: int) -> ReportedReplica:
        by_broker = self.replicas.setdefault(where, {})
        if broker not in by_broker:
            by_broker[broker] = ReportedReplica(where, broker)
        return by_broker[broker]

    def _broker_listener(self, broker: int) -> StateListener:
        """Return the listener of a broker that has just started, and forget its replicas."""
        for by_broker in self.replicas.values():
            by_broker.pop(broker, None)
        subjects: dict[str, tuple[Any, str]] = {}
        on_group = self._listeners_of("on_group_state")
        on_transaction = self._listeners_of("on_transaction_state")

        def subject_of(path: str) -> tuple[Any, str]:
            first, _, rest = path.partition("/")
            if first == "groups":
                group, _, name = rest.rpartition("/")
                return (group, "group") if name == "state" else (None, "")
            if first == "transaction":
                return (None, "") if "/" in rest else (rest, "transaction")
            if rest in _ROLE_NAMES or rest == "fetch_stage":
                return self._replica_of(_parse_partition(first), broker), rest
            return None, ""

        def on_state_change(path: str, old: Any, new: Any) -> None:
            subject = subjects.get(path)
            if subject is None:
                subject = subjects[path] = subject_of(path)
            about, name = subject
            if about is None:
                return
            if name == "fetch_stage":
                if new == "truncating":
                    about.has_requested_epoch_end = True
            elif name == "group":
                for listener in on_group:
                    listener(about, old, new)
            elif name == "transaction":
                for listener in on_transaction:
                    listener(about, old, new)
            else:
                about.has_unreported_change = True
                if name == "leader_epoch":
                    new = -1 if new is None else new
                    about.has_requested_epoch_end = False
                elif name == "isr":
                    new = new or ()
                setattr(about, name, new)
                if name == "role" and new is None:
                    about.log = None

        return on_state_change

    # -- controllers ---------------------------------------------------------------------------

    def _controller_listener(self, broker: int) -> StateListener:
        self._queues[broker] = 0
        event: list[Any] = [None]
        on_state = self._listeners_of("on_controller_state")
        on_idle = self._listeners_of("on_controller_idle")

        def on_state_change(path: str, old: Any, new: Any) -> None:
            if path == "queue_length":
                self._queues[broker] = new
            elif path == "event":
                event[0] = new
                if new is None and not self._queues[broker]:
                    for listener in on_idle:
                        listener(broker)
            elif on_state and path.endswith("/state"):
                for listener in on_state:
                    listener(path[:-6], old, new, event[0])

        return on_state_change

    # -- ZooKeeper -----------------------------------------------------------------------------

    def _on_znode_change(self, path: str, _old: Any, value: Mapping[str, Any] | None) -> None:
        """Handle a change of a znode; every server reports it, and only the first report counts."""
        if not path.startswith(_TOPICS):
            if path == "znodes/controller_epoch" and value is not None:
                self.controller_epoch = max(self.controller_epoch, int(value["data"] or 0))
            return
        words = path[len(_TOPICS) :].split("/")
        if len(words) == 1 and value is None:
            self.deleted.add(words[0])
        if value is None or words[-1] != "state" or not value["data"]:
            return
        where = TopicPartition(words[0], int(words[2]))
        before = self.stored.get(where)
        if before is not None and value["zxid"] <= before.zxid:
            return
        data = json.loads(value["data"])
        stored = self.stored[where] = StoredLeadership(
            data["leader"],
            data["leader_epoch"],
            tuple(data["isr"]),
            data["controller_epoch"],
            value["zxid"],
        )
        for listener in self._listeners_of("on_stored"):
            listener(where, stored, before)


class RecordedWatch(Recorder):
    """A recorder that also passes all changes to a watch."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def state_listener(self, runtime: AbstractRuntime, actor: str) -> StateListener:
        record = super().state_listener(runtime, actor)
        listener = self._watch.state_listener(runtime, actor)
        if listener is None:
            return record

        def on_state_change(path: str, old: Any, new: Any) -> None:
            record(path, old, new)
            listener(path, old, new)

        return on_state_change

    def log_listener(
        self, runtime: AbstractRuntime, actor: str, paths: tuple[str, str, str]
    ) -> LogListener:
        record = super().log_listener(runtime, actor, paths)
        listener = self._watch.log_listener(runtime, actor, paths)
        if listener is None:
            return record

        def on_log_change(log: LogOffsets) -> None:
            record(log)
            listener(log)

        return on_log_change


def _parse_partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def batch_at(log: Any, offset: int) -> Any:
    """Return the batch that contains an offset; None if the log does not have it."""
    if not log.log_start_offset <= offset < log.log_end_offset:
        return None
    return next(log.batches(offset), None)
