"""The parts of a broker that the handlers of its requests work with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...coordinators.groups.coordinator import GroupCoordinator
from ...coordinators.transactions.coordinator import TransactionCoordinator
from ...protocol.config import BrokerConfig
from ...protocol.versions import Behaviour
from ...replication.partition.metadata_cache import MetadataCache
from ...replication.replica_manager import ReplicaManager
from ...statemachines.admin.manager import AdminManager
from ...statemachines.broker.dynamic_config import DynamicConfigManager
from ...statemachines.controller.controller import KafkaController
from ...statemachines.zookeeper.client import KafkaZkClient
from ..node import Node
from .controller_channel import ControllerChannel
from .metadata_waiters import MetadataWaiters
from .security import BrokerSecurity


@dataclass(slots=True)
class BrokerParts:
    """Each group of handlers takes of these what it needs, once."""

    node: Node
    """Sends the replies, runs coroutines and writes the log."""
    config: BrokerConfig
    behaviour: Behaviour
    zk: KafkaZkClient
    metadata_cache: MetadataCache
    replica_manager: ReplicaManager
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    admin: AdminManager
    dynamic_config: DynamicConfigManager
    controller: KafkaController
    waiters: MetadataWaiters
    controller_channels: Sequence[ControllerChannel]
    security: BrokerSecurity
