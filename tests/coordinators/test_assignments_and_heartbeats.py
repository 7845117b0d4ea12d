"""Requests of members between rebalances: SyncGroup, Heartbeat and LeaveGroup."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import LeavingMember
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.group_rig import NONE, GroupRig, error_of

UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
ILLEGAL = ErrorCode.ILLEGAL_GENERATION
MODERN = ("2.8", "3.9")

# -- syncing ------------------------------------------------------------------------------------


def test_all_wait_for_the_leaders_assignment(rig: GroupRig) -> None:
    """DP-135: members that the leader's assignment omits get an empty one; unknown members in it
    are ignored."""
    rig.join("a")
    rig.join("b")
    rig.host.advance(0)
    assert rig.sync("b") is None
    answer = rig.sync("a", {"a": b"all", "stranger": b"x"})
    assert answer is not None
    assert (answer.error, answer.assignment) == (NONE, b"all")
    assert rig.answers["b"].assignment == b""
    assert (answer.protocol_type, answer.protocol) == ("consumer", "range")
    assert rig.state == "Stable"
    again = rig.sync("a")
    assert again == answer


def test_the_assignment_is_sent_once_it_is_replicated(rig: GroupRig) -> None:
    rig.join("a")
    rig.host.advance(0)
    rig.replicas.is_held = True
    assert rig.sync("a", {"a": b"all"}) is None
    assert rig.state == "CompletingRebalance"
    rig.replicas.answer()
    assert rig.answers["a"].assignment == b"all"


@pytest.mark.parametrize(
    ("from_log", "to_members"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.REQUEST_TIMED_OUT, REBALANCE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_FETCH_SIZE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_assignment_that_cannot_be_stored_starts_a_rebalance(
    rig: GroupRig, from_log: ErrorCode, to_members: ErrorCode
) -> None:
    rig.join("a")
    rig.join("b")
    rig.host.advance(0)
    rig.replicas.error = from_log
    rig.sync("b")
    rig.sync("a", {"a": b"all"})
    assert (rig.answers["a"].error, rig.answers["b"].error) == (to_members, to_members)
    assert rig.state == "PreparingRebalance"


def test_an_assignment_of_a_generation_that_is_over_is_dropped(rig: GroupRig) -> None:
    rig.join("a")
    rig.host.advance(0)
    rig.replicas.is_held = True
    rig.sync("a", {"a": b"all"})
    rig.join("b")
    assert rig.answers["a"].error == REBALANCE
    rig.replicas.answer()
    assert rig.state == "PreparingRebalance"


def test_an_assignment_of_an_older_generation_is_not_handed_out_in_the_next(rig: GroupRig) -> None:
    """An assignment stored too late is not handed out once all members have rejoined and the leader
    has yet to assign."""
    rig.join("a")
    rig.host.advance(0)
    rig.replicas.is_held = True
    rig.sync("a", {"a": b"all"})
    rig.join("b")
    rig.join("a")
    assert (rig.state, rig.group.generation) == ("CompletingRebalance", 2)
    assert rig.sync("b") is None
    rig.replicas.answer()
    assert rig.state == "CompletingRebalance"
    assert "b" not in rig.answers


def test_a_join_while_the_assignment_is_awaited_restarts_the_rebalance(rig: GroupRig) -> None:
    rig.join("a")
    rig.join("b")
    rig.host.advance(0)
    rig.sync("b")
    rig.join("c")
    assert rig.answers["b"].error == REBALANCE


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"generation": 0}, ILLEGAL),
        ({"member_id": "nobody"}, UNKNOWN),
        ({"protocol_type": "connect", "protocol": "range"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "consumer", "protocol": "own"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "consumer", "protocol": "range"}, NONE),
    ],
)
def test_a_sync_names_member_generation_and_protocol(
    rig: GroupRig, asked: dict[str, object], error: ErrorCode
) -> None:
    """SyncGroup checks member, generation and, since KIP-559, the protocol."""
    rig.stable("a")
    assert error_of(rig.sync("a", **asked)) == error  # type: ignore[arg-type]


def test_a_sync_while_others_join_is_answered_rebalance_in_progress(rig: GroupRig) -> None:
    rig.stable("a")
    rig.join("b")
    assert error_of(rig.sync("a")) == REBALANCE


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_member_that_does_not_sync_in_time_is_removed_since_2_8_1(version: str) -> None:
    """KAFKA-12890: a leader that sends heartbeats but never assigns would keep the group waiting
    for ever."""
    rig = GroupRig(version)
    rig.join("a", rebalance_ms=5000, session_ms=100_000)
    rig.join("b", rebalance_ms=5000, session_ms=100_000)
    rig.host.advance(0)
    if version == "0.10":
        rig.join("a", rebalance_ms=5000, session_ms=100_000)
    rig.sync("b")
    rig.host.advance(5000)
    if version in MODERN:
        assert rig.answers["b"].error == REBALANCE
        assert list(rig.group.members) == [rig.ids["b"]]
        assert rig.state == "PreparingRebalance"
    else:
        assert rig.state == "CompletingRebalance"


def test_a_member_with_an_assignment_has_no_time_limit_to_sync(rig: GroupRig) -> None:
    rig.stable("a", rebalance_ms=5000)
    for _ in range(5):
        rig.host.advance(5000)
        assert rig.heartbeat("a") == NONE
    assert rig.host.clock.timers[-1] > 5000


# -- heartbeats ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_heartbeats_are_answered_by_the_state(version: str) -> None:
    """KAFKA-10134: before 2.6.1 heartbeats of members that awaited their assignment answered a
    rebalance."""
    rig = GroupRig(version)
    assert rig.heartbeat("a") == UNKNOWN
    rig.join("a")
    rig.host.advance(0)
    is_new = version in MODERN
    assert rig.heartbeat("a") == (NONE if is_new else REBALANCE)
    assert rig.heartbeat("a", generation=0) == (ILLEGAL if is_new else REBALANCE)
    rig.sync("a", {})
    assert rig.heartbeat("a") == NONE
    assert rig.heartbeat("a", generation=0) == ILLEGAL
    assert rig.heartbeat("x") == UNKNOWN
    rig.join("b")
    assert rig.heartbeat("a") == REBALANCE
    assert rig.heartbeat("a", generation=0) == ILLEGAL


def test_a_member_that_is_silent_for_its_session_is_removed(rig: GroupRig) -> None:
    rig.stable("a", "b")
    rig.host.advance(9000)
    rig.heartbeat("b")
    rig.host.advance(999)
    assert len(rig.group.members) == 2
    rig.host.advance(1)
    assert list(rig.group.members) == [rig.ids["b"]]
    assert rig.state == "PreparingRebalance"
    assert rig.group.leader == rig.ids["b"]
    assert "has failed" in rig.lines[-2]


def test_no_heartbeat_is_due_of_a_member_that_waits(rig: GroupRig) -> None:
    """A member with a pending join or sync needs no heartbeats."""
    rig.stable("a", "b", rebalance_ms=60_000)
    rig.join("b", protocols=(("range", b"new"),))
    for _ in range(5):
        rig.host.advance(9000)
        rig.heartbeat("a")
    assert len(rig.group.members) == 2
    assert rig.join("a", protocols=(("range", b"new"),)) is not None
    assert rig.answers["b"].error == NONE


def test_the_last_member_to_fail_leaves_an_empty_group(rig: GroupRig) -> None:
    rig.stable("a")
    rig.host.advance(10_000)
    assert (rig.state, rig.group.generation) == ("Empty", 2)
    assert rig.host.clock.timers == [600_000 - 10_000]


# -- leaving ------------------------------------------------------------------------------------


def test_a_member_that_leaves_starts_a_rebalance(rig: GroupRig) -> None:
    rig.stable("a", "b")
    response = rig.leave(LeavingMember(rig.ids["a"], None, "closed"))
    assert (response.error, response.members[0].error) == (NONE, NONE)
    assert rig.state == "PreparingRebalance"
    assert rig.lines[-1].endswith("on LeaveGroup (closed)")
    assert rig.heartbeat("a") == UNKNOWN


def test_a_rebalance_does_not_wait_for_a_member_that_left(rig: GroupRig) -> None:
    rig.stable("a", "b")
    rig.join("c")
    rig.join("a")
    rig.leave("b")
    assert rig.answers["a"].generation == rig.answers["c"].generation


def test_each_of_many_that_leave_has_its_own_answer(rig: GroupRig) -> None:
    rig.stable("a", "b")
    response = rig.leave("a", "nobody", LeavingMember("", "nowhere"))
    assert [member.error for member in response.members] == [NONE, UNKNOWN, UNKNOWN]
    assert [m.error for m in GroupRig().leave("a").members] == [UNKNOWN]


def test_a_repeated_sync_in_a_stable_group_renews_the_session() -> None:
    """A member of a stable group that syncs again, as its answer was lost, renews its session
    (``doSyncGroup``, Stable)."""
    rig = GroupRig()
    rig.stable("a")
    for _ in range(3):
        rig.host.advance(6000)
        assert error_of(rig.sync("a")) is NONE
    assert rig.heartbeat("a") is NONE
