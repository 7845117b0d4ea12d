"""Describing, listing and deleting groups (Kafka: ``GroupCoordinator.handleDescribeGroup`` and its
neighbours)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol.errors import ErrorCode
from ...protocol.groups import (
    CLASSIC_PROTOCOL,
    CONSUMER_PROTOCOL,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from .gate import GroupGate
from .state import GroupState
from .store import AnyGroup, GroupStore

if TYPE_CHECKING:
    from ...protocol.host import Host
    from ...replication.partition.metadata_cache import MetadataCache

_NONE = ErrorCode.NONE


class GroupAdministration:
    """Answers administrators."""

    __slots__ = ("_behaviour", "_gate", "_host", "_metadata_cache", "_store")

    def __init__(
        self,
        host: Host,
        behaviour: Behaviour,
        metadata_cache: MetadataCache,
        store: GroupStore,
        gate: GroupGate,
    ) -> None:
        self._host = host
        self._behaviour = behaviour
        self._metadata_cache = metadata_cache
        self._store = store
        self._gate = gate

    def state_name(self, state: GroupState) -> str:
        """Return the name of a state for clients; AwaitingSync until 1.1."""
        if self._behaviour.awaiting_sync_state and state is GroupState.COMPLETING_REBALANCE:
            return "AwaitingSync"
        return state.value

    def describe(self, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        """States and members; a group that nobody knows is Dead, which is no error."""
        return DescribeGroupsResponse(tuple(self._describe(name) for name in request.group_ids))

    def _describe(self, group_id: str) -> DescribedGroup:
        error = self._gate.refusal(group_id, may_be_nameless=True)
        if error is not _NONE:
            return DescribedGroup(error, group_id)
        group = self._store.groups.get(group_id)
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

    def list(self, request: ListGroupsRequest) -> ListGroupsResponse:
        """The groups of this broker, of the states and types asked for."""
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self._store.loading else _NONE
        wanted = frozenset(request.states)
        if self._behaviour.group_filters_ignore_case:
            wanted = frozenset(state.lower() for state in wanted)
        types = frozenset(name.lower() for name in request.types)
        groups = []
        for group in self._store.groups.values() if not types or CLASSIC_PROTOCOL in types else ():
            state = self.state_name(group.state)
            shown = state.lower() if self._behaviour.group_filters_ignore_case else state
            if not wanted or shown in wanted:
                groups.append(ListedGroup(group.group_id, group.protocol_type or "", state))
        if not types or CONSUMER_PROTOCOL in types:
            for modern in self._store.consumer_groups.values():
                state = modern.state_name
                if not wanted or state.lower() in wanted:
                    listed = modern.group_id, modern.protocol_type, state, CONSUMER_PROTOCOL
                    groups.append(ListedGroup(*listed))
        return ListGroupsResponse(error, tuple(groups))

    def delete(self, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        """Delete groups without members, with their offsets (KIP-229)."""
        errors: dict[str, ErrorCode] = {}
        eligible: list[AnyGroup] = []
        for group_id in dict.fromkeys(request.group_ids):
            error, group = self._find(group_id)
            if group is not None:
                if group.is_empty:
                    group.end(self._host.wall_ms())
                    eligible.append(group)
                else:
                    error = ErrorCode.NON_EMPTY_GROUP
            errors[group_id] = error
        self._store.clean_up(eligible, lambda g: g.offsets.remove(tuple(g.offsets.committed)))
        return DeleteGroupsResponse(tuple(errors.items()))

    def _find(
        self, group_id: str, *, may_be_nameless: bool | None = None
    ) -> tuple[ErrorCode, AnyGroup | None]:
        """A living group, or why there is none."""
        if may_be_nameless is None:
            may_be_nameless = self._behaviour.loading_told_before_ownership
        error = self._gate.refusal(group_id, may_be_nameless=may_be_nameless, must_be_named=True)
        if error is not _NONE:
            return error, None
        group = self._store.find(group_id)
        if group is None or group.is_dead:
            is_gone = self._store.is_gone(group_id)
            return ErrorCode.GROUP_ID_NOT_FOUND if is_gone else ErrorCode.NOT_COORDINATOR, None
        return _NONE, group

    def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        """Delete offsets of topics that no member reads (KIP-496)."""
        errors: dict[TopicPartition, ErrorCode] = {}
        known = []
        for partition in dict.fromkeys(request.partitions):
            if self._metadata_cache.contains(partition):
                known.append(partition)
            else:
                errors[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error, group = self._find(request.group_id, may_be_nameless=False)
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
