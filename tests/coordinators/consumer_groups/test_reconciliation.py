"""How members of groups of the consumer protocol (KIP-848) reach their target assignment."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.consumer_group_rig import ConsumerGroupRig, Member, owners, topic_id

NONE = ErrorCode.NONE


@pytest.fixture
def rig() -> ConsumerGroupRig:
    return ConsumerGroupRig()


def test_the_first_member_gets_all_at_once(rig: ConsumerGroupRig) -> None:
    """The first join is answered with epoch 1, all partitions and the heartbeat interval."""
    a = rig.member("a").join()
    assert a.answer is not None
    assert a.answer.member_id == "id-a"
    assert (a.epoch, a.answer.heartbeat_interval_ms) == (1, 5000)
    assert a.owned == {("orders", number) for number in range(4)}
    assert rig.described().state == "Stable"


def test_a_partition_is_revoked_before_it_is_assigned_again(rig: ConsumerGroupRig) -> None:
    """A new member gets no partitions until their former owner confirms their revocation."""
    a = rig.member("a").join()
    b = rig.member("b").join()
    assert (b.epoch, b.owned) == (2, set())
    assert rig.described().state == "Reconciling"
    a.beat()
    assert (a.epoch, a.owned) == (1, {("orders", 0), ("orders", 1)})
    b.beat()
    assert b.owned == set()
    a.beat()
    assert a.epoch == 2
    b.beat()
    assert owners(a, b) == {
        ("orders", 0): "a",
        ("orders", 1): "a",
        ("orders", 2): "b",
        ("orders", 3): "b",
    }
    assert rig.described().state == "Stable"


def test_a_heartbeat_without_changes_returns_no_assignment(rig: ConsumerGroupRig) -> None:
    """Only a full request, or a changed assignment, is answered with an assignment."""
    a = rig.member("a").join()
    assert a.send(1).answer is not None
    assert a.answer is not None
    assert a.answer.assignment is None
    full = a.send(1, rebalance_timeout_ms=5000, topics=("orders",), owned=())
    assert full.answer is not None
    assert full.answer.assignment == ((topic_id("orders"), (0, 1, 2, 3)),)


def test_a_member_that_leaves_frees_its_partitions(rig: ConsumerGroupRig) -> None:
    """The partitions of a member that leaves go to the others with their next heartbeats, in a new
    epoch."""
    a, b = rig.member("a").join(), rig.member("b").join()
    rig.settle(a, b)
    left = b.leave()
    assert left.answer is not None
    assert (left.error, left.answer.member_epoch) == (NONE, -1)
    assert rig.described().state == "Assigning"
    a.beat()
    assert (a.epoch, len(a.owned)) == (3, 4)
    assert a.leave().error is NONE
    assert rig.described().state == "Empty"


def test_a_member_that_falls_silent_is_fenced(rig: ConsumerGroupRig) -> None:
    """A silent member is fenced after the broker's session timeout and has to rejoin."""
    a, b = rig.member("a").join(), rig.member("b").join()
    rig.settle(a, b)
    for _ in range(3):
        rig.host.advance(4000)
        a.beat()
    assert len(a.owned) == 4
    assert b.beat().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_revoke_in_time_is_fenced(rig: ConsumerGroupRig) -> None:
    """A member that does not revoke its partitions is fenced after its rebalance timeout, despite
    its heartbeats."""
    a = rig.member("a", rebalance_timeout_ms=3000).join()
    b = rig.member("b").join()
    a.send(1)
    for _ in range(3):
        rig.host.advance(999)
        assert a.send(1).error is NONE
    rig.host.advance(10)
    assert a.send(1).error is ErrorCode.UNKNOWN_MEMBER_ID
    b.beat()
    assert len(b.owned) == 4


