"""The follower's fetcher: finding and truncating what diverges from the leader's log
(docs/kafka/replica-fetchers.md)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.data import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    FetchRequest,
    OffsetForLeaderEpochPartitionResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from fakekafka.protocol.errors import ErrorCode, InvariantError
from fakekafka.replication.follower.fetch_state import FetchStage
from fakekafka.replication.log.follower_append import append_as_follower
from fakekafka.tests.support.follower import LONG, OTHER, Follower, batch_at, fetched
from fakekafka.tests.support.present import present
from fakekafka.tests.support.replica_cluster import TP

# -- truncation by epoch -------------------------------------------------------------------------


def truncating(**more: Any) -> Follower:
    """A follower with the truncation protocol of 2.1 to 2.6: several rounds, with fencing."""
    return Follower("2.8", flags={"truncation": "leader_epoch"}, **more)


@pytest.mark.parametrize("answer", [156, 172])
def test_truncates_to_the_leaders_end(answer: int) -> None:
    """DP-65: with LEO 200 in the same epoch the log is truncated to the end that the leader
    answers."""
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
    """DP-67: answer (4, 155) with own (3, 120) truncates to 120, asks for epoch 3, then truncates
    to 101."""
    follower = truncating(history=((3, 0), (5, 120)), end=200, high_watermark=10)
    request = follower.next_epochs()
    assert request.partitions[0].leader_epoch == 5
    follower.answer_epochs((4, 155), request=request)
    assert follower.log().log_end_offset == 120
    assert follower.state().stage is FetchStage.TRUNCATING
    request = follower.next_epochs()
    assert request.partitions[0].leader_epoch == 3
    follower.answer_epochs((3, 101), request=request)
    assert follower.state().stage is FetchStage.FETCHING


def test_answer_without_an_epoch() -> None:
    """DP-69: the offset in the answer of a leader before 2.0, which has no epoch, is used
    directly."""
    follower = truncating(history=((3, 0), (5, 120)), end=200, high_watermark=10)
    follower.answer_epochs((-1, 120))
    assert follower.log().log_end_offset == 120
    assert follower.state().stage is FetchStage.FETCHING


def test_undefined_answer_falls_back_to_the_high_watermark() -> None:
    """DP-70, DP-54: without an answer the log is truncated to the initial offset, the high
    watermark."""
    follower = truncating(history=((3, 0), (5, 120)), end=200, high_watermark=120)
    follower.answer_epochs((-1, -1))
    assert follower.log().log_end_offset == 120


@pytest.mark.parametrize("version", ["1.1", "2.8"])
def test_no_epoch_at_the_follower(version: str) -> None:
    """DP-54: without any epoch of its own the log is truncated to the high watermark, then
    fetched."""
    follower = Follower(version)
    assert follower.state().stage is FetchStage.TRUNCATING
    assert isinstance(follower.next(), FetchRequest)
    assert follower.state().stage is FetchStage.FETCHING


def test_an_epoch_request_that_failed_is_sent_again() -> None:
    """DP-71: the log is not truncated while the epoch request fails."""
    follower = truncating(**LONG)
    for _ in range(3):
        follower.answer_epochs((-1, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER))
        assert follower.next() is None
        follower.cluster.clock.advance(1000)
    follower.fetcher.on_failure(follower.next_epochs())
    follower.cluster.clock.advance(1000)
    assert isinstance(follower.next(), OffsetForLeaderEpochRequest)
    assert follower.log().log_end_offset == 200


def test_an_epoch_unknown_to_the_leader_is_requested_again() -> None:
    """DP-52: on UNKNOWN_LEADER_EPOCH the partition keeps truncating and asks again after the
    back-off."""
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
    """DP-63: an answer for a partition that was not requested is an error, and nothing is
    truncated."""
    follower = truncating(**LONG)
    request = follower.next_epochs()
    answers = tuple(
        OffsetForLeaderEpochPartitionResponse(tp, ErrorCode.NONE, 5, 100) for tp in (TP, OTHER)
    )
    with pytest.raises(InvariantError):
        follower.fetcher.on_response(request, OffsetForLeaderEpochResponse(answers))
    assert follower.log().log_end_offset == 200


# -- truncation on fetch -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "diverging", "cut", "epoch"),
    [
        (((2, 0), (4, 130), (5, 160)), (4, 140), 140, 4),
        (((2, 0), (4, 129)), (3, 130), 129, 2),
        (((1, 0), (4, 119)), (2, 120), 119, 1),
        (((2, 0), (4, 130)), (2, 150), 130, 2),
    ],
)
def test_diverging_epochs(
    history: tuple[tuple[int, int], ...], diverging: tuple[int, int], cut: int, epoch: int
) -> None:
    """DP-68: the log is truncated to the leader's end of a shared epoch, else to its own end of the
    next lower one.

    A shared epoch that ends earlier in this log is truncated to this log's end of it.
    """
    follower = Follower(history=history, end=200, high_watermark=100)
    if history == ((2, 0), (4, 130), (5, 160)):
        log = follower.log()
        log.truncate_to(130)
        for offset in range(130, 160):
            append_as_follower(log, (batch_at(offset, epoch=4),))
        append_as_follower(log, (batch_at(160, 40, epoch=5),))
    request = follower.next()
    follower.answer_fetch(fetched(diverging=diverging), request=request, session_id=7)
    assert follower.log().log_end_offset == cut
    state = follower.state()
    assert (state.stage, state.fetch_offset) == (FetchStage.FETCHING, cut)
    assert state.last_fetched_epoch == epoch
    following = follower.next()
    assert isinstance(following, FetchRequest)
    assert following.partitions[0].last_fetched_epoch == epoch


def test_a_log_without_a_common_epoch_is_replaced() -> None:
    """DP-53: with epochs 0, 2, 4 against the leader's 1, 3, 5 the whole log is replaced."""
    follower = Follower(history=((0, 0), (2, 1), (4, 2)), end=3)
    for diverging in ((3, 2), (1, 1)):
        follower.answer_fetch(fetched(diverging=diverging))
    assert follower.log().log_end_offset == 1
    follower.answer_fetch(fetched(diverging=(0, 0)))
    assert follower.log().log_end_offset == 0
    follower.answer_fetch(fetched(batch_at(0, epoch=1), batch_at(1, epoch=3), batch_at(2, epoch=5)))
    assert follower.node.epochs() == [(1, 0), (3, 1), (5, 2)]


