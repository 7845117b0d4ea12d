"""The common part of the members of groups, whichever protocol they speak."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ...protocol.awaiting import Signal
from ...protocol.errors import ErrorCode
from ...protocol.groups import NO_GENERATION, NO_MEMBER
from ...protocol.values import TopicPartition
from .assignors import Partitions
from .client import SimulatedClient
from .client_operation import ClientOperation
from .coordinator_link import CoordinatorLink
from .group_settings import GroupConsumerSettings


class MemberOwner(Protocol):
    """The consumer whose membership it is."""

    def partition_counts(self) -> Mapping[str, int] | None:
        """Partitions of the topics subscribed to; None while some are not known."""
        ...

    def topic_name(self, topic_id: str) -> str | None:
        """The name of a topic; None, and it is asked for, while that is not known."""
        ...

    def topic_id(self, topic: str) -> str:
        """The id of a topic that was assigned by its id."""
        ...

    def partitions_assigned(self, partitions: Partitions, positions: Mapping[Any, int]) -> None:
        """New partitions, and where to begin with them; -1 where nothing is committed."""
        ...

    def partitions_revoked(self, partitions: Partitions, is_lost: bool) -> None:
        """Stop reading these partitions; lost ones belong to another member by now."""
        ...

    def read_positions(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """Return how far these have been read, where that is known."""
        ...


class Membership(ABC):
    """The place of one consumer in its group."""

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
        self.member_id: str = NO_MEMBER
        self.generation: int = NO_GENERATION
        """Of the group, or the epoch of a member of the consumer protocol."""
        self.is_leader: bool = False
        """True if it assigns; in the consumer protocol the coordinator does."""
        self.owned: Partitions = ()
        self.has_left: bool = False
        self.failure: ErrorCode | None = None
        """Why the group takes this member no more."""
        self.committed: dict[TopicPartition, int] = {}
        """What the coordinator has acknowledged, by this member."""

    @abstractmethod
    async def run(self) -> None:
        """Be a member, until it leaves or may not be one."""

    @abstractmethod
    def rejoin(self) -> None:
        """What the members are to be assigned has changed."""

    async def leave(self) -> None:
        """Commit, give everything up and leave; a static member's place is kept for it."""
        self.has_left = True
        self._wake.notify()
        await self.commit()
        self._give_up(self.owned, is_lost=False)
        farewell = self._farewell()
        if farewell is not None and self._link.broker_id is not None:
            with ClientOperation(self._node, "leave_group", self._settings.group_id):
                await self._link.ask(farewell)
        self.generation = NO_GENERATION

    @abstractmethod
    def _farewell(self) -> Any:
        """The request by which it leaves; None if there is nothing to say."""

    def _be(self, member_id: str, generation: int, is_leader: bool = False) -> None:
        """Be what the coordinator says, or what an error of it leaves."""
        self.member_id, self.generation, self.is_leader = member_id, generation, is_leader

    def _end(self, failure: ErrorCode) -> None:
        """The group takes this member no more."""
        self.failure = failure
        self._give_up(self.owned, is_lost=True)

    def _give_up(self, partitions: Partitions, *, is_lost: bool) -> None:
        if partitions:
            self.owned = tuple(p for p in self.owned if p not in partitions)
            self._owner.partitions_revoked(partitions, is_lost)

    async def commit(self) -> bool:
        """Commit what was read of the partitions owned; whether all of it was taken."""
        return await self._link.commit_apart(self) is ErrorCode.NONE

    def read_positions(self) -> Mapping[TopicPartition, int]:
        """Return the positions in the partitions that it owns."""
        return self._owner.read_positions(self.owned)
