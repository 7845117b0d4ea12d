"""What the groups of request handlers of a broker share: its parts, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol.errors import FakeKafkaError
from .channels import broker_name
from .node import Node

if TYPE_CHECKING:
    from ..coordinators.offset_manager import OffsetManager
    from ..protocol.admin import CreateTopicsRequest
    from ..protocol.config import BrokerConfig
    from ..protocol.versions import Behaviour
    from ..replication.metadata_cache import MetadataCache
    from ..replication.replica_manager import ReplicaManager
    from ..statemachines.admin_manager import AdminManager
    from ..statemachines.controller import KafkaController
    from ..statemachines.dynamic_config import DynamicConfigManager
    from ..statemachines.kafka_zk_client import KafkaZkClient
    from .producer_ids import ProducerIds
    from .waiting import MetadataWaiters


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
    producer_ids: ProducerIds
    waiters: MetadataWaiters

    def controller_broker_name(self) -> str | None:
        """Node of the broker believed to be the active controller."""
        controller_id = self.metadata_cache.controller_id
        return None if controller_id is None else broker_name(controller_id)

    async def create_at_controller(self, request: CreateTopicsRequest) -> None:
        """Forward a creation to the active controller; the metadata update tells the outcome."""
        destination = self.controller_broker_name()
        if destination is None:
            return
        try:
            await self.ask(destination, request, request.timeout_ms + 1000)
        except FakeKafkaError as error:
            self.runtime.log(self.name, "info", f"topic auto-creation: {error}")
