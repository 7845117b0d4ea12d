"""Members of a group: joins, syncs, heartbeats, departures, and the errors of each as in Kafka."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.groups.group import PREVIOUS_STATES, GroupState
from fakekafka.protocol.errors import ErrorCode, InvariantError
from fakekafka.protocol.groups import HeartbeatRequest, JoinGroupMember, JoinGroupResponse
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.group_rig import NONE, GroupRig, error_of

UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
FENCED = ErrorCode.FENCED_INSTANCE_ID
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
ILLEGAL = ErrorCode.ILLEGAL_GENERATION
BOTH = (("range", b"r"), ("sticky", b"s"))
MODERN = ("2.8", "3.9")


# -- states -------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", list(GroupState))
@pytest.mark.parametrize("target", list(GroupState))
def test_only_the_transitions_in_the_table_are_possible(
    rig: GroupRig, state: GroupState, target: GroupState
) -> None:
    """DP-135: a group changes state only along the transitions of the table."""
    rig.commit()
    group = rig.group
    group.state = state
    if state in PREVIOUS_STATES[target]:
        rig.host.advance(5)
        group.transition_to(target)
        assert (group.state, group.state_timestamp_ms) == (target, rig.host.now_ms())
    else:
        with pytest.raises(InvariantError):
            group.transition_to(target)


def test_a_group_passes_through_all_states(rig: GroupRig) -> None:
    """DP-135: Empty, PreparingRebalance, CompletingRebalance, Stable, Empty, Dead."""
    seen = []
    rig.host.state_listener = lambda path, old, new: seen.append((path, old, new))
    rig.join("a")
    rig.host.advance(0)
    rig.sync("a", {"a": b"all"})
    rig.leave("a")
    rig.host.advance(600_000)
    assert [new for path, _, new in seen if path == "groups/group/state"] == [
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "PreparingRebalance",
        "Empty",
        "Dead",
    ]
    assert [new for path, _, new in seen if path == "groups/group/generation"] == [1, 2]
    member = rig.ids["a"]
    assert [new for path, _, new in seen if path == "groups/group/members"] == [(member,), ()]


# -- joining ------------------------------------------------------------------------------------


def test_the_first_member_becomes_leader_and_gets_the_list_of_members(rig: GroupRig) -> None:
    """DP-135: only the leader gets the members, with their metadata of the selected protocol."""
    rig.join("a", protocols=BOTH)
    rig.join("b", protocols=BOTH)
    rig.host.advance(0)
    a, b = rig.ids["a"], rig.ids["b"]
    assert rig.answers["a"] == JoinGroupResponse(
        NONE,
        a,
        1,
        "consumer",
        "range",
        a,
        (JoinGroupMember(a, None, b"r"), JoinGroupMember(b, None, b"r")),
    )
    assert rig.answers["b"] == JoinGroupResponse(NONE, b, 1, "consumer", "range", a)
    assert a.startswith("a-")
    assert len(a) == len("a-") + 36


def test_a_newcomer_waits_until_the_others_have_joined_again(rig: GroupRig) -> None:
    rig.stable("a")
    assert rig.join("b") is None
    assert rig.heartbeat("a") == REBALANCE
    answer = rig.join("a")
    assert answer is not None
    assert (answer.generation, len(answer.members)) == (2, 2)
    assert rig.answers["b"].generation == 2


def test_a_member_that_does_not_rejoin_is_removed_after_the_longest_rebalance_timeout(
    rig: GroupRig,
) -> None:
    rig.stable("a", "b", rebalance_ms=20_000, session_ms=30_000)
    rig.join("c", rebalance_ms=5_000, session_ms=30_000)
    rig.join("a", rebalance_ms=20_000, session_ms=30_000)
    rig.host.advance(19_999)
    assert "c" not in rig.answers
    rig.host.advance(1)
    assert rig.answers["c"].generation == 2
    assert sorted(rig.group.members) == sorted([rig.ids["a"], rig.ids["c"]])
    assert rig.heartbeat("b") == UNKNOWN


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_the_first_rebalance_waits_for_others_since_0_11(version: str) -> None:
    """KIP-134: the first rebalance waits for a delay that each new member extends, up to the
    rebalance timeout."""
    rig = GroupRig(version, group_initial_rebalance_delay_ms=3000)
    if version == "0.10":
        answer = rig.join("a")
        assert answer is not None
        assert answer.generation == 1
        return
    rig.join("a", rebalance_ms=7000)
    rig.host.advance(2999)
    rig.join("b", rebalance_ms=7000)
    rig.host.advance(1 + 2999)
    assert rig.answers == {}
    rig.join("c", rebalance_ms=7000)
    rig.host.advance(1 + 999)
    assert rig.answers == {}
    rig.host.advance(1)
    assert {name: answer.generation for name, answer in rig.answers.items()} == {
        "a": 1,
        "b": 1,
        "c": 1,
    }


def test_the_first_member_does_not_extend_the_initial_rebalance(rig: GroupRig) -> None:
    rig = GroupRig(group_initial_rebalance_delay_ms=3000)
    rig.join("a")
    rig.host.advance(3000)
    assert rig.answers["a"].generation == 1


def test_only_a_new_group_extends_the_initial_rebalance_for_each_member(
    rig: GroupRig,
) -> None:
    """KIP-134: a group that became empty waits for the delay once, as ``GroupCoordinator`` extends
    it only in generation 0 (``addMemberAndRebalance``)."""
    rig = GroupRig(group_initial_rebalance_delay_ms=3000)
    rig.join("a")
    rig.host.advance(3000)
    rig.leave("a")
    assert (rig.state, rig.group.generation) == ("Empty", 2)
    rig.ids.clear()
    rig.join("a")
    rig.host.advance(2999)
    rig.join("b")
    assert rig.answers == {}
    rig.host.advance(1)
    assert {name: answer.generation for name, answer in rig.answers.items()} == {"a": 3, "b": 3}


@pytest.mark.parametrize("session_ms", [999, 300_001, 1_800_001])
@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_sessions_have_bounds(version: str, session_ms: int) -> None:
    """``group.max.session.timeout.ms`` is 5 minutes until 2.2, 30 afterwards."""
    rig = GroupRig(version)
    answer = rig.join("a", session_ms=session_ms)
    if session_ms == 300_001 and version in MODERN:
        assert answer is None
    else:
        assert answer is not None
        assert answer.error == ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize(("version", "generation"), [("0.10", 0), ("1.1", 0), ("2.8", -1)])
def test_a_failed_join_has_no_generation(version: str, generation: int) -> None:
    rig = GroupRig(version)
    assert rig.join("a", member_id="a-1") == JoinGroupResponse(UNKNOWN, "a-1", generation)


def test_a_group_needs_a_name(rig: GroupRig) -> None:
    answer = rig.join("a", group="")
    assert error_of(answer) == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("protocols", [(), (("other", b""),)])
def test_members_have_a_protocol_in_common(
    rig: GroupRig, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    rig.stable("a")
    wrong = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error_of(rig.join("b", protocols=protocols)) == wrong
    assert error_of(rig.join("b", protocol_type="connect")) == wrong
    assert error_of(GroupRig().join("a", protocols=())) == wrong
    assert error_of(GroupRig().join("a", protocol_type="")) == wrong


def test_the_commonly_supported_protocol_with_most_votes_is_chosen(rig: GroupRig) -> None:
    """Each member votes for the first protocol in its list that all support; among equals the first
    one voted for wins."""
    sticky_first = tuple(reversed(BOTH))
    rig.join("a", protocols=(("own", b""), *BOTH))
    rig.join("b", protocols=sticky_first)
    rig.join("c", protocols=sticky_first)
    rig.host.advance(0)
    assert rig.group.protocol == "sticky"
    other = GroupRig()
    other.join("a", protocols=BOTH)
    other.join("b", protocols=sticky_first)
    other.host.advance(0)
    assert other.group.protocol == "range"


def test_the_protocols_of_departed_members_no_longer_count(rig: GroupRig) -> None:
    rig.stable("a", "b", protocols=(("range", b""),))
    rig.leave("a", "b")
    assert rig.join("c", protocols=(("other", b""),)) is None
    rig.host.advance(0)
    assert rig.answers["c"].protocol == "other"


# -- member ids ---------------------------------------------------------------------------------


def test_a_member_is_given_its_id_first(rig: GroupRig) -> None:
    """KIP-394: a member is given its id first, so that a client that retries does not become two
    members."""
    answer = rig.join("a", needs_id=True)
    assert answer is not None
    assert answer.error == ErrorCode.MEMBER_ID_REQUIRED
    assert rig.state == "Empty"
    assert rig.join("a", needs_id=True) is None
    rig.host.advance(0)
    assert rig.answers["a"].generation == 1


def test_an_id_that_is_not_used_is_forgotten(rig: GroupRig) -> None:
    """An unused member id is forgotten after the session timeout; a rebalance waits for it until
    then."""
    rig.stable("a")
    rig.join("b", needs_id=True, session_ms=5000)
    rig.join("a")
    rig.host.advance(4999)
    assert "a" not in rig.answers
    rig.host.advance(1)
    assert rig.answers["a"].generation == 2
    assert error_of(rig.join("b")) == UNKNOWN


def test_a_pending_member_may_leave(rig: GroupRig) -> None:
    rig.stable("a")
    rig.join("b", needs_id=True)
    rig.join("a")
    assert "a" not in rig.answers
    assert rig.leave("b").members[0].error == NONE
    assert rig.answers["a"].generation == 2


def test_an_unknown_member_id_cannot_join(rig: GroupRig) -> None:
    rig.stable("a")
    assert error_of(rig.join("b", member_id="b-1")) == UNKNOWN
    assert error_of(GroupRig().join("b", member_id="b-1")) == UNKNOWN


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_new_member_waits_five_minutes_at_most_since_2_2(version: str) -> None:
    """KAFKA-7610: a new member waits at most five minutes, as its client may have gone
    unnoticed."""
    rig = GroupRig(version, group_initial_rebalance_delay_ms=0)
    rig.stable("a", rebalance_ms=900_000, session_ms=200_000)
    rig.join("b", session_ms=10_000)
    for _ in range(4):
        rig.host.advance(75_000)
        rig.heartbeat("a")
    if version in MODERN:
        assert rig.answers["b"].error == UNKNOWN
        assert len(rig.group.members) == 1
    else:
        assert "b" not in rig.answers


def test_a_group_has_a_largest_size() -> None:
    """KIP-389: a member that exceeds the maximum size is refused, and its id is forgotten."""
    rig = GroupRig(group_max_size=2)
    rig.stable("a", "b")
    full = ErrorCode.GROUP_MAX_SIZE_REACHED
    assert rig.join("c") == JoinGroupResponse(full, "")
    assert rig.state == "Stable"
    rig.join("a")
    rig.join("b")
    assert error_of(rig.join("c")) == full


def test_a_group_that_is_too_large_when_loaded_shrinks_by_a_rebalance() -> None:
    rig = GroupRig()
    rig.stable("a", "b", "c")
    small = GroupRig(log=rig.log, group_max_size=2)
    small.ids = rig.ids
    assert small.state == "PreparingRebalance"
    small.join("a")
    small.join("b")
    assert error_of(small.join("c")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert small.answers["a"].generation == 2
    assert len(small.group.members) == 2


# -- joining again ------------------------------------------------------------------------------


def test_a_follower_that_rejoins_unchanged_gets_the_current_generation(rig: GroupRig) -> None:
    rig.stable("a", "b")
    generation = rig.group.generation
    answer = rig.join("b")
    assert answer is not None
    assert (answer.generation, answer.members) == (generation, ())
    assert rig.state == "Stable"


def test_a_leader_that_joins_again_starts_a_rebalance(rig: GroupRig) -> None:
    """A leader that rejoins starts a rebalance, as it may have seen changes outside the metadata,
    such as new partitions."""
    rig.stable("a", "b")
    assert rig.join("a", reason="new partitions") is None
    assert rig.state == "PreparingRebalance"
    assert rig.lines[-1].endswith("joins again (new partitions)")


def test_a_member_whose_metadata_changed_starts_a_rebalance(rig: GroupRig) -> None:
    rig.stable("a", "b")
    assert rig.join("b", protocols=(("range", b"other"),)) is None
    assert rig.state == "PreparingRebalance"


def test_a_repeated_join_before_the_assignment_gets_the_same_answer(rig: GroupRig) -> None:
    rig.join("a")
    rig.host.advance(0)
    first = rig.answers["a"]
    assert rig.join("a") == first
    assert rig.state == "CompletingRebalance"
    assert rig.join("a", protocols=(("range", b"other"),)) is not None
    assert rig.group.generation == 2


@pytest.mark.parametrize(("version", "session_ms"), [("3.9", 20_000), ("2.8", 10_000)])
def test_a_rejoining_member_may_change_its_timeouts_since_3_4(
    version: str, session_ms: int
) -> None:
    """KAFKA-14009: since 3.4 a member that rejoins may change its timeouts."""
    rig = GroupRig(version)
    rig.stable("a")
    rig.join("a", session_ms=20_000, rebalance_ms=30_000)
    (member,) = rig.group.members.values()
    assert member.session_timeout_ms == session_ms


@pytest.mark.parametrize(
    ("version", "error"), [("1.1", UNKNOWN), ("2.8", ErrorCode.INVALID_GROUP_ID)]
)
def test_a_heartbeat_without_a_group(version: str, error: ErrorCode) -> None:
    """Before 2.0 ``GroupCoordinator`` refused the empty group name only in joins."""
    rig = GroupRig(version)
    assert rig.coordinator.heartbeat(HeartbeatRequest("", 1, "m", None)) == error
