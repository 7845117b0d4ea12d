"""How markers reach the leaders of the partitions of a transaction."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.transactions import WriteTxnMarkersResponse
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.transaction_rig import AUDIT, ID, ORDERS, TransactionRig

E = ErrorCode


def decide(rig: TransactionRig, *partitions: TopicPartition) -> None:
    rig.init()
    assert rig.add(*(partitions or (ORDERS,))) is E.NONE
    assert rig.end() is E.NONE


def where(rig: TransactionRig) -> list[tuple[int, list[TopicPartition]]]:
    """Return broker and partitions of each request in flight."""
    return [
        (broker, [name for marker in request.markers for name in marker.partitions])
        for broker, request in rig.sent()
    ]


def test_each_leader_gets_one_request(rig: TransactionRig) -> None:
    third = TopicPartition("orders", 1)
    rig.leaders[third] = 1
    decide(rig, ORDERS, AUDIT, third)
    assert where(rig) == [(1, [ORDERS, third]), (2, [AUDIT])]


def test_transactions_share_requests_and_one_is_under_way(rig: TransactionRig) -> None:
    """Markers decided while a request is in flight are sent together after its answer."""
    for number, name in enumerate("abcd"):
        rig.init(name)
        rig.add(transactional_id=name, producer_id=100 + number)
    rig.end(name="a", producer_id=100)
    rig.end(name="b", producer_id=101)
    assert [len(request.markers) for _, request in rig.sent()] == [2]
    rig.end(name="c", producer_id=102)
    rig.clock.advance(0)
    rig.end(name="d", producer_id=103)
    assert len(rig.sent()) == 1
    rig.answer_markers()
    assert [request.markers[0].producer_id for _, request in rig.sent()] == [102]
    rig.answer_markers()
    assert [request.markers[0].producer_id for _, request in rig.sent()] == [103]
    rig.answer_markers()
    assert rig.coordinator.markers.pending_count == 0
    assert {m.state.title for _, m in rig.coordinator.states.transactions()} == {"CompleteCommit"}


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
def test_the_marker_of_a_failed_partition_is_sent_to_its_current_leader(
    rig: TransactionRig, error: ErrorCode
) -> None:
    """A failed partition is sent to its current leader; partitions that have their marker are not
    sent again."""
    rig.leaders[AUDIT] = 1
    decide(rig, ORDERS, AUDIT)
    rig.sent()
    rig.leaders[ORDERS] = 3
    rig.answer_markers({ORDERS: error})
    assert where(rig) == []
    rig.clock.advance(10)
    assert where(rig) == [(3, [ORDERS])]
    rig.answer_markers()
    assert rig.state == "CompleteCommit"


@pytest.mark.parametrize("error", [E.UNSUPPORTED_FOR_MESSAGE_FORMAT, E.UNSUPPORTED_VERSION])
def test_a_partition_that_knows_no_transactions_needs_no_marker(
    rig: TransactionRig, error: ErrorCode
) -> None:
    decide(rig)
    rig.sent()
    rig.answer_markers({ORDERS: error})
    assert rig.state == "CompleteCommit"


@pytest.mark.parametrize("error", [E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED])
def test_a_transaction_of_another_coordinator_is_left_alone(
    rig: TransactionRig, error: ErrorCode
) -> None:
    decide(rig, ORDERS, AUDIT)
    rig.sent()
    rig.answer_markers({ORDERS: error})
    rig.answer_markers()
    assert where(rig) == []
    assert (rig.state, rig.coordinator.markers.pending_count) == ("PrepareCommit", 0)


def test_a_broken_connection_is_tried_again_after_a_while(rig: TransactionRig) -> None:
    """After a broken connection the markers are sent again 50 ms later, to the current leader."""
    decide(rig)
    rig.sent()
    rig.disconnect_markers()
    assert where(rig) == []
    rig.clock.advance(49)
    assert where(rig) == []
    rig.clock.advance(1)
    assert where(rig) == [(1, [ORDERS])]
    rig.leaders[ORDERS] = 2
    rig.disconnect_markers()
    assert where(rig) == [(2, [ORDERS])]


def test_requests_that_wait_behind_a_broken_connection_find_the_new_leader(
    rig: TransactionRig,
) -> None:
    decide(rig)
    rig.sent()
    rig.init("second")
    rig.add(AUDIT, ORDERS, transactional_id="second", producer_id=101)
    rig.leaders[AUDIT] = 1
    rig.end(name="second", producer_id=101)
    rig.clock.advance(0)
    rig.leaders.update({ORDERS: 2, AUDIT: 3})
    rig.disconnect_markers()
    again = [(2, [ORDERS, ORDERS]), (3, [AUDIT])]
    assert where(rig) == again
    rig.clock.advance(50)
    assert where(rig) == again, "the broker that was lost is asked for nothing more"


def test_a_partition_missing_in_the_answer_is_sent_again(rig: TransactionRig) -> None:
    """A partition missing in the answer is sent again, as it may lack its marker."""
    decide(rig)
    rig.sent()
    _, _, answered = rig.markers.pop(0)
    answered(WriteTxnMarkersResponse(()))
    assert rig.state == "PrepareCommit"
    rig.clock.advance(10)
    assert where(rig) == [(1, [ORDERS])]


def test_markers_that_wait_for_a_leader_are_dropped_when_the_coordinator_resigns(
    rig: TransactionRig,
) -> None:
    """Markers that wait for a leader are dropped when the coordinator resigns; the next one sends
    them."""
    rig.alive = [2]
    decide(rig, ORDERS)
    assert where(rig) == []
    markers = rig.coordinator.markers
    assert (markers.without_leader_count, markers.pending_count) == (1, 1)
    rig.resign()
    assert (markers.without_leader_count, markers.pending_count) == (0, 0)
    rig.alive = [1, 2]
    markers.metadata_changed()
    assert where(rig) == []


def test_a_partition_without_a_living_leader_waits_for_one(rig: TransactionRig) -> None:
    """A partition without a live leader is looked up again at each change of metadata."""
    rig.alive = [2]
    decide(rig, ORDERS)
    assert where(rig) == []
    assert rig.coordinator.markers.without_leader_count == 1
    rig.coordinator.markers.metadata_changed()
    assert where(rig) == []
    rig.leaders[ORDERS] = 2
    rig.coordinator.markers.metadata_changed()
    assert where(rig) == [(2, [ORDERS])]


def test_a_deleted_partition_needs_no_marker(rig: TransactionRig) -> None:
    decide(rig, ORDERS, AUDIT)
    rig.sent()
    del rig.leaders[ORDERS]
    rig.answer_markers({ORDERS: E.UNKNOWN_TOPIC_OR_PARTITION})
    assert where(rig) == [(2, [AUDIT])]
    rig.answer_markers()
    assert rig.state == "CompleteCommit"


def test_a_transaction_whose_partitions_are_all_deleted_completes(rig: TransactionRig) -> None:
    """If all partitions are deleted, no marker is sent and the transaction is closed."""
    rig.init()
    rig.add(ORDERS)
    rig.leaders.clear()
    assert rig.end() is E.NONE
    assert where(rig) == []
    assert rig.state == "CompleteCommit"


def test_a_partition_that_was_not_named_yet_is_waited_for_after_a_start(
    rig: TransactionRig,
) -> None:
    """A started coordinator may load before it knows all leaders. Were a marker left out, consumers
    could never read beyond the transaction."""
    decide(rig, ORDERS, AUDIT)
    rig.resign()
    known = dict(rig.leaders)
    restarted = TransactionRig()
    restarted.log, restarted.leaders = rig.log, {ORDERS: 1, **_of_the_log(known)}
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


def test_a_partition_that_is_never_named_is_deleted(rig: TransactionRig) -> None:
    """A partition still unknown 5 seconds after the coordinator's start counts as deleted."""
    decide(rig, ORDERS, AUDIT)
    restarted = TransactionRig()
    restarted.log, restarted.leaders = rig.log, {ORDERS: 1, **_of_the_log(rig.leaders)}
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


