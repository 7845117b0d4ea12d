"""Static members, and coordinators that resign and take over."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.groups.group import GroupState
from fakekafka.coordinators.groups.member import Member
from fakekafka.protocol.errors import ErrorCode, InvariantError
from fakekafka.protocol.groups import JoinGroupResponse, LeavingMember
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.group_rig import NONE, GroupRig, error_of

UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
FENCED = ErrorCode.FENCED_INSTANCE_ID
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
BOTH = (("range", b"r"), ("sticky", b"s"))
MODERN = ("2.8", "3.9")


# -- static members -----------------------------------------------------------------------------


def static_pair(version: str = "3.9") -> GroupRig:
    """A stable group of two static members, led by ``a``."""
    rig = GroupRig(version)
    for name in "ab":
        rig.join(name, instance=f"i-{name}", session_ms=30_000, rebalance_ms=5000)
    rig.host.advance(0)
    for name in "ba":
        rig.sync(name, {"a": b"A", "b": b"B"} if name == "a" else None, instance=f"i-{name}")
    assert rig.state == "Stable"
    return rig


def test_a_returning_static_member_keeps_its_assignment() -> None:
    """KIP-345: a returning static member gets its old assignment and a new id, without a
    rebalance."""
    rig = static_pair()
    old = rig.ids["b"]
    answer = rig.join("b", member_id="", instance="i-b", session_ms=30_000)
    assert answer is not None
    assert answer == JoinGroupResponse(NONE, rig.ids["b"], 1, "consumer", "range", rig.ids["a"])
    assert rig.ids["b"].startswith("i-b-")
    assert rig.ids["b"] != old
    assert rig.state == "Stable"
    assert error_of(rig.sync("b", instance="i-b")) == NONE
    assert rig.answers["b"].assignment == b"B"
    assert rig.heartbeat("b", instance="i-b", member_id=old) == FENCED
    assert error_of(rig.sync("b", instance="i-b", member_id=old)) == FENCED
    assert error_of(rig.join("b", member_id=old, instance="i-b")) == FENCED
    assert list(rig.group.members) == [rig.ids["a"], answer.member_id]


@pytest.mark.parametrize(("version", "may_skip"), [("2.8", False), ("3.9", False), ("3.9", True)])
def test_a_returning_static_leader_does_not_assign(version: str, may_skip: bool) -> None:
    """A returning static leader is named another leader's id or, since KIP-814, told that it leads
    but may skip the assignment."""
    rig = static_pair(version)
    old = rig.ids["a"]
    answer = rig.join("a", member_id="", instance="i-a", may_skip=may_skip)
    assert answer is not None
    if may_skip:
        assert (answer.leader, answer.skip_assignment) == (answer.member_id, True)
        assert len(answer.members) == 2
    else:
        assert (answer.leader, answer.skip_assignment, answer.members) == (old, False, ())


def test_the_new_id_of_a_static_member_is_stored_first() -> None:
    """The new id of a static member is stored first, so that the next coordinator fences the old
    id; if that fails, nothing changes."""
    rig = static_pair()
    old = rig.ids["b"]
    rig.replicas.is_held = True
    assert rig.join("b", member_id="", instance="i-b") is None
    rig.replicas.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert rig.answers["b"].error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert rig.answers["b"].member_id == ""
    assert rig.heartbeat("b", instance="i-b", member_id=old) == NONE
    assert rig.group.awaiting_join_count == 0
    rig.replicas.is_held = False
    rig.join("b", member_id="", instance="i-b")
    loaded = GroupRig(log=rig.log)
    loaded.ids = rig.ids
    assert loaded.heartbeat("b", instance="i-b", member_id=old) == FENCED
    assert loaded.heartbeat("b", instance="i-b") == NONE


def test_a_returning_static_member_is_answered_when_its_new_id_is_stored() -> None:
    """A static member whose new id is being stored is answered only when the record is written,
    even if the coordinator resigns meanwhile (``GroupCoordinator.onGroupUnloaded``)."""
    rig = static_pair()
    rig.replicas.is_held = True
    assert rig.join("b", member_id="", instance="i-b") is None
    rig.follow()
    assert "b" not in rig.answers
    rig.replicas.answer()
    assert rig.answers["b"].error == NONE


def test_a_static_member_that_changes_the_protocol_starts_a_rebalance() -> None:
    rig = GroupRig()
    for name, protocols in (("a", BOTH), ("b", BOTH)):
        rig.join(name, instance=f"i-{name}", protocols=protocols)
    rig.host.advance(0)
    rig.sync("b")
    rig.sync("a", {})
    assert rig.join("b", member_id="", instance="i-b", protocols=(("sticky", b""),)) is None
    assert rig.state == "PreparingRebalance"


def test_a_static_member_that_returns_before_the_assignment_starts_a_rebalance() -> None:
    """A static member that returns before the assignment starts a rebalance, as the leader would
    assign to its old id."""
    rig = GroupRig()
    rig.join("a", instance="i-a")
    rig.join("b", instance="i-b")
    rig.host.advance(0)
    rig.sync("b", instance="i-b")
    assert rig.join("c", member_id="", instance="i-b") is None
    assert rig.state == "PreparingRebalance"
    assert error_of(rig.answers["b"]) == FENCED


def test_static_members_stay_although_they_did_not_rejoin() -> None:
    """KIP-345: static members that did not rejoin stay in the next generation, and have to sync
    like all others."""
    rig = static_pair()
    rig.join("c", rebalance_ms=5000, session_ms=30_000)
    rig.host.advance(4999)
    assert "c" not in rig.answers
    rig.host.advance(1)
    assert rig.answers["c"].generation == 2
    assert len(rig.group.members) == 3
    assert rig.group.leader == rig.ids["c"]
    rig.sync("c", {})
    rig.host.advance(4999)
    assert (rig.state, len(rig.group.members)) == ("Stable", 3)
    rig.host.advance(1)
    assert list(rig.group.members) == [rig.ids["c"]]


def test_a_rebalance_without_joins_waits_for_the_static_members() -> None:
    rig = static_pair()
    rig.leave(LeavingMember("", "i-b"))
    rig.host.advance(5000)
    assert (rig.state, rig.group.generation) == ("PreparingRebalance", 1)
    rig.host.advance(25_000)
    assert (rig.state, rig.group.generation) == ("Empty", 2)


def test_an_administrator_removes_static_members_by_their_instance(rig: GroupRig) -> None:
    rig = static_pair()
    response = rig.leave(LeavingMember("", "i-b"), LeavingMember("other", "i-a"))
    assert [member.error for member in response.members] == [NONE, FENCED]
    assert list(rig.group.members) == [rig.ids["a"]]


def test_the_place_of_a_static_member_that_was_removed_is_free() -> None:
    """A static member that joins under the instance id of a removed member fences no member."""
    rig = static_pair()
    rig.leave(LeavingMember("", "i-b"))
    rig.join("b", member_id="", instance="i-b")
    rig.join("a", instance="i-a")
    assert (rig.answers["a"].error, rig.answers["b"].error) == (NONE, NONE)
    assert [m.group_instance_id for m in rig.group.members.values()] == ["i-a", "i-b"]


@pytest.mark.parametrize(("version", "error"), [("2.8", NONE), ("3.9", UNKNOWN)])
def test_an_unknown_instance_id_is_an_unknown_member_since_3_0(
    version: str, error: ErrorCode
) -> None:
    """Since 3.0 an unknown instance id is answered UNKNOWN_MEMBER_ID in all requests; before, only
    in joins."""
    rig = static_pair(version)
    assert rig.heartbeat("a", instance="i-x") == error
    assert error_of(rig.sync("a", instance="i-x")) == error
    assert rig.commit(member="a", generation=1, instance="i-x") == error
    assert error_of(rig.join("a", instance="i-x")) == UNKNOWN
    response = rig.leave(LeavingMember(rig.ids["a"], "i-x"))
    assert response.members[0].error == error


# -- coordinators that come and go --------------------------------------------------------------


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_the_next_coordinator_knows_the_members(version: str) -> None:
    """DP-135: the next coordinator loads the members with their assignments, so that no rebalance
    is needed."""
    rig = GroupRig(version)
    rig.stable("a", "b")
    generation = rig.group.generation
    after = GroupRig(version, log=rig.log)
    after.ids = rig.ids
    assert after.state == "Stable"
    assert after.heartbeat("a") == NONE
    answer = after.sync("b")
    assert answer is not None
    assert (answer.assignment, after.group.generation) == (b"b", generation)
    after.host.advance(9999)
    after.heartbeat("b")
    after.host.advance(1)
    assert list(after.group.members) == [rig.ids["b"]]


def test_waiting_members_get_not_coordinator_when_the_coordinator_resigns(rig: GroupRig) -> None:
    rig.stable("a", "b")
    rig.join("a")
    rig.follow()
    assert rig.answers["a"].error == ErrorCode.NOT_COORDINATOR
    assert rig.coordinator.groups == {}
    assert rig.host.clock.timers == [600_000]
    assert rig.heartbeat("b", generation=1) == ErrorCode.NOT_COORDINATOR
    other = GroupRig()
    other.join("a")
    other.join("b")
    other.host.advance(0)
    other.sync("b")
    other.follow()
    assert other.answers["b"].error == ErrorCode.NOT_COORDINATOR


def test_while_groups_load_heartbeats_succeed_and_syncs_have_to_rejoin() -> None:
    """While a coordinator loads, heartbeats succeed and syncs have to rejoin, as older clients do
    not expect the loading error there."""
    before = GroupRig()
    before.stable("a")
    rig = GroupRig(lead=False, log=before.log)
    rig.ids = before.ids
    hosted = rig.replicas.lead(0, 0, rig.log)
    seen: list[object] = []
    rig.coordinator.leadership_changed([hosted], [])
    rig.host.call_later_ms(0, lambda: seen.append(rig.heartbeat("a", generation=1)))
    rig.host.call_later_ms(0, lambda: seen.append(error_of(rig.sync("a", generation=1))))
    rig.host.call_later_ms(0, lambda: seen.append(error_of(rig.join("a"))))
    rig.host.advance(0)
    assert seen == [NONE, REBALANCE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert rig.heartbeat("a") == NONE


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_requests_to_a_dead_group_are_refused(version: str) -> None:
    """KAFKA-8386: since 2.3 a dead group sends its members to look for the coordinator; before, to
    rejoin."""
    rig = GroupRig(version)
    rig.stable("a")
    rig.group.state = GroupState.DEAD
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE if version in MODERN else UNKNOWN
    assert rig.heartbeat("a") == error
    assert error_of(rig.sync("a")) == error
    assert error_of(rig.join("a")) == error
    assert rig.leave("a").error == error
    assert rig.commit(member="a", generation=1) == error


def test_a_member_votes_only_for_protocols_that_it_supports() -> None:
    member = Member("m", None, "c", "/h", 1, 1, BOTH)
    assert member.vote({"sticky", "own"}) == "sticky"
    with pytest.raises(InvariantError):
        member.vote({"own"})
