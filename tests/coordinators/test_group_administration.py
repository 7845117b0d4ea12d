"""Groups as administrators see them: described, listed, deleted, some of their offsets deleted."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import (
    DeleteGroupsRequest,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    ListedGroup,
    ListGroupsRequest,
    OffsetCommitPartition,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.group_desk import AUDIT, NONE, ORDERS, GroupDesk

NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND
NOT_MINE = ErrorCode.NOT_COORDINATOR


def described(desk: GroupDesk, group_id: str = "group") -> DescribedGroup:
    request = DescribeGroupsRequest((group_id,))
    (group,) = desk.coordinator.describe_groups(request).groups
    return group


def listed(desk: GroupDesk, *states: str, types: tuple[str, ...] = ()) -> list[str]:
    response = desk.coordinator.list_groups(ListGroupsRequest(states, types))
    assert response.error == NONE
    return [group.group_id for group in response.groups]


def deleted(desk: GroupDesk, *group_ids: str) -> dict[str, ErrorCode]:
    request = DeleteGroupsRequest(group_ids)
    return dict(desk.coordinator.delete_groups(request).groups)


def test_a_group_that_nobody_knows_is_dead_which_is_no_error(desk: GroupDesk) -> None:
    assert described(desk) == DescribedGroup(NONE, "group", "Dead")
    assert described(desk, "").error == NONE
    desk.follow()
    assert described(desk) == DescribedGroup(NOT_MINE, "group")


def test_a_list_does_not_look_at_each_state_for_each_group() -> None:
    """Thousands of both would be millions of comparisons."""
    compared = 0

    class Counted(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str(self) == other

        __hash__ = str.__hash__

    desk = GroupDesk("2.8")
    desk.join("a")
    assert listed(desk, *(Counted(f"no state {number}") for number in range(100))) == []
    assert compared < 10


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_only_a_stable_group_shows_protocol_metadata_and_assignments(version: str) -> None:
    """CompletingRebalance was called AwaitingSync until 1.1."""
    desk = GroupDesk(version)
    desk.join("a")
    desk.host.advance(0)
    member = DescribedMember(desk.ids["a"], None, "a", "/127.0.0.1")
    name = "AwaitingSync" if version == "0.10" else "CompletingRebalance"
    assert described(desk) == DescribedGroup(NONE, "group", name, "consumer", "", (member,))
    desk.sync("a", {"a": b"all"})
    stable = DescribedMember(desk.ids["a"], None, "a", "/127.0.0.1", b"m", b"all")
    assert described(desk) == DescribedGroup(
        NONE, "group", "Stable", "consumer", "range", (stable,)
    )
    desk.leave("a")
    assert described(desk) == DescribedGroup(NONE, "group", "Empty", "consumer", "")


def test_groups_are_listed_by_state_and_type(desk: GroupDesk) -> None:
    """KIP-518, KIP-848: classic groups are the only ones."""
    desk.stable("a")
    desk.commit(group="simple")
    answer = desk.coordinator.list_groups(ListGroupsRequest())
    assert answer.groups == (
        ListedGroup("group", "consumer", "Stable"),
        ListedGroup("simple", "", "Empty"),
    )
    assert listed(desk, "Empty", "Dead") == ["simple"]
    assert listed(desk, types=("Classic",)) == ["group", "simple"]
    assert listed(desk, types=("consumer",)) == []


@pytest.mark.parametrize(("version", "found"), [("3.9", ["group"]), ("2.8", [])])
def test_states_are_asked_for_in_any_case_since_3_8(version: str, found: list[str]) -> None:
    """KAFKA-16095."""
    desk = GroupDesk(version)
    desk.commit()
    assert listed(desk, "eMPTY") == found


def test_a_list_while_groups_are_loaded_may_lack_some(desk: GroupDesk) -> None:
    other = GroupDesk(lead=False, log=desk.log)
    desk.commit()
    hosted = other.replicas.lead(0, 0, other.log)
    seen = []
    other.coordinator.leadership_changed([hosted], [])
    list_groups = other.coordinator.list_groups
    other.host.call_later_ms(0, lambda: seen.append(list_groups(ListGroupsRequest())))
    other.host.advance(0)
    assert seen[0].error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_only_groups_without_members_are_deleted(desk: GroupDesk) -> None:
    """KIP-229: with their offsets, for the next coordinator, too."""
    desk.stable("a")
    desk.commit(member="a", generation=1)
    desk.commit(group="simple")
    assert deleted(desk, "group", "simple", "nobody", "simple") == {
        "group": ErrorCode.NON_EMPTY_GROUP,
        "simple": NONE,
        "nobody": NOT_FOUND,
    }
    assert desk.offset(group="simple") == -1
    desk.leave("a")
    assert deleted(desk, "group") == {"group": NONE}
    assert GroupDesk(log=desk.log).coordinator.groups == {}
    desk.follow()
    assert deleted(desk, "group") == {"group": NOT_MINE}


@pytest.mark.parametrize(
    ("version", "error"), [("3.9", NOT_FOUND), ("1.1", ErrorCode.INVALID_GROUP_ID)]
)
def test_the_group_without_a_name_can_be_deleted_since_2_0(version: str, error: ErrorCode) -> None:
    assert deleted(GroupDesk(version), "") == {"": error}


def delete_offsets(desk: GroupDesk, *partitions: TopicPartition) -> OffsetDeleteResponse:
    request = OffsetDeleteRequest("group", partitions)
    return desk.coordinator.delete_offsets(request)


def subscription(topic: str) -> bytes:
    name = len(topic).to_bytes(2, "big") + topic.encode()
    return b"\x00\x01\x00\x00\x00\x01" + name + b"\xff\xff\xff\xff"


def test_offsets_of_topics_that_members_read_are_not_deleted(desk: GroupDesk) -> None:
    """KIP-496."""
    desk.stable("a", protocols=(("range", subscription("orders")),))
    both = (OffsetCommitPartition(ORDERS, 7), OffsetCommitPartition(AUDIT, 8))
    desk.commit(*both, member="a", generation=1)
    unknown = TopicPartition("nope", 0)
    response = delete_offsets(desk, ORDERS, AUDIT, unknown)
    assert response.error == NONE
    assert dict(response.partitions) == {
        ORDERS: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        AUDIT: NONE,
        unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert [c.topic_partition for c in desk.fetch()] == [ORDERS]
    desk.leave("a")
    assert dict(delete_offsets(desk, ORDERS).partitions) == {ORDERS: NONE}
    assert desk.coordinator.groups == {}


def test_offsets_of_groups_that_are_no_consumers_need_an_empty_group(desk: GroupDesk) -> None:
    assert delete_offsets(desk, ORDERS).error == NOT_FOUND
    desk.join("a", protocol_type="connect")
    assert delete_offsets(desk, ORDERS) == OffsetDeleteResponse(ErrorCode.NON_EMPTY_GROUP)


def test_members_whose_metadata_nobody_understands_may_read_anything(desk: GroupDesk) -> None:
    desk.stable("a")
    desk.commit(member="a", generation=1)
    response = delete_offsets(desk, ORDERS)
    assert dict(response.partitions) == {ORDERS: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
