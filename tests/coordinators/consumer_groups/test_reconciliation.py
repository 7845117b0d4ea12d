"""Members of groups of the consumer protocol (KIP-848) on their way to what they shall have."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.consumer_group_desk import ConsumerGroupDesk, Member, owners, topic_id

NONE = ErrorCode.NONE


@pytest.fixture
def desk() -> ConsumerGroupDesk:
    return ConsumerGroupDesk()


def test_the_first_member_gets_all_at_once(desk: ConsumerGroupDesk) -> None:
    """Its join is answered with epoch 1, its partitions and the pace of heartbeats."""
    a = desk.member("a").join()
    assert a.answer is not None
    assert a.answer.member_id == "id-a"
    assert (a.epoch, a.answer.heartbeat_interval_ms) == (1, 5000)
    assert a.owned == {("orders", number) for number in range(4)}
    assert desk.described().state == "Stable"


def test_a_member_gives_up_before_another_gets(desk: ConsumerGroupDesk) -> None:
    """Until the first says that it no longer reads them, the second gets nothing."""
    a = desk.member("a").join()
    b = desk.member("b").join()
    assert (b.epoch, b.owned) == (2, set())
    assert desk.described().state == "Reconciling"
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
    assert desk.described().state == "Stable"


def test_a_heartbeat_without_news_has_no_assignment(desk: ConsumerGroupDesk) -> None:
    """Only a full request, or a changed assignment, is answered with one."""
    a = desk.member("a").join()
    assert a.send(1).answer is not None
    assert a.answer is not None
    assert a.answer.assignment is None
    full = a.send(1, rebalance_timeout_ms=5000, topics=("orders",), owned=())
    assert full.answer is not None
    assert full.answer.assignment == ((topic_id("orders"), (0, 1, 2, 3)),)


def test_a_member_that_leaves_frees_its_partitions(desk: ConsumerGroupDesk) -> None:
    """The others get them with their next heartbeats, in a new epoch."""
    a, b = desk.member("a").join(), desk.member("b").join()
    desk.settle(a, b)
    left = b.leave()
    assert left.answer is not None
    assert (left.error, left.answer.member_epoch) == (NONE, -1)
    assert desk.described().state == "Assigning"
    a.beat()
    assert (a.epoch, len(a.owned)) == (3, 4)
    assert a.leave().error is NONE
    assert desk.described().state == "Empty"


def test_a_member_that_falls_silent_is_fenced(desk: ConsumerGroupDesk) -> None:
    """After the session timeout of the broker; it has to join anew."""
    a, b = desk.member("a").join(), desk.member("b").join()
    desk.settle(a, b)
    for _ in range(3):
        desk.host.advance(4000)
        a.beat()
    assert len(a.owned) == 4
    assert b.beat().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_is_fenced(desk: ConsumerGroupDesk) -> None:
    """After its own rebalance timeout, however often it is heard of."""
    a = desk.member("a", rebalance_timeout_ms=3000).join()
    b = desk.member("b").join()
    a.send(1)
    for _ in range(3):
        desk.host.advance(999)
        assert a.send(1).error is NONE
    desk.host.advance(10)
    assert a.send(1).error is ErrorCode.UNKNOWN_MEMBER_ID
    b.beat()
    assert len(b.owned) == 4


def test_new_partitions_and_topics_are_assigned(desk: ConsumerGroupDesk) -> None:
    """A change of the topics that members read raises the epoch; that of others does not."""
    a = desk.member("a", topics=("orders", "later")).join()
    desk.announce(audit=7)
    assert a.beat().epoch == 1
    desk.announce(orders=6)
    assert (a.beat().epoch, len(a.owned)) == (2, 6)
    desk.announce(later=1)
    assert (a.beat().epoch, ("later", 0) in a.owned) == (3, True)
    desk.announce(later=0)
    a.beat()
    a.beat()
    assert (a.epoch, ("later", 0) in a.owned) == (4, False)


def test_a_regular_expression_finds_topics(desk: ConsumerGroupDesk) -> None:
    """Also those that are made later (the heartbeat of version 1)."""
    a = desk.member("a", topics=None, topic_regex="or.*").join()
    assert {topic for topic, _ in a.owned} == {"orders"}
    desk.announce(oranges=1)
    a.beat()
    assert ("oranges", 0) in a.owned
    bad = desk.member("b", topics=None, topic_regex="(").join()
    assert bad.error is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_subscription_that_changes_is_assigned(desk: ConsumerGroupDesk) -> None:
    a = desk.member("a").join()
    a.beat(topics=("audit",))
    a.beat()
    assert (a.epoch, a.owned) == (2, {("audit", 0), ("audit", 1)})


def test_the_previous_epoch_is_taken_after_a_lost_answer(desk: ConsumerGroupDesk) -> None:
    """The member reads no more than it may; with more, or an older epoch, it is fenced."""
    a = desk.member("a").join()
    desk.member("b").join()
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
    desk: ConsumerGroupDesk, epoch: int, more: dict[str, object], text: str
) -> None:
    """INVALID_REQUEST says what is wrong."""
    answer = desk.member("a").send(epoch, **more).answer
    assert answer is not None
    assert answer.error is ErrorCode.INVALID_REQUEST
    assert (answer.error_message or "").startswith(text)


def test_an_unknown_group_member_or_assignor_is_refused(desk: ConsumerGroupDesk) -> None:
    a = desk.member("a")
    assert a.send(1).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert a.leave().error is ErrorCode.GROUP_ID_NOT_FOUND
    assert a.send(0, **JOINS, server_assignor="sticky").error is ErrorCode.UNSUPPORTED_ASSIGNOR
    a.join()
    assert desk.member("b").send(1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.member("b").leave().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_has_its_limit() -> None:
    desk = ConsumerGroupDesk(group_consumer_max_size=1)
    a = desk.member("a").join()
    assert desk.member("b").join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert a.join().error is NONE


def test_another_broker_is_no_coordinator(desk: ConsumerGroupDesk) -> None:
    a = desk.member("a").join()
    desk.follow()
    assert a.beat().error is ErrorCode.NOT_COORDINATOR
    assert desk.described().error is ErrorCode.NOT_COORDINATOR


# -- static members -----------------------------------------------------------------------------


def static_pair(desk: ConsumerGroupDesk) -> tuple[Member, Member]:
    a = desk.member("a", group_instance_id="i-a").join()
    b = desk.member("b", group_instance_id="i-b").join()
    desk.settle(a, b)
    return a, b


def test_a_static_member_that_comes_back_has_its_partitions(desk: ConsumerGroupDesk) -> None:
    """It left with epoch -2: the group keeps its epoch, and nothing moves."""
    a, b = static_pair(desk)
    had = set(b.owned)
    assert b.leave(-2).error is NONE
    assert a.beat().epoch == 2
    again = desk.member("b2", group_instance_id="i-b").join()
    assert (again.error, again.epoch, again.owned) == (NONE, 2, had)
    assert a.beat().epoch == 2
    assert [m.member_id for m in desk.described().members] == ["id-a", "id-b2"]
    assert b.beat().error is ErrorCode.FENCED_INSTANCE_ID


def test_the_place_of_a_static_member_is_not_given_away(desk: ConsumerGroupDesk) -> None:
    """UNRELEASED_INSTANCE_ID while the member with this instance id is there."""
    static_pair(desk)
    thief = desk.member("c", group_instance_id="i-b").join()
    assert thief.error is ErrorCode.UNRELEASED_INSTANCE_ID
    unknown = desk.member("c").send(1, group_instance_id="i-x")
    assert unknown.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_stays_away_loses_its_place(desk: ConsumerGroupDesk) -> None:
    a, b = static_pair(desk)
    b.leave(-2)
    for _ in range(3):
        desk.host.advance(4000)
        a.beat()
    assert len(a.owned) == 4


# -- what is written ----------------------------------------------------------------------------


def test_another_coordinator_finds_the_group_as_it_was(desk: ConsumerGroupDesk) -> None:
    """In the middle of a rebalance, too: epochs, assignments and who has to give up what."""
    a, b = desk.member("a").join(), desk.member("b").join()
    a.beat()
    before = desk.described()
    assert before.state == "Reconciling"
    other = ConsumerGroupDesk(log=desk.log)
    assert other.described() == before
    a.desk = b.desk = other
    b.beat()
    assert b.owned == set()
    a.beat()
    b.beat()
    assert len(owners(a, b)) == 4
    assert other.described().state == "Stable"


def test_a_coordinator_ends_the_sessions_that_it_loads(desk: ConsumerGroupDesk) -> None:
    desk.member("a").join()
    other = ConsumerGroupDesk(log=desk.log)
    other.host.advance(9_999)
    assert len(other.described().members) == 1
    other.host.advance(1)
    assert other.described().state == "Empty"


def test_a_change_is_answered_when_it_is_replicated(desk: ConsumerGroupDesk) -> None:
    """And so is a heartbeat that tells of it."""
    a = desk.member("a")
    desk.replicas.is_held = True
    a.join()
    assert a.answer is None
    late = desk.member("a").send(1)
    assert late.answer is None
    desk.replicas.answer()
    assert a.error is NONE
    assert late.error is NONE


def test_a_change_that_cannot_be_written_does_not_happen(desk: ConsumerGroupDesk) -> None:
    desk.replicas.error = ErrorCode.NOT_ENOUGH_REPLICAS
    a = desk.member("a").join()
    assert a.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.described().error is ErrorCode.GROUP_ID_NOT_FOUND
    desk.replicas.error = NONE
    assert a.join().error is NONE
    desk.replicas.error = ErrorCode.NOT_ENOUGH_REPLICAS
    desk.host.advance(10_000)
    assert len(desk.described().members) == 1
    desk.replicas.error = NONE
    desk.host.advance(500)
    assert desk.described().state == "Empty"
