"""Checks of every request to a group: whether this broker coordinates it, and whether
its sender is a member (Kafka: ``GroupCoordinator.validateGroupStatus``, ``validateCurrentMember``).
"""

from __future__ import annotations

from ...protocol.errors import ErrorCode
from ...protocol.versions import Behaviour
from .group import Group
from .state import GroupState
from .store import GroupStore

_NONE = ErrorCode.NONE


class GroupGate:
    """Refuses requests before they reach a group."""

    __slots__ = ("_behaviour", "_store", "dead_group_error")

    def __init__(self, behaviour: Behaviour, store: GroupStore) -> None:
        self._behaviour = behaviour
        self._store = store
        self.dead_group_error = (
            ErrorCode.COORDINATOR_NOT_AVAILABLE
            if behaviour.dead_group_is_unavailable
            else ErrorCode.UNKNOWN_MEMBER_ID
        )
        """For a group that was removed a moment ago, or has moved: look for it, join anew."""

    def refusal(
        self,
        group_id: str,
        *,
        may_be_nameless: bool = False,
        must_be_named: bool = False,
        told_of_loading: bool = True,
    ) -> ErrorCode:
        """Why the group is not to be looked at here.

        The group without a name has offsets only, but can be described and deleted. Before 2.0 a
        partition that was still being loaded counted as coordinated elsewhere, a sync was never
        told of loading, and only those who joined or deleted a group had to name it.
        """
        if (
            not group_id
            and not may_be_nameless
            and (must_be_named or self._behaviour.empty_group_ids_refused)
        ):
            return ErrorCode.INVALID_GROUP_ID
        store = self._store
        number = store.partition_for(group_id)
        if self._behaviour.loading_told_before_ownership:
            if number in store.loading:
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return _NONE if number in store.owned else ErrorCode.NOT_COORDINATOR
        if number not in store.owned:
            return ErrorCode.NOT_COORDINATOR
        if told_of_loading and number in store.loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return _NONE

    def member_error(
        self, group: Group, member_id: str, group_instance_id: str | None
    ) -> ErrorCode:
        """Why the sender is no member: the group is gone, another has its place, or no such id."""
        if group.state is GroupState.DEAD:
            return self.dead_group_error
        if group_instance_id is not None:
            current = group.static_members.get(group_instance_id)
            if current is None:
                if self._behaviour.instance_id_must_be_known:
                    return ErrorCode.UNKNOWN_MEMBER_ID
            elif current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return _NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID
