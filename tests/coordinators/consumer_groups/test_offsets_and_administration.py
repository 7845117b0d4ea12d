"""Offsets of groups of the consumer protocol (KIP-848), and the answers to administrators."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.consumer_groups.coordinator import ConsumerGroupCoordinator
from fakekafka.coordinators.groups.offsets import TransactionalCommit
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import (
    DeleteGroupsRequest,
    DescribedGroup,
    DescribeGroupsRequest,
    ListedGroup,
    ListGroupsRequest,
    OffsetCommitPartition,
    OffsetDeleteRequest,
)
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.consumer_group_rig import ConsumerGroupRig
from fakekafka.tests.support.group_rig import GroupRig

NONE = ErrorCode.NONE
ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def rig() -> ConsumerGroupRig:
    return ConsumerGroupRig()


def test_a_member_commits_in_its_epoch_only(rig: ConsumerGroupRig) -> None:
    """A commit in another epoch is refused with STALE_MEMBER_EPOCH, an error that older versions of
    the request lack."""
    a = rig.member("a").join()
    assert rig.commit_as(a) is NONE
    assert rig.offset() == 5
    assert rig.commit_as(a, 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert rig.commit_as(a, api_version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert rig.commit_as(rig.member("b"), 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.commit() is ErrorCode.UNKNOWN_MEMBER_ID
    a.leave()
    assert rig.commit() is NONE


def test_a_member_fetches_in_its_epoch_only(rig: ConsumerGroupRig) -> None:
    """A member fetches offsets only in its epoch; a request without a member, as from an
    administrator, is always answered."""
    a = rig.member("a").join()
    assert rig.fetch_as(a) is NONE
    assert rig.fetch_as(a, 7) is ErrorCode.STALE_MEMBER_EPOCH
    assert rig.fetch_as(rig.member("b"), 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.fetch(ORDERS)[0].error is NONE


def test_a_commit_to_no_group_names_the_group(rig: ConsumerGroupRig) -> None:
    """A commit to an unknown group gets GROUP_ID_NOT_FOUND since version 9 of the request,
    ILLEGAL_GENERATION before."""
    a = rig.member("a")
    assert rig.commit_as(a, 1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert rig.commit_as(a, 1, api_version=8) is ErrorCode.ILLEGAL_GENERATION


def test_a_commit_in_a_transaction_has_its_own_error(rig: ConsumerGroupRig) -> None:
    a = rig.member("a").join()
    partitions = (OffsetCommitPartition(ORDERS, 9),)
    answers: list[dict[TopicPartition, ErrorCode]] = []
    for epoch in (7, 1):
        commit = TransactionalCommit("group", 5, 0, partitions, a.member_id, None, epoch)
        rig.coordinator.commit_in_transaction(commit, answers.append)
    assert answers == [{ORDERS: ErrorCode.ILLEGAL_GENERATION}, {ORDERS: NONE}]
    rig.coordinator.transaction_completed(5, [0], is_commit=True)
    rig.host.advance(0)
    assert rig.offset() == 9


def test_a_group_is_described_with_current_and_target_assignments(rig: ConsumerGroupRig) -> None:
    a = rig.member("a", server_assignor="range").join()
    rig.member("b").join()
    a.beat()
    group = rig.described()
    assert (group.state, group.group_epoch, group.assignment_epoch, group.assignor) == (
        "Reconciling",
        2,
        2,
        "range",
    )
    (first, second) = group.members
    assert (first.member_id, first.member_epoch, first.topics) == ("id-a", 1, ("orders",))
    assert [topic.partitions for topic in first.assignment] == [(0, 1)]
    assert second.assignment == ()
    assert [(t.topic, t.partitions) for t in second.target_assignment] == [("orders", (2, 3))]


def test_describe_requests_of_the_other_protocol_do_not_find_the_group(
    rig: ConsumerGroupRig,
) -> None:
    """DescribeGroups does not find consumer groups; ConsumerGroupDescribe does not find classic
    groups."""
    rig.member("a").join()
    describe = rig.coordinator.describe_groups
    assert describe(DescribeGroupsRequest(("group",))).groups == (
        DescribedGroup(NONE, "group", "Dead"),
    )
    rig.join("c", group="old")
    assert rig.described("old").error is ErrorCode.GROUP_ID_NOT_FOUND


def test_groups_are_listed_by_state_and_type(rig: ConsumerGroupRig) -> None:
    rig.member("a").join()
    rig.join("c", group="old")
    rig.host.advance(0)

    def listed(**wanted: tuple[str, ...]) -> tuple[ListedGroup, ...]:
        return rig.coordinator.list_groups(ListGroupsRequest(**wanted)).groups

    modern = ListedGroup("group", "consumer", "Stable", "consumer")
    classic = ListedGroup("old", "consumer", "CompletingRebalance")
    assert listed() == (classic, modern)
    assert listed(types=("Consumer",)) == listed(states=("stable",)) == (modern,)
    assert listed(types=("classic",)) == (classic,)


def test_a_group_without_members_can_be_deleted(rig: ConsumerGroupRig) -> None:
    """A group without members is deleted with its offsets, and another coordinator does not find
    it."""
    a = rig.member("a").join()
    rig.commit_as(a)
    delete = rig.coordinator.delete_groups
    request = DeleteGroupsRequest(("group",))
    assert delete(request).groups == (("group", ErrorCode.NON_EMPTY_GROUP),)
    a.leave()
    assert delete(request).groups == (("group", NONE),)
    assert delete(request).groups == (("group", ErrorCode.GROUP_ID_NOT_FOUND),)
    other = ConsumerGroupRig(log=rig.log)
    assert other.described().error is ErrorCode.GROUP_ID_NOT_FOUND
    assert other.offset() == -1


def test_offsets_are_deleted_of_topics_that_no_member_reads(rig: ConsumerGroupRig) -> None:
    rig.member("a").join()
    request = OffsetDeleteRequest("group", (ORDERS, TopicPartition("audit", 0)))
    response = rig.coordinator.delete_offsets(request)
    assert dict(response.partitions) == {
        ORDERS: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        TopicPartition("audit", 0): NONE,
    }


def test_offsets_expire_by_topic_and_then_the_group() -> None:
    """Offsets of topics that members read do not expire; an empty group without offsets is
    removed."""
    rig = ConsumerGroupRig(offsets_retention_minutes=60)
    a = rig.member("a").join()
    rig.commit_as(a)
    for _ in range(2 * 400):
        rig.host.advance(9000)
        a.send(1)
    assert rig.offset() == 5
    a.leave()
    rig.host.advance(3_600_000)
    assert rig.offset() == -1
    assert rig.described().error is ErrorCode.GROUP_ID_NOT_FOUND


def test_without_the_switch_the_records_are_passed_over(rig: ConsumerGroupRig) -> None:
    """A coordinator that supports only classic groups loads the offsets and skips the records of
    members."""
    rig.commit_as(rig.member("a").join())
    plain = GroupRig(log=rig.log)
    assert plain.offset() == 5
    assert plain.state == "Empty"
    assert not isinstance(plain.coordinator, ConsumerGroupCoordinator)
