"""The follower's fetcher: copying, errors, sessions, and the assignment of partitions to fetchers
(docs/kafka/replica-fetchers.md)."""

from __future__ import annotations

import pytest
from fakekafka.protocol.data import FetchRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.java_hashing import java_string_hash
from fakekafka.protocol.records.batch import RecordBatch
from fakekafka.protocol.values import LeaderAndIsr, TopicPartition
from fakekafka.replication.follower.fetch_state import FetchStage
from fakekafka.replication.follower.manager import fetcher_id_for
from fakekafka.tests.support.follower import LONG, OTHER, Follower, batch_at, fetched
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster

# -- plain fetching ------------------------------------------------------------------------------


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
    """The leader's log start raises the follower's, and the next fetch reports it."""
    follower = Follower(history=((5, 0),), end=3, high_watermark=3)
    follower.answer_fetch(fetched(high_watermark=3, log_start=2), session_id=7)
    request = follower.next_fetch()
    assert [p.log_start_offset for p in request.partitions] == [2]
    assert follower.log().log_start_offset == 2


def test_request_fields() -> None:
    """A fetch carries the replica, its epochs and the configured limits."""
    follower = Follower(history=((5, 0),), end=3)
    request = follower.next_fetch()
    assert (request.replica_id, request.max_wait_ms, request.min_bytes) == (0, 500, 1)
    assert request.max_bytes == 10485760
    entry = request.partitions[0]
    assert (entry.fetch_offset, entry.max_bytes) == (3, 1048576)
    assert (entry.current_leader_epoch, entry.last_fetched_epoch) == (5, 5)


def test_old_requests_carry_no_epochs() -> None:
    """Before 2.1 a fetch carries no leader epoch, before 2.8 no last fetched epoch."""
    follower = Follower("1.1", history=((5, 0),), end=3)
    follower.answer_epochs((-1, 3))
    entry = follower.next_fetch().partitions[0]
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


def test_an_answer_of_the_former_epoch_counts_at_the_same_offset() -> None:
    """DP-62: an answer to a fetch of the former epoch counts if the offset is the same, so that a
    new epoch of the same leader wastes no fetch."""
    follower = Follower()
    follower.next()
    follower.answer_fetch(fetched(batch_at(0)))
    request = follower.next()
    follower.cluster.leader_and_isr(0, leader_epoch=6)
    follower.answer_fetch(fetched(batch_at(1, epoch=5)), request=request)
    assert follower.log().log_end_offset == 2
    entry = follower.next_fetch().partitions[0]
    assert (entry.current_leader_epoch, entry.fetch_offset) == (6, 2)


def test_a_fetch_of_the_former_epoch_that_is_fenced_waits_and_asks_again() -> None:
    """DP-62: a waiting fetch that the leader refuses as it learnt of the new epoch first does not
    fail the partition: the follower, in the new epoch by then, fetches again after the back-off."""
    follower = Follower(history=((5, 0),), end=1)
    request = follower.next()
    follower.cluster.leader_and_isr(0, leader_epoch=6)
    follower.answer_fetch(fetched(error=ErrorCode.FENCED_LEADER_EPOCH), request=request)
    assert follower.node.fetcher_manager.failed_partitions == {}
    assert follower.next() is None
    assert follower.fetcher.delay_ms() == 1000
    follower.node.host.advance(1000)
    assert follower.next_fetch().partitions[0].current_leader_epoch == 6


def test_an_answer_of_the_former_epoch_is_ignored_where_truncation_comes_first() -> None:
    """DP-62: until 2.7 a follower ignores the answer and asks where its epoch ends before it
    fetches again."""
    follower = Follower("2.4", history=((5, 0),), end=1)
    follower.answer_epochs((5, 1))
    request = follower.next()
    follower.cluster.leader_and_isr(0, leader_epoch=6)
    follower.answer_fetch(fetched(batch_at(1, epoch=5)), request=request)
    assert follower.log().log_end_offset == 1
    assert [one.leader_epoch for one in follower.next_epochs().partitions] == [5]


