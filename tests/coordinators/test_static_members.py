"""Static members, and coordinators that come and go."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.groups.group import GroupState
from fakekafka.coordinators.groups.member import Member
from fakekafka.protocol.errors import ErrorCode, InvariantError
from fakekafka.protocol.groups import JoinGroupResponse, LeavingMember
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.group_desk import NONE, GroupDesk, error_of

UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
FENCED = ErrorCode.FENCED_INSTANCE_ID
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
BOTH = (("range", b"r"), ("sticky", b"s"))
MODERN = ("2.8", "3.9")


# -- static members -----------------------------------------------------------------------------


def static_pair(version: str = "3.9") -> GroupDesk:
    """A stable group of two static members, ``a`` leads."""
    desk = GroupDesk(version)
    for name in "ab":
        desk.join(name, instance=f"i-{name}", session_ms=30_000, rebalance_ms=5000)
    desk.host.advance(0)
    for name in "ba":
        desk.sync(name, {"a": b"A", "b": b"B"} if name == "a" else None, instance=f"i-{name}")
    assert desk.state == "Stable"
    return desk


def test_a_static_member_that_comes_back_keeps_its_place() -> None:
    """KIP-345: no rebalance, the same generation, its old assignment, a new id."""
    desk = static_pair()
    old = desk.ids["b"]
    answer = desk.join("b", member_id="", instance="i-b", session_ms=30_000)
    assert answer is not None
    assert answer == JoinGroupResponse(NONE, desk.ids["b"], 1, "consumer", "range", desk.ids["a"])
    assert desk.ids["b"].startswith("i-b-")
    assert desk.ids["b"] != old
    assert desk.state == "Stable"
    assert error_of(desk.sync("b", instance="i-b")) == NONE
    assert desk.answers["b"].assignment == b"B"
    assert desk.heartbeat("b", instance="i-b", member_id=old) == FENCED
    assert error_of(desk.sync("b", instance="i-b", member_id=old)) == FENCED
    assert error_of(desk.join("b", member_id=old, instance="i-b")) == FENCED
    assert list(desk.group.members) == [desk.ids["a"], answer.member_id]


@pytest.mark.parametrize(("version", "may_skip"), [("2.8", False), ("3.9", False), ("3.9", True)])
def test_a_static_leader_that_comes_back_does_not_assign(version: str, may_skip: bool) -> None:
    """Told another leader's id, or since KIP-814 that it leads and shall not assign."""
    desk = static_pair(version)
    old = desk.ids["a"]
    answer = desk.join("a", member_id="", instance="i-a", may_skip=may_skip)
    assert answer is not None
    if may_skip:
        assert (answer.leader, answer.skip_assignment) == (answer.member_id, True)
        assert len(answer.members) == 2
    else:
        assert (answer.leader, answer.skip_assignment, answer.members) == (old, False, ())


def test_the_new_id_of_a_static_member_is_stored_first() -> None:
    """So that the next coordinator fences the old one, too; if it cannot be, all is as before."""
    desk = static_pair()
    old = desk.ids["b"]
    desk.replicas.is_held = True
    assert desk.join("b", member_id="", instance="i-b") is None
    desk.replicas.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert desk.answers["b"].error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.answers["b"].member_id == ""
    assert desk.heartbeat("b", instance="i-b", member_id=old) == NONE
    assert desk.group.awaiting_join_count == 0
    desk.replicas.is_held = False
    desk.join("b", member_id="", instance="i-b")
    loaded = GroupDesk(log=desk.log)
    loaded.ids = desk.ids
    assert loaded.heartbeat("b", instance="i-b", member_id=old) == FENCED
    assert loaded.heartbeat("b", instance="i-b") == NONE


def test_a_static_member_whose_new_id_is_being_stored_hears_of_that_alone() -> None:
    """A coordinator that resigns meanwhile answers those who wait for a rebalance
    (``GroupCoordinator.onGroupUnloaded``); it waits for the record."""
    desk = static_pair()
    desk.replicas.is_held = True
    assert desk.join("b", member_id="", instance="i-b") is None
    desk.follow()
    assert "b" not in desk.answers
    desk.replicas.answer()
    assert desk.answers["b"].error == NONE


def test_a_static_member_that_changes_the_protocol_starts_a_rebalance() -> None:
    desk = GroupDesk()
    for name, protocols in (("a", BOTH), ("b", BOTH)):
        desk.join(name, instance=f"i-{name}", protocols=protocols)
    desk.host.advance(0)
    desk.sync("b")
    desk.sync("a", {})
    assert desk.join("b", member_id="", instance="i-b", protocols=(("sticky", b""),)) is None
    assert desk.state == "PreparingRebalance"


def test_a_static_member_that_comes_back_before_the_assignment_starts_a_rebalance() -> None:
    """The leader assigns to its old id."""
    desk = GroupDesk()
    desk.join("a", instance="i-a")
    desk.join("b", instance="i-b")
    desk.host.advance(0)
    desk.sync("b", instance="i-b")
    assert desk.join("c", member_id="", instance="i-b") is None
    assert desk.state == "PreparingRebalance"
    assert error_of(desk.answers["b"]) == FENCED


