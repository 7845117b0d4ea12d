"""Quotas of throttled replication (KIP-73): what counts, which replica is throttled, and for how
long."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.data import INTERNAL_CONTEXT, FetchPartition, FetchRequest, FetchResponse
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.release_configs import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
)
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.replication_quotas import ReplicationQuota, ReplicationQuotas
from fakekafka.tests.support.follower import OTHER, Follower, batch_at, fetched
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster


class Clock:
    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms


def quotas(config: dict[str, Any] | None = None, broker_id: int = 1) -> ReplicationQuotas:
    return ReplicationQuotas(broker_id, BrokerConfig(config), Clock().now_ms)


@pytest.mark.parametrize(
    ("text", "throttled"),
    [
        ("*", {0, 1, 2}),
        (" * ", {0, 1, 2}),
        ("", set()),
        (" ", set()),
        ("0:1,1:2,2:1", {0, 2}),
        (" 0:1 , 2:1", {0, 2}),
        ("0:2", set()),
        ("2:11", set()),
    ],
)
def test_a_broker_throttles_only_its_own_replicas(text: str, throttled: set[int]) -> None:
    """A broker heeds only its own entries of the list
    (``TopicConfigHandler.parseThrottledPartitions``)."""
    both = quotas()
    both.topic_changed("t", {LEADER_THROTTLED_REPLICAS: text})
    leader = {p for p in range(3) if both.leader.is_throttled(TopicPartition("t", p))}
    assert leader == throttled
    assert not both.leader.is_throttled(TopicPartition("u", 0))
    assert not both.follower.is_throttled(TopicPartition("t", 0))
    both.topic_changed("t", {FOLLOWER_THROTTLED_REPLICAS: "*"})
    assert not both.leader.topics
    assert both.follower.is_throttled(TopicPartition("t", 0))
    both.forget()
    assert not both.follower.topics


@pytest.mark.parametrize("text", ["0", "0:1,", "a:1", "*,0:1", "0:1:1"])
def test_an_invalid_list_of_throttled_replicas_is_ignored(text: str) -> None:
    """An invalid list of replicas is ignored; it can only come from ZooKeeper or an old
    validator."""
    both = quotas()
    both.topic_changed("t", {LEADER_THROTTLED_REPLICAS: "0:1"})
    with pytest.raises(ValueError, match="not of the form partition:broker"):
        both.topic_changed("t", {LEADER_THROTTLED_REPLICAS: text})
    assert both.leader.is_throttled(TopicPartition("t", 0))


def test_a_quota_is_exceeded_until_its_windows_are_over() -> None:
    """A quota stays exceeded until its windows have passed (``SimpleRate`` over
    ``replication.quota.window.num`` windows)."""
    clock = Clock()
    config = BrokerConfig({LEADER_THROTTLED_RATE: 100, "replication.quota.window.num": 3})
    quota = ReplicationQuota(config, LEADER_THROTTLED_RATE, clock.now_ms)
    assert not quota.is_exceeded
    quota.record(100)
    assert not quota.is_exceeded
    quota.record(101)
    assert quota.is_exceeded
    clock.ms = 2009
    assert quota.is_exceeded
    clock.ms = 2010
    assert not quota.is_exceeded
    quota.record(1000)
    clock.ms = 5009
    assert quota.is_exceeded
    clock.ms = 5010
    assert not quota.is_exceeded


def test_a_leaders_windows_reach_back_to_before_the_throttle() -> None:
    """A leader always counts the bytes around the records of each answer to a follower, so that ten
    seconds' worth may pass at once, and none at a rate of 0. A follower counts records alone."""
    clock = Clock()
    config = BrokerConfig({LEADER_THROTTLED_RATE: 100})
    leader = ReplicationQuotas(1, config, clock.now_ms).leader
    leader.answers_followers = lambda: True
    clock.ms = 60_000
    leader.throttle("t", None)
    leader.record(840)
    assert not leader.is_exceeded
    leader.record(7)
    assert leader.is_exceeded
    none = ReplicationQuotas(1, BrokerConfig({LEADER_THROTTLED_RATE: 0}), clock.now_ms).leader
    none.throttle("t", None)
    assert not none.is_exceeded
    none.release("t")
    none.answers_followers = lambda: True
    none.throttle("t", None)
    assert none.is_exceeded


