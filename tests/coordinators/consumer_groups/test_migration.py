"""Groups that change between the classic protocol and the consumer protocol (KIP-848)."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import DescribeGroupsRequest, LeavingMember
from fakekafka.tests.support.classic_in_consumer_groups import (
    NOTHING,
    assignment,
    classic_pair,
    epoch_of,
    rejoin,
    subscription,
)
from fakekafka.tests.support.consumer_group_rig import ConsumerGroupRig
from fakekafka.tests.support.group_rig import error_of

NONE = ErrorCode.NONE
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS


def test_an_empty_classic_group_changes_with_its_first_member() -> None:
    """An empty classic group is converted by its first consumer member under any policy, and keeps
    its offsets."""
    rig = ConsumerGroupRig()
    rig.commit()
    assert rig.member("a").join().error is NONE
    assert (rig.described().state, rig.offset()) == ("Stable", 7)
    other = ConsumerGroupRig(log=rig.log)
    assert (other.described().state, other.offset()) == ("Stable", 7)


def test_an_empty_group_of_the_consumer_protocol_changes_back() -> None:
    rig = ConsumerGroupRig()
    a = rig.member("a").join()
    rig.commit_as(a)
    assert a.leave().error is NONE
    rig.join("c")
    rig.host.advance(0)
    rig.sync("c", {"c": b""})
    assert (rig.state, rig.offset()) == ("Stable", 5)
    assert rig.described().error is ErrorCode.GROUP_ID_NOT_FOUND
    other = ConsumerGroupRig(log=rig.log)
    assert (other.state, other.offset()) == ("Stable", 5)


def test_classic_members_of_an_upgraded_group_keep_their_sessions() -> None:
    """Each classic member of an upgraded group keeps its own session timeout; the timers of the old
    group are gone."""
    rig = classic_pair("upgrade")
    a = rig.member("a").join()
    rig.host.advance(5_000)
    a.beat()
    rig.host.advance(4_999)
    assert len(rig.consumer_group.members) == 3
    rig.host.advance(1)
    assert list(rig.consumer_group.members) == ["id-a"]
    assert not [line for line in rig.lines if line.endswith("has failed")]


@pytest.mark.parametrize(("max_size", "is_full"), [(2, True), (1, False)])
def test_a_group_of_just_the_greatest_size_is_upgraded(max_size: int, is_full: bool) -> None:
    """A group of exactly the maximum size is upgraded and its new member refused; a larger group is
    not upgraded."""
    rig = classic_pair("upgrade", group_consumer_max_size=max_size)
    error = rig.member("a").join().error
    assert error is (ErrorCode.GROUP_MAX_SIZE_REACHED if is_full else ErrorCode.GROUP_ID_NOT_FOUND)


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_without_the_policy_a_classic_group_stays(policy: str) -> None:
    rig = classic_pair(policy)
    assert rig.member("a").join().error is ErrorCode.GROUP_ID_NOT_FOUND
    assert rig.state == "Stable"
    assert rig.heartbeat("c") is NONE


@pytest.mark.parametrize("policy", ["upgrade", "Bidirectional"])
def test_a_member_of_the_consumer_protocol_upgrades_the_group(policy: str) -> None:
    """Classic members keep their partitions after the upgrade until they rejoin and share with the
    new member."""
    rig = classic_pair(policy)
    a = rig.member("a").join()
    assert (a.error, a.epoch, a.owned) == (NONE, 2, set())
    assert rig.heartbeat("c", 1) is REBALANCE
    assert rejoin(rig, "c", 0, 1) == assignment(0, 1)
    assert rig.heartbeat("c", epoch_of(rig, "c")) is NONE
    assert rig.heartbeat("d", 1) is REBALANCE
    assert rejoin(rig, "d", 2, 3) == assignment(2)
    assert rig.heartbeat("d", 1) is REBALANCE
    a.beat()
    assert a.owned == set()
    assert rejoin(rig, "d", 2) == assignment(2)
    a.beat()
    assert a.owned == {("orders", 3)}
    assert rig.described().state == "Stable"
    assert rig.heartbeat("d", 2) is NONE
    other = ConsumerGroupRig(log=rig.log)
    assert other.described() == rig.described()


def test_a_classic_member_joins_such_a_group() -> None:
    """A classic member that joins is given its id first, if its version supports that; a static one
    replaces its predecessor."""
    rig = classic_pair("upgrade")
    a = rig.member("a").join()
    answer = rig.join("e", member_id="", protocols=subscription(), needs_id=True)
    assert answer is not None
    assert answer.error is ErrorCode.MEMBER_ID_REQUIRED
    assert rejoin(rig, "e") == NOTHING
    assert len(rig.described().members) == 4
    refused = rig.join("f", member_id="", protocols=(("sticky", b""),))
    assert error_of(refused) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert a.beat().error is NONE


def test_a_classic_member_needs_a_protocol_that_all_classic_members_support() -> None:
    """A classic member needs a protocol that all classic members support, not just some
    (``ConsumerGroup.supportsClassicProtocols``)."""
    rig = classic_pair("upgrade")
    rig.member("a").join()
    ((_, data),) = subscription()
    both = rig.join("e", member_id="", protocols=(("range", data), ("sticky", data)))
    assert error_of(both) is NONE
    other = rig.join("f", member_id="", protocols=(("sticky", data),))
    assert error_of(other) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_classic_members_are_still_checked_after_an_upgrade() -> None:
    rig = classic_pair("upgrade")
    a = rig.member("a").join()
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.heartbeat("c", 7) is ErrorCode.ILLEGAL_GENERATION
    assert rig.heartbeat("x", 1) is unknown
    assert rig.heartbeat("x", 1, member_id=a.member_id) is unknown
    assert error_of(rig.sync("c", generation=1)) is REBALANCE
    assert error_of(rig.sync("c", generation=5)) is ErrorCode.ILLEGAL_GENERATION
    mixed = rig.sync("c", generation=1, protocol="sticky")
    assert error_of(mixed) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert rig.leave("x").members[0].error is unknown


def test_a_classic_member_that_does_not_join_again_is_fenced() -> None:
    """A classic member is fenced unless it rejoins within its rebalance timeout of the request to
    do so; it may send heartbeats meanwhile."""
    rig = classic_pair("upgrade")
    rig.member("a").join()
    for _ in range(7):
        assert rig.heartbeat("c", 1) is REBALANCE
        rig.host.advance(9_000)
    assert rig.heartbeat("c", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_leaves() -> None:
    rig = classic_pair("upgrade")
    a = rig.member("a").join()
    left = rig.leave("c", LeavingMember("nobody"))
    assert [member.error for member in left.members] == [NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    a.beat()
    assert (a.epoch, a.owned) == (3, {("orders", 1)})  # d still owns partitions of a's target


@pytest.mark.parametrize(("policy", "state"), [("bidirectional", "Preparing"), ("upgrade", "")])
def test_the_last_member_of_the_consumer_protocol_downgrades_the_group(
    policy: str, state: str
) -> None:
    """When the last consumer member leaves, the classic members continue with a rebalance, if the
    policy allows it."""
    rig = classic_pair(policy)
    a = rig.member("a").join()
    rig.commit_as(a)
    assert a.leave().error is NONE
    if not state:
        assert rig.described().state == "Assigning"
        return
    assert rig.state == "PreparingRebalance"
    assert rig.described().error is ErrorCode.GROUP_ID_NOT_FOUND
    assert rig.heartbeat("c", rig.group.generation) is REBALANCE
    for name in "cd":
        rig.join(name, protocols=subscription())
    rig.host.advance(0)
    rig.sync("c", {"c": assignment(0, 1), "d": assignment(2, 3)})
    assert (rig.state, rig.offset()) == ("Stable", 5)
    describe = rig.coordinator.describe_groups
    assert len(describe(DescribeGroupsRequest(("group",))).groups[0].members) == 2
    other = ConsumerGroupRig(log=rig.log)
    assert (other.state, len(other.group.members), other.offset()) == ("Stable", 2, 5)
