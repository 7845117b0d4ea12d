"""Members of a group: joining, syncing, beating, leaving; each error where Kafka has it."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.groups.group import PREVIOUS_STATES, GroupState
from fakekafka.protocol.errors import ErrorCode, InvariantError
from fakekafka.protocol.groups import HeartbeatRequest, JoinGroupMember, JoinGroupResponse
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.group_desk import NONE, GroupDesk, error_of

UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
FENCED = ErrorCode.FENCED_INSTANCE_ID
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
ILLEGAL = ErrorCode.ILLEGAL_GENERATION
BOTH = (("range", b"r"), ("sticky", b"s"))
MODERN = ("2.8", "3.9")


# -- states -------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", list(GroupState))
@pytest.mark.parametrize("target", list(GroupState))
def test_only_the_ways_of_the_table_lead_from_state_to_state(
    desk: GroupDesk, state: GroupState, target: GroupState
) -> None:
    """DP-135."""
    desk.commit()
    group = desk.group
    group.state = state
    if state in PREVIOUS_STATES[target]:
        desk.host.advance(5)
        group.transition_to(target)
        assert (group.state, group.state_timestamp_ms) == (target, desk.host.now_ms())
    else:
        with pytest.raises(InvariantError):
            group.transition_to(target)


def test_a_group_goes_through_its_life(desk: GroupDesk) -> None:
    """DP-135: Empty, PreparingRebalance, CompletingRebalance, Stable, Empty, Dead."""
    seen = []
    desk.host.state_listener = lambda path, old, new: seen.append((path, old, new))
    desk.join("a")
    desk.host.advance(0)
    desk.sync("a", {"a": b"all"})
    desk.leave("a")
    desk.host.advance(600_000)
    assert [new for path, _, new in seen if path == "groups/group/state"] == [
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "PreparingRebalance",
        "Empty",
        "Dead",
    ]
    assert [new for path, _, new in seen if path == "groups/group/generation"] == [1, 2]
    member = desk.ids["a"]
    assert [new for path, _, new in seen if path == "groups/group/members"] == [(member,), ()]


# -- joining ------------------------------------------------------------------------------------


def test_the_first_to_join_leads_and_learns_who_the_others_are(desk: GroupDesk) -> None:
    """DP-135: only the leader gets the members, with their metadata of the chosen protocol."""
    desk.join("a", protocols=BOTH)
    desk.join("b", protocols=BOTH)
    desk.host.advance(0)
    a, b = desk.ids["a"], desk.ids["b"]
    assert desk.answers["a"] == JoinGroupResponse(
        NONE,
        a,
        1,
        "consumer",
        "range",
        a,
        (JoinGroupMember(a, None, b"r"), JoinGroupMember(b, None, b"r")),
    )
    assert desk.answers["b"] == JoinGroupResponse(NONE, b, 1, "consumer", "range", a)
    assert a.startswith("a-")
    assert len(a) == len("a-") + 36


def test_a_newcomer_waits_until_the_others_have_joined_again(desk: GroupDesk) -> None:
    desk.stable("a")
    assert desk.join("b") is None
    assert desk.heartbeat("a") == REBALANCE
    answer = desk.join("a")
    assert answer is not None
    assert (answer.generation, len(answer.members)) == (2, 2)
    assert desk.answers["b"].generation == 2


def test_who_does_not_join_again_is_dropped_after_the_longest_rebalance_timeout(
    desk: GroupDesk,
) -> None:
    desk.stable("a", "b", rebalance_ms=20_000, session_ms=30_000)
    desk.join("c", rebalance_ms=5_000, session_ms=30_000)
    desk.join("a", rebalance_ms=20_000, session_ms=30_000)
    desk.host.advance(19_999)
    assert "c" not in desk.answers
    desk.host.advance(1)
    assert desk.answers["c"].generation == 2
    assert sorted(desk.group.members) == sorted([desk.ids["a"], desk.ids["c"]])
    assert desk.heartbeat("b") == UNKNOWN


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_the_first_rebalance_waits_for_others_since_0_11(version: str) -> None:
    """KIP-134: the delay, again as long as somebody comes, up to the rebalance timeout."""
    desk = GroupDesk(version, group_initial_rebalance_delay_ms=3000)
    if version == "0.10":
        answer = desk.join("a")
        assert answer is not None
        assert answer.generation == 1
        return
    desk.join("a", rebalance_ms=7000)
    desk.host.advance(2999)
    desk.join("b", rebalance_ms=7000)
    desk.host.advance(1 + 2999)
    assert desk.answers == {}
    desk.join("c", rebalance_ms=7000)
    desk.host.advance(1 + 999)
    assert desk.answers == {}
    desk.host.advance(1)
    assert {name: answer.generation for name, answer in desk.answers.items()} == {
        "a": 1,
        "b": 1,
        "c": 1,
    }


def test_the_very_first_member_prolongs_nothing(desk: GroupDesk) -> None:
    desk = GroupDesk(group_initial_rebalance_delay_ms=3000)
    desk.join("a")
    desk.host.advance(3000)
    assert desk.answers["a"].generation == 1


def test_only_a_group_that_never_had_members_waits_longer_for_each_that_comes(
    desk: GroupDesk,
) -> None:
    """KIP-134: one that became empty waits the delay once: ``GroupCoordinator`` asks for
    generation 0 (``addMemberAndRebalance``)."""
    desk = GroupDesk(group_initial_rebalance_delay_ms=3000)
    desk.join("a")
    desk.host.advance(3000)
    desk.leave("a")
    assert (desk.state, desk.group.generation) == ("Empty", 2)
    desk.ids.clear()
    desk.join("a")
    desk.host.advance(2999)
    desk.join("b")
    assert desk.answers == {}
    desk.host.advance(1)
    assert {name: answer.generation for name, answer in desk.answers.items()} == {"a": 3, "b": 3}


@pytest.mark.parametrize("session_ms", [999, 300_001, 1_800_001])
@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_sessions_have_bounds(version: str, session_ms: int) -> None:
    """``group.max.session.timeout.ms`` is 5 minutes until 2.2, 30 afterwards."""
    desk = GroupDesk(version)
    answer = desk.join("a", session_ms=session_ms)
    if session_ms == 300_001 and version in MODERN:
        assert answer is None
    else:
        assert answer is not None
        assert answer.error == ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize(("version", "generation"), [("0.10", 0), ("1.1", 0), ("2.8", -1)])
def test_a_failed_join_has_no_generation(version: str, generation: int) -> None:
    desk = GroupDesk(version)
    assert desk.join("a", member_id="a-1") == JoinGroupResponse(UNKNOWN, "a-1", generation)


def test_a_group_needs_a_name(desk: GroupDesk) -> None:
    answer = desk.join("a", group="")
    assert error_of(answer) == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("protocols", [(), (("other", b""),)])
def test_members_have_a_protocol_in_common(
    desk: GroupDesk, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    desk.stable("a")
    wrong = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error_of(desk.join("b", protocols=protocols)) == wrong
    assert error_of(desk.join("b", protocol_type="connect")) == wrong
    assert error_of(GroupDesk().join("a", protocols=())) == wrong
    assert error_of(GroupDesk().join("a", protocol_type="")) == wrong


def test_the_protocol_with_most_votes_is_chosen_among_those_all_know(desk: GroupDesk) -> None:
    """Each votes for the first of its list that all support; of equals the first voted for."""
    sticky_first = tuple(reversed(BOTH))
    desk.join("a", protocols=(("own", b""), *BOTH))
    desk.join("b", protocols=sticky_first)
    desk.join("c", protocols=sticky_first)
    desk.host.advance(0)
    assert desk.group.protocol == "sticky"
    other = GroupDesk()
    other.join("a", protocols=BOTH)
    other.join("b", protocols=sticky_first)
    other.host.advance(0)
    assert other.group.protocol == "range"


def test_the_protocols_of_who_has_left_count_no_more(desk: GroupDesk) -> None:
    desk.stable("a", "b", protocols=(("range", b""),))
    desk.leave("a", "b")
    assert desk.join("c", protocols=(("other", b""),)) is None
    desk.host.advance(0)
    assert desk.answers["c"].protocol == "other"


# -- member ids ---------------------------------------------------------------------------------


def test_a_member_is_given_its_id_first(desk: GroupDesk) -> None:
    """KIP-394: so that a client that retries does not become two members."""
    answer = desk.join("a", needs_id=True)
    assert answer is not None
    assert answer.error == ErrorCode.MEMBER_ID_REQUIRED
    assert desk.state == "Empty"
    assert desk.join("a", needs_id=True) is None
    desk.host.advance(0)
    assert desk.answers["a"].generation == 1


def test_an_id_that_is_not_used_is_forgotten(desk: GroupDesk) -> None:
    """Within the session timeout; a rebalance waits for it meanwhile."""
    desk.stable("a")
    desk.join("b", needs_id=True, session_ms=5000)
    desk.join("a")
    desk.host.advance(4999)
    assert "a" not in desk.answers
    desk.host.advance(1)
    assert desk.answers["a"].generation == 2
    assert error_of(desk.join("b")) == UNKNOWN


def test_who_has_an_id_only_may_leave(desk: GroupDesk) -> None:
    desk.stable("a")
    desk.join("b", needs_id=True)
    desk.join("a")
    assert "a" not in desk.answers
    assert desk.leave("b").members[0].error == NONE
    assert desk.answers["a"].generation == 2


def test_nobody_joins_under_an_id_that_was_not_given(desk: GroupDesk) -> None:
    desk.stable("a")
    assert error_of(desk.join("b", member_id="b-1")) == UNKNOWN
    assert error_of(GroupDesk().join("b", member_id="b-1")) == UNKNOWN


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_new_member_waits_five_minutes_at_most_since_2_2(version: str) -> None:
    """KAFKA-7610: its client may have gone, and nobody else would notice."""
    desk = GroupDesk(version, group_initial_rebalance_delay_ms=0)
    desk.stable("a", rebalance_ms=900_000, session_ms=200_000)
    desk.join("b", session_ms=10_000)
    for _ in range(4):
        desk.host.advance(75_000)
        desk.heartbeat("a")
    if version in MODERN:
        assert desk.answers["b"].error == UNKNOWN
        assert len(desk.group.members) == 1
    else:
        assert "b" not in desk.answers


def test_a_group_has_a_largest_size() -> None:
    """KIP-389: who comes too late is turned away, and not known under its id any more."""
    desk = GroupDesk(group_max_size=2)
    desk.stable("a", "b")
    full = ErrorCode.GROUP_MAX_SIZE_REACHED
    assert desk.join("c") == JoinGroupResponse(full, "")
    assert desk.state == "Stable"
    desk.join("a")
    desk.join("b")
    assert error_of(desk.join("c")) == full


def test_a_group_that_is_too_large_when_loaded_shrinks_by_a_rebalance() -> None:
    desk = GroupDesk()
    desk.stable("a", "b", "c")
    small = GroupDesk(log=desk.log, group_max_size=2)
    small.ids = desk.ids
    assert small.state == "PreparingRebalance"
    small.join("a")
    small.join("b")
    assert error_of(small.join("c")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert small.answers["a"].generation == 2
    assert len(small.group.members) == 2


# -- joining again ------------------------------------------------------------------------------


def test_who_joins_again_unchanged_gets_the_present_generation(desk: GroupDesk) -> None:
    desk.stable("a", "b")
    generation = desk.group.generation
    answer = desk.join("b")
    assert answer is not None
    assert (answer.generation, answer.members) == (generation, ())
    assert desk.state == "Stable"


def test_a_leader_that_joins_again_starts_a_rebalance(desk: GroupDesk) -> None:
    """It may have seen what the metadata does not show, such as new partitions."""
    desk.stable("a", "b")
    assert desk.join("a", reason="new partitions") is None
    assert desk.state == "PreparingRebalance"
    assert desk.lines[-1].endswith("joins again (new partitions)")


def test_a_member_whose_metadata_changed_starts_a_rebalance(desk: GroupDesk) -> None:
    desk.stable("a", "b")
    assert desk.join("b", protocols=(("range", b"other"),)) is None
    assert desk.state == "PreparingRebalance"


def test_who_did_not_get_the_answer_may_ask_again_before_the_assignment(desk: GroupDesk) -> None:
    desk.join("a")
    desk.host.advance(0)
    first = desk.answers["a"]
    assert desk.join("a") == first
    assert desk.state == "CompletingRebalance"
    assert desk.join("a", protocols=(("range", b"other"),)) is not None
    assert desk.group.generation == 2


@pytest.mark.parametrize(("version", "session_ms"), [("3.9", 20_000), ("2.8", 10_000)])
def test_a_rejoining_member_may_change_its_timeouts_since_3_4(
    version: str, session_ms: int
) -> None:
    """KAFKA-14009."""
    desk = GroupDesk(version)
    desk.stable("a")
    desk.join("a", session_ms=20_000, rebalance_ms=30_000)
    (member,) = desk.group.members.values()
    assert member.session_timeout_ms == session_ms


@pytest.mark.parametrize(
    ("version", "error"), [("1.1", UNKNOWN), ("2.8", ErrorCode.INVALID_GROUP_ID)]
)
def test_a_heartbeat_without_a_group(version: str, error: ErrorCode) -> None:
    """Before 2.0 ``GroupCoordinator`` refused the empty name only of those who join."""
    desk = GroupDesk(version)
    assert desk.coordinator.heartbeat(HeartbeatRequest("", 1, "m", None)) == error
