"""Offsets that old consumers keep in ZooKeeper: versions 0 of OffsetCommit and OffsetFetch."""

from __future__ import annotations

from ...protocol import znode_paths
from ...protocol.values import TopicPartition
from .requests import MATCH_ANY_VERSION, ZkRequests


class ZkConsumers:
    """``/consumers/<group>/offsets/<topic>/<partition>``."""

    __slots__ = ("_requests",)

    def __init__(self, requests: ZkRequests) -> None:
        self._requests = requests

    async def get_consumer_offset(self, group_id: str, partition: TopicPartition) -> int | None:
        """The offset of a group; None where there is none."""
        path = znode_paths.consumer_offset_path(group_id, partition)
        data, _ = await self._requests.get_data_and_stat(path)
        return int(data) if data else None

    async def set_or_create_consumer_offset(
        self, group_id: str, partition: TopicPartition, offset: int
    ) -> None:
        """Keep the offset of a group; parents are created."""
        path = znode_paths.consumer_offset_path(group_id, partition)
        await self._requests.set_or_create(path, str(offset).encode(), MATCH_ANY_VERSION)
