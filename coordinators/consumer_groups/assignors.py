"""The server-side assignors, as pure functions (KIP-848; Kafka: ``RangeAssignor``,
``UniformAssignor``). The result depends on the order of the given members and topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ...protocol.groups import TopicIdPartitions
from .uneven_subscriptions import assign_to_uneven


class MemberSpec(NamedTuple):
    """The data of a member that an assignor needs."""

    topics: tuple[str, ...]
    """Names of the subscribed topics, sorted."""
    topic_ids: tuple[str, ...]
    """Ids of the subscribed topics that exist."""
    target: TopicIdPartitions
    """Target assignment so far."""
    group_instance_id: str | None = None


Specs = Mapping[str, MemberSpec]
"""Members by member id."""
Assignor = Callable[[Specs, Mapping[str, int]], dict[str, TopicIdPartitions]]
"""Takes members and partition counts by topic id; returns target assignments by member id."""


def range_assignor(members: Specs, counts: Mapping[str, int]) -> dict[str, TopicIdPartitions]:
    """Assign a range of each topic's partitions to every subscriber.

    The first subscribers may get one partition more. Static members come first, ordered by
    instance id.
    """
    order = sorted(members, key=lambda member_id: _range_rank(member_id, members[member_id]))
    result: dict[str, TopicIdPartitions] = {member_id: {} for member_id in order}
    for topic_id in counts:
        subscribers = [m for m in order if topic_id in members[m].topic_ids]
        if not subscribers:
            continue
        share, rest = divmod(counts[topic_id], len(subscribers))
        start = 0
        for index, member_id in enumerate(subscribers):
            end = start + share + (index < rest)
            if start < end:
                result[member_id][topic_id] = tuple(range(start, end))
            start = end
    return result


def _range_rank(member_id: str, member: MemberSpec) -> tuple[int, str]:
    instance_id = member.group_instance_id
    return (1, member_id) if instance_id is None else (0, instance_id)


def uniform_assignor(members: Specs, counts: Mapping[str, int]) -> dict[str, TopicIdPartitions]:
    """Balance the number of partitions to within one; members keep partitions where possible."""
    first = next(iter(members.values()))
    if any(member.topics != first.topics for member in members.values()):
        topics = {member_id: member.topic_ids for member_id, member in members.items()}
        targets = {member_id: member.target for member_id, member in members.items()}
        return assign_to_uneven(topics, targets, counts)
    if not first.topic_ids:
        return {}
    return _assign_to_even(members, {t: n for t, n in counts.items() if t in first.topic_ids})


def _assign_to_even(members: Specs, counts: Mapping[str, int]) -> dict[str, TopicIdPartitions]:
    """Assign partitions to members that all subscribe to the same topics."""
    assigned = {
        (topic_id, number)
        for member in members.values()
        for topic_id, numbers in member.target.items()
        for number in numbers
    }
    unassigned = [
        (t, n) for t, count in counts.items() for n in range(count) if (t, n) not in assigned
    ]
    least, rest = divmod(sum(counts.values()), len(members))
    kept: dict[str, list[tuple[str, int]]] = {}
    remaining_quotas: dict[str, int] = {}
    for index, (member_id, member) in enumerate(members.items()):
        quota = least + (index < rest)
        kept[member_id] = []
        for topic_id, numbers in member.target.items():
            present = [n for n in numbers if n < counts.get(topic_id, 0)]
            kept[member_id] += [(topic_id, n) for n in present[:quota]]
            unassigned += [(topic_id, n) for n in present[quota:]]
            quota -= min(quota, len(present))
        remaining_quotas[member_id] = quota
    start = 0
    for member_id, count in remaining_quotas.items():
        kept[member_id] += unassigned[start : start + count]
        start += count
    return {member_id: by_topic(partitions) for member_id, partitions in kept.items()}


def by_topic(partitions: list[tuple[str, int]]) -> TopicIdPartitions:
    """Group pairs of topic id and partition into an assignment."""
    found: dict[str, list[int]] = {}
    for topic_id, number in partitions:
        found.setdefault(topic_id, []).append(number)
    return {topic_id: tuple(sorted(found[topic_id])) for topic_id in sorted(found)}


ASSIGNORS: dict[str, Assignor] = {"uniform": uniform_assignor, "range": range_assignor}
"""Assignors by the names that members select them with."""
