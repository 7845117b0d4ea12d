"""The groups of a broker, their log and their timers (Kafka: ``GroupMetadataManager``).

Each committed offset and each generation of a group is a record of ``__consumer_offsets``. The
leader of a partition of that topic coordinates the groups that hash to it: a broker that becomes
leader loads the partition, and one that ceases to be leader forgets its groups. Loads and unloads
run one after the other and piecemeal, as on Kafka's thread for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from ...protocol.config import BrokerConfig
from ...protocol.data import ProducePartitionResponse
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.host import name_as
from ...protocol.internal_topics import OFFSETS_TOPIC
from ...protocol.records.batch import whole_batches
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from ...replication.log.verification import UNGUARDED, Unguarded, VerificationGuard
from ..append_errors import APPEND_ERRORS
from .effects import (
    AnswerMember,
    CancelTimer,
    Effect,
    NoteChange,
    NoteSilence,
    SetTimer,
    StoreGroup,
    WriteLine,
)
from .group import TIMEOUT_HANDLERS, Group, GroupEnvironment
from .loading import AnyGroup, LoadedPartition
from .offsets import CommitRecord
from .offsets_log import ACKS_NONE, OffsetsLog
from .records import (
    GroupKey,
    OffsetKey,
    OffsetValue,
    encode_group_key,
    encode_group_value,
    encode_key,
    encode_value,
)

if TYPE_CHECKING:
    from ...protocol.host import Host
    from ...replication.log.log import Log
    from ...replication.partition.partition import Partition
    from ...replication.replica_manager import ReplicaManager

LOAD_BYTES = 65536
"""Number of bytes loaded at a time; requests are answered in between."""
_COMMIT_ERRORS = {
    **APPEND_ERRORS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
_GROUP_ERRORS = {
    **_COMMIT_ERRORS,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


G = TypeVar("G", bound=AnyGroup)


class GroupStore:
    """Keeps the groups by id, loads and unloads their partitions, and writes their records."""

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
        self.host = host
        self.config = config
        self.behaviour = behaviour
        self.write_line = write_line
        self.log: OffsetsLog = OffsetsLog(host, config, replica_manager)
        self.environment: GroupEnvironment = GroupEnvironment(
            config, behaviour, lambda: host.wall_ms(), host.rng
        )
        self.groups: dict[str, Group] = {}
        """Groups of the classic protocol."""
        self.owned: dict[int, None] = {}
        """Partitions of the internal topic whose groups are coordinated here."""
        self.loading: dict[int, None] = {}
        self._epochs: dict[int, int] = {}
        """Leader epoch of the last load or unload of each partition."""
        self._open_groups_by_producer: dict[int, dict[str, None]] = {}
        """Groups with offsets in an open transaction, by producer id."""
        self._tasks: deque[tuple[Iterator[None], int | None]] = deque()
        self._started_ms = started_ms
        self._is_expiry_scheduled = False

    # -- lookup --------------------------------------------------------------------------------

    def get_or_create(self, group_id: str) -> Group:
        """Return the group; an unknown one is created empty."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, self.environment)
        return group

    def find(self, group_id: str) -> AnyGroup | None:
        """Return the group, of either protocol."""
        return self.groups.get(group_id)

    def all(self) -> list[AnyGroup]:
        """Return the groups of both protocols."""
        return [*self.groups.values()]

    def is_missing(self, group_id: str) -> bool:
        """Return whether the group would be coordinated here but does not exist."""
        group = self.find(group_id)
        is_dead = group is None or group.is_dead
        return is_dead and self.log.partition_for(group_id) in self.owned

    # -- effects -------------------------------------------------------------------------------

    def carry_out(self, group: Group, begun_by: int | None = None) -> None:
        """Carry out the effects of a group, in order.

        If an append completes at once, the effects of its outcome are carried out immediately.
        ``begun_by`` is the event that started the timer which has expired, if the run is recorded.
        """
        effects, group.effects = group.effects, []
        for effect in effects:
            self._carry_out_effect(group, effect, begun_by)

    def _carry_out_effect(self, group: Group, effect: Effect, begun_by: int | None) -> None:
        if isinstance(effect, SetTimer):
            self._set_timer(group, effect)
        elif isinstance(effect, CancelTimer):
            timer = group.timers.pop((effect.limit, effect.member_id), None)
            if timer is not None:
                timer.cancel()
        elif isinstance(effect, AnswerMember):
            effect.reply(effect.response)
        elif isinstance(effect, StoreGroup):
            self._store_group(group, effect)
        elif isinstance(effect, WriteLine):
            self.write_line(effect.level, effect.line)
        elif isinstance(effect, NoteChange):
            if self.host.state_listener is not None:
                path = f"groups/{group.group_id}/{effect.name}"
                self.host.state_listener(path, effect.old, effect.new)
        elif isinstance(effect, NoteSilence):
            if self.host.state_listener is not None:
                self.host.report_silence(
                    effect.client_id, effect.silent_ms, effect.text, effect.member_id
                )
        elif self.host.causes is not None:
            self.host.causes.record_timeout(effect.client_ids, begun_by, effect.waited_ms)

    def _set_timer(self, group: Group, effect: SetTimer) -> None:
        limit, member_id, delay_ms = effect
        key = limit, member_id
        running = group.timers.pop(key, None)
        if running is not None:
            running.cancel()
        causes = self.host.causes
        begun_by = None if causes is None else causes.current()

        def on_expiry() -> None:
            group.timers.pop(key, None)
            group.expire_timeout(limit, member_id)
            self.carry_out(group, begun_by)

        if causes is not None:
            name_as(on_expiry, TIMEOUT_HANDLERS[limit])
        group.timers[key] = self.host.call_later_ms(delay_ms, on_expiry)

    def _store_group(self, group: Group, effect: StoreGroup) -> None:
        key = encode_group_key(GroupKey(group.group_id))
        value = encode_group_value(effect.value, self.behaviour.group_value_version)

        def stored(error: ErrorCode) -> None:
            effect.then(error)
            self.carry_out(group)

        def appended(outcome: ProducePartitionResponse) -> None:
            stored(_GROUP_ERRORS.get(outcome.error, outcome.error))

        if not self.log.append(group.group_id, [(key, value)], appended):
            stored(ErrorCode.NOT_COORDINATOR)

    # -- loading and unloading -----------------------------------------------------------------

    def leadership_changed(
        self, leaders: Iterable[Partition], followers: Iterable[Partition]
    ) -> None:
        """Load ``leaders`` and unload ``followers``, if they are of the internal topic."""
        for partition in leaders:
            if partition.topic_partition.topic == OFFSETS_TOPIC:
                self._schedule(self._load(partition, partition.leader_epoch))
        for partition in followers:
            if partition.topic_partition.topic == OFFSETS_TOPIC:
                number = partition.topic_partition.partition
                self._schedule(self._unload(number, partition.leader_epoch))

    def partitions_stopped(self, partitions: Iterable[TopicPartition]) -> None:
        """Unload stopped partitions of the internal topic.

        Other losses of leadership arrive by LeaderAndIsr, which only goes to live replicas.
        """
        for partition in partitions:
            if partition.topic == OFFSETS_TOPIC:
                self._schedule(self._unload(partition.partition, None))

    def reset(self) -> None:
        """Drop all groups and all leader epochs of an internal topic that was deleted.

        Kafka keeps the epochs: after the topic is created again, it coordinates no groups of a
        partition until the new leader epoch has caught up with the old one.
        """
        for number in (*self.owned, *self.loading):
            self._schedule(self._unload(number, None))
        self._schedule(self._reset_groups())

    def _reset_groups(self) -> Iterator[None]:
        self.drop_groups(None)
        self._open_groups_by_producer.clear()
        self._epochs.clear()
        yield from ()

    def drop_groups(self, number: int | None) -> list[str]:
        """Forget the groups of a partition, or all groups for None; return their ids."""
        removed = []
        for group_id, group in list(self.groups.items()):
            if number is None or self.log.partition_for(group_id) == number:
                group.unloaded()
                self.carry_out(group)
                del self.groups[group_id]
                removed.append(group_id)
        return removed

    @property
    def is_loading(self) -> bool:
        """True while partitions remain to be loaded or unloaded."""
        return bool(self._tasks)

    def _schedule(self, task: Iterator[None]) -> None:
        causes = self.host.causes
        self._tasks.append((task, None if causes is None else causes.current()))
        if len(self._tasks) == 1:
            self._run_tasks_soon()

    def _run_tasks_soon(self) -> None:
        host = self.host
        call_later_ms = (
            host.call_later_ms if host.causes is None else host.causes.set_shared_timer_ms
        )
        call_later_ms(0, self._run_tasks)

    def _run_tasks(self) -> None:
        """Advance the first task by one step, and drop it when it is exhausted."""
        task, begun_by = self._tasks[0]
        if self.host.causes is not None:
            self.host.causes.record_due_entry("GroupStore._run_tasks", begun_by)
        for _ in task:
            break
        else:
            self._tasks.popleft()
        if self._tasks:
            self._run_tasks_soon()

    def _accept_epoch(self, number: int, epoch: int | None) -> bool:
        """Note the leader epoch of a leadership change; return False if it is stale."""
        known = self._epochs.get(number, -1)
        if epoch is None:
            return True
        self._epochs[number] = max(known, epoch)
        return epoch >= known

    def _load(self, partition: Partition, epoch: int) -> Iterator[None]:
        number = partition.topic_partition.partition
        if not self._accept_epoch(number, epoch) or number in self.owned:
            return
        self.loading[number] = None
        yield
        loaded = self.new_partition()
        log = partition.log
        if log is not None:
            yield from _read(partition, log, loaded)
        for producer_id, commits in loaded.pending.items():
            for key in commits:
                self._open_groups_by_producer.setdefault(producer_id, {})[key.group_id] = None
        for group in loaded.groups():
            if self.find(group.group_id) is None:
                self.add_loaded_group(group)
        self.loading.pop(number, None)
        self.owned[number] = None
        self._start_expiry()

    def _unload(self, number: int, epoch: int | None) -> Iterator[None]:
        if not self._accept_epoch(number, epoch):
            return
        self.owned.pop(number, None)
        self.loading.pop(number, None)
        removed = set(self.drop_groups(number))
        for producer_id, group_ids in list(self._open_groups_by_producer.items()):
            for group_id in [g for g in group_ids if g in removed]:
                self._close_group(producer_id, group_id)
        yield from ()

    def new_partition(self) -> LoadedPartition:
        """Return an empty state into which a partition is loaded."""
        return LoadedPartition(self.environment, self._retention_of_offsets_ms)

    def add_loaded_group(self, group: AnyGroup) -> None:
        """Start to coordinate a group that was loaded."""
        if isinstance(group, Group):
            self.groups[group.group_id] = group
            group.loaded()
            self.carry_out(group)

    # -- transactions --------------------------------------------------------------------------

    def complete_transaction(
        self, producer_id: int, partitions: Iterable[int], is_commit: bool
    ) -> None:
        """Commit or discard a transaction's offsets, as these partitions now have its marker."""
        self._schedule(self._complete_transaction(producer_id, frozenset(partitions), is_commit))

    def _complete_transaction(
        self, producer_id: int, partitions: frozenset[int], is_commit: bool
    ) -> Iterator[None]:
        for group_id in list(self._open_groups_by_producer.get(producer_id, ())):
            group = self.find(group_id)
            if self.log.partition_for(group_id) not in partitions or group is None:
                continue
            if not group.is_dead:
                group.offsets.complete_transaction(producer_id, is_commit)
                self._close_group(producer_id, group_id)
        yield from ()

    def _close_group(self, producer_id: int, group_id: str) -> None:
        groups = self._open_groups_by_producer.get(producer_id)
        if groups is not None:
            groups.pop(group_id, None)
            if not groups:
                del self._open_groups_by_producer[producer_id]

    # -- writing -------------------------------------------------------------------------------

    def store_offsets(
        self,
        group: AnyGroup,
        values: Mapping[TopicPartition, OffsetValue],
        respond: Callable[[dict[TopicPartition, ErrorCode]], object],
        producer_id: int = -1,
        producer_epoch: int = -1,
        guard: VerificationGuard | Unguarded | None = UNGUARDED,
    ) -> None:
        """Append offsets, which are committed once replicated, or once their transaction
        commits."""
        longest = self.config["offset.metadata.max.bytes"]
        accepted = {p: v for p, v in values.items() if len(v.metadata) <= longest}

        def answer(error: ErrorCode) -> None:
            too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
            respond({p: error if p in accepted else too_large for p in values})

        if not accepted:
            answer(ErrorCode.NONE)
            return
        offsets = group.offsets
        in_transaction = producer_id >= 0

        def appended(outcome: ProducePartitionResponse) -> None:
            error = outcome.error
            owner = self.find(group.group_id)
            # A group that was migrated to the other protocol meanwhile keeps its offsets object.
            if owner is not None and owner.offsets is offsets and not owner.is_dead:
                for partition, value in accepted.items():
                    commit = CommitRecord(outcome.base_offset, value)
                    if error is ErrorCode.NONE and in_transaction:
                        offsets.appended_in_transaction(producer_id, partition, commit)
                    elif error is ErrorCode.NONE:
                        offsets.appended(partition, commit)
                    elif in_transaction:
                        offsets.failed_in_transaction(producer_id, partition)
                    else:
                        offsets.failed(partition, value)
                if producer_id not in offsets.pending_in_transactions:
                    self._close_group(producer_id, group.group_id)
            answer(_COMMIT_ERRORS.get(error, error))

        if not self.log.is_log_hosted(group.group_id):
            answer(ErrorCode.NOT_COORDINATOR)
            return
        staged = values if self.behaviour.refused_offsets_stay_pending else accepted
        if in_transaction:
            self._open_groups_by_producer.setdefault(producer_id, {})[group.group_id] = None
            offsets.prepare_in_transaction(producer_id, staged)
        else:
            offsets.prepare(staged)
        version = self.behaviour.offset_value_version
        pairs: list[tuple[bytes, bytes | None]] = [
            (encode_key(OffsetKey(group.group_id, *partition)), encode_value(value, version))
            for partition, value in accepted.items()
        ]
        self.log.append(
            group.group_id, pairs, appended, producer_id, producer_epoch, 0, guard=guard
        )

    # -- removal -------------------------------------------------------------------------------

    @property
    def _retention_of_offsets_ms(self) -> int | None:
        """Lifetime of offsets without an expiry of their own, in milliseconds; None since
        KIP-211."""
        return None if self.behaviour.offsets_expire_by_group_state else self._retention_ms

    @property
    def _retention_ms(self) -> int:
        return int(self.config["offsets.retention.minutes"]) * 60_000

    def _start_expiry(self) -> None:
        """Start the periodic expiry, at multiples of its interval since the broker's start."""
        if not self._is_expiry_scheduled:
            self._is_expiry_scheduled = True
            interval_ms = self.config["offsets.retention.check.interval.ms"]
            elapsed_ms = self.host.now_ms() - self._started_ms
            self.host.call_later_ms(interval_ms - elapsed_ms % interval_ms, self._expire)

    def _expire(self) -> None:
        wall_ms = self.host.wall_ms()
        if self.behaviour.offsets_expire_by_group_state:
            retention_ms = self._retention_ms
            self.clean_up(self.all(), lambda g: g.remove_expired_offsets(wall_ms, retention_ms))
        else:
            self.clean_up(self.groups.values(), lambda g: g.remove_offsets_past_own_expiry(wall_ms))
        interval_ms = self.config["offsets.retention.check.interval.ms"]
        self.host.call_later_ms(interval_ms, self._expire)

    def partitions_deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove the committed offsets of partitions that are being deleted."""
        if self.behaviour.offsets_go_with_their_topic:
            deleted = list(partitions)
            self.clean_up(self.all(), lambda group: group.offsets.remove(deleted))

    def clean_up(self, groups: Iterable[G], remove: Callable[[G], list[TopicPartition]]) -> None:
        """Remove offsets from groups, and remove groups left without members and offsets.

        The tombstones are not awaited: if they are lost, the offsets will be found expired again
        (Kafka: ``cleanupGroupMetadata``).
        """
        for group in list(groups):
            removed = remove(group)
            if group.is_empty and group.offsets.is_empty:
                self.end(group)
            if not self.log.is_log_hosted(group.group_id):
                continue
            pairs: list[tuple[bytes, bytes | None]] = [
                (encode_key(OffsetKey(group.group_id, *partition)), None) for partition in removed
            ]
            if group.is_dead:
                self.forget(group.group_id)
                pairs += [(key, None) for key in group.tombstones()]
            if pairs:
                self.log.append(group.group_id, pairs, _not_awaited, acks=ACKS_NONE)

    def end(self, group: AnyGroup) -> None:
        """Mark a group as dead before its removal."""
        group.end()
        if isinstance(group, Group):
            self.carry_out(group)

    def forget(self, group_id: str) -> None:
        """Remove a group that is dead."""
        self.groups.pop(group_id, None)


def _read(partition: Partition, log: Log, loaded: LoadedPartition) -> Iterator[None]:
    """Read a log to its end, one piece per step, as long as this broker leads the partition."""
    offset = log.log_start_offset
    while offset < log.log_end_offset and partition.is_leader and partition.log is log:
        try:
            batches = whole_batches(log.read(offset, LOAD_BYTES, log.log_end_offset).batches)
        except KafkaError:  # the log directory failed; the batches read so far are kept
            return
        if not batches:
            return
        for batch in batches:
            loaded.apply_batch(batch)
        offset = batches[-1].last_offset + 1
        yield


def _not_awaited(_outcome: ProducePartitionResponse) -> None:
    """Ignore the outcome: the offsets are gone even if their tombstones are lost."""
