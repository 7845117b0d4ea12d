"""What the groups of request handlers of a broker share: its parts, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.names import broker_name
from ....zkfake.messages import ZooKeeperError
from ...node import Node

if TYPE_CHECKING:
    from ....coordinators.offsets.manager import OffsetManager
    from ....protocol.config import BrokerConfig
    from ....protocol.versions import Behaviour
    from ....replication.partition.metadata_cache import MetadataCache
    from ....replication.replica_manager import ReplicaManager
    from ....statemachines.admin.manager import AdminManager
    from ....statemachines.broker.dynamic_config import DynamicConfigManager
    from ....statemachines.controller.controller import KafkaController
    from ....statemachines.zookeeper.client import KafkaZkClient
    from ...delivery import Delivery
    from ..metadata_waiters import MetadataWaiters
    from ..producer_ids import ProducerIdSource


class BrokerBase(Node):
    """A broker without its handlers; ``Broker`` makes the parts."""

    broker_id: int
    config: BrokerConfig
    behaviour: Behaviour
    controller: KafkaController
    zk: KafkaZkClient
    metadata_cache: MetadataCache
    replica_manager: ReplicaManager
    admin: AdminManager
    dynamic_config: DynamicConfigManager
    offsets: OffsetManager
    producer_ids: ProducerIdSource
    waiters: MetadataWaiters

    def handler_failed(self, error: BaseException, delivery: Delivery) -> None:
        """A session that ends under a request is no bug; Kafka too knows no better error."""
        if isinstance(error, ZooKeeperError):
            self.runtime.log(self.name, "warn", f"{type(delivery.message).__name__}: {error}")
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
        super().handler_failed(error, delivery)

    def controller_broker_name(self) -> str | None:
        """Node of the broker believed to be the active controller."""
        controller_id = self.metadata_cache.controller_id
        return None if controller_id is None else broker_name(controller_id)
