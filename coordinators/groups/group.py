"""A group of the classic protocol (Kafka: ``GroupMetadata``, and the parts of ``GroupCoordinator``
that run under a group's lock; docs/kafka/groups-and-transactions.md#groups).

A group is a state machine without a log, timers or connections:

- Each input is a method call: a request of a member, the expiry of a timeout (``expire_timeout``),
  the outcome of an append (``StoreGroup.then``), a change of coordinator. The method checks the
  input, changes the group and adds the actions to take to ``effects``.
- The caller takes the effects and carries them out in order. Their outcomes return as further
  inputs.

A reply that is still due is kept with its member, as ``awaiting_join`` or ``awaiting_sync``.
``delayed_join`` is set only while a rebalance is being prepared. The timeout of SyncGroup runs only
from the end of that preparation to the next rebalance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ...protocol.config import BrokerConfig
from ...protocol.errors import ClientError, ErrorCode, invariant
from ...protocol.groups import (
    CONSUMER_PROTOCOL_TYPE,
    NO_MEMBER,
    DescribedMember,
    HeartbeatRequest,
    JoinGroupMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeavingMember,
    OffsetCommitRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from ...protocol.host import Timer
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from .effects import (
    AnswerMember,
    CancelTimer,
    Effect,
    JoinReply,
    NoteChange,
    NoteSilence,
    NoteWait,
    SetTimer,
    StoreGroup,
    SyncReply,
    TimeLimit,
    WriteLine,
)
from .member import Member, Protocols, rebalance_timeout_ms
from .offsets import GroupOffsets, TransactionalCommit
from .records import GroupKey, GroupValue, OffsetValue, encode_group_key, subscribed_topics

if TYPE_CHECKING:
    import random

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""Time for which a new member may wait for its first rebalance to complete (KAFKA-7610)."""
_NONE = ErrorCode.NONE
_UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
_REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS


class GroupState(Enum):
    """State of a group; the values are Kafka's names."""

    EMPTY = "Empty"
    """No members; committed offsets may keep the group alive."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are joining; each waits until all have joined."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All members have joined and wait for the leader's assignment."""
    STABLE = "Stable"
    """Every member has its assignment, or can fetch it with SyncGroup."""
    DEAD = "Dead"
    """Removed, or coordinated elsewhere; a final state."""


PREVIOUS_STATES: dict[GroupState, tuple[GroupState, ...]] = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE,),
    GroupState.PREPARING_REBALANCE: (
        GroupState.STABLE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.EMPTY,
    ),
    GroupState.COMPLETING_REBALANCE: (GroupState.PREPARING_REBALANCE,),
    GroupState.STABLE: (GroupState.COMPLETING_REBALANCE,),
    GroupState.DEAD: tuple(GroupState),
}
"""States from which each state may be entered (Kafka: ``GroupState.validPreviousStates``)."""


class GroupEnvironment(NamedTuple):
    """Configuration, behaviour flags, clock and random numbers for the groups of a broker."""

    config: BrokerConfig
    behaviour: Behaviour
    wall_ms: Callable[[], int]
    rng: random.Random


class JoiningClient(NamedTuple):
    """The client behind a JoinGroup, and the answers that it understands."""

    client_id: str
    host: str
    may_need_member_id: bool
    """True if the client understands MEMBER_ID_REQUIRED (KIP-394)."""
    may_skip_assignment: bool
    """True if the client, as the leader, may skip the assignment (KIP-814)."""


class DelayedJoin(NamedTuple):
    """The wait for members to join a rebalance."""

    is_initial: bool
    """True for the first members of a group: only its delay ends the wait, as further members may
    join (KIP-134)."""
    delay_ms: int
    remaining_ms: int
    """Time by which an initial wait may still be prolonged."""


class PendingMember(NamedTuple):
    """A client that received a member id but has not joined with it yet."""

    client_id: str
    timeout_ms: int


