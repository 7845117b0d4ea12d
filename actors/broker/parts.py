"""The parts of a broker that the handlers of its requests work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...protocol.config import BrokerConfig
from ...protocol.versions import Behaviour
from ...replication.partition.metadata_cache import MetadataCache
from ...replication.replica_manager import ReplicaManager
from ...statemachines.admin.manager import AdminManager
from ...statemachines.broker.dynamic_config import DynamicConfigManager
from ...statemachines.controller.controller import KafkaController
from ...statemachines.zookeeper.client import KafkaZkClient
from ..delivery import Delivery
from ..node import Node
from ..port import Handler
from .controller_channel import ControllerChannel
from .coordinators import Coordinators
from .metadata_waiters import MetadataWaiters
from .security import BrokerSecurity


@dataclass(slots=True)
class BrokerParts:
    """What a group of handlers may need."""

    node: Node
    """Sends the replies, runs coroutines and writes the log."""
    config: BrokerConfig
    behaviour: Behaviour
    zk: KafkaZkClient
    metadata_cache: MetadataCache
    replica_manager: ReplicaManager
    coordinators: Coordinators
    admin: AdminManager
    dynamic_config: DynamicConfigManager
    controller: KafkaController
    waiters: MetadataWaiters
    controller_channels: Sequence[ControllerChannel]
    security: BrokerSecurity


class BrokerHandlers:
    """A group of handlers of requests, with the parts of its broker at hand."""

    def __init__(self, parts: BrokerParts) -> None:
        self._node = parts.node
        self._config = parts.config
        self._behaviour = parts.behaviour
        self._zk = parts.zk
        self._metadata_cache = parts.metadata_cache
        self._replica_manager = parts.replica_manager
        self._coordinators = parts.coordinators
        self._admin = parts.admin
        self._dynamic_config = parts.dynamic_config
        self._controller = parts.controller
        self._waiters = parts.waiters
        self._controller_channels = parts.controller_channels
        self._security = parts.security

    def by_type(self) -> dict[type, Handler]:
        """Return the handlers by the requests they take."""
        raise NotImplementedError


async def _ask(work: Callable[[Any], Awaitable[Any]], request: Any, _delivery: Delivery) -> Any:
    return await work(request)


def answered_by(work: Callable[[Any], Awaitable[Any]]) -> Handler:
    """Return the handler of a request to which this coroutine gives the answer."""
    return partial(_ask, work)
