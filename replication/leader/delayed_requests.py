"""The purgatories of a broker, and the changes after which waiting requests are tried again
(docs/kafka/purgatory.md#purgatory)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig
from ...protocol.host import Host
from ...protocol.values import TopicPartition
from ..partition.hosted_partitions import HostedPartitions
from ..waiting.purgatory import Purgatory
from ..waiting.timing_wheel import WheelTimer

if TYPE_CHECKING:
    from ..partition.partition import Partition


class DelayedRequests:
    """The purgatories of one broker and the timer they share."""

    def __init__(self, hosted: HostedPartitions, host: Host, config: BrokerConfig) -> None:
        self._by_name = hosted.by_name
        self._released_sessions = hosted.context.released_sessions
        behaviour = hosted.behaviour
        self._append_completes_produces_first = behaviour.append_completes_produces_first
        timer = WheelTimer(host, causes=host.causes)
        self.timer: WheelTimer = timer
        fetches_kept: int = config["fetch.purgatory.purge.interval.requests"]
        produces_kept: int = config["producer.purgatory.purge.interval.requests"]
        deletions_kept: int = config["delete.records.purgatory.purge.interval.requests"]
        self.produces: Purgatory = Purgatory("Produce", timer, produces_kept)
        self.fetches: Purgatory = Purgatory("Fetch", timer, fetches_kept)
        self.fetches_to_end: Purgatory = Purgatory("FetchToEnd", timer, fetches_kept)
        """The part of Kafka's fetch purgatory that an append may complete: followers read up to
        the log end, consumers only below the high watermark."""
        self.deletions: Purgatory = Purgatory("DeleteRecords", timer, deletions_kept)
        hosted.context.high_watermark_moved = self.complete

    def complete(self, partition: Partition) -> None:
        """Try to complete the requests that wait on a partition whose high watermark moved.

        Fetches come first (Kafka: ``Partition.tryCompleteDelayedRequests``).
        """
        partition.wake_fetchers()
        name = partition.topic_partition
        self._complete_fetches(name)
        if self.produces.delayed_count:
            self.produces.check_and_complete(name)
        self._complete_deletions_and_sessions(name)

    def complete_after_append(self, partition: Partition) -> None:
        """Try to complete the requests that wait on a leader whose own append moved the high
        watermark, in the order of the release."""
        if self._append_completes_produces_first:
            self.complete_produces_first(partition.topic_partition)
        else:
            self.complete(partition)

    def complete_produces_first(self, topic_partition: TopicPartition) -> None:
        """Try to complete the requests that wait on a partition whose role changed.

        Produces come first (Kafka: ``ReplicaManager.completeDelayedFetchOrProduceRequests``).
        """
        partition = self._by_name.get(topic_partition)
        if partition is not None:
            partition.wake_fetchers()
        if self.produces.delayed_count:
            self.produces.check_and_complete(topic_partition)
        self._complete_fetches(topic_partition)
        self._complete_deletions_and_sessions(topic_partition)

    def purge(self) -> None:
        """Drop completed operations that are still listed, as they may hold deleted partitions.

        Otherwise the last fetches of followers would keep these partitions in memory until the
        purge intervals of the purgatories are reached.
        """
        for purgatory in (self.produces, self.fetches, self.fetches_to_end, self.deletions):
            purgatory.purge()

    def _complete_fetches(self, topic_partition: TopicPartition) -> None:
        if self.fetches.delayed_count:
            self.fetches.check_and_complete(topic_partition)
        if self.fetches_to_end.delayed_count:
            self.fetches_to_end.check_and_complete(topic_partition)

    def _complete_deletions_and_sessions(self, topic_partition: TopicPartition) -> None:
        if self.deletions.delayed_count:
            self.deletions.check_and_complete(topic_partition)
        released = self._released_sessions
        while released:
            parked = released.pop().parked
            if parked is not None and not parked.try_complete():
                parked.watch_again()
