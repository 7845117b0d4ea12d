"""Messages between controller and brokers, named after Kafka's inter-broker requests."""

from __future__ import annotations

from .errors import ErrorCode
from .values import BrokerInfo, LeaderAndIsr, Request, TopicPartition, message

PREFERRED = 0
UNCLEAN = 1
"""Types of elections that can be requested."""


@message
class LeaderAndIsrPartitionState:
    """The state of a partition in a LeaderAndIsr request
    (docs/kafka/control-requests.md#leaderandisr)."""

    topic: str
    partition: int
    controller_epoch: int
    """Epoch of the controller that made the decision; may be older than the sender's."""
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    is_new: bool = False

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@message
class LeaderAndIsrRequest(Request["LeaderAndIsrResponse"]):
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    """Epoch of the *destination* broker as the controller knows it; -1 disables the check."""
    partition_states: tuple[LeaderAndIsrPartitionState, ...]
    live_leaders: tuple[BrokerInfo, ...] = ()
    topic_ids: tuple[tuple[str, str], ...] = ()
    """(topic, base64 id) pairs; empty where topic ids are not in use."""


@message
class LeaderAndIsrResponse:
    error: ErrorCode
    partitions: tuple[tuple[TopicPartition, ErrorCode], ...] = ()


@message
class UpdateMetadataPartitionState:
    """The state of a partition in an UpdateMetadata request
    (docs/kafka/control-requests.md#updatemetadata). All metadata caches share the object."""

    topic: str
    partition: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@message
class UpdateMetadataRequest(Request["UpdateMetadataResponse"]):
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partition_states: tuple[UpdateMetadataPartitionState, ...]
    live_brokers: tuple[BrokerInfo, ...]
    topic_ids: tuple[tuple[str, str], ...] = ()


@message
class UpdateMetadataResponse:
    error: ErrorCode


@message
class StopReplicaPartitionState:
    topic: str
    partition: int
    leader_epoch: int
    """``EPOCH_DURING_DELETE`` for a topic being deleted; ``EPOCH_UNKNOWN`` if unknown."""
    delete_partition: bool

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@message
class StopReplicaRequest(Request["StopReplicaResponse"]):
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partition_states: tuple[StopReplicaPartitionState, ...]


@message
class StopReplicaResponse:
    error: ErrorCode
    partitions: tuple[tuple[TopicPartition, ErrorCode], ...] = ()


@message
class ControlledShutdownRequest(Request["ControlledShutdownResponse"]):
    broker_id: int
    broker_epoch: int


@message
class ControlledShutdownResponse:
    error: ErrorCode
    remaining_partitions: tuple[TopicPartition, ...] = ()


@message
class AllocateProducerIdsRequest(Request["AllocateProducerIdsResponse"]):
    broker_id: int
    broker_epoch: int


@message
class AllocateProducerIdsResponse:
    error: ErrorCode
    first_producer_id: int = 0
    count: int = 0


@message
class AlterIsrPartition:
    topic_partition: TopicPartition
    leader_epoch: int
    new_isr: tuple[int, ...]
    zk_version: int
    """Version of the state znode last known to the sender (Kafka: ``currentIsrVersion``)."""


@message
class AlterIsrRequest(Request["AlterIsrResponse"]):
    broker_id: int
    broker_epoch: int
    partitions: tuple[AlterIsrPartition, ...]


@message
class AlterIsrPartitionResponse:
    topic_partition: TopicPartition
    error: ErrorCode
    leader_and_isr: LeaderAndIsr | None = None
    """The stored state after success; None after an error."""


@message
class AlterIsrResponse:
    error: ErrorCode
    partitions: tuple[AlterIsrPartitionResponse, ...] = ()
