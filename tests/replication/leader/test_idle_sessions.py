"""Idle partitions in a follower's session cost nothing and miss nothing
(docs/kafka/fetch-sessions.md)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.data import (
    INTERNAL_CONTEXT,
    DeleteRecordsRequest,
    FetchPartition,
    FetchRequest,
    ProducePartition,
    ProduceRequest,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import LeaderAndIsr, TopicPartition
from fakekafka.replication.partition.isr_proposals import PendingIsr
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, encode

TPS = tuple(TopicPartition("t", n) for n in range(5))


class Session:
    """The fetch session of broker 1 with leader 0 over five partitions."""

    def __init__(self, version: str = "2.8", **more: Any) -> None:
        self.cluster = ReplicaCluster(version, 2, **more)
        for tp in TPS:
            self.cluster.create((0, 1), tp)
        self.epoch = 0
        self.session_id = 0
        self.offsets = dict.fromkeys(TPS, 0)
        response = self.fetch(*TPS, max_wait_ms=0)[0]
        self.session_id = response.session_id
        assert len(response.partitions) == 5
        self.fetch(max_wait_ms=0)
        assert self.leader_session.active == {}

    @property
    def manager(self) -> Any:
        return self.cluster[0].manager

    @property
    def leader_session(self) -> Any:
        return self.manager.fetch.sessions.get(self.session_id)

    def fetch(self, *changed: Any, max_wait_ms: int = 500, log_start: int = 0) -> Any:
        answers: list[Any] = []
        wanted = tuple(FetchPartition(tp, self.offsets[tp], log_start) for tp in changed)
        self.manager.fetch.fetch_messages(
            FetchRequest(
                1,
                max_wait_ms,
                1,
                1 << 20,
                wanted,
                session_id=self.session_id,
                session_epoch=self.epoch,
            ),
            INTERNAL_CONTEXT,
            answers.append,
        )
        self.epoch += 1
        return answers

    def replica(self, tp: TopicPartition = TP) -> Any:
        return self.manager.hosted.partition(tp).replica(1)


def names(response: Any) -> Any:
    return [p.topic_partition.partition for p in response.partitions]


def test_append_wakes_one_partition() -> None:
    """A record in one idle partition answers the waiting fetch with that partition alone."""
    session = Session()
    answers = session.fetch()
    assert answers == []
    assert session.manager.fetch.delayed_count == 1
    session.cluster.produce(0, "a", tp=TPS[3])
    assert names(answers[0]) == [3]
    assert [entry.topic_partition for entry in session.leader_session.active.values()] == [TPS[3]]


def test_a_request_to_two_partitions_answers_with_both() -> None:
    """A waiting fetch is tried when all partitions of the produce request are appended
    (``ReplicaManager.appendRecords``)."""
    session = Session()
    answers = session.fetch()
    entries = tuple(ProducePartition(TPS[n], encode("a")) for n in (3, 1))
    session.manager.produce.append_records(
        ProduceRequest(1, 1000, entries), INTERNAL_CONTEXT, lambda _response: None
    )
    assert sorted(names(answers[0])) == [1, 3]


def test_a_moved_high_watermark_is_sent_once() -> None:
    """A moved high watermark is sent with the next answer, after which the partition is idle
    again."""
    session = Session()
    session.cluster.produce(0, "a", tp=TPS[2])
    session.fetch(max_wait_ms=0)
    session.offsets[TPS[2]] = 1
    answers = session.fetch(TPS[2])
    session.cluster.clock.advance(500)
    assert [(p.topic_partition, p.high_watermark) for p in answers[0].partitions] == [(TPS[2], 1)]
    assert session.fetch(max_wait_ms=0)[0].partitions == ()
    assert session.leader_session.active == {}


def test_idle_follower_stays_caught_up() -> None:
    """Each fetch of a session marks the follower as caught up in its idle partitions."""
    session = Session()
    session.cluster.clock.advance(7000)
    session.fetch(max_wait_ms=0)
    fetched_ms = session.cluster.clock.now_ms
    session.cluster.clock.advance(50)
    assert session.replica().last_caught_up_time_ms == fetched_ms
    session.cluster.produce(0, "a")
    assert session.replica().last_caught_up_time_ms == fetched_ms
    assert session.replica().last_fetch_leader_log_end_offset == 0


def test_a_follower_that_is_woken_was_caught_up_at_its_last_fetch() -> None:
    """The lag of a follower that falls silent counts from its last fetch, not from when the
    partition became idle."""
    session = Session()
    session.cluster.clock.advance(7000)
    session.fetch(max_wait_ms=0)
    fetched_ms = session.cluster.clock.now_ms
    session.cluster.produce(0, "a")
    session.cluster.clock.advance(1)
    assert session.replica().last_caught_up_time_ms == fetched_ms
    assert session.replica().last_fetch_time_ms == fetched_ms


def test_a_replaced_session_does_not_keep_its_follower_caught_up() -> None:
    """A session that its follower has replaced no longer says that the follower is caught up."""
    session = Session()
    left = session.leader_session
    session.cluster.clock.advance(7000)
    session.session_id = session.epoch = 0
    session.fetch(*TPS, max_wait_ms=0)
    fetched_ms = session.cluster.clock.now_ms
    left.dissolve()
    replica = session.replica()
    assert (replica.last_caught_up_time_ms, replica.last_fetch_time_ms) == (fetched_ms,) * 2


def test_idle_follower_is_not_shrunk_by_time_alone() -> None:
    """In 1.1, where only time counts, a follower that keeps fetching stays in the ISR."""
    session = Session("1.1")
    for _ in range(40):
        session.cluster.clock.advance(500)
        session.fetch(max_wait_ms=0)
    assert session.manager.hosted.partition(TP).isr == (0, 1)
    session.cluster.clock.advance(15001)
    assert session.manager.hosted.partition(TP).isr == (0,)


def test_a_follower_outside_the_isr_is_checked_at_each_fetch() -> None:
    """Each fetch checks a follower outside the ISR, which may join as soon as no other change is
    under way."""
    session = Session()
    partition = session.manager.hosted.partition(TP)
    partition.isr = partition.maximal_isr = (0,)
    partition.pending_isr = PendingIsr(LeaderAndIsr(0, 0, (0,), 0), is_expansion=False)
    partition.wake_fetchers()
    for _ in range(2):
        session.fetch(max_wait_ms=0)
        assert [cached.topic_partition for cached in session.leader_session.active.values()] == [TP]
    partition.pending_isr = None
    session.fetch(max_wait_ms=0)
    assert partition.maximal_isr == (0, 1)


def test_a_raised_log_start_is_sent() -> None:
    """A log start raised by DeleteRecords wakes the partition and is sent."""
    session = Session()
    session.cluster.produce(0, "a")
    session.fetch(max_wait_ms=0)
    session.offsets[TP] = 1
    session.fetch(TP, max_wait_ms=0)
    session.fetch(max_wait_ms=0)
    session.fetch(max_wait_ms=0)
    assert session.leader_session.active == {}
    deleted: list[Any] = []
    session.manager.offsets.delete_records(
        DeleteRecordsRequest(1000, ((TP, 1),)), INTERNAL_CONTEXT, deleted.append
    )
    (response,) = session.fetch(max_wait_ms=0)
    assert [p.log_start_offset for p in response.partitions] == [1]
    session.fetch(TP, max_wait_ms=0, log_start=1)
    assert deleted[0].partitions == ((TP, ErrorCode.NONE, 1),)


def with_a_record_copied(session: Session, tp: TopicPartition) -> None:
    """Copy a record of a partition, after which all partitions are idle again."""
    session.cluster.produce(0, "a", tp=tp)
    session.offsets[tp] = 1
    session.fetch(tp, max_wait_ms=0)
    session.fetch(max_wait_ms=0)
    session.fetch(max_wait_ms=0)
    assert session.leader_session.active == {}


def raise_log_start(session: Session, tp: TopicPartition) -> None:
    session.manager.offsets.delete_records(
        DeleteRecordsRequest(1000, ((tp, 1),)), INTERNAL_CONTEXT, lambda _response: None
    )


def test_a_waiting_fetch_reports_the_log_start_at_its_timeout() -> None:
    """A fetch reports a raised log start at its timeout, even if each read is thorough, as under a
    throttle."""
    session = Session()
    with_a_record_copied(session, TPS[2])
    session.manager.quotas.leader.throttle("other", None)
    raise_log_start(session, TPS[2])
    answers = session.fetch()
    session.cluster.clock.advance(500)
    ((told,),) = [answer.partitions for answer in answers]
    assert (told.topic_partition, told.log_start_offset) == (TPS[2], 1)


def test_answers_within_a_session_count_for_the_throttle() -> None:
    """Answers within a session count for the throttle, whether the fetch had to wait or not."""
    session = Session()
    quota = session.manager.quotas.leader
    quota.throttle("t", None)
    before = quota.per_second
    session.cluster.produce(0, "a", tp=TPS[3])
    assert names(session.fetch(max_wait_ms=0)[0]) == [3]
    at_once = quota.per_second
    assert at_once > before
    session.offsets[TPS[3]] = 1
    answers = session.fetch(TPS[3])
    session.cluster.produce(0, "b", tp=TPS[2])
    assert 2 in names(answers[0])
    assert quota.per_second > at_once


def test_the_timer_of_an_answered_fetch_has_no_effect() -> None:
    """The timer of an answered fetch has no effect: later news waits for the next fetch."""
    session = Session()
    with_a_record_copied(session, TPS[2])
    answers = session.fetch()
    session.cluster.produce(0, "b", tp=TPS[3])
    assert names(answers[0]) == [3]
    raise_log_start(session, TPS[2])
    session.cluster.clock.advance(600)
    session.offsets[TPS[3]] = 1
    (response,) = session.fetch(TPS[3], max_wait_ms=0)
    assert (TPS[2], 1) in [(p.topic_partition, p.log_start_offset) for p in response.partitions]


@pytest.mark.parametrize("leader", [0, 1])
def test_role_changes_wake(leader: int) -> None:
    """An election answers the waiting session if its epoch or leader is wrong now; otherwise the
    next record does."""
    session = Session()
    for tp in TPS:
        session.offsets[tp] = 0
    session.fetch(*TPS, max_wait_ms=0)
    answers = session.fetch()
    session.cluster.elect(leader, tp=TPS[1])
    if leader == 1:
        assert names(answers[0]) == [1]
        assert answers[0].partitions[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        assert answers == [], "no epoch was given, and it still leads"
        active = session.leader_session.active.values()
        assert [entry.topic_partition for entry in active] == [TPS[1]]
        session.cluster.produce(0, "a", tp=TPS[1])
        assert names(answers[0]) == [1]


def test_deletion_wakes() -> None:
    """A deleted partition answers the waiting session with its error."""
    session = Session()
    answers = session.fetch()
    session.cluster.stop_replica(0, delete=True, tp=TPS[4])
    assert names(answers[0]) == [4]
    assert answers[0].partitions[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_served_in_the_order_of_the_session() -> None:
    """Woken partitions are answered in session order; those answered go last."""
    session = Session()
    for n in (4, 0, 2):
        session.cluster.produce(0, "a", tp=TPS[n])
    assert names(session.fetch(max_wait_ms=0)[0]) == [0, 2, 4]
    session.cluster.produce(0, "b", tp=TPS[3])
    assert names(session.fetch(max_wait_ms=0)[0]) == [3, 0, 2, 4]


def test_changes_of_a_forgotten_partition_are_not_sent() -> None:
    """Changes of a forgotten partition are not sent, neither earlier nor later ones."""
    session = Session()
    session.cluster.produce(0, "a", tp=TPS[3])
    session.leader_session.update((), (TPS[3], TPS[2]))
    answers = session.fetch()
    for n in (3, 2):
        session.cluster.produce(0, "b", tp=TPS[n])
    assert answers == []
    session.cluster.produce(0, "c", tp=TPS[1])
    assert names(answers[0]) == [1]


def test_forgotten_and_closed_sessions_let_go() -> None:
    """A partition that was forgotten, or whose session was replaced, is no longer watched."""
    session = Session()
    assert len(session.manager.hosted.partition(TP).fetch_entries) == 1
    session.leader_session.update((), (TP,))
    assert session.manager.hosted.partition(TP).fetch_entries == []
    session.manager.fetch.sessions.remove(session.session_id)
    assert all(not session.manager.hosted.partition(tp).fetch_entries for tp in TPS)


def test_idle_fetch_reads_nothing() -> None:
    """An idle fetch examines no partition, however many the session has."""
    session = Session()
    looked: list[Any] = []
    manager = session.manager
    watched = _Watched(manager.hosted.by_name, looked)
    manager.followers._by_name = manager.fetch._by_name = watched
    manager.followers.reader.by_name = watched
    answers = session.fetch()
    session.cluster.clock.advance(500)
    assert answers[0].partitions == ()
    assert looked == []


class _Watched(dict[Any, Any]):
    def __init__(self, content: Any, looked: Any) -> None:
        super().__init__(content)
        self.looked = looked

    def get(self, key: Any, default: Any = None) -> Any:
        self.looked.append(key)
        return super().get(key, default)
