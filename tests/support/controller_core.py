"""A controller's core with a local ZooKeeper; everything it sends and logs is recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from fakekafka.election.strategies import Strategy
from fakekafka.protocol import znode_paths
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.control import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from fakekafka.protocol.values import (
    BrokerInfo,
    EndPoint,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    PartitionReplica,
    ReplicaAssignment,
    TopicPartition,
)
from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.machines.context import ControllerContext
from fakekafka.statemachines.machines.partition_machine import PartitionStateMachine
from fakekafka.statemachines.machines.replica_machine import ReplicaStateMachine
from fakekafka.statemachines.machines.request_batch import ControllerBrokerRequestBatch
from fakekafka.statemachines.machines.transitions import PartitionState, ReplicaState
from fakekafka.statemachines.zookeeper.client import KafkaZkClient
from fakekafka.tests.support.local_zookeeper import LocalZooKeeper, LocalZooKeeperClient
from fakekafka.tests.support.run_now import run_now

T = TypeVar("T")
CONTROLLER_ID = 5
FIRST_BROKER_EPOCH = 100


def broker(broker_id: int) -> BrokerInfo:
    return BrokerInfo(broker_id, (EndPoint(f"host{broker_id}", 9092),))


class SentRequests:
    """Channels that record each request as (broker id, request, callback)."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Any, Any]] = []
        self.failure: Exception | None = None

    def send_request(self, broker_id: int, request: Any, callback: Any) -> None:
        if self.failure is not None:
            raise self.failure
        self.sent.append((broker_id, request, callback))

    def clear(self) -> None:
        self.sent.clear()

    def of(self, kind: type[T]) -> list[tuple[int, T]]:
        return [(b, request) for b, request, _ in self.sent if isinstance(request, kind)]

    def leader_and_isr(self) -> dict[int, list[LeaderAndIsrPartitionState]]:
        """Return the partition states of LeaderAndIsr requests by broker."""
        return {b: list(r.partition_states) for b, r in self.of(LeaderAndIsrRequest)}

    def update_metadata(self) -> dict[int, UpdateMetadataRequest]:
        return dict(self.of(UpdateMetadataRequest))

    def stop_replica(self) -> list[tuple[int, str, int, bool]]:
        """Return (broker, partition, leader epoch, delete) of the StopReplica requests."""
        return [
            (b, str(state.topic_partition), state.leader_epoch, state.delete_partition)
            for b, request in self.of(StopReplicaRequest)
            for state in request.partition_states
        ]


class Events:
    """Records the events made from responses."""

    def __init__(self) -> None:
        self.received: list[tuple[Any, ...]] = []

    def on_leader_and_isr_response(self, response: Any, broker_id: int) -> None:
        self.received.append(("LeaderAndIsr", broker_id, response))

    def on_stop_replica_deletion_response(
        self, broker_id: int, error: Any, partition_errors: Any
    ) -> None:
        self.received.append(("StopReplica", broker_id, error, partition_errors))

    def on_update_metadata_response(self, response: Any, broker_id: int) -> None:
        self.received.append(("UpdateMetadata", broker_id, response))


