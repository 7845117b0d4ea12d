"""Committing and fetching offsets (docs/kafka/groups-and-transactions.md#committed-offsets; Kafka:
``GroupCoordinator.handleCommitOffsets``, ``handleTxnCommitOffsets``, ``handleFetchOffsets``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode
from ...protocol.groups import (
    NO_GENERATION,
    NO_MEMBER,
    CommittedOffset,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from ...replication.log.verification import UNGUARDED, Unguarded, VerificationGuard
from ..consumer_groups.offsets import FIRST_COMMIT_VERSION, commit_refusal, fetch_refusal
from .gate import GroupGate
from .group import Group
from .rebalances import Rebalances
from .records import OffsetValue
from .state import GroupState
from .store import AnyGroup, GroupStore

if TYPE_CHECKING:
    from ...protocol.host import Host
    from ...replication.partition.metadata_cache import MetadataCache

NEWEST_COMMIT_VERSION = 9
_NONE = ErrorCode.NONE
_NO_PRODUCER_EPOCH = -1
Errors = dict[TopicPartition, ErrorCode]


class TransactionalCommit(NamedTuple):
    """Offsets that count when the transaction of a producer commits (KIP-98, KIP-447)."""

    group_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[OffsetCommitPartition, ...]
    member_id: str = NO_MEMBER
    group_instance_id: str | None = None
    generation: int = NO_GENERATION
    guard: VerificationGuard | Unguarded | None = UNGUARDED
    """The one that the transaction was verified with (KIP-890)."""


class Commits:
    """Checks who commits, stores what may be, and tells what is committed."""

    __slots__ = (
        "_behaviour", "_config", "_gate", "_host", "_metadata_cache", "_rebalances", "_store",
    )  # fmt: skip

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        metadata_cache: MetadataCache,
        store: GroupStore,
        gate: GroupGate,
        rebalances: Rebalances,
    ) -> None:
        self._host = host
        self._config = config
        self._behaviour = behaviour
        self._metadata_cache = metadata_cache
        self._store = store
        self._gate = gate
        self._rebalances = rebalances

    # -- OffsetCommit --------------------------------------------------------------------------

    def commit(
        self,
        request: OffsetCommitRequest,
        respond: Callable[[OffsetCommitResponse], object],
        api_version: int = NEWEST_COMMIT_VERSION,
    ) -> None:
        """Store offsets; answered once they are replicated."""
        partitions = request.partitions
        values = self._values_of_known(partitions, request.retention_time_ms)

        def answer(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            names = (partition.topic_partition for partition in partitions)
            respond(OffsetCommitResponse(tuple((n, errors.get(n, unknown)) for n in names)))

        if not values:
            answer({})
            return
        error, group = self._check_commit(request, api_version)
        if group is None or error is not _NONE:
            answer(dict.fromkeys(values, error))
            return
        self._store.store_offsets(group, values, answer)

    def _values_of_known(
        self, partitions: tuple[OffsetCommitPartition, ...], retention_time_ms: int = -1
    ) -> dict[TopicPartition, OffsetValue]:
        """Return the values to be stored for the partitions that exist."""
        wall_ms = self._host.wall_ms()
        known = self._metadata_cache.takes_offsets
        return {
            partition.topic_partition: OffsetValue(
                partition.offset,
                partition.leader_epoch,
                partition.metadata,
                wall_ms if partition.commit_timestamp_ms < 0 else partition.commit_timestamp_ms,
                self._expiry_ms(partition, wall_ms, retention_time_ms),
            )
            for partition in partitions
            if known(partition.topic_partition)
        }

    def _expiry_ms(
        self, partition: OffsetCommitPartition, wall_ms: int, retention_time_ms: int
    ) -> int:
        """When the offset ends by itself; -1 to leave that to the state of the group (KIP-211)."""
        if self._behaviour.offsets_expire_by_group_state:
            return -1 if retention_time_ms == -1 else wall_ms + retention_time_ms
        if retention_time_ms == -1:
            retention_time_ms = self._config["offsets.retention.minutes"] * 60_000
        committed_ms = partition.commit_timestamp_ms
        return (wall_ms if committed_ms < 0 else committed_ms) + retention_time_ms

    def _check_commit(
        self, request: OffsetCommitRequest, api_version: int
    ) -> tuple[ErrorCode, AnyGroup | None]:
        error = self._gate.refusal(request.group_id, may_be_nameless=True)
        if error is not _NONE:
            return error, None
        modern = self._store.consumer_groups.get(request.group_id)
        if modern is not None:
            member_id, epoch = request.member_id, request.generation
            return commit_refusal(modern, member_id, epoch, api_version), modern
        group = self._store.groups.get(request.group_id)
        if group is None:
            if request.generation >= 0:
                knows = self._store.has_consumer_groups and api_version >= FIRST_COMMIT_VERSION
                unknown = ErrorCode.GROUP_ID_NOT_FOUND if knows else ErrorCode.ILLEGAL_GENERATION
                return unknown, None
            group = self._store.get_or_create(request.group_id)
        return self._check_member(group, request), group

    def _check_member(self, group: Group, request: OffsetCommitRequest) -> ErrorCode:
        """Only members of the generation commit, unless the group has none."""
        checks_state_first = self._behaviour.commits_check_state_first
        is_completing = group.state is GroupState.COMPLETING_REBALANCE
        if request.generation < 0 and group.state is GroupState.EMPTY:
            return _NONE
        if checks_state_first and is_completing:
            return ErrorCode.REBALANCE_IN_PROGRESS
        error = self._gate.member_error(group, request.member_id, request.group_instance_id)
        if error is not _NONE:
            return error
        if request.generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if is_completing:
            return ErrorCode.REBALANCE_IN_PROGRESS
        self._rebalances.extend_session(group, group.members[request.member_id])
        return _NONE

    # -- TxnOffsetCommit -----------------------------------------------------------------------

    def commit_in_transaction(
        self, commit: TransactionalCommit, respond: Callable[[Errors], object]
    ) -> None:
        """Store offsets in the producer's transaction; the caller knows that it is one.

        Unknown partitions are answered with UNKNOWN_TOPIC_OR_PARTITION, the others once their
        records are replicated.
        """
        partitions = commit.partitions
        values = self._values_of_known(partitions)

        def answer(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            names = (partition.topic_partition for partition in partitions)
            respond({name: errors.get(name, unknown) for name in names})

        if not values:
            answer({})
            return
        error = self._gate.refusal(commit.group_id)
        if error is not _NONE:
            answer(dict.fromkeys(values, error))
            return
        group: AnyGroup
        modern = self._store.consumer_groups.get(commit.group_id)
        if modern is not None:
            group = modern
            error = commit_refusal(modern, commit.member_id, commit.generation, None)
        else:
            group = classic = self._store.get_or_create(commit.group_id)
            error = self._check_transactional_member(classic, commit)
        if error is not _NONE:
            answer(dict.fromkeys(values, error))
            return
        if commit.producer_epoch == _NO_PRODUCER_EPOCH:
            # MemoryRecordsBuilder.validateProducerState throws, and the whole request fails.
            failed = ErrorCode.UNKNOWN_SERVER_ERROR
            respond({partition.topic_partition: failed for partition in partitions})
            return
        producer = commit.producer_id, commit.producer_epoch
        self._store.store_offsets(group, values, answer, *producer, commit.guard)

    def _check_transactional_member(self, group: Group, commit: TransactionalCommit) -> ErrorCode:
        """Member and generation are checked where the producer names them (KIP-447)."""
        if group.state is GroupState.DEAD:
            return self._gate.dead_group_error
        if self._behaviour.instance_id_must_be_known:
            if commit.generation < 0 and group.state is GroupState.EMPTY:
                return _NONE
            is_named = (
                commit.generation >= 0
                or commit.member_id != NO_MEMBER
                or commit.group_instance_id is not None
            )
            if not is_named:
                return _NONE
            error = self._gate.member_error(group, commit.member_id, commit.group_instance_id)
            if error is _NONE and commit.generation != group.generation:
                return ErrorCode.ILLEGAL_GENERATION
            return error
        current = group.static_member_id(commit.group_instance_id)
        if current is not None and current != commit.member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        if commit.member_id != NO_MEMBER and commit.member_id not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if commit.generation >= 0 and commit.generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return _NONE

    # -- OffsetFetch ---------------------------------------------------------------------------

    def fetch(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        """Committed offsets; -1 where a group has none, which is no error."""
        error = self._gate.refusal(request.group_id, may_be_nameless=True)
        if error is not _NONE:
            return OffsetFetchResponse(error, ())
        modern = self._store.consumer_groups.get(request.group_id)
        if modern is not None:
            error = fetch_refusal(modern, request.member_id, request.member_epoch)
            if error is not _NONE:
                return OffsetFetchResponse(error, ())
        group = self._store.find(request.group_id)
        wanted = request.partitions
        if group is None or group.is_dead:
            nothing = tuple(CommittedOffset(partition, _NONE) for partition in wanted or ())
            return OffsetFetchResponse(_NONE, nothing)
        asks_for_all = wanted is None or (
            not wanted and self._behaviour.empty_offset_fetch_means_all
        )
        partitions = sorted(group.offsets.committed) if asks_for_all else wanted or ()
        return OffsetFetchResponse(
            _NONE,
            tuple(_committed(group, partition, request.require_stable) for partition in partitions),
        )


def _committed(group: AnyGroup, partition: TopicPartition, require_stable: bool) -> CommittedOffset:
    if require_stable and group.offsets.is_unstable(partition):
        return CommittedOffset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    value = group.offsets.get(partition)
    if value is None:
        return CommittedOffset(partition, _NONE)
    return CommittedOffset(partition, _NONE, value.offset, value.leader_epoch, value.metadata)
