"""What members ask for between rebalances: their assignment, to be kept, to leave."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import LeavingMember
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.group_desk import NONE, GroupDesk, error_of

UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
ILLEGAL = ErrorCode.ILLEGAL_GENERATION
MODERN = ("2.8", "3.9")

# -- syncing ------------------------------------------------------------------------------------


def test_all_wait_for_the_leaders_assignment(desk: GroupDesk) -> None:
    """DP-135: members that it forgot get nothing, strangers that it names are ignored."""
    desk.join("a")
    desk.join("b")
    desk.host.advance(0)
    assert desk.sync("b") is None
    answer = desk.sync("a", {"a": b"all", "stranger": b"x"})
    assert answer is not None
    assert (answer.error, answer.assignment) == (NONE, b"all")
    assert desk.answers["b"].assignment == b""
    assert (answer.protocol_type, answer.protocol) == ("consumer", "range")
    assert desk.state == "Stable"
    again = desk.sync("a")
    assert again == answer


def test_the_assignment_is_out_once_it_is_replicated(desk: GroupDesk) -> None:
    desk.join("a")
    desk.host.advance(0)
    desk.replicas.is_held = True
    assert desk.sync("a", {"a": b"all"}) is None
    assert desk.state == "CompletingRebalance"
    desk.replicas.answer()
    assert desk.answers["a"].assignment == b"all"


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
    desk: GroupDesk, from_log: ErrorCode, to_members: ErrorCode
) -> None:
    desk.join("a")
    desk.join("b")
    desk.host.advance(0)
    desk.replicas.error = from_log
    desk.sync("b")
    desk.sync("a", {"a": b"all"})
    assert (desk.answers["a"].error, desk.answers["b"].error) == (to_members, to_members)
    assert desk.state == "PreparingRebalance"


def test_an_assignment_of_a_generation_that_is_over_is_dropped(desk: GroupDesk) -> None:
    desk.join("a")
    desk.host.advance(0)
    desk.replicas.is_held = True
    desk.sync("a", {"a": b"all"})
    desk.join("b")
    assert desk.answers["a"].error == REBALANCE
    desk.replicas.answer()
    assert desk.state == "PreparingRebalance"


def test_an_assignment_of_an_older_generation_is_not_handed_out_in_the_next(
    desk: GroupDesk,
) -> None:
    """It was stored too late: all have joined again, and the leader has still to assign."""
    desk.join("a")
    desk.host.advance(0)
    desk.replicas.is_held = True
    desk.sync("a", {"a": b"all"})
    desk.join("b")
    desk.join("a")
    assert (desk.state, desk.group.generation) == ("CompletingRebalance", 2)
    assert desk.sync("b") is None
    desk.replicas.answer()
    assert desk.state == "CompletingRebalance"
    assert "b" not in desk.answers


def test_a_newcomer_while_the_assignment_is_awaited_sends_all_back(desk: GroupDesk) -> None:
    desk.join("a")
    desk.join("b")
    desk.host.advance(0)
    desk.sync("b")
    desk.join("c")
    assert desk.answers["b"].error == REBALANCE


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
    desk: GroupDesk, asked: dict[str, object], error: ErrorCode
) -> None:
    """KIP-559 for the protocol."""
    desk.stable("a")
    assert error_of(desk.sync("a", **asked)) == error  # type: ignore[arg-type]


def test_a_sync_while_others_join_is_told_of_the_rebalance(desk: GroupDesk) -> None:
    desk.stable("a")
    desk.join("b")
    assert error_of(desk.sync("a")) == REBALANCE


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_who_does_not_sync_in_time_is_removed_since_2_8_1(version: str) -> None:
    """KAFKA-12890: a leader that beats but never assigns would keep the group for ever."""
    desk = GroupDesk(version)
    desk.join("a", rebalance_ms=5000, session_ms=100_000)
    desk.join("b", rebalance_ms=5000, session_ms=100_000)
    desk.host.advance(0)
    if version == "0.10":
        desk.join("a", rebalance_ms=5000, session_ms=100_000)
    desk.sync("b")
    desk.host.advance(5000)
    if version in MODERN:
        assert desk.answers["b"].error == REBALANCE
        assert list(desk.group.members) == [desk.ids["b"]]
        assert desk.state == "PreparingRebalance"
    else:
        assert desk.state == "CompletingRebalance"


def test_who_has_an_assignment_need_not_sync_in_time(desk: GroupDesk) -> None:
    desk.stable("a", rebalance_ms=5000)
    for _ in range(5):
        desk.host.advance(5000)
        assert desk.heartbeat("a") == NONE
    assert desk.host.clock.timers[-1] > 5000


# -- heartbeats ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_heartbeats_are_answered_by_the_state(version: str) -> None:
    """KAFKA-10134: before 2.6.1 those who awaited their assignment were told of a rebalance."""
    desk = GroupDesk(version)
    assert desk.heartbeat("a") == UNKNOWN
    desk.join("a")
    desk.host.advance(0)
    is_new = version in MODERN
    assert desk.heartbeat("a") == (NONE if is_new else REBALANCE)
    assert desk.heartbeat("a", generation=0) == (ILLEGAL if is_new else REBALANCE)
    desk.sync("a", {})
    assert desk.heartbeat("a") == NONE
    assert desk.heartbeat("a", generation=0) == ILLEGAL
    assert desk.heartbeat("x") == UNKNOWN
    desk.join("b")
    assert desk.heartbeat("a") == REBALANCE
    assert desk.heartbeat("a", generation=0) == ILLEGAL


def test_a_member_that_is_silent_for_its_session_is_removed(desk: GroupDesk) -> None:
    desk.stable("a", "b")
    desk.host.advance(9000)
    desk.heartbeat("b")
    desk.host.advance(999)
    assert len(desk.group.members) == 2
    desk.host.advance(1)
    assert list(desk.group.members) == [desk.ids["b"]]
    assert desk.state == "PreparingRebalance"
    assert desk.group.leader == desk.ids["b"]
    assert "has failed" in desk.lines[-2]


def test_no_heartbeat_is_due_of_a_member_that_waits(desk: GroupDesk) -> None:
    """Its open join, or sync, is proof enough."""
    desk.stable("a", "b", rebalance_ms=60_000)
    desk.join("b", protocols=(("range", b"new"),))
    for _ in range(5):
        desk.host.advance(9000)
        desk.heartbeat("a")
    assert len(desk.group.members) == 2
    assert desk.join("a", protocols=(("range", b"new"),)) is not None
    assert desk.answers["b"].error == NONE


def test_the_last_member_to_fail_leaves_an_empty_group(desk: GroupDesk) -> None:
    desk.stable("a")
    desk.host.advance(10_000)
    assert (desk.state, desk.group.generation) == ("Empty", 2)
    assert desk.host.clock.timers == [600_000 - 10_000]


# -- leaving ------------------------------------------------------------------------------------


def test_a_member_that_leaves_starts_a_rebalance(desk: GroupDesk) -> None:
    desk.stable("a", "b")
    response = desk.leave(LeavingMember(desk.ids["a"], None, "closed"))
    assert (response.error, response.members[0].error) == (NONE, NONE)
    assert desk.state == "PreparingRebalance"
    assert desk.lines[-1].endswith("on LeaveGroup (closed)")
    assert desk.heartbeat("a") == UNKNOWN


def test_who_leaves_while_others_join_is_not_waited_for(desk: GroupDesk) -> None:
    desk.stable("a", "b")
    desk.join("c")
    desk.join("a")
    desk.leave("b")
    assert desk.answers["a"].generation == desk.answers["c"].generation


def test_each_of_many_that_leave_has_its_own_answer(desk: GroupDesk) -> None:
    desk.stable("a", "b")
    response = desk.leave("a", "nobody", LeavingMember("", "nowhere"))
    assert [member.error for member in response.members] == [NONE, UNKNOWN, UNKNOWN]
    assert [m.error for m in GroupDesk().leave("a").members] == [UNKNOWN]


def test_a_member_of_a_stable_group_that_syncs_again_is_heard_of() -> None:
    """It has lost the answer, and its session begins anew (``doSyncGroup``, Stable)."""
    desk = GroupDesk()
    desk.stable("a")
    for _ in range(3):
        desk.host.advance(6000)
        assert error_of(desk.sync("a")) is NONE
    assert desk.heartbeat("a") is NONE
