"""Observes the events of a run for a batch, without keeping them.

A ``Sink`` digests the order of events, feeds the account of unavailability
(``tracing.story.outages``), and ends a run that has used up its budget. A ``RecordingSink``
(``recording_sink``) does the same besides recording all events, so that a run has the same row
either way.
"""

from __future__ import annotations

from typing import Any

from ...protocol.control import AlterIsrRequest, LeaderAndIsrRequest
from ...protocol.data import ProduceRequest, ProduceResponse
from ...protocol.names import broker_id_of
from ...tracing.fingerprint import Fingerprint
from ...tracing.story.outages import OutageAccount
from ...zkfake.messages import ClientPacket, WatchEvent
from .budget import Budget, BudgetExceeded

WATCHED = frozenset(
    {LeaderAndIsrRequest, AlterIsrRequest, ProduceRequest, ProduceResponse, ClientPacket,
     WatchEvent, type(None)}
)  # fmt: skip
"""Classes of messages that affect leadership or waiting clients; faults have no message."""
_NEVER = 1 << 62


class LeadershipWatch:
    """Tracks leaders of partitions, faults, and the times in which partitions were unavailable."""

    def __init__(self) -> None:
        self.account: OutageAccount = OutageAccount()
        self.leader_changes: int = 0
        """Number of times that a controller sent brokers another leader of a partition."""
        self._leaders: dict[str, tuple[int, int]] = {}  # partition -> (leader epoch, leader)

    def observe(
        self,
        time_us: int,
        kind: str,
        actor: str,
        peer: str | None,
        message: Any,
        message_id: int | None = None,
        why: str | None = None,
    ) -> None:
        """Take in an event whose message is one of ``WATCHED``."""
        account = self.account
        if kind == "deliver":
            account.deliver(time_us, peer or "", actor, message)
        elif kind == "send":
            account.send(time_us, actor, peer or "", message)
            if isinstance(message, LeaderAndIsrRequest):
                self._count_changes(message)
        elif kind == "drop":
            account.drop(time_us, actor, peer or "", message, was_sent=message_id is not None)
        elif kind == "crash":
            broker = broker_id_of(actor)
            if broker is not None:
                account.crash(time_us, broker, why or "")
        elif kind == "restart":
            account.restart(time_us, broker_id_of(actor))
        elif kind == "fault":
            account.disturbances.fault(time_us, actor, why or "")

    def _count_changes(self, request: LeaderAndIsrRequest) -> None:
        for state in request.partition_states:
            name = str(state.topic_partition)
            epoch, leader = self._leaders.get(name, (-1, -1))
            if state.leader_epoch > epoch:
                self._leaders[name] = (state.leader_epoch, state.leader)
                if epoch >= 0 and leader != state.leader:
                    self.leader_changes += 1


class Sink(Fingerprint):
    """An event sink that keeps no events."""

    __slots__ = ("_events_max", "_time_us_max", "now_us", "watch")

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self.watch: LeadershipWatch = LeadershipWatch()
        self.now_us: int = 0
        self._events_max, self._time_us_max = limits(budget)

    @property
    def outlined(self) -> int:
        """Number of events in the outline so far: all events that this sink counts."""
        return len(self)

    def event(
        self,
        time_us: int,
        kind: str,
        actor: str,
        peer: str | None,
        message: object | None,
        message_id: int | None,
        cause: int | None,
        why: str | None = None,
        of: int | None = None,
    ) -> int:
        """Add an event; return its number, or for an unseen kind that of the event before."""
        if kind == "expire":  # the only unseen kind that a sink receives
            return self._seq
        cls = message.__class__
        self.append((time_us, kind, actor, peer, message if cls is str else cls.__name__,
                     message_id))  # fmt: skip
        self._seq = seq = self._seq + 1
        if not seq & 4095:
            self.absorb()
        if cls in WATCHED:
            self.watch.observe(time_us, kind, actor, peer, message, message_id, why)
        if seq >= self._events_max or time_us > self._time_us_max:
            raise exceeded(seq, self._events_max, self._time_us_max)
        return seq


def limits(budget: Budget) -> tuple[int, int]:
    """Return the maximum number of events, and of microseconds of virtual time."""
    virtual_us = _NEVER if budget.virtual_s is None else int(budget.virtual_s * 1_000_000)
    return _NEVER if budget.events is None else budget.events, virtual_us


def exceeded(events: int, events_max: int, time_us_max: int) -> BudgetExceeded:
    """Return the exception that ends a run which has used up its budget."""
    if events >= events_max:
        return BudgetExceeded(f"events: the run had {events_max:,} and did not end")
    return BudgetExceeded(f"virtual time: the run did not end within {time_us_max / 1e6:g} s")
