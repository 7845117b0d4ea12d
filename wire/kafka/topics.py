"""Partitions by their topics, as messages name them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

from ...protocol.values import TopicPartition

R = TypeVar("R")
Topics = Iterable[tuple[str, Iterable[int]]]
"""Topics with numbers of partitions."""
PARTITION_ERRORS = "[name partitions[partitionIndex=partition errorCode]]"
"""What most answers tell of results that are partitions and errors, grouped by topic."""


def by_topic(results: Iterable[R]) -> Collection[tuple[str, Sequence[R]]]:
    """Group results by topic, topics in order of first appearance.

    A result has its partition as ``topic_partition``, or is a tuple that begins with it.
    """
    groups: dict[str, list[R]] = {}
    found: Any
    for found in results:
        topic = found[0][0] if isinstance(found, tuple) else found.topic_partition[0]
        if topic in groups:
            groups[topic].append(found)
        else:
            groups[topic] = [found]
    return groups.items()


def partitions_of(topics: Topics) -> tuple[TopicPartition, ...]:
    """The partitions that topics with numbers stand for."""
    return tuple([TopicPartition(topic, number) for topic, numbers in topics for number in numbers])


def partitions_or_all(topics: Topics | None) -> tuple[TopicPartition, ...] | None:
    """The same where null asks for all of them."""
    return None if topics is None else partitions_of(topics)


def each_partition(make: Callable[..., R]) -> Callable[[Iterable[tuple[str, Any]]], tuple[R, ...]]:
    """Make something of each partition and what a request says of it beside its number."""
    return lambda topics: tuple(
        [
            make(TopicPartition(topic, number), *said)
            for topic, partitions in topics
            for number, *said in partitions
        ]
    )