def test_new_partitions_and_topics_are_assigned(rig: ConsumerGroupRig) -> None:
    """A change of the topics that members read raises the epoch; a change of other topics does
    not."""
    a = rig.member("a", topics=("orders", "later")).join()
    rig.announce(audit=7)
    assert a.beat().epoch == 1
    rig.announce(orders=6)
    assert (a.beat().epoch, len(a.owned)) == (2, 6)
    rig.announce(later=1)
    assert (a.beat().epoch, ("later", 0) in a.owned) == (3, True)
    rig.announce(later=0)
    a.beat()
    a.beat()
    assert (a.epoch, ("later", 0) in a.owned) == (4, False)


def test_a_regular_expression_finds_topics(rig: ConsumerGroupRig) -> None:
    """A regular expression also matches topics created later (version 1 of the heartbeat)."""
    a = rig.member("a", topics=None, topic_regex="or.*").join()
    assert {topic for topic, _ in a.owned} == {"orders"}
    rig.announce(oranges=1)
    a.beat()
    assert ("oranges", 0) in a.owned
    bad = rig.member("b", topics=None, topic_regex="(").join()
    assert bad.error is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_subscription_that_changes_is_assigned(rig: ConsumerGroupRig) -> None:
    a = rig.member("a").join()
    a.beat(topics=("audit",))
    a.beat()
    assert (a.epoch, a.owned) == (2, {("audit", 0), ("audit", 1)})


def test_the_previous_epoch_is_taken_after_a_lost_answer(rig: ConsumerGroupRig) -> None:
    """A member in the previous epoch is accepted if it owns no more than it may; with more, or in
    an older epoch, it is fenced."""
    a = rig.member("a").join()
    rig.member("b").join()
    a.beat()
    a.beat()
    assert a.epoch == 2
    retried = a.send(1, owned=((topic_id("orders"), (0,)),))
    assert retried.answer is not None
    assert (retried.error, retried.answer.member_epoch) == (NONE, 2)
    fenced = ErrorCode.FENCED_MEMBER_EPOCH
    assert a.send(1, owned=((topic_id("orders"), (0, 3)),)).error is fenced
    assert a.send(1).error is fenced
    assert a.send(3).error is fenced


