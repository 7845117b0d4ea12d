"""Everything the controller and brokers read from and write to ZooKeeper.

Names are those of Kafka's ``KafkaZkClient`` in snake case. Each step is one batch of requests, as
the cost lies in the round trips, not in the requests (KAFKA-5642). Writes by the controller take
``guard``, the version of ``/controller_epoch`` that they check.
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
    """Kafka's view of ZooKeeper, in one part per kind of node.

    ``work`` is called with the number of answers that are processed.
    """

    def __init__(
        self, client: AsyncZooKeeperClient, behaviour: Behaviour, work: Work = ignore_work
    ) -> None:
        self.requests: ZkRequests = ZkRequests(client, behaviour, work)
        """Requests for nodes by path, and handlers of their changes."""
        self.brokers: ZkBrokers = ZkBrokers(self.requests)
        """Nodes of the controller, of brokers and of the whole cluster."""
        self.topics: ZkTopics = ZkTopics(self.requests)
        """Assignments and leadership of partitions."""
        self.admin: ZkAdmin = ZkAdmin(self.requests)
        """Configurations, requests made by creating a znode, and notifications."""
        self.consumers: ZkConsumers = ZkConsumers(self.requests)
        """Offsets that old consumers commit to ZooKeeper."""


class ZkConsumers:
    """Offsets that old consumers commit with version 0 of OffsetCommit, and read with version 0 of
    OffsetFetch, at ``/consumers/<group>/offsets/<topic>/<partition>``."""

    def __init__(self, requests: ZkRequests) -> None:
        self._requests = requests

    async def get_consumer_offset(self, group_id: str, partition: TopicPartition) -> int | None:
        """Return a group's offset of a partition; None if there is none."""
        path = znode_paths.consumer_offset_path(group_id, partition)
        data, _ = await self._requests.get_data_and_stat(path)
        return int(data) if data else None

    async def set_or_create_consumer_offset(
        self, group_id: str, partition: TopicPartition, offset: int
    ) -> None:
        """Store a group's offset of a partition, creating the node and its parents if needed."""
        path = znode_paths.consumer_offset_path(group_id, partition)
        await self._requests.set_or_create(path, str(offset).encode(), UNGUARDED)