class Group:
    """Members and state of one group."""

    def __init__(
        self, group_id: str, environment: GroupEnvironment, state: GroupState = GroupState.EMPTY
    ) -> None:
        self.group_id = group_id
        self.state: GroupState = state
        self.state_timestamp_ms: int = environment.wall_ms()
        """When the state was entered; -1 if it was loaded from an old record without this time."""
        self.generation: int = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        """Members by member id, in the order in which they joined."""
        self.static_members: dict[str, str] = {}
        """Member ids of static members, by instance id."""
        self.pending_members: dict[str, PendingMember] = {}
        """Clients that have not joined with the member id they received, by that id (KIP-394)."""
        self.pending_sync: dict[str, None] = {}
        """Members that have not sent SyncGroup in this generation yet."""
        self.awaiting_join_count: int = 0
        self.new_member_added: bool = False
        """True if a member joined during the delay of the initial rebalance."""
        self.subscribed_topics: frozenset[str] | None = None
        """Topics that the members of a consumer group subscribe to; None if unknown."""
        self.delayed_join: DelayedJoin | None = None
        self.offsets: GroupOffsets = GroupOffsets()
        self.effects: list[Effect] = []
        """Effects that are not carried out yet."""
        self.timers: dict[tuple[TimeLimit, str], Timer] = {}
        """Running timers by limit and member id, managed by the coordinator's store."""
        self._supported: dict[str, int] = {}
        """Number of members that support each protocol."""
        self._config = environment.config
        self._behaviour = environment.behaviour
        self._wall_ms = environment.wall_ms
        self._rng = environment.rng

    # -- properties ----------------------------------------------------------------------------

    @property
    def is_dead(self) -> bool:
        return self.state is GroupState.DEAD

    @property
    def is_empty(self) -> bool:
        """True if the group has no members and may be deleted."""
        return self.state is GroupState.EMPTY

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def static_member_id(self, instance_id: str | None) -> str | None:
        """Return the current member id of a static member; None for a dynamic or unknown one."""
        return None if instance_id is None else self.static_members.get(instance_id)

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic; True if the topics are unknown."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    def member_error(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Return why the sender is no member, or NONE.

        The group may be dead, the instance id may have a new member id, or the id is unknown.
        """
        if self.state is GroupState.DEAD:
            return self.dead_error
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                if self._behaviour.instance_id_must_be_known:
                    return _UNKNOWN
            elif current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return _NONE if member_id in self.members else _UNKNOWN

    @property
    def dead_error(self) -> ErrorCode:
        """Error for requests to a dead group: clients look up the coordinator, or rejoin."""
        is_unavailable = self._behaviour.dead_group_is_unavailable
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if is_unavailable else _UNKNOWN

    # -- JoinGroup -----------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, client: JoiningClient, reply: JoinReply) -> None:
        """Join the group; reply when the rebalance ends, or at once if none is needed."""
        error = self._join_error(request)
        if error is not _NONE:
            member_id = request.member_id
            if error is ErrorCode.GROUP_MAX_SIZE_REACHED:
                self._remove_member(member_id)
                member_id = NO_MEMBER
            self.effects.append(AnswerMember(reply, self._failed_join(member_id, error)))
            self._try_complete_join()
            return
        generation = self.generation
        if request.member_id == NO_MEMBER:
            self._join_as_new(request, client, reply)
        elif request.member_id in self.pending_members:
            self._add_member_and_rebalance(request, client, request.member_id, reply)
        else:
            self._rejoin(request, reply)
        self._try_complete_join()
        if self.generation != generation:
            self._fail_unanswered_join(reply)

    def _join_error(self, request: JoinGroupRequest) -> ErrorCode:
        if not self._accepts_joining_member(request.member_id):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if self.state is GroupState.DEAD:
            return self.dead_error
        if self.state is not GroupState.EMPTY:
            is_supported = self.supports(request.protocol_type, request.protocols)
        elif self._behaviour.first_member_needs_protocols:
            is_supported = bool(request.protocol_type and request.protocols)
        else:
            is_supported = True
        return _NONE if is_supported else ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def _accepts_joining_member(self, member_id: str) -> bool:
        """Return whether another member may join (KIP-389).

        While members are joining, only members that have already joined count, so that the last
        members of a group that is too large are refused.
        """
        largest: int = self._config["group.max.size"]
        state = self.state
        if state is GroupState.EMPTY or state is GroupState.DEAD:
            return True
        member = self.members.get(member_id)
        if state is GroupState.PREPARING_REBALANCE:
            has_joined = member is not None and member.awaiting_join is not None
            return has_joined or self.awaiting_join_count < largest
        return member is not None or len(self.members) < largest

    def _fail_unanswered_join(self, reply: JoinReply) -> None:
        """Fail the request that completed a rebalance of members without a common protocol.

        Only its sender receives the failure; the other members keep waiting
        (``KafkaApis.handle``). The sender still counts as a member awaiting its JoinGroup.
        """
        for member in self.members.values():
            if member.awaiting_join is reply:
                member.awaiting_join = _no_reply
                failure = JoinGroupResponse(ErrorCode.UNKNOWN_SERVER_ERROR)
                self.effects.append(AnswerMember(reply, failure))
                return

    def _join_as_new(
        self, request: JoinGroupRequest, client: JoiningClient, reply: JoinReply
    ) -> None:
        instance_id = request.group_instance_id
        name = client.client_id if instance_id is None else instance_id
        member_id = f"{name}-{_random_uuid(self._rng)}"
        if instance_id is not None and instance_id in self.static_members:
            self._replace_static(request, client, instance_id, member_id, reply)
        elif instance_id is None and client.may_need_member_id:
            timeout_ms = request.session_timeout_ms
            self.pending_members[member_id] = PendingMember(client.client_id, timeout_ms)
            self.effects.append(SetTimer(TimeLimit.MEMBER_ID, member_id, timeout_ms))
            response = self._failed_join(member_id, ErrorCode.MEMBER_ID_REQUIRED)
            self.effects.append(AnswerMember(reply, response))
        else:
            self._add_member_and_rebalance(request, client, member_id, reply)

    def _add_member_and_rebalance(
        self, request: JoinGroupRequest, client: JoiningClient, member_id: str, reply: JoinReply
    ) -> None:
        """Add a new member, whose JoinGroup is answered when the rebalance ends."""
        member = Member(
            member_id,
            request.group_instance_id,
            client.client_id,
            client.host,
            rebalance_timeout_ms(request),
            request.session_timeout_ms,
            request.protocols,
        )
        member.is_new = True
        if self.state is GroupState.PREPARING_REBALANCE and self.generation == 0:
            self.new_member_added = True
        before = tuple(self.members)
        self.add_member(member, request.protocol_type)
        self.effects.append(NoteChange("members", before, tuple(self.members)))
        member.awaiting_join = reply
        self.awaiting_join_count += 1
        self._remove_pending(member_id)
        self._extend_session(member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        reason = f"adding new member {member_id}"
        if member.group_instance_id is not None:
            reason += f" with group instance id {member.group_instance_id}"
        self._maybe_prepare_rebalance(reason + _in_parentheses(request.reason))

    def _rejoin(self, request: JoinGroupRequest, reply: JoinReply) -> None:
        """Handle the JoinGroup of a known member, which must rejoin or has new metadata."""
        member_id = request.member_id
        error = self.member_error(member_id, request.group_instance_id)
        is_static = request.group_instance_id is not None
        if error is _NONE and (
            self.state is GroupState.EMPTY
            or (is_static and self.static_member_id(request.group_instance_id) is None)
        ):
            error = _UNKNOWN
        if error is not _NONE:
            self.effects.append(AnswerMember(reply, self._failed_join(member_id, error)))
            return
        member = self.members[member_id]
        is_unchanged = member.protocols == request.protocols
        if self.state is GroupState.PREPARING_REBALANCE:
            reason = f"member {member_id} joins"
        elif self.state is GroupState.COMPLETING_REBALANCE and is_unchanged:
            reason = ""  # the member missed the response
        elif self.state is GroupState.STABLE and self.leader == member_id:
            reason = f"leader {member_id} joins again"  # it may have seen topics change
        elif is_unchanged:
            reason = ""
        else:
            reason = f"metadata of member {member_id} changed"
        if not reason:
            self.effects.append(AnswerMember(reply, self._join_response(member_id)))
            return
        self._update(member, request, reply)
        self._maybe_prepare_rebalance(reason + _in_parentheses(request.reason))

    def _update(self, member: Member, request: JoinGroupRequest, reply: JoinReply) -> None:
        """Take over the protocols, timeouts and reply of a member that rejoins."""
        self._count_protocols(member.protocols, -1)
        self._count_protocols(request.protocols, 1)
        member.protocols = request.protocols
        self.awaiting_join_count += member.awaiting_join is None
        member.awaiting_join = reply
        if self._behaviour.rejoining_updates_timeouts:
            member.session_timeout_ms = request.session_timeout_ms
            member.rebalance_timeout_ms = rebalance_timeout_ms(request)

    # -- returning static members --------------------------------------------------------------

    def _replace_static(
        self,
        request: JoinGroupRequest,
        client: JoiningClient,
        instance_id: str,
        new_id: str,
        reply: JoinReply,
    ) -> None:
        """Give a static member that returns without its member id a new one, and fence the old.

        A stable group does not rebalance if the selected protocol stays the same; it only stores
        the new id.
        """
        old_id = self.static_members[instance_id]
        leader = self.leader or ""
        member = self._fence_and_rename(instance_id, old_id, new_id)
        old = member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms
        self._update(member, request, reply)
        if self.state is GroupState.COMPLETING_REBALANCE:
            # The leader assigns partitions to the old id, so the new one would get none.
            self._prepare_rebalance(f"static member {instance_id} is replaced")
            return
        if self.state is not GroupState.STABLE:
            return
        if not self._common_protocols():
            self._fail_unanswered_join(reply)
            return
        if self._select_protocol() != self.protocol:
            self._maybe_prepare_rebalance(f"static member {instance_id} changes protocol")
            return

        def stored(error: ErrorCode) -> None:
            if error is _NONE:
                self._answer_join(member, self._static_replacement_response(new_id, leader, client))
                return
            is_failed = member.awaiting_join is reply
            self._count_protocols(member.protocols, -1)
            self._count_protocols(old[0], 1)
            self.awaiting_join_count -= member.awaiting_join is not None
            member.awaiting_join = None
            member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms = old
            if self.members.get(new_id) is member:
                self._fence_and_rename(instance_id, new_id, old_id)
            if is_failed:
                failure = JoinGroupResponse(
                    error, NO_MEMBER, self.generation, self.protocol_type, self.protocol, leader
                )
                self.effects.append(AnswerMember(reply, failure))

        assignments = {m.member_id: m.assignment for m in self.members.values()}
        self.effects.append(StoreGroup(self.to_value(assignments), stored))

    def _fence_and_rename(self, instance_id: str, old_id: str, new_id: str) -> Member:
        """Replace the id of a static member and fence open requests under the old one."""
        member = self.members[old_id]
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self._answer_join(member, self._failed_join(old_id, fenced))
        self._answer_sync(member, SyncGroupResponse(fenced))
        member.member_id = new_id
        self.members = {m.member_id: m for m in self.members.values()}
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[instance_id] = new_id
        self.effects.append(CancelTimer(TimeLimit.SESSION, old_id))
        self._extend_session(member)
        return member

    def _static_replacement_response(
        self, member_id: str, old_leader: str, client: JoiningClient
    ) -> JoinGroupResponse:
        """Return the answer to a static member that was replaced in a stable group.

        A leader must not assign, since the group would ignore the assignment. So an old client
        receives the leader's old id, and a newer client the request to skip the assignment
        (KIP-814).
        """
        leads = client.may_skip_assignment and self.leader == member_id
        return JoinGroupResponse(
            _NONE,
            member_id,
            self.generation,
            self.protocol_type,
            self.protocol,
            (self.leader or "") if client.may_skip_assignment else old_leader,
            self._joined_members() if leads else (),
            skip_assignment=leads,
        )

    # -- start of a rebalance ------------------------------------------------------------------

    def _maybe_prepare_rebalance(self, reason: str) -> None:
        """Start a rebalance if the state allows it."""
        if self.state in PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]:
            self._prepare_rebalance(reason)

    def _prepare_rebalance(self, reason: str) -> None:
        """Start a rebalance, for which all members must rejoin."""
        if self.state is GroupState.COMPLETING_REBALANCE:
            self._fail_assignments(_REBALANCE)
        self._stop_sync()
        timeout_ms = self._rebalance_timeout_ms
        delay_ms = self._config["group.initial.rebalance.delay.ms"]
        if self.state is GroupState.EMPTY and self._behaviour.initial_rebalance_delay:
            delayed = DelayedJoin(True, delay_ms, max(timeout_ms - delay_ms, 0))
        else:
            delayed = DelayedJoin(False, timeout_ms, 0)
        self.transition_to(GroupState.PREPARING_REBALANCE)
        self._write(
            "info", f"group {self.group_id} rebalances, generation {self.generation} ends: {reason}"
        )
        self._wait_for_joins(delayed)

    def _wait_for_joins(self, delayed: DelayedJoin) -> None:
        self.delayed_join = delayed
        if not self._try_complete_join():
            self.effects.append(SetTimer(TimeLimit.JOINING, "", delayed.delay_ms))

    def joining_ended(self, _member_id: str) -> None:
        """Handle the expiry of the time to join, or of the initial delay."""
        delayed = self.delayed_join
        if delayed is None:
            return
        if delayed.is_initial and self.new_member_added and delayed.remaining_ms:
            self.new_member_added = False
            delay_ms = min(self._config["group.initial.rebalance.delay.ms"], delayed.remaining_ms)
            remaining_ms = max(delayed.remaining_ms - delayed.delay_ms, 0)
            self._wait_for_joins(DelayedJoin(True, delay_ms, remaining_ms))
            return
        missing = [m.client_id for m in self.members.values() if m.awaiting_join is None]
        if missing:
            self.effects.append(NoteWait(missing, delayed.delay_ms))
        self._complete_join()

    def _try_complete_join(self) -> bool:
        """Complete the join phase if all members have joined and the wait is not initial."""
        delayed = self.delayed_join
        have_all_joined = len(self.members) == self.awaiting_join_count and not self.pending_members
        if delayed is None or delayed.is_initial or not have_all_joined:
            return False
        self._complete_join()
        return True

    # -- end of a rebalance --------------------------------------------------------------------

    def _complete_join(self) -> None:
        """Remove members that did not join, start the next generation and answer the others."""
        self._stop_joining()
        missing = [m for m in self.members.values() if m.awaiting_join is None]
        for member in missing:
            if not member.is_static:  # static members stay until their sessions expire
                self._write(
                    "info", f"member {member.member_id} of {self.group_id} did not join in time"
                )
                self._remove_member(member.member_id)
        if not self._elect_joined_leader() and self.members:
            # No member rejoined: static members stay until their sessions expire.
            self._wait_for_joins(DelayedJoin(False, self._rebalance_timeout_ms, 0))
            return
        if not self._start_next_generation():
            # MemberMetadata.vote throws: the join phase has ended, but no member is answered.
            self._write("error", f"members of group {self.group_id} have no protocol in common")
            return
        if not self.members:
            self._write("info", f"group {self.group_id} is empty in generation {self.generation}")
            self.effects.append(StoreGroup(self.to_value({}), self._empty_stored))
            return
        self._write(
            "info",
            f"group {self.group_id} has {len(self.members)} members "
            f"in generation {self.generation}",
        )
        for member in self.members.values():
            self._answer_join(member, self._join_response(member.member_id))
            self._extend_session(member)
            member.is_new = False
            self.pending_sync[member.member_id] = None
        if self._behaviour.syncs_time_out:
            self.effects.append(SetTimer(TimeLimit.SYNCING, "", self._rebalance_timeout_ms))

    def _elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, else elect a member that has.

        Return False if there is none.
        """
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is not None:
            return True
        for member_id, member in self.members.items():
            if member.awaiting_join is not None:
                self.leader = member_id
                return True
        return False

    def _start_next_generation(self) -> bool:
        """Increment the generation and select a protocol, or become empty without members.

        Return False, with the generation incremented, if the members have no common protocol.
        """
        old = self.generation
        self.generation += 1
        if self.members and not self._common_protocols():
            return False
        self.protocol = self._select_protocol() if self.members else None
        self.subscribed_topics = self._find_subscribed_topics()
        self.pending_sync.clear()
        self.effects.append(NoteChange("generation", old, self.generation))
        has_members = bool(self.members)
        self.transition_to(GroupState.COMPLETING_REBALANCE if has_members else GroupState.EMPTY)
        return True

    def _empty_stored(self, error: ErrorCode) -> None:
        """Log a failed append; a later coordinator then loads the former members, which expire."""
        if error is not _NONE:
            text = f"the empty group {self.group_id} could not be stored: {error.name}"
            self._write("warn", text)

    # -- SyncGroup -----------------------------------------------------------------------------

    def sync(self, request: SyncGroupRequest, reply: SyncReply) -> None:
        """Reply with the member's assignment, once the leader's request has brought it."""
        error = self._sync_error(request)
        if error is not _NONE:
            self.effects.append(AnswerMember(reply, SyncGroupResponse(error)))
            return
        member = self.members[request.member_id]
        self.pending_sync.pop(member.member_id, None)
        if not self.pending_sync:
            self._stop_sync()
        if self.state is GroupState.STABLE:
            self.effects.append(AnswerMember(reply, self._sync_response(member)))
            self._extend_session(member)
            return
        member.awaiting_sync = reply
        if self.leader == member.member_id:
            self._store_assignments(dict(request.assignments), member.member_id)

    def _sync_error(self, request: SyncGroupRequest) -> ErrorCode:
        error = self.member_error(request.member_id, request.group_instance_id)
        if error is not _NONE:
            return error
        if request.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if request.protocol_type not in (None, self.protocol_type) or (
            request.protocol not in (None, self.protocol)
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return _REBALANCE if self.state is GroupState.PREPARING_REBALANCE else _NONE

    def _store_assignments(self, assignments: dict[str, bytes], leader: str) -> None:
        """Store the leader's assignment; members missing from it get an empty one."""
        generation = self.generation
        complete = {member_id: assignments.get(member_id, b"") for member_id in self.members}

        def stored(error: ErrorCode) -> None:
            # If another member has joined meanwhile, the assignment is obsolete.
            is_present = self.generation == generation
            if self.state is not GroupState.COMPLETING_REBALANCE or not is_present:
                return
            if error is not _NONE:
                self._fail_assignments(error)
                self._maybe_prepare_rebalance(
                    f"error {error.name} when storing the assignment of {leader}"
                )
                return
            for member in self.members.values():
                member.assignment = complete[member.member_id]
            self._answer_syncs(_NONE)
            self.transition_to(GroupState.STABLE)

        self.effects.append(StoreGroup(self.to_value(complete), stored))

    def _fail_assignments(self, error: ErrorCode) -> None:
        """Clear the assignments and answer open SyncGroup requests with the error."""
        for member in self.members.values():
            member.assignment = b""
        self._answer_syncs(error)

    def _answer_syncs(self, error: ErrorCode) -> None:
        invariant(
            self.state is GroupState.COMPLETING_REBALANCE,
            f"group {self.group_id} cannot propagate assignments in state {self.state.value}",
        )
        for member in self.members.values():
            if self._answer_sync(member, self._sync_response(member, error)):
                self._extend_session(member)

    def _sync_response(self, member: Member, error: ErrorCode = _NONE) -> SyncGroupResponse:
        """Return the SyncGroup response for a member."""
        if error is not _NONE:
            return SyncGroupResponse(error)
        return SyncGroupResponse(_NONE, self.protocol_type, self.protocol, member.assignment)

    def syncing_ended(self, _member_id: str) -> None:
        """Remove the members that did not send SyncGroup in time (KAFKA-12890)."""
        missing = tuple(self.pending_sync)
        if not missing:
            return
        silent = [self.members[i].client_id for i in missing if i in self.members]
        self.effects.append(NoteWait(silent, self._rebalance_timeout_ms))
        for member_id in missing:
            self._remove_member(member_id)
        self._prepare_rebalance(f"removing {', '.join(missing)} on pending sync expiration")

    def _stop_sync(self) -> None:
        self.pending_sync.clear()
        self.effects.append(CancelTimer(TimeLimit.SYNCING))

    # -- Heartbeat, LeaveGroup, OffsetCommit ---------------------------------------------------

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Extend the member's session; return REBALANCE_IN_PROGRESS if it must rejoin."""
        error = self.member_error(request.member_id, request.group_instance_id)
        if error is not _NONE:
            return error
        is_completing = self.state is GroupState.COMPLETING_REBALANCE
        if is_completing and not self._behaviour.heartbeats_before_sync:
            return _REBALANCE
        if request.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self._extend_session(self.members[request.member_id])
        return _REBALANCE if self.state is GroupState.PREPARING_REBALANCE else _NONE

    def leave(self, leaving: LeavingMember) -> ErrorCode:
        """Remove a member that leaves, or a static member that an administrator removes."""
        member_id: str | None = leaving.member_id
        if member_id == NO_MEMBER:
            member_id = self.static_member_id(leaving.group_instance_id)
            if member_id is None:
                return _UNKNOWN
        elif leaving.member_id in self.pending_members:
            self._forget_pending(leaving.member_id)
            return _NONE
        else:
            error = self.member_error(leaving.member_id, leaving.group_instance_id)
            if error is not _NONE:
                return error
        member = self.members[member_id or ""]
        self._remove_member_and_rebalance(
            member,
            f"removing member {member.member_id} on LeaveGroup{_in_parentheses(leaving.reason)}",
        )
        return _NONE

    def _remove_member_and_rebalance(self, member: Member, reason: str) -> None:
        """Remove a member that left or failed, and rebalance.

        An open JoinGroup is answered with UNKNOWN_MEMBER_ID, so that the client can join anew.
        """
        self._answer_join(member, JoinGroupResponse(_UNKNOWN))
        self._remove_member(member.member_id)
        self._maybe_prepare_rebalance(reason)
        self._try_complete_join()

    def commit(self, request: OffsetCommitRequest) -> ErrorCode:
        """Return why offsets are refused, or NONE, which also extends the member's session.

        Only members of the current generation may commit, unless the group is empty.
        """
        is_completing = self.state is GroupState.COMPLETING_REBALANCE
        if request.generation < 0 and self.state is GroupState.EMPTY:
            return _NONE
        if is_completing and self._behaviour.commits_check_state_first:
            return _REBALANCE
        error = self.member_error(request.member_id, request.group_instance_id)
        if error is not _NONE:
            return error
        if request.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if is_completing:
            return _REBALANCE
        self._extend_session(self.members[request.member_id])
        return _NONE

    def commit_in_transaction(self, commit: TransactionalCommit) -> ErrorCode:
        """Return why offsets of a transaction are refused, or NONE.

        Member and generation are checked if the producer sends them (KIP-447).
        """
        if self.state is GroupState.DEAD:
            return self.dead_error
        is_illegal = commit.generation != self.generation
        if self._behaviour.instance_id_must_be_known:
            if commit.generation < 0 and self.state is GroupState.EMPTY:
                return _NONE
            is_named = (
                commit.generation >= 0
                or commit.member_id != NO_MEMBER
                or commit.group_instance_id is not None
            )
            if not is_named:
                return _NONE
            error = self.member_error(commit.member_id, commit.group_instance_id)
            return ErrorCode.ILLEGAL_GENERATION if error is _NONE and is_illegal else error
        current = self.static_member_id(commit.group_instance_id)
        if current is not None and current != commit.member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        if commit.member_id != NO_MEMBER and commit.member_id not in self.members:
            return _UNKNOWN
        return ErrorCode.ILLEGAL_GENERATION if commit.generation >= 0 and is_illegal else _NONE

    # -- sessions ------------------------------------------------------------------------------

    def expire_timeout(self, limit: TimeLimit, member_id: str) -> None:
        """Handle the expiry of a timeout that ``SetTimer`` started."""
        if self.state is not GroupState.DEAD:
            TIMEOUT_HANDLERS[limit](self, member_id)

    def _extend_session(self, member: Member, timeout_ms: int | None = None) -> None:
        """Restart the session timeout of a member.

        No heartbeat is due while the member waits for an answer, except that a new member may wait
        for its first generation for at most ``timeout_ms``.
        """
        if self._is_exempt_from_heartbeats(member):
            self.effects.append(CancelTimer(TimeLimit.SESSION, member.member_id))
            return
        if timeout_ms is None:
            timeout_ms = member.session_timeout_ms
        self.effects.append(SetTimer(TimeLimit.SESSION, member.member_id, timeout_ms))

    def _is_exempt_from_heartbeats(self, member: Member) -> bool:
        must_end = member.is_new and self._behaviour.new_members_time_out
        return member.is_waiting and not must_end

    def session_ended(self, member_id: str) -> None:
        """Remove a member whose session has expired."""
        member = self.members.get(member_id)
        if member is None or self._is_exempt_from_heartbeats(member):
            return
        self._write("info", f"member {member_id} of group {self.group_id} has failed")
        self._note_silence(member.client_id, member_id, member.session_timeout_ms)
        self._remove_member_and_rebalance(
            member, f"removing member {member_id} on heartbeat expiration"
        )

    def member_id_ended(self, member_id: str) -> None:
        """Drop a member id with which no member joined within the session timeout (KIP-394)."""
        pending = self.pending_members.get(member_id)
        if pending is not None:
            self._note_silence(pending.client_id, member_id, pending.timeout_ms)
            self._forget_pending(member_id)

    def _note_silence(self, client_id: str, member_id: str, timeout_ms: int) -> None:
        text = f"member {member_id} of group {self.group_id} has not been heard of for "
        text += f"{timeout_ms} ms"
        self.effects.append(NoteSilence(client_id, member_id, timeout_ms, text))

    def _forget_pending(self, member_id: str) -> None:
        """Drop a pending member id, and complete the join phase if it only waited for this id."""
        self._remove_pending(member_id)
        self._try_complete_join()

    # -- loading, unloading and migration ------------------------------------------------------

    def note_initial_state(self) -> None:
        """Record the state of a group that was loaded or migrated from the other protocol."""
        self._note_state(tuple(self.members), self.generation, self.state.value)

    def loaded(self) -> None:
        """Start the sessions of the members of a group that was loaded."""
        self.note_initial_state()
        if len(self.members) > self._config["group.max.size"]:
            self._prepare_rebalance("the group was loaded and is over capacity")
        for member in self.members.values():
            self._extend_session(member)

    def downgraded(self) -> None:
        """Rebalance a group that was migrated from the other protocol and has appeared."""
        for member in self.members.values():
            self._extend_session(member)
        self._prepare_rebalance("the group is downgraded to the classic protocol")

    def request_rejoin(self) -> None:
        """Answer members that wait, so that they rejoin, as the group changes its protocol."""
        for member in self.members.values():
            self._answer_join(member, self._failed_join(member.member_id, _REBALANCE))
            self._answer_sync(member, SyncGroupResponse(_REBALANCE))

    def unloaded(self) -> None:
        """End a group that moves to another coordinator or protocol.

        Members that wait are answered with NOT_COORDINATOR.
        """
        self._note_state(None, None, None)
        was_preparing = self.state is GroupState.PREPARING_REBALANCE
        self.state = GroupState.DEAD
        moved = ErrorCode.NOT_COORDINATOR
        for member in self.members.values():
            if was_preparing:
                self._answer_join(member, self._failed_join(member.member_id, moved))
            self._answer_sync(member, SyncGroupResponse(moved))
            self.effects.append(CancelTimer(TimeLimit.SESSION, member.member_id))
        for member_id in list(self.pending_members):
            self._remove_pending(member_id)
        self._stop_joining()
        self._stop_sync()

    def end(self) -> None:
        """Mark the group as dead before its removal."""
        self.transition_to(GroupState.DEAD)

    def _note_state(self, members: object, generation: int | None, state: str | None) -> None:
        for name, value in (("members", members), ("generation", generation), ("state", state)):
            self.effects.append(NoteChange(name, None, value))

    def transition_to(self, state: GroupState) -> None:
        """Enter a state, to which a transition from the current state must exist."""
        old = self.state
        invariant(
            old in PREVIOUS_STATES[state],
            f"group {self.group_id} cannot change from {old.value} to {state.value}",
        )
        self.state = state
        self.state_timestamp_ms = self._wall_ms()
        self.effects.append(NoteChange("state", old.value, state.value))

    # -- members -------------------------------------------------------------------------------

    def add_member(self, member: Member, protocol_type: str) -> None:
        """Add a member; the first one becomes the leader and determines the protocol type."""
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member.protocols, 1)

    def _remove_member(self, member_id: str) -> None:
        """Remove a member or pending member id; if it led, the next member becomes the leader."""
        member = self.members.get(member_id)
        if member is not None:
            before = tuple(self.members)
            del self.members[member_id]
            self.effects.append(NoteChange("members", before, tuple(self.members)))
            self.effects.append(CancelTimer(TimeLimit.SESSION, member_id))
            self._count_protocols(member.protocols, -1)
            if member.awaiting_join is not None:
                self.awaiting_join_count -= 1
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self._remove_pending(member_id)
        self.pending_sync.pop(member_id, None)

    def _remove_pending(self, member_id: str) -> None:
        """Drop a pending member id and its timeout."""
        if self.pending_members.pop(member_id, None) is not None:
            self.effects.append(CancelTimer(TimeLimit.MEMBER_ID, member_id))

    @property
    def _rebalance_timeout_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def _stop_joining(self) -> None:
        self.delayed_join = None
        self.effects.append(CancelTimer(TimeLimit.JOINING))

    # -- protocols -----------------------------------------------------------------------------

    def _count_protocols(self, protocols: Protocols, by: int) -> None:
        supported = self._supported
        for name, _ in protocols:
            supported[name] = supported.get(name, 0) + by

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether the group has this type and all members support one of the protocols."""
        count = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._supported.get(name, 0) == count for name, _ in protocols
        )

    def _common_protocols(self) -> set[str]:
        """Return the protocols that all members support; a name sent twice counts twice."""
        count = len(self.members)
        return {name for name, members in self._supported.items() if members == count}

    def _select_protocol(self) -> str:
        """Return the common protocol with the most votes; in a tie, the one voted for first."""
        candidates = self._common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def _find_subscribed_topics(self) -> frozenset[str] | None:
        if not self.is_consumer_group:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        try:
            return frozenset(
                topic
                for member in self.members.values()
                for topic in subscribed_topics(member.metadata(self.protocol))
            )
        except ClientError:
            return None

    # -- answers -------------------------------------------------------------------------------

    def _answer_join(self, member: Member, response: JoinGroupResponse) -> None:
        """Answer a member's open JoinGroup, if any."""
        if member.awaiting_join is not None:
            self.effects.append(AnswerMember(member.awaiting_join, response))
            member.awaiting_join = None
            self.awaiting_join_count -= 1

    def _answer_sync(self, member: Member, response: SyncGroupResponse) -> bool:
        """Answer a member's open SyncGroup; return False if there is none."""
        if member.awaiting_sync is None:
            return False
        self.effects.append(AnswerMember(member.awaiting_sync, response))
        member.awaiting_sync = None
        return True

    def _failed_join(self, member_id: str, error: ErrorCode) -> JoinGroupResponse:
        return failed_join(member_id, error, self._behaviour)

    def _join_response(self, member_id: str) -> JoinGroupResponse:
        """Return the JoinGroup response for a member of the current generation."""
        return JoinGroupResponse(
            _NONE,
            member_id,
            self.generation,
            self.protocol_type,
            self.protocol,
            self.leader or "",
            self._joined_members() if self.leader == member_id else (),
        )

    def _joined_members(self) -> tuple[JoinGroupMember, ...]:
        """Return the members and their metadata, which the leader needs for the assignment."""
        protocol = self.protocol or ""
        return tuple(
            JoinGroupMember(m.member_id, m.group_instance_id, m.metadata(protocol))
            for m in self.members.values()
        )

    def described_members(self) -> tuple[DescribedMember, ...]:
        """Describe the members; metadata and assignments are included if the group is stable."""
        protocol = self.protocol if self.state is GroupState.STABLE else None
        return tuple(member.describe(protocol) for member in self.members.values())

    def _write(self, level: str, line: str) -> None:
        self.effects.append(WriteLine(level, line))

    # -- records -------------------------------------------------------------------------------

    def tombstones(self) -> list[bytes]:
        """Return the keys of the group's own records, for which to write tombstones."""
        return [encode_group_key(GroupKey(self.group_id))] if self.generation > 0 else []

    def to_value(self, assignments: dict[str, bytes]) -> GroupValue:
        """Return the record value of this generation."""
        return GroupValue(
            self.protocol_type or "",
            self.generation,
            self.protocol,
            self.leader,
            self.state_timestamp_ms,
            tuple(
                member.to_value(self.protocol or "", assignments[member.member_id])
                for member in self.members.values()
            ),
        )

    @classmethod
    def from_value(cls, group_id: str, value: GroupValue, environment: GroupEnvironment) -> Group:
        """Restore a group from its record: stable, or empty if it has no members."""
        state = GroupState.STABLE if value.members else GroupState.EMPTY
        group = cls(group_id, environment, state)
        group.state_timestamp_ms = value.state_timestamp_ms
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        group.leader = value.leader
        for stored in value.members:
            member = Member(
                stored.member_id,
                stored.group_instance_id,
                stored.client_id,
                stored.client_host,
                stored.rebalance_timeout_ms,
                stored.session_timeout_ms,
                ((value.protocol or "", stored.subscription),),
                stored.assignment,
            )
            group.add_member(member, value.protocol_type)
        group.subscribed_topics = group._find_subscribed_topics()
        return group

    def complete_migration(self) -> None:
        """Select the protocol of a migrated group, after all members have been added."""
        self.protocol = self._select_protocol()
        self.subscribed_topics = self._find_subscribed_topics()

    # -- expiry --------------------------------------------------------------------------------

    def remove_expired_offsets(self, wall_ms: int, retention_ms: int) -> list[TopicPartition]:
        """Remove offsets that have expired by the state of the group (KIP-211).

        Return their partitions.
        """
        entered_ms = self.state_timestamp_ms
        kept: Iterable[str] = ()
        if self.protocol_type is not None:
            if self.state is GroupState.STABLE and self.is_consumer_group:
                if self.subscribed_topics is None:
                    return []
                kept, entered_ms = self.subscribed_topics, -1
            elif self.state is not GroupState.EMPTY:
                return []
        else:
            entered_ms = -1

        def is_expired(partition: TopicPartition, value: OffsetValue) -> bool:
            if partition.topic in kept:
                return False
            if value.expire_timestamp_ms >= 0:
                return wall_ms >= value.expire_timestamp_ms
            since_ms = value.commit_timestamp_ms if entered_ms < 0 else entered_ms
            return wall_ms - since_ms >= retention_ms

        return self.offsets.remove_expired(is_expired)

    def remove_offsets_past_own_expiry(self, wall_ms: int) -> list[TopicPartition]:
        """Remove offsets whose own expiry has passed, even while in use (before KIP-211).

        Return their partitions.
        """
        return self.offsets.remove_expired(
            lambda _, value: 0 <= value.expire_timestamp_ms < wall_ms
        )


TIMEOUT_HANDLERS: dict[TimeLimit, Callable[[Group, str], None]] = {
    TimeLimit.SESSION: Group.session_ended,
    TimeLimit.MEMBER_ID: Group.member_id_ended,
    TimeLimit.JOINING: Group.joining_ended,
    TimeLimit.SYNCING: Group.syncing_ended,
}
"""Methods that handle the expiry of each timeout; traces name the timers after them."""


def failed_join(member_id: str, error: ErrorCode, behaviour: Behaviour) -> JoinGroupResponse:
    """Return a failed JoinGroup response, whose generation is -1, or 0 before 2.2."""
    generation = -1 if behaviour.failed_join_has_no_generation else 0
    return JoinGroupResponse(error, member_id, generation)


def _no_reply(_response: JoinGroupResponse) -> None:
    """Stand in for the reply to a JoinGroup that has been answered."""


def _in_parentheses(reason: str | None) -> str:
    """Return the reason that a client sent (KIP-800), in parentheses."""
    return f" ({reason})" if reason else ""


def _random_uuid(rng: random.Random) -> str:
    """Return a version 4 UUID."""
    digits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
