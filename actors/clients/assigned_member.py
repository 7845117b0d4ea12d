"""A member of a group of the consumer protocol (KIP-848): it beats, says what it reads, and takes
what its coordinator assigns, as Kafka's ``ConsumerMembershipManager`` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...protocol.awaiting import Signal
from ...protocol.errors import ErrorCode
from ...protocol.groups import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_GENERATION,
    NO_MEMBER,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ...protocol.host import sleep
from ...protocol.values import TopicPartition
from .assignors import Partitions
from .client import RETRY_BACKOFF_MS, SimulatedClient
from .client_operation import ClientOperation
from .coordinator_link import ELSEWHERE, CoordinatorLink
from .group_member import MemberOwner
from .group_settings import GroupConsumerSettings

_NONE = ErrorCode.NONE
_FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
"""Errors after which a member gives up what it has, and joins again."""
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


class AssignedMember:
    """The membership of one consumer, run as a coroutine of its node."""

    is_leader = False
    """The coordinator assigns; no member leads."""

    def __init__(
        self,
        node: SimulatedClient,
        owner: MemberOwner,
        settings: GroupConsumerSettings,
        brokers: Callable[[], list[int]],
    ) -> None:
        self._node = node
        self._owner = owner
        self._settings = settings
        self._link = CoordinatorLink(node, settings, brokers)
        self._wake = Signal()
        self._says_all = True
        """The next heartbeat tells everything: an answer may have been lost."""
        self._interval_ms = RETRY_BACKOFF_MS
        self._told: Partitions = ()
        self._target: Partitions | None = None
        """What it was assigned and has not taken yet."""
        self.member_id: str = NO_MEMBER
        self.generation: int = NO_GENERATION
        """Its epoch."""
        self.owned: Partitions = ()
        self.has_left: bool = False
        self.failure: ErrorCode | None = None
        """Why the group takes this member no more."""
        self.committed: dict[TopicPartition, int] = {}
        """What the coordinator has acknowledged, by this member."""

    async def run(self) -> None:
        """Join and beat, until it leaves or may not be a member."""
        while not self.has_left and self.failure is None:
            if self._link.broker_id is None and not await self._link.seek():
                await sleep(self._node, RETRY_BACKOFF_MS)
                continue
            if not await self._beat():
                continue
            if self._target is not None and await self._take(self._target):
                continue  # the next heartbeat acknowledges it at once
            timer = self._node.call_later_ms(self._interval_ms, self._wake.notify)
            await self._wake.wait()
            timer.cancel()

    def rejoin(self) -> None:
        """The coordinator sees to changes of topics."""

    async def leave(self) -> None:
        """Commit, give everything up and leave; a static member's place is kept for it."""
        self.has_left = True
        self._wake.notify()
        await self.commit()
        self._give_up(self.owned, is_lost=False)
        instance_id = self._settings.group_instance_id
        if self.generation != NO_GENERATION:
            epoch = LEAVE_EPOCH if instance_id is None else STATIC_LEAVE_EPOCH
            group_id = self._settings.group_id
            request = ConsumerGroupHeartbeatRequest(group_id, self.member_id, epoch, instance_id)
            if self._link.broker_id is not None:
                with ClientOperation(self._node, "leave_group", group_id):
                    await self._link.ask(request)
        self.generation = NO_GENERATION

    # -- heartbeats ----------------------------------------------------------------------------

    async def _beat(self) -> bool:
        """Send a heartbeat and take in its answer; False if another is due at once."""
        settings = self._settings
        joins = self.generation == NO_GENERATION
        says_all = joins or self._says_all
        owned = () if joins else self.owned
        request = ConsumerGroupHeartbeatRequest(
            settings.group_id,
            self.member_id,
            JOIN_EPOCH if joins else self.generation,
            settings.group_instance_id,
            None,
            settings.rebalance_timeout_ms if says_all else -1,
            settings.topics if says_all else None,
            None,
            settings.group_remote_assignor if says_all else None,
            self._by_topic_id(owned) if says_all or owned != self._told else None,
        )
        response: ConsumerGroupHeartbeatResponse | None = await self._link.beat(
            request, settings.request_timeout_ms
        )
        if self.has_left:
            return False
        if response is None:
            self._says_all = True
            return False
        if response.error is not _NONE:
            await self._refused(response.error)
            return False
        self._says_all, self._told = False, owned
        self.member_id = response.member_id or self.member_id
        self.generation = response.member_epoch
        self._interval_ms = response.heartbeat_interval_ms
        if response.assignment is not None:
            await self._learn(response.assignment)
        return not self.has_left

    def _by_topic_id(self, owned: Partitions) -> tuple[tuple[str, tuple[int, ...]], ...]:
        numbers: dict[str, list[int]] = {}
        for partition in owned:
            topic_id = self._owner.topic_id(partition.topic)
            numbers.setdefault(topic_id, []).append(partition.partition)
        return tuple((topic_id, tuple(found)) for topic_id, found in numbers.items())

    async def _learn(self, assignment: tuple[tuple[str, tuple[int, ...]], ...]) -> None:
        """Keep an assignment, once the names of its topics are known."""
        found: list[TopicPartition] = []
        for topic_id, numbers in assignment:
            name = self._owner.topic_name(topic_id)
            while name is None and not self.has_left:
                await sleep(self._node, RETRY_BACKOFF_MS)
                name = self._owner.topic_name(topic_id)
            found += [TopicPartition(name or "", number) for number in numbers]
        self._target = tuple(sorted(found))

    async def _refused(self, error: ErrorCode) -> None:
        """Do what an error of the coordinator asks for before the next heartbeat."""
        self._says_all = True
        if error in _FENCED:
            self.generation = NO_GENERATION
            self._target = None
            self._give_up(self.owned, is_lost=True)
            return
        if error in _FATAL:
            self.failure = error
            self._give_up(self.owned, is_lost=True)
        elif error in ELSEWHERE:
            self._link.broker_id = None
        await sleep(self._node, RETRY_BACKOFF_MS)

    # -- assignments ---------------------------------------------------------------------------

    async def _take(self, target: Partitions) -> bool:
        """Give up what went to others, begin with what is new; whether there is news to tell."""
        revoked = tuple(p for p in self.owned if p not in target)
        if revoked:
            await self.commit()
            self._give_up(revoked, is_lost=False)
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
        return self.owned != self._told

    def _give_up(self, partitions: Partitions, *, is_lost: bool) -> None:
        if partitions:
            self.owned = tuple(p for p in self.owned if p not in partitions)
            self._owner.partitions_revoked(partitions, is_lost)

    async def commit(self) -> bool:
        """Commit what was read of the partitions owned; whether all of it was taken."""
        return await self._link.commit_apart(self) is _NONE

    def read_positions(self) -> Mapping[TopicPartition, int]:
        """Return the positions in the partitions that it owns."""
        return self._owner.read_positions(self.owned)