def test_static_members_stay_though_they_did_not_rejoin() -> None:
    """KIP-345: in the next generation, which they have to sync with like all others."""
    desk = static_pair()
    desk.join("c", rebalance_ms=5000, session_ms=30_000)
    desk.host.advance(4999)
    assert "c" not in desk.answers
    desk.host.advance(1)
    assert desk.answers["c"].generation == 2
    assert len(desk.group.members) == 3
    assert desk.group.leader == desk.ids["c"]
    desk.sync("c", {})
    desk.host.advance(4999)
    assert (desk.state, len(desk.group.members)) == ("Stable", 3)
    desk.host.advance(1)
    assert list(desk.group.members) == [desk.ids["c"]]


def test_a_rebalance_that_nobody_comes_to_waits_for_the_static_members() -> None:
    desk = static_pair()
    desk.leave(LeavingMember("", "i-b"))
    desk.host.advance(5000)
    assert (desk.state, desk.group.generation) == ("PreparingRebalance", 1)
    desk.host.advance(25_000)
    assert (desk.state, desk.group.generation) == ("Empty", 2)


def test_an_administrator_removes_static_members_by_their_instance(desk: GroupDesk) -> None:
    desk = static_pair()
    response = desk.leave(LeavingMember("", "i-b"), LeavingMember("other", "i-a"))
    assert [member.error for member in response.members] == [NONE, FENCED]
    assert list(desk.group.members) == [desk.ids["a"]]


def test_the_place_of_a_static_member_that_was_removed_is_free() -> None:
    """Whoever comes under the same instance id takes nobody's place."""
    desk = static_pair()
    desk.leave(LeavingMember("", "i-b"))
    desk.join("b", member_id="", instance="i-b")
    desk.join("a", instance="i-a")
    assert (desk.answers["a"].error, desk.answers["b"].error) == (NONE, NONE)
    assert [m.group_instance_id for m in desk.group.members.values()] == ["i-a", "i-b"]


@pytest.mark.parametrize(("version", "error"), [("2.8", NONE), ("3.9", UNKNOWN)])
def test_an_instance_that_nobody_knows_makes_a_stranger_since_3_0(
    version: str, error: ErrorCode
) -> None:
    """Before, only joins were refused for it."""
    desk = static_pair(version)
    assert desk.heartbeat("a", instance="i-x") == error
    assert error_of(desk.sync("a", instance="i-x")) == error
    assert desk.commit(member="a", generation=1, instance="i-x") == error
    assert error_of(desk.join("a", instance="i-x")) == UNKNOWN
    response = desk.leave(LeavingMember(desk.ids["a"], "i-x"))
    assert response.members[0].error == error


# -- coordinators that come and go --------------------------------------------------------------


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_the_next_coordinator_knows_the_members(version: str) -> None:
    """DP-135: with their assignment, so that they go on without a rebalance."""
    desk = GroupDesk(version)
    desk.stable("a", "b")
    generation = desk.group.generation
    after = GroupDesk(version, log=desk.log)
    after.ids = desk.ids
    assert after.state == "Stable"
    assert after.heartbeat("a") == NONE
    answer = after.sync("b")
    assert answer is not None
    assert (answer.assignment, after.group.generation) == (b"b", generation)
    after.host.advance(9999)
    after.heartbeat("b")
    after.host.advance(1)
    assert list(after.group.members) == [desk.ids["b"]]


def test_who_waits_at_a_coordinator_that_resigns_is_told_to_look_for_another(
    desk: GroupDesk,
) -> None:
    desk.stable("a", "b")
    desk.join("a")
    desk.follow()
    assert desk.answers["a"].error == ErrorCode.NOT_COORDINATOR
    assert desk.coordinator.groups == {}
    assert desk.host.clock.timers == [600_000]
    assert desk.heartbeat("b", generation=1) == ErrorCode.NOT_COORDINATOR
    other = GroupDesk()
    other.join("a")
    other.join("b")
    other.host.advance(0)
    other.sync("b")
    other.follow()
    assert other.answers["b"].error == ErrorCode.NOT_COORDINATOR


def test_while_it_loads_heartbeats_are_taken_on_trust_and_syncs_start_anew() -> None:
    """Older clients do not know the error of loading in these answers."""
    before = GroupDesk()
    before.stable("a")
    desk = GroupDesk(lead=False, log=before.log)
    desk.ids = before.ids
    hosted = desk.replicas.lead(0, 0, desk.log)
    seen: list[object] = []
    desk.coordinator.leadership_changed([hosted], [])
    desk.host.call_later_ms(0, lambda: seen.append(desk.heartbeat("a", generation=1)))
    desk.host.call_later_ms(0, lambda: seen.append(error_of(desk.sync("a", generation=1))))
    desk.host.call_later_ms(0, lambda: seen.append(error_of(desk.join("a"))))
    desk.host.advance(0)
    assert seen == [NONE, REBALANCE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert desk.heartbeat("a") == NONE


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_dead_group_sends_its_members_away(version: str) -> None:
    """KAFKA-8386: since 2.3 to look for the coordinator, before to join anew."""
    desk = GroupDesk(version)
    desk.stable("a")
    desk.group.state = GroupState.DEAD
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE if version in MODERN else UNKNOWN
    assert desk.heartbeat("a") == error
    assert error_of(desk.sync("a")) == error
    assert error_of(desk.join("a")) == error
    assert desk.leave("a").error == error
    assert desk.commit(member="a", generation=1) == error


def test_a_member_votes_only_for_what_it_supports() -> None:
    member = Member("m", None, "c", "/h", 1, 1, BOTH)
    assert member.vote({"sticky", "own"}) == "sticky"
    with pytest.raises(InvariantError):
        member.vote({"own"})
