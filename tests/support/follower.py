"""A follower whose leader's responses the test makes up."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.data import (
    EpochEndOffset,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochPartitionResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import RecordBatch
from fakekafka.protocol.values import LeaderAndIsr, TopicPartition
from fakekafka.replication.follower.fetch_state import FetcherRequest, PartitionFetchState
from fakekafka.replication.follower.fetcher import ReplicaFetcher
from fakekafka.replication.log.follower_append import append_as_follower
from fakekafka.replication.log.log import Log
from fakekafka.tests.support.batches import with_base_offset
from fakekafka.tests.support.present import present
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, encode

OTHER = TopicPartition("u", 0)


def batch_at(offset: int, count: int = 1, epoch: int = 0) -> RecordBatch:
    data = encode(*[f"v{offset + i}" for i in range(count)])
    return RecordBatch.from_bytes(bytes(with_base_offset(data, offset, epoch)))


class Follower:
    """Broker 0 as the follower of broker 1, whose responses the test makes up."""

    def __init__(
        self,
        version: str = "2.8",
        history: tuple[tuple[int, int], ...] = (),
        end: int = 0,
        high_watermark: int = 0,
        epoch: int = 5,
        topics: tuple[TopicPartition, ...] = (TP,),
        **more: Any,
    ) -> None:
        self.cluster = ReplicaCluster(version, 2, **more)
        self.node = self.cluster[0]
        self.history = history
        for tp in topics:
            self.cluster.replicas[tp] = (0, 1)
            self.cluster.state[tp] = LeaderAndIsr(1, epoch, (1,), 0)
        self.cluster.update_metadata()
        for tp in topics:
            self.prepare_log(tp, end, high_watermark)
            self.cluster.leader_and_isr(0, tp)

    def prepare_log(self, tp: TopicPartition, end: int, high_watermark: int) -> None:
        """Create a log with one batch per epoch of the history, filled up to ``end``."""
        state = self.cluster.partition_state(tp, leader=9)
        assert self.node.manager.metadata_cache.contains(tp)
        del state
        self.cluster.leader_and_isr(0, tp, leader=9)  # unknown leader: creates the log only
        log = self.log(tp)
        ends = [*(start for _, start in self.history[1:]), end]
        batches = [
            batch_at(start, stop - start, epoch)
            for (epoch, start), stop in zip(self.history, ends, strict=False)
            if stop > start
        ]
        if batches:
            append_as_follower(log, tuple(batches))
        log.update_high_watermark(high_watermark)

    @property
    def fetcher(self) -> ReplicaFetcher:
        return self.node.fetchers[0]

    def log(self, tp: TopicPartition = TP) -> Log:
        return self.node.log(tp)

    def state(self, tp: TopicPartition = TP) -> PartitionFetchState:
        return present(self.fetcher.state(tp))

    def next(self) -> FetcherRequest | None:
        return self.fetcher.next_request()

    def next_fetch(self) -> FetchRequest:
        request = self.next()
        assert isinstance(request, FetchRequest)
        return request

    def next_epochs(self) -> OffsetForLeaderEpochRequest:
        request = self.next()
        assert isinstance(request, OffsetForLeaderEpochRequest)
        return request

    def answer_epochs(
        self, *answers: tuple[Any, ...], request: FetcherRequest | None = None
    ) -> None:
        """Answer OffsetForLeaderEpoch with (epoch, end offset[, error]) per partition."""
        request = request or self.next()
        assert isinstance(request, OffsetForLeaderEpochRequest)
        self.fetcher.on_response(
            request,
            OffsetForLeaderEpochResponse(
                tuple(
                    OffsetForLeaderEpochPartitionResponse(
                        entry.topic_partition, *(a[2:] or (ErrorCode.NONE,)), *a[:2]
                    )
                    for entry, a in zip(request.partitions, answers, strict=True)
                )
            ),
        )

    def answer_fetch(
        self,
        *responses: FetchPartitionResponse,
        request: FetcherRequest | None = None,
        error: ErrorCode = ErrorCode.NONE,
        session_id: int = 0,
    ) -> FetchRequest:
        request = request or self.next()
        assert isinstance(request, FetchRequest)
        self.fetcher.on_response(request, FetchResponse(error, session_id, tuple(responses)))
        return request

    def answer_offset(self, offset: int, error: ErrorCode = ErrorCode.NONE) -> ListOffsetsRequest:
        request = self.next()
        assert isinstance(request, ListOffsetsRequest)
        name = request.partitions[0].topic_partition
        answer = ListOffsetsPartitionResponse(name, error, -1, offset)
        self.fetcher.on_response(request, ListOffsetsResponse((answer,)))
        return request


def fetched(
    *batches: RecordBatch,
    tp: TopicPartition = TP,
    high_watermark: int = 0,
    log_start: int = 0,
    error: ErrorCode = ErrorCode.NONE,
    diverging: tuple[int, int] | None = None,
) -> FetchPartitionResponse:
    if error is not ErrorCode.NONE:
        return FetchPartitionResponse(tp, error)
    return FetchPartitionResponse(
        tp,
        error,
        high_watermark,
        high_watermark,
        log_start,
        tuple(batches),
        diverging_epoch=EpochEndOffset(*diverging) if diverging else None,
    )


LONG: dict[str, Any] = {"history": ((5, 0),), "end": 200, "high_watermark": 120}
