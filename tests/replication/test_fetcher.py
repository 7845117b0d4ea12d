"""The follower's fetcher (data_plane 7; AbstractFetcherThreadTest, ReplicaFetcherThreadTest)."""

from __future__ import annotations

import pytest
from fakekafka.protocol.data import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
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
from fakekafka.protocol.errors import ErrorCode, InvariantError
from fakekafka.protocol.record_batch import RecordBatch, with_base_offset
from fakekafka.protocol.values import LeaderAndIsr, TopicPartition
from fakekafka.replication.fetcher import FetchStage
from fakekafka.replication.fetcher_manager import fetcher_id_for, java_string_hash
from replica_cluster import TP, ReplicaCluster, encode

OTHER = TopicPartition("u", 0)


def batch_at(offset: int, count: int = 1, epoch: int = 0) -> RecordBatch:
    data = encode(*[f"v{offset + i}" for i in range(count)])
    return RecordBatch.of(bytes(with_base_offset(data, offset, epoch)))


class Follower:
    """Broker 0 follows broker 1, whose answers the test makes up."""

    def __init__(
        self,
        version: str = "2.8",
        history: tuple[tuple[int, int], ...] = (),
        end: int = 0,
        high_watermark: int = 0,
        epoch: int = 5,
        topics=(TP,),
        **more,
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

    def prepare_log(self, tp, end: int, high_watermark: int) -> None:
        """A log of one batch per epoch of the history, filled up to ``end``."""
        state = self.cluster.partition_state(tp, leader=9)
        assert self.node.manager.metadata_cache.contains(tp)
        del state
        self.cluster.leader_and_isr(0, tp, leader=9)  # leader unknown: creates the log only
        log = self.log(tp)
        starts = [*self.history, (None, end)]
        batches = [
            batch_at(start, starts[i + 1][1] - start, epoch)
            for i, (epoch, start) in enumerate(self.history)
            if starts[i + 1][1] > start
        ]
        if batches:
            log.append_as_follower(tuple(batches))
        log.update_high_watermark(high_watermark)

    @property
    def fetcher(self):
        return self.node.fetchers[0]

    def log(self, tp=TP):
        return self.node.manager.partition(tp).log

    def state(self, tp=TP):
        return self.fetcher.state(tp)

    def next(self):
        return self.fetcher.next_request()

    def answer_epochs(self, *answers, request=None) -> None:
        """Answers are (epoch, end offset[, error])."""
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

    def answer_fetch(self, *responses, request=None, error=ErrorCode.NONE, session_id=0):
        request = request or self.next()
        assert isinstance(request, FetchRequest)
        self.fetcher.on_response(request, FetchResponse(error, session_id, tuple(responses)))
        return request

    def answer_offset(self, offset: int, error=ErrorCode.NONE) -> ListOffsetsRequest:
        request = self.next()
        assert isinstance(request, ListOffsetsRequest)
        name = request.partitions[0].topic_partition
        answer = ListOffsetsPartitionResponse(name, error, -1, offset)
        self.fetcher.on_response(request, ListOffsetsResponse((answer,)))
        return request


def fetched(*batches, tp=TP, high_watermark=0, log_start=0, error=ErrorCode.NONE, diverging=None):
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


LONG = {"history": ((5, 0),), "end": 200, "high_watermark": 120}


# -- plain fetching -----------------------------------------------------------------------------


def test_copies_and_moves_on() -> None:
    """Fetched batches are appended; position, epoch, high watermark and lag follow."""
    follower = Follower()
    follower.next()
    follower.answer_fetch(fetched(batch_at(0, 3), batch_at(3, 2, epoch=4), high_watermark=9))
    assert follower.log().log_end_offset == 5
    assert follower.log().high_watermark == 5
    state = follower.state()
    assert (state.fetch_offset, state.last_fetched_epoch, state.lag) == (5, 4, 4)


def test_log_start_is_copied() -> None:
    """The leader's log start raises the follower's, and the next fetch tells it."""
    follower = Follower(history=((5, 0),), end=3, high_watermark=3)
    follower.answer_fetch(fetched(high_watermark=3, log_start=2), session_id=7)
    request = follower.next()
    assert [p.log_start_offset for p in request.partitions] == [2]
    assert follower.log().log_start_offset == 2


def test_request_fields() -> None:
    """A fetch carries the replica, its epochs and the configured limits."""
    follower = Follower(history=((5, 0),), end=3)
    request = follower.next()
    assert (request.replica_id, request.max_wait_ms, request.min_bytes) == (0, 500, 1)
    assert request.max_bytes == 10485760
    entry = request.partitions[0]
    assert (entry.fetch_offset, entry.max_bytes) == (3, 1048576)
    assert (entry.current_leader_epoch, entry.last_fetched_epoch) == (5, 5)


def test_old_requests_carry_no_epochs() -> None:
    """Before 2.1 a fetch carries no leader epoch, before 2.7 no last fetched epoch."""
    follower = Follower("1.1", history=((5, 0),), end=3)
    follower.answer_epochs((-1, 3))
    entry = follower.next().partitions[0]
    assert (entry.current_leader_epoch, entry.last_fetched_epoch) == (-1, -1)


def test_initial_position_by_protocol() -> None:
    """Where copying starts: LEO when divergence is found on fetch, else HW, truncating first."""
    for version, stage, offset in (
        ("0.10", FetchStage.FETCHING, 120),
        ("1.1", FetchStage.TRUNCATING, 120),
        ("2.8", FetchStage.FETCHING, 200),
    ):
        state = Follower(version, **LONG).state()
        assert (state.stage, state.fetch_offset) == (stage, offset), version


def test_missed_round_is_ignored() -> None:
    """DP-55: an answer for a partition removed meanwhile does nothing."""
    follower = Follower()
    request = follower.next()
    follower.node.fetcher_manager.remove_fetchers([TP])
    follower.answer_fetch(fetched(batch_at(0)), request=request)
    assert follower.log().log_end_offset == 0


def test_restart_with_another_epoch_ignores_the_old_answer() -> None:
    """DP-62: an answer to a fetch of the former epoch is not applied."""
    follower = Follower()
    follower.next()
    follower.answer_fetch(fetched(batch_at(0)))
    request = follower.next()
    follower.cluster.leader_and_isr(0, leader_epoch=6)
    follower.answer_fetch(fetched(batch_at(1, epoch=5)), request=request)
    assert follower.log().log_end_offset == 1
    assert follower.next().partitions[0].current_leader_epoch == 6


def test_adding_with_the_same_epoch_changes_nothing() -> None:
    """DP-56: re-adding with an equal epoch does not truncate again."""
    follower = Follower("1.1", **LONG)
    follower.answer_epochs((-1, 200))
    state = follower.state()
    follower.fetcher.add(follower.node.manager.partition(TP), 5, 120)
    assert follower.state() is state
    assert state.stage is FetchStage.FETCHING


# -- errors while fetching ----------------------------------------------------------------------


def test_corrupt_batch_is_fetched_again() -> None:
    """DP-61: corrupt data backs off, then the same offset succeeds."""
    follower = Follower()
    follower.node.fetcher_manager.callbacks.verify_checksums = True
    broken = bytearray(batch_at(0).data)
    broken[-1] ^= 1
    follower.next()
    follower.answer_fetch(fetched(RecordBatch.of(bytes(broken))))
    assert follower.log().log_end_offset == 0
    assert follower.next() is None
    assert follower.fetcher.delay_ms() == 1000
    follower.cluster.clock.advance(1000)
    follower.answer_fetch(fetched(batch_at(0)))
    assert follower.log().log_end_offset == 1


def test_fenced_while_fetching() -> None:
    """DP-51: FENCED removes the partition and marks it failed until the next LeaderAndIsr."""
    follower = Follower()
    follower.next()
    follower.answer_fetch(fetched(error=ErrorCode.FENCED_LEADER_EPOCH))
    assert follower.fetcher.partitions == ()
    assert TP in follower.node.fetcher_manager.failed_partitions
    follower.cluster.leader_and_isr(0, leader_epoch=6)
    assert follower.fetcher.partitions == (TP,)
    assert follower.node.fetcher_manager.failed_partitions == {}


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_other_errors_back_off(error: ErrorCode) -> None:
    """Other errors keep the partition and try again after the back-off."""
    follower = Follower()
    follower.next()
    follower.answer_fetch(fetched(error=error))
    assert follower.next() is None
    follower.cluster.clock.advance(999)
    assert follower.next() is None
    follower.cluster.clock.advance(1)
    assert isinstance(follower.next(), FetchRequest)


def test_one_bad_partition_does_not_stop_the_others() -> None:
    """DP-64, CP-193: a partition that cannot append is marked failed, the others continue."""
    follower = Follower(history=((5, 0),), end=3, topics=(TP, OTHER))
    follower.next()
    follower.answer_fetch(fetched(batch_at(1)), fetched(batch_at(3), tp=OTHER))
    assert follower.fetcher.partitions == (OTHER,)
    assert list(follower.node.fetcher_manager.failed_partitions) == [TP]
    assert follower.log(OTHER).log_end_offset == 4


def test_one_bad_partition_stopped_the_thread() -> None:
    """0.10: an exception while appending kills the whole fetcher."""
    follower = Follower("0.10", end=3, history=((5, 0),), high_watermark=3, topics=(TP, OTHER))
    follower.next()
    follower.answer_fetch(fetched(batch_at(1)), fetched(batch_at(3), tp=OTHER))
    assert not follower.fetcher.is_running
    assert follower.next() is None
    assert follower.log(OTHER).log_end_offset == 3


def test_lost_request_delays_everything() -> None:
    """An I/O failure has all partitions wait for the back-off."""
    follower = Follower()
    follower.fetcher.on_failure(follower.next())
    assert follower.next() is None
    assert follower.fetcher.delay_ms() == 1000
    follower.cluster.clock.advance(1000)
    assert follower.next() is not None


def test_unexpected_position_fails_the_partition() -> None:
    """Data for another offset than the log's end marks the partition failed."""
    follower = Follower(history=((5, 0),), end=3)
    request = follower.next()
    follower.log().truncate_to(0)
    follower.answer_fetch(fetched(batch_at(3)), request=request)
    assert TP in follower.node.fetcher_manager.failed_partitions


# -- truncation by epoch ------------------------------------------------------------------------


def truncating(**more) -> Follower:
    """A follower of the epoch protocol of 2.1 to 2.6: several rounds, fenced."""
    return Follower("2.8", flags={"truncation": "leader_epoch"}, **more)


@pytest.mark.parametrize("answer", [156, 172])
def test_truncates_to_the_leaders_end(answer: int) -> None:
    """DP-65: LEO 200 and the same epoch: cut to what the leader answers."""
    follower = truncating(**LONG)
    follower.answer_epochs((5, answer))
    assert follower.log().log_end_offset == answer
    assert follower.state().stage is FetchStage.FETCHING
    assert follower.state().fetch_offset == answer


def test_leader_beyond_the_log_cuts_nothing() -> None:
    """DP-66: an answer 202 above LEO 200, epoch unknown to the follower, is a no-op."""
    follower = truncating(**LONG)
    follower.answer_epochs((6, 202))
    assert follower.log().log_end_offset == 200


def test_several_rounds() -> None:
    """DP-67: answer (4, 155) with own (3, 120): cut to 120, ask epoch 3, then cut to 101."""
    follower = truncating(history=((3, 0), (5, 120)), end=200, high_watermark=10)
    request = follower.next()
    assert request.partitions[0].leader_epoch == 5
    follower.answer_epochs((4, 155), request=request)
    assert follower.log().log_end_offset == 120
    assert follower.state().stage is FetchStage.TRUNCATING
    request = follower.next()
    assert request.partitions[0].leader_epoch == 3
    follower.answer_epochs((3, 101), request=request)
    assert follower.state().stage is FetchStage.FETCHING


def test_answer_without_an_epoch() -> None:
    """DP-69: a peer below 2.0 answers an offset alone; it is used directly."""
    follower = truncating(history=((3, 0), (5, 120)), end=200, high_watermark=10)
    follower.answer_epochs((-1, 120))
    assert follower.log().log_end_offset == 120
    assert follower.state().stage is FetchStage.FETCHING


def test_undefined_answer_falls_back_to_the_high_watermark() -> None:
    """DP-70, DP-54: without an answer the log is cut to the initial offset, the high watermark."""
    follower = truncating(history=((3, 0), (5, 120)), end=200, high_watermark=120)
    follower.answer_epochs((-1, -1))
    assert follower.log().log_end_offset == 120


@pytest.mark.parametrize("version", ["1.1", "2.8"])
def test_no_epoch_at_the_follower(version: str) -> None:
    """DP-54: without any epoch of its own the log is cut to the high watermark, then fetched."""
    follower = Follower(version)
    assert follower.state().stage is FetchStage.TRUNCATING
    assert isinstance(follower.next(), FetchRequest)
    assert follower.state().stage is FetchStage.FETCHING


def test_errors_are_asked_again() -> None:
    """DP-71: as long as the epoch request fails nothing is cut."""
    follower = truncating(**LONG)
    for _ in range(3):
        follower.answer_epochs((-1, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER))
        assert follower.next() is None
        follower.cluster.clock.advance(1000)
    follower.fetcher.on_failure(follower.next())
    follower.cluster.clock.advance(1000)
    assert isinstance(follower.next(), OffsetForLeaderEpochRequest)
    assert follower.log().log_end_offset == 200


def test_unknown_epoch_is_asked_again_until_the_leader_learnt() -> None:
    """DP-52: UNKNOWN_LEADER_EPOCH stays truncating, retried after the back-off, then succeeds."""
    follower = truncating(**LONG)
    follower.answer_epochs((-1, -1, ErrorCode.UNKNOWN_LEADER_EPOCH))
    assert follower.state().stage is FetchStage.TRUNCATING
    follower.cluster.clock.advance(1000)
    follower.answer_epochs((5, 150))
    assert follower.log().log_end_offset == 150


def test_fenced_while_truncating() -> None:
    """DP-51: FENCED while truncating removes the partition and marks it failed."""
    follower = truncating(**LONG)
    follower.answer_epochs((-1, -1, ErrorCode.FENCED_LEADER_EPOCH))
    assert TP in follower.node.fetcher_manager.failed_partitions
    assert follower.log().log_end_offset == 200


def test_removed_while_the_epoch_request_is_under_way() -> None:
    """DP-55: no truncation is applied to a partition removed meanwhile."""
    follower = truncating(**LONG)
    request = follower.next()
    follower.node.fetcher_manager.remove_fetchers([TP])
    follower.answer_epochs((5, 150), request=request)
    assert follower.log().log_end_offset == 200


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH])
def test_epoch_changed_during_the_epoch_request(error: ErrorCode) -> None:
    """DP-62: the answer to the older epoch is ignored; the next round uses the new one."""
    follower = truncating(**LONG)
    request = follower.next()
    follower.cluster.leader_and_isr(0, leader_epoch=9)
    follower.answer_epochs((5, 150, error), request=request)
    assert follower.log().log_end_offset == 200
    assert follower.state().leader_epoch == 9
    assert isinstance(follower.next(), OffsetForLeaderEpochRequest)


