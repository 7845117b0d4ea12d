"""Objects that the controller shares with its flows."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.config import BrokerConfig
from ...protocol.host import Host
from ...protocol.values import BrokerInfo, assembled
from ...protocol.versions import Behaviour
from ..machines.context import ControllerContext
from ..machines.partition_machine import PartitionStateMachine
from ..machines.replica_machine import ReplicaStateMachine
from ..machines.request_batch import ControllerBrokerRequestBatch
from ..zookeeper.client import KafkaZkClient
from ..zookeeper.errors import Log
from .active_controller import ActiveController
from .channels import BrokerChannels
from .control_requests import ControlRequests
from .queue import ControllerEventManager
from .topic_deletion_manager import TopicDeletionManager
from .watches import ControllerWatches


@assembled
class ControllerParts:
    """The context, the state machines and the connections of one broker's controller.

    A flow that needs another flow takes it as a separate argument.
    """

    host: Host
    config: BrokerConfig
    behaviour: Behaviour
    zk: KafkaZkClient
    channels: BrokerChannels
    broker_info: Callable[[], BrokerInfo]
    log: Log
    active_controller: ActiveController
    context: ControllerContext
    event_manager: ControllerEventManager
    watches: ControllerWatches
    requests: ControlRequests
    partition_state_machine: PartitionStateMachine
    replica_state_machine: ReplicaStateMachine
    topic_deletion: TopicDeletionManager

    @property
    def batch(self) -> ControllerBrokerRequestBatch:
        return self.requests.batch

    @property
    def is_active(self) -> bool:
        return self.active_controller.is_this_broker
