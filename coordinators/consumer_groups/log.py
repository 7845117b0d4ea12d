"""Writing the records of groups of the consumer protocol: what was appended counts at once, and is
answered for when it is replicated (Kafka: ``CoordinatorRuntime``, ``CoordinatorTimerImpl``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from ...protocol.errors import ErrorCode
from ..groups.offsets_log import OffsetsLog
from ..groups.store import GroupStore
from . import records as group_records
from .group import ConsumerGroup
from .records import GroupRecord, RecordKind

if TYPE_CHECKING:
    from ...protocol.data import ProducePartitionResponse
    from ...protocol.host import Host

RETRY_BACKOFF_MS = 500
"""How long after a failed write what a timer began is tried again."""
_NONE = ErrorCode.NONE
_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}

Done = Callable[[ErrorCode], object]
Pairs = Sequence[tuple[bytes, bytes | None]]


class ConsumerGroupLog:
    """The log as groups of the consumer protocol write it."""

    __slots__ = ("_host", "_log", "_store")

    def __init__(self, host: Host, log: OffsetsLog, store: GroupStore) -> None:
        self._host = host
        self._log = log
        self._store = store

    def write(
        self,
        group: ConsumerGroup,
        records: Sequence[GroupRecord],
        done: Done,
        before: Pairs = (),
    ) -> None:
        """Write records of a group, after those of the group that it replaces; ``done`` is told
        the error for the client, once they are replicated.

        A group that is new is one of the coordinator's then. Nothing happens to the group where
        the log refuses the records.
        """

        def appended() -> None:
            self._store.keep_consumer_group(group)
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
        """Append keys and values; ``appended`` is called if the log took them."""
        write: list[Done] = [done]
        early: list[ErrorCode] = []
        is_appended = False

        def answer(error: ErrorCode) -> None:
            if any(known is write for known in group.waiting):
                group.waiting[:] = [known for known in group.waiting if known is not write]
            for told in write:
                told(_ERRORS.get(error, error))

        def replicated(outcome: ProducePartitionResponse) -> None:
            if is_appended:
                answer(outcome.error)
            else:
                early.append(outcome.error)

        if not self._log.append(group.group_id, pairs, replicated):
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
            group.waiting.append(write)

    def _answer_in_order(self, group: ConsumerGroup, done: Done) -> None:
        """Answer a read of a group when the records it rests on are replicated."""
        if group.waiting:
            cast("list[Done]", group.waiting[-1]).append(done)
        else:
            done(_NONE)

    # -- timers --------------------------------------------------------------------------------

    def start_timer(
        self,
        group: ConsumerGroup,
        name: str,
        member_id: str,
        delay_ms: int,
        expired: Callable[[Done], object],
    ) -> None:
        """Begin a time of a member anew; ``expired`` is tried again if its write fails.

        It is not called once the group or the member is gone.
        """
        key = name, member_id
        self.cancel_timer(group, name, member_id)
        causes = self._host.causes
        begun_by = None if causes is None else causes.current()

        def ring() -> None:
            group.timers.pop(key, None)
            if not group.is_dead and member_id in group.members:
                if causes is not None:
                    causes.waited((group.members[member_id].client_id,), begun_by, delay_ms)
                expired(retry)

        def retry(error: ErrorCode) -> None:
            if error is not _NONE and not group.is_dead and key not in group.timers:
                group.timers[key] = self._host.call_later_ms(RETRY_BACKOFF_MS, ring)

        group.timers[key] = self._host.call_later_ms(delay_ms, ring)

    def cancel_timer(self, group: ConsumerGroup, name: str, member_id: str) -> None:
        """End a time of a member, if it runs."""
        timer = group.timers.pop((name, member_id), None)
        if timer is not None:
            timer.cancel()

    def cancel_timers(self, group: ConsumerGroup, member_id: str) -> None:
        """End all times of a member."""
        for name, known in list(group.timers):
            if known == member_id:
                self.cancel_timer(group, name, member_id)
