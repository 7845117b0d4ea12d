"""The events that the controller queues (docs/kafka/controller-state.md#events).

Events are values. The controller's handlers process them; an event only has the state that the
controller reports meanwhile, and the callback for the case that it is dropped unprocessed.

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
    """States that the ``ControllerState`` gauge reports, with Kafka's numbers."""

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
        """Name of the timer of events in this state; None if they are not timed."""
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
"""Per partition (error, message), or (NONE, id of the new leader)."""
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
    """Base class of all events."""

    __slots__ = ()
    state: ClassVar[ControllerState] = ControllerState.IDLE
    """State that the controller reports while it processes the event."""
    is_for_active: ClassVar[bool] = False
    """True if an inactive controller ignores the event; it handles other events, if only to answer
    them."""

    def preempt(self) -> None:
        """Called when the queue is cleared, instead of processing the event."""

    @property
    def name(self) -> str:
        return type(self).__name__


Kind = TypeVar("Kind", bound=ControllerEvent)


@dataclass_transform(frozen_default=True)
def event(
    state: ControllerState, *, is_for_active: bool = False
) -> Callable[[type[Kind]], type[Kind]]:
    """Declare an event, which is a message, and set the class attributes of ``ControllerEvent``."""

    def declare(kind: type[Kind]) -> type[Kind]:
        kind.state, kind.is_for_active = state, is_for_active
        return message(kind)

    return declare


# --- events of the election of a controller


@event(ControllerState.CONTROLLER_CHANGE)
class Startup(ControllerEvent):
    """The broker starts and takes part in the election."""


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
    """A new ZooKeeper session was created."""


@event(ControllerState.CONTROLLER_SHUTDOWN)
class ShutdownEventThread(ControllerEvent):
    """Makes the event loop stop; never processed."""


# --- brokers, log directories


@event(ControllerState.BROKER_CHANGE, is_for_active=True)
class BrokerChange(ControllerEvent):
    """Children of ``/brokers/ids`` changed."""


@event(ControllerState.BROKER_CHANGE, is_for_active=True)
class BrokerModifications(ControllerEvent):
    """The data of a broker's registration changed."""

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
    """A broker that shuts down asks to move its leaderships to other brokers."""

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
    """The data of a topic's node changed."""

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
    """``/admin/reassign_partitions`` was created, or should be read again."""


@event(ControllerState.ALTER_PARTITION_REASSIGNMENT)
class ApiPartitionReassignment(ControllerEvent):
    reassignments: tuple[tuple[TopicPartition, tuple[int, ...] | None], ...]
    callback: ReassignmentCallback

    def preempt(self) -> None:
        self.callback(ErrorCode.NOT_CONTROLLER)


@event(ControllerState.ALTER_PARTITION_REASSIGNMENT, is_for_active=True)
class PartitionReassignmentIsrChange(ControllerEvent):
    """The state node of a partition being reassigned changed; only in releases without AlterIsr."""

    topic_partition: TopicPartition


@event(ControllerState.LIST_PARTITION_REASSIGNMENT)
class ListPartitionReassignments(ControllerEvent):
    partitions: tuple[TopicPartition, ...] | None
    """Partitions to list; None for all that are being reassigned."""
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
    """This broker's default of ``unclean.leader.election.enable`` changed from false to true."""


@event(ControllerState.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE, is_for_active=True)
class TopicUncleanLeaderElectionEnable(ControllerEvent):
    topic: str


# --- in-sync replicas, features


@event(ControllerState.ISR_CHANGE, is_for_active=True)
class IsrChangeNotification(ControllerEvent):
    """Children of ``/isr_change_notification`` changed."""


@event(ControllerState.ISR_CHANGE)
class AlterIsrReceived(ControllerEvent):
    """A leader proposes ISRs. If the event is preempted, the sender gets no response
    (docs/kafka/controller-state.md#events)."""

    request: AlterIsrRequest
    callback: Callable[[AlterIsrResponse], object]


@event(ControllerState.UPDATE_FEATURES)
class UpdateFeatures(ControllerEvent):
    """A client updates features. If the event is preempted, the client gets no response."""

    updates: tuple[FeatureUpdate, ...]
    callback: FeaturesCallback


@event(ControllerState.IDLE)
class AllocateProducerIds(ControllerEvent):
    """A broker asks for producer ids. If the event is preempted, it gets no response."""

    request: AllocateProducerIdsRequest
    callback: Callable[[AllocateProducerIdsResponse], object]


def not_controller_outcomes(partitions: tuple[TopicPartition, ...] | None) -> ElectionOutcomes:
    """Return NOT_CONTROLLER for each partition that a request named; empty if it named none."""
    return dict.fromkeys(partitions or (), (ErrorCode.NOT_CONTROLLER, None))


def controller_events() -> tuple[type[ControllerEvent], ...]:
    """Return all event classes."""
    return tuple(
        value
        for value in globals().values()
        if isinstance(value, type)
        and issubclass(value, ControllerEvent)
        and value is not ControllerEvent
    )
