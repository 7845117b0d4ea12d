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


class SeenReplica:
    """The state of a replica that its broker last reported, since the broker's process started."""

    __slots__ = (
        "asks_epoch", "broker", "cuts", "end", "has_news", "isr", "leader", "leader_epoch", "log",
        "mark", "role", "where",
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
        self.end: int = 0
        """Log end offset."""
        self.mark: int = 0
        """High watermark."""
        self.cuts: int = 0
        """Number of times that the log was truncated."""
        self.asks_epoch: bool = False
        """True if the replica has looked for its truncation offset since its leader epoch began."""
        self.has_news: bool = False
        """True if a change of role, leader, epoch or ISR has not been passed to listeners yet."""

    @property
    def leads(self) -> bool:
        return self.role == "leader"


class Stored(NamedTuple):
    """The leadership of a partition as stored in ZooKeeper."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    zxid: int


class Watch:
    """An observer that calls the functions registered by ``hear``.

    It has no method ``event`` on purpose, so that no events are created for it.
    """

    def __init__(self) -> None:
        self.replicas: dict[TopicPartition, dict[int, SeenReplica]] = {}
        self.stored: dict[TopicPartition, Stored] = {}
        self.deleted: set[str] = set()
        """Topics that were deleted at least once, and may have been created again from scratch."""
        self.controller_epoch: int = 0
        """The newest stored controller epoch."""
        self.is_alive: Callable[[int], bool] = lambda _broker: True
        self._queues: dict[int, int] = {}
        self._heard: dict[str, list[Any]] = {}

    def hear(self, name: str, function: Callable[..., object]) -> None:
        """Call a function at each event of a name, which is that of a method of ``Invariant``."""
        self._told(name).append(function)

    def _told(self, name: str) -> list[Any]:
        """Return the list of listeners for an event, to which later listeners are appended."""
        return self._heard.setdefault(name, [])

    def replica(self, where: TopicPartition, broker: int) -> SeenReplica | None:
        """Return a replica that its broker has reported; None if the broker is not alive."""
        found = self.replicas.get(where, {}).get(broker)
        return None if found is None or not self.is_alive(broker) else found

    def leader_of(self, where: TopicPartition) -> SeenReplica | None:
        """Return the leader with the newest epoch among the replicas on live brokers."""
        found = [r for r in self.replicas.get(where, {}).values() if r.leads]
        living = [replica for replica in found if self.is_alive(replica.broker)]
        return max(living, key=lambda replica: replica.leader_epoch, default=None)

    # -- a StateObserver -----------------------------------------------------------------------

    def state_listener(self, _runtime: AbstractRuntime, actor: str) -> StateListener | None:
        if is_controller_name(actor):
            return self._controller(int(actor.rpartition("-")[2]))
        if actor.startswith("zk-"):
            return self._hear_znodes
        broker = broker_id_of(actor)
        return None if broker is None else self._broker(broker)

    def log_listener(
        self, _runtime: AbstractRuntime, actor: str, paths: tuple[str, str, str]
    ) -> LogListener | None:
        broker = broker_id_of(actor)
        if broker is None:
            return None
        replica = self._replica_of(_partition(paths[0].partition("/")[0]), broker)
        on_role, on_offsets = self._told("on_role"), self._told("on_offsets")

        def moved(log: LogOffsets) -> None:
            end, mark = log.log_end_offset, log.high_watermark
            end_before, mark_before = replica.end, replica.mark
            if replica.log is not log:  # the log was just opened
                replica.log = log
                end_before, mark_before = end, mark
            replica.end, replica.mark = end, mark
            if replica.has_news:
                replica.has_news = False
                for hear in on_role:
                    hear(replica)
            if end != end_before or mark != mark_before:
                if end < end_before:
                    replica.cuts += 1
                for hear in on_offsets:
                    hear(replica, end_before, mark_before)

        return moved

    # -- brokers -------------------------------------------------------------------------------

    def _replica_of(self, where: TopicPartition, broker: int) -> SeenReplica:
        by_broker = self.replicas.setdefault(where, {})
        if broker not in by_broker:
            by_broker[broker] = SeenReplica(where, broker)
        return by_broker[broker]

    def _broker(self, broker: int) -> StateListener:
        """Return the listener of a broker that has just started, and forget its replicas."""
        for by_broker in self.replicas.values():
            by_broker.pop(broker, None)
        subjects: dict[str, tuple[Any, str]] = {}
        on_group, on_transaction = self._told("on_group_state"), self._told("on_transaction_state")

        def subject_of(path: str) -> tuple[Any, str]:
            first, _, rest = path.partition("/")
            if first == "groups":
                group, _, name = rest.rpartition("/")
                return (group, "group") if name == "state" else (None, "")
            if first == "transaction":
                return (None, "") if "/" in rest else (rest, "transaction")
            if rest in _ROLE_NAMES or rest == "fetch_stage":
                return self._replica_of(_partition(first), broker), rest
            return None, ""

        def changed(path: str, old: Any, new: Any) -> None:
            subject = subjects.get(path)
            if subject is None:
                subject = subjects[path] = subject_of(path)
            about, name = subject
            if about is None:
                return
            if name == "fetch_stage":
                if new == "truncating":
                    about.asks_epoch = True
            elif name == "group":
                for hear in on_group:
                    hear(about, old, new)
            elif name == "transaction":
                for hear in on_transaction:
                    hear(about, old, new)
            else:
                about.has_news = True
                if name == "leader_epoch":
                    new = -1 if new is None else new
                    about.asks_epoch = False
                elif name == "isr":
                    new = new or ()
                setattr(about, name, new)
                if name == "role" and new is None:
                    about.log = None

        return changed

    # -- controllers ---------------------------------------------------------------------------

    def _controller(self, broker: int) -> StateListener:
        self._queues[broker] = 0
        event: list[Any] = [None]
        on_state, on_idle = self._told("on_controller_state"), self._told("on_controller_idle")

        def changed(path: str, old: Any, new: Any) -> None:
            if path == "queue_length":
                self._queues[broker] = new
            elif path == "event":
                event[0] = new
                if new is None and not self._queues[broker]:
                    for hear in on_idle:
                        hear(broker)
            elif on_state and path.endswith("/state"):
                for hear in on_state:
                    hear(path[:-6], old, new, event[0])

        return changed

    # -- ZooKeeper -----------------------------------------------------------------------------

    def _hear_znodes(self, path: str, _old: Any, value: Mapping[str, Any] | None) -> None:
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
        stored = self.stored[where] = Stored(
            data["leader"],
            data["leader_epoch"],
            tuple(data["isr"]),
            data["controller_epoch"],
            value["zxid"],
        )
        for hear in self._told("on_stored"):
            hear(where, stored, before)


class RecordedWatch(Recorder):
    """A recorder that also passes all changes to a watch."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def state_listener(self, runtime: AbstractRuntime, actor: str) -> StateListener:
        record = super().state_listener(runtime, actor)
        hear = self._watch.state_listener(runtime, actor)
        if hear is None:
            return record

        def changed(path: str, old: Any, new: Any) -> None:
            record(path, old, new)
            hear(path, old, new)

        return changed

    def log_listener(
        self, runtime: AbstractRuntime, actor: str, paths: tuple[str, str, str]
    ) -> LogListener:
        record = super().log_listener(runtime, actor, paths)
        hear = self._watch.log_listener(runtime, actor, paths)
        if hear is None:
            return record

        def moved(log: LogOffsets) -> None:
            record(log)
            hear(log)

        return moved


def _partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def batch_at(log: Any, offset: int) -> Any:
    """Return the batch that contains an offset; None if the log does not have it."""
    if not log.log_start_offset <= offset < log.log_end_offset:
        return None
    return next(log.batches(offset), None)