def test_only_the_answer_that_was_under_way_is_one_of_the_former_epoch() -> None:
    """DP-51, DP-62: a fetch of the new epoch that is fenced fails the partition."""
    follower = Follower(history=((5, 0),), end=1)
    follower.next()
    follower.cluster.leader_and_isr(0, leader_epoch=6)
    follower.answer_fetch(fetched(batch_at(1, epoch=5)), session_id=7)
    follower.answer_fetch(fetched(error=ErrorCode.FENCED_LEADER_EPOCH), session_id=7)
    assert list(follower.node.fetcher_manager.failed_partitions) == [TP]


def test_adding_with_the_same_epoch_changes_nothing() -> None:
    """DP-56: re-adding with an equal epoch does not truncate again."""
    follower = Follower("1.1", **LONG)
    follower.answer_epochs((-1, 200))
    state = follower.state()
    follower.fetcher.add(follower.node.partition(), 5, 120)
    assert follower.state() is state
    assert state.stage is FetchStage.FETCHING


# -- errors while fetching -----------------------------------------------------------------------


def test_corrupt_batch_is_fetched_again() -> None:
    """DP-61: corrupt data backs off, then the same offset succeeds."""
    follower = Follower()
    follower.node.fetcher_manager.callbacks.verify_checksums = True
    broken = bytearray(batch_at(0).data)
    broken[-1] ^= 1
    follower.next()
    follower.answer_fetch(fetched(RecordBatch.from_bytes(bytes(broken))))
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
    assert list(follower.fetcher.partitions) == []
    assert TP in follower.node.fetcher_manager.failed_partitions
    follower.cluster.leader_and_isr(0, leader_epoch=6)
    assert list(follower.fetcher.partitions) == [TP]
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
    """Other errors keep the partition, which is fetched again after the back-off."""
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


@pytest.mark.parametrize("version", ["0.10", "1.1"])
def test_one_bad_partition_stopped_the_thread(version: str) -> None:
    """Before 2.3 (KIP-461) an exception while appending ends the whole fetcher thread."""
    follower = Follower(version, end=3, history=((5, 0),), high_watermark=3, topics=(TP, OTHER))
    if version == "1.1":
        follower.answer_epochs((-1, 3), (-1, 3))
    follower.next()
    follower.answer_fetch(fetched(batch_at(1)), fetched(batch_at(3), tp=OTHER))
    assert not follower.fetcher.is_running
    assert follower.next() is None
    assert follower.log(OTHER).log_end_offset == 3


def test_lost_request_delays_everything() -> None:
    """An I/O failure has all partitions wait for the back-off."""
    follower = Follower()
    follower.fetcher.on_failure(follower.next_fetch())
    assert follower.next() is None
    assert follower.fetcher.delay_ms() == 1000
    follower.cluster.clock.advance(1000)
    assert follower.next() is not None


def test_unexpected_position_fails_the_partition() -> None:
    """Data for an offset other than the log end marks the partition failed."""
    follower = Follower(history=((5, 0),), end=3)
    request = follower.next()
    follower.log().truncate_to(0)
    follower.answer_fetch(fetched(batch_at(3)), request=request)
    assert TP in follower.node.fetcher_manager.failed_partitions


# -- sessions ------------------------------------------------------------------------------------


def test_incremental_requests_name_only_changes() -> None:
    """With a session only changed partitions are named; an idle request names none."""
    follower = Follower(history=((5, 0),), end=3, topics=(TP, OTHER))
    first = follower.answer_fetch(fetched(), fetched(tp=OTHER), session_id=7)
    assert (first.session_id, first.session_epoch, len(first.partitions)) == (0, 0, 2)
    idle = follower.answer_fetch(fetched(batch_at(3)), session_id=7)
    assert (idle.session_id, idle.session_epoch, idle.partitions) == (7, 1, ())
    changed = follower.next_fetch()
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
    assert follower.next_fetch().forgotten == (OTHER,)


