"""The group coordinator of a broker (docs/kafka/groups-and-transactions.md; Kafka:
``GroupCoordinator``).

The coordinator passes each request to its group and has the store carry out the effects that the
group requests. It answers requests that only read offsets or describe groups itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ...protocol.errors import ErrorCode
from ...protocol.groups import (
    CLASSIC_PROTOCOL,
    NO_MEMBER,
    CommittedOffset,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeftMember,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from ...protocol.values import TopicPartition, changed
from .effects import JoinReply, SyncReply
from .group import GroupState, JoiningClient, failed_join
from .loading import AnyGroup
from .offsets import TransactionalCommit
from .records import OffsetValue
from .store import GroupStore

if TYPE_CHECKING:
    from ...replication.partition.metadata_cache import MetadataCache
    from ...replication.partition.partition import Partition
    from .group import Group

NEWEST_COMMIT_VERSION = 9
_NONE = ErrorCode.NONE
_UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
_NO_PRODUCER_EPOCH = -1
Errors = dict[TopicPartition, ErrorCode]


class GroupCoordinator:
    """Serves members and administrators of the groups that this broker coordinates."""

    def __init__(self, store: GroupStore, metadata_cache: MetadataCache) -> None:
        self._store = store
        self._host = store.host
        self._config = store.config
        self._behaviour = store.behaviour
        self._metadata_cache = metadata_cache
        self.groups: dict[str, Group] = store.groups
        """Groups of the classic protocol coordinated here, by id; read-only for other classes."""
        self.partition_for: Callable[[str], int] = store.log.partition_for

    # -- leadership ----------------------------------------------------------------------------

    def leadership_changed(
        self, leaders: Iterable[Partition], followers: Iterable[Partition]
    ) -> None:
        """Load ``leaders`` and unload ``followers``, if they are of the internal topic."""
        self._store.leadership_changed(leaders, followers)

    def reset(self) -> None:
        """Drop all groups, as if the internal topic were new; see ``GroupStore.reset``."""
        self._store.reset()

    @property
    def is_loading(self) -> bool:
        """True while partitions of the internal topic remain to be loaded or unloaded."""
        return self._store.is_loading

    def partitions_stopped(self, partitions: Iterable[TopicPartition]) -> None:
        """Unload stopped partitions of the internal topic."""
        self._store.partitions_stopped(partitions)

    def partitions_deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove the committed offsets of partitions that are being deleted."""
        self._store.partitions_deleted(partitions)

    def topics_changed(self, topics: Iterable[str]) -> None:
        """Ignore changes of topics, which groups of the classic protocol do not depend on."""

    def transaction_completed(
        self, producer_id: int, partitions: Iterable[int], is_commit: bool
    ) -> None:
        """Commit or discard a transaction's offsets, as these partitions now have its marker."""
        self._store.complete_transaction(producer_id, partitions, is_commit)

    def find(self, group_id: str) -> AnyGroup | None:
        """Return the group, of either protocol, if it is coordinated here; read-only."""
        return self._store.find(group_id)

    def group_status_error(
        self,
        group_id: str,
        *,
        allows_empty_group_id: bool = False,
        requires_group_id: bool = False,
        reports_loading: bool = True,
    ) -> ErrorCode:
        """Return why requests for the group are refused, or NONE
        (``GroupCoordinator.validateGroupStatus``).

        The group with an empty id only has offsets, but can be described and deleted. Before 2.0 a
        partition being loaded counted as coordinated elsewhere, SyncGroup never returned the error
        of loading, and only JoinGroup and DeleteGroups required a group id.
        """
        if (
            not group_id
            and not allows_empty_group_id
            and (requires_group_id or self._behaviour.empty_group_ids_refused)
        ):
            return ErrorCode.INVALID_GROUP_ID
        number = self.partition_for(group_id)
        is_loading, is_owned = number in self._store.loading, number in self._store.owned
        if self._behaviour.loading_told_before_ownership:
            if is_loading:
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return _NONE if is_owned else ErrorCode.NOT_COORDINATOR
        if not is_owned:
            return ErrorCode.NOT_COORDINATOR
        if reports_loading and is_loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return _NONE

    # -- members -------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, client: JoiningClient, reply: JoinReply) -> None:
        """Join a group; reply when the rebalance ends, or at once if none is needed."""
        if not self._behaviour.protocols_counted_as_named:
            request = _with_each_protocol_once(request)
        group = None
        error = self.group_status_error(request.group_id, requires_group_id=True)
        if error is _NONE and not self.accepts_session_timeout(request):
            error = ErrorCode.INVALID_SESSION_TIMEOUT
        if error is _NONE:
            if request.member_id == NO_MEMBER:
                group = self._store.get_or_create(request.group_id)
            else:
                group, error = self.groups.get(request.group_id), _UNKNOWN
        if group is None:
            reply(failed_join(request.member_id, error, self._behaviour))
            return
        group.join(request, client, reply)
        self._store.carry_out(group)

    def accepts_session_timeout(self, request: JoinGroupRequest) -> bool:
        """Return whether the session timeout is within the configured limits."""
        shortest: int = self._config["group.min.session.timeout.ms"]
        longest: int = self._config["group.max.session.timeout.ms"]
        return shortest <= request.session_timeout_ms <= longest

    def sync(self, request: SyncGroupRequest, reply: SyncReply) -> None:
        """Reply with the member's assignment, once the leader's request has brought it."""
        error = self.group_status_error(request.group_id, reports_loading=False)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The rebalance is lost, and older clients do not expect the error of loading here.
            error = ErrorCode.REBALANCE_IN_PROGRESS
        group = self.groups.get(request.group_id)
        if error is not _NONE or group is None:
            reply(SyncGroupResponse(_UNKNOWN if error is _NONE else error))
            return
        group.sync(request, reply)
        self._store.carry_out(group)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Record a heartbeat; return REBALANCE_IN_PROGRESS if the member must rejoin."""
        error = self.group_status_error(request.group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return _NONE
        if error is not _NONE:
            return error
        group = self.groups.get(request.group_id)
        if group is None:
            return _UNKNOWN
        error = group.heartbeat(request)
        self._store.carry_out(group)
        return error

    def leave(
        self, request: LeaveGroupRequest, respond: Callable[[LeaveGroupResponse], object]
    ) -> None:
        """Remove members that leave, or static members that an administrator removes."""
        error = self.group_status_error(request.group_id)
        group = self.groups.get(request.group_id)
        if error is _NONE and group is not None and group.is_dead:
            error = group.dead_error
        if error is not _NONE:
            respond(LeaveGroupResponse(error))
            return
        left = []
        for leaving in request.members:
            if group is not None:
                error = group.leave(leaving)
                self._store.carry_out(group)
            left.append(
                LeftMember(
                    leaving.member_id,
                    leaving.group_instance_id,
                    _UNKNOWN if group is None else error,
                )
            )
        respond(LeaveGroupResponse(_NONE, tuple(left)))

    # -- OffsetCommit and TxnOffsetCommit ------------------------------------------------------

    def commit(
        self,
        request: OffsetCommitRequest,
        respond: Callable[[OffsetCommitResponse], object],
        api_version: int = NEWEST_COMMIT_VERSION,
    ) -> None:
        """Store offsets; respond once they are replicated."""
        partitions = request.partitions
        values = self._offset_values(partitions, request.retention_time_ms)

        def answer(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            names = (partition.topic_partition for partition in partitions)
            respond(OffsetCommitResponse(tuple((n, errors.get(n, unknown)) for n in names)))

        if not values:
            answer({})
            return
        group: AnyGroup | None = None
        error = self.group_status_error(request.group_id, allows_empty_group_id=True)
        if error is _NONE:
            group, error = self._group_to_commit(request, api_version)
        if group is None or error is not _NONE:
            answer(dict.fromkeys(values, error))
            return
        self._store.store_offsets(group, values, answer)

    def _group_to_commit(
        self, request: OffsetCommitRequest, api_version: int
    ) -> tuple[AnyGroup | None, ErrorCode]:
        """Return the group, and why it refuses the offsets, or NONE."""
        group = self.groups.get(request.group_id)
        if group is None:
            if request.generation >= 0:
                return None, self._unknown_group_error(api_version)
            group = self._store.get_or_create(request.group_id)
        error = group.commit(request)
        self._store.carry_out(group)
        return group, error

    def _unknown_group_error(self, _api_version: int) -> ErrorCode:
        """Return the error for a commit with a generation to a group that does not exist."""
        return ErrorCode.ILLEGAL_GENERATION

    def _offset_values(
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
        """Return when the offset expires; -1 if that depends on the state of the group
        (KIP-211)."""
        if self._behaviour.offsets_expire_by_group_state:
            return -1 if retention_time_ms == -1 else wall_ms + retention_time_ms
        if retention_time_ms == -1:
            retention_time_ms = self._config["offsets.retention.minutes"] * 60_000
        committed_ms = partition.commit_timestamp_ms
        return (wall_ms if committed_ms < 0 else committed_ms) + retention_time_ms

    def validate_commit_in_transaction(self, group_id: str) -> ErrorCode:
        """Return why a transactional commit is refused, or NONE, before its verification.

        This creates the group, even if the commit then fails (KIP-890,
        ``GroupCoordinator.handleTxnCommitOffsets``).
        """
        error = self.group_status_error(group_id)
        if error is _NONE:
            self._store.get_or_create(group_id)
        return error

    def commit_in_transaction(
        self, commit: TransactionalCommit, respond: Callable[[Errors], object]
    ) -> None:
        """Store offsets in the producer's transaction, which the caller has verified.

        ``respond`` is called once the records are replicated; the error of unknown partitions is
        UNKNOWN_TOPIC_OR_PARTITION.
        """
        partitions = commit.partitions
        values = self._offset_values(partitions)

        def answer(errors: Mapping[TopicPartition, ErrorCode]) -> None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            names = (partition.topic_partition for partition in partitions)
            respond({name: errors.get(name, unknown) for name in names})

        if not values:
            answer({})
            return
        error = self.group_status_error(commit.group_id)
        if error is not _NONE:
            answer(dict.fromkeys(values, error))
            return
        group, error = self._group_to_commit_in_transaction(commit)
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

    def _group_to_commit_in_transaction(
        self, commit: TransactionalCommit
    ) -> tuple[AnyGroup, ErrorCode]:
        group = self._store.get_or_create(commit.group_id)
        return group, group.commit_in_transaction(commit)

    # -- OffsetFetch ---------------------------------------------------------------------------

    def fetch_offsets(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        """Return committed offsets; -1, without an error, for partitions that have none."""
        error = self._offset_fetch_error(request)
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
        is_stable = request.require_stable and self._behaviour.stable_offset_fetch
        return OffsetFetchResponse(
            _NONE, tuple(group.offsets.fetch(partition, is_stable) for partition in partitions)
        )

    def _offset_fetch_error(self, request: OffsetFetchRequest) -> ErrorCode:
        return self.group_status_error(request.group_id, allows_empty_group_id=True)

    # -- administrators ------------------------------------------------------------------------

    def state_name(self, state: GroupState) -> str:
        """Return the name of a state for clients; CompletingRebalance was AwaitingSync before
        1.1."""
        if self._behaviour.awaiting_sync_state and state is GroupState.COMPLETING_REBALANCE:
            return "AwaitingSync"
        return state.value

    def describe_groups(self, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        """Return the states and members of groups; an unknown group is Dead, without an error."""
        return DescribeGroupsResponse(tuple(self._describe(name) for name in request.group_ids))

    def _describe(self, group_id: str) -> DescribedGroup:
        error = self.group_status_error(group_id, allows_empty_group_id=True)
        if error is not _NONE:
            return DescribedGroup(error, group_id)
        group = self.groups.get(group_id)
        if group is None:
            return DescribedGroup(_NONE, group_id, GroupState.DEAD.value)
        is_stable = group.state is GroupState.STABLE
        return DescribedGroup(
            _NONE,
            group_id,
            self.state_name(group.state),
            group.protocol_type or "",
            (group.protocol or "") if is_stable else "",
            group.described_members(),
        )

    def list_groups(self, request: ListGroupsRequest) -> ListGroupsResponse:
        """List the groups of this broker that have the requested states and types."""
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self._store.loading else _NONE
        return ListGroupsResponse(error, tuple(self._listed(request)))

    def _listed(self, request: ListGroupsRequest) -> list[ListedGroup]:
        ignores_case = self._behaviour.group_filters_ignore_case
        wanted = frozenset(s.lower() if ignores_case else s for s in request.states)
        types = [name.lower() for name in request.types]
        found = []
        for group in self.groups.values() if not types or CLASSIC_PROTOCOL in types else ():
            state = self.state_name(group.state)
            if not wanted or (state.lower() if ignores_case else state) in wanted:
                found.append(ListedGroup(group.group_id, group.protocol_type or "", state))
        return found

    def delete_groups(self, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        """Delete groups without members, with their offsets (KIP-229)."""
        errors: dict[str, ErrorCode] = {}
        eligible: list[AnyGroup] = []
        allows_empty_group_id = self._behaviour.loading_told_before_ownership
        for group_id in dict.fromkeys(request.group_ids):
            error, group = self._find_live_group(group_id, allows_empty_group_id)
            if group is not None:
                if group.is_empty:
                    self._store.end(group)
                    eligible.append(group)
                else:
                    error = ErrorCode.NON_EMPTY_GROUP
            errors[group_id] = error
        self._store.clean_up(eligible, lambda g: g.offsets.remove(tuple(g.offsets.committed)))
        return DeleteGroupsResponse(tuple(errors.items()))

    def _find_live_group(
        self, group_id: str, allows_empty_group_id: bool
    ) -> tuple[ErrorCode, AnyGroup | None]:
        """Return a group that is not dead, or the error if there is none."""
        error = self.group_status_error(
            group_id, allows_empty_group_id=allows_empty_group_id, requires_group_id=True
        )
        if error is not _NONE:
            return error, None
        group = self._store.find(group_id)
        if group is None or group.is_dead:
            is_missing = self._store.is_missing(group_id)
            return ErrorCode.GROUP_ID_NOT_FOUND if is_missing else ErrorCode.NOT_COORDINATOR, None
        return _NONE, group

    def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        """Delete offsets of topics to which no member is subscribed (KIP-496)."""
        errors: dict[TopicPartition, ErrorCode] = {}
        known = []
        for partition in dict.fromkeys(request.partitions):
            if self._metadata_cache.contains(partition):
                known.append(partition)
            else:
                errors[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error, group = self._find_live_group(request.group_id, allows_empty_group_id=False)
        if group is None:
            return OffsetDeleteResponse(error)
        if not group.is_empty:
            if not group.is_consumer_group:
                return OffsetDeleteResponse(ErrorCode.NON_EMPTY_GROUP)
            for partition in known:
                if group.is_subscribed_to(partition.topic):
                    errors[partition] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        eligible = [partition for partition in known if partition not in errors]
        errors.update(dict.fromkeys(eligible, _NONE))
        if eligible:
            self._store.clean_up((group,), lambda g: g.offsets.remove(eligible))
        return OffsetDeleteResponse(_NONE, tuple(errors.items()))


def _with_each_protocol_once(request: JoinGroupRequest) -> JoinGroupRequest:
    """Drop repeated protocols, keeping the first of each name."""
    first: dict[str, bytes] = {}
    for name, metadata in request.protocols:
        first.setdefault(name, metadata)
    if len(first) == len(request.protocols):
        return request
    return changed(request, protocols=tuple(first.items()))
