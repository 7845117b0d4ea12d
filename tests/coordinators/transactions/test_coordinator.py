"""What a transaction coordinator answers, and what it writes."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.coordinators.transactions.states import TransactionState
from fakekafka.protocol.data import InitProducerIdResponse
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.transactions import ListTransactionsRequest
from fakekafka.tests.support.transaction_desk import AUDIT, ID, ORDERS, TIMEOUT_MS, Desk

S = TransactionState
E = ErrorCode


# -- InitProducerId ------------------------------------------------------------------------------


def test_a_new_id_gets_a_producer_id_and_epoch_zero(desk: Desk) -> None:
    """Each further call raises the epoch, and writes it."""
    assert desk.init() == InitProducerIdResponse(E.NONE, 100, 0)
    assert desk.init() == InitProducerIdResponse(E.NONE, 100, 1)
    assert desk.written() == ["Empty 0", "Empty 1"]


def test_without_an_id_nothing_is_written(desk: Desk) -> None:
    """An idempotent producer gets a fresh producer id from any broker."""
    desk.resign()
    assert desk.init(None) == InitProducerIdResponse(E.NONE, 100, 0)
    assert desk.init(None) == InitProducerIdResponse(E.NONE, 101, 0)
    assert desk.written() == []


@pytest.mark.parametrize(
    ("request_of", "error"),
    [
        ({"transactional_id": ""}, E.INVALID_REQUEST),
        ({"producer_id": 100}, E.INVALID_REQUEST),
        ({"epoch": 0}, E.INVALID_REQUEST),
        ({"timeout_ms": 0}, E.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": -1}, E.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": 900_001}, E.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": 900_000}, E.NONE),
    ],
)
def test_requests_for_an_id_that_make_no_sense(
    desk: Desk, request_of: dict[str, Any], error: ErrorCode
) -> None:
    assert desk.init(**request_of).error is error


@pytest.mark.parametrize(
    ("producer_id", "epoch", "answer"),
    [
        (100, 1, (E.NONE, 100, 2)),
        (100, 0, (E.PRODUCER_FENCED, -1, -1)),
        (100, 2, (E.PRODUCER_FENCED, -1, -1)),
        (7, 1, (E.PRODUCER_FENCED, -1, -1)),
    ],
)
def test_a_producer_names_what_it_has(
    desk: Desk, producer_id: int, epoch: int, answer: tuple[ErrorCode, int, int]
) -> None:
    """KIP-360: only the present epoch is raised."""
    desk.init()
    desk.init()
    assert desk.init(producer_id=producer_id, epoch=epoch) == InitProducerIdResponse(*answer)


def test_a_request_repeated_after_its_answer_was_lost(desk: Desk) -> None:
    """KIP-360: the epoch before the present one gets the present one again."""
    desk.init()
    assert desk.init(producer_id=100, epoch=0).producer_epoch == 1
    assert desk.init(producer_id=100, epoch=0).producer_epoch == 1
    assert desk.init().producer_epoch == 2
    assert desk.init(producer_id=100, epoch=1).error is E.PRODUCER_FENCED


def test_a_request_is_not_repeated_across_a_fence(desk: Desk) -> None:
    """KIP-360: once a transaction was taken away, the epoch before the present one is nobody's."""
    desk.init()
    assert desk.init(producer_id=100, epoch=0).producer_epoch == 1
    assert desk.add(ORDERS, epoch=1) is E.NONE
    desk.clock.advance(TIMEOUT_MS + 10_000)
    assert (desk.state, desk.metadata.producer_epoch) == ("PrepareAbort", 2)
    desk.sent()
    desk.answer_markers()
    assert desk.state == "CompleteAbort"
    assert desk.init(producer_id=100, epoch=0).error is E.PRODUCER_FENCED


def test_epochs_that_are_used_up(desk: Desk) -> None:
    """A new producer id begins at 0; the old one may be named once more, with its last epoch."""
    desk.init()
    desk.metadata.producer_epoch = 32766
    assert desk.init() == InitProducerIdResponse(E.NONE, 101, 0)
    desk.metadata.producer_epoch = 32766
    assert desk.init(producer_id=101, epoch=32766) == InitProducerIdResponse(E.NONE, 102, 0)
    assert desk.init(producer_id=101, epoch=32766) == InitProducerIdResponse(E.NONE, 102, 0)
    assert desk.init(producer_id=101, epoch=3).error is E.PRODUCER_FENCED


