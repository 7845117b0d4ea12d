"""A transaction coordinator gains and loses the leadership of a partition of its log."""

from __future__ import annotations

from fakekafka.coordinators.transactions.metadata import TransactionMetadata, TransitMetadata
from fakekafka.coordinators.transactions.records import encode_key, encode_value
from fakekafka.coordinators.transactions.states import TransactionState
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.transactions import ListTransactionsRequest
from fakekafka.tests.support.transaction_rig import ID, ORDERS, TransactionRig

S = TransactionState
E = ErrorCode


def test_requests_while_loading_and_elsewhere(rig: TransactionRig) -> None:
    """Requests get COORDINATOR_LOAD_IN_PROGRESS while loading, and NOT_COORDINATOR after the
    loss."""
    rig.open_transaction()
    rig.resign(6)
    assert rig.end() is E.NOT_COORDINATOR
    assert rig.init().error is E.NOT_COORDINATOR
    rig.elect(7)
    assert rig.end() is E.COORDINATOR_LOAD_IN_PROGRESS
    assert rig.add() is E.COORDINATOR_LOAD_IN_PROGRESS
    assert rig.coordinator.describe(ID).error is E.COORDINATOR_LOAD_IN_PROGRESS
    listed = rig.coordinator.list_transactions(ListTransactionsRequest())
    assert listed.error is E.COORDINATOR_LOAD_IN_PROGRESS
    rig.clock.advance(0)
    assert rig.end() is E.NONE
    assert rig.sent()[0][1].markers[0].coordinator_epoch == 7


def test_the_next_coordinator_completes_a_decided_transaction(rig: TransactionRig) -> None:
    """If a coordinator dies between its decision and the markers, the next one sends the
    markers."""
    rig.open_transaction()
    rig.end(is_commit=False)
    rig.resign(6)
    assert rig.sent() == []
    rig.lead(7)
    markers = [request.markers[0] for _, request in rig.sent()]
    assert [(m.coordinator_epoch, m.is_commit) for m in markers] == [(7, False), (7, False)]
    rig.answer_markers()
    rig.answer_markers()
    assert rig.state == "CompleteAbort"


def test_a_record_appended_under_an_old_epoch_is_not_taken_over(rig: TransactionRig) -> None:
    """A record whose replication ends after the broker lost and regained the partition is not
    applied."""
    rig.init()
    rig.holds_appends = True
    adding = rig.begin_adding(ORDERS)
    rig.resign(6)
    rig.lead(7)
    rig.answer_append()
    assert adding.result() is E.NOT_COORDINATOR
    assert rig.state == "Empty"


def test_a_leadership_lost_before_loading_loads_nothing(rig: TransactionRig) -> None:
    rig.init()
    rig.elect(7)
    rig.resign(8)
    rig.clock.advance(0)
    assert rig.init().error is E.NOT_COORDINATOR


def test_a_started_broker_loads_transactions_once_it_knows_all_leaders(
    rig: TransactionRig,
) -> None:
    """A started broker loads once it knows all leaders, as a partition without one would seem
    deleted and get no marker."""
    rig.open_transaction()
    rig.end()
    rig.resign(6)
    known = dict(rig.leaders)
    rig.leaders.clear()
    rig.lead(7)
    assert rig.init().error is E.COORDINATOR_LOAD_IN_PROGRESS
    rig.leaders.update(known)
    rig.coordinator.metadata_changed()
    assert [broker for broker, _ in rig.sent()] == [1, 2]


def test_a_deleted_partition_is_coordinated_no_more(rig: TransactionRig) -> None:
    rig.init()
    rig.coordinator.partitions_stopped([rig.hosted(5, 0).topic_partition, ORDERS])
    assert rig.init().error is E.NOT_COORDINATOR


def test_loading_keeps_the_last_record_of_each_id() -> None:
    """Loading keeps the last record of each id: tombstones remove ids, later key versions are
    skipped, and a broken record ends it."""
    rig = TransactionRig()

    def value(epoch: int) -> bytes:
        return encode_value(TransitMetadata(7, -1, epoch, -1, 1000, S.EMPTY, (), -1, 50))

    rig.store(
        (encode_key("a"), value(1)),
        (encode_key("b"), value(1)),
        (encode_key("a"), value(2)),
        (b"\0\7later", value(9)),
        (encode_key("b"), None),
        (encode_key("c"), value(3)),
    )
    rig.store((encode_key("d"), b"\0\0broken"))
    rig.store((encode_key("e"), value(4)))
    rig.lead()
    found: list[TransactionMetadata] = [m for _, m in rig.coordinator.states.transactions()]
    assert [(m.transactional_id, m.producer_epoch) for m in found] == [("a", 2), ("c", 3)]
