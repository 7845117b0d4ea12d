"""Producer ids: blocks of 1000 taken from ZooKeeper (Kafka: ``ZkProducerIdManager``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol.awaiting import Pending

if TYPE_CHECKING:
    from ..statemachines.kafka_zk_client import KafkaZkClient


class ProducerIds:
    """Hands out ids of the current block; parks callers while a new block is fetched."""

    def __init__(self, broker_id: int, zk: KafkaZkClient) -> None:
        self._broker_id = broker_id
        self._zk = zk
        self._next = 0
        self._end = -1  # last id of the block, inclusive; below _next: exhausted
        self._fetching: Pending[None] | None = None

    async def next_id(self) -> int:
        """A producer id no other broker hands out."""
        while self._next > self._end:
            if self._fetching is not None:
                await self._fetching
                continue
            self._fetching = Pending()
            try:
                self._next, self._end = await self._zk.allocate_producer_id_block(self._broker_id)
            finally:
                fetched, self._fetching = self._fetching, None
                fetched.set_result(None)
        producer_id = self._next
        self._next += 1
        return producer_id
