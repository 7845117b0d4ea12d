"""Handling of failed disks and the partitions on them (docs/kafka/brokers.md#failed-disks)."""

from __future__ import annotations

from collections.abc import Callable

from ..protocol.values import TopicPartition
from .follower.manager import FetcherManager
from .leader.delayed_requests import DelayedRequests
from .partition.hosted_partitions import HostedPartitions


class StorageFailures:
    """Takes partitions and log directories offline."""

    def __init__(
        self, hosted: HostedPartitions, delayed: DelayedRequests, fetcher_manager: FetcherManager
    ) -> None:
        self._hosted = hosted
        self._delayed = delayed
        self._fetcher_manager = fetcher_manager
        self.on_log_dir_failure: Callable[[str], object] | None = None
        """Called once with each directory taken offline, unless the broker process exits."""
        self.on_directory_offline: Callable[[str], object] = lambda directory: None
        """Called with each directory that goes offline, before its partitions do."""
        self.on_halt: Callable[[str], object] | None = None
        """Called with the reason when the broker process must exit: in 0.10 for a position out of
        range (docs/kafka/replica-fetchers.md#out-of-range) or a failed disk, in later releases
        when the last disk fails."""

    def on_storage_failure(self, topic_partition: TopicPartition, error: Exception) -> None:
        """Take offline the directory of a log that failed, or the partition if it has no log."""
        partition = self._hosted.partition(topic_partition)
        log = None if partition is None else partition.log
        if log is not None:
            self.handle_log_dir_failure(log.directory)
        else:
            self.mark_partition_offline(topic_partition)

    def handle_log_dir_failure(self, directory: str) -> bool:
        """Take the partitions in a failed directory offline; return True if the process exits.

        It exits when the last directory fails, or in 0.10 the first; the controller learns of this
        only from the expired session (``LogManager.handleLogDirFailure``).
        """
        hosted = self._hosted
        disk = hosted.disk
        if not hosted.behaviour.log_dir_failure_handling:
            self.halt(f"log directory {directory} failed")
            return True
        failed = [
            name
            for name, partition in hosted.by_name.items()
            if partition.log is not None and partition.log.directory == directory
        ]
        disk.fail(directory)
        self.on_directory_offline(directory)
        for name in failed:
            self.mark_partition_offline(name)
        if len(disk.offline_dirs) == len(disk.directories):
            self.halt("every log directory has failed")
            return True
        if self.on_log_dir_failure is not None:
            self.on_log_dir_failure(directory)
        return False

    def mark_partition_offline(self, topic_partition: TopicPartition) -> None:
        """Stop serving a partition until the broker restarts."""
        self._fetcher_manager.remove_fetchers((topic_partition,))
        self._hosted.unregister(topic_partition)
        self._hosted.offline[topic_partition] = None
        self._delayed.complete_produces_first(topic_partition)

    def halt(self, reason: str) -> None:
        """Make the broker process exit."""
        if self.on_halt is not None:
            self.on_halt(reason)
