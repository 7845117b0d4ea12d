"""A member's connection to the coordinator of its group: finding it, sending requests to it, and
the offsets that it stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ...protocol.awaiting import Disconnected, RequestTimeout
from ...protocol.data import FindCoordinatorRequest
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.groups import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from ...protocol.host import sleep
from ...protocol.names import broker_name
from ...protocol.values import TopicPartition
from .assignors import Partitions
from .client import RETRY_BACKOFF_MS, SimulatedClient
from .client_operation import ClientOperation
from .group_settings import GroupConsumerSettings

_NONE = ErrorCode.NONE
COORDINATOR_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
"""Errors after which the coordinator has to be found again."""


class CommittingMember(Protocol):
    """A member whose positions are committed."""

    member_id: str
    generation: int
    committed: dict[TopicPartition, int]

    def read_positions(self) -> Mapping[TopicPartition, int]:
        """Return the positions in the partitions that the member owns."""
        ...


class CoordinatorLink:
    """Remembers which broker coordinates the group, until that broker fails to answer."""

    def __init__(
        self,
        node: SimulatedClient,
        settings: GroupConsumerSettings,
        brokers: Callable[[], list[int]],
    ) -> None:
        self._node = node
        self._settings = settings
        self._group_id = settings.group_id
        self._brokers = brokers
        self._next_broker_index = 0
        self.broker_id: int | None = None
        """Id of the coordinator; None while it is unknown."""

    async def find_coordinator(self) -> bool:
        """Ask the next broker for the coordinator of the group; returns whether it knew."""
        brokers = self._brokers()
        broker_id = brokers[self._next_broker_index % len(brokers)]
        self._next_broker_index += 1
        request = FindCoordinatorRequest((self._group_id,))
        response = await self._ask_broker(broker_id, request, self._settings.request_timeout_ms)
        if response is None or response.coordinators[0].error is not _NONE:
            return False
        self.broker_id = response.coordinators[0].node_id
        return True

    async def find_coordinator_as_operation(self) -> bool:
        """Do as ``find_coordinator``, as an operation of its own."""
        with ClientOperation(self._node, "find_coordinator", self._group_id) as operation:
            found = await self.find_coordinator()
            if not found:
                operation.fail("not known")
        return found

    async def heartbeat(self, request: Any, timeout_ms: int) -> Any:
        """Send a heartbeat with ``ask``, as an operation of its own."""
        with ClientOperation(self._node, "heartbeat", self._group_id) as operation:
            response = await self.ask(request, timeout_ms)
            if response is None:
                operation.fail("no answer")
            elif response.error is not _NONE:
                operation.fail(response.error.name)
        return response

    async def ask(self, request: Any, timeout_ms: int | None = None) -> Any:
        """Send a request to the coordinator; if there is no answer, forget it and return None."""
        if self.broker_id is None:
            return None
        wait_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        response = await self._ask_broker(self.broker_id, request, wait_ms)
        if response is None:
            self.broker_id = None
        return response

    async def _ask_broker(self, broker_id: int, request: Any, timeout_ms: int) -> Any:
        try:
            return await self._node.ask(broker_name(broker_id), request, timeout_ms)
        except (RequestTimeout, Disconnected, KafkaError):
            return None

    # -- offsets -------------------------------------------------------------------------------

    async def fetch_committed(
        self, partitions: Partitions, is_current: Callable[[], bool], member: Any = (None, -1)
    ) -> dict[TopicPartition, int] | None:
        """Fetch the committed offsets; None if the coordinator or the membership has been lost.

        ``member`` is the id and epoch of a member of the consumer protocol.
        """
        while partitions and is_current():
            request = OffsetFetchRequest(self._group_id, partitions, True, *member)
            response = await self.ask(request)
            if response is None:
                return None
            errors = [response.error, *(answer.error for answer in response.partitions)]
            failed = next((error for error in errors if error is not _NONE), _NONE)
            if failed is _NONE:
                return {answer.topic_partition: answer.offset for answer in response.partitions}
            if failed in COORDINATOR_MOVED:
                self.broker_id = None
                return None
            if failed in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH):
                return None
            await sleep(self._node, RETRY_BACKOFF_MS)
        return {}

    async def commit(self, member: CommittingMember) -> ErrorCode:
        """Commit a member's positions, and note those accepted; returns the first error, or
        NONE."""
        return await self._commit(member, member.read_positions())

    async def commit_as_operation(self, member: CommittingMember) -> ErrorCode:
        """Do as ``commit``, as an operation of its own if there are positions and a coordinator."""
        positions = member.read_positions()
        if self.broker_id is None or not positions:
            return await self._commit(member, positions)
        with ClientOperation(self._node, "offset_commit", self._group_id) as operation:
            error = await self._commit(member, positions)
            if error is not _NONE:
                operation.fail(error.name)
        return error

    async def _commit(
        self, member: CommittingMember, positions: Mapping[TopicPartition, int]
    ) -> ErrorCode:
        if not positions:
            return _NONE
        committed = member.committed
        request = OffsetCommitRequest(
            self._group_id,
            member.generation,
            member.member_id,
            self._settings.group_instance_id,
            tuple(OffsetCommitPartition(p, offset) for p, offset in positions.items()),
        )
        response = await self.ask(request)
        if response is None:
            return ErrorCode.NETWORK_EXCEPTION
        errors = dict(response.partitions)
        for partition, offset in positions.items():
            if errors.get(partition) is _NONE:
                committed[partition] = offset
        if any(error in COORDINATOR_MOVED for error in errors.values()):
            self.broker_id = None
        return next((error for error in errors.values() if error is not _NONE), _NONE)
