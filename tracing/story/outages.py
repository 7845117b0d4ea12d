"""An account of the times in which partitions acknowledged nothing although clients waited.

An outage of a partition is a time in which a client waits for an acknowledgement and no client gets
one, whatever the cause and whatever was promised. It begins when the first client begins to wait,
or at the last acknowledgement if others wait already. It ends with the next acknowledgement to any
client, or when the last waiting client gives up. A wait counts as an outage from one second on. It
counts however short it is if the leader died or changed during it, or if a client asked a broker
that no longer leads, and from 10 ms on if the ISR shrank during it. Until the new leader
acknowledges, answers of the deposed one do not end such a short wait.

A modelled client reports its waits itself, from a record's arrival to its end. Waits of other
clients, such as those over TCP, are known from their requests: a broker answers the requests of a
connection in order, so an answer belongs to the oldest request that can still be answered. Messages
divide an outage into phases: until a controller learns of the expired session, until another leader
or a smaller ISR is decided, until the leader has the decision, until a client has its
acknowledgement. The story of a trace and the observers of batches both feed this account, so both
report the same figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...protocol.control import AlterIsrRequest, LeaderAndIsrRequest
from ...protocol.data import ProduceRequest, ProduceResponse
from ...protocol.errors import ErrorCode
from ...protocol.names import broker_id_of, broker_name, is_controller_name
from ...zkfake.messages import ClientPacket, SetDataRequest, WatchEvent
from .disturbances import Disturbance, Disturbances

LEAST_US = 1_000_000
"""Microseconds from which a wait is an outage if no leader died or changed and no ISR shrank."""
PHASES = ("before", "detect", "elect", "shrink", "restore", "propagate", "client")
"""The phases of an outage, in about their usual order."""
LEAST_SHRUNK_US = 10_000
"""Microseconds from which a wait is an outage if the ISR shrank: a shorter one may be the normal
round trip of a record sent at that moment."""
FENCED_US = 1_000_000
"""Microseconds for which a controller's decision has an effect: a follower whose fetch is fenced by
the new leader epoch retries after ``replica.fetch.backoff.ms``, a second by default."""
_BROKERS = "/brokers/ids"
_CONTROLLER = "/controller"
_TOO_FEW = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
_DEATHS = ("NodeDeleted", "NodeChildrenChanged")
"""Types of the watch events that report an expired session."""


@dataclass(slots=True, eq=False)
class Outage:
    """A time in which a partition acknowledged nothing; microseconds since the run began."""

    partition: str
    begun_us: int
    leader: int | None
    """The leader at the beginning; None if unknown."""
    ended_us: int | None = None
    """Time of the next acknowledgement, or at which the last client gave up; None if the outage had
    not ended."""
    is_acknowledged: bool = False
    """True if the outage ended with an acknowledgement."""
    cause: Disturbance | None = None
    """The cause; None if none was seen."""
    decided_us: int | None = None
    """Time at which a controller last sent another leader or a smaller ISR."""
    took_over_us: int | None = None
    """Time at which that decision arrived at the leader."""
    shrunk_us: int | None = None
    """Time at which a leader asked for a smaller ISR because replicas lagged."""
    new_leader: int | None = None
    """The new leader, if another one was elected during the outage."""
    restored_us: int | None = None
    """Time at which a leader asked for a larger ISR, after the smaller one had made it refuse a
    write."""

    @property
    def unavailable_us(self) -> int | None:
        """Length in microseconds; None unless the outage ended with an acknowledgement."""
        if self.ended_us is None or not self.is_acknowledged:
            return None
        return self.ended_us - self.begun_us

    @property
    def follows_epoch(self) -> bool:
        """True if the outage began soon after a decision that brought a new leader epoch."""
        decided_us = self.decided_us
        return decided_us is not None and decided_us < self.begun_us and self.new_leader is None

    def phases_us(self) -> dict[str, int]:
        """Return the phases of an outage that has ended in microseconds; their sum is its length.

        ``before``: until the cause struck. ``detect``: until a controller learns of it, or until it
        was undone if nothing was decided. ``elect``: until another leader is decided. ``shrink``:
        until a smaller ISR is decided. ``restore``: until a replica is back that was needed to lead
        or to accept a write. ``propagate``: until the leader has the decision. ``client``: until a
        client has its acknowledgement.
        """
        assert self.ended_us is not None
        end_us = self.ended_us
        now_us = self.begun_us
        phases = dict.fromkeys(PHASES, 0)

        def until(phase: str, time_us: int | None) -> None:
            nonlocal now_us
            if time_us is not None:
                later_us = min(max(time_us, now_us), end_us)
                phases[phase] += later_us - now_us
                now_us = later_us

        cause = self.cause
        if cause is not None:
            until("before", cause.begun_us)
        if self.decided_us is not None:
            noticed_us = None if cause is None else cause.noticed_us
            until("detect", self.took_over_us if noticed_us is None else noticed_us)
            back_us = None if cause is None else cause.back_us
            if noticed_us is not None and back_us is not None and back_us <= self.decided_us:
                until("restore", back_us)
            until("shrink" if self.new_leader is None else "elect", self.decided_us)
            until("propagate", self.took_over_us)
        until("shrink", self.shrunk_us)
        until("restore", self.restored_us)
        if cause is not None and self.decided_us is None and self.shrunk_us is None:
            until("detect", None if cause.is_slow else cause.ended_us)
        until("client", end_us)
        return phases


@dataclass(slots=True)
class _Partition:
    """The state of a partition, and of the current wait."""

    leader: int | None = None
    """The leader; -1 while there is none, None while it is unknown."""
    last_leader: int | None = None
    """The broker that leads the partition, or led it last."""
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    waiting: int = 0
    """Number of batches or records for which modelled clients still wait."""
    requests: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Unacknowledged requests of other clients, oldest first: the client, and the broker that has
    yet to answer, which is empty once the client may retry."""
    since_us: int | None = None
    """Time since which clients wait and none got an acknowledgement; None while none waits."""
    cause_from_us: int = 0
    """Time from which the cause is searched; before ``since_us`` if a leader that was deposed
    meanwhile still answered."""
    initial_leadership: tuple[int | None, tuple[int, ...]] = (None, ())
    """Leader and ISR when the wait began."""
    leader_changed_us: int | None = None
    """Time of the last decision for another leader."""
    former_leadership: tuple[int | None, tuple[int, ...]] = (None, ())
    """Leader and ISR before that decision."""
    epoch_decided_us: int | None = None
    """Time of a controller's last decision for another leader or a smaller ISR."""
    former_isr: tuple[int, ...] = ()
    """The ISR before that decision."""
    has_lost_leader: bool = False
    """True if the leader died or changed since the wait began."""
    is_shrunk: bool = False
    decided_us: int | None = None
    took_over_us: int | None = None
    shrunk_us: int | None = None
    new_leader: int | None = None
    restored_us: int | None = None
    lacks_replicas: bool = False
    """True if a write was refused because the ISR is too small."""

    @property
    def has_waiting_clients(self) -> bool:
        return self.waiting > 0 or bool(self.requests)

    def apply_leadership(self, leader: int, leader_epoch: int, isr: Iterable[int]) -> None:
        """Apply a new leadership."""
        self.leader, self.leader_epoch, self.isr = leader, leader_epoch, tuple(isr)
        if leader >= 0:
            self.last_leader = leader

    def note_leader_change(self, time_us: int) -> None:
        """Note that another leader is decided; call it before ``apply_leadership``."""
        self.leader_changed_us, self.former_leadership = time_us, (self.last_leader, self.isr)

    def note_misdirected_request(self) -> None:
        """Note that a client asks a broker that no longer leads, not knowing the new leader."""
        if self.leader_changed_us is None or self.since_us is None or self.has_lost_leader:
            return
        self.has_lost_leader = True
        self.cause_from_us = min(self.cause_from_us, self.leader_changed_us)
        self.initial_leadership, self.new_leader = self.former_leadership, self.leader
        self.decided_us = self.took_over_us = self.leader_changed_us

    def begin(self, time_us: int, *, leader_is_dead: bool) -> None:
        """Begin a wait."""
        self.since_us = self.cause_from_us = time_us
        self.initial_leadership = (self.last_leader, self.isr)
        self.has_lost_leader, self.is_shrunk = leader_is_dead, False
        self.decided_us = self.took_over_us = self.shrunk_us = self.new_leader = None
        self.restored_us = None
        self.lacks_replicas = False
        if self.epoch_decided_us is not None and time_us - self.epoch_decided_us <= FENCED_US:
            # The new epoch may have fenced a follower, which delays acknowledgements: the cause of
            # the wait is then the cause of that epoch.
            self.initial_leadership = (self.last_leader, self.former_isr)
            self.decided_us = self.took_over_us = self.epoch_decided_us


