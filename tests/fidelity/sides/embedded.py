"""A side with sockets: ``Cluster``, with its ZooKeeper's port."""

from __future__ import annotations

from fakekafka.testing.cluster import Cluster
from fakekafka.testing.defaults import kafka_defaults
from fakekafka.tests.fidelity.sides.emulated import EmulatedSide
from fakekafka.tests.fidelity.sides.real_time import RealTimeSide
from fakekafka.tests.fidelity.sides.side import ClusterShape


class EmbeddedSide(EmulatedSide, RealTimeSide):
    """``Cluster``, over TCP."""

    name = "cluster"
    quiet_s = 0.7

    def __init__(self, kafka_version: str, shape: ClusterShape) -> None:
        super().__init__(kafka_version, shape)
        self.cluster = Cluster(
            shape.brokers,
            kafka_version=kafka_version,
            config={**kafka_defaults(kafka_version), **shape.configuration()},
            racks=list(shape.racks[: shape.brokers]) or None,
        )
        self.cluster.start()
        self.up = set(self.broker_ids)
        self.zookeeper_connect = self.cluster.zookeeper_connect
        for broker in self.broker_ids:
            self.addresses[broker] = ("127.0.0.1", self.cluster.broker(broker).port)

    def close(self) -> None:
        super().close()
        self.cluster.stop()