def test_a_second_throttle_forgets_nothing_of_the_first() -> None:
    """Bytes count until their windows have passed, whichever topic was throttled."""
    clock = Clock()
    config = BrokerConfig({LEADER_THROTTLED_RATE: 10})
    leader = ReplicationQuotas(1, config, clock.now_ms).leader
    leader.answers_followers = lambda: True
    leader.throttle("t", None)
    leader.record(1000)
    leader.release("t")
    clock.ms = 5000
    leader.throttle("u", None)
    assert leader.is_exceeded


def test_the_windows_before_a_throttle_are_filled_once() -> None:
    """Windows before a throttle are filled in once, not again when another topic is throttled."""
    clock = Clock()
    leader = ReplicationQuotas(1, BrokerConfig({LEADER_THROTTLED_RATE: 10}), clock.now_ms).leader
    leader.answers_followers = lambda: True
    clock.ms = 60_000
    leader.throttle("t", None)
    assert leader.per_second > 0
    clock.ms = 120_000
    leader.throttle("u", None)
    assert leader.per_second == 0


def test_an_answer_counts_without_records() -> None:
    """The bytes around the records of an answer count even without records; unthrottled records do
    not."""
    clock = Clock()
    leader = ReplicationQuotas(1, BrokerConfig({LEADER_THROTTLED_RATE: 10}), clock.now_ms).leader
    leader.record_answer(())
    clock.ms = 1000
    assert leader.per_second == 14


def test_a_removed_quota_starts_again_without_history() -> None:
    """A forgotten quota starts anew: no topic throttled, no bytes counted, no windows before it."""
    clock = Clock()
    both = ReplicationQuotas(1, BrokerConfig({LEADER_THROTTLED_RATE: 10}), clock.now_ms)
    both.leader.answers_followers = lambda: True
    both.leader.throttle("t", None)
    both.leader.record(1000)
    clock.ms = 5000
    both.forget()
    assert not both.leader.topics
    assert not both.leader.is_exceeded
    both.leader.throttle("t", None)
    assert both.leader.per_second == 14


# -- followers -----------------------------------------------------------------------------------


def throttled_follower(version: str, **more: Any) -> Follower:
    """A follower outside the ISR that has copied more of ``TP`` than its quota allows."""
    follower = Follower(version, config={FOLLOWER_THROTTLED_RATE: 1}, **more)
    quota(follower).throttle(TP.topic, None)
    return follower


def quota(follower: Follower) -> ReplicationQuota:
    return follower.node.manager.quotas.follower


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8", "3.9"])
def test_a_follower_omits_throttled_partitions_beyond_the_quota(version: str) -> None:
    """A throttled partition is left out of fetches (``shouldFollowerThrottle``) until a back-off
    has passed, or there is another reason to fetch."""
    follower = throttled_follower(version)
    session = 0 if version == "0.10" else 7
    follower.answer_fetch(fetched(batch_at(0, 3), high_watermark=9), session_id=session)
    assert quota(follower).is_exceeded
    if session:
        request = follower.next_fetch()
        assert (request.partitions, request.forgotten) == ((), (TP,))
        follower.answer_fetch(request=request)
    assert follower.next() is None
    assert follower.fetcher.delay_ms() == 1000
    follower.cluster.clock.advance(10_999)
    assert follower.next() is None
    follower.cluster.clock.advance(1)
    request = follower.next_fetch()
    assert [(p.topic_partition, p.fetch_offset) for p in request.partitions] == [(TP, 3)]


def test_a_follower_in_sync_is_never_throttled() -> None:
    """A follower in sync is not throttled, as it would leave the ISR; its bytes count against the
    others."""
    follower = throttled_follower("2.8")
    follower.answer_fetch(fetched(batch_at(0, 3), high_watermark=3), session_id=7)
    assert quota(follower).is_exceeded
    assert [p.fetch_offset for p in follower.next_fetch().partitions] == [3]


