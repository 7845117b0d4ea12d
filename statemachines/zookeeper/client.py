"""Everything the controller and brokers read from and write to ZooKeeper.

Names are those of Kafka's ``KafkaZkClient`` in snake case. Each step is one batch of requests:
round trips, not requests, are what ZooKeeper costs (KAFKA-5642). Controller writes take
``guard`` and are guarded by it.
"""

from __future__ import annotations

from ...protocol import znode_paths
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from .admin import ZkAdmin
from .brokers import ZkBrokers
from .requests import UNGUARDED, AsyncZooKeeperClient, ZkRequests
from .timed_work import Work, ignore_work
from .topics import ZkTopics


class KafkaZkClient:
    """Kafka's view of ZooKeeper, by what the nodes are about.

    ``work`` is told of the answers looked at.
    """

    def __init__(
        self, client: AsyncZooKeeperClient, behaviour: Behaviour, work: Work = ignore_work
    ) -> None:
        self.requests: ZkRequests = ZkRequests(client, behaviour, work)
        """Nodes by their path, and handlers of what happens to them."""
        self.brokers: ZkBrokers = ZkBrokers(self.requests)
        """The controller's nodes, registrations and what the cluster has one of."""
        self.topics: ZkTopics = ZkTopics(self.requests)
        """Assignments and the leadership of partitions."""
        self.admin: ZkAdmin = ZkAdmin(self.requests)
        """Configurations, requests made by znode, notifications."""
        self.consumers: ZkConsumers = ZkConsumers(self.requests)
        """Offsets of old consumers."""


class ZkConsumers:
    """``/consumers/<group>/offsets/<topic>/<partition>``: offsets that old consumers keep in
    ZooKeeper, with versions 0 of OffsetCommit and OffsetFetch."""

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
        await self._requests.set_or_create(path, str(offset).encode(), UNGUARDED)