def test_unrequested_answer() -> None:
    """DP-63: an answer for a partition nobody asked is an error, and nothing is cut."""
    follower = truncating(**LONG)
    request = follower.next()
    answers = tuple(
        OffsetForLeaderEpochPartitionResponse(tp, ErrorCode.NONE, 5, 100) for tp in (TP, OTHER)
    )
    with pytest.raises(InvariantError):
        follower.fetcher.on_response(request, OffsetForLeaderEpochResponse(answers))
    assert follower.log().log_end_offset == 200


# -- truncation on fetch ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "diverging", "cut", "epoch"),
    [
        (((2, 0), (4, 130), (5, 160)), (4, 140), 140, 4),
        (((2, 0), (4, 129)), (3, 130), 129, 2),
        (((1, 0), (4, 119)), (2, 120), 119, 1),
    ],
)
def test_diverging_epochs(history, diverging, cut, epoch) -> None:
    """DP-68: cut to the leader's end of a shared epoch, else to the own end of the next lower one."""
    follower = Follower(history=history, end=200, high_watermark=100)
    if history == ((2, 0), (4, 130), (5, 160)):
        log = follower.log()
        log.truncate_to(130)
        for offset in range(130, 160):
            log.append_as_follower((batch_at(offset, epoch=4),))
        log.append_as_follower((batch_at(160, 40, epoch=5),))
    request = follower.next()
    follower.answer_fetch(fetched(diverging=diverging), request=request, session_id=7)
    assert follower.log().log_end_offset == cut
    state = follower.state()
    assert (state.stage, state.fetch_offset) == (FetchStage.FETCHING, cut)
    assert state.last_fetched_epoch == epoch
    following = follower.next()
    assert isinstance(following, FetchRequest)
    assert following.partitions[0].last_fetched_epoch == epoch


