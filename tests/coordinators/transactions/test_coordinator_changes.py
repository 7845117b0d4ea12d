"""A coordinator comes and goes with the leadership of its log."""

from __future__ import annotations

from fakekafka.coordinators.transactions.metadata import TransactionMetadata, TransitMetadata
from fakekafka.coordinators.transactions.records import encode_key, encode_value
from fakekafka.coordinators.transactions.states import TransactionState
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.transactions import ListTransactionsRequest
from fakekafka.tests.support.transaction_desk import ID, ORDERS, Desk

S = TransactionState
E = ErrorCode


def test_requests_while_loading_and_elsewhere(desk: Desk) -> None:
    """COORDINATOR_LOAD_IN_PROGRESS for a moment, NOT_COORDINATOR after the loss."""
    desk.open_transaction()
    desk.resign(6)
    assert desk.end() is E.NOT_COORDINATOR
    assert desk.init().error is E.NOT_COORDINATOR
    desk.elect(7)
    assert desk.end() is E.COORDINATOR_LOAD_IN_PROGRESS
    assert desk.add() is E.COORDINATOR_LOAD_IN_PROGRESS
    assert desk.coordinator.describe(ID).error is E.COORDINATOR_LOAD_IN_PROGRESS
    listed = desk.coordinator.list_transactions(ListTransactionsRequest())
    assert listed.error is E.COORDINATOR_LOAD_IN_PROGRESS
    desk.clock.advance(0)
    assert desk.end() is E.NONE
    assert desk.sent()[0][1].markers[0].coordinator_epoch == 7


def test_what_was_decided_is_finished_by_the_next_coordinator(desk: Desk) -> None:
    """The coordinator died between its decision and the markers: the next one sends them."""
    desk.open_transaction()
    desk.end(is_commit=False)
    desk.resign(6)
    assert desk.sent() == []
    desk.lead(7)
    markers = [request.markers[0] for _, request in desk.sent()]
    assert [(m.coordinator_epoch, m.is_commit) for m in markers] == [(7, False), (7, False)]
    desk.answer_markers()
    desk.answer_markers()
    assert desk.state == "CompleteAbort"


def test_a_record_appended_under_an_old_epoch_is_not_taken_over(desk: Desk) -> None:
    """The broker lost the partition and got it again while the record was being replicated."""
    desk.init()
    desk.holds_appends = True
    adding = desk.begin_adding(ORDERS)
    desk.resign(6)
    desk.lead(7)
    desk.answer_append()
    assert adding.result() is E.NOT_COORDINATOR
    assert desk.state == "Empty"


def test_a_leadership_lost_before_loading_loads_nothing(desk: Desk) -> None:
    desk.init()
    desk.elect(7)
    desk.resign(8)
    desk.clock.advance(0)
    assert desk.init().error is E.NOT_COORDINATOR


def test_a_broker_that_was_just_started_waits_until_it_knows_who_leads_what(desk: Desk) -> None:
    """A partition whose leader it was not told yet would seem deleted, and get no marker."""
    desk.open_transaction()
    desk.end()
    desk.resign(6)
    known = dict(desk.leaders)
    desk.leaders.clear()
    desk.lead(7)
    assert desk.init().error is E.COORDINATOR_LOAD_IN_PROGRESS
    desk.leaders.update(known)
    desk.coordinator.metadata_changed()
    assert [broker for broker, _ in desk.sent()] == [1, 2]


def test_a_deleted_partition_is_coordinated_no_more(desk: Desk) -> None:
    desk.init()
    desk.coordinator.partitions_stopped([desk.hosted(5, 0).topic_partition, ORDERS])
    assert desk.init().error is E.NOT_COORDINATOR


def test_what_is_read_is_the_last_record_of_each_id() -> None:
    """Tombstones remove, later keys are skipped, and broken records end the reading."""
    desk = Desk()

    def value(epoch: int) -> bytes:
        return encode_value(TransitMetadata(7, -1, epoch, -1, 1000, S.EMPTY, (), -1, 50))

    desk.store(
        (encode_key("a"), value(1)),
        (encode_key("b"), value(1)),
        (encode_key("a"), value(2)),
        (b"\0\7later", value(9)),
        (encode_key("b"), None),
        (encode_key("c"), value(3)),
    )
    desk.store((encode_key("d"), b"\0\0broken"))
    desk.store((encode_key("e"), value(4)))
    desk.lead()
    found: list[TransactionMetadata] = [m for _, m in desk.coordinator.states.transactions()]
    assert [(m.transactional_id, m.producer_epoch) for m in found] == [("a", 2), ("c", 3)]
