"""Failures of disks, and the partitions on them (docs/kafka/brokers.md#failed-disks)."""

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
        """Told each directory taken offline, once."""
        self.on_directory_offline: Callable[[str], object] = lambda directory: None
        """Told each directory that is offline from now on, before the partitions in it are."""
        self.on_halt: Callable[[str], object] | None = None
        """The broker process has to exit, with the reason: 0.10 on a position out of range
        (docs/kafka/replica-fetchers.md#out-of-range) or on a failed disk,
        later releases on the last of their disks."""

    def on_storage_failure(self, topic_partition: TopicPartition, error: Exception) -> None:
        """A log failed under an operation: its whole directory goes offline."""
        partition = self._hosted.partition(topic_partition)
        log = None if partition is None else partition.log
        if log is not None:
            self.handle_log_dir_failure(log.directory)
        else:
            self.mark_partition_offline(topic_partition)

    def handle_log_dir_failure(self, directory: str) -> bool:
        """Take the partitions in a failed directory offline; whether the process ends.

        It ends with the last directory, and the controller hears of it by the end of the session
        only (``LogManager.handleLogDirFailure``).
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
        """Serve a partition no longer until the broker restarts."""
        self._fetcher_manager.remove_fetchers((topic_partition,))
        self._hosted.unregister(topic_partition)
        self._hosted.offline[topic_partition] = None
        self._delayed.complete_of(topic_partition)

    def halt(self, reason: str) -> None:
        """Have the broker process exit."""
        if self.on_halt is not None:
            self.on_halt(reason)
