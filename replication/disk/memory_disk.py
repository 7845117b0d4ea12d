"""A broker's disk in memory."""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol.values import TopicPartition
from ..log.storage import LogDirectory, LogStorage
from .disk import Disk


class MemoryDisk(Disk):
    """A disk in memory; the replicas of a cluster share the bytes of their batches.

    Directories, storages and checkpoints are the objects that ``Disk`` holds. They remain when a
    broker process ends, so there is nothing to read, write or release.
    """

    def __init__(self, directories: Sequence[str] = ("memory-0",)) -> None:
        super().__init__(directories)

    def volume_bytes(self, path: str) -> tuple[int, int]:
        return -1, -1

    def _create(self, topic_partition: TopicPartition, directory: LogDirectory) -> LogStorage:
        return LogStorage(directory)

    def _create_future(
        self, topic_partition: TopicPartition, directory: LogDirectory
    ) -> LogStorage:
        return LogStorage(directory)

    def _start_directory(self, directory: LogDirectory) -> None:
        pass

    def _mark_clean(self, directory: LogDirectory) -> None:
        pass

    def _load_all(self) -> None:
        pass

    def _release(self) -> None:
        pass

    def _save_checkpoint(self, directory: LogDirectory, name: str) -> None:
        pass

    def _save_meta(self, directory: LogDirectory) -> None:
        pass