def test_an_open_transaction_is_aborted_first(desk: Desk) -> None:
    """DP-133: the producer is told to come back; then it gets an epoch of its own."""
    desk.open_transaction()
    assert desk.init().error is E.CONCURRENT_TRANSACTIONS
    assert (desk.state, desk.metadata.producer_epoch) == ("PrepareAbort", 1)
    assert desk.init().error is E.CONCURRENT_TRANSACTIONS
    desk.sent()
    desk.answer_markers()
    desk.answer_markers()
    assert desk.state == "CompleteAbort"
    assert desk.init() == InitProducerIdResponse(E.NONE, 100, 2)
    assert desk.end(epoch=0) is E.PRODUCER_FENCED


# -- AddPartitionsToTxn --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_of", "error"),
    [
        ({}, E.NONE),
        ({"transactional_id": ""}, E.INVALID_REQUEST),
        ({"transactional_id": "other"}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_id": 7}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"epoch": 1}, E.PRODUCER_FENCED),
        ({"epoch": -1}, E.PRODUCER_FENCED),
    ],
)
def test_who_may_add_partitions(desk: Desk, request_of: dict[str, Any], error: ErrorCode) -> None:
    desk.init()
    assert desk.add(ORDERS, **request_of) is error


def test_partitions_that_are_there_are_not_written_again(desk: Desk) -> None:
    desk.open_transaction()
    assert desk.add(AUDIT) is E.NONE
    assert desk.written() == ["Empty 0", "Ongoing 0"]
    assert list(desk.metadata.partitions) == [ORDERS, AUDIT]


def test_a_change_that_is_being_written_holds_up_others(desk: Desk) -> None:
    """DP-134: everything else is CONCURRENT_TRANSACTIONS, until the record is replicated."""
    desk.init()
    desk.holds_appends = True
    adding = desk.begin_adding(ORDERS)
    assert not adding.done
    assert desk.add(AUDIT) is E.CONCURRENT_TRANSACTIONS
    assert desk.end() is E.CONCURRENT_TRANSACTIONS
    assert desk.init().error is E.CONCURRENT_TRANSACTIONS
    desk.answer_append()
    assert adding.result() is E.NONE
    assert desk.state == "Ongoing"


