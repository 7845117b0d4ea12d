"""A ZooKeeper and Kafka's client of it, for tests of that client."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.values import (
    BrokerInfo,
    EndPoint,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    TopicPartition,
)
from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.zookeeper.client import KafkaZkClient
from fakekafka.tests.support.local_zookeeper import LocalZooKeeper, LocalZooKeeperClient
from fakekafka.tests.support.run_now import run_now
from fakekafka.zkfake.messages import CreateRequest, MultiRequest

TP = TopicPartition("t", 0)
T1, T2 = TopicPartition("t", 1), TopicPartition("t", 2)
BROKER = BrokerInfo(1, (EndPoint("h", 9092),))
OTHER_DATA = BrokerInfo(1, (EndPoint("elsewhere", 9092),))


class ZkFixture:
    """A ZooKeeper and a Kafka client of it."""

    def __init__(self, version: str = "2.8", zookeeper: LocalZooKeeper | None = None) -> None:
        self.zookeeper = LocalZooKeeper() if zookeeper is None else zookeeper
        self.client = LocalZooKeeperClient(self.zookeeper)
        self.zk = KafkaZkClient(self.client, behaviour(version))

    def beside(self) -> ZkFixture:
        """Return another process's client of the same ZooKeeper."""
        return ZkFixture(self.zk.requests.behaviour.kafka_version, self.zookeeper)


def with_top_level_paths() -> ZkFixture:
    """Return a 2.8 client of a ZooKeeper with the top-level paths."""
    made = ZkFixture()
    run_now(made.zk.brokers.create_top_level_paths())
    return made


def decision(
    leader: int = 1, epoch: int = 0, isr: tuple[int, ...] = (1, 2), version: int = 0
) -> LeaderIsrAndControllerEpoch:
    return LeaderIsrAndControllerEpoch(LeaderAndIsr(leader, epoch, isr, version), 1)


def is_election(request: Any) -> bool:
    return isinstance(request, MultiRequest) and isinstance(request.operations[0], CreateRequest)
