"""Rebalances of groups: what begins one, what ends it, and the times that run meanwhile
(docs/kafka/groups-and-transactions.md#joining; Kafka: ``GroupCoordinator.prepareRebalance`` and
``onCompleteJoin``, ``DelayedJoin``, ``DelayedHeartbeat``, ``DelayedSync``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode, invariant
from ...protocol.groups import JoinGroupResponse, SyncGroupResponse
from ...protocol.versions import Behaviour
from .group import Group, WaitingJoin
from .member import Member
from .state import GroupState
from .store import GroupStore

if TYPE_CHECKING:
    from ...protocol.host import Host

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member may wait for its first rebalance to end (KAFKA-7610)."""

_NONE = ErrorCode.NONE
Log = Callable[[str, str], object]
"""Takes a level (``info``, ``warn``) and a line."""


class Rebalances:
    """Takes groups from one generation to the next, and members out whose session has ended."""

    __slots__ = ("_behaviour", "_config", "_host", "_log", "_store")

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        store: GroupStore,
        log: Log,
    ) -> None:
        self._host = host
        self._config = config
        self._behaviour = behaviour
        self._store = store
        self._log = log

    # -- sessions ------------------------------------------------------------------------------

    def extend_session(self, group: Group, member: Member, timeout_ms: int | None = None) -> None:
        """The member was heard of: its session starts anew.

        No heartbeat is due while it waits for an answer, except that a new member waits for its
        first generation no longer than ``timeout_ms``.
        """
        member.stop_session()
        if self._is_excused(member):
            return
        if timeout_ms is None:
            timeout_ms = member.session_timeout_ms
        member.session = self._host.call_later_ms(
            timeout_ms, lambda: self._session_ended(group, member)
        )

    def _is_excused(self, member: Member) -> bool:
        must_end = member.is_new and self._behaviour.new_members_time_out
        return member.is_waiting and not must_end

    def _session_ended(self, group: Group, member: Member) -> None:
        member.session = None
        if (
            group.state is GroupState.DEAD
            or group.members.get(member.member_id) is not member
            or self._is_excused(member)
        ):
            return
        self._log("info", f"member {member.member_id} of group {group.group_id} has failed")
        self._tell_silence(group, member.client_id, member.member_id, member.session_timeout_ms)
        self.remove_member(
            group, member, f"removing member {member.member_id} on heartbeat expiration"
        )

    def _tell_silence(self, group: Group, client_id: str, member_id: str, timeout_ms: int) -> None:
        if self._host.state_listener is not None:
            self._host.blame_silence(
                client_id,
                timeout_ms,
                f"member {member_id} of group {group.group_id} has not been heard of for "
                f"{timeout_ms} ms",
            )

    def expect_pending(self, group: Group, client_id: str, member_id: str, timeout_ms: int) -> None:
        """A member id was given out: it is to be used within the session timeout (KIP-394)."""

        def expired() -> None:
            if group.state is not GroupState.DEAD:
                self._tell_silence(group, client_id, member_id, timeout_ms)
                self.remove_pending(group, member_id)

        group.pending_members[member_id] = self._host.call_later_ms(timeout_ms, expired)

    def remove_pending(self, group: Group, member_id: str) -> None:
        """A member id that was given out will not be used."""
        group.remove_pending(member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            self.try_complete_join(group)

    # -- the beginning -------------------------------------------------------------------------

    def add_member(
        self,
        group: Group,
        member: Member,
        respond: Callable[[JoinGroupResponse], object],
        reason: str,
    ) -> None:
        """Take a new member in; it is answered when the rebalance ends."""
        member.is_new = True
        if group.state is GroupState.PREPARING_REBALANCE and group.generation == 0:
            group.new_member_added = True
        group.add(member, respond)
        self.extend_session(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        text = f"adding new member {member.member_id}"
        if member.group_instance_id is not None:
            text += f" with group instance id {member.group_instance_id}"
        self.maybe_prepare(group, text + reason)

    def remove_member(self, group: Group, member: Member, reason: str) -> None:
        """A member has left or failed; if it waits it may join anew, without its id."""
        group.answer_join(member, JoinGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            self.try_complete_join(group)
        else:
            self.maybe_prepare(group, reason)

    def maybe_prepare(self, group: Group, reason: str) -> None:
        """Begin a rebalance, unless one is being prepared."""
        if group.can_rebalance:
            self.prepare(group, reason)

    def prepare(self, group: Group, reason: str) -> None:
        """Begin a rebalance: members have to join once more."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.fail_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._stop_sync(group)
        timeout_ms = group.rebalance_timeout_ms
        delay_ms = self._config["group.initial.rebalance.delay.ms"]
        if group.state is GroupState.EMPTY and self._behaviour.initial_rebalance_delay:
            waiting = WaitingJoin(True, delay_ms, max(timeout_ms - delay_ms, 0))
        else:
            waiting = WaitingJoin(False, timeout_ms, 0)
        group.transition_to(GroupState.PREPARING_REBALANCE, self._host.wall_ms())
        self._log(
            "info",
            f"group {group.group_id} rebalances, generation {group.generation} ends: {reason}",
        )
        self._wait_for_joins(group, waiting)

    def _wait_for_joins(self, group: Group, waiting: WaitingJoin) -> None:
        group.waiting_join = waiting
        if self.try_complete_join(group):
            return
        if self._host.causes is not None:
            waiting.begun_by = self._host.causes.current()
        waiting.timer = self._host.call_later_ms(
            waiting.delay_ms, lambda: self._join_time_is_up(group, waiting)
        )

    def _join_time_is_up(self, group: Group, waiting: WaitingJoin) -> None:
        if group.waiting_join is not waiting:
            return
        if waiting.is_initial and group.new_member_added and waiting.remaining_ms:
            group.new_member_added = False
            delay_ms = min(self._config["group.initial.rebalance.delay.ms"], waiting.remaining_ms)
            remaining_ms = max(waiting.remaining_ms - waiting.delay_ms, 0)
            self._wait_for_joins(group, WaitingJoin(True, delay_ms, remaining_ms))
            return
        if self._host.causes is not None:
            missing = [m.client_id for m in group.members.values() if m.awaiting_join is None]
            if missing:
                self._host.causes.waited(missing, waiting.begun_by, waiting.delay_ms)
        self._complete_join(group)

    def try_complete_join(self, group: Group) -> bool:
        """End the joining if all are there, and it is not the first of a group."""
        waiting = group.waiting_join
        if waiting is None or waiting.is_initial or not group.have_all_joined:
            return False
        self._complete_join(group)
        return True

    # -- the end -------------------------------------------------------------------------------

    def _complete_join(self, group: Group) -> None:
        """Drop who did not come, start the next generation and answer those who did."""
        if group.waiting_join is not None:
            group.waiting_join.cancel()
            group.waiting_join = None
        if group.state is GroupState.DEAD:
            return
        missing = [m for m in group.members.values() if m.awaiting_join is None]
        for member in missing:
            if not member.is_static:  # static ones stay until their session ends
                self._log(
                    "info", f"member {member.member_id} of {group.group_id} did not join in time"
                )
                group.remove(member.member_id)
        if not group.elect_joined_leader() and group.members:
            # Nobody rejoined: static members hold their places until their sessions end.
            self._wait_for_joins(group, WaitingJoin(False, group.rebalance_timeout_ms, 0))
            return
        if not group.start_next_generation(self._host.wall_ms()):
            # MemberMetadata.vote throws: nothing is awaited any more, and no one is answered.
            self._log("error", f"members of group {group.group_id} have no protocol in common")
            return
        if group.state is GroupState.EMPTY:
            self._log("info", f"group {group.group_id} is empty in generation {group.generation}")
            self._store.store_group(group, {}, lambda error: self._empty_stored(group, error))
            return
        self._log(
            "info",
            f"group {group.group_id} has {len(group.members)} members "
            f"in generation {group.generation}",
        )
        for member in list(group.members.values()):
            group.answer_join(member, self.current_generation(group, member.member_id))
            self.extend_session(group, member)
            member.is_new = False
            group.pending_sync[member.member_id] = None
        self._expect_syncs(group)

    def _empty_stored(self, group: Group, error: ErrorCode) -> None:
        """Without it a coordinator to come finds the last members once more; their sessions end."""
        if error is not _NONE:
            self._log("warn", f"the empty group {group.group_id} could not be stored: {error.name}")

    def current_generation(self, group: Group, member_id: str) -> JoinGroupResponse:
        """The answer to a member of the present generation."""
        return JoinGroupResponse(
            _NONE,
            member_id,
            group.generation,
            group.protocol_type,
            group.protocol,
            group.leader or "",
            group.joined_members() if group.leader == member_id else (),
        )

    # -- assignments ---------------------------------------------------------------------------

    def _expect_syncs(self, group: Group) -> None:
        """Members ask for their assignment within the rebalance timeout (KAFKA-12890)."""
        if not self._behaviour.syncs_time_out:
            return
        generation = group.generation
        group.sync_timer = self._host.call_later_ms(
            group.rebalance_timeout_ms, lambda: self._sync_time_is_up(group, generation)
        )

    def synced(self, group: Group, member_id: str) -> None:
        """A member has asked for its assignment."""
        group.pending_sync.pop(member_id, None)
        if not group.pending_sync:
            self._stop_sync(group)

    def _stop_sync(self, group: Group) -> None:
        group.pending_sync.clear()
        if group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None

    def _sync_time_is_up(self, group: Group, generation: int) -> None:
        group.sync_timer = None
        if generation != group.generation or group.state not in (
            GroupState.COMPLETING_REBALANCE,
            GroupState.STABLE,
        ):
            return
        missing = tuple(group.pending_sync)
        if not missing:
            return
        if self._host.causes is not None:
            silent = [group.members[i].client_id for i in missing if i in group.members]
            causes = self._host.causes
            causes.waited(silent, causes.current(), group.rebalance_timeout_ms)
        for member_id in missing:
            group.remove(member_id)
        self.prepare(group, f"removing {', '.join(missing)} on pending sync expiration")

    def hand_out(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """Give every member its assignment."""
        for member in group.members.values():
            member.assignment = assignments[member.member_id]
        self._answer_syncs(group, _NONE)

    def become_stable(self, group: Group) -> None:
        """The assignments are out."""
        group.transition_to(GroupState.STABLE, self._host.wall_ms())

    def fail_assignments(self, group: Group, error: ErrorCode) -> None:
        """Tell all who wait for an assignment that there is none."""
        for member in group.members.values():
            member.assignment = b""
        self._answer_syncs(group, error)

    def _answer_syncs(self, group: Group, error: ErrorCode) -> None:
        invariant(
            group.state is GroupState.COMPLETING_REBALANCE,
            f"assignments of {group.group_id} while it is {group.state.value}",
        )
        for member in list(group.members.values()):
            if member.answer_sync(self.assignment(group, member, error)):
                self.extend_session(group, member)

    def assignment(
        self, group: Group, member: Member, error: ErrorCode = _NONE
    ) -> SyncGroupResponse:
        """The answer to a member that asks for its assignment."""
        if error is not _NONE:
            return SyncGroupResponse(error)
        return SyncGroupResponse(_NONE, group.protocol_type, group.protocol, member.assignment)

    # -- groups that come and go ---------------------------------------------------------------

    def loaded(self, group: Group) -> None:
        """A group was loaded: its members are to be heard of within their sessions."""
        if len(group.members) > self._config["group.max.size"]:
            self.prepare(group, "the group was loaded and is over capacity")
        for member in group.members.values():
            self.extend_session(group, member)

    def send_away(self, group: Group) -> None:
        """The group changes its protocol: whoever waits is to join again."""
        again = ErrorCode.REBALANCE_IN_PROGRESS
        for member in list(group.members.values()):
            group.answer_join(member, self.failed_join(member.member_id, again))
            member.answer_sync(SyncGroupResponse(again))

    def unloaded(self, group: Group) -> None:
        """Another broker coordinates the group: whoever waits is told to look for it."""
        state = group.state
        group.transition_to(GroupState.DEAD, self._host.wall_ms())
        for member in list(group.members.values()):
            if state is GroupState.PREPARING_REBALANCE:
                response = self.failed_join(member.member_id, ErrorCode.NOT_COORDINATOR)
                group.answer_join(member, response)
            member.answer_sync(SyncGroupResponse(ErrorCode.NOT_COORDINATOR))
            member.stop_session()
        for member_id in list(group.pending_members):
            group.remove_pending(member_id)
        if group.waiting_join is not None:
            group.waiting_join.cancel()
            group.waiting_join = None
        self._stop_sync(group)

    def failed_join(self, member_id: str, error: ErrorCode) -> JoinGroupResponse:
        """Before 2.2 a failed join named generation 0."""
        generation = -1 if self._behaviour.failed_join_has_no_generation else 0
        return JoinGroupResponse(error, member_id, generation)


def told(reason: str | None) -> str:
    """Return the reason that a client gave (KIP-800)."""
    return f" ({reason})" if reason else ""
