"""A member of a group of the consumer protocol (KIP-848): it sends heartbeats, reports what it
owns, and adopts the assignment of its coordinator, as Kafka's ``ConsumerMembershipManager``
does."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.errors import ErrorCode
from ...protocol.groups import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_GENERATION,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ...protocol.host import sleep
from ...protocol.values import TopicPartition
from .assignors import Partitions
from .client import RETRY_BACKOFF_MS, SimulatedClient
from .client_operation import ClientOperation
from .coordinator_link import COORDINATOR_MOVED
from .group_settings import GroupConsumerSettings
from .membership import MemberOwner, Membership

_NONE = ErrorCode.NONE
_FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
"""Errors after which a member gives up its partitions and joins again."""
_FATAL = (
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNSUPPORTED_ASSIGNOR,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
)


class AssignedMember(Membership):
    """The membership of one consumer, run as a coroutine of its node."""

    def __init__(
        self,
        node: SimulatedClient,
        owner: MemberOwner,
        settings: GroupConsumerSettings,
        brokers: Callable[[], list[int]],
    ) -> None:
        super().__init__(node, owner, settings, brokers)
        self._must_send_all_fields = True
        """True if the next heartbeat has to contain all fields, as an answer may have been lost."""
        self._interval_ms = RETRY_BACKOFF_MS
        self._reported_owned: Partitions = ()
        self._target: Partitions | None = None
        """Assignment that the member has not adopted yet; None if there is none."""

    async def run(self) -> None:
        """Join and send heartbeats, until this member leaves or is refused for good."""
        while not self.has_left and self.failure is None:
            if (
                self._link.broker_id is None
                and not await self._link.find_coordinator_as_operation()
            ):
                await sleep(self._node, RETRY_BACKOFF_MS)
                continue
            if not await self._send_heartbeat():
                continue
            if self._target is not None and await self._reconcile(self._target):
                continue  # the next heartbeat acknowledges it at once
            timer = self._node.call_later_ms(self._interval_ms, self._wake.notify)
            await self._wake.wait()
            timer.cancel()

    def rejoin(self) -> None:
        """Do nothing, as the coordinator handles changes of topics."""

    def _leave_request(self) -> ConsumerGroupHeartbeatRequest | None:
        if self.generation == NO_GENERATION:
            return None
        instance_id = self._settings.group_instance_id
        epoch = LEAVE_EPOCH if instance_id is None else STATIC_LEAVE_EPOCH
        group_id = self._settings.group_id
        return ConsumerGroupHeartbeatRequest(group_id, self.member_id, epoch, instance_id)

    # -- heartbeats ----------------------------------------------------------------------------

    async def _send_heartbeat(self) -> bool:
        """Send a heartbeat and handle its answer; returns False if another is due at once."""
        settings = self._settings
        is_joining = self.generation == NO_GENERATION
        sends_all_fields = is_joining or self._must_send_all_fields
        owned = () if is_joining else self.owned
        request = ConsumerGroupHeartbeatRequest(
            settings.group_id,
            self.member_id,
            JOIN_EPOCH if is_joining else self.generation,
            settings.group_instance_id,
            None,
            settings.rebalance_timeout_ms if sends_all_fields else -1,
            settings.topics if sends_all_fields else None,
            None,
            settings.group_remote_assignor if sends_all_fields else None,
            self._by_topic_id(owned) if sends_all_fields or owned != self._reported_owned else None,
        )
        response: ConsumerGroupHeartbeatResponse | None = await self._link.heartbeat(
            request, settings.request_timeout_ms
        )
        if self.has_left:
            return False
        if response is None:
            self._must_send_all_fields = True
            return False
        if response.error is not _NONE:
            await self._handle_error(response.error)
            return False
        self._must_send_all_fields, self._reported_owned = False, owned
        self._set_membership(response.member_id or self.member_id, response.member_epoch)
        self._interval_ms = response.heartbeat_interval_ms
        if response.assignment is not None:
            await self._resolve_assignment(response.assignment)
        return not self.has_left

    def _by_topic_id(self, owned: Partitions) -> tuple[tuple[str, tuple[int, ...]], ...]:
        numbers: dict[str, list[int]] = {}
        for partition in owned:
            topic_id = self._owner.topic_id(partition.topic)
            numbers.setdefault(topic_id, []).append(partition.partition)
        return tuple((topic_id, tuple(found)) for topic_id, found in numbers.items())

    async def _resolve_assignment(
        self, assignment: tuple[tuple[str, tuple[int, ...]], ...]
    ) -> None:
        """Keep an assignment to adopt, once the names of its topics are known."""
        found: list[TopicPartition] = []
        for topic_id, numbers in assignment:
            name = self._owner.topic_name(topic_id)
            while name is None and not self.has_left:
                await sleep(self._node, RETRY_BACKOFF_MS)
                name = self._owner.topic_name(topic_id)
            found += [TopicPartition(name or "", number) for number in numbers]
        self._target = tuple(sorted(found))

    async def _handle_error(self, error: ErrorCode) -> None:
        """React to an error of the coordinator before the next heartbeat."""
        self._must_send_all_fields = True
        if error in _FENCED:
            self._set_membership(self.member_id, NO_GENERATION)
            self._target = None
            self._revoke(self.owned, is_lost=True)
            return
        if error in _FATAL:
            self._fail_membership(error)
        elif error in COORDINATOR_MOVED:
            self._link.broker_id = None
        await sleep(self._node, RETRY_BACKOFF_MS)

    # -- assignments ---------------------------------------------------------------------------

    async def _reconcile(self, target: Partitions) -> bool:
        """Give up revoked partitions and begin to read new ones; returns whether the partitions
        owned differ from those last reported."""
        revoked = tuple(p for p in self.owned if p not in target)
        if revoked:
            await self.commit()
            self._revoke(revoked, is_lost=False)
        new = tuple(p for p in target if p not in self.owned)
        member = self.member_id, self.generation
        positions: dict[TopicPartition, int] | None = {}
        if new and not self.has_left:
            with ClientOperation(self._node, "offset_fetch", self._settings.group_id) as operation:
                positions = await self._link.fetch_committed(new, lambda: not self.has_left, member)
                if positions is None:
                    operation.fail("to be asked again")
        if self.has_left:
            return False
        if positions is not None:
            self._target = None
            self.owned = target
            if new:
                self._owner.partitions_assigned(new, positions)
        return self.owned != self._reported_owned