JOINS = {"rebalance_timeout_ms": 1, "owned": (), "topics": ("orders",)}
REFUSALS = [
    (0, {**JOINS, "rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided"),
    (0, {**JOINS, "owned": None}, "TopicPartitions must be empty"),
    (0, {**JOINS, "topics": None}, "Either SubscribedTopicNames or SubscribedTopicRegex"),
    (0, {**JOINS, "group_instance_id": ""}, "InstanceId can't be empty."),
    (0, {**JOINS, "rack": " "}, "RackId can't be empty."),
    (-2, {}, "InstanceId can't be null."),
    (-3, {}, "MemberEpoch is invalid."),
]


@pytest.mark.parametrize(("epoch", "more", "text"), REFUSALS)
def test_a_malformed_heartbeat_is_refused(
    rig: ConsumerGroupRig, epoch: int, more: dict[str, object], text: str
) -> None:
    """A malformed heartbeat is refused with INVALID_REQUEST and a message that names the fault."""
    answer = rig.member("a").send(epoch, **more).answer
    assert answer is not None
    assert answer.error is ErrorCode.INVALID_REQUEST
    assert (answer.error_message or "").startswith(text)


def test_an_unknown_group_member_or_assignor_is_refused(rig: ConsumerGroupRig) -> None:
    a = rig.member("a")
    assert a.send(1).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert a.leave().error is ErrorCode.GROUP_ID_NOT_FOUND
    assert a.send(0, **JOINS, server_assignor="sticky").error is ErrorCode.UNSUPPORTED_ASSIGNOR
    a.join()
    assert rig.member("b").send(1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.member("b").leave().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_has_a_largest_size() -> None:
    rig = ConsumerGroupRig(group_consumer_max_size=1)
    a = rig.member("a").join()
    assert rig.member("b").join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert a.join().error is NONE


def test_another_broker_is_no_coordinator(rig: ConsumerGroupRig) -> None:
    a = rig.member("a").join()
    rig.follow()
    assert a.beat().error is ErrorCode.NOT_COORDINATOR
    assert rig.described().error is ErrorCode.NOT_COORDINATOR


# -- static members -----------------------------------------------------------------------------


def static_pair(rig: ConsumerGroupRig) -> tuple[Member, Member]:
    a = rig.member("a", group_instance_id="i-a").join()
    b = rig.member("b", group_instance_id="i-b").join()
    rig.settle(a, b)
    return a, b


def test_a_returning_static_member_gets_its_partitions(rig: ConsumerGroupRig) -> None:
    """A static member that left with epoch -2 returns to its partitions without a new group
    epoch."""
    a, b = static_pair(rig)
    had = set(b.owned)
    assert b.leave(-2).error is NONE
    assert a.beat().epoch == 2
    again = rig.member("b2", group_instance_id="i-b").join()
    assert (again.error, again.epoch, again.owned) == (NONE, 2, had)
    assert a.beat().epoch == 2
    assert [m.member_id for m in rig.described().members] == ["id-a", "id-b2"]
    assert b.beat().error is ErrorCode.FENCED_INSTANCE_ID


def test_the_place_of_a_static_member_is_not_given_away(rig: ConsumerGroupRig) -> None:
    """A join under the instance id of a present member is refused with UNRELEASED_INSTANCE_ID."""
    static_pair(rig)
    thief = rig.member("c", group_instance_id="i-b").join()
    assert thief.error is ErrorCode.UNRELEASED_INSTANCE_ID
    unknown = rig.member("c").send(1, group_instance_id="i-x")
    assert unknown.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_stays_away_loses_its_place(rig: ConsumerGroupRig) -> None:
    a, b = static_pair(rig)
    b.leave(-2)
    for _ in range(3):
        rig.host.advance(4000)
        a.beat()
    assert len(a.owned) == 4


# -- what is written ----------------------------------------------------------------------------


def test_another_coordinator_loads_the_unchanged_group(rig: ConsumerGroupRig) -> None:
    """Another coordinator loads epochs, assignments and pending revocations, even amid a
    rebalance."""
    a, b = rig.member("a").join(), rig.member("b").join()
    a.beat()
    before = rig.described()
    assert before.state == "Reconciling"
    other = ConsumerGroupRig(log=rig.log)
    assert other.described() == before
    a.rig = b.rig = other
    b.beat()
    assert b.owned == set()
    a.beat()
    b.beat()
    assert len(owners(a, b)) == 4
    assert other.described().state == "Stable"


def test_a_coordinator_expires_members_that_it_loaded(rig: ConsumerGroupRig) -> None:
    rig.member("a").join()
    other = ConsumerGroupRig(log=rig.log)
    other.host.advance(9_999)
    assert len(other.described().members) == 1
    other.host.advance(1)
    assert other.described().state == "Empty"


def test_a_change_is_answered_when_it_is_replicated(rig: ConsumerGroupRig) -> None:
    """A heartbeat that changes the group, or that reports the change, is answered once the change
    is replicated."""
    a = rig.member("a")
    rig.replicas.is_held = True
    a.join()
    assert a.answer is None
    late = rig.member("a").send(1)
    assert late.answer is None
    rig.replicas.answer()
    assert a.error is NONE
    assert late.error is NONE


def test_a_change_that_cannot_be_written_does_not_happen(rig: ConsumerGroupRig) -> None:
    rig.replicas.error = ErrorCode.NOT_ENOUGH_REPLICAS
    a = rig.member("a").join()
    assert a.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert rig.described().error is ErrorCode.GROUP_ID_NOT_FOUND
    rig.replicas.error = NONE
    assert a.join().error is NONE
    rig.replicas.error = ErrorCode.NOT_ENOUGH_REPLICAS
    rig.host.advance(10_000)
    assert len(rig.described().members) == 1
    rig.replicas.error = NONE
    rig.host.advance(500)
    assert rig.described().state == "Empty"