@pytest.mark.parametrize(
    ("error", "session_id"),
    [(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7)],
)
def test_a_session_error_is_followed_by_a_full_fetch(error: ErrorCode, session_id: int) -> None:
    """After a session error a full request is sent at once."""
    follower = Follower(history=((5, 0),), end=3)
    follower.answer_fetch(fetched(), session_id=7)
    follower.answer_fetch(error=error)
    request = follower.next_fetch()
    assert (request.session_id, request.session_epoch) == (session_id, 0)
    assert len(request.partitions) == 1


def test_a_request_without_an_answer_ends_the_session() -> None:
    """After a lost answer, which the leader may or may not have counted, the next request is sent
    after the back-off, is full, and names the session, so that the leader closes it."""
    follower = Follower(history=((5, 0),), end=3)
    follower.answer_fetch(fetched(), session_id=7)
    follower.fetcher.on_failure(follower.next_fetch())
    follower.cluster.clock.advance(1000)
    request = follower.next_fetch()
    assert (request.session_id, request.session_epoch, len(request.partitions)) == (7, 0, 1)


def test_unadmitted_session_stays_full() -> None:
    """Session id 0 in the answer keeps every request a full one."""
    follower = Follower(history=((5, 0),), end=3)
    for _ in range(2):
        request = follower.answer_fetch(fetched(), session_id=0)
        assert (request.session_epoch, len(request.partitions)) == (0, 1)


def test_no_sessions_in_old_releases() -> None:
    """0.10 sends sessionless requests."""
    request = Follower("0.10").next_fetch()
    assert (request.session_id, request.session_epoch) == (0, -1)


def test_retention_is_reported_in_the_next_fetch() -> None:
    """A log start raised by the follower's own retention is in the next request."""
    follower = Follower(history=((5, 0),), end=3, high_watermark=3)
    follower.answer_fetch(fetched(high_watermark=3), session_id=7)
    follower.log().maybe_increment_log_start_offset(2)
    follower.node.fetcher_manager.log_start_changed(TP)
    assert [p.log_start_offset for p in follower.next_fetch().partitions] == [2]


# -- the manager ---------------------------------------------------------------------------------


def test_java_hash() -> None:
    """The hash equals Java's String.hashCode, negative values included."""
    assert java_string_hash("") == 0
    assert java_string_hash("hello") == 99162322
    assert java_string_hash("orders-with-a-long-name") < 2**31
    assert java_string_hash("polygenelubricants") == -(2**31)


def test_fetcher_assignment() -> None:
    """The fetcher's number is abs(31 * hash(topic) + partition) % fetchers, in 32 bits."""
    signed = 31 * 99162322 + 3 - 2**32
    assert signed < 0
    assert fetcher_id_for(TopicPartition("hello", 3), 4) == -signed % 4
    assert {fetcher_id_for(TopicPartition("t", n), 3) for n in range(9)} == {0, 1, 2}


def test_idle_fetchers_are_stopped() -> None:
    """A fetcher without partitions is stopped at the end of the LeaderAndIsr request."""
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


def test_a_disk_that_fails_under_a_fetch_takes_its_replica_offline() -> None:
    """A fetcher reports a disk error to the broker, which takes the directory offline
    (``AbstractFetcherThread.processFetchRequest``, KafkaStorageException)."""
    follower = Follower()
    follower.next()
    follower.node.disk.fail()
    follower.answer_fetch(fetched(batch_at(0)))
    assert TP in follower.node.manager.hosted.offline


def test_a_broker_that_shuts_down_begins_no_fetch() -> None:
    """A broker that shuts down becomes a follower but does not fetch
    (``ReplicaManager.makeFollowers``)."""
    cluster = ReplicaCluster("2.8", 2)
    cluster.replicas[TP] = (0, 1)
    cluster.state[TP] = LeaderAndIsr(1, 0, (1,), 0)
    cluster.update_metadata()
    cluster[0].manager.roles.is_shutting_down = True
    cluster.leader_and_isr(0, TP)
    assert not any(len(fetcher) for fetcher in cluster[0].fetchers)
