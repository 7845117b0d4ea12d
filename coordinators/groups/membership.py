"""Requests of members between rebalances: SyncGroup, Heartbeat, LeaveGroup
(docs/kafka/groups-and-transactions.md#joining; Kafka: ``GroupCoordinator.handleSyncGroup``,
``handleHeartbeat``, ``handleLeaveGroup``)."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.errors import ErrorCode
from ...protocol.groups import (
    NO_MEMBER,
    HeartbeatRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from ...protocol.versions import Behaviour
from .gate import GroupGate
from .group import Group
from .member import SyncAnswer
from .rebalances import Rebalances, told
from .state import GroupState
from .store import GroupStore

_NONE = ErrorCode.NONE
_UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


class Membership:
    """Answers members, and tells the rebalances what they did."""

    __slots__ = ("_behaviour", "_gate", "_rebalances", "_store")

    def __init__(
        self,
        behaviour: Behaviour,
        store: GroupStore,
        gate: GroupGate,
        rebalances: Rebalances,
    ) -> None:
        self._behaviour = behaviour
        self._store = store
        self._gate = gate
        self._rebalances = rebalances

    # -- SyncGroup -----------------------------------------------------------------------------

    def sync(self, request: SyncGroupRequest, respond: SyncAnswer) -> None:
        """Answered with the assignment; the leader's request brings it."""
        group, error = self._find_for_sync(request)
        if group is None or error is not _NONE:
            respond(SyncGroupResponse(error))
            return
        member = group.members[request.member_id]
        if group.state is GroupState.STABLE:
            self._rebalances.synced(group, member.member_id)
            respond(self._rebalances.assignment(group, member))
            self._rebalances.extend_session(group, member)
            return
        member.awaiting_sync = respond
        self._rebalances.synced(group, member.member_id)
        if group.leader == member.member_id:
            self._store_assignments(group, dict(request.assignments), request.member_id)

    def _find_for_sync(self, request: SyncGroupRequest) -> tuple[Group | None, ErrorCode]:
        error = self._gate.refusal(request.group_id, told_of_loading=False)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The rebalance is lost. Older clients do not know the error of loading here.
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is not _NONE:
            return None, error
        group = self._store.groups.get(request.group_id)
        if group is None:
            return None, _UNKNOWN
        error = self._gate.member_error(group, request.member_id, request.group_instance_id)
        if error is not _NONE:
            return group, error
        if request.generation != group.generation:
            return group, ErrorCode.ILLEGAL_GENERATION
        if request.protocol_type not in (None, group.protocol_type) or (
            request.protocol not in (None, group.protocol)
        ):
            return group, ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.state is GroupState.PREPARING_REBALANCE:
            return group, ErrorCode.REBALANCE_IN_PROGRESS
        return group, _NONE

    def _store_assignments(self, group: Group, assignments: dict[str, bytes], leader: str) -> None:
        """Write the leader's assignment; members that it forgot get an empty one."""
        generation = group.generation
        complete = {member_id: assignments.get(member_id, b"") for member_id in group.members}

        def stored(error: ErrorCode) -> None:
            # Meanwhile another member may have joined: then there is nothing to hand out.
            is_present = group.generation == generation
            if group.state is not GroupState.COMPLETING_REBALANCE or not is_present:
                return
            if error is _NONE:
                self._rebalances.hand_out(group, complete)
                self._rebalances.become_stable(group)
            else:
                self._rebalances.fail_assignments(group, error)
                self._rebalances.maybe_prepare(
                    group, f"error {error.name} when storing the assignment of {leader}"
                )

        self._store.store_group(group, complete, stored)

    # -- Heartbeat -----------------------------------------------------------------------------

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """The member lives; REBALANCE_IN_PROGRESS asks it to join again."""
        error = self._gate.refusal(request.group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return _NONE
        if error is not _NONE:
            return error
        group = self._store.groups.get(request.group_id)
        if group is None:
            return _UNKNOWN
        error = self._gate.member_error(group, request.member_id, request.group_instance_id)
        if error is not _NONE:
            return error
        state = group.state
        accepts_all = self._behaviour.heartbeats_before_sync
        if state is GroupState.COMPLETING_REBALANCE and not accepts_all:
            return ErrorCode.REBALANCE_IN_PROGRESS
        if request.generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self._rebalances.extend_session(group, group.members[request.member_id])
        if state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return _NONE

    # -- LeaveGroup ----------------------------------------------------------------------------

    def leave(
        self, request: LeaveGroupRequest, respond: Callable[[LeaveGroupResponse], object]
    ) -> None:
        """Members leave of their own will, or an administrator removes static ones."""
        respond(self._left(request))

    def _left(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        error = self._gate.refusal(request.group_id)
        if error is not _NONE:
            return LeaveGroupResponse(error)
        group = self._store.groups.get(request.group_id)
        if group is not None and group.state is GroupState.DEAD:
            return LeaveGroupResponse(self._gate.dead_group_error)
        return LeaveGroupResponse(
            _NONE,
            tuple(
                LeftMember(
                    leaving.member_id,
                    leaving.group_instance_id,
                    _UNKNOWN if group is None else self._leave(group, leaving),
                )
                for leaving in request.members
            ),
        )

    def _leave(self, group: Group, leaving: LeavingMember) -> ErrorCode:
        member_id: str | None = leaving.member_id
        static_id = group.static_member_id(leaving.group_instance_id)
        if member_id == NO_MEMBER:
            member_id = static_id
            if member_id is None:
                return _UNKNOWN
        elif member_id in group.pending_members:
            self._rebalances.remove_pending(group, leaving.member_id)
            return _NONE
        else:
            error = self._gate.member_error(group, leaving.member_id, leaving.group_instance_id)
            if error is not _NONE:
                return error
        member = group.members[member_id or ""]
        self._rebalances.remove_member(
            group,
            member,
            f"removing member {member.member_id} on LeaveGroup" + told(leaving.reason),
        )
        return _NONE
