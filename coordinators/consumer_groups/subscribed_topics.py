"""Metadata of the topics to which members subscribe (Kafka:
``ModernGroup.computeSubscriptionMetadata``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...protocol.groups import TopicIdPartitions
from .member import ConsumerMember
from .records import SubscribedTopic

if TYPE_CHECKING:
    from ...replication.partition.metadata_cache import MetadataCache


class SubscriptionMetadata:
    """Looks up topics with their ids, partition counts and racks in the broker's metadata."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache
        self._racks: dict[int, str | None] = {}
        """Racks of the brokers seen so far, by broker id; a broker that is down keeps its rack."""

    def subscribed_topics(self, members: Iterable[ConsumerMember]) -> tuple[SubscribedTopic, ...]:
        """Return the existing topics to which these members subscribe, sorted by name."""
        names = sorted({name for member in members for name in self.names(member)})
        for broker in self._cache.alive_brokers():
            self._racks[broker.id] = broker.rack
        return tuple([self._topic(name) for name in names if self._cache.topic_id(name)])

    def names(self, member: ConsumerMember) -> tuple[str, ...]:
        """Return the names of the topics to which a member subscribes, sorted."""
        if not member.topic_regex:
            return member.topics
        matching = [topic for topic in self._cache.topics() if member.is_subscribed_to(topic)]
        return tuple(sorted({*member.topics, *matching}))

    def _topic(self, name: str) -> SubscribedTopic:
        states = self._cache.topic_partitions(name)
        racks = []
        for state in states:
            found = {self._racks.get(replica) for replica in state.replicas}
            known = tuple(sorted(rack for rack in found if rack is not None))
            if known:
                racks.append((state.partition, known))
        return SubscribedTopic(self._cache.topic_id(name), name, len(states), tuple(racks))

    def name(self, topic_id: str) -> str | None:
        """Return the name of a topic; None if it no longer exists."""
        return self._cache.topic_name(topic_id)

    def id(self, name: str) -> str:
        """Return the id of a topic; empty if the topic is unknown."""
        return self._cache.topic_id(name)

    def with_names(self, partitions: TopicIdPartitions) -> list[tuple[str, tuple[int, ...]]]:
        """Return (topic name, partitions) pairs of the topics that exist, sorted."""
        named = [(self.name(topic_id), n) for topic_id, n in partitions.items()]
        return sorted((topic, numbers) for topic, numbers in named if topic is not None)