@pytest.mark.parametrize(
    ("appended", "answered"),
    [
        (E.UNKNOWN_TOPIC_OR_PARTITION, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.COORDINATOR_NOT_AVAILABLE),
        (E.REQUEST_TIMED_OUT, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
        (E.KAFKA_STORAGE_ERROR, E.NOT_COORDINATOR),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
        (E.RECORD_LIST_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
        (E.CORRUPT_MESSAGE, E.CORRUPT_MESSAGE),
    ],
)
def test_a_record_that_cannot_be_written_changes_nothing(
    desk: Desk, appended: ErrorCode, answered: ErrorCode
) -> None:
    """The next request finds the state before."""
    desk.init()
    desk.append_error = appended
    assert desk.add(ORDERS) is answered
    assert (desk.state, desk.metadata.pending_state) == ("Empty", None)
    desk.append_error = E.NONE
    assert desk.add(ORDERS) is E.NONE


# -- EndTxn --------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_end_is_answered_before_its_markers_are_written(desk: Desk, is_commit: bool) -> None:
    """The decision in the log counts; closing follows when every partition has its marker."""
    desk.open_transaction()
    assert desk.end(is_commit) is E.NONE
    word = "Commit" if is_commit else "Abort"
    assert desk.state == f"Prepare{word}"
    assert desk.add(ORDERS) is E.CONCURRENT_TRANSACTIONS
    assert desk.init().error is E.CONCURRENT_TRANSACTIONS
    assert desk.end(is_commit) is E.CONCURRENT_TRANSACTIONS
    assert desk.end(not is_commit) is E.CONCURRENT_TRANSACTIONS
    ((first, request), (second, _)) = desk.sent()
    (marker,) = request.markers
    assert (first, second) == (1, 2)
    assert (marker.producer_id, marker.producer_epoch, marker.is_commit) == (100, 0, is_commit)
    assert (marker.partitions, marker.coordinator_epoch) == ((ORDERS,), 5)
    desk.answer_markers()
    assert desk.state == f"Prepare{word}"
    desk.answer_markers()
    assert desk.state == f"Complete{word}"
    assert desk.end(is_commit) is E.NONE
    assert desk.end(not is_commit) is E.INVALID_TXN_STATE
    assert desk.written()[-2:] == [f"Prepare{word} 0", f"Complete{word} 0"]


@pytest.mark.parametrize(
    ("request_of", "error"),
    [
        ({"name": ""}, E.INVALID_REQUEST),
        ({"name": "other"}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_id": 7}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"epoch": -1}, E.PRODUCER_FENCED),
        ({"epoch": 1}, E.PRODUCER_FENCED),
    ],
)
def test_who_may_end_a_transaction(
    desk: Desk, request_of: dict[str, Any], error: ErrorCode
) -> None:
    desk.open_transaction()
    assert desk.end(**request_of) is error
    assert desk.state == "Ongoing"


def test_nothing_to_end(desk: Desk) -> None:
    desk.init()
    assert desk.end() is E.INVALID_TXN_STATE


def test_old_releases_let_a_later_epoch_end_a_transaction() -> None:
    """KAFKA-9600; and they call a fenced producer INVALID_PRODUCER_EPOCH (KIP-588)."""
    desk = Desk("1.1")
    desk.lead()
    desk.open_transaction()
    assert desk.add(epoch=1) is E.INVALID_PRODUCER_EPOCH
    assert desk.end(epoch=-1) is E.INVALID_PRODUCER_EPOCH
    assert desk.end(epoch=1) is E.NONE


# -- timeouts ------------------------------------------------------------------------------------


def test_a_transaction_that_takes_too_long_is_aborted_under_the_next_epoch(desk: Desk) -> None:
    """DP-133: looked for every ten seconds; the producer is fenced then."""
    desk.open_transaction()
    desk.clock.advance(TIMEOUT_MS)
    assert desk.state == "Ongoing"
    desk.clock.advance(10_000)
    assert (desk.state, desk.metadata.producer_epoch) == ("PrepareAbort", 1)
    assert desk.end() is E.PRODUCER_FENCED
    assert [request.markers[0].producer_epoch for _, request in desk.sent()] == [1, 1]
    assert desk.failures == []


def test_a_transaction_that_has_ended_takes_no_longer(desk: Desk) -> None:
    """Neither one whose markers are under way nor a closed one is aborted when its time is up."""
    desk.open_transaction()
    assert desk.end() is E.NONE
    desk.clock.advance(TIMEOUT_MS + 20_000)
    assert (desk.state, desk.metadata.producer_epoch) == ("PrepareCommit", 0)
    while desk.markers:
        desk.answer_markers()
    assert desk.state == "CompleteCommit"
    written = desk.written()
    desk.clock.advance(TIMEOUT_MS + 20_000)
    assert (desk.state, desk.metadata.producer_epoch) == ("CompleteCommit", 0)
    assert desk.written() == written
    assert desk.failures == []


def test_the_timeout_counts_from_the_first_partition_whatever_is_added_later(desk: Desk) -> None:
    """DP-133: ``abortTimedOutTransactions`` asks when the transaction began."""
    desk.init()
    assert desk.add(ORDERS) is E.NONE
    began_ms = desk.clock.now_ms
    for number in (2, 3, 4):
        desk.clock.advance(TIMEOUT_MS // 3 - 1)
        assert desk.add(AUDIT._replace(partition=number)) is E.NONE
    assert (desk.metadata.start_ms, desk.state) == (began_ms, "Ongoing")
    assert desk.metadata.updated_ms > began_ms + TIMEOUT_MS // 2
    desk.clock.advance(10_003)
    assert (desk.state, desk.metadata.producer_epoch) == ("PrepareAbort", 1)


def test_a_transaction_is_not_aborted_for_time_that_the_process_missed(desk: Desk) -> None:
    """Its start is a date all the same, as a later stall does not concern the next transaction."""
    desk.open_transaction()
    desk.clock.advance(TIMEOUT_MS - 10_000)
    desk.clock.missed_ms += 10 * TIMEOUT_MS
    desk.clock.advance(10_000)
    assert desk.state == "Ongoing"
    desk.clock.advance(10_000)
    assert desk.state == "PrepareAbort"
    desk.answer_markers()
    desk.answer_markers()
    began_ms = desk.clock.now_ms + desk.clock.missed_ms
    assert desk.add(ORDERS, epoch=desk.init().producer_epoch) is E.NONE
    assert desk.coordinator.describe(ID).start_time_ms == began_ms
    desk.clock.advance(TIMEOUT_MS)
    assert desk.state == "Ongoing"


def test_a_transaction_that_another_coordinator_reads_goes_on_counting(desk: Desk) -> None:
    """Its start is a date in the log: a stall since then is left out only while it is known."""
    desk.clock.missed_ms += 10 * TIMEOUT_MS
    desk.open_transaction()
    began_ms = desk.metadata.start_ms
    desk.clock.advance(TIMEOUT_MS // 2)
    desk.resign()
    desk.lead(7)
    desk.clock.advance(TIMEOUT_MS // 2)
    assert (desk.metadata.start_ms, desk.state) == (began_ms, "Ongoing")
    desk.clock.advance(10_000)
    assert desk.state == "PrepareAbort"


def test_a_transaction_whose_change_is_being_written_is_aborted_afterwards(desk: Desk) -> None:
    """DP-133: a pending change goes first; the next look finds the transaction."""
    desk.open_transaction()
    desk.holds_appends = True
    adding = desk.begin_adding(AUDIT._replace(partition=7))
    desk.clock.advance(TIMEOUT_MS + 10_000)
    assert (desk.metadata.pending_state, desk.metadata.producer_epoch) == (S.ONGOING, 0)
    assert len(desk.appends) == 1
    desk.holds_appends = False
    desk.answer_append()
    assert (adding.result(), desk.state) == (E.NONE, "Ongoing")
    desk.clock.advance(10_000)
    assert (desk.state, desk.metadata.producer_epoch) == ("PrepareAbort", 1)
    assert desk.failures == []


@pytest.mark.parametrize(("version", "epochs"), [("3.9", [1, 1]), ("1.1", [1, 2])])
def test_a_fence_that_cannot_be_written_raises_the_epoch_once(
    version: str, epochs: list[int]
) -> None:
    """KAFKA-9666: before, each attempt raised it."""
    desk = Desk(version)
    desk.lead()
    desk.open_transaction()
    seen = []
    for _ in range(2):
        desk.append_error = E.NOT_ENOUGH_REPLICAS
        assert desk.init().error is E.COORDINATOR_NOT_AVAILABLE
        seen.append(desk.metadata.producer_epoch)
    assert (seen, desk.state) == (epochs, "Ongoing")
    desk.append_error = E.NONE
    assert desk.init().error is E.CONCURRENT_TRANSACTIONS
    assert desk.state == "PrepareAbort"


def test_ids_that_nobody_uses_are_forgotten() -> None:
    """After a week, with tombstones of at most a batch each; an open one is kept."""
    desk = Desk()
    desk.lead()
    names = [f"id-{number}-{'x' * 80}" for number in range(20)]
    for name in names:
        desk.init(name)
    open_transaction_of_another = desk.init()
    assert open_transaction_of_another.error is E.NONE
    desk.add(producer_id=120, epoch=0)
    desk.metadata.timeout_ms = 10**10
    before = len(desk.log.stored)
    desk.clock.advance(604_800_000 + 3_600_000)
    assert [d.transactional_id for _, d in desk.coordinator.states.transactions()] == [ID]
    assert desk.written().count("-") == 20
    assert 1 < len(desk.log.stored) - before < 20
    assert desk.coordinator.describe(names[0]).error is E.TRANSACTIONAL_ID_NOT_FOUND


def test_an_id_is_forgotten_exactly_when_its_time_is_up(desk: Desk) -> None:
    """A change at this very moment keeps it (``TransactionStateManager.shouldExpire``)."""
    desk.init()
    desk.metadata.updated_ms = desk.host.wall_ms() - 604_800_000 + 1
    desk.coordinator.states.expire()
    assert desk.state == "Empty"
    desk.metadata.updated_ms -= 1
    desk.metadata.pending_state = S.ONGOING
    desk.coordinator.states.expire()
    assert desk.state == "Empty"
    desk.metadata.pending_state = None
    desk.coordinator.states.expire()
    assert desk.coordinator.describe(ID).error is E.TRANSACTIONAL_ID_NOT_FOUND


def test_an_id_stays_when_its_tombstone_cannot_be_written(desk: Desk) -> None:
    desk.init()
    desk.append_error = E.NOT_ENOUGH_REPLICAS
    desk.clock.advance(604_800_000 + 3_600_000)
    assert (desk.state, desk.metadata.pending_state) == ("Empty", None)


# -- verification and descriptions ---------------------------------------------------------------


def test_verification(desk: Desk) -> None:
    """KIP-890: partitions of the transaction may be written, others are not its own."""
    desk.open_transaction()
    assert desk.verify(ORDERS) == [E.NONE]
    other = AUDIT._replace(partition=9)
    assert desk.verify(ORDERS, other) == [E.NONE, E.TRANSACTION_ABORTABLE]
    assert desk.verify(name="") == [E.INVALID_REQUEST]
    assert desk.verify(name="other") == [E.INVALID_PRODUCER_ID_MAPPING]
    assert desk.verify(producer_id=7) == [E.INVALID_PRODUCER_ID_MAPPING]
    assert desk.verify(epoch=1) == [E.PRODUCER_FENCED]
    desk.end()
    assert desk.verify(ORDERS) == [E.CONCURRENT_TRANSACTIONS]


def test_an_open_transaction_is_described(desk: Desk) -> None:
    """KIP-664: state, producer, timeout, start and partitions of a transaction are described."""
    desk.open_transaction()
    found = desk.coordinator.describe(ID)
    assert (found.error, found.state, found.producer_id) == (E.NONE, "Ongoing", 100)
    assert (found.timeout_ms, found.start_time_ms) == (TIMEOUT_MS, desk.clock.now_ms)
    assert found.partitions == (ORDERS, AUDIT)
    assert desk.coordinator.describe("").error is E.INVALID_REQUEST
    assert desk.coordinator.describe("other").error is E.TRANSACTIONAL_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("request_of", "names", "unknown"),
    [
        ({}, [ID, "second"], ()),
        ({"states": ("Ongoing",)}, [ID], ()),
        ({"states": ("Empty", "Broken")}, ["second"], ("Broken",)),
        ({"states": ("Broken",)}, [], ("Broken",)),
        ({"states": ("Broken", "Broken", "Odd")}, [], ("Broken", "Odd")),
        ({"producer_ids": (101,)}, ["second"], ()),
        ({"producer_ids": (101,), "states": ("Ongoing",)}, [], ()),
        ({"duration_ms": 999, "states": ("Ongoing",)}, [ID], ()),
        ({"duration_ms": 1000, "states": ("Ongoing",)}, [], ()),
    ],
)
def test_lists(
    desk: Desk, request_of: dict[str, Any], names: list[str], unknown: tuple[str, ...]
) -> None:
    """KIP-664, KIP-994: by state, producer, and how long a transaction is open."""
    desk.open_transaction()
    desk.init("second")
    desk.clock.advance(1000)
    answer = desk.coordinator.list_transactions(ListTransactionsRequest(**request_of))
    assert [found.transactional_id for found in answer.transactions] == names
    assert answer.unknown_states == unknown


def test_a_list_does_not_look_at_each_filter_for_each_transaction(desk: Desk) -> None:
    """Thousands of filters and of transactions would be millions of comparisons."""
    compared = 0

    class Counted(int):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int(self) == other

        __hash__ = int.__hash__

    desk.init("first")
    desk.init("second")
    wanted = tuple(Counted(number) for number in range(1000, 1100))
    answer = desk.coordinator.list_transactions(ListTransactionsRequest(producer_ids=wanted))
    assert (answer.transactions, compared) == ((), 0)


def test_changes_of_state_are_told(desk: Desk) -> None:
    """The listener hears each state, once it counts."""
    told: list[tuple[str, Any, Any]] = []
    desk.host.state_listener = lambda *change: told.append(change)
    desk.open_transaction()
    desk.end()
    assert [change for change in told if change[0] == f"transaction/{ID}"] == [
        (f"transaction/{ID}", None, "Empty"),
        (f"transaction/{ID}", "Empty", "Ongoing"),
        (f"transaction/{ID}", "Ongoing", "PrepareCommit"),
    ]
    assert {path for path, _, _ in told} == {
        f"transaction/{ID}{part}" for part in ("", "/producer", "/partitions")
    }
