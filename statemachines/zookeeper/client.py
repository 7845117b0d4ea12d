"""Everything the controller and brokers read from and write to ZooKeeper.

Names are those of Kafka's ``KafkaZkClient`` in snake case. Each step is one batch of requests:
round trips, not requests, are what ZooKeeper costs (KAFKA-5642). Controller writes take
``expected_controller_epoch_zk_version`` and are guarded by it.
"""

from __future__ import annotations

from ...protocol.versions import Behaviour
from .admin import ZkAdmin
from .brokers import ZkBrokers
from .consumers import ZkConsumers
from .requests import AsyncZooKeeperClient, ZkRequests
from .timed_work import Work, ignore_work
from .topics import ZkTopics


class KafkaZkClient:
    """Kafka's view of ZooKeeper, by what the nodes are about.

    ``work`` is told of the answers looked at.
    """

    __slots__ = ("admin", "brokers", "consumers", "requests", "topics")

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
