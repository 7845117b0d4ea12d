"""Partitions grouped by topic, as messages list them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

from ...protocol.values import TopicPartition

R = TypeVar("R")
Topics = Iterable[tuple[str, Iterable[int]]]
"""Topics with the numbers of their partitions."""
PARTITION_ERRORS = "[name partitions[partitionIndex=partition errorCode]]"
"""Selection of the errors of partitions, grouped by topic, in most responses."""


def by_topic(results: Iterable[R]) -> Collection[tuple[str, Sequence[R]]]:
    """Group results by topic, with topics in order of first appearance.

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
    """Return the partitions of topics with partition numbers."""
    return tuple([TopicPartition(topic, number) for topic, numbers in topics for number in numbers])


def partitions_or_all(topics: Topics | None) -> tuple[TopicPartition, ...] | None:
    """Return the partitions of topics; None, which asks for all partitions, stays None."""
    return None if topics is None else partitions_of(topics)


def each_partition(make: Callable[..., R]) -> Callable[[Iterable[tuple[str, Any]]], tuple[R, ...]]:
    """Return a function that calls ``make`` with each partition and its other fields."""
    return lambda topics: tuple(
        [
            make(TopicPartition(topic, number), *said)
            for topic, partitions in topics
            for number, *said in partitions
        ]
    )
