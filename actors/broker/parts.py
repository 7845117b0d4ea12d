"""The parts of a broker that the handlers of its requests work with."""

from __future__ import annotations

from dataclasses import dataclass

from ...coordinators.offsets.manager import OffsetManager
from ...protocol.config import BrokerConfig
from ...replication.partition.metadata_cache import MetadataCache
from ...replication.replica_manager import ReplicaManager
from ...statemachines.admin.manager import AdminManager
from ...statemachines.broker.dynamic_config import DynamicConfigManager
from ...statemachines.controller.controller import KafkaController
from ..node import Node
from .metadata_waiters import MetadataWaiters
from .producer_ids import ProducerIdSource


@dataclass(slots=True)
class BrokerParts:
    """Each group of handlers takes of these what it needs, once."""

    node: Node
    """Sends the replies, runs coroutines and writes the log."""
    config: BrokerConfig
    metadata_cache: MetadataCache
    replica_manager: ReplicaManager
    offsets: OffsetManager
    admin: AdminManager
    dynamic_config: DynamicConfigManager
    controller: KafkaController
    producer_ids: ProducerIdSource
    waiters: MetadataWaiters
