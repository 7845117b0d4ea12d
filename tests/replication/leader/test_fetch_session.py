"""Fetch sessions: their state, refusals and evictions (docs/kafka/fetch-sessions.md,
FetchSessionTest)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from fakekafka.protocol.data import (
    EpochEndOffset,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.fetch_session_epochs import EPOCH_MAX, next_epoch
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.leader.session_cache import FetchSessionCache
from fakekafka.replication.leader.sessions import CachedPartition, FetchSession

A, B, C = (TopicPartition("t", n) for n in range(3))
NOW = 1_600_000_000_000


def cache(slots: int = 10) -> FetchSessionCache:
    return FetchSessionCache(slots, random.Random(1))


def wanted(*names: TopicPartition, offset: int = 0) -> tuple[FetchPartition, ...]:
    return tuple(FetchPartition(name, offset) for name in names)


def answered(*names: TopicPartition, **fields: Any) -> list[FetchPartitionResponse]:
    values = {"high_watermark": 0, "log_start_offset": 0, **fields}
    return [FetchPartitionResponse(name, ErrorCode.NONE, **values) for name in names]


def request(session_id: int, epoch: int, add: Any = (), forget: Any = ()) -> FetchRequest:
    return FetchRequest(
        -1, 0, 1, 1, tuple(add), session_id=session_id, session_epoch=epoch, forgotten=tuple(forget)
    )


def opened(
    sessions: FetchSessionCache, *names: TopicPartition, privileged: bool = False, now: int = NOW
) -> int:
    return sessions.create(privileged, wanted(*names), answered(*names), now)


def test_ids_are_positive_and_unique() -> None:
    """DP-82: session ids are positive and unique."""
    sessions = cache(100)
    ids = [opened(sessions, A) for _ in range(100)]
    assert all(session_id > 0 for session_id in ids)
    assert len(set(ids)) == 100


def test_epoch_after_creation_is_one_and_grows() -> None:
    """DP-82: after the full fetch the next epoch is 1, then 2, each accepted once."""
    sessions = cache()
    session_id = opened(sessions, A)
    assert isinstance(sessions.resolve(request(session_id, 1), NOW), FetchSession)
    assert isinstance(sessions.resolve(request(session_id, 2), NOW), FetchSession)
    assert sessions.resolve(request(session_id, 2), NOW) is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_epoch_wraps_to_one() -> None:
    """The epoch after 2147483647 is 1, never 0."""
    assert next_epoch(EPOCH_MAX) == 1
    assert next_epoch(5) == 6


def test_a_session_epoch_wraps_to_one_after_the_maximum() -> None:
    sessions = cache()
    session = sessions.get(opened(sessions, A))
    assert isinstance(session, FetchSession)
    session.epoch = EPOCH_MAX
    for epoch in (EPOCH_MAX, 1, 2):
        assert sessions.resolve(request(session.session_id, epoch), NOW) is session


def test_a_session_without_partitions_is_closed_by_its_next_request() -> None:
    """A session opened by a full fetch of no partition is closed at the next request, which is
    answered without a session."""
    sessions = cache()
    session_id = opened(sessions)
    assert session_id > 0
    assert sessions.resolve(request(session_id, 1), NOW) is None
    assert sessions.resolve(request(session_id, 1), NOW) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_without_partitions_may_add_partitions() -> None:
    """A session opened without partitions stays if the next request adds some, as it is updated
    before the check."""
    sessions = cache()
    session = sessions.resolve(request(opened(sessions), 1, wanted(A)), NOW)
    assert isinstance(session, FetchSession)
    assert isinstance(session, FetchSession)
    assert list(session.partitions) == [A]


def test_wrong_epoch_leaves_the_session_alone() -> None:
    """DP-82: a wrong epoch is error 71 and the session survives it."""
    sessions = cache()
    session_id = opened(sessions, A)
    refused = sessions.resolve(request(session_id, 7, wanted(B)), NOW)
    assert refused is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    session = sessions.resolve(request(session_id, 1), NOW)
    assert isinstance(session, FetchSession)
    assert list(session.partitions) == [A]


@pytest.mark.parametrize("session_id", [0, 12345])
def test_unknown_session(session_id: int) -> None:
    """DP-82: an id that is not cached, 0 included, is error 70."""
    assert cache().resolve(request(session_id, 3), NOW) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [-1, 0])
def test_full_fetches_close_the_session_they_name(epoch: int) -> None:
    """DP-82: epoch -1 closes a session, epoch 0 replaces it."""
    sessions = cache()
    session_id = opened(sessions, A)
    assert sessions.resolve(request(session_id, epoch, wanted(A)), NOW) is None
    assert sessions.get(session_id) is None


def test_no_slots_no_sessions() -> None:
    """DP-83: with zero slots every fetch stays sessionless."""
    assert opened(cache(0), A) == 0


def test_update_then_forget() -> None:
    """Partitions are added and changed first, forgotten after; the others keep their state."""
    sessions = cache()
    session_id = opened(sessions, A, B)
    session = sessions.resolve(request(session_id, 1, wanted(B, C, offset=5), (A, C)), NOW)
    assert isinstance(session, FetchSession)
    assert {name: p.fetch_offset for name, p in session.partitions.items()} == {B: 5}


def test_emptied_session_is_closed() -> None:
    """DP-84: removing all partitions closes the session."""
    sessions = cache()
    session_id = opened(sessions, A)
    assert sessions.resolve(request(session_id, 1, (), (A,)), NOW) is None
    assert len(sessions) == 0


def test_only_news_is_answered() -> None:
    """An incremental answer names a partition once when it has changed."""
    sessions = cache()
    session = sessions.get(opened(sessions, A))
    assert isinstance(session, FetchSession)
    quiet = answered(A)
    assert session.filter_response(quiet) == []
    for news in (answered(A, high_watermark=3), answered(A, high_watermark=3, log_start_offset=1)):
        assert session.filter_response(news) == news
        assert session.filter_response(news) == []
    always = answered(A, high_watermark=3, log_start_offset=1, preferred_read_replica=2)
    assert session.filter_response(always) == always
    assert session.filter_response(always) == always


def test_offsets_sent_to_a_follower_in_sync_are_not_repeated() -> None:
    """High watermark and log start sent to a follower in sync are not repeated later: both go with
    the records."""
    sessions = cache()
    session = sessions.get(opened(sessions, A, privileged=True))
    assert isinstance(session, FetchSession)
    (entry,) = session.to_read()
    told = answered(A, high_watermark=3, log_start_offset=1)
    entry.is_in_step = True
    assert session.new_responses([entry], told) == told
    entry.is_in_step = False
    assert session.new_responses([entry], told) == []


def test_an_idle_partition_with_a_changed_fetch_position_is_read() -> None:
    """An idle partition that the follower names with another offset or epoch is read again."""
    sessions = cache()
    session = sessions.get(opened(sessions, A, B, privileged=True))
    assert isinstance(session, FetchSession)
    for entry in session.to_read():
        entry.mark_idle()
    session.update(wanted(B, offset=5), ())
    assert [(e.topic_partition, e.fetch_offset) for e in session.to_read()] == [(B, 5)]


def test_diverging_epoch_forces_inclusion() -> None:
    """DP-85: a diverging epoch is always in the answer."""
    sessions = cache()
    session = sessions.get(opened(sessions, A))
    assert isinstance(session, FetchSession)
    diverging = answered(A, diverging_epoch=EpochEndOffset(1, 2))
    assert session.filter_response(diverging) == diverging


def test_errors_are_repeated_until_healed_and_once_more() -> None:
    """DP-80: an errored partition is in every response until it heals, then once more."""
    sessions = cache()
    session = sessions.get(opened(sessions, A))
    assert isinstance(session, FetchSession)
    failed = [FetchPartitionResponse(A, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    assert session.filter_response(failed) == failed
    assert session.filter_response(failed) == failed
    healed = answered(A)
    assert session.filter_response(healed) == healed
    assert session.filter_response(healed) == []


def test_answered_partitions_go_last() -> None:
    """Each partition in a response moves to the end of the order, so none starves."""
    sessions = cache()
    session = sessions.get(opened(sessions, A, B, C))
    assert isinstance(session, FetchSession)
    session.filter_response(answered(A, high_watermark=1) + answered(B, C))
    assert list(session.partitions) == [B, C, A]


def test_stale_session_makes_room() -> None:
    """A full cache evicts the least recently used session idle for more than 120 s."""
    sessions = cache(1)
    first = opened(sessions, A)
    assert opened(sessions, A, now=NOW + 120000) == 0
    assert opened(sessions, A, now=NOW + 120001) != 0
    assert sessions.get(first) is None
    assert len(sessions) == 1


def test_the_least_recently_used_session_is_evicted_first() -> None:
    """The session whose last request is the oldest is evicted first, whatever its age."""
    sessions = cache(2)
    first = opened(sessions, A)
    second = opened(sessions, B, now=NOW + 1)
    sessions.resolve(request(first, 1), NOW + 2)
    assert opened(sessions, C, now=NOW + 120002) != 0
    assert sessions.get(second) is None
    assert sessions.get(first) is not None


def test_follower_pushes_a_consumer_out() -> None:
    """A follower's new session evicts a consumer's session, but not a young session of a
    follower."""
    sessions = cache(1)
    opened(sessions, A, B, C)
    follower = opened(sessions, A, privileged=True, now=NOW + 1)
    assert follower != 0
    assert opened(sessions, A, B, privileged=True, now=NOW + 2) == 0


def test_consumer_only_takes_old_smaller_sessions() -> None:
    """An unprivileged newcomer needs a session older than 120 s of strictly smaller rank."""
    sessions = cache(1)
    session_id = opened(sessions, A, B)
    sessions.resolve(request(session_id, 1), NOW + 100)
    assert opened(sessions, A, B, C, now=NOW + 200) == 0, "young"
    sessions.resolve(request(session_id, 2), NOW + 120000)
    assert opened(sessions, A, B, C, now=NOW + 120002) == 0, "not older"
    sessions.resolve(request(session_id, 3), NOW + 120001)
    assert opened(sessions, A, B, now=NOW + 120002) == 0, "of equal rank"
    assert opened(sessions, A, B, C, now=NOW + 120002) != 0


def test_cached_partition_reads_like_a_fetch_partition() -> None:
    """A cached partition has the fields of a fetch partition, so that readers take either."""
    entry = FetchPartition(A, 5, 1, 100, 7, 6)
    cached = CachedPartition(entry)
    for field in (
        "fetch_offset",
        "log_start_offset",
        "max_bytes",
        "current_leader_epoch",
        "last_fetched_epoch",
        "topic_partition",
    ):
        assert getattr(cached, field) == getattr(entry, field)


@pytest.mark.parametrize(
    "not_taken",
    [{"diverging_epoch": EpochEndOffset(1, 3)}, {"error": ErrorCode.NOT_LEADER_OR_FOLLOWER}],
)
def test_a_high_watermark_sent_with_an_error_is_sent_again(not_taken: dict[str, Any]) -> None:
    """A high watermark sent with an error or a diverging epoch is sent again, as the follower did
    not take it."""
    cached = CachedPartition(*wanted(A))
    fields = {"error": ErrorCode.NONE, "high_watermark": 7, "log_start_offset": 0, **not_taken}
    assert cached.must_respond(FetchPartitionResponse(A, **fields))
    (good,) = answered(A, high_watermark=7)
    assert cached.must_respond(good)
    assert not cached.must_respond(good)


@pytest.mark.parametrize("is_privileged", [False, True])
def test_a_partition_named_again_takes_all_fields_of_the_request(is_privileged: bool) -> None:
    """A partition that a request names again takes all its fields from that request."""
    sessions = cache()
    session_id = opened(sessions, A, B, privileged=is_privileged)
    session = sessions.get(session_id)
    assert session is not None
    cached = session.partitions[A]
    cached.is_in_step = True
    again = FetchPartition(A, 5, 3, 77, 4, 2)
    sessions.resolve(request(session_id, 1, add=(again,)), NOW)
    assert session.partitions[A] is cached
    for name in (
        "fetch_offset", "log_start_offset", "max_bytes", "current_leader_epoch",
        "last_fetched_epoch",
    ):  # fmt: skip
        assert getattr(cached, name) == getattr(again, name), name
    assert not cached.is_in_step


def test_the_size_of_a_session_is_that_of_its_partitions() -> None:
    """The size of a session is its number of partitions: smaller sessions are evicted first."""
    sessions = cache()
    session_id = opened(sessions, A, B)
    sessions.resolve(request(session_id, 1, add=wanted(C)), NOW)
    assert sessions.partition_count == 3
    sessions.resolve(request(session_id, 2, forget=(A, B)), NOW)
    assert sessions.partition_count == 1


def test_a_full_cache_evicts_the_smallest_consumer_session() -> None:
    """A follower's session evicts the smallest session of a consumer from a full cache."""
    sessions = cache(3)
    large = opened(sessions, A, B, C)
    small = opened(sessions, A)
    middle = opened(sessions, A, B)
    assert opened(sessions, A, B, C, privileged=True)
    assert sessions.get(small) is None
    assert None not in (sessions.get(large), sessions.get(middle))
