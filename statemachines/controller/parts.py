"""Parts that the controller shares with its flows."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.config import BrokerConfig
from ...protocol.host import Host
from ...protocol.values import BrokerInfo
from ...protocol.versions import Behaviour
from ..machines.context import ControllerContext
from ..machines.partition_machine import PartitionStateMachine
from ..machines.replica_machine import ReplicaStateMachine
from ..machines.request_batch import ControllerBrokerRequestBatch
from ..zookeeper.client import KafkaZkClient
from ..zookeeper.errors import Log
from .channels import BrokerChannels
from .control_requests import ControlRequests
from .queue import ControllerEventManager
from .tenure import Tenure
from .topic_deletion_manager import TopicDeletionManager
from .watches import ControllerWatches


class ControllerParts:
    """The memory, the state machines and the connections of one broker's controller.

    A flow that needs another flow is given it beside these parts.
    """

    __slots__ = (
        "batch",
        "behaviour",
        "broker_info",
        "channels",
        "config",
        "context",
        "event_manager",
        "host",
        "log",
        "partition_state_machine",
        "replica_state_machine",
        "requests",
        "tenure",
        "topic_deletion",
        "watches",
        "zk",
    )

    def __init__(
        self,
        *,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        zk: KafkaZkClient,
        channels: BrokerChannels,
        broker_info: Callable[[], BrokerInfo],
        log: Log,
        tenure: Tenure,
        context: ControllerContext,
        event_manager: ControllerEventManager,
        watches: ControllerWatches,
        requests: ControlRequests,
        partition_state_machine: PartitionStateMachine,
        replica_state_machine: ReplicaStateMachine,
        topic_deletion: TopicDeletionManager,
    ) -> None:
        self.host: Host = host
        self.config: BrokerConfig = config
        self.behaviour: Behaviour = behaviour
        self.zk: KafkaZkClient = zk
        self.channels: BrokerChannels = channels
        self.broker_info: Callable[[], BrokerInfo] = broker_info
        self.log: Log = log
        self.tenure: Tenure = tenure
        self.context: ControllerContext = context
        self.event_manager: ControllerEventManager = event_manager
        self.watches: ControllerWatches = watches
        self.requests: ControlRequests = requests
        self.batch: ControllerBrokerRequestBatch = requests.batch
        self.partition_state_machine: PartitionStateMachine = partition_state_machine
        self.replica_state_machine: ReplicaStateMachine = replica_state_machine
        self.topic_deletion: TopicDeletionManager = topic_deletion
