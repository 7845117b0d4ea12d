"""Groups as administrators see them: described, listed and deleted, also some of their offsets."""

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
from fakekafka.tests.support.group_rig import AUDIT, NONE, ORDERS, GroupRig

NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND
NOT_MINE = ErrorCode.NOT_COORDINATOR


def described(rig: GroupRig, group_id: str = "group") -> DescribedGroup:
    request = DescribeGroupsRequest((group_id,))
    (group,) = rig.coordinator.describe_groups(request).groups
    return group


def listed(rig: GroupRig, *states: str, types: tuple[str, ...] = ()) -> list[str]:
    response = rig.coordinator.list_groups(ListGroupsRequest(states, types))
    assert response.error == NONE
    return [group.group_id for group in response.groups]


def deleted(rig: GroupRig, *group_ids: str) -> dict[str, ErrorCode]:
    request = DeleteGroupsRequest(group_ids)
    return dict(rig.coordinator.delete_groups(request).groups)


def test_an_unknown_group_is_described_as_dead_without_an_error(rig: GroupRig) -> None:
    assert described(rig) == DescribedGroup(NONE, "group", "Dead")
    assert described(rig, "").error == NONE
    rig.follow()
    assert described(rig) == DescribedGroup(NOT_MINE, "group")


def test_listing_groups_does_not_compare_each_state_with_each_group() -> None:
    """A list of groups takes time linear in the numbers of groups and of requested states."""
    compared = 0

    class Counted(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str(self) == other

        __hash__ = str.__hash__

    rig = GroupRig("2.8")
    rig.join("a")
    assert listed(rig, *(Counted(f"no state {number}") for number in range(100))) == []
    assert compared < 10


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_only_a_stable_group_shows_protocol_metadata_and_assignments(version: str) -> None:
    """Only a stable group shows protocol metadata and assignments; CompletingRebalance was called
    AwaitingSync until 1.1."""
    rig = GroupRig(version)
    rig.join("a")
    rig.host.advance(0)
    member = DescribedMember(rig.ids["a"], None, "a", "/127.0.0.1")
    name = "AwaitingSync" if version == "0.10" else "CompletingRebalance"
    assert described(rig) == DescribedGroup(NONE, "group", name, "consumer", "", (member,))
    rig.sync("a", {"a": b"all"})
    stable = DescribedMember(rig.ids["a"], None, "a", "/127.0.0.1", b"m", b"all")
    assert described(rig) == DescribedGroup(NONE, "group", "Stable", "consumer", "range", (stable,))
    rig.leave("a")
    assert described(rig) == DescribedGroup(NONE, "group", "Empty", "consumer", "")


def test_groups_are_listed_by_state_and_type(rig: GroupRig) -> None:
    """KIP-518, KIP-848: classic groups are the only ones."""
    rig.stable("a")
    rig.commit(group="simple")
    answer = rig.coordinator.list_groups(ListGroupsRequest())
    assert answer.groups == (
        ListedGroup("group", "consumer", "Stable"),
        ListedGroup("simple", "", "Empty"),
    )
    assert listed(rig, "Empty", "Dead") == ["simple"]
    assert listed(rig, types=("Classic",)) == ["group", "simple"]
    assert listed(rig, types=("consumer",)) == []


@pytest.mark.parametrize(("version", "found"), [("3.9", ["group"]), ("2.8", [])])
def test_listed_states_may_be_in_upper_or_lower_case_since_3_8(
    version: str, found: list[str]
) -> None:
    """KAFKA-16095: since 3.8 the states in a request may be in upper or lower case."""
    rig = GroupRig(version)
    rig.commit()
    assert listed(rig, "eMPTY") == found


def test_a_list_while_groups_are_loaded_may_lack_some(rig: GroupRig) -> None:
    other = GroupRig(lead=False, log=rig.log)
    rig.commit()
    hosted = other.replicas.lead(0, 0, other.log)
    seen = []
    other.coordinator.leadership_changed([hosted], [])
    list_groups = other.coordinator.list_groups
    other.host.call_later_ms(0, lambda: seen.append(list_groups(ListGroupsRequest())))
    other.host.advance(0)
    assert seen[0].error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_only_groups_without_members_are_deleted(rig: GroupRig) -> None:
    """KIP-229: only groups without members are deleted, with their offsets, also for the next
    coordinator."""
    rig.stable("a")
    rig.commit(member="a", generation=1)
    rig.commit(group="simple")
    assert deleted(rig, "group", "simple", "nobody", "simple") == {
        "group": ErrorCode.NON_EMPTY_GROUP,
        "simple": NONE,
        "nobody": NOT_FOUND,
    }
    assert rig.offset(group="simple") == -1
    rig.leave("a")
    assert deleted(rig, "group") == {"group": NONE}
    assert GroupRig(log=rig.log).coordinator.groups == {}
    rig.follow()
    assert deleted(rig, "group") == {"group": NOT_MINE}


@pytest.mark.parametrize(
    ("version", "error"), [("3.9", NOT_FOUND), ("1.1", ErrorCode.INVALID_GROUP_ID)]
)
def test_the_group_without_a_name_can_be_deleted_since_2_0(version: str, error: ErrorCode) -> None:
    assert deleted(GroupRig(version), "") == {"": error}


def delete_offsets(rig: GroupRig, *partitions: TopicPartition) -> OffsetDeleteResponse:
    request = OffsetDeleteRequest("group", partitions)
    return rig.coordinator.delete_offsets(request)


def subscription(topic: str) -> bytes:
    name = len(topic).to_bytes(2, "big") + topic.encode()
    return b"\x00\x01\x00\x00\x00\x01" + name + b"\xff\xff\xff\xff"


def test_offsets_of_topics_that_members_read_are_not_deleted(rig: GroupRig) -> None:
    """KIP-496: offsets of topics that members read are not deleted."""
    rig.stable("a", protocols=(("range", subscription("orders")),))
    both = (OffsetCommitPartition(ORDERS, 7), OffsetCommitPartition(AUDIT, 8))
    rig.commit(*both, member="a", generation=1)
    unknown = TopicPartition("nope", 0)
    response = delete_offsets(rig, ORDERS, AUDIT, unknown)
    assert response.error == NONE
    assert dict(response.partitions) == {
        ORDERS: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        AUDIT: NONE,
        unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert [c.topic_partition for c in rig.fetch()] == [ORDERS]
    rig.leave("a")
    assert dict(delete_offsets(rig, ORDERS).partitions) == {ORDERS: NONE}
    assert rig.coordinator.groups == {}


def test_offsets_of_groups_that_are_no_consumers_need_an_empty_group(rig: GroupRig) -> None:
    assert delete_offsets(rig, ORDERS).error == NOT_FOUND
    rig.join("a", protocol_type="connect")
    assert delete_offsets(rig, ORDERS) == OffsetDeleteResponse(ErrorCode.NON_EMPTY_GROUP)


def test_offsets_are_not_deleted_if_the_metadata_of_a_member_cannot_be_parsed(
    rig: GroupRig,
) -> None:
    rig.stable("a")
    rig.commit(member="a", generation=1)
    response = delete_offsets(rig, ORDERS)
    assert dict(response.partitions) == {ORDERS: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
