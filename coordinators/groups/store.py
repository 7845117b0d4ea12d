"""The groups of a broker and their log (Kafka: ``GroupMetadataManager``).

What a group commits, and each of its generations, is a record of ``__consumer_offsets``. The
leader of a partition of that topic coordinates the groups that hash to it: becoming leader means
loading the partition, ceasing to be leader means forgetting its groups. Both are done one after
the other, a piece at a time, as by Kafka's thread for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

from ...protocol.config import BrokerConfig
from ...protocol.data import ProducePartitionResponse
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.groups import CONSUMER_PROTOCOL
from ...protocol.internal_topics import OFFSETS_TOPIC
from ...protocol.records.batch import whole_batches
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from ...replication.log.verification import UNGUARDED, Unguarded, VerificationGuard
from ..append_errors import APPEND_ERRORS
from ..consumer_groups.group import ConsumerGroup
from .group import Group
from .loading import LoadedPartition
from .offsets import CommitRecord, GroupOffsets
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
"""How much is loaded at once; other requests are answered in between."""
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


class AnyGroup(Protocol):
    """A group of either protocol."""

    group_id: str
    offsets: GroupOffsets

    @property
    def is_dead(self) -> bool: ...

    @property
    def is_empty(self) -> bool: ...

    @property
    def is_consumer_group(self) -> bool: ...

    @property
    def state_name(self) -> str: ...

    def end(self, wall_ms: int) -> None: ...

    def tombstones(self) -> list[bytes]: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def remove_expired_offsets(self, wall_ms: int, retention_ms: int) -> list[TopicPartition]: ...


G = TypeVar("G", bound=AnyGroup)


class GroupStore:
    """Groups by id, the partitions they live in, and what is written of them."""

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        replica_manager: ReplicaManager,
    ) -> None:
        self._host = host
        self._config = config
        self._behaviour = behaviour
        self._log = OffsetsLog(host, config, replica_manager)
        self.partition_for = self._log.partition_for
        self.groups: dict[str, Group] = {}
        """Those of the classic protocol."""
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        """Those of the consumer protocol (KIP-848), if the configuration switches it on."""
        protocols = config["group.coordinator.rebalance.protocols"]
        self.has_consumer_groups = behaviour.consumer_groups and CONSUMER_PROTOCOL in protocols
        self.owned: dict[int, None] = {}
        """Partitions of the internal topic whose groups are coordinated here."""
        self.loading: dict[int, None] = {}
        self.on_loaded: Callable[[Group], object] = lambda group: None
        self.on_unloaded: Callable[[Group], object] = lambda group: None
        self.on_consumer_group_loaded: Callable[[ConsumerGroup], object] = lambda group: None
        self._epochs: dict[int, int] = {}
        """Partition -> leader epoch in which it was loaded or unloaded last."""
        self._open_groups: dict[int, dict[str, None]] = {}
        """Producer id -> groups with offsets in its open transaction."""
        self._tasks: deque[tuple[Iterator[None], int | None]] = deque()
        self._started_ms = host.now_ms()
        self._expires = False

    # -- lookup --------------------------------------------------------------------------------

    def get_or_create(self, group_id: str) -> Group:
        """The group; an unknown one is empty."""
        group = self.groups.get(group_id)
        if group is None:
            listener = self._host.state_listener
            group = Group(group_id, self._host.wall_ms(), listener=listener)
            self.groups[group_id] = group
        return group

    def find(self, group_id: str) -> AnyGroup | None:
        """The group, of whichever protocol."""
        group = self.groups.get(group_id)
        return self.consumer_groups.get(group_id) if group is None else group

    def all(self) -> list[AnyGroup]:
        """The groups of both protocols."""
        return [*self.groups.values(), *self.consumer_groups.values()]

    def is_gone(self, group_id: str) -> bool:
        """Return whether the group would live here and does not."""
        group = self.find(group_id)
        is_dead = group is None or group.is_dead
        return is_dead and self.partition_for(group_id) in self.owned

    # -- groups that change their protocol -----------------------------------------------------

    def keep_consumer_group(self, group: ConsumerGroup) -> None:
        """The group speaks the consumer protocol now, if it did not already."""
        classic = self.groups.pop(group.group_id, None)
        if classic is not None:
            classic.vanish()
            self.on_unloaded(classic)
            group.appear(self._host.state_listener)
        self.consumer_groups[group.group_id] = group

    def keep_classic_group(self, group: Group) -> None:
        """The group speaks the classic protocol now."""
        old = self.consumer_groups.pop(group.group_id, None)
        if old is not None:
            old.vanish()
            old.end(self._host.wall_ms())
        group.appear(self._host.state_listener)
        self.groups[group.group_id] = group

    # -- loading and unloading -----------------------------------------------------------------

    def leadership_changed(
        self, leaders: Iterable[Partition], followers: Iterable[Partition]
    ) -> None:
        """Load partitions of the internal topic that this broker leads now, drop the others."""
        for partition in leaders:
            if partition.topic_partition.topic == OFFSETS_TOPIC:
                self._schedule(self._load(partition, partition.leader_epoch))
        for partition in followers:
            if partition.topic_partition.topic == OFFSETS_TOPIC:
                number = partition.topic_partition.partition
                self._schedule(self._unload(number, partition.leader_epoch))

    def partitions_stopped(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions were stopped for good; those of the internal topic are coordinated no more.

        LeaderAndIsr, which tells of other losses of leadership, goes to living replicas only.
        """
        for partition in partitions:
            if partition.topic == OFFSETS_TOPIC:
                self._schedule(self._unload(partition.partition, None))

    def forget_past(self) -> None:
        """Be as in a new cluster: no groups, and no leader epoch of the internal topic is known.

        For one whose internal topic was deleted. Kafka keeps the epochs, and coordinates nothing
        when the topic is created again until its leaders have changed as often as before.
        """
        for number in (*self.owned, *self.loading):
            self._schedule(self._unload(number, None))
        self._schedule(self._forget_groups())

    def _forget_groups(self) -> Iterator[None]:
        for group in self.groups.values():
            group.vanish()
            self.on_unloaded(group)
        for modern in self.consumer_groups.values():
            modern.vanish()
            modern.end(self._host.wall_ms())
        for kept in (self.groups, self.consumer_groups, self._open_groups, self._epochs):
            kept.clear()
        yield from ()

    @property
    def is_loading(self) -> bool:
        """Whether partitions are still to be loaded or dropped."""
        return bool(self._tasks)

    def _schedule(self, task: Iterator[None]) -> None:
        causes = self._host.causes
        self._tasks.append((task, None if causes is None else causes.current()))
        if len(self._tasks) == 1:
            self._run_tasks_soon()

    def _run_tasks_soon(self) -> None:
        host = self._host
        call_later_ms = host.call_later_ms if host.causes is None else host.causes.wake_later_ms
        call_later_ms(0, self._run_tasks)

    def _run_tasks(self) -> None:
        """Do the next piece of the first task; a task ends when it yields no more."""
        task, begun_by = self._tasks[0]
        if self._host.causes is not None:
            self._host.causes.serve("GroupStore._run_tasks", begun_by)
        for _ in task:
            break
        else:
            self._tasks.popleft()
        if self._tasks:
            self._run_tasks_soon()

    def _accept_epoch(self, number: int, epoch: int | None) -> bool:
        """Note the epoch of a change of leadership; False if it is older than the last one."""
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
        by_state = self._behaviour.offsets_expire_by_group_state
        retention_ms = None if by_state else self._retention_ms
        loaded = LoadedPartition(retention_ms, self.has_consumer_groups)
        log = partition.log
        if log is not None:
            yield from _read(partition, log, loaded)
        for producer_id, commits in loaded.pending.items():
            for key in commits:
                self._open_groups.setdefault(producer_id, {})[key.group_id] = None
        for group in loaded.groups(self._host.wall_ms()):
            if self.find(group.group_id) is not None:
                continue
            group.appear(self._host.state_listener)
            if isinstance(group, ConsumerGroup):
                self.consumer_groups[group.group_id] = group
                self.on_consumer_group_loaded(group)
            else:
                self.groups[group.group_id] = group
                self.on_loaded(group)
        self.loading.pop(number, None)
        self.owned[number] = None
        self._start_expiry()

    def _unload(self, number: int, epoch: int | None) -> Iterator[None]:
        if not self._accept_epoch(number, epoch):
            return
        self.owned.pop(number, None)
        self.loading.pop(number, None)
        gone: dict[str, None] = {}
        for group_id, group in list(self.groups.items()):
            if self.partition_for(group_id) == number:
                group.vanish()
                self.on_unloaded(group)
                del self.groups[group_id]
                gone[group_id] = None
        for group_id, modern in list(self.consumer_groups.items()):
            if self.partition_for(group_id) == number:
                modern.vanish()
                modern.end(self._host.wall_ms())
                del self.consumer_groups[group_id]
                gone[group_id] = None
        for producer_id, group_ids in list(self._open_groups.items()):
            for group_id in [g for g in group_ids if g in gone]:
                self._close_group(producer_id, group_id)
        yield from ()

    # -- transactions --------------------------------------------------------------------------

    def complete_transaction(
        self, producer_id: int, partitions: Iterable[int], is_commit: bool
    ) -> None:
        """A marker stands in these partitions of the internal topic: its offsets count, or go."""
        self._schedule(self._complete_transaction(producer_id, frozenset(partitions), is_commit))

    def _complete_transaction(
        self, producer_id: int, partitions: frozenset[int], is_commit: bool
    ) -> Iterator[None]:
        for group_id in list(self._open_groups.get(producer_id, ())):
            group = self.find(group_id)
            if self.partition_for(group_id) not in partitions or group is None:
                continue
            if not group.is_dead:
                group.offsets.complete_transaction(producer_id, is_commit)
                self._close_group(producer_id, group_id)
        yield from ()

    def _close_group(self, producer_id: int, group_id: str) -> None:
        groups = self._open_groups.get(producer_id)
        if groups is not None:
            groups.pop(group_id, None)
            if not groups:
                del self._open_groups[producer_id]

    # -- writing -------------------------------------------------------------------------------

    def store_group(
        self,
        group: Group,
        assignments: dict[str, bytes],
        done: Callable[[ErrorCode], object],
    ) -> None:
        """Write this generation of a group; ``done`` is told the error for its members."""
        key = encode_group_key(GroupKey(group.group_id))
        version = self._behaviour.group_value_version
        value = encode_group_value(group.to_value(assignments), version)

        def appended(outcome: ProducePartitionResponse) -> None:
            done(_GROUP_ERRORS.get(outcome.error, outcome.error))

        if not self._log.append(group.group_id, [(key, value)], appended):
            done(ErrorCode.NOT_COORDINATOR)

    def store_offsets(
        self,
        group: AnyGroup,
        values: Mapping[TopicPartition, OffsetValue],
        respond: Callable[[dict[TopicPartition, ErrorCode]], object],
        producer_id: int = -1,
        producer_epoch: int = -1,
        guard: VerificationGuard | Unguarded | None = UNGUARDED,
    ) -> None:
        """Write offsets; they count once they are replicated, and in a transaction once it ends."""
        longest = self._config["offset.metadata.max.bytes"]
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
            # A group that has changed its protocol meanwhile has the same offsets.
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

        if not self._log.is_here(group.group_id):
            answer(ErrorCode.NOT_COORDINATOR)
            return
        staged = values if self._behaviour.refused_offsets_stay_pending else accepted
        if in_transaction:
            self._open_groups.setdefault(producer_id, {})[group.group_id] = None
            offsets.prepare_in_transaction(producer_id, staged)
        else:
            offsets.prepare(staged)
        version = self._behaviour.offset_value_version
        pairs: list[tuple[bytes, bytes | None]] = [
            (encode_key(OffsetKey(group.group_id, *partition)), encode_value(value, version))
            for partition, value in accepted.items()
        ]
        self._log.append(
            group.group_id, pairs, appended, producer_id, producer_epoch, 0, guard=guard
        )

    # -- removal -------------------------------------------------------------------------------

    @property
    def _retention_ms(self) -> int:
        return int(self._config["offsets.retention.minutes"]) * 60_000

    def _start_expiry(self) -> None:
        """Look for what has expired every so often, counted from the start of the broker."""
        if not self._expires:
            self._expires = True
            interval_ms = self._config["offsets.retention.check.interval.ms"]
            elapsed_ms = self._host.now_ms() - self._started_ms
            self._host.call_later_ms(interval_ms - elapsed_ms % interval_ms, self._expire)

    def _expire(self) -> None:
        wall_ms = self._host.wall_ms()
        if self._behaviour.offsets_expire_by_group_state:
            retention_ms = self._retention_ms
            self.clean_up(self.all(), lambda g: g.remove_expired_offsets(wall_ms, retention_ms))
        else:
            self.clean_up(self.groups.values(), lambda g: g.remove_offsets_past_their_time(wall_ms))
        interval_ms = self._config["offsets.retention.check.interval.ms"]
        self._host.call_later_ms(interval_ms, self._expire)

    def partitions_deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget what was committed for partitions that are being deleted."""
        if self._behaviour.offsets_go_with_their_topic:
            deleted = list(partitions)
            self.clean_up(self.all(), lambda group: group.offsets.remove(deleted))

    def clean_up(self, groups: Iterable[G], remove: Callable[[G], list[TopicPartition]]) -> None:
        """Remove offsets of groups, and groups that have nothing left.

        Each group gets tombstones that nobody waits for: if they are lost, so are the offsets
        found expired once more (Kafka: ``cleanupGroupMetadata``).
        """
        for group in list(groups):
            removed = remove(group)
            if group.is_empty and group.offsets.is_empty:
                group.end(self._host.wall_ms())
            if not self._log.is_here(group.group_id):
                continue
            pairs: list[tuple[bytes, bytes | None]] = [
                (encode_key(OffsetKey(group.group_id, *partition)), None) for partition in removed
            ]
            if group.is_dead:
                self.groups.pop(group.group_id, None)
                self.consumer_groups.pop(group.group_id, None)
                pairs += [(key, None) for key in group.tombstones()]
            if pairs:
                self._log.append(group.group_id, pairs, _not_awaited, acks=ACKS_NONE)


def _read(partition: Partition, log: Log, loaded: LoadedPartition) -> Iterator[None]:
    """Read a log to its end, a piece at a time, as long as this broker leads it."""
    offset = log.log_start_offset
    while offset < log.log_end_offset and partition.is_leader and partition.log is log:
        try:
            batches = whole_batches(log.read(offset, LOAD_BYTES, log.log_end_offset).batches)
        except KafkaError:  # the log directory failed; what was read before counts
            return
        if not batches:
            return
        for batch in batches:
            loaded.take(batch)
        offset = batches[-1].last_offset + 1
        yield


def _not_awaited(_outcome: ProducePartitionResponse) -> None:
    """Ignore the fate of tombstones: without them the offsets are gone, too."""
