"""Everything the controller and brokers read from and write to ZooKeeper.

Names are those of Kafka's ``KafkaZkClient`` in snake case. Each step is one batch of requests:
round trips, not requests, are what ZooKeeper costs (KAFKA-5642). Controller writes take
``expected_controller_epoch_zk_version`` and are guarded by it (see ``zk_base``).
"""

from __future__ import annotations

from .admin import ZkAdmin
from .brokers import ZkCluster
from .requests import MATCH_ANY_VERSION, UNKNOWN_VERSION, AsyncZooKeeperClient
from .topics import TopicIdReplicaAssignment, UpdateLeaderAndIsrResult, ZkTopics


class KafkaZkClient(ZkCluster, ZkTopics, ZkAdmin):
    """Kafka's view of ZooKeeper; construct with a client and the behaviour flags."""


__all__ = [
    "MATCH_ANY_VERSION",
    "UNKNOWN_VERSION",
    "AsyncZooKeeperClient",
    "KafkaZkClient",
    "TopicIdReplicaAssignment",
    "UpdateLeaderAndIsrResult",
]
