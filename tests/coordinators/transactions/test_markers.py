"""How markers reach the leaders of a transaction's partitions."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.transactions import WriteTxnMarkersResponse
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.transaction_desk import AUDIT, ID, ORDERS, Desk

E = ErrorCode


def decide(desk: Desk, *partitions: TopicPartition) -> None:
    desk.init()
    assert desk.add(*(partitions or (ORDERS,))) is E.NONE
    assert desk.end() is E.NONE


def where(desk: Desk) -> list[tuple[int, list[TopicPartition]]]:
    """Broker and partitions of each request under way."""
    return [
        (broker, [name for marker in request.markers for name in marker.partitions])
        for broker, request in desk.sent()
    ]


def test_each_leader_gets_one_request(desk: Desk) -> None:
    third = TopicPartition("orders", 1)
    desk.leaders[third] = 1
    decide(desk, ORDERS, AUDIT, third)
    assert where(desk) == [(1, [ORDERS, third]), (2, [AUDIT])]


def test_transactions_share_requests_and_one_is_under_way(desk: Desk) -> None:
    """What comes while a request is under way goes out after its answer."""
    for number, name in enumerate("abcd"):
        desk.init(name)
        desk.add(transactional_id=name, producer_id=100 + number)
    desk.end(name="a", producer_id=100)
    desk.end(name="b", producer_id=101)
    assert [len(request.markers) for _, request in desk.sent()] == [2]
    desk.end(name="c", producer_id=102)
    desk.clock.advance(0)
    desk.end(name="d", producer_id=103)
    assert len(desk.sent()) == 1
    desk.answer_markers()
    assert [request.markers[0].producer_id for _, request in desk.sent()] == [102]
    desk.answer_markers()
    assert [request.markers[0].producer_id for _, request in desk.sent()] == [103]
    desk.answer_markers()
    assert desk.coordinator.markers.pending_count == 0
    assert {m.state.title for _, m in desk.coordinator.states.transactions()} == {"CompleteCommit"}


@pytest.mark.parametrize(
    "error",
    [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_LEADER_OR_FOLLOWER,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.REQUEST_TIMED_OUT,
        E.KAFKA_STORAGE_ERROR,
    ],
)
def test_a_partition_that_failed_is_asked_for_again_at_its_leader_of_then(
    desk: Desk, error: ErrorCode
) -> None:
    """The partitions that have their marker are not asked again."""
    desk.leaders[AUDIT] = 1
    decide(desk, ORDERS, AUDIT)
    desk.sent()
    desk.leaders[ORDERS] = 3
    desk.answer_markers({ORDERS: error})
    assert where(desk) == []
    desk.clock.advance(10)
    assert where(desk) == [(3, [ORDERS])]
    desk.answer_markers()
    assert desk.state == "CompleteCommit"


@pytest.mark.parametrize("error", [E.UNSUPPORTED_FOR_MESSAGE_FORMAT, E.UNSUPPORTED_VERSION])
def test_a_partition_that_knows_no_transactions_needs_no_marker(
    desk: Desk, error: ErrorCode
) -> None:
    decide(desk)
    desk.sent()
    desk.answer_markers({ORDERS: error})
    assert desk.state == "CompleteCommit"


@pytest.mark.parametrize("error", [E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED])
def test_a_transaction_that_is_somebody_elses_is_left_alone(desk: Desk, error: ErrorCode) -> None:
    decide(desk, ORDERS, AUDIT)
    desk.sent()
    desk.answer_markers({ORDERS: error})
    desk.answer_markers()
    assert where(desk) == []
    assert (desk.state, desk.coordinator.markers.pending_count) == ("PrepareCommit", 0)


def test_a_broken_connection_is_tried_again_after_a_while(desk: Desk) -> None:
    """50 ms later, at the leader of then."""
    decide(desk)
    desk.sent()
    desk.disconnect_markers()
    assert where(desk) == []
    desk.clock.advance(49)
    assert where(desk) == []
    desk.clock.advance(1)
    assert where(desk) == [(1, [ORDERS])]
    desk.leaders[ORDERS] = 2
    desk.disconnect_markers()
    assert where(desk) == [(2, [ORDERS])]


def test_requests_that_wait_behind_a_broken_connection_find_the_new_leader(desk: Desk) -> None:
    decide(desk)
    desk.sent()
    desk.init("second")
    desk.add(AUDIT, ORDERS, transactional_id="second", producer_id=101)
    desk.leaders[AUDIT] = 1
    desk.end(name="second", producer_id=101)
    desk.clock.advance(0)
    desk.leaders.update({ORDERS: 2, AUDIT: 3})
    desk.disconnect_markers()
    again = [(2, [ORDERS, ORDERS]), (3, [AUDIT])]
    assert where(desk) == again
    desk.clock.advance(50)
    assert where(desk) == again, "the broker that was lost is asked for nothing more"


def test_a_partition_that_an_answer_leaves_out_is_asked_for_again(desk: Desk) -> None:
    """Without an outcome it may lack its marker."""
    decide(desk)
    desk.sent()
    _, _, answered = desk.markers.pop(0)
    answered(WriteTxnMarkersResponse(()))
    assert desk.state == "PrepareCommit"
    desk.clock.advance(10)
    assert where(desk) == [(1, [ORDERS])]


def test_what_waits_for_a_leader_goes_with_the_coordinator(desk: Desk) -> None:
    """The next coordinator sends it; here it is not even counted any more."""
    desk.alive = [2]
    decide(desk, ORDERS)
    assert where(desk) == []
    markers = desk.coordinator.markers
    assert (markers.without_leader_count, markers.pending_count) == (1, 1)
    desk.resign()
    assert (markers.without_leader_count, markers.pending_count) == (0, 0)
    desk.alive = [1, 2]
    markers.metadata_changed()
    assert where(desk) == []


def test_a_partition_without_a_living_leader_waits_for_one(desk: Desk) -> None:
    """It is looked for at each news of leaders."""
    desk.alive = [2]
    decide(desk, ORDERS)
    assert where(desk) == []
    assert desk.coordinator.markers.without_leader_count == 1
    desk.coordinator.markers.metadata_changed()
    assert where(desk) == []
    desk.leaders[ORDERS] = 2
    desk.coordinator.markers.metadata_changed()
    assert where(desk) == [(2, [ORDERS])]


def test_a_deleted_partition_needs_no_marker(desk: Desk) -> None:
    decide(desk, ORDERS, AUDIT)
    desk.sent()
    del desk.leaders[ORDERS]
    desk.answer_markers({ORDERS: E.UNKNOWN_TOPIC_OR_PARTITION})
    assert where(desk) == [(2, [AUDIT])]
    desk.answer_markers()
    assert desk.state == "CompleteCommit"


def test_all_partitions_deleted(desk: Desk) -> None:
    """Nothing is sent, and the transaction is closed."""
    desk.init()
    desk.add(ORDERS)
    desk.leaders.clear()
    assert desk.end() is E.NONE
    assert where(desk) == []
    assert desk.state == "CompleteCommit"


def test_a_partition_that_was_not_named_yet_is_waited_for_after_a_start(desk: Desk) -> None:
    """The coordinator has read its log sooner than it has heard of all leaders: were the marker
    left out, nobody would ever see what follows the transaction."""
    decide(desk, ORDERS, AUDIT)
    desk.resign()
    known = dict(desk.leaders)
    restarted = Desk()
    restarted.log, restarted.leaders = desk.log, {ORDERS: 1, **_of_the_log(known)}
    restarted.coordinator.metadata_changed()
    restarted.lead(epoch=7)
    assert where(restarted) == [(1, [ORDERS])]
    restarted.answer_markers()
    assert restarted.state == "PrepareCommit"
    restarted.clock.advance(2000)
    restarted.leaders[AUDIT] = 2
    restarted.coordinator.metadata_changed()
    assert where(restarted) == [(2, [AUDIT])]
    restarted.answer_markers()
    assert restarted.state == "CompleteCommit"


def test_a_partition_that_is_never_named_is_deleted(desk: Desk) -> None:
    """After 5 seconds a coordinator that was just started has heard of all there are."""
    decide(desk, ORDERS, AUDIT)
    restarted = Desk()
    restarted.log, restarted.leaders = desk.log, {ORDERS: 1, **_of_the_log(desk.leaders)}
    restarted.coordinator.metadata_changed()
    restarted.lead(epoch=7)
    restarted.sent()
    restarted.answer_markers()
    restarted.clock.advance(4999)
    assert restarted.state == "PrepareCommit"
    restarted.clock.advance(1)
    assert (where(restarted), restarted.state) == ([], "CompleteCommit")


def _of_the_log(leaders: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    return {name: leader for name, leader in leaders.items() if name.topic.startswith("__")}


def test_what_cannot_be_closed_is_written_again(desk: Desk) -> None:
    """At once, and then, as Kafka's sender, when something wakes it or 30 seconds have passed."""
    decide(desk)
    desk.sent()
    desk.append_error = E.NOT_ENOUGH_REPLICAS
    desk.answer_markers()
    desk.clock.advance(0)
    assert desk.metadata.pending_state is not None
    desk.append_error = E.NONE
    desk.clock.advance(29_999)
    assert desk.state == "PrepareCommit"
    desk.clock.advance(1)
    assert desk.state == "CompleteCommit"


