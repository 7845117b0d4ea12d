"""A member of a consumer group: it finds its coordinator, joins, syncs, sends heartbeats and
commits, as Kafka's ``ConsumerCoordinator`` does."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.errors import ErrorCode
from ...protocol.groups import (
    CONSUMER_PROTOCOL_TYPE,
    NO_GENERATION,
    NO_MEMBER,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from ...protocol.host import sleep
from .assignors import (
    ASSIGNORS,
    COOPERATIVE,
    Partitions,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from .client import RETRY_BACKOFF_MS, SimulatedClient
from .client_operation import ClientOperation
from .coordinator_link import COORDINATOR_MOVED
from .group_settings import GroupConsumerSettings
from .membership import MemberOwner, Membership

_NONE = ErrorCode.NONE
_JOIN_ALLOWANCE_MS = 5000
"""Time allowed for a join in addition to the rebalance timeout, within which it is answered."""
_FATAL = (
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
)


class GroupMember(Membership):
    """The membership of one consumer, run as a coroutine of its node."""

    def __init__(
        self,
        node: SimulatedClient,
        owner: MemberOwner,
        settings: GroupConsumerSettings,
        brokers: Callable[[], list[int]],
    ) -> None:
        super().__init__(node, owner, settings, brokers)
        self._must_rejoin = False

    # -- the life of a membership --------------------------------------------------------------

    async def run(self) -> None:
        """Join, send heartbeats and rejoin, until this member leaves or is refused for good."""
        while not self.has_left and self.failure is None:
            with ClientOperation(self._node, "join_group", self._settings.group_id) as operation:
                is_member = await self._become_member()
                if not is_member:
                    operation.fail(self._failure_reason())
            if is_member:
                await self._send_heartbeats()

    def _failure_reason(self) -> str:
        """Return the reason for which joining has ended without success."""
        return "left" if self.failure is None else self.failure.name

    async def _become_member(self) -> bool:
        """Join; returns False if this member leaves or is refused for good."""
        while not self.has_left and self.failure is None:
            if self._link.broker_id is None and not await self._link.find_coordinator():
                await sleep(self._node, RETRY_BACKOFF_MS)
            elif await self._join():
                return True
        return False

    def rejoin(self) -> None:
        """Join again, as the partitions to be assigned have changed."""
        if self.generation != NO_GENERATION:
            self._must_rejoin = True
            self._wake.notify()

    def _leave_request(self) -> LeaveGroupRequest | None:
        if self._settings.group_instance_id is not None or self.member_id == NO_MEMBER:
            return None
        leaving = LeavingMember(self.member_id, None, "closed")
        return LeaveGroupRequest(self._settings.group_id, (leaving,))

    # -- joining -------------------------------------------------------------------------------

    async def _join(self) -> bool:
        """Join the next generation; returns False if that has to be tried again."""
        settings = self._settings
        is_eager = settings.assignor not in COOPERATIVE
        if self.owned and is_eager:
            await self._link.commit(self)
            self._revoke(self.owned, is_lost=False)
        self._must_rejoin = False
        response: JoinGroupResponse | None = await self._link.ask(
            JoinGroupRequest(
                settings.group_id,
                settings.session_timeout_ms,
                settings.rebalance_timeout_ms,
                self.member_id,
                settings.group_instance_id,
                CONSUMER_PROTOCOL_TYPE,
                ((settings.assignor, encode_subscription(settings.topics, self.owned)),),
            ),
            settings.rebalance_timeout_ms + _JOIN_ALLOWANCE_MS,
        )
        if response is None or self.has_left:
            return False
        if response.error is ErrorCode.MEMBER_ID_REQUIRED:
            self._set_membership(response.member_id, self.generation, self.is_leader)
            return False
        if response.error is not _NONE:
            await self._handle_error(response.error)
            return False
        is_leader = response.leader == response.member_id
        self._set_membership(response.member_id, response.generation, is_leader)
        assignments: tuple[tuple[str, bytes], ...] = ()
        if self.is_leader and not response.skip_assignment:
            assignments = await self._assign(response)
        return await self._sync(response, assignments)

    async def _assign(self, joined: JoinGroupResponse) -> tuple[tuple[str, bytes], ...]:
        """Compute the assignment as the group's leader, once the topics are known."""
        counts = self._owner.partition_counts()
        while counts is None:
            await sleep(self._node, RETRY_BACKOFF_MS)
            counts = self._owner.partition_counts()
        members = {
            member.member_id: decode_subscription(member.metadata, member.group_instance_id)
            for member in joined.members
        }
        assignment = ASSIGNORS[joined.protocol or self._settings.assignor](counts, members)
        return tuple((m, encode_assignment(partitions)) for m, partitions in assignment.items())

    async def _sync(
        self, joined: JoinGroupResponse, assignments: tuple[tuple[str, bytes], ...]
    ) -> bool:
        settings = self._settings
        response: SyncGroupResponse | None = await self._link.ask(
            SyncGroupRequest(
                settings.group_id,
                joined.generation,
                joined.member_id,
                settings.group_instance_id,
                joined.protocol_type,
                joined.protocol,
                assignments,
            ),
            settings.rebalance_timeout_ms + _JOIN_ALLOWANCE_MS,
        )
        if response is None or self.has_left:
            return False
        if response.error is not _NONE:
            await self._handle_error(response.error)
            return False
        return await self._apply_assignment(decode_assignment(response.assignment))

    async def _apply_assignment(self, assigned: Partitions) -> bool:
        """Give up revoked partitions, and read new ones from the committed offsets on."""
        revoked = tuple(p for p in self.owned if p not in assigned)
        if revoked:
            await self._link.commit(self)
            self._revoke(revoked, is_lost=False)
            self._must_rejoin = True  # other members wait for these partitions (KIP-429)
        new = tuple(p for p in assigned if p not in self.owned)
        positions = await self._link.fetch_committed(new, lambda: not self.has_left)
        if positions is None or self.has_left:
            return False
        self.owned = assigned
        self._owner.partitions_assigned(new, positions)
        return True

    async def _handle_error(self, error: ErrorCode) -> None:
        """React to an error of the coordinator before the next attempt."""
        if error in _FATAL:
            self._fail_membership(error)
        elif error in COORDINATOR_MOVED:
            self._link.broker_id = None
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            is_unknown = error is ErrorCode.UNKNOWN_MEMBER_ID
            self._set_membership(
                NO_MEMBER if is_unknown else self.member_id, NO_GENERATION, self.is_leader
            )
            self._revoke(self.owned, is_lost=True)
            return
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            return
        await sleep(self._node, RETRY_BACKOFF_MS)

    # -- between rebalances --------------------------------------------------------------------

    async def _send_heartbeats(self) -> None:
        """Send heartbeats until the group rebalances or no longer knows this member."""
        settings = self._settings
        while not self.has_left:
            if not self._must_rejoin:
                timer = self._node.call_later_ms(settings.heartbeat_interval_ms, self._wake.notify)
                await self._wake.wait()
                timer.cancel()
            if self._must_rejoin or self.has_left:
                return
            if (
                self._link.broker_id is None
                and not await self._link.find_coordinator_as_operation()
            ):
                await sleep(self._node, RETRY_BACKOFF_MS)
                continue
            request = HeartbeatRequest(
                settings.group_id, self.generation, self.member_id, settings.group_instance_id
            )
            response = await self._link.heartbeat(request, settings.session_timeout_ms)
            if response is None or response.error is _NONE:
                continue
            if response.error is ErrorCode.REBALANCE_IN_PROGRESS:
                return
            await self._handle_error(response.error)
            if response.error not in COORDINATOR_MOVED:
                return
