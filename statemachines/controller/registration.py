"""A broker's own registration (docs/kafka/controller-failover.md#broker-epochs,
docs/kafka/brokers.md#start-of-a-broker).

The controller owns it, because in a new ZooKeeper session the controller registers the broker again
before it stands for election.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.host import Host
from ...protocol.values import BrokerInfo
from ...zkfake.messages import ZkCode, ZooKeeperError
from ..zookeeper.client import KafkaZkClient


class BrokerRegistration:
    """Registers the broker at ``/brokers/ids/<id>``; the node's czxid is the ``broker_epoch``."""

    def __init__(
        self, zk: KafkaZkClient, host: Host, broker_info: Callable[[], BrokerInfo]
    ) -> None:
        self._zk = zk
        self._host = host
        self._broker_info = broker_info
        self.broker_epoch: int = -1
        """Broker epoch of this broker's registration; -1 before it registered."""

    async def check_vacant(self) -> None:
        """Raise ``KafkaError`` (DUPLICATE_BROKER_REGISTRATION) if the id is taken."""
        if await self._zk.brokers.get_broker(self._broker_info().id) is not None:
            raise self._duplicate()

    def _duplicate(self) -> KafkaError:
        return KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"broker id {self._broker_info().id} is registered by another broker (NodeExists)",
        )

    async def register(self) -> None:
        """Register the broker when it starts.

        Raises ``KafkaError``: INVALID_REQUEST if another registered broker advertises one of
        this broker's addresses, DUPLICATE_BROKER_REGISTRATION if the id is taken (CP-195).
        """
        info = self._broker_info()
        own = {(endpoint.host, endpoint.port) for endpoint in info.endpoints}
        for other in await self._zk.brokers.get_all_brokers_in_cluster():
            shared = [e for e in other.endpoints if (e.host, e.port) in own]
            if other.id != info.id and shared:
                addresses = ", ".join(f"{e.host}:{e.port}" for e in shared)
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Configured end points {addresses} in advertised listeners are already "
                    f"registered by broker {other.id}",
                )
        try:
            await self.register_again()
        except ZooKeeperError as error:
            if error.code != ZkCode.NODEEXISTS:
                raise
            raise self._duplicate() from None

    async def register_again(self) -> None:
        """Register in a new session; raises ``ZooKeeperError`` (NODEEXISTS) if the id is taken."""
        self.broker_epoch = await self._zk.brokers.register_broker(
            self._broker_info(), self._host.wall_ms()
        )