def test_everything_is_replaced() -> None:
    """DP-53: replica epochs 0, 2, 4 against the leader's 1, 3, 5: nothing of the old log stays."""
    follower = Follower(history=((0, 0), (2, 1), (4, 2)), end=3)
    for diverging in ((3, 2), (1, 1)):
        follower.answer_fetch(fetched(diverging=diverging))
    assert follower.log().log_end_offset == 1
    follower.answer_fetch(fetched(diverging=(0, 0)))
    assert follower.log().log_end_offset == 0
    follower.answer_fetch(
        fetched(batch_at(0, epoch=1), batch_at(1, epoch=3), batch_at(2, epoch=5))
    )
    assert follower.node.epochs() == [(1, 0), (3, 1), (5, 2)]


# -- out of range -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8", "3.9"])
def test_ahead_of_the_leader(version: str) -> None:
    """DP-57: a follower beyond the leader's end is cut to it; its high watermark follows."""
    follower = Follower(version, history=((5, 0),), end=3, high_watermark=3)
    if version == "1.1":
        follower.answer_epochs((-1, 3))
    follower.answer_fetch(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    request = follower.answer_offset(0)
    assert request.partitions[0].timestamp == LATEST_TIMESTAMP
    assert (follower.log().log_end_offset, follower.log().high_watermark) == (0, 0)
    assert follower.next().partitions[0].fetch_offset == 0


def test_ahead_of_the_leader_without_unclean_election() -> None:
    """0.10 exits rather than cut its log when unclean election is disabled for the topic."""
    follower = Follower(
        "0.10",
        history=((5, 0),),
        end=3,
        high_watermark=3,
        topic={"unclean.leader.election.enable": "false"},
    )
    follower.answer_fetch(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    follower.answer_offset(0)
    assert "unclean election is disabled" in follower.node.halted
    assert not follower.fetcher.is_running


def test_behind_the_leaders_start() -> None:
    """DP-58: a follower below the leader's start is emptied and begins there."""
    follower = Follower(history=((5, 0),), end=3, high_watermark=3)
    follower.answer_fetch(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    follower.answer_offset(20)
    request = follower.answer_offset(10)
    assert request.partitions[0].timestamp == EARLIEST_TIMESTAMP
    log = follower.log()
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (10, 10, 10)
    assert follower.next().partitions[0].fetch_offset == 10


def test_within_the_leaders_log_after_all() -> None:
    """A leader that has the offset again is fetched from where the follower stands."""
    follower = Follower(history=((5, 0),), end=3, high_watermark=3)
    follower.answer_fetch(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    follower.answer_offset(20)
    follower.answer_offset(1)
    assert follower.next().partitions[0].fetch_offset == 3
    assert follower.log().log_start_offset == 0


def test_fenced_while_asking_the_earliest_offset() -> None:
    """DP-59: FENCED while resolving an out-of-range position marks the partition failed."""
    follower = Follower(history=((5, 0),), end=3)
    follower.answer_fetch(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    follower.answer_offset(20)
    follower.answer_offset(-1, ErrorCode.FENCED_LEADER_EPOCH)
    assert TP in follower.node.fetcher_manager.failed_partitions


def test_unknown_epoch_while_asking_the_latest_offset() -> None:
    """DP-60: UNKNOWN_LEADER_EPOCH while asking the latest offset is retried later."""
    follower = Follower(history=((5, 0),), end=3)
    follower.answer_fetch(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    follower.answer_offset(-1, ErrorCode.UNKNOWN_LEADER_EPOCH)
    assert follower.next() is None
    follower.cluster.clock.advance(1000)
    follower.answer_offset(0)
    assert follower.log().log_end_offset == 0


def test_unknown_initial_offset_is_resolved() -> None:
    """A partition added without an offset asks the leader first."""
    follower = Follower(history=((5, 0),), end=3)
    follower.fetcher.remove((TP,))
    follower.fetcher.add(follower.node.manager.partition(TP), 6, -1)
    follower.answer_offset(9)
    follower.answer_offset(0)
    assert follower.next().partitions[0].fetch_offset == 3


# -- sessions -----------------------------------------------------------------------------------


def test_incremental_requests_name_only_changes() -> None:
    """With a session only changed partitions are named; an idle request names none."""
    follower = Follower(history=((5, 0),), end=3, topics=(TP, OTHER))
    first = follower.answer_fetch(fetched(), fetched(tp=OTHER), session_id=7)
    assert (first.session_id, first.session_epoch, len(first.partitions)) == (0, 0, 2)
    idle = follower.answer_fetch(fetched(batch_at(3)), session_id=7)
    assert (idle.session_id, idle.session_epoch, idle.partitions) == (7, 1, ())
    changed = follower.next()
    assert [(p.topic_partition, p.fetch_offset) for p in changed.partitions] == [(TP, 4)]
    assert changed.session_epoch == 2


def test_delayed_and_removed_partitions_are_forgotten() -> None:
    """A partition that must not be fetched now is forgotten, and named again when it may."""
    follower = Follower(history=((5, 0),), end=3, topics=(TP, OTHER))
    follower.answer_fetch(fetched(), fetched(tp=OTHER), session_id=7)
    follower.answer_fetch(fetched(error=ErrorCode.NOT_LEADER_OR_FOLLOWER), session_id=7)
    request = follower.answer_fetch(session_id=7)
    assert (request.forgotten, request.partitions) == ((TP,), ())
    follower.cluster.clock.advance(1000)
    request = follower.answer_fetch(session_id=7)
    assert [p.topic_partition for p in request.partitions] == [TP]
    assert request.forgotten == ()
    follower.node.fetcher_manager.remove_fetchers([OTHER])
    assert follower.next().forgotten == (OTHER,)


@pytest.mark.parametrize(
    ("error", "session_id"),
    [(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7)],
)
def test_lost_session_starts_anew(error: ErrorCode, session_id: int) -> None:
    """After a session error the next request is a full one, at once."""
    follower = Follower(history=((5, 0),), end=3)
    follower.answer_fetch(fetched(), session_id=7)
    follower.answer_fetch(error=error)
    request = follower.next()
    assert (request.session_id, request.session_epoch) == (session_id, 0)
    assert len(request.partitions) == 1


def test_unadmitted_session_stays_full() -> None:
    """Id 0 in the answer: every request stays a full one."""
    follower = Follower(history=((5, 0),), end=3)
    for _ in range(2):
        request = follower.answer_fetch(fetched(), session_id=0)
        assert (request.session_epoch, len(request.partitions)) == (0, 1)


def test_no_sessions_in_old_releases() -> None:
    """0.10 sends sessionless requests."""
    request = Follower("0.10").next()
    assert (request.session_id, request.session_epoch) == (0, -1)


def test_retention_of_the_follower_is_told() -> None:
    """A log start raised by the follower's own retention goes into the next request."""
    follower = Follower(history=((5, 0),), end=3, high_watermark=3)
    follower.answer_fetch(fetched(high_watermark=3), session_id=7)
    follower.log().maybe_increment_log_start_offset(2)
    follower.node.fetcher_manager.log_start_changed(TP)
    assert [p.log_start_offset for p in follower.next().partitions] == [2]


# -- the manager --------------------------------------------------------------------------------


def test_java_hash() -> None:
    """Java's String.hashCode, negative values included."""
    assert java_string_hash("") == 0
    assert java_string_hash("hello") == 99162322
    assert java_string_hash("orders-with-a-long-name") < 2**31
    assert java_string_hash("polygenelubricants") == -(2**31)


def test_fetcher_assignment() -> None:
    """abs(31 * hash(topic) + partition) % fetchers, in 32 bits."""
    signed = 31 * 99162322 + 3 - 2**32
    assert signed < 0
    assert fetcher_id_for(TopicPartition("hello", 3), 4) == -signed % 4
    assert {fetcher_id_for(TopicPartition("t", n), 3) for n in range(9)} == {0, 1, 2}


def test_idle_fetchers_are_stopped() -> None:
    """A fetcher without partitions is stopped at the end of the LeaderAndIsr."""
    follower = Follower()
    fetcher = follower.fetcher
    follower.cluster.leader_and_isr(0, leader=0, leader_epoch=6)
    assert not fetcher.is_running
    assert follower.node.fetchers == []


def test_several_fetchers_per_leader() -> None:
    """num.replica.fetchers spreads the partitions over fetchers."""
    topics = tuple(TopicPartition("t", n) for n in range(4))
    follower = Follower(topics=topics, config={"num.replica.fetchers": 2})
    assert [len(f) for f in follower.node.fetchers] == [2, 2]


def test_wake_on_add() -> None:
    """Adding a partition wakes the loop."""
    follower = Follower()
    woken = []
    follower.fetcher.on_wake = lambda: woken.append(1)
    follower.cluster.leader_and_isr(0, leader_epoch=6)
    assert woken