class OutageAccount:
    """Takes in the events of a run in order; ``outages`` has the outages that have ended."""

    __slots__ = (
        "_controller", "_dead", "_partitions", "_requests", "disturbances", "modelled", "outages",
    )  # fmt: skip

    def __init__(self) -> None:
        self.outages: list[Outage] = []
        self.disturbances: Disturbances = Disturbances()
        self.modelled: set[str] = set()
        """Clients that report their waits themselves, so that their requests are not counted."""
        self._partitions: dict[str, _Partition] = {}
        self._dead: dict[int, Disturbance] = {}  # brokers that are off
        self._controller: int | None = None
        self._requests = 0  # number of requests of clients that are not modelled

    def _partition(self, name: str) -> _Partition:
        state = self._partitions.get(name)
        if state is None:
            state = self._partitions[name] = _Partition()
        return state

    @property
    def crashes(self) -> list[Disturbance]:
        """Every crash of a broker, in order."""
        return [one for one in self.disturbances.all if one.kind == "crash"]

    # -- waiting clients -----------------------------------------------------------------------

    def begin_wait(self, time_us: int, partition: str) -> None:
        """Note that a modelled client begins to wait for an acknowledgement."""
        state = self._partition(partition)
        state.waiting += 1
        if state.since_us is None:
            self._begin(time_us, state)

    def end_wait(self, time_us: int, partition: str, *, failed: bool) -> Outage | None:
        """End the wait of a modelled client, by an acknowledgement or because it gave up; return
        the outage that ends with it."""
        state = self._partition(partition)
        ended = None
        if not failed and state.since_us != time_us:  # otherwise a response has just done so
            ended = self._acknowledge(time_us, partition, state)
        state.waiting = max(0, state.waiting - 1)
        return self._end_wait_if_unawaited(time_us, partition, state) or ended

    def add_request(self, time_us: int, client: str, broker: str, partition: str) -> None:
        """Note that a client that is not modelled asks a broker to store records."""
        state = self._partition(partition)
        self._requests += 1
        state.requests[self._requests] = (client, broker)
        if state.since_us is None:
            self._begin(time_us, state)

    def note_lost_response(self, partition: str, client: str, broker: str) -> None:
        """Note that the oldest request of a client to a broker gets no answer, or an answer with
        which the client retries. The client waits on."""
        state = self._partition(partition)
        number = _oldest(state, client, broker)
        if number is not None:
            state.requests[number] = (client, "")

    def _begin(self, time_us: int, state: _Partition) -> None:
        state.begin(time_us, leader_is_dead=state.leader in self._dead)

    def _end_wait_if_unawaited(
        self, time_us: int, partition: str, state: _Partition
    ) -> Outage | None:
        """End the wait if no client waits any more; return the outage that ends with it."""
        ended = None
        if state.since_us is not None and not state.has_waiting_clients:
            if state.since_us < time_us:
                ended = self._end(time_us, partition, state, is_acknowledged=False)
            state.since_us = None
        return ended

    # -- acknowledgements ----------------------------------------------------------------------

    def acknowledge(
        self, time_us: int, broker: int, partition: str, client: str = ""
    ) -> Outage | None:
        """Note that a client learns from a broker that records are stored; return the outage that
        ends with it."""
        state = self._partition(partition)
        if state.leader in self._dead and broker == state.leader:
            # The response was in transit when the broker died: the outage begins at its arrival.
            if state.since_us is not None:
                self._begin(time_us, state)
            ended = None
        else:
            ended = self._acknowledge(time_us, partition, state, broker)
        number = _oldest(state, client, broker_name(broker))
        if number is not None:
            # Clients with older requests are no longer without an acknowledgement either.
            for known in [known for known in state.requests if known <= number]:
                del state.requests[known]
            if not state.has_waiting_clients:
                state.since_us = None
        return ended

    def _acknowledge(
        self, time_us: int, partition: str, state: _Partition, broker: int | None = None
    ) -> Outage | None:
        if state.since_us is None:
            return None
        is_deposed = None not in (broker, state.leader) and broker != state.leader
        has_no_minimum = not is_deposed and (state.has_lost_leader or state.is_shrunk)
        ended = None
        if has_no_minimum or time_us - state.since_us >= LEAST_US:
            ended = self._end(time_us, partition, state, is_acknowledged=True)
        if is_deposed and state.has_lost_leader:
            # The response was in transit, or its broker does not know yet that it was deposed:
            # clients that ask the new leader wait on.
            state.since_us = time_us
        else:
            self._begin(time_us, state)
        return ended

    def _refuse(self, time_us: int, partition: str, client: str, broker: str) -> None:
        """Note that a request was refused for good, so that its client no longer waits."""
        state = self._partition(partition)
        number = _oldest(state, client, broker)
        if number is not None:
            del state.requests[number]
            self._end_wait_if_unawaited(time_us, partition, state)

    def _end(
        self, time_us: int, partition: str, state: _Partition, *, is_acknowledged: bool
    ) -> Outage | None:
        outage = self._outage(time_us, partition, state)
        if outage is not None:
            outage.ended_us = time_us
            outage.is_acknowledged = is_acknowledged
            self.outages.append(outage)
        return outage

    def _outage(self, time_us: int, partition: str, state: _Partition) -> Outage | None:
        """Return the wait of a partition up to now as an outage; None if it does not count."""
        assert state.since_us is not None
        least_us = 0 if state.has_lost_leader else LEAST_SHRUNK_US if state.is_shrunk else LEAST_US
        if time_us - state.since_us < least_us:
            return None
        leader, isr = state.initial_leadership
        cause = self.disturbances.cause(state.cause_from_us, time_us, leader, isr, self._controller)
        return Outage(
            partition,
            state.since_us,
            leader,
            cause=cause,
            decided_us=state.decided_us,
            took_over_us=state.took_over_us,
            shrunk_us=state.shrunk_us,
            new_leader=state.new_leader,
            restored_us=state.restored_us,
        )

    def open_outages(self, now_us: int) -> list[Outage]:
        """Return the outages of partitions for which clients still wait, ordered by name."""
        found = []
        for name in sorted(self._partitions):
            state = self._partitions[name]
            if state.since_us is not None and state.has_waiting_clients:
                outage = self._outage(now_us, name, state)
                if outage is not None:
                    found.append(outage)
        return found

    # -- faults --------------------------------------------------------------------------------

    def crash(self, time_us: int, broker: int, text: str = "") -> Disturbance:
        """Note that a broker dies."""
        crash = self.disturbances.crash(time_us, broker, text or f"broker-{broker} is killed")
        self._dead[broker] = crash
        name = broker_name(broker)
        for state in self._partitions.values():
            if state.leader == broker:
                state.has_lost_leader = state.since_us is not None
            for number, (client, asked) in state.requests.items():
                if asked == name:
                    state.requests[number] = (client, "")
        return crash

    def restart(self, time_us: int, broker: int | None) -> Disturbance | None:
        """Note that a broker starts again; return the crash from which it returns."""
        if broker is None:
            return None
        self._dead.pop(broker, None)
        return self.disturbances.end(time_us, "crash", broker)

    def is_off(self, broker: int) -> bool:
        """Return whether a broker died and has not started again."""
        return broker in self._dead

    @property
    def has_unnoticed_failure(self) -> bool:
        """True while a broker is off or silent and no controller has noticed."""
        return any(
            one.noticed_us is None and one.ended_us is None
            for one in self.disturbances.all
            if one.kind in ("crash", "pause", "cut")
        )

    def note_watch_event(self, time_us: int, actor: str, what: str, path: str) -> list[Disturbance]:
        """Note that a watch event reaches a controller; return the disturbances of which it is the
        first notice."""
        if what not in _DEATHS or not is_controller_name(actor):
            return []
        noticed = []
        for one in self.disturbances.all:
            if one.noticed_us is not None or one.kind not in ("crash", "pause", "cut", "session"):
                continue
            if one.ended_us is not None and one.kind in ("pause", "cut"):
                continue
            is_whole = path in (_CONTROLLER, _BROKERS)
            if is_whole or one.broker is None or path == f"{_BROKERS}/{one.broker}":
                one.noticed_us = time_us
                noticed.append(one)
        return noticed

    # -- leaders -------------------------------------------------------------------------------

    def note_earlier_leadership(
        self, partition: str, leader: int, leader_epoch: int, isr: Iterable[int]
    ) -> None:
        """Note a partition's leadership from before the first change that was seen."""
        state = self._partition(partition)
        if leader_epoch > state.leader_epoch:
            state.apply_leadership(leader, leader_epoch, isr)
            if state.since_us is not None and state.decided_us is None:
                state.initial_leadership = (state.last_leader, state.isr)
                state.has_lost_leader = state.has_lost_leader or leader in self._dead
        elif state.since_us is not None and state.initial_leadership[0] is None:
            # This leadership is reported after the decision that replaced it.
            state.initial_leadership = (leader, tuple(isr))
            state.has_lost_leader = state.has_lost_leader or leader != state.leader

    def note_election(self, time_us: int, old: int, new: int) -> None:
        """Note that a controller decided for another leader; the first such decision after a
        disturbance is recorded as its election."""
        for one in self.disturbances.all:
            if (
                one.broker == old
                and one.kind != "injection"
                and one.elected_us is None
                and new >= 0
            ):
                one.elected_us = time_us

    def decide(
        self,
        time_us: int,
        controller: int,
        partition: str,
        leader: int,
        leader_epoch: int,
        isr: Iterable[int],
    ) -> None:
        """Note that a controller sends a broker the leadership of a partition."""
        self._controller = controller
        state = self._partition(partition)
        if leader_epoch <= state.leader_epoch:
            return
        members = tuple(isr)
        is_known = state.leader is not None
        is_moved = is_known and leader != state.leader
        if is_moved and state.last_leader is not None:
            if state.leader != -1:  # a time without a leader belongs to the one before
                state.note_leader_change(time_us)
            self.disturbances.depose(time_us, state.last_leader, has_successor=leader >= 0)
        is_shrunk = is_known and not set(state.isr) <= set(members)
        if is_moved or is_shrunk:
            state.epoch_decided_us, state.former_isr = time_us, state.isr
        state.apply_leadership(leader, leader_epoch, members)
        if state.since_us is None or not (is_moved or is_shrunk):
            return
        if is_moved:
            state.has_lost_leader = True
            state.new_leader = leader if leader >= 0 else state.new_leader
        state.is_shrunk = state.is_shrunk or is_shrunk
        state.decided_us, state.took_over_us = time_us, None

    def take_over(self, time_us: int, broker: int, partition: str, leader_epoch: int) -> None:
        """Note that the decision arrives at the leader of a partition."""
        state = self._partition(partition)
        if (
            state.decided_us is not None
            and state.took_over_us is None
            and (broker, leader_epoch) == (state.leader, state.leader_epoch)
        ):
            state.took_over_us = time_us

    def note_isr_request(
        self, time_us: int, partition: str, leader_epoch: int, isr: Iterable[int]
    ) -> None:
        """Note that a leader asks for another ISR of its partition."""
        state = self._partition(partition)
        if leader_epoch != state.leader_epoch:
            return
        members = tuple(isr)
        if not set(state.isr) <= set(members) and state.since_us is not None:
            state.shrunk_us, state.is_shrunk = time_us, True
        if state.lacks_replicas and len(members) > len(state.isr):
            state.restored_us, state.lacks_replicas = time_us, False
        state.isr = members

    def forget(self, partition: str) -> None:
        """Forget a partition whose topic was deleted: clients no longer wait for the cluster."""
        self._partitions.pop(partition, None)

    # -- messages ------------------------------------------------------------------------------

    def deliver(self, time_us: int, sender: str, target: str, message: object) -> None:
        """Take in a message that is delivered."""
        if isinstance(message, ProduceResponse):
            for answer in message.partitions:
                self.note_produce_response(
                    time_us, sender, target, str(answer.topic_partition), answer.error
                )
        elif isinstance(message, LeaderAndIsrRequest):
            broker = broker_id_of(target)
            for state in message.partition_states:
                if broker is not None and state.leader == broker:
                    self.take_over(time_us, broker, str(state.topic_partition), state.leader_epoch)
        elif isinstance(message, WatchEvent):
            self.note_watch_event(time_us, target, message.type.value, message.path)

    def send(self, time_us: int, sender: str, target: str, message: object) -> None:
        """Take in a message that is sent."""
        if isinstance(message, ProduceRequest):
            if message.acks:
                for part in message.partitions:
                    self.note_produce_request(time_us, sender, target, str(part.topic_partition))
        elif isinstance(message, LeaderAndIsrRequest):
            for state in message.partition_states:
                self.decide(
                    time_us, message.controller_id, str(state.topic_partition), state.leader,
                    state.leader_epoch, state.isr,
                )  # fmt: skip
        elif isinstance(message, AlterIsrRequest):
            for asked in message.partitions:
                self.note_isr_request(
                    time_us, str(asked.topic_partition), asked.leader_epoch, asked.new_isr
                )
        elif isinstance(message, ClientPacket):
            request = message.request
            if isinstance(request, SetDataRequest):
                self.note_znode_write(time_us, request.path, request.data)

    def drop(
        self, time_us: int, sender: str, target: str, message: object, *, was_sent: bool
    ) -> None:
        """Take in a message that is lost. ``was_sent`` is False if no node listened, so that it was
        dropped without a sending."""
        if isinstance(message, ProduceRequest):
            if message.acks:
                for part in message.partitions:
                    partition = str(part.topic_partition)
                    self.note_lost_produce_request(
                        time_us, sender, target, partition, was_sent=was_sent
                    )
        elif isinstance(message, ProduceResponse):
            for answer in message.partitions:
                self.note_lost_response(str(answer.topic_partition), target, sender)

    def note_produce_request(self, time_us: int, client: str, broker: str, partition: str) -> None:
        """Note that a client asks a broker to store records."""
        if client not in self.modelled:
            self.add_request(time_us, client, broker, partition)
        state = self._partition(partition)
        if state.leader is not None and state.leader >= 0 and broker != broker_name(state.leader):
            state.note_misdirected_request()

    def note_lost_produce_request(
        self, time_us: int, client: str, broker: str, partition: str, *, was_sent: bool
    ) -> None:
        """Note that a client's request does not arrive; the client waits all the same."""
        if not was_sent:
            self.note_produce_request(time_us, client, broker, partition)
        self.note_lost_response(partition, client, broker)

    def note_znode_write(self, time_us: int, path: object, data: object) -> None:
        """Note a request to ZooKeeper to set data. Before KIP-497 a leader writes its ISR this way,
        in its own epoch; a controller's write begins a new epoch."""
        parts = str(path).split("/")
        if len(parts) != 7 or parts[1:3] != ["brokers", "topics"]:
            return
        if isinstance(data, (bytes, str)):
            znode = json.loads(data)
            self.note_isr_request(
                time_us, f"{parts[3]}-{parts[5]}", znode["leader_epoch"], znode["isr"]
            )

    def note_produce_response(
        self, time_us: int, sender: str, target: str, partition: str, error: ErrorCode
    ) -> Outage | None:
        """Note that a client has the answer for a partition; return the outage that it ends."""
        broker = broker_id_of(sender)
        if broker is None:
            return None
        if error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            return self.acknowledge(time_us, broker, partition, target)
        if error in _TOO_FEW:
            self._partition(partition).lacks_replicas = True
        if error.is_retriable:
            self.note_lost_response(partition, target, sender)
        else:
            self._refuse(time_us, partition, target, sender)
        return None


def _oldest(state: _Partition, client: str, broker: str) -> int | None:
    """Return the number of the oldest request of a client that a broker has not answered, which it
    answers next; None if there is none."""
    for number, asked in state.requests.items():
        if asked == (client, broker):
            return number
    return None
