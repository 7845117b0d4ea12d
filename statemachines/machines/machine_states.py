"""States of the controller's two state machines, one per partition and one per replica."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ...election.strategies import Strategy
from ...protocol.host import StateListener
from ...protocol.values import LeaderAndIsr, PartitionReplica, TopicPartition
from ...protocol.versions import Behaviour
from .known_topics import KnownTopics
from .transitions import PARTITION_PREDECESSORS, PartitionState, ReplicaState, replica_predecessors

ElectionOutcomes = dict[TopicPartition, LeaderAndIsr | Exception]


class PartitionListener(Protocol):
    """A listener for events of the partition state machine."""

    def on_partition_state(
        self, topic_partition: TopicPartition, before: PartitionState, after: PartitionState
    ) -> None:
        """Called when a state was set, even to the same value."""
        ...

    def on_election(
        self,
        strategy: Strategy | None,
        partitions: Sequence[TopicPartition],
        outcomes: ElectionOutcomes,
    ) -> None:
        """Called after a move of partitions to Online, with the outcome of each election."""
        ...


class MachineStates:
    """States of partitions and replicas and their transitions (docs/kafka/controller-state.md)."""

    def __init__(
        self, behaviour: Behaviour, topics: KnownTopics, state_listener: StateListener | None = None
    ) -> None:
        self._topics = topics
        self._state_listener = state_listener
        self.listeners: list[PartitionListener] = []
        self.replica_predecessors: Mapping[ReplicaState, tuple[ReplicaState, ...]] = (
            replica_predecessors(behaviour)
        )
        self.forget()

    def forget(self) -> None:
        self.offline_partition_count: int = 0
        """Number of partitions in state Offline; state changes of topics whose deletion has
        started do not count."""
        self._partition_states: dict[TopicPartition, PartitionState] = {}
        self._replica_states: dict[int, dict[TopicPartition, ReplicaState]] = {}

    def partition_state(self, topic_partition: TopicPartition) -> PartitionState:
        """Return the current state, or ``NON_EXISTENT`` for an unknown partition."""
        return self._partition_states.get(topic_partition, PartitionState.NON_EXISTENT)

    @property
    def partition_states(self) -> Mapping[TopicPartition, PartitionState]:
        """States of all partitions that are not ``NON_EXISTENT``; read only."""
        return self._partition_states

    def put_partition_state(
        self, topic_partition: TopicPartition, target: PartitionState
    ) -> PartitionState:
        """Set a state unconditionally and return the previous one."""
        states = self._partition_states
        current = states.get(topic_partition, PartitionState.NON_EXISTENT)
        if target is PartitionState.NON_EXISTENT:
            states.pop(topic_partition, None)
        else:
            states[topic_partition] = target
        if current is not target and self._state_listener is not None:
            self._state_listener(f"{topic_partition}/state", current.kafka_name, target.kafka_name)
        for listener in self.listeners:
            listener.on_partition_state(topic_partition, current, target)
        if (
            current is not target
            and topic_partition.topic not in self._topics.topics_with_deletion_started
        ):
            if target is PartitionState.OFFLINE:
                self.offline_partition_count += 1
            elif current is PartitionState.OFFLINE:
                self.offline_partition_count -= 1
        return current

    def partitions_in_states(
        self, states: Sequence[PartitionState], topic: str | None = None
    ) -> list[TopicPartition]:
        """Return the partitions (of one topic, or all) that are in one of the states."""
        known = self._partition_states
        if topic is not None:
            return [
                tp
                for tp in self._topics.partitions_for_topic(topic)
                if known.get(tp, PartitionState.NON_EXISTENT) in states
            ]
        return [tp for tp, state in known.items() if state in states]

    def check_valid_partition_state_change(
        self, partitions: Iterable[TopicPartition], target: PartitionState
    ) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """Split partitions into those that may move to the target state and those that may not."""
        legal = PARTITION_PREDECESSORS[target]
        known = self._partition_states
        valid: list[TopicPartition] = []
        invalid: list[TopicPartition] = []
        for tp in partitions:
            current = known.get(tp, PartitionState.NON_EXISTENT)
            (valid if current in legal else invalid).append(tp)
        return valid, invalid

    def replica_state(self, replica: PartitionReplica) -> ReplicaState:
        """Return the current state, or ``NON_EXISTENT`` for an unknown replica."""
        return self.replica_state_on(
            replica.broker_id, TopicPartition(replica.topic, replica.partition)
        )

    def replica_state_on(self, broker_id: int, topic_partition: TopicPartition) -> ReplicaState:
        of_broker = self._replica_states.get(broker_id)
        if of_broker is None:
            return ReplicaState.NON_EXISTENT
        return of_broker.get(topic_partition, ReplicaState.NON_EXISTENT)

    def replica_states_on_broker(self, broker_id: int) -> dict[TopicPartition, ReplicaState]:
        """Return the mutable states of a broker's replicas, for the replica state machine only."""
        return self._replica_states.setdefault(broker_id, {})

    def put_replica_state(self, replica: PartitionReplica, target: ReplicaState) -> None:
        """Set a replica's state unconditionally."""
        topic_partition = TopicPartition(replica.topic, replica.partition)
        if target is ReplicaState.NON_EXISTENT:
            self._replica_states.get(replica.broker_id, {}).pop(topic_partition, None)
        else:
            self._replica_states.setdefault(replica.broker_id, {})[topic_partition] = target

    def replicas_in_state(self, topic: str, state: ReplicaState) -> list[PartitionReplica]:
        return [r for r in self._topics.replicas_for_topic(topic) if self.replica_state(r) is state]