def test_a_completion_that_cannot_be_written_is_retried(rig: TransactionRig) -> None:
    """The closing record is written again at once, and then, as in Kafka's sender, when it is woken
    or 30 seconds have passed."""
    decide(rig)
    rig.sent()
    rig.append_error = E.NOT_ENOUGH_REPLICAS
    rig.answer_markers()
    rig.clock.advance(0)
    assert rig.metadata.pending_state is not None
    rig.append_error = E.NONE
    rig.clock.advance(29_999)
    assert rig.state == "PrepareCommit"
    rig.clock.advance(1)
    assert rig.state == "CompleteCommit"


def test_a_coordinator_that_resigned_sends_and_closes_nothing(rig: TransactionRig) -> None:
    """Late answers to a coordinator that has resigned change nothing."""
    decide(rig, ORDERS, AUDIT)
    rig.sent()
    rig.resign()
    written = rig.written()
    rig.answer_markers()
    rig.disconnect_markers()
    assert where(rig) == []
    assert rig.written() == written
    assert rig.coordinator.markers.pending_count == 0
    assert rig.failures == []


def test_a_coordinator_that_resigned_retries_no_markers(rig: TransactionRig) -> None:
    """A coordinator that has resigned sends no marker again, whatever the late answer is."""
    decide(rig)
    rig.sent()
    rig.resign()
    rig.answer_markers({ORDERS: E.NOT_LEADER_OR_FOLLOWER})
    rig.clock.advance(100)
    assert (where(rig), rig.coordinator.markers.pending_count) == ([], 0)


def test_answers_to_markers_of_an_older_epoch_are_not_counted(rig: TransactionRig) -> None:
    """Answers to the former epoch's markers do not count once the partition is back: the new epoch
    sends all markers again."""
    decide(rig)
    rig.sent()
    rig.resign(6)
    rig.lead(7)
    rig.answer_markers()
    assert (ID, rig.state) == (ID, "PrepareCommit")
    ((_, request),) = rig.sent()
    assert request.markers[0].coordinator_epoch == 7
    rig.answer_markers()
    assert rig.state == "CompleteCommit"
