"""Progress of a follower in one partition, and the callbacks of fetchers
(docs/kafka/replica-fetchers.md#threads)."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

from ...protocol.data import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from ...protocol.errors import ErrorCode, InvariantError, KafkaError
from ...protocol.values import TopicPartition

if TYPE_CHECKING:
    from ..log.log import Log
    from ..partition.partition import Partition


FetcherRequest = FetchRequest | OffsetForLeaderEpochRequest | ListOffsetsRequest
FetcherResponse = FetchResponse | OffsetForLeaderEpochResponse | ListOffsetsResponse


class FetchStage(IntEnum):
    FETCHING = 0
    TRUNCATING = 1
    ASKING_LATEST = 2
    ASKING_EARLIEST = 3


class PartitionFetchState:
    """Progress of copying one partition."""

    __slots__ = (
        "delayed_until_ms",
        "fetch_offset",
        "last_fetched_epoch",
        "leader_epoch",
        "leader_high_watermark",
        "partition",
        "sent_log_start_offset",
        "sent_offset",
        "stage",
    )

    def __init__(
        self, partition: Partition, fetch_offset: int, leader_epoch: int, stage: FetchStage
    ) -> None:
        self.partition: Partition = partition
        self.fetch_offset: int = fetch_offset
        """Log end offset while fetching; before, the offset to truncate to by default."""
        self.leader_epoch: int = leader_epoch
        """Epoch of the LeaderAndIsr that started the copying."""
        self.stage: FetchStage = stage
        self.last_fetched_epoch: int = -1
        self.delayed_until_ms: int = 0
        self.leader_high_watermark: int = -1
        """High watermark in the leader's last successful response; -1 before the first."""
        self.sent_offset: int = -1
        """``fetch_offset`` in the last request to the leader; -1 if there was none. A response
        counts only while the two are equal."""
        self.sent_log_start_offset: int = -1

    def report(self, leader_id: int | None) -> None:
        """Report the stage that begins and its offset, if the run is recorded; with None, report
        that the partition is not copied any more."""
        report = self.partition.report
        if report is None:
            return
        if leader_id is None:
            report.report_fetcher(None, None, None)
        else:
            stage = "delayed" if self.delayed_until_ms else self.stage.name.lower()
            report.report_fetcher(leader_id, stage, self.fetch_offset)

    @property
    def is_in_sync(self) -> bool:
        """True if everything below the leader's high watermark is copied."""
        return 0 <= self.leader_high_watermark <= self.fetch_offset

    @property
    def lag(self) -> int:
        """Number of records below the leader's high watermark that are not copied yet."""
        return max(0, self.leader_high_watermark - self.fetch_offset)


class FetcherCallbacks:
    """Callbacks of fetchers; shared by all fetchers of a broker."""

    def __init__(self) -> None:
        self.on_failed: Callable[[TopicPartition, str], object] = lambda name, why: None
        """Called with a partition that is given up until the next LeaderAndIsr, and the reason."""
        self.on_halt: Callable[[TopicPartition, str], object] = lambda name, why: None
        """Called in 0.10, with the partition and the reason, when the broker process must exit
        because it would lose records otherwise."""
        self.on_storage_failure: Callable[[TopicPartition, Exception], object] = (
            lambda name, error: None
        )
        self.on_appended: Callable[[TopicPartition], object] = lambda name: None
        """Called with each followed partition whose high watermark rose."""
        self.is_unclean_election_allowed: Callable[[str], bool] = lambda topic: False
        self.verify_checksums: bool = False
        """True to check the checksums of fetched batches. Off by default: batches are shared
        objects, so only tests that damage them in transit need it."""


def is_storage_failure(error: Exception) -> bool:
    """Return whether the disk failed, not only one partition."""
    return isinstance(error, OSError) or (
        isinstance(error, KafkaError) and error.code is ErrorCode.KAFKA_STORAGE_ERROR
    )


def log_of(partition: Partition) -> Log:
    """Return the log of a partition that is being copied."""
    log = partition.log
    if log is None:
        raise InvariantError(f"{partition.topic_partition} is fetched but has no log")
    return log


def initial_state(
    partition: Partition, leader_epoch: int, initial_offset: int, truncation: str
) -> PartitionFetchState:
    """Return the state in which copying begins; ``truncation`` is how the release truncates."""
    log = log_of(partition)
    stage = FetchStage.TRUNCATING
    offset = initial_offset
    last_fetched_epoch = -1
    if initial_offset < 0:
        stage = FetchStage.ASKING_LATEST
        offset = log.log_end_offset
    elif truncation == "high_watermark":
        stage = FetchStage.FETCHING  # already truncated to the high watermark
    elif truncation == "fetch" and log.latest_epoch >= 0:
        stage = FetchStage.FETCHING
        offset = log.log_end_offset
        last_fetched_epoch = log.latest_epoch
    state = PartitionFetchState(partition, offset, leader_epoch, stage)
    state.last_fetched_epoch = last_fetched_epoch
    return state
