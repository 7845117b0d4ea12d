"""Replica managers connected by hand: no actors, no network, a clock that tests move.

The *controller* is a dictionary of leaderships; tests elect, drop responses, kill and restart by
calling methods in the order they need.
"""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.config import BrokerConfig, TopicConfig
from fakekafka.protocol.control import (
    AlterIsrPartitionResponse,
    AlterIsrRequest,
    AlterIsrResponse,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaPartitionState,
    StopReplicaRequest,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from fakekafka.protocol.data import (
    INTERNAL_CONTEXT,
    FetchPartition,
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    RequestContext,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import BrokerInfo, EndPoint, LeaderAndIsr, TopicPartition
from fakekafka.protocol.versions import behaviour
from fakekafka.tests.support.hosts import START_MS, FakeClock
from fakekafka.tests.support.replica_node import TP, Node

__all__ = ["TP", "Node", "ReplicaCluster", "encode", "led"]


def encode(*values: str, timestamp: int = START_MS, **more: Any) -> bytes:
    """Return a batch as a producer sends it."""
    return build_batch(
        [Record(i, timestamp, None, value.encode()) for i, value in enumerate(values)], **more
    )


class ReplicaCluster:
    def __init__(
        self,
        version: str = "2.8",
        brokers: int = 3,
        config: dict[str, Any] | None = None,
        topic: dict[str, str] | None = None,
        flags: dict[str, Any] | None = None,
    ) -> None:
        self.version = version
        self.behaviour = behaviour(version, **(flags or {}))
        self.clock = FakeClock()
        self.config = BrokerConfig(config, version)
        self.topic_overrides = dict(topic or {})
        self.controller_epoch = 1
        self.state: dict[TopicPartition, LeaderAndIsr] = {}
        self.replicas: dict[TopicPartition, tuple[int, ...]] = {}
        self.published: list[Any] = []
        self.alter_isr_requests: list[AlterIsrRequest] = []
        self.held: list[Any] | None = None
        self.nodes = {i: Node(self, i) for i in range(brokers)}

    def __getitem__(self, broker_id: int) -> Node:
        return self.nodes[broker_id]

    def topic_config(self, topic: str) -> TopicConfig:
        return TopicConfig(self.config, self.topic_overrides)

    # -- the controller ---------------------------------------------------------------------

    def create(self, replicas: tuple[int, ...], tp: TopicPartition = TP, **more: Any) -> None:
        self.replicas[tp] = replicas
        isr = more.pop("isr", replicas)
        self.state[tp] = LeaderAndIsr(more.pop("leader", replicas[0]), 0, isr, 0)
        self.announce(tp, is_new=True)

    def elect(
        self, leader: int, isr: tuple[int, ...] | None = None, tp: TopicPartition = TP
    ) -> None:
        """Elect a leader: raise epoch and version and inform every live broker."""
        old = self.state[tp]
        self.state[tp] = LeaderAndIsr(
            leader, old.leader_epoch + 1, old.isr if isr is None else isr, old.zk_version + 1
        )
        self.announce(tp)

    def announce(self, tp: TopicPartition = TP, is_new: bool = False) -> None:
        self.update_metadata()
        for broker_id in self.replicas[tp]:
            if self.nodes[broker_id].is_alive:
                self.leader_and_isr(broker_id, tp, is_new=is_new)

    def update_metadata(self, to: tuple[int, ...] | None = None) -> None:
        states = tuple(
            UpdateMetadataPartitionState(
                tp.topic,
                tp.partition,
                self.controller_epoch,
                state.leader,
                state.leader_epoch,
                state.isr,
                state.zk_version,
                self.replicas[tp],
            )
            for tp, state in self.state.items()
        )
        for node in self.nodes.values():
            if node.is_alive and (to is None or node.broker_id in to):
                node.manager.roles.update_metadata(
                    UpdateMetadataRequest(9, self.controller_epoch, -1, states, self.live())
                )

    def live(self) -> tuple[BrokerInfo, ...]:
        return tuple(
            BrokerInfo(
                node.broker_id, (EndPoint("h", 9092 + node.broker_id),), f"r{node.broker_id}"
            )
            for node in self.nodes.values()
            if node.is_alive
        )

    def partition_state(
        self, tp: TopicPartition = TP, is_new: bool = False, **fields: Any
    ) -> LeaderAndIsrPartitionState:
        state = self.state[tp]
        values: dict[str, Any] = {
            "controller_epoch": self.controller_epoch,
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "isr": state.isr,
            "zk_version": state.zk_version,
            "replicas": self.replicas[tp],
            "is_new": is_new,
        }
        values.update(fields)
        return LeaderAndIsrPartitionState(tp.topic, tp.partition, **values)

    def leader_and_isr(
        self, broker_id: int, tp: TopicPartition = TP, is_new: bool = False, **fields: Any
    ) -> LeaderAndIsrResponse:
        request = LeaderAndIsrRequest(
            9, self.controller_epoch, -1, (self.partition_state(tp, is_new, **fields),), self.live()
        )
        return self.nodes[broker_id].manager.roles.become_leader_or_follower(request)

    def stop_replica(
        self, broker_id: int, delete: bool, leader_epoch: int = -1, tp: TopicPartition = TP
    ) -> ErrorCode:
        response = self.nodes[broker_id].manager.roles.stop_replicas(
            StopReplicaRequest(
                9,
                self.controller_epoch,
                -1,
                (StopReplicaPartitionState(tp.topic, tp.partition, leader_epoch, delete),),
            )
        )
        return response.partitions[0][1] if response.partitions else response.error

    def write_isr(self, tp: TopicPartition, proposal: LeaderAndIsr) -> int | None:
        """Write the ISR conditionally, as through ZooKeeper; return the new version, or None."""
        stored = self.state[tp]
        if stored.zk_version != proposal.zk_version:
            return None
        self.state[tp] = proposal.with_zk_version(stored.zk_version + 1)
        return stored.zk_version + 1

    def on_alter_isr(self, request: AlterIsrRequest) -> AlterIsrResponse:
        self.alter_isr_requests.append(request)
        answers = []
        for entry in request.partitions:
            tp = entry.topic_partition
            stored = self.state[tp]
            if entry.leader_epoch < stored.leader_epoch:
                answers.append(AlterIsrPartitionResponse(tp, ErrorCode.FENCED_LEADER_EPOCH))
            elif entry.zk_version != stored.zk_version:
                answers.append(AlterIsrPartitionResponse(tp, ErrorCode.INVALID_UPDATE_VERSION))
            else:
                self.state[tp] = LeaderAndIsr(
                    stored.leader, stored.leader_epoch, entry.new_isr, stored.zk_version + 1
                )
                answers.append(AlterIsrPartitionResponse(tp, ErrorCode.NONE, self.state[tp]))
        return AlterIsrResponse(ErrorCode.NONE, tuple(answers))

    def hold_isr_changes(self) -> None:
        """Hold ISR proposals until ``release_isr_changes``."""
        self.held = []

    def release_isr_changes(self) -> None:
        held, self.held = self.held or [], None
        for deliver in held:
            deliver()

    def deliver_or_hold(self, deliver: Any) -> None:
        if self.held is None:
            deliver()
        else:
            self.held.append(deliver)

    # -- clients ----------------------------------------------------------------------------

    def produce_async(
        self,
        broker_id: int,
        *values: str,
        acks: int = -1,
        tp: TopicPartition = TP,
        timeout_ms: int = 30000,
        context: RequestContext = INTERNAL_CONTEXT,
    ) -> list[ProducePartitionResponse]:
        """Produce one batch; return a list that gets the response."""
        answers: list[ProducePartitionResponse] = []
        records = encode(*values, timestamp=self.clock.now_ms)
        self.nodes[broker_id].manager.produce.append_records(
            ProduceRequest(acks, timeout_ms, (ProducePartition(tp, records),)),
            context,
            lambda response: answers.extend(response.partitions),
        )
        return answers

    def produce(self, broker_id: int, *values: str, **more: Any) -> list[ProducePartitionResponse]:
        """Produce each value as a batch of its own with acks=1."""
        more.setdefault("acks", 1)
        return [self.produce_async(broker_id, value, **more)[0] for value in values]

    def fetch(
        self,
        broker_id: int,
        offset: int,
        *,
        replica_id: int = -1,
        tp: TopicPartition = TP,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        partition_max_bytes: int = 1 << 20,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        context: RequestContext = INTERNAL_CONTEXT,
        **more: Any,
    ) -> list[Any]:
        """Fetch one partition; return a list that gets its response."""
        answers: list[Any] = []
        self.nodes[broker_id].manager.fetch.fetch_messages(
            FetchRequest(
                replica_id,
                max_wait_ms,
                min_bytes,
                max_bytes,
                (
                    FetchPartition(
                        tp,
                        offset,
                        log_start_offset,
                        partition_max_bytes,
                        current_leader_epoch,
                        last_fetched_epoch,
                    ),
                ),
                **more,
            ),
            context,
            lambda response: answers.extend(response.partitions),
        )
        return answers

    # -- replication ------------------------------------------------------------------------

    def round(self, follower: int, answered: bool = True, fetcher: Any = None) -> Any:
        """Send a follower's next request and deliver the response; return the request, None if
        idle.

        If the leader delays the response, time advances until it comes. With ``answered`` false the
        leader handles the request and the response is lost.
        """
        node = self.nodes[follower]
        for candidate in [fetcher] if fetcher is not None else list(node.fetchers):
            request = candidate.next_request()
            if request is None:
                continue
            leader = self.nodes[candidate.leader_id]
            if not leader.is_alive:
                candidate.on_failure(request)
                return request
            answers: list[Any] = []
            if isinstance(request, FetchRequest):
                leader.manager.fetch.fetch_messages(request, INTERNAL_CONTEXT, answers.append)
                if not answers and answered:
                    self.clock.advance(request.max_wait_ms)
            elif isinstance(request, OffsetForLeaderEpochRequest):
                answers.append(leader.manager.offsets.offsets_for_leader_epoch(request))
            else:
                assert isinstance(request, ListOffsetsRequest)
                answers.append(leader.manager.offsets.list_offsets(request, INTERNAL_CONTEXT))
            if answered:
                candidate.on_response(request, answers[0])
            else:
                candidate.on_failure(request)
            return request
        return None

    def replicate(self, *followers: int, rounds: int = 6) -> None:
        """Let followers fetch until they have reached their leaders' log ends."""
        for _ in range(rounds):
            for follower in followers:
                if self.nodes[follower].is_alive:
                    self.round(follower)


def led(
    version: str = "2.8", brokers: int = 2, replicas: Any = None, **more: Any
) -> ReplicaCluster:
    """Return a cluster led by broker 0 (or ``leader``) with a full ISR (or ``isr``)."""
    create = {key: more.pop(key) for key in ("isr", "leader") if key in more}
    cluster = ReplicaCluster(version, brokers, **more)
    cluster.create(replicas or tuple(range(brokers)), **create)
    return cluster


def led_by_one_of_three(version: str = "2.8", brokers: int = 3, **more: Any) -> ReplicaCluster:
    return led(version, brokers, **more)


def partition(cluster: ReplicaCluster, broker_id: int = 0) -> Any:
    """Return a broker's replica of ``t-0``."""
    return cluster[broker_id].partition()


def follower_fetch(cluster: ReplicaCluster, replica_id: int, offset: int, **more: Any) -> Any:
    """Return broker 0's response to a follower's fetch."""
    return cluster.fetch(0, offset, replica_id=replica_id, **more)
