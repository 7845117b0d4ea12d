"""Changes that a member of a group of the consumer protocol (KIP-848) reports, and static members
that leave and return."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.consumer_groups.group import ConsumerGroup
from fakekafka.coordinators.groups.offsets import CommitRecord
from fakekafka.coordinators.groups.records import OffsetValue
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.consumer_group_rig import ConsumerGroupRig, owners, topic_id

NONE = ErrorCode.NONE


@pytest.fixture
def rig() -> ConsumerGroupRig:
    return ConsumerGroupRig()


def written(rig: ConsumerGroupRig) -> int:
    """Return the number of records in the log."""
    return sum(len(batch.records()) for batch in rig.log.batches)


# -- epochs -------------------------------------------------------------------------------------


def test_of_former_epochs_only_the_last_is_accepted(rig: ConsumerGroupRig) -> None:
    """A member two epochs behind is fenced, even if it owns no more than it may
    (``ConsumerGroup``'s ``throwIfConsumerGroupMemberEpochIsInvalid``)."""
    a = rig.member("a").join()
    for count in (5, 6):
        rig.announce(orders=count)
        a.beat()
    assert a.epoch == 3
    assert a.send(2, owned=()).error is NONE
    assert a.send(1, owned=()).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_second_revocation_is_of_the_next_epoch(rig: ConsumerGroupRig) -> None:
    """A completed revocation advances a member by one epoch, even if it has more partitions to
    revoke (``CurrentAssignmentBuilder``, UNREVOKED_PARTITIONS)."""
    a = rig.member("a").join()
    rig.member("b").join()
    assert (a.beat().epoch, len(a.owned)) == (1, 2)
    rig.member("c").join()
    rig.member("d").join()
    assert (a.beat().epoch, len(a.owned)) == (2, 1)
    assert a.beat().epoch == 4


# -- subscriptions and metadata -----------------------------------------------------------------


def test_a_regular_expression_that_changes_is_assigned(rig: ConsumerGroupRig) -> None:
    """A changed regular expression raises the group's epoch, as a changed list of topics does."""
    a = rig.member("a", topics=None, topic_regex="ord.*").join()
    a.beat(topic_regex="aud.*")
    a.beat()
    assert (a.epoch, a.owned) == (2, {("audit", 0), ("audit", 1)})


def test_a_rack_alone_is_stored_and_raises_no_epoch(rig: ConsumerGroupRig) -> None:
    """A change of rack is stored without a new epoch: another coordinator finds the rack, and the
    member in its old epoch."""
    a = rig.member("a").join()
    assert a.beat(rack="r1").epoch == 1
    other = ConsumerGroupRig(log=rig.log)
    (found,) = other.described().members
    assert (found.rack, found.member_epoch) == ("r1", 1)
    a.rig = other
    assert a.beat().error is NONE


def test_a_newly_named_assignor_counts_in_the_same_heartbeat(rig: ConsumerGroupRig) -> None:
    """A newly named assignor counts in the assignment that the same heartbeat causes
    (``consumerGroupHeartbeat`` passes the updated member to ``computePreferredServerAssignor``)."""
    both = ("orders", "audit")
    a = rig.member("a", topics=both).join()
    b = rig.member("b", topics=both, server_assignor="range").join()
    rig.settle(a, b)
    assert a.owned == {("audit", 0), ("orders", 0), ("orders", 1)}


def test_a_target_that_stays_is_not_written_again(rig: ConsumerGroupRig) -> None:
    """An assignment writes only the targets that it changes (``TargetAssignmentBuilder``)."""
    rig.member("a").join()
    b = rig.member("b", topics=("audit",)).join()
    before = written(rig)
    b.beat(topics=("audit", "later"))
    # The member, the group's epoch and that of the targets, and where b is now.
    assert written(rig) - before == 4


def test_the_group_drops_the_topics_of_a_departed_member(rig: ConsumerGroupRig) -> None:
    """The departure of a member drops its topics at once, so that the next metadata refresh finds
    nothing new."""
    a = rig.member("a").join()
    b = rig.member("b", topics=("audit",)).join()
    b.leave()
    assert a.beat().epoch == 3
    rig.announce(orders=4)
    assert a.beat().epoch == 3


# -- static members -----------------------------------------------------------------------------


def test_a_returning_static_member_gets_its_target_assignment(rig: ConsumerGroupRig) -> None:
    """A returning static member has its former target under its new id, and the next assignment
    starts from that."""
    a = rig.member("a", group_instance_id="i-a").join()
    a.leave(-2)
    rig.member("a2", group_instance_id="i-a").join()
    (back,) = rig.described().members
    assert [part.partitions for part in back.target_assignment] == [(0, 1, 2, 3)]


def test_pending_revocations_of_a_static_member_are_free_when_it_leaves(
    rig: ConsumerGroupRig,
) -> None:
    """Partitions that a static member had to revoke are free as soon as it leaves temporarily
    (``consumerGroupStaticMemberGroupLeave``)."""
    a = rig.member("a", group_instance_id="i-a").join()
    b = rig.member("b").join()
    a.beat()
    assert b.beat().owned == set()
    a.leave(-2)
    assert b.beat().owned == {("orders", 2), ("orders", 3)}


def test_a_static_member_that_leaves_for_good_keeps_nothing(rig: ConsumerGroupRig) -> None:
    """Epoch -1 ends a membership, even that of a static member."""
    a = rig.member("a", group_instance_id="i-a").join()
    b = rig.member("b").join()
    rig.settle(a, b)
    assert a.leave(-1).error is NONE
    assert len(rig.described().members) == 1
    assert len(b.beat().owned) == 4
    assert owners(b)["orders", 0] == "b"


def test_the_former_id_of_a_static_member_is_assigned_nothing(rig: ConsumerGroupRig) -> None:
    """The former id of a static member is assigned nothing, even if the member returns with another
    subscription."""
    a = rig.member("a", group_instance_id="i-a").join()
    a.leave(-2)
    again = rig.member("a2", group_instance_id="i-a", topics=("orders", "audit")).join()
    assert len(again.owned) == 6
    assert topic_id("orders") in rig.consumer_group.target["id-a2"]


# -- offsets ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("expire_timestamp_ms", "gone_ms"), [(-1, 2000), (1500, 1500)])
def test_an_offset_expires_when_its_time_is_reached(expire_timestamp_ms: int, gone_ms: int) -> None:
    """An offset expires when the retention time since its commit, or the expiry that an old commit
    named, is reached (``OffsetExpirationConditionImpl.isOffsetExpired``)."""
    group = ConsumerGroup("group")
    partition = TopicPartition("orders", 0)
    value = OffsetValue(5, -1, "", 1000, expire_timestamp_ms)
    group.offsets.committed[partition] = CommitRecord(0, value)
    assert group.remove_expired_offsets(gone_ms - 1, 1000) == []
    assert group.remove_expired_offsets(gone_ms, 1000) == [partition]