def test_other_partitions_are_fetched_all_the_same() -> None:
    """Only the throttled partition is removed from the session, and named again later."""
    follower = throttled_follower("2.8", topics=(TP, OTHER))
    request = follower.next_fetch()
    follower.answer_fetch(fetched(batch_at(0, 3), high_watermark=9), request=request, session_id=7)
    request = follower.next_fetch()
    assert (request.partitions, request.forgotten) == ((), (TP,))
    follower.answer_fetch(request=request, session_id=7)
    request = follower.next_fetch()
    assert (request.partitions, request.forgotten) == ((), ())
    follower.answer_fetch(request=request, session_id=7)
    quota(follower).release(TP.topic)
    assert [p.topic_partition for p in follower.next_fetch().partitions] == [TP]


def test_a_new_session_omits_throttled_partitions() -> None:
    """The full fetch of a new session omits throttled partitions."""
    follower = throttled_follower("2.8", topics=(TP, OTHER))
    request = follower.next_fetch()
    follower.answer_fetch(fetched(batch_at(0, 3), high_watermark=9), request=request, session_id=7)
    request = follower.next_fetch()
    follower.answer_fetch(request=request, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    request = follower.next_fetch()
    assert [p.topic_partition for p in request.partitions] == [OTHER]
    assert request.session_epoch == 0


def test_a_partition_that_is_not_copied_any_more_is_not_withheld_either() -> None:
    """A partition that is removed, or added again under another epoch, is no longer throttled."""
    follower = throttled_follower("2.8", topics=(TP, OTHER))
    request = follower.next_fetch()
    follower.answer_fetch(fetched(batch_at(0, 3), high_watermark=9), request=request, session_id=7)
    follower.answer_fetch(request=follower.next_fetch(), session_id=7)
    follower.fetcher.log_start_changed(TP)
    assert follower.next_fetch().partitions == ()
    follower.fetcher.remove((TP,))
    assert follower.fetcher.delay_ms() == 0
    quota(follower).release(TP.topic)
    assert follower.next_fetch().partitions == ()


# -- leaders -------------------------------------------------------------------------------------


class Leader:
    """Broker 0, which leads what broker 1 fetches and may send twenty bytes a second."""

    def __init__(self, version: str, isr: tuple[int, ...] = (0,)) -> None:
        self.cluster = ReplicaCluster(version, 2, config={LEADER_THROTTLED_RATE: 20})
        self.cluster.create((0, 1), isr=isr)
        self.quota = self.cluster[0].manager.quotas.leader
        self.quota.throttle(TP.topic, None)
        self.cluster.produce(0, "a")
        self.cluster.produce(0, "b")
        self.session = (0, 0 if self.cluster.behaviour.fetch_sessions else -1)

    def fetch(self, offset: int | None, max_wait_ms: int = 500) -> list[FetchResponse]:
        """Send a fetch and return the list for its answer; without an offset the session's
        counts."""
        entries = () if offset is None else (FetchPartition(TP, offset, 0, 1 << 20),)
        request = FetchRequest(1, max_wait_ms, 1, 1 << 20, entries, 0, *self.session)
        answers: list[FetchResponse] = []
        self.cluster[0].manager.fetch.fetch_messages(request, INTERNAL_CONTEXT, answers.append)
        return answers

    def copied(self, answers: list[FetchResponse]) -> list[int]:
        """Return the base offsets of the answer, and advance the session."""
        (answer,) = answers
        if self.cluster.behaviour.fetch_sessions:
            self.session = (answer.session_id, self.session[1] + 1)
        return [batch.base_offset for p in answer.partitions for batch in p.records]


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8", "3.9"])
def test_a_leader_sends_nothing_while_its_quota_is_exceeded(version: str) -> None:
    """While its quota is exceeded the leader sends no records (``shouldLeaderThrottle``): the fetch
    waits whatever is appended, and gets the records once the quota is free."""
    leader = Leader(version)
    assert leader.copied(leader.fetch(0)) == [0, 1]
    assert leader.quota.is_exceeded
    leader.cluster.produce(0, "c")
    answers = leader.fetch(2)
    leader.cluster.produce(0, "d")
    leader.cluster.clock.advance(499)
    assert answers == []
    leader.cluster.clock.advance(1)
    assert leader.copied(answers) == []
    # A fetch that would not wait gets no records either.
    assert leader.copied(leader.fetch(2, max_wait_ms=0)) == []
    answers = leader.fetch(2)
    leader.cluster.clock.advance(500)
    assert leader.copied(answers) == []
    leader.cluster.clock.advance(11_000)
    assert leader.copied(leader.fetch(2)) == [2, 3]


@pytest.mark.parametrize("version", ["1.1", "2.8", "3.9"])
def test_a_member_of_the_isr_is_never_throttled(version: str) -> None:
    """A member of the ISR is answered as soon as a record is appended, and the bytes count."""
    leader = Leader(version, isr=(0, 1))
    assert leader.copied(leader.fetch(0)) == [0, 1]
    for offset in (2, 3):
        answers = leader.fetch(offset)
        assert answers == []
        leader.cluster.produce(0, "c")
        assert leader.copied(answers) == [offset]
    assert leader.quota.is_exceeded
    assert leader.quota.per_second > 20


def test_a_member_of_the_isr_waits_for_the_quota_in_0_10() -> None:
    """KAFKA-6937: existing records do not complete a waiting fetch in 0.10; a new fetch reads
    them."""
    leader = Leader("0.10", isr=(0, 1))
    assert leader.copied(leader.fetch(0)) == [0, 1]
    answers = leader.fetch(2)
    leader.cluster.produce(0, "c")
    assert answers == []
    leader.cluster.clock.advance(500)
    assert leader.copied(answers) == [2]
    leader.cluster.produce(0, "d")
    assert leader.copied(leader.fetch(3)) == [3]


@pytest.mark.parametrize("version", ["0.10", "2.8"])
def test_unthrottled_traffic_does_not_count(version: str) -> None:
    """Neither records of unlisted partitions nor answers to consumers count for the quota."""
    leader = Leader(version)
    leader.quota.throttle(TP.topic, frozenset({1}))
    assert leader.copied(leader.fetch(0)) == [0, 1]
    around = leader.quota.per_second
    assert around < 50
    leader.quota.throttle(TP.topic, None)
    (answer,) = leader.cluster.fetch(0, 0)
    assert [batch.base_offset for batch in answer.records] == [0, 1]
    assert leader.quota.per_second == around


def test_a_throttle_applies_to_a_waiting_fetch() -> None:
    """A throttle also applies to a fetch that already waits; its replica is about to join the
    ISR."""
    leader = Leader("2.8")
    leader.cluster.hold_isr_changes()
    leader.quota.release(TP.topic)
    assert leader.copied(leader.fetch(0)) == [0, 1]
    answers = leader.fetch(2)
    leader.quota.throttle(TP.topic, None)
    leader.quota.record(1000)
    leader.cluster.produce(0, "c")
    assert answers == []
    leader.cluster.clock.advance(500)
    assert leader.copied(answers) == []


def test_a_fetch_gets_records_of_unthrottled_partitions() -> None:
    """Of two partitions in a fetch only the one that is not throttled has records in the answer."""
    leader = Leader("2.8")
    leader.cluster.create((0, 1), OTHER, isr=(0,))
    leader.cluster.produce(0, "x", tp=OTHER)
    leader.quota.record(1000)
    entries = tuple(FetchPartition(tp, 0, 0, 1 << 20) for tp in (TP, OTHER))
    answers: list[FetchResponse] = []
    request = FetchRequest(1, 500, 1, 1 << 20, entries, 0, 0, 0)
    leader.cluster[0].manager.fetch.fetch_messages(request, INTERNAL_CONTEXT, answers.append)
    (answer,) = answers
    assert [len(p.records) for p in answer.partitions] == [0, 1]
