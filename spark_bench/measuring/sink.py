"""What a batch looks at while a run goes on: its events as they happen, without keeping them.

A ``Sink`` digests the order of events, feeds the one account of unavailability
(``tracing.story.outages``), and ends a run that has used its budget. A ``RecordingSink`` does the
same beside a whole recording, so a run gives the same row with a trace and without.
"""

from __future__ import annotations

from typing import Any

from ...protocol.control import LeaderAndIsrRequest
from ...protocol.data import ProduceResponse
from ...protocol.names import broker_id_of
from ...tracing.fingerprint import Fingerprint
from ...tracing.recording.recorder import Recorder
from ...tracing.story.outages import BrokerCrash, Outage, OutageAccount
from ...zkfake.messages import WatchEvent
from .budget import Budget, BudgetExceeded

_WATCHED = frozenset({LeaderAndIsrRequest, ProduceResponse, WatchEvent, type(None)})
"""Classes of messages that tell of leaders; a crash comes without a message."""
_NEVER = 1 << 62


class LeadershipWatch:
    """Leaders of partitions, crashes of brokers, and how long partitions were unavailable."""

    __slots__ = ("_leaders", "_told_us", "account", "leader_changes")

    def __init__(self) -> None:
        self.account = OutageAccount()
        self.leader_changes = 0
        """How often a controller told brokers of another leader of a partition."""
        self._leaders: dict[str, tuple[int, int]] = {}  # partition -> (leader epoch, leader)
        self._told_us: dict[str, list[int]] = {}  # partition -> when it got another leader

    def see(self, time_us: int, kind: str, actor: str, peer: str | None, message: Any) -> None:
        """Take an event whose message is one of ``_WATCHED``."""
        if kind == "deliver":
            self.account.see(time_us, peer or "", actor, message)
        elif kind == "send":
            if isinstance(message, LeaderAndIsrRequest):
                self._send_leaders(time_us, message)
        elif kind == "crash":
            broker = broker_id_of(actor)
            if broker is not None:
                led = [name for name, (_, leader) in self._leaders.items() if leader == broker]
                self.account.crash(time_us, broker, led)
        elif kind == "restart":
            self.account.restart(time_us, broker_id_of(actor))

    def _send_leaders(self, time_us: int, request: LeaderAndIsrRequest) -> None:
        for state in request.partition_states:
            name = str(state.topic_partition)
            epoch, leader = self._leaders.get(name, (-1, -1))
            if state.leader_epoch > epoch:
                self._leaders[name] = (state.leader_epoch, state.leader)
                self._told_us.setdefault(name, []).append(time_us)
                if epoch >= 0 and leader != state.leader:
                    self.leader_changes += 1

    def outages(self) -> list[tuple[BrokerCrash, Outage]]:
        """Every outage that has ended, in the order of crashes and partitions."""
        return [
            (crash, outage)
            for crash in self.account.crashes
            for outage in crash.outages.values()
            if outage.unavailable_us is not None
        ]

    def open_outages(self) -> int:
        """Partitions that had taken records before a crash and took none after it."""
        return len(self.open_since_us())

    def open_since_us(self) -> list[int]:
        """Since when each of these partitions has taken none, however many crashes it met."""
        since_us: dict[str, int] = {}
        for crash in self.account.crashes:
            for name, outage in crash.outages.items():
                if outage.first_ack_us is None and outage.last_ack_us is not None:
                    begun_us = outage.last_ack_us
                    since_us[name] = min(begun_us, since_us.get(name, begun_us))
        return list(since_us.values())

    def phases_ms(self, crash: BrokerCrash, outage: Outage) -> dict[str, float]:
        """How long a partition was unavailable, and the phases, whose sum is just that."""
        first_ack_us, whole_us = outage.first_ack_us, outage.unavailable_us
        assert first_ack_us is not None
        assert whole_us is not None
        begun_us = first_ack_us - whole_us
        took_over_us = first_ack_us if outage.took_over_us is None else outage.took_over_us
        took_over_us = min(took_over_us, first_ack_us)
        noticed_us = took_over_us if crash.noticed_us is None else crash.noticed_us
        noticed_us = min(noticed_us, took_over_us)
        sent_us = [us for us in self._told_us.get(outage.partition, ()) if us <= took_over_us]
        told_us = max(sent_us[-1] if sent_us else took_over_us, noticed_us)
        return {
            "unavailable_ms": whole_us / 1000,
            "before_ms": (crash.crashed_us - begun_us) / 1000,
            "detect_ms": (noticed_us - crash.crashed_us) / 1000,
            "elect_ms": (told_us - noticed_us) / 1000,
            "propagate_ms": (took_over_us - told_us) / 1000,
            "client_ms": (first_ack_us - took_over_us) / 1000,
        }


class Sink(Fingerprint):
    """A trace sink that keeps no event."""

    __slots__ = ("_most_events", "_most_us", "now_us", "watch")

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self.watch = LeadershipWatch()
        self.now_us = 0
        self._most_events, self._most_us = _limits(budget)

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
        """Take one event; give its number."""
        cls = message.__class__
        self.append((time_us, kind, actor, peer, message if cls is str else cls.__name__,
                     message_id))  # fmt: skip
        self._seq = seq = self._seq + 1
        if not seq & 4095:
            self.absorb()
        if cls in _WATCHED:
            self.watch.see(time_us, kind, actor, peer, message)
        if seq >= self._most_events or time_us > self._most_us:
            raise _exceeded(seq, self._most_events, self._most_us)
        return seq


class RecordingSink(Recorder):
    """A recorder that looks at the events as a ``Sink`` does."""

    takes_rows = False
    events_aside = 0  # other tasks have the other cores

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self.watch = LeadershipWatch()
        record = self.event
        watch = self.watch.see
        most_events, most_us = _limits(budget)

        def event(
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
            seq = record(time_us, kind, actor, peer, message, message_id, cause, why, of)
            if message.__class__ in _WATCHED:
                watch(time_us, kind, actor, peer, message)
            if seq >= most_events or time_us > most_us:
                raise _exceeded(seq, most_events, most_us)
            return seq

        self.event = event  # type: ignore[method-assign]


def _limits(budget: Budget) -> tuple[int, int]:
    virtual_us = _NEVER if budget.virtual_s is None else int(budget.virtual_s * 1_000_000)
    return _NEVER if budget.events is None else budget.events, virtual_us


def _exceeded(events: int, most_events: int, most_us: int) -> BudgetExceeded:
    if events >= most_events:
        return BudgetExceeded(f"events: the run had {most_events:,} and did not end")
    return BudgetExceeded(f"virtual time: the run did not end within {most_us / 1e6:g} s")
