"""Producer ids, allocated in blocks of 1000 from ZooKeeper, since 3.0 by the controller (KIP-730).

Kafka: ``ZkProducerIdManager``, and since 3.0 ``RPCProducerIdManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from ...protocol.awaiting import Cancelled, Pending, RequestTimeout
from ...protocol.control import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ...protocol.errors import ErrorCode, FakeKafkaError, KafkaError
from ..node import Node
from .controller_channel import ControllerChannel

_PREFETCH_AT = 900
"""Position of the id, among the 1000 of a block, whose use triggers a request for the next."""
_RETRY_BACKOFF_MS = 50


AllocateBlock = Callable[[int], Coroutine[Any, Any, tuple[int, int]]]
"""Called with a broker id; allocates a block of ids and returns its first and its last."""


class ProducerIdSource(Protocol):
    """Hands out producer ids."""

    async def start(self) -> None:
        """Allocate the first block if the broker needs one to start; raises ``KafkaError``."""
        ...

    async def next_id(self) -> int:
        """Return a producer id that no other broker hands out; raises ``KafkaError``."""
        ...

    def forget_block(self) -> None:
        """Drop the current block, as blocks are counted from 0 again."""
        ...


class ProducerIds:
    """Hands out ids of the current block; parks callers while a new block is fetched."""

    def __init__(self, broker_id: int, allocate: AllocateBlock) -> None:
        self._broker_id = broker_id
        self._allocate = allocate
        self._next = 0
        self._end = -1  # last id of the block, inclusive; below _next: exhausted
        self._fetching: Pending[None] | None = None

    async def start(self) -> None:
        """Allocate the first block, as the constructor of Kafka's ``ProducerIdManager`` up to
        2.8."""
        self._next, self._end = await self._allocate(self._broker_id)

    def forget_block(self) -> None:
        self._next, self._end = 0, -1

    async def next_id(self) -> int:
        while self._next > self._end:
            if self._fetching is not None:
                await self._fetching
                continue
            self._fetching = Pending()
            try:
                self._next, self._end = await self._allocate(self._broker_id)
            finally:
                fetched, self._fetching = self._fetching, None
                fetched.set_result(None)
        producer_id = self._next
        self._next += 1
        return producer_id


class PrefetchedProducerIds:
    """Hands out ids of prefetched blocks; while there is none, it refuses callers instead of
    parking them (KAFKA-14694)."""

    def __init__(self, node: Node, broker_id: int, allocate: AllocateBlock) -> None:
        self._node = node
        self._broker_id = broker_id
        self._allocate = allocate
        self._next = 0
        self._end = -1  # last id of the block, inclusive; below _next: exhausted
        self._prefetch_at = -1
        self._next_block: tuple[int, int] | None = None
        self._is_fetching = False
        self._retry_at_ms = 0

    async def start(self) -> None:
        """Do nothing, as the first block is allocated when an id is first needed."""

    def forget_block(self) -> None:
        self._next, self._end = 0, -1
        self._prefetch_at, self._next_block = -1, None

    async def next_id(self) -> int:
        """Return an id; raises ``KafkaError`` COORDINATOR_LOAD_IN_PROGRESS if there is no block."""
        if self._next > self._end:
            if self._next_block is None:
                self._fetch()
                raise KafkaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    "Producer ID block is full. Waiting for next block",
                )
            (self._next, self._end), self._next_block = self._next_block, None
            self._prefetch_at = self._next + _PREFETCH_AT
        producer_id = self._next
        self._next += 1
        if producer_id == self._prefetch_at:
            self._fetch()
        return producer_id

    def _fetch(self) -> None:
        if self._is_fetching or self._next_block or self._node.now_ms() < self._retry_at_ms:
            return
        self._is_fetching = True
        self._node.start_task(self._fetch_block())

    async def _fetch_block(self) -> None:
        try:
            block = await self._allocate(self._broker_id)
            if block[0] < self._end:
                raise FakeKafkaError(f"{block} begins before the end of the block in use")
            self._next_block = block
        except Cancelled:
            raise
        except RequestTimeout as timeout:
            self._node.log("warn", f"no block of producer ids: {timeout}")
        except FakeKafkaError as error:
            self._node.log("warn", f"no block of producer ids: {error}")
            self._retry_at_ms = self._node.now_ms() + _RETRY_BACKOFF_MS
        finally:
            self._is_fetching = False


class ControllerBlockAllocator:
    """Asks the controller for blocks (KIP-730)."""

    def __init__(self, channel: ControllerChannel, broker_epoch: Callable[[], int]) -> None:
        self._channel = channel
        self._broker_epoch = broker_epoch

    async def allocate(self, broker_id: int) -> tuple[int, int]:
        """Return the first and the last id of a new block.

        Raises ``KafkaError`` if the controller refuses, and ``RequestTimeout``.
        """
        request = AllocateProducerIdsRequest(broker_id, self._broker_epoch())
        response: AllocateProducerIdsResponse = await self._channel.ask(request)
        if response.error is not ErrorCode.NONE:
            raise KafkaError(response.error, "the controller refused to allocate producer ids")
        first = response.first_producer_id
        return first, first + response.count - 1
