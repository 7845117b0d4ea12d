"""Storage of the groups of both protocols and their records (KIP-848). Records take effect when
they are appended; the client is answered when they are replicated (Kafka: ``CoordinatorRuntime``,
``CoordinatorTimerImpl``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode
from ...protocol.versions import Behaviour
from ..append_errors import APPEND_ERRORS
from ..groups.group import Group, GroupEnvironment
from ..groups.loading import AnyGroup, Commits, LoadedPartition
from ..groups.store import GroupStore
from . import records as group_records
from .group import ConsumerGroup
from .records import GroupRecord, RecordKind

if TYPE_CHECKING:
    from ...protocol.data import ProducePartitionResponse
    from ...protocol.host import Host
    from ...replication.replica_manager import ReplicaManager

RETRY_BACKOFF_MS = 500
"""Time in milliseconds after which the action of a timer is retried if its write failed."""
_NONE = ErrorCode.NONE
_ERRORS = {
    **APPEND_ERRORS,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}

Done = Callable[[ErrorCode], object]
Pairs = Sequence[tuple[bytes, bytes | None]]


class LoadedConsumerGroups(LoadedPartition):
    """Like the base class, but also loads records of consumer-protocol groups."""

    def __init__(self, environment: GroupEnvironment, retention_ms: int | None) -> None:
        super().__init__(environment, retention_ms)
        self._records: dict[str, list[GroupRecord]] = {}

    def apply_record(
        self, key_data: bytes, data: bytes | None, batch_offset: int, target: Commits
    ) -> None:
        found = group_records.decode(key_data, data)
        if found is None:
            super().apply_record(key_data, data, batch_offset, target)
        elif found.kind is RecordKind.GROUP_EPOCH and found.value is None:
            self._records.pop(found.group_id, None)
        else:
            self._records.setdefault(found.group_id, []).append(found)

    def groups_with_records(self) -> dict[str, AnyGroup]:
        """Return the groups that have records of their own, classic groups first."""
        groups = super().groups_with_records()
        for group_id, records in self._records.items():
            if any(record.kind is RecordKind.GROUP_EPOCH for record in records):
                group = groups[group_id] = ConsumerGroup(group_id)
                group.apply(records)
        return groups


class ConsumerGroupStore(GroupStore):
    """Keeps the groups of both protocols by id, and writes their records."""

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        replica_manager: ReplicaManager,
        write_line: Callable[[str, str], object],
        started_ms: int,
    ) -> None:
        """``write_line`` logs a line with a level (``info``, ``warn``, ``error``);
        ``started_ms`` is when the broker started."""
        super().__init__(host, config, behaviour, replica_manager, write_line, started_ms)
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.on_group_loaded: Callable[[ConsumerGroup], object] = lambda _group: None
        """Called with each group of the consumer protocol that was loaded."""

    def find(self, group_id: str) -> AnyGroup | None:
        """Return the group, of either protocol."""
        return self.groups.get(group_id) or self.consumer_groups.get(group_id)

    def all(self) -> list[AnyGroup]:
        """Return the groups of both protocols."""
        return [*self.groups.values(), *self.consumer_groups.values()]

    # -- loading, unloading and migration ------------------------------------------------------

    def new_partition(self) -> LoadedPartition:
        """Return an empty state into which a partition is loaded."""
        return LoadedConsumerGroups(self.environment, self._retention_of_offsets_ms)

    def add_loaded_group(self, group: AnyGroup) -> None:
        """Start to coordinate a group that was loaded."""
        if isinstance(group, ConsumerGroup):
            group.start_reporting(self.host.state_listener)
            self.consumer_groups[group.group_id] = group
            self.on_group_loaded(group)
        else:
            super().add_loaded_group(group)

    def drop_groups(self, number: int | None) -> list[str]:
        """Forget the groups of a partition, or all groups for None; return their ids."""
        removed = super().drop_groups(number)
        for group_id, group in list(self.consumer_groups.items()):
            if number is None or self.log.partition_for(group_id) == number:
                group.stop_reporting()
                group.end()
                del self.consumer_groups[group_id]
                removed.append(group_id)
        return removed

    def forget(self, group_id: str) -> None:
        """Remove a group that is dead."""
        super().forget(group_id)
        self.consumer_groups.pop(group_id, None)

    def put_consumer_group(self, group: ConsumerGroup) -> None:
        """Keep a group of the consumer protocol, in place of a classic group with its id."""
        classic = self.groups.pop(group.group_id, None)
        if classic is not None:
            classic.unloaded()
            self.carry_out(classic)
            group.start_reporting(self.host.state_listener)
        self.consumer_groups[group.group_id] = group

    def put_classic_group(self, group: Group) -> None:
        """Keep a classic group, in place of a group of the consumer protocol with its id."""
        old = self.consumer_groups.pop(group.group_id, None)
        if old is not None:
            old.stop_reporting()
            old.end()
        group.note_initial_state()
        self.carry_out(group)
        self.groups[group.group_id] = group

    # -- records -------------------------------------------------------------------------------

    def write(
        self, group: ConsumerGroup, records: Sequence[GroupRecord], done: Done, before: Pairs = ()
    ) -> None:
        """Append and apply records of a group, after the records ``before`` of a replaced group.

        ``done`` is called with the error for the client once the records are replicated. A new
        group is kept once its records are appended. If the append fails, the group is unchanged.
        """

        def appended() -> None:
            self.put_consumer_group(group)
            group.apply(records)
            for record in records:
                if record.kind is RecordKind.MEMBER and record.value is None:
                    self.cancel_timers(group, record.member_id)

        if not records and not before:
            self._answer_in_order(group, done)
            return
        self.append(group, [*before, *map(group_records.encode, records)], appended, done)

    def append(
        self, group: ConsumerGroup, pairs: Pairs, appended: Callable[[], object], done: Done
    ) -> None:
        """Append keys and values; call ``appended`` once they are in the log, and ``done`` with the
        error once they are replicated or have failed."""
        write: list[Done] = [done]
        early: list[ErrorCode] = []
        is_appended = False

        def answer(error: ErrorCode) -> None:
            if any(known is write for known in group.pending_writes):
                group.pending_writes[:] = [
                    known for known in group.pending_writes if known is not write
                ]
            for callback in write:
                callback(_ERRORS.get(error, error))

        def replicated(outcome: ProducePartitionResponse) -> None:
            if is_appended:
                answer(outcome.error)
            else:
                early.append(outcome.error)

        if not self.log.append(group.group_id, pairs, replicated):
            done(ErrorCode.NOT_COORDINATOR)
            return
        if early and early[0] is not _NONE:
            done(_ERRORS.get(early[0], early[0]))
            return
        is_appended = True
        appended()
        if early:
            answer(_NONE)
        else:
            group.pending_writes.append(write)

    def _answer_in_order(self, group: ConsumerGroup, done: Done) -> None:
        """Answer a read once the records on which it depends are replicated."""
        if group.pending_writes:
            cast("list[Done]", group.pending_writes[-1]).append(done)
        else:
            done(_NONE)

    # -- timeouts of members -------------------------------------------------------------------

    def start_timer(
        self,
        group: ConsumerGroup,
        name: str,
        member_id: str,
        delay_ms: int,
        expired: Callable[[Done], object],
    ) -> None:
        """Start or restart a timeout of a member; ``expired`` is retried if its write fails.

        ``expired`` is not called once the group or the member is gone.
        """
        key = name, member_id
        self.cancel_timer(group, name, member_id)
        causes = self.host.causes
        begun_by = None if causes is None else causes.current()

        def ring() -> None:
            group.timers.pop(key, None)
            if not group.is_dead and member_id in group.members:
                if causes is not None:
                    causes.record_timeout((group.members[member_id].client_id,), begun_by, delay_ms)
                expired(retry)

        def retry(error: ErrorCode) -> None:
            if error is not _NONE and not group.is_dead and key not in group.timers:
                group.timers[key] = self.host.call_later_ms(RETRY_BACKOFF_MS, ring)

        group.timers[key] = self.host.call_later_ms(delay_ms, ring)

    def cancel_timer(self, group: ConsumerGroup, name: str, member_id: str) -> None:
        """Cancel a timeout of a member, if it runs."""
        timer = group.timers.pop((name, member_id), None)
        if timer is not None:
            timer.cancel()

    def cancel_timers(self, group: ConsumerGroup, member_id: str) -> None:
        """Cancel all timeouts of a member."""
        for name, known in list(group.timers):
            if known == member_id:
                self.cancel_timer(group, name, member_id)
