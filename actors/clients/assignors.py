"""The assignors of Kafka's consumer as pure functions, and the encoding of their data.

An assignor takes the partition counts of topics and the subscriptions of members, and returns each
member's partitions. Members and topics are ordered by name, as in Kafka, where static members come
first, ordered by their instance id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ...coordinators.consumer_groups import embedded_protocol
from ...protocol.values import TopicPartition

_VERSION = 1

Partitions = tuple[TopicPartition, ...]


class Subscription(NamedTuple):
    """Subscription of a member that joins."""

    topics: tuple[str, ...]
    owned: Partitions = ()
    """Partitions that the member owns; cooperative members keep them while joining (KIP-429)."""
    group_instance_id: str | None = None


Assignment = dict[str, list[TopicPartition]]
Assignor = Callable[[Mapping[str, int], Mapping[str, Subscription]], Assignment]


def range_assignor(counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
    """Assign contiguous partitions of each topic to each member; the first members get one more."""
    assignment: Assignment = {member: [] for member in members}
    for topic in sorted(counts):
        consumers = [m for m in _sorted_members(members) if topic in members[m].topics]
        if not consumers:
            continue
        share, rest = divmod(counts[topic], len(consumers))
        start = 0
        for index, member in enumerate(consumers):
            size = share + (index < rest)
            assignment[member] += _partitions_of(topic, range(start, start + size))
            start += size
    return assignment


def round_robin_assignor(
    counts: Mapping[str, int], members: Mapping[str, Subscription]
) -> Assignment:
    """Assign each partition in turn to the next member that subscribes to its topic."""
    assignment: Assignment = {member: [] for member in members}
    ring = _sorted_members(members)
    position = 0
    for topic in sorted(counts):
        if not any(topic in subscription.topics for subscription in members.values()):
            continue
        for partition in _partitions_of(topic, range(counts[topic])):
            while topic not in members[ring[position % len(ring)]].topics:
                position += 1
            assignment[ring[position % len(ring)]].append(partition)
            position += 1
    return assignment


def sticky_assignor(counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
    """Assign evenly to within one partition; members keep as many of their own as that allows.

    For members with equal subscriptions the result is that of Kafka's sticky assignor. Otherwise
    each free partition goes to the member with the fewest among those that subscribe to its topic.
    """
    assignment: Assignment = {member: [] for member in members}
    taken: dict[TopicPartition, None] = {}
    order = _sorted_members(members)
    everything = [
        p for topic in sorted(counts) for p in _partitions_of(topic, range(counts[topic]))
    ]
    least, rest = divmod(len(everything), max(len(order), 1))
    for member in order:
        topics = members[member].topics
        for partition in sorted(members[member].owned):
            has_room = len(assignment[member]) < least or (
                len(assignment[member]) == least and rest > 0
            )
            exists = partition.partition < counts.get(partition.topic, 0)
            if has_room and exists and partition not in taken and partition.topic in topics:
                if len(assignment[member]) == least:
                    rest -= 1
                assignment[member].append(partition)
                taken[partition] = None
    for partition in everything:
        if partition in taken:
            continue
        consumers = [m for m in order if partition.topic in members[m].topics]
        if consumers:
            fewest = min(consumers, key=lambda member: len(assignment[member]))
            assignment[fewest].append(partition)
    return assignment


def cooperative_sticky_assignor(
    counts: Mapping[str, int], members: Mapping[str, Subscription]
) -> Assignment:
    """Assign as ``sticky_assignor``, but not what another member has yet to give up (KIP-429)."""
    wanted = sticky_assignor(counts, members)
    owner = {p: member for member, s in members.items() for p in s.owned}
    return {
        member: [p for p in partitions if owner.get(p, member) == member]
        for member, partitions in wanted.items()
    }


ASSIGNORS: dict[str, Assignor] = {
    "range": range_assignor,
    "roundrobin": round_robin_assignor,
    "sticky": sticky_assignor,
    "cooperative-sticky": cooperative_sticky_assignor,
}
"""Assignors by the names under which consumers announce them."""
COOPERATIVE = ("cooperative-sticky",)
"""Names of the assignors whose members keep their partitions while joining."""


def _sorted_members(members: Mapping[str, Subscription]) -> list[str]:
    def key(member: str) -> tuple[bool, str]:
        instance_id = members[member].group_instance_id
        return (instance_id is None, member if instance_id is None else instance_id)

    return sorted(members, key=key)


def _partitions_of(topic: str, numbers: Iterable[int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


# -- bytes --------------------------------------------------------------------------------------


def encode_subscription(topics: Sequence[str], owned: Iterable[TopicPartition]) -> bytes:
    """Encode a subscription in version 1 of the consumer protocol, without user data."""
    return embedded_protocol.encode_subscription(topics, _by_topic(owned), _VERSION)


def decode_subscription(data: bytes, group_instance_id: str | None = None) -> Subscription:
    """Decode the subscription of a member; raises ``ClientError`` for malformed bytes."""
    subscription = embedded_protocol.decode_subscription(data)
    return Subscription(subscription.topics, _partitions(subscription.owned), group_instance_id)


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """Encode the assignment of a member, as the group's leader sends it."""
    return embedded_protocol.encode_assignment(_by_topic(partitions), _VERSION)


def decode_assignment(data: bytes) -> Partitions:
    """Decode the assignment of a member; no bytes are an empty one. Raises ``ClientError`` for
    malformed bytes."""
    return _partitions(embedded_protocol.decode_assignment(data))


def _by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, tuple[int, ...]]]:
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return [(topic, tuple(numbers)) for topic, numbers in by_topic.items()]


def _partitions(by_topic: Iterable[tuple[str, tuple[int, ...]]]) -> Partitions:
    return tuple(TopicPartition(topic, number) for topic, numbers in by_topic for number in numbers)
