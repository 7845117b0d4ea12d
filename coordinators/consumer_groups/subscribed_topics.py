"""Topics of members as a broker knows them (``ModernGroup.computeSubscriptionMetadata``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...protocol.groups import TopicIdPartitions
from .member import ConsumerMember
from .records import SubscribedTopic

if TYPE_CHECKING:
    from ...replication.partition.metadata_cache import MetadataCache


class TopicCatalogue:
    """Topics with their ids, sizes and racks."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache
        self._racks: dict[int, str | None] = {}
        """Racks of the brokers seen so far: one that is down keeps its rack."""

    def of(self, members: Iterable[ConsumerMember]) -> tuple[SubscribedTopic, ...]:
        """The topics that these members read and that exist, by name."""
        names = sorted({name for member in members for name in self.names(member)})
        for broker in self._cache.alive_brokers():
            self._racks[broker.id] = broker.rack
        return tuple([self._topic(name) for name in names if self._cache.topic_id(name)])

    def names(self, member: ConsumerMember) -> tuple[str, ...]:
        """The names that a member subscribes to, in order."""
        if not member.topic_regex:
            return member.topics
        matching = [topic for topic in self._cache.topics() if member.reads(topic)]
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
        """The name of a topic; None if it is gone."""
        return self._cache.topic_name(topic_id)

    def id(self, name: str) -> str:
        """The id of a topic; empty if it is unknown."""
        return self._cache.topic_id(name)

    def named(self, partitions: TopicIdPartitions) -> list[tuple[str, tuple[int, ...]]]:
        """Partitions by the names of topics, of those that there are."""
        named = [(self.name(topic_id), n) for topic_id, n in partitions.items()]
        return sorted((topic, numbers) for topic, numbers in named if topic is not None)
