"""JoinGroup: who may be a member, and what a join sets going
(docs/kafka/groups-and-transactions.md#joining; Kafka: ``GroupCoordinator.handleJoinGroup``)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode
from ...protocol.groups import (
    NO_MEMBER,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupResponse,
)
from ...protocol.versions import Behaviour
from .gate import GroupGate
from .group import Group
from .member import JoinAnswer, Member
from .rebalances import Rebalances, told
from .state import GroupState
from .store import GroupStore

if TYPE_CHECKING:
    import random

_NONE = ErrorCode.NONE
_UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


class JoiningClient(NamedTuple):
    """Client that joins, and what it understands."""

    client_id: str
    host: str
    may_need_member_id: bool
    """It takes MEMBER_ID_REQUIRED for an answer (KIP-394)."""
    may_skip_assignment: bool
    """It takes a leadership without assigning (KIP-814)."""


class Joining:
    """Takes members in, and static ones back."""

    __slots__ = ("_behaviour", "_config", "_gate", "_rebalances", "_rng", "_store")

    def __init__(
        self,
        rng: random.Random,
        config: BrokerConfig,
        behaviour: Behaviour,
        store: GroupStore,
        gate: GroupGate,
        rebalances: Rebalances,
    ) -> None:
        self._rng = rng
        self._config = config
        self._behaviour = behaviour
        self._store = store
        self._gate = gate
        self._rebalances = rebalances

    def join(self, request: JoinGroupRequest, client: JoiningClient, respond: JoinAnswer) -> None:
        """Answered when the rebalance ends, or at once where none is needed."""
        if not self._behaviour.protocols_counted_as_named:
            request = _with_each_protocol_once(request)
        group, error = self._find_for_join(request)
        if group is None:
            respond(self._rebalances.failed_join(request.member_id, error))
            return
        if not self._has_room(group, request.member_id):
            group.remove(request.member_id)
            error = ErrorCode.GROUP_MAX_SIZE_REACHED
        elif group.state is GroupState.DEAD:
            error = self._gate.dead_group_error
        elif not self._is_supported(group, request):
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if error is not _NONE:
            is_told = error is not ErrorCode.GROUP_MAX_SIZE_REACHED
            member_id = request.member_id if is_told else NO_MEMBER
            respond(self._rebalances.failed_join(member_id, error))
            if group.state is GroupState.PREPARING_REBALANCE:
                self._rebalances.try_complete_join(group)
            return
        generation = group.generation
        if request.member_id == NO_MEMBER:
            self._join_as_new(group, request, client, respond)
        elif request.member_id in group.pending_members:
            self._add(group, request, client, request.member_id, respond)
        else:
            self._join_again(group, request, respond)
        if group.state is GroupState.PREPARING_REBALANCE:
            self._rebalances.try_complete_join(group)
            if group.generation != generation:
                self._fail_at_the_end(group, respond)

    def _is_supported(self, group: Group, request: JoinGroupRequest) -> bool:
        if group.state is not GroupState.EMPTY:
            return group.supports(request.protocol_type, request.protocols)
        if not self._behaviour.first_member_needs_protocols:
            return True
        return bool(request.protocol_type and request.protocols)

    def _fail_at_the_end(self, group: Group, respond: JoinAnswer) -> None:
        """With this request all had joined, but they have no protocol in common.

        Who sent it hears of the failure; the others go on waiting (``KafkaApis.handle``).
        """
        for member in group.members.values():
            if member.awaiting_join is respond:
                member.awaiting_join = _no_answer
                respond(JoinGroupResponse(ErrorCode.UNKNOWN_SERVER_ERROR))
                return

    def _find_for_join(self, request: JoinGroupRequest) -> tuple[Group | None, ErrorCode]:
        error = self._gate.refusal(request.group_id, must_be_named=True)
        if error is not _NONE:
            return None, error
        if not self.takes_session(request):
            return None, ErrorCode.INVALID_SESSION_TIMEOUT
        if request.member_id == NO_MEMBER:
            return self._store.get_or_create(request.group_id), _NONE
        group = self._store.groups.get(request.group_id)
        return group, _UNKNOWN if group is None else _NONE

    def takes_session(self, request: JoinGroupRequest) -> bool:
        """Return whether members may have such a session timeout."""
        shortest: int = self._config["group.min.session.timeout.ms"]
        longest: int = self._config["group.max.session.timeout.ms"]
        return shortest <= request.session_timeout_ms <= longest

    def _has_room(self, group: Group, member_id: str) -> bool:
        """Return whether another member may join (KIP-389).

        While members join, those that have come count: the last ones of a group that is too
        large are turned away.
        """
        largest: int = self._config["group.max.size"]
        state = group.state
        if state is GroupState.EMPTY or state is GroupState.DEAD:
            return True
        member = group.members.get(member_id)
        if state is GroupState.PREPARING_REBALANCE:
            has_joined = member is not None and member.awaiting_join is not None
            return has_joined or group.awaiting_join_count < largest
        return member is not None or len(group.members) < largest

    def _join_as_new(
        self,
        group: Group,
        request: JoinGroupRequest,
        client: JoiningClient,
        respond: JoinAnswer,
    ) -> None:
        instance_id = request.group_instance_id
        name = client.client_id if instance_id is None else instance_id
        member_id = f"{name}-{_random_uuid(self._rng)}"
        old_id = group.static_member_id(instance_id)
        if old_id is not None and instance_id is not None:
            self._replace_static(group, request, client, (instance_id, old_id, member_id), respond)
        elif instance_id is None and client.may_need_member_id:
            timeout_ms = request.session_timeout_ms
            self._rebalances.expect_pending(group, client.client_id, member_id, timeout_ms)
            respond(self._rebalances.failed_join(member_id, ErrorCode.MEMBER_ID_REQUIRED))
        else:
            self._add(group, request, client, member_id, respond)

    def _add(
        self,
        group: Group,
        request: JoinGroupRequest,
        client: JoiningClient,
        member_id: str,
        respond: JoinAnswer,
    ) -> None:
        member = Member(
            member_id,
            request.group_instance_id,
            client.client_id,
            client.host,
            _rebalance_timeout_ms(request),
            request.session_timeout_ms,
            request.protocol_type,
            request.protocols,
        )
        self._rebalances.add_member(group, member, respond, told(request.reason))

    def _join_again(self, group: Group, request: JoinGroupRequest, respond: JoinAnswer) -> None:
        """A member joins under its id: it was asked to, or something has changed."""
        member_id = request.member_id
        error = self._gate.member_error(group, member_id, request.group_instance_id)
        is_static = request.group_instance_id is not None
        if error is _NONE and (
            group.state is GroupState.EMPTY
            or (is_static and group.static_member_id(request.group_instance_id) is None)
        ):
            error = _UNKNOWN
        if error is not _NONE:
            respond(self._rebalances.failed_join(member_id, error))
            return
        member = group.members[member_id]
        state = group.state
        is_unchanged = member.protocols == request.protocols
        if state is GroupState.PREPARING_REBALANCE:
            reason = f"member {member_id} joins"
        elif state is GroupState.COMPLETING_REBALANCE and is_unchanged:
            reason = ""  # it did not get the answer
        elif state is GroupState.STABLE and group.leader == member_id:
            reason = f"leader {member_id} joins again"  # it may have seen other changes
        elif is_unchanged:
            reason = ""
        else:
            reason = f"metadata of member {member_id} changed"
        if not reason:
            respond(self._rebalances.current_generation(group, member_id))
            return
        self._update(group, member, request, respond)
        self._rebalances.maybe_prepare(group, reason + told(request.reason))

    def _update(
        self, group: Group, member: Member, request: JoinGroupRequest, respond: JoinAnswer | None
    ) -> None:
        group.update(member, request.protocols, respond)
        if self._behaviour.rejoining_updates_timeouts:
            member.session_timeout_ms = request.session_timeout_ms
            member.rebalance_timeout_ms = _rebalance_timeout_ms(request)

    # -- static members ------------------------------------------------------------------------

    def _replace_static(
        self,
        group: Group,
        request: JoinGroupRequest,
        client: JoiningClient,
        ids: tuple[str, str, str],
        respond: JoinAnswer,
    ) -> None:
        """A static member is back without its id: it gets a new one, the old one is fenced.

        ``ids`` are its instance id, its old and its new member id. A stable group goes on as it
        is if the member changes nothing about the protocol; then only the new id is stored.
        """
        instance_id, old_id, new_id = ids
        leader = group.leader or ""
        member = self._fence_and_rename(group, ids)
        old = (member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms)
        self._update(group, member, request, respond)
        state = group.state
        if state is GroupState.COMPLETING_REBALANCE:
            # The leader assigns to the old id, so that the new one would get nothing.
            self._rebalances.prepare(group, f"static member {instance_id} is replaced")
            return
        if state is not GroupState.STABLE:
            return
        if not group.has_common_protocol:
            self._fail_at_the_end(group, respond)
            return
        if group.select_protocol() != group.protocol:
            self._rebalances.maybe_prepare(group, f"static member {instance_id} changes protocol")
            return

        def stored(error: ErrorCode) -> None:
            if error is _NONE:
                response = self._replaced(group, new_id, leader, client)
                group.answer_join(member, response)
                return
            failed = member.awaiting_join is respond
            group.update(member, old[0], None)
            member.session_timeout_ms, member.rebalance_timeout_ms = old[1:]
            if group.members.get(new_id) is member:
                self._fence_and_rename(group, (instance_id, new_id, old_id))
            if failed:
                respond(
                    JoinGroupResponse(
                        error,
                        NO_MEMBER,
                        group.generation,
                        group.protocol_type,
                        group.protocol,
                        leader,
                    )
                )

        assignments = {m.member_id: m.assignment for m in group.members.values()}
        self._store.store_group(group, assignments, stored)

    def _fence_and_rename(self, group: Group, ids: tuple[str, str, str]) -> Member:
        """Give a static member its new id; who waits under the old one is told so."""
        instance_id, old_id, new_id = ids
        member = group.members[old_id]
        fenced = ErrorCode.FENCED_INSTANCE_ID
        group.answer_join(member, self._rebalances.failed_join(old_id, fenced))
        member.answer_sync(SyncGroupResponse(fenced))
        group.replace_static(instance_id, old_id, new_id)
        self._rebalances.extend_session(group, member)
        return member

    def _replaced(
        self, group: Group, member_id: str, old_leader: str, client: JoiningClient
    ) -> JoinGroupResponse:
        """The answer to a static member that took its place in a stable group.

        An old client that led must not assign, since nobody takes its assignment. It is told the
        leader's old id. A newer one is told that it leads and shall not assign (KIP-814).
        """
        if not client.may_skip_assignment:
            return JoinGroupResponse(
                _NONE, member_id, group.generation, group.protocol_type, group.protocol, old_leader
            )
        leads = group.leader == member_id
        return JoinGroupResponse(
            _NONE,
            member_id,
            group.generation,
            group.protocol_type,
            group.protocol,
            group.leader or "",
            group.joined_members() if leads else (),
            skip_assignment=leads,
        )


def _with_each_protocol_once(request: JoinGroupRequest) -> JoinGroupRequest:
    """Keep the first mention of a protocol that is named twice."""
    first: dict[str, bytes] = {}
    for name, metadata in request.protocols:
        first.setdefault(name, metadata)
    if len(first) == len(request.protocols):
        return request
    return replace(request, protocols=tuple(first.items()))


def _no_answer(_response: JoinGroupResponse) -> None:
    """Has been answered."""


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """Version 0 has none of its own."""
    timeout_ms = request.rebalance_timeout_ms
    return request.session_timeout_ms if timeout_ms < 0 else timeout_ms


def _random_uuid(rng: random.Random) -> str:
    """A uuid of version 4."""
    digits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