def test_a_coordinator_that_resigned_sends_and_closes_nothing(desk: Desk) -> None:
    """An answer that comes late changes nothing."""
    decide(desk, ORDERS, AUDIT)
    desk.sent()
    desk.resign()
    written = desk.written()
    desk.answer_markers()
    desk.disconnect_markers()
    assert where(desk) == []
    assert desk.written() == written
    assert desk.coordinator.markers.pending_count == 0
    assert desk.failures == []


def test_a_coordinator_that_resigned_asks_for_nothing_again(desk: Desk) -> None:
    """Whatever the answer is that comes late."""
    decide(desk)
    desk.sent()
    desk.resign()
    desk.answer_markers({ORDERS: E.NOT_LEADER_OR_FOLLOWER})
    desk.clock.advance(100)
    assert (where(desk), desk.coordinator.markers.pending_count) == ([], 0)


def test_answers_to_markers_of_an_older_epoch_are_not_counted(desk: Desk) -> None:
    """The partition came back meanwhile: the new epoch asks everybody again."""
    decide(desk)
    desk.sent()
    desk.resign(6)
    desk.lead(7)
    desk.answer_markers()
    assert (ID, desk.state) == (ID, "PrepareCommit")
    ((_, request),) = desk.sent()
    assert request.markers[0].coordinator_epoch == 7
    desk.answer_markers()
    assert desk.state == "CompleteCommit"
