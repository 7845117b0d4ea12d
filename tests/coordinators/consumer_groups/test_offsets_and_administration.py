"""Offsets of groups of the consumer protocol (KIP-848), and what administrators are told."""

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
from fakekafka.tests.support.consumer_group_desk import ConsumerGroupDesk
from fakekafka.tests.support.group_desk import GroupDesk

NONE = ErrorCode.NONE
ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def desk() -> ConsumerGroupDesk:
    return ConsumerGroupDesk()


def test_a_member_commits_in_its_epoch_only(desk: ConsumerGroupDesk) -> None:
    """STALE_MEMBER_EPOCH in another; older versions of the request do not know it."""
    a = desk.member("a").join()
    assert desk.commit_as(a) is NONE
    assert desk.offset() == 5
    assert desk.commit_as(a, 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert desk.commit_as(a, api_version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert desk.commit_as(desk.member("b"), 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.commit() is ErrorCode.UNKNOWN_MEMBER_ID
    a.leave()
    assert desk.commit() is NONE


def test_a_member_fetches_in_its_epoch_only(desk: ConsumerGroupDesk) -> None:
    """Who names no member, as an administrator, is always answered."""
    a = desk.member("a").join()
    assert desk.fetch_as(a) is NONE
    assert desk.fetch_as(a, 7) is ErrorCode.STALE_MEMBER_EPOCH
    assert desk.fetch_as(desk.member("b"), 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.fetch(ORDERS)[0].error is NONE


def test_a_commit_to_no_group_names_the_group(desk: ConsumerGroupDesk) -> None:
    """GROUP_ID_NOT_FOUND since version 9 of the request, ILLEGAL_GENERATION before."""
    a = desk.member("a")
    assert desk.commit_as(a, 1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert desk.commit_as(a, 1, api_version=8) is ErrorCode.ILLEGAL_GENERATION


def test_a_commit_in_a_transaction_has_its_own_error(desk: ConsumerGroupDesk) -> None:
    a = desk.member("a").join()
    partitions = (OffsetCommitPartition(ORDERS, 9),)
    answers: list[dict[TopicPartition, ErrorCode]] = []
    for epoch in (7, 1):
        commit = TransactionalCommit("group", 5, 0, partitions, a.member_id, None, epoch)
        desk.coordinator.commit_in_transaction(commit, answers.append)
    assert answers == [{ORDERS: ErrorCode.ILLEGAL_GENERATION}, {ORDERS: NONE}]
    desk.coordinator.transaction_completed(5, [0], is_commit=True)
    desk.host.advance(0)
    assert desk.offset() == 9


def test_a_group_is_described_with_what_members_shall_have(desk: ConsumerGroupDesk) -> None:
    a = desk.member("a", server_assignor="range").join()
    desk.member("b").join()
    a.beat()
    group = desk.described()
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


def test_descriptions_of_the_other_protocol_do_not_find_it(desk: ConsumerGroupDesk) -> None:
    """DescribeGroups knows no such group; ConsumerGroupDescribe knows no classic one."""
    desk.member("a").join()
    describe = desk.coordinator.describe_groups
    assert describe(DescribeGroupsRequest(("group",))).groups == (
        DescribedGroup(NONE, "group", "Dead"),
    )
    desk.join("c", group="old")
    assert desk.described("old").error is ErrorCode.GROUP_ID_NOT_FOUND


def test_groups_are_listed_by_state_and_type(desk: ConsumerGroupDesk) -> None:
    desk.member("a").join()
    desk.join("c", group="old")
    desk.host.advance(0)

    def listed(**wanted: tuple[str, ...]) -> tuple[ListedGroup, ...]:
        return desk.coordinator.list_groups(ListGroupsRequest(**wanted)).groups

    modern = ListedGroup("group", "consumer", "Stable", "consumer")
    classic = ListedGroup("old", "consumer", "CompletingRebalance")
    assert listed() == (classic, modern)
    assert listed(types=("Consumer",)) == listed(states=("stable",)) == (modern,)
    assert listed(types=("classic",)) == (classic,)


def test_a_group_is_deleted_when_it_has_no_members(desk: ConsumerGroupDesk) -> None:
    """With its offsets; another coordinator does not find it again."""
    a = desk.member("a").join()
    desk.commit_as(a)
    delete = desk.coordinator.delete_groups
    request = DeleteGroupsRequest(("group",))
    assert delete(request).groups == (("group", ErrorCode.NON_EMPTY_GROUP),)
    a.leave()
    assert delete(request).groups == (("group", NONE),)
    assert delete(request).groups == (("group", ErrorCode.GROUP_ID_NOT_FOUND),)
    other = ConsumerGroupDesk(log=desk.log)
    assert other.described().error is ErrorCode.GROUP_ID_NOT_FOUND
    assert other.offset() == -1


def test_offsets_are_deleted_of_topics_that_no_member_reads(desk: ConsumerGroupDesk) -> None:
    desk.member("a").join()
    request = OffsetDeleteRequest("group", (ORDERS, TopicPartition("audit", 0)))
    response = desk.coordinator.delete_offsets(request)
    assert dict(response.partitions) == {
        ORDERS: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        TopicPartition("audit", 0): NONE,
    }


def test_offsets_expire_by_topic_and_then_the_group() -> None:
    """Those of topics that members read stay; an empty group without offsets goes."""
    desk = ConsumerGroupDesk(offsets_retention_minutes=60)
    a = desk.member("a").join()
    desk.commit_as(a)
    for _ in range(2 * 400):
        desk.host.advance(9000)
        a.send(1)
    assert desk.offset() == 5
    a.leave()
    desk.host.advance(3_600_000)
    assert desk.offset() == -1
    assert desk.described().error is ErrorCode.GROUP_ID_NOT_FOUND


def test_without_the_switch_the_records_are_passed_over(desk: ConsumerGroupDesk) -> None:
    """A coordinator of classic groups alone finds the offsets, and no members."""
    desk.commit_as(desk.member("a").join())
    plain = GroupDesk(log=desk.log)
    assert plain.offset() == 5
    assert plain.state == "Empty"
    assert not isinstance(plain.coordinator, ConsumerGroupCoordinator)