# -- out of range --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8", "3.9"])
def test_ahead_of_the_leader(version: str) -> None:
    """DP-57: a follower beyond the leader's end is truncated to it, and its high watermark
    follows."""
    allowed = {"unclean.leader.election.enable": "true"}
    follower = Follower(version, history=((5, 0),), end=3, high_watermark=3, topic=allowed)
    if version == "1.1":
        follower.answer_epochs((-1, 3))
    follower.answer_fetch(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    request = follower.answer_offset(0)
    assert request.partitions[0].timestamp == LATEST_TIMESTAMP
    assert (follower.log().log_end_offset, follower.log().high_watermark) == (0, 0)
    assert follower.next_fetch().partitions[0].fetch_offset == 0


@pytest.mark.parametrize("version", ["0.10", "1.1"])
def test_ahead_of_the_leader_without_unclean_election(version: str) -> None:
    """Up to 2.0.0 a broker exits rather than truncate a log whose topic disables unclean
    election."""
    follower = Follower(
        version,
        history=((5, 0),),
        end=3,
        high_watermark=3,
        topic={"unclean.leader.election.enable": "false"},
    )
    if version == "1.1":
        follower.answer_epochs((-1, 3))
    follower.answer_fetch(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    follower.answer_offset(0)
    assert "unclean election is disabled" in present(follower.node.halted)
    assert not follower.fetcher.is_running


def test_behind_the_leaders_start() -> None:
    """DP-58: a follower below the leader's log start is emptied and begins there."""
    follower = Follower(history=((5, 0),), end=3, high_watermark=3)
    follower.answer_fetch(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    follower.answer_offset(20)
    request = follower.answer_offset(10)
    assert request.partitions[0].timestamp == EARLIEST_TIMESTAMP
    log = follower.log()
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (10, 10, 10)
    assert follower.next_fetch().partitions[0].fetch_offset == 10


@pytest.mark.parametrize("leader_start", [1, 3])
def test_within_the_leaders_log_after_all(leader_start: int) -> None:
    """A follower fetches on from its position if the leader's log contains that offset again, even
    as its log start."""
    follower = Follower(history=((5, 0),), end=3, high_watermark=3)
    follower.answer_fetch(fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    follower.answer_offset(20)
    follower.answer_offset(leader_start)
    assert follower.next_fetch().partitions[0].fetch_offset == 3
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
    """A fetcher asks the leader for the initial offset of a partition that was added without
    one."""
    follower = Follower(history=((5, 0),), end=3)
    follower.fetcher.remove((TP,))
    follower.fetcher.add(follower.node.partition(), 6, -1)
    follower.answer_offset(9)
    follower.answer_offset(0)
    assert follower.next_fetch().partitions[0].fetch_offset == 3
