"""A broker's view of the cluster, merged from UpdateMetadata requests
(docs/kafka/control-requests.md#updatemetadata).

The cache keeps the received ``UpdateMetadataPartitionState`` objects, so the caches of all brokers
share them. It belongs to one actor and ``update`` runs to its end, so no reader sees half an
update; returned values are immutable.

Each broker has a cache with an entry for every topic, so entries are kept small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...protocol.control import UpdateMetadataPartitionState, UpdateMetadataRequest
from ...protocol.data import MetadataPartition, MetadataRequest, MetadataResponse, MetadataTopic
from ...protocol.errors import ErrorCode
from ...protocol.internal_topics import INTERNAL_TOPICS
from ...protocol.values import LEADER_DURING_DELETE, NO_LEADER, BrokerInfo, TopicPartition
from ...protocol.versions import DEFAULT_KAFKA_VERSION, Behaviour
from ...protocol.versions import behaviour as behaviour_of

TOPIC_NAME_LENGTH_MAX = 249
_PartitionStates = UpdateMetadataPartitionState | list[UpdateMetadataPartitionState | None]
"""The only known partition of a topic, or a list by partition number; gaps are None, never last."""
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def is_valid_topic_name(name: str) -> bool:
    """Return whether Kafka allows a topic of this name (``Topic.validate``)."""
    return (
        0 < len(name) <= TOPIC_NAME_LENGTH_MAX
        and name not in (".", "..")
        and _NAME_CHARACTERS.issuperset(name)
    )


class MetadataCache:
    """Partition states, live brokers, controller and topic ids as announced."""

    def __init__(
        self, broker_id: int, cluster_id: str = "", behaviour: Behaviour | None = None
    ) -> None:
        self._behaviour = behaviour_of(DEFAULT_KAFKA_VERSION) if behaviour is None else behaviour
        self.broker_id: int = broker_id
        self.cluster_id: str = cluster_id
        self.controller_id: int | None = None
        """Id of the controller; None while unknown."""
        self._topics: dict[str, _PartitionStates] = {}
        self._brokers: dict[int, BrokerInfo] = {}
        self._ids_by_topic: dict[str, str] = {}
        self._topics_by_id: dict[str, str] | None = {}
        """Inverse of ``_ids_by_topic``; None after a change, until it is needed."""

    # -- writing ----------------------------------------------------------------------------

    def update(self, request: UpdateMetadataRequest) -> list[TopicPartition]:
        """Merge partition states and replace the live brokers; return the deleted partitions."""
        self.controller_id = request.controller_id if request.controller_id >= 0 else None
        self._brokers = {broker.id: broker for broker in request.live_brokers}
        for topic, topic_id in request.topic_ids:
            self._set_topic_id(topic, topic_id)
        deleted: list[TopicPartition] = []
        for state in request.partition_states:
            if state.leader == LEADER_DURING_DELETE:
                self._remove_partition(state.topic, state.partition)
                deleted.append(state.topic_partition)
            else:
                self._put_partition(state)
        return deleted

    def _put_partition(self, state: UpdateMetadataPartitionState) -> None:
        topics, number = self._topics, state.partition
        known = topics.get(state.topic)
        if not isinstance(known, list):
            if known is None or known.partition == number:
                topics[state.topic] = state
                return
            known = topics[state.topic] = [*[None] * known.partition, known]
        if number < len(known):
            known[number] = state
            return
        known.extend([None] * (number - len(known)))
        known.append(state)

    def _set_topic_id(self, topic: str, topic_id: str) -> None:
        if self._ids_by_topic.get(topic) != topic_id:
            self._ids_by_topic[topic] = topic_id
            self._topics_by_id = None

    def _remove_partition(self, topic: str, partition: int) -> None:
        known = self._topics.get(topic)
        if known is None:
            return
        if isinstance(known, list):
            if partition < len(known):
                known[partition] = None
            while known and known[-1] is None:
                known.pop()
            if known:
                return
        elif known.partition != partition:
            return
        del self._topics[topic]
        if self._ids_by_topic.pop(topic, None) is not None:
            self._topics_by_id = None

    # -- reading ----------------------------------------------------------------------------

    def topics(self) -> tuple[str, ...]:
        """Return the names of all topics, in the order they became known."""
        return tuple(self._topics)

    def takes_offsets(self, partition: TopicPartition) -> bool:
        """Return whether a partition may have committed offsets and be part of a transaction."""
        if self._behaviour.offsets_of_unknown_partitions:
            return self.contains_topic(partition.topic)
        return self.contains(partition)

    def contains_topic(self, topic: str) -> bool:
        return topic in self._topics

    def contains(self, topic_partition: TopicPartition) -> bool:
        return self.partition_state(topic_partition) is not None

    def partition_state(
        self, topic_partition: TopicPartition
    ) -> UpdateMetadataPartitionState | None:
        known = self._topics.get(topic_partition.topic)
        number = topic_partition.partition
        if isinstance(known, list):
            return known[number] if 0 <= number < len(known) else None
        return None if known is None or known.partition != number else known

    def topic_partitions(self, topic: str) -> tuple[UpdateMetadataPartitionState, ...]:
        """Return the states of a topic's partitions by number; empty for an unknown topic."""
        known = self._topics.get(topic)
        if isinstance(known, list):
            return tuple([state for state in known if state is not None])
        return () if known is None else (known,)

    def partition_states(self) -> Iterator[UpdateMetadataPartitionState]:
        for topic in self._topics:
            yield from self.topic_partitions(topic)

    def partition_count(self, topic: str) -> int:
        return len(self.topic_partitions(topic))

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self._brokers

    def broker(self, broker_id: int) -> BrokerInfo | None:
        """Return a live broker, or None."""
        return self._brokers.get(broker_id)

    def alive_brokers(self) -> tuple[BrokerInfo, ...]:
        """Return the live brokers in the order announced."""
        return tuple(self._brokers.values())

    def topic_id(self, topic: str) -> str:
        """Return the base64 id of a topic; empty if it has none."""
        return self._ids_by_topic.get(topic, "")

    def topic_name(self, topic_id: str) -> str | None:
        names = self._topics_by_id
        if names is None:
            names = {known: topic for topic, known in self._ids_by_topic.items()}
            self._topics_by_id = names
        return names.get(topic_id)

    def leader(self, topic_partition: TopicPartition) -> BrokerInfo | None:
        """Return the live leader of a partition, or None."""
        state = self.partition_state(topic_partition)
        return None if state is None else self._brokers.get(state.leader)

    # -- the Metadata API -------------------------------------------------------------------

    def metadata(self, request: MetadataRequest, listener: str = "PLAINTEXT") -> MetadataResponse:
        """Answer a Metadata request from the cache alone (docs/kafka/administration.md#metadata).

        Unknown topics get UNKNOWN_TOPIC_OR_PARTITION or INVALID_TOPIC_EXCEPTION; creating them is
        left to the caller.
        """
        return MetadataResponse(
            self.alive_brokers(),
            self.cluster_id,
            -1 if self.controller_id is None else self.controller_id,
            tuple(self._metadata_topics(request, listener)),
        )

    def _metadata_topics(self, request: MetadataRequest, listener: str) -> Iterator[MetadataTopic]:
        for topic_id in request.topic_ids:
            name = self.topic_name(topic_id)
            if name is None:
                yield MetadataTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, False, (), topic_id)
            else:
                yield self.metadata_topic(name, listener)
        names: Iterable[str] = ()
        if request.topics is None:
            names = () if request.topic_ids else self._topics
        else:
            names = dict.fromkeys(request.topics)
        for name in names:
            yield self.metadata_topic(name, listener)

    def metadata_topic(self, name: str, listener: str) -> MetadataTopic:
        """Return one topic of a Metadata response."""
        if name not in self._topics:
            error = (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if not self._behaviour.invalid_names_told or is_valid_topic_name(name)
                else ErrorCode.INVALID_TOPIC_EXCEPTION
            )
            return MetadataTopic(error, name, name in INTERNAL_TOPICS, ())
        return MetadataTopic(
            ErrorCode.NONE,
            name,
            name in INTERNAL_TOPICS,
            tuple(
                self._metadata_partition(state, listener) for state in self.topic_partitions(name)
            ),
            self._ids_by_topic.get(name, ""),
        )

    def _metadata_partition(
        self, state: UpdateMetadataPartitionState, listener: str
    ) -> MetadataPartition:
        brokers = self._brokers
        replicas, isr = state.replicas, state.isr
        error = ErrorCode.NONE
        leader = state.leader
        broker = brokers.get(leader)
        if broker is None:
            error, leader = ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER
            if not self._behaviour.leaderless_isr_shown:
                isr = ()
        elif broker.endpoint(listener) is None:
            leader = NO_LEADER
            error = ErrorCode.LISTENER_NOT_FOUND
        if self._behaviour.metadata_replicas_are_sets:
            replicas = tuple(sorted(replicas))
        return MetadataPartition(
            error,
            state.partition,
            leader,
            state.leader_epoch,
            replicas,
            isr,
            state.offline_replicas,
        )
