"""The base of the members of groups, for either group protocol."""

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
    """The consumer that has a membership."""

    def partition_counts(self) -> Mapping[str, int] | None:
        """Return the number of partitions of each subscribed topic; None while one is unknown."""
        ...

    def topic_name(self, topic_id: str) -> str | None:
        """Return the name of a topic; None while it is unknown, upon which metadata are
        requested."""
        ...

    def topic_id(self, topic: str) -> str:
        """Return the id of a topic that was assigned by its id."""
        ...

    def partitions_assigned(self, partitions: Partitions, positions: Mapping[Any, int]) -> None:
        """Start reading new partitions from their positions; -1 where nothing is committed."""
        ...

    def partitions_revoked(self, partitions: Partitions, is_lost: bool) -> None:
        """Stop reading partitions; lost ones belong to another member by now."""
        ...

    def read_positions(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """Return the positions in partitions, where they are known."""
        ...


class Membership(ABC):
    """The membership of one consumer in its group."""

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
        """Generation of the group; in the consumer protocol, epoch of the member."""
        self.is_leader: bool = False
        """True if the member assigns the partitions; in the consumer protocol, it never does."""
        self.owned: Partitions = ()
        self.has_left: bool = False
        self.failure: ErrorCode | None = None
        """Error by which the group refused this member for good; None while there is none."""
        self.committed: dict[TopicPartition, int] = {}
        """Offsets of this member's commits that the coordinator has acknowledged."""

    @abstractmethod
    async def run(self) -> None:
        """Stay a member, until this client leaves or is refused for good."""

    @abstractmethod
    def rejoin(self) -> None:
        """Handle a change of the partitions to be assigned."""

    async def leave(self) -> None:
        """Commit, give up all partitions and leave; a static member's place is kept."""
        self.has_left = True
        self._wake.notify()
        await self.commit()
        self._revoke(self.owned, is_lost=False)
        leave_request = self._leave_request()
        if leave_request is not None and self._link.broker_id is not None:
            with ClientOperation(self._node, "leave_group", self._settings.group_id):
                await self._link.ask(leave_request)
        self.generation = NO_GENERATION

    @abstractmethod
    def _leave_request(self) -> Any:
        """Return the request by which this member leaves; None if none is needed."""

    def _set_membership(self, member_id: str, generation: int, is_leader: bool = False) -> None:
        """Set the member id, the generation and the role of leader."""
        self.member_id, self.generation, self.is_leader = member_id, generation, is_leader

    def _fail_membership(self, failure: ErrorCode) -> None:
        """End the membership after an error by which the group refuses this member for good."""
        self.failure = failure
        self._revoke(self.owned, is_lost=True)

    def _revoke(self, partitions: Partitions, *, is_lost: bool) -> None:
        if partitions:
            self.owned = tuple(p for p in self.owned if p not in partitions)
            self._owner.partitions_revoked(partitions, is_lost)

    async def commit(self) -> bool:
        """Commit the positions in the partitions owned; returns whether all were accepted."""
        return await self._link.commit_as_operation(self) is ErrorCode.NONE

    def read_positions(self) -> Mapping[TopicPartition, int]:
        """Return the positions in the partitions that this member owns."""
        return self._owner.read_positions(self.owned)