class Core:
    """Context, ZooKeeper client, request batch and both state machines of a controller."""

    def __init__(
        self, version: str, brokers: tuple[int, ...], config: dict[str, Any] | None = None
    ) -> None:
        self.behaviour = behaviour(version)
        self.config = BrokerConfig(config, version)
        self.zookeeper = LocalZooKeeper()
        self.client = LocalZooKeeperClient(self.zookeeper)
        self.zk = KafkaZkClient(self.client, self.behaviour)
        self.run(self.zk.brokers.create_top_level_paths())
        self.context = ControllerContext(self.behaviour)
        self.context.epoch, self.context.epoch_zk_version = self.run(
            self.zk.brokers.register_controller_and_increment_controller_epoch(CONTROLLER_ID)
        )
        self.register(*brokers)
        self.channels = SentRequests()
        self.events = Events()
        self.logged: list[tuple[str, str]] = []
        self.batch = self.new_request_batch()
        self.partitions = PartitionStateMachine(
            self.config, self.behaviour, self.context, self.zk, self.batch, self.log
        )
        self.replicas = ReplicaStateMachine(
            self.config, self.behaviour, self.context, self.zk, self.new_request_batch(), self.log
        )

    def new_request_batch(self) -> ControllerBrokerRequestBatch:
        return ControllerBrokerRequestBatch(
            CONTROLLER_ID, self.behaviour, self.context, self.channels, self.events, self.log
        )

    def log(self, level: str, text: str) -> None:
        self.logged.append((level, text))

    def errors(self) -> str:
        return "\n".join(text for level, text in self.logged if level == "error")

    def run(self, coroutine: Coroutine[Any, Any, T] | Awaitable[T]) -> T:
        return run_now(coroutine)  # type: ignore[arg-type]

    def register(self, *broker_ids: int) -> None:
        self.context.brokers.add_live_brokers(
            (broker(i), FIRST_BROKER_EPOCH + i) for i in broker_ids
        )

    def assign(self, tp: TopicPartition, *replicas: int) -> None:
        """Set an assignment in memory and create its topic in ZooKeeper."""
        self.context.topics.update_partition_full_replica_assignment(
            tp, ReplicaAssignment(replicas)
        )
        self.context.topics.all_topics.add(tp.topic)
        path = znode_paths.topic_path(tp.topic)
        if not self.run(self.zk.requests.path_exists(path)):
            self.run(self.zk.requests.create_recursive(path))

    def lead(
        self,
        tp: TopicPartition,
        leader: int,
        isr: tuple[int, ...],
        leader_epoch: int = 0,
        controller_epoch: int | None = None,
        cached: bool = True,
    ) -> None:
        """Store leadership in ZooKeeper and (``cached``) in memory."""
        epoch = self.context.epoch if controller_epoch is None else controller_epoch
        decision = LeaderIsrAndControllerEpoch(LeaderAndIsr(leader, leader_epoch, isr, 0), epoch)
        self.run(self.zk.topics.create_topic_partition_states_raw({tp: decision}))
        if cached:
            self.context.topics.put_partition_leadership_info(tp, decision)

    def stored(self, tp: TopicPartition) -> tuple[int, int, tuple[int, ...], int, int] | None:
        """Return (leader, leader epoch, ISR, version, controller epoch) in ZooKeeper."""
        found = self.run(self.zk.topics.get_topic_partition_state(tp))
        if found is None:
            return None
        value = found.leader_and_isr
        return (
            value.leader,
            value.leader_epoch,
            value.isr,
            value.zk_version,
            found.controller_epoch,
        )

    def have(
        self,
        tp: TopicPartition,
        state: PartitionState,
        replicas: tuple[int, ...],
        leader: int,
        isr: tuple[int, ...],
        **leadership: Any,
    ) -> None:
        """Set up a partition with an assignment, a leadership and a state."""
        self.assign(tp, *replicas)
        self.lead(tp, leader, isr, **leadership)
        self.put(tp, state)

    def count_batches(self) -> list[int]:
        """Return a list to which the size of each batch of ZooKeeper requests is appended."""
        batches: list[int] = []

        class Counting(LocalZooKeeperClient):
            async def handle_requests(self, requests: Any) -> Any:
                batches.append(len(requests))
                return await super().handle_requests(requests)

        self.zk.requests.client = Counting(self.zookeeper)
        return batches

    def put(self, tp: TopicPartition, state: PartitionState) -> None:
        self.context.states.put_partition_state(tp, state)

    def put_replica(self, tp: TopicPartition, broker_id: int, state: ReplicaState) -> None:
        self.context.states.put_replica_state(PartitionReplica(*tp, broker_id), state)

    def replica_state(self, tp: TopicPartition, broker_id: int) -> ReplicaState:
        return self.context.states.replica_state(PartitionReplica(*tp, broker_id))

    def move(
        self,
        partitions: list[TopicPartition],
        target: PartitionState,
        strategy: Strategy | None = None,
    ) -> dict[TopicPartition, Any]:
        return self.run(self.partitions.handle_state_changes(partitions, target, strategy))

    def move_replicas(self, tp: TopicPartition, target: ReplicaState, *broker_ids: int) -> None:
        replicas = [PartitionReplica(*tp, broker_id) for broker_id in broker_ids]
        self.run(self.replicas.handle_state_changes(replicas, target))


MakeCore = Callable[..., Core]
