"""Members of the classic protocol in a group of the consumer protocol (KIP-848): their timeouts,
and the conversions of the group."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.consumer_groups.assignors import MemberSpec, uniform_assignor
from fakekafka.coordinators.groups.records import GroupKey, encode_group_key
from fakekafka.protocol.errors import ErrorCode
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
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


@pytest.fixture
def rig() -> ConsumerGroupRig:
    """The consumer ``a`` is in a group with the classic members ``c`` and ``d``."""
    rig = classic_pair("upgrade")
    assert rig.member("a").join().error is NONE
    return rig


def beat(rig: ConsumerGroupRig, name: str, count: int) -> ErrorCode:
    """Send heartbeats of a member every nine seconds and return the last answer."""
    error = NONE
    for _ in range(count):
        rig.host.advance(9000)
        error = rig.heartbeat(name, epoch_of(rig, name) if name in member_names(rig) else 1)
    return error


def member_names(rig: ConsumerGroupRig) -> list[str]:
    """Return the names of the group's members."""
    ids = {member.member_id for member in rig.described().members}
    return [name for name, member_id in rig.ids.items() if member_id in ids]


def test_a_classic_member_that_rejoins_and_syncs_in_time_stays(rig: ConsumerGroupRig) -> None:
    """A member that rejoins and syncs in time cancels its join and sync timeouts
    (``cancelConsumerGroupJoinTimeout``, ``cancelConsumerGroupSyncTimeout``)."""
    assert rig.heartbeat("c", 1) is REBALANCE
    rejoin(rig, "c", 0, 1)
    assert beat(rig, "c", 1) is NONE
    rig.host.advance(5000)  # d and a fell silent: c is to join again
    assert rig.heartbeat("c", epoch_of(rig, "c")) is REBALANCE
    rejoin(rig, "c", 0, 1)
    for _ in range(8):
        beat(rig, "c", 1)
        assert member_names(rig) == ["c"]


def test_a_classic_member_that_joins_and_never_syncs_is_removed(rig: ConsumerGroupRig) -> None:
    """A member that joins but never syncs is removed after its rebalance timeout, despite its
    heartbeats (``scheduleConsumerGroupSyncTimeout``)."""
    joined = rig.join("c", protocols=subscription(0, 1))
    assert error_of(joined) is NONE
    beat(rig, "c", 6)
    assert member_names(rig) == ["c"]
    beat(rig, "c", 1)
    assert member_names(rig) == []


def test_a_member_has_its_own_session(rig: ConsumerGroupRig) -> None:
    """Each heartbeat of a classic member renews its own session timeout, not the broker's
    (``classicGroupHeartbeat``)."""
    rig.join("e", member_id="", protocols=subscription(), session_ms=30_000)
    rig.sync("e", generation=epoch_of(rig, "e"))
    rig.heartbeat("e", epoch_of(rig, "e"))
    rig.host.advance(29_999)
    assert member_names(rig) == ["e"]
    rig.host.advance(1)
    assert member_names(rig) == []


def test_a_classic_member_must_rejoin_when_its_awaited_partitions_are_free(
    rig: ConsumerGroupRig,
) -> None:
    """A heartbeat answers REBALANCE_IN_PROGRESS when awaited partitions are free, even in the
    newest epoch (``classicGroupHeartbeat``)."""
    assert rejoin(rig, "d", 2, 3) == assignment(2)
    joined = rig.join("e", member_id="", protocols=subscription())
    assert error_of(joined) is NONE
    synced = rig.sync("e", generation=epoch_of(rig, "e"))
    assert synced is not None
    assert synced.assignment == NOTHING
    assert rig.heartbeat("e", epoch_of(rig, "e")) is NONE
    assert rejoin(rig, "c", 0, 1) == assignment(0)
    rejoin(rig, "c", 0)
    assert rig.heartbeat("e", epoch_of(rig, "e")) is REBALANCE
    assert rejoin(rig, "e") == assignment(1)


def test_the_record_of_the_classic_group_is_removed(rig: ConsumerGroupRig) -> None:
    """The record of the converted classic group is removed, or the group would reappear after its
    deletion (``convertToConsumerGroup``)."""
    key = encode_group_key(GroupKey("group"))
    values = [record.value for record in rig.log.records() if record.key == key]
    assert len(values) > 1
    assert values[-1] is None


def test_a_group_of_other_workers_is_not_converted() -> None:
    """Only groups of consumers are converted, whatever the metadata of other groups looks like
    (``validateOnlineUpgrade``, ``usesConsumerGroupProtocol``)."""
    rig = ConsumerGroupRig(group_consumer_migration_policy="bidirectional")
    rig.join("c", protocol_type="connect", protocols=subscription())
    rig.host.advance(0)
    rig.sync("c", {"c": assignment(0, 1)})
    assert rig.member("a").join().error is ErrorCode.GROUP_ID_NOT_FOUND
    assert rig.state == "Stable"


def test_a_group_stays_while_one_member_speaks_the_consumer_protocol() -> None:
    """A group becomes classic only when its last member of the consumer protocol leaves; its epoch
    is the generation then (``validateOnlineDowngradeWithFencedMember``)."""
    rig = classic_pair("bidirectional")
    a, b = rig.member("a").join(), rig.member("b").join()
    assert a.leave().error is NONE
    assert rig.described().error is NONE
    epoch = rig.described().group_epoch
    b.leave()
    assert "group" in rig.coordinator.groups
    assert rig.group.generation >= epoch


# -- what is not of classic members alone -------------------------------------------------------


def test_the_next_coordinator_also_waits_for_pending_revocations() -> None:
    """The next coordinator also waits the rebalance timeout for a member that has partitions to
    revoke (``GroupMetadataManager.onLoaded``)."""
    rig = ConsumerGroupRig()
    a = rig.member("a", rebalance_timeout_ms=3000).join()
    rig.member("b").join()
    a.beat()
    a.rig = ConsumerGroupRig(log=rig.log)
    a.rig.host.advance(2999)
    assert a.send(1).error is NONE
    a.rig.host.advance(1)
    assert a.send(1).error is UNKNOWN


def test_one_of_several_changed_topics_is_enough() -> None:
    """A group examines its topics again if it reads one of several changed topics."""
    rig = ConsumerGroupRig()
    a = rig.member("a").join()
    rig.announce(orders=6, audit=3)
    assert (a.beat().epoch, len(a.owned)) == (2, 6)


def test_uneven_members_differ_by_one_partition_at_most() -> None:
    """Members of unequal subscriptions differ by at most one partition where their topics allow it
    (``UniformHeterogeneousAssignmentBuilder.balance``)."""
    members = {
        "m1": MemberSpec(("A", "B"), ("A", "B"), {"A": (0, 1), "B": (0,)}),
        "m2": MemberSpec(("A",), ("A",), {"A": (2,)}),
    }
    found = uniform_assignor(members, {"A": 3, "B": 1})
    assert {m: sum(map(len, topics.values())) for m, topics in found.items()} == {"m1": 2, "m2": 2}


def test_uneven_members_keep_owned_partitions_that_they_still_read() -> None:
    """An even assignment does not move; partitions that a member no longer reads are reassigned."""
    members = {
        "m1": MemberSpec(("A", "B"), ("A", "B"), {"A": (1,), "B": (0,)}),
        "m2": MemberSpec(("A",), ("A",), {"A": (0, 2), "B": (1,)}),
    }
    found = uniform_assignor(members, {"A": 3, "B": 1})
    assert found == {"m1": {"A": (1,), "B": (0,)}, "m2": {"A": (0, 2)}}
