"""A side whose brokers are handles of the public face."""

from __future__ import annotations

from fakekafka.protocol.errors import FakeKafkaError
from fakekafka.testing.emulated_cluster import EmulatedCluster
from fakekafka.tests.fidelity.sides.side import Side


class EmulatedSide(Side):
    """An emulated cluster, in real or in virtual time."""

    cluster: EmulatedCluster

    def start(self, broker: int) -> str:
        self.disturbed.add(broker)
        try:
            self.cluster.broker(broker).start()
        except FakeKafkaError:
            return "ended"
        self.up.add(broker)
        return "running"

    def kill(self, broker: int) -> None:
        self.cluster.broker(broker).kill()
        self.up.discard(broker)
        self.frozen.discard(broker)

    def stop(self, broker: int) -> None:
        self.cluster.broker(broker).shutdown()
        self.up.discard(broker)

    def freeze(self, broker: int) -> None:
        self.cluster.broker(broker).pause()
        self.frozen.add(broker)

    def thaw(self, broker: int) -> None:
        self.cluster.broker(broker).resume()
        self.frozen.discard(broker)
        self.disturbed.add(broker)
