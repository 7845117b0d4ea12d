"""The controller's events: what may wait in its queue (docs/kafka/controller-state.md#events).

Events are values. What happens when one is taken from the queue is decided by the controller's
handlers; an event only knows which state the controller reports meanwhile and whom to tell when
it is dropped unprocessed.

Source: Kafka's ``ControllerEvent`` objects and ``ControllerState``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, unique
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar, dataclass_transform

from ...protocol.control import (
    PREFERRED,
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterIsrRequest,
    AlterIsrResponse,
    LeaderAndIsrResponse,
    UpdateMetadataResponse,
)
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition, message
from ..zookeeper.errors import ControllerMoved

if TYPE_CHECKING:
    from ...protocol.admin import FeatureUpdate, OngoingReassignment


@unique
class ControllerState(IntEnum):
    """States that the ``ControllerState`` gauge reports, by Kafka's numbers."""

    IDLE = 0
    CONTROLLER_CHANGE = 1
    BROKER_CHANGE = 2
    TOPIC_CHANGE = 3
    TOPIC_DELETION = 4
    ALTER_PARTITION_REASSIGNMENT = 5
    AUTO_LEADER_BALANCE = 6
    MANUAL_LEADER_BALANCE = 7
    CONTROLLED_SHUTDOWN = 8
    ISR_CHANGE = 9
    LEADER_AND_ISR_RESPONSE_RECEIVED = 10
    LOG_DIR_CHANGE = 11
    CONTROLLER_SHUTDOWN = 12
    UNCLEAN_LEADER_ELECTION_ENABLE = 13
    TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE = 14
    LIST_PARTITION_REASSIGNMENT = 15
    UPDATE_METADATA_RESPONSE_RECEIVED = 16
    UPDATE_FEATURES = 17

    @property
    def kafka_name(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def timer_name(self) -> str | None:
        """Name of the timer that measures events of this state; None if they are not measured."""
        return _TIMER_NAMES[self]


_TIMER_NAMES: dict[ControllerState, str | None] = {
    state: f"{state.kafka_name}RateAndTimeMs" for state in ControllerState
}
_TIMER_NAMES[ControllerState.IDLE] = None
_TIMER_NAMES[ControllerState.UPDATE_METADATA_RESPONSE_RECEIVED] = None
_TIMER_NAMES[ControllerState.BROKER_CHANGE] = "LeaderElectionRateAndTimeMs"
_TIMER_NAMES[ControllerState.ALTER_PARTITION_REASSIGNMENT] = "PartitionReassignmentRateAndTimeMs"


@unique
class ElectionTrigger(IntEnum):
    """Origin of an election (docs/kafka/election.md#who-uses-which-strategy)."""

    AUTO_TRIGGERED = 0
    """The rebalance timer."""
    ZK_TRIGGERED = 1
    """The ``/admin/preferred_replica_election`` node."""
    ADMIN_CLIENT_TRIGGERED = 2
    """The ElectLeaders API."""


ElectionOutcomes: TypeAlias = dict[TopicPartition, tuple[ErrorCode, "str | int | None"]]
"""Per partition (error, message), or (NONE, id of the leader elected)."""
ElectionCallback: TypeAlias = Callable[[ElectionOutcomes], object]
ReassignmentOutcome: TypeAlias = "ErrorCode | dict[TopicPartition, tuple[ErrorCode, str | None]]"
"""A top-level error, or (error, message) per partition."""
ReassignmentCallback: TypeAlias = Callable[[ReassignmentOutcome], object]
ListCallback: TypeAlias = Callable[["ErrorCode | tuple[OngoingReassignment, ...]"], object]
ControlledShutdownCallback: TypeAlias = Callable[["list[TopicPartition] | Exception"], object]
FeatureResults: TypeAlias = dict[str, tuple["ErrorCode", "str | None"]]
FeaturesCallback: TypeAlias = Callable[["ErrorCode | FeatureResults"], object]

NOT_CONTROLLER_MESSAGE = "This is not the correct controller for this cluster."


class ControllerEvent:
    """Base of all events."""

    __slots__ = ()
    state: ClassVar[ControllerState] = ControllerState.IDLE
    """Reported meanwhile."""
    is_for_active: ClassVar[bool] = False
    """An inactive controller ignores it; other events are answered, at least."""

    def preempt(self) -> None:
        """Called instead of processing when the queue is cleared."""

    @property
    def name(self) -> str:
        return type(self).__name__


Kind = TypeVar("Kind", bound=ControllerEvent)


@dataclass_transform(frozen_default=True)
def event(
    state: ControllerState, *, is_for_active: bool = False
) -> Callable[[type[Kind]], type[Kind]]:
    """Declare an event: a message, with what ``ControllerEvent`` says of its kind."""

    def declare(kind: type[Kind]) -> type[Kind]:
        kind.state, kind.is_for_active = state, is_for_active
        return message(kind)

    return declare


# --- events of the election of a controller


@event(ControllerState.CONTROLLER_CHANGE)
class Startup(ControllerEvent):
    """The broker starts: take part in the election."""


@event(ControllerState.CONTROLLER_CHANGE)
class ControllerChange(ControllerEvent):
    """``/controller`` was created or its data changed."""


@event(ControllerState.CONTROLLER_CHANGE)
class Reelect(ControllerEvent):
    """``/controller`` was deleted."""


@event(ControllerState.CONTROLLER_CHANGE)
class Expire(ControllerEvent):
    """The ZooKeeper session expired; a new one is about to be created."""


@event(ControllerState.CONTROLLER_CHANGE)
class RegisterBrokerAndReelect(ControllerEvent):
    """A new ZooKeeper session is there."""


@event(ControllerState.CONTROLLER_SHUTDOWN)
class ShutdownEventThread(ControllerEvent):
    """Order to the event loop to stop; never processed."""


# --- brokers, log directories


@event(ControllerState.BROKER_CHANGE, is_for_active=True)
class BrokerChange(ControllerEvent):
    """Children of ``/brokers/ids`` changed."""


@event(ControllerState.BROKER_CHANGE, is_for_active=True)
class BrokerModifications(ControllerEvent):
    """Data of one broker's registration changed."""

    broker_id: int


@event(ControllerState.LOG_DIR_CHANGE, is_for_active=True)
class LogDirEventNotification(ControllerEvent):
    """Children of ``/log_dir_event_notification`` changed."""


@event(ControllerState.LEADER_AND_ISR_RESPONSE_RECEIVED, is_for_active=True)
class LeaderAndIsrResponseReceived(ControllerEvent):
    response: LeaderAndIsrResponse
    broker_id: int


@event(ControllerState.UPDATE_METADATA_RESPONSE_RECEIVED, is_for_active=True)
class UpdateMetadataResponseReceived(ControllerEvent):
    response: UpdateMetadataResponse
    broker_id: int


@event(ControllerState.CONTROLLED_SHUTDOWN)
class ControlledShutdown(ControllerEvent):
    """A broker asks to be relieved of its leaderships."""

    broker_id: int
    broker_epoch: int
    callback: ControlledShutdownCallback

    def preempt(self) -> None:
        self.callback(ControllerMoved("the controller moved to another broker"))


# --- topics


@event(ControllerState.TOPIC_CHANGE, is_for_active=True)
class TopicChange(ControllerEvent):
    """Children of ``/brokers/topics`` changed."""


@event(ControllerState.TOPIC_CHANGE, is_for_active=True)
class PartitionModifications(ControllerEvent):
    """Data of a topic's node changed."""

    topic: str


@event(ControllerState.TOPIC_DELETION, is_for_active=True)
class TopicDeletion(ControllerEvent):
    """Children of ``/admin/delete_topics`` changed."""


@event(ControllerState.TOPIC_DELETION, is_for_active=True)
class TopicDeletionStopReplicaResponseReceived(ControllerEvent):
    broker_id: int
    error: ErrorCode
    partition_errors: tuple[tuple[TopicPartition, ErrorCode], ...]


# --- reassignment


@event(ControllerState.ALTER_PARTITION_REASSIGNMENT)
class ZkPartitionReassignment(ControllerEvent):
    """``/admin/reassign_partitions`` was created, or is to be looked at again."""


@event(ControllerState.ALTER_PARTITION_REASSIGNMENT)
class ApiPartitionReassignment(ControllerEvent):
    reassignments: tuple[tuple[TopicPartition, tuple[int, ...] | None], ...]
    callback: ReassignmentCallback

    def preempt(self) -> None:
        self.callback(ErrorCode.NOT_CONTROLLER)


@event(ControllerState.ALTER_PARTITION_REASSIGNMENT, is_for_active=True)
class PartitionReassignmentIsrChange(ControllerEvent):
    """The state node of a partition under reassignment changed (without AlterIsr only)."""

    topic_partition: TopicPartition


@event(ControllerState.LIST_PARTITION_REASSIGNMENT)
class ListPartitionReassignments(ControllerEvent):
    partitions: tuple[TopicPartition, ...] | None
    """None asks for all."""
    callback: ListCallback

    def preempt(self) -> None:
        self.callback(ErrorCode.NOT_CONTROLLER)


# --- leader elections


@event(ControllerState.AUTO_LEADER_BALANCE, is_for_active=True)
class AutoPreferredReplicaLeaderElection(ControllerEvent):
    """The rebalance timer fired."""


@event(ControllerState.MANUAL_LEADER_BALANCE)
class ReplicaLeaderElection(ControllerEvent):
    partitions: tuple[TopicPartition, ...] | None
    election_type: int = PREFERRED
    trigger: ElectionTrigger = ElectionTrigger.ZK_TRIGGERED
    callback: ElectionCallback | None = None

    def preempt(self) -> None:
        if self.callback is not None:
            self.callback(not_controller_outcomes(self.partitions))


@event(ControllerState.UNCLEAN_LEADER_ELECTION_ENABLE, is_for_active=True)
class UncleanLeaderElectionEnable(ControllerEvent):
    """This broker's default was turned from false to true."""


@event(ControllerState.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE, is_for_active=True)
class TopicUncleanLeaderElectionEnable(ControllerEvent):
    topic: str


# --- in-sync replicas, features


@event(ControllerState.ISR_CHANGE, is_for_active=True)
class IsrChangeNotification(ControllerEvent):
    """Children of ``/isr_change_notification`` changed."""


@event(ControllerState.ISR_CHANGE)
class AlterIsrReceived(ControllerEvent):
    """Preempted silently: the sender never hears of it (docs/kafka/controller-state.md#events)."""

    request: AlterIsrRequest
    callback: Callable[[AlterIsrResponse], object]


@event(ControllerState.UPDATE_FEATURES)
class UpdateFeatures(ControllerEvent):
    """Preempted silently, as AlterIsr."""

    updates: tuple[FeatureUpdate, ...]
    callback: FeaturesCallback


@event(ControllerState.IDLE)
class AllocateProducerIds(ControllerEvent):
    """Preempted silently, as AlterIsr."""

    request: AllocateProducerIdsRequest
    callback: Callable[[AllocateProducerIdsResponse], object]


def not_controller_outcomes(partitions: tuple[TopicPartition, ...] | None) -> ElectionOutcomes:
    """Return the outcomes of an election at another broker: none if nothing was named."""
    return dict.fromkeys(partitions or (), (ErrorCode.NOT_CONTROLLER, None))


def controller_events() -> tuple[type[ControllerEvent], ...]:
    """Every kind of event."""
    return tuple(
        value
        for value in globals().values()
        if isinstance(value, type)
        and issubclass(value, ControllerEvent)
        and value is not ControllerEvent
    )
