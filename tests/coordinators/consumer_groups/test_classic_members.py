"""Members of the classic protocol in a group of the consumer protocol (KIP-848): their times, and
what becomes of the group."""

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
from fakekafka.tests.support.consumer_group_desk import ConsumerGroupDesk
from fakekafka.tests.support.group_desk import error_of

NONE = ErrorCode.NONE
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


@pytest.fixture
def desk() -> ConsumerGroupDesk:
    """The consumer ``a`` is in a group with the classic members ``c`` and ``d``."""
    desk = classic_pair("upgrade")
    assert desk.member("a").join().error is NONE
    return desk


def beat(desk: ConsumerGroupDesk, name: str, count: int) -> ErrorCode:
    """Heartbeats of a member every nine seconds; the last answer."""
    error = NONE
    for _ in range(count):
        desk.host.advance(9000)
        error = desk.heartbeat(name, epoch_of(desk, name) if name in known(desk) else 1)
    return error


def known(desk: ConsumerGroupDesk) -> list[str]:
    """Names of the members that there are."""
    ids = {member.member_id for member in desk.described().members}
    return [name for name, member_id in desk.ids.items() if member_id in ids]


def test_who_joins_and_syncs_in_time_stays(desk: ConsumerGroupDesk) -> None:
    """Neither time to join nor time to sync runs on (``cancelConsumerGroupJoinTimeout``,
    ``cancelConsumerGroupSyncTimeout``)."""
    assert desk.heartbeat("c", 1) is REBALANCE
    rejoin(desk, "c", 0, 1)
    assert beat(desk, "c", 1) is NONE
    desk.host.advance(5000)  # d and a fell silent: c is to join again
    assert desk.heartbeat("c", epoch_of(desk, "c")) is REBALANCE
    rejoin(desk, "c", 0, 1)
    for _ in range(8):
        beat(desk, "c", 1)
        assert known(desk) == ["c"]


def test_who_joins_and_never_syncs_is_removed(desk: ConsumerGroupDesk) -> None:
    """After its rebalance timeout, though it beats (``scheduleConsumerGroupSyncTimeout``)."""
    joined = desk.join("c", protocols=subscription(0, 1))
    assert error_of(joined) is NONE
    beat(desk, "c", 6)
    assert known(desk) == ["c"]
    beat(desk, "c", 1)
    assert known(desk) == []


def test_a_member_has_its_own_session(desk: ConsumerGroupDesk) -> None:
    """Not that of the broker, after each of its heartbeats (``classicGroupHeartbeat``)."""
    desk.join("e", member_id="", protocols=subscription(), session_ms=30_000)
    desk.sync("e", generation=epoch_of(desk, "e"))
    desk.heartbeat("e", epoch_of(desk, "e"))
    desk.host.advance(29_999)
    assert known(desk) == ["e"]
    desk.host.advance(1)
    assert known(desk) == []


def test_a_member_is_told_when_others_gave_up_what_it_waits_for(desk: ConsumerGroupDesk) -> None:
    """REBALANCE_IN_PROGRESS, though the epoch is the newest (``classicGroupHeartbeat``)."""
    assert rejoin(desk, "d", 2, 3) == assignment(2)
    joined = desk.join("e", member_id="", protocols=subscription())
    assert error_of(joined) is NONE
    synced = desk.sync("e", generation=epoch_of(desk, "e"))
    assert synced is not None
    assert synced.assignment == NOTHING
    assert desk.heartbeat("e", epoch_of(desk, "e")) is NONE
    assert rejoin(desk, "c", 0, 1) == assignment(0)
    rejoin(desk, "c", 0)
    assert desk.heartbeat("e", epoch_of(desk, "e")) is REBALANCE
    assert rejoin(desk, "e") == assignment(1)


def test_the_record_of_the_classic_group_is_removed(desk: ConsumerGroupDesk) -> None:
    """Else it would be back once the group is deleted (``convertToConsumerGroup``)."""
    key = encode_group_key(GroupKey("group"))
    values = [record.value for record in desk.log.records() if record.key == key]
    assert len(values) > 1
    assert values[-1] is None


def test_a_group_of_other_workers_is_not_converted() -> None:
    """Only consumers are, whatever the others' bytes look like
    (``validateOnlineUpgrade``, ``usesConsumerGroupProtocol``)."""
    desk = ConsumerGroupDesk(group_consumer_migration_policy="bidirectional")
    desk.join("c", protocol_type="connect", protocols=subscription())
    desk.host.advance(0)
    desk.sync("c", {"c": assignment(0, 1)})
    assert desk.member("a").join().error is ErrorCode.GROUP_ID_NOT_FOUND
    assert desk.state == "Stable"


def test_a_group_stays_while_one_member_speaks_the_consumer_protocol() -> None:
    """The last one alone leaves a classic group behind, with the epoch as its generation
    (``validateOnlineDowngradeWithFencedMember``)."""
    desk = classic_pair("bidirectional")
    a, b = desk.member("a").join(), desk.member("b").join()
    assert a.leave().error is NONE
    assert desk.described().error is NONE
    epoch = desk.described().group_epoch
    b.leave()
    assert "group" in desk.coordinator.groups
    assert desk.group.generation >= epoch


# -- what is not of classic members alone -------------------------------------------------------


def test_who_was_to_give_up_is_awaited_by_the_next_coordinator_too() -> None:
    """For its rebalance timeout (``GroupMetadataManager.onLoaded``)."""
    desk = ConsumerGroupDesk()
    a = desk.member("a", rebalance_timeout_ms=3000).join()
    desk.member("b").join()
    a.beat()
    a.desk = ConsumerGroupDesk(log=desk.log)
    a.desk.host.advance(2999)
    assert a.send(1).error is NONE
    a.desk.host.advance(1)
    assert a.send(1).error is UNKNOWN


def test_one_of_several_changed_topics_is_enough() -> None:
    """Who reads it looks at its topics."""
    desk = ConsumerGroupDesk()
    a = desk.member("a").join()
    desk.announce(orders=6, audit=3)
    assert (a.beat().epoch, len(a.owned)) == (2, 6)


def test_uneven_members_differ_by_one_partition_at_most() -> None:
    """Where topics allow it (``UniformHeterogeneousAssignmentBuilder.balance``)."""
    members = {
        "m1": MemberSpec(("A", "B"), ("A", "B"), {"A": (0, 1), "B": (0,)}),
        "m2": MemberSpec(("A",), ("A",), {"A": (2,)}),
    }
    found = uniform_assignor(members, {"A": 3, "B": 1})
    assert {m: sum(map(len, topics.values())) for m, topics in found.items()} == {"m1": 2, "m2": 2}


def test_uneven_members_keep_what_they_have_and_read() -> None:
    """What is even already does not move; what a member reads no more is given away."""
    members = {
        "m1": MemberSpec(("A", "B"), ("A", "B"), {"A": (1,), "B": (0,)}),
        "m2": MemberSpec(("A",), ("A",), {"A": (0, 2), "B": (1,)}),
    }
    found = uniform_assignor(members, {"A": 3, "B": 1})
    assert found == {"m1": {"A": (1,), "B": (0,)}, "m2": {"A": (0, 2)}}
