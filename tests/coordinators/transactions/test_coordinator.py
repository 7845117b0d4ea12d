"""The answers of a transaction coordinator, and the records it writes."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.coordinators.transactions.states import TransactionState
from fakekafka.protocol.data import InitProducerIdResponse
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.transactions import ListTransactionsRequest
from fakekafka.tests.support.transaction_rig import AUDIT, ID, ORDERS, TIMEOUT_MS, TransactionRig

S = TransactionState
E = ErrorCode


# -- InitProducerId ------------------------------------------------------------------------------


def test_a_new_id_gets_a_producer_id_and_epoch_zero(rig: TransactionRig) -> None:
    """A new id gets a producer id and epoch 0; each further InitProducerId raises and writes the
    epoch."""
    assert rig.init() == InitProducerIdResponse(E.NONE, 100, 0)
    assert rig.init() == InitProducerIdResponse(E.NONE, 100, 1)
    assert rig.written() == ["Empty 0", "Empty 1"]


def test_without_an_id_nothing_is_written(rig: TransactionRig) -> None:
    """An idempotent producer gets a new producer id from any broker, without a record."""
    rig.resign()
    assert rig.init(None) == InitProducerIdResponse(E.NONE, 100, 0)
    assert rig.init(None) == InitProducerIdResponse(E.NONE, 101, 0)
    assert rig.written() == []


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
def test_invalid_requests_for_a_producer_id_are_refused(
    rig: TransactionRig, request_of: dict[str, Any], error: ErrorCode
) -> None:
    assert rig.init(**request_of).error is error


@pytest.mark.parametrize(
    ("producer_id", "epoch", "answer"),
    [
        (100, 1, (E.NONE, 100, 2)),
        (100, 0, (E.PRODUCER_FENCED, -1, -1)),
        (100, 2, (E.PRODUCER_FENCED, -1, -1)),
        (7, 1, (E.PRODUCER_FENCED, -1, -1)),
    ],
)
def test_a_producer_that_names_its_current_epoch_gets_the_next(
    rig: TransactionRig, producer_id: int, epoch: int, answer: tuple[ErrorCode, int, int]
) -> None:
    """KIP-360: a request that names the present epoch raises it; other epochs are fenced."""
    rig.init()
    rig.init()
    assert rig.init(producer_id=producer_id, epoch=epoch) == InitProducerIdResponse(*answer)


def test_a_request_repeated_after_its_answer_was_lost(rig: TransactionRig) -> None:
    """KIP-360: a repeated request, which names the epoch before the present one, gets the present
    one."""
    rig.init()
    assert rig.init(producer_id=100, epoch=0).producer_epoch == 1
    assert rig.init(producer_id=100, epoch=0).producer_epoch == 1
    assert rig.init().producer_epoch == 2
    assert rig.init(producer_id=100, epoch=1).error is E.PRODUCER_FENCED


def test_a_request_is_not_repeated_across_a_fence(rig: TransactionRig) -> None:
    """KIP-360: after the coordinator has fenced a transaction, the epoch before is fenced, too."""
    rig.init()
    assert rig.init(producer_id=100, epoch=0).producer_epoch == 1
    assert rig.add(ORDERS, epoch=1) is E.NONE
    rig.clock.advance(TIMEOUT_MS + 10_000)
    assert (rig.state, rig.metadata.producer_epoch) == ("PrepareAbort", 2)
    rig.sent()
    rig.answer_markers()
    assert rig.state == "CompleteAbort"
    assert rig.init(producer_id=100, epoch=0).error is E.PRODUCER_FENCED


def test_an_exhausted_epoch_is_followed_by_a_new_producer_id(rig: TransactionRig) -> None:
    """When epochs are exhausted a new producer id begins at 0; a repeated request may name the old
    id with its last epoch."""
    rig.init()
    rig.metadata.producer_epoch = 32766
    assert rig.init() == InitProducerIdResponse(E.NONE, 101, 0)
    rig.metadata.producer_epoch = 32766
    assert rig.init(producer_id=101, epoch=32766) == InitProducerIdResponse(E.NONE, 102, 0)
    assert rig.init(producer_id=101, epoch=32766) == InitProducerIdResponse(E.NONE, 102, 0)
    assert rig.init(producer_id=101, epoch=3).error is E.PRODUCER_FENCED


def test_an_open_transaction_is_aborted_first(rig: TransactionRig) -> None:
    """DP-133: InitProducerId aborts an open transaction; the producer has to retry, and then gets a
    new epoch."""
    rig.open_transaction()
    assert rig.init().error is E.CONCURRENT_TRANSACTIONS
    assert (rig.state, rig.metadata.producer_epoch) == ("PrepareAbort", 1)
    assert rig.init().error is E.CONCURRENT_TRANSACTIONS
    rig.sent()
    rig.answer_markers()
    rig.answer_markers()
    assert rig.state == "CompleteAbort"
    assert rig.init() == InitProducerIdResponse(E.NONE, 100, 2)
    assert rig.end(epoch=0) is E.PRODUCER_FENCED


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
def test_only_the_current_producer_may_add_partitions(
    rig: TransactionRig, request_of: dict[str, Any], error: ErrorCode
) -> None:
    rig.init()
    assert rig.add(ORDERS, **request_of) is error


def test_partitions_that_are_there_are_not_written_again(rig: TransactionRig) -> None:
    rig.open_transaction()
    assert rig.add(AUDIT) is E.NONE
    assert rig.written() == ["Empty 0", "Ongoing 0"]
    assert list(rig.metadata.partitions) == [ORDERS, AUDIT]


def test_a_pending_change_makes_other_requests_concurrent_transactions(rig: TransactionRig) -> None:
    """DP-134: until a change is replicated all other requests are CONCURRENT_TRANSACTIONS."""
    rig.init()
    rig.holds_appends = True
    adding = rig.begin_adding(ORDERS)
    assert not adding.done
    assert rig.add(AUDIT) is E.CONCURRENT_TRANSACTIONS
    assert rig.end() is E.CONCURRENT_TRANSACTIONS
    assert rig.init().error is E.CONCURRENT_TRANSACTIONS
    rig.answer_append()
    assert adding.result() is E.NONE
    assert rig.state == "Ongoing"


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
    rig: TransactionRig, appended: ErrorCode, answered: ErrorCode
) -> None:
    """If a record cannot be written, the next request finds the former state."""
    rig.init()
    rig.append_error = appended
    assert rig.add(ORDERS) is answered
    assert (rig.state, rig.metadata.pending_state) == ("Empty", None)
    rig.append_error = E.NONE
    assert rig.add(ORDERS) is E.NONE


# -- EndTxn --------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_end_is_answered_before_its_markers_are_written(
    rig: TransactionRig, is_commit: bool
) -> None:
    """The end is answered once the decision is in the log; the transaction is closed once every
    partition has its marker."""
    rig.open_transaction()
    assert rig.end(is_commit) is E.NONE
    word = "Commit" if is_commit else "Abort"
    assert rig.state == f"Prepare{word}"
    assert rig.add(ORDERS) is E.CONCURRENT_TRANSACTIONS
    assert rig.init().error is E.CONCURRENT_TRANSACTIONS
    assert rig.end(is_commit) is E.CONCURRENT_TRANSACTIONS
    assert rig.end(not is_commit) is E.CONCURRENT_TRANSACTIONS
    ((first, request), (second, _)) = rig.sent()
    (marker,) = request.markers
    assert (first, second) == (1, 2)
    assert (marker.producer_id, marker.producer_epoch, marker.is_commit) == (100, 0, is_commit)
    assert (marker.partitions, marker.coordinator_epoch) == ((ORDERS,), 5)
    rig.answer_markers()
    assert rig.state == f"Prepare{word}"
    rig.answer_markers()
    assert rig.state == f"Complete{word}"
    assert rig.end(is_commit) is E.NONE
    assert rig.end(not is_commit) is E.INVALID_TXN_STATE
    assert rig.written()[-2:] == [f"Prepare{word} 0", f"Complete{word} 0"]


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
def test_only_the_current_producer_may_end_a_transaction(
    rig: TransactionRig, request_of: dict[str, Any], error: ErrorCode
) -> None:
    rig.open_transaction()
    assert rig.end(**request_of) is error
    assert rig.state == "Ongoing"


def test_ending_an_empty_transaction_is_an_invalid_state(rig: TransactionRig) -> None:
    rig.init()
    assert rig.end() is E.INVALID_TXN_STATE


def test_old_releases_let_a_later_epoch_end_a_transaction() -> None:
    """KAFKA-9600: old releases accept an end with a later epoch; they answer INVALID_PRODUCER_EPOCH
    to a fenced producer (KIP-588)."""
    rig = TransactionRig("1.1")
    rig.lead()
    rig.open_transaction()
    assert rig.add(epoch=1) is E.INVALID_PRODUCER_EPOCH
    assert rig.end(epoch=-1) is E.INVALID_PRODUCER_EPOCH
    assert rig.end(epoch=1) is E.NONE


# -- timeouts ------------------------------------------------------------------------------------


def test_a_transaction_that_takes_too_long_is_aborted_under_the_next_epoch(
    rig: TransactionRig,
) -> None:
    """DP-133: a check every ten seconds aborts transactions past their timeout, and fences the
    producer."""
    rig.open_transaction()
    rig.clock.advance(TIMEOUT_MS)
    assert rig.state == "Ongoing"
    rig.clock.advance(10_000)
    assert (rig.state, rig.metadata.producer_epoch) == ("PrepareAbort", 1)
    assert rig.end() is E.PRODUCER_FENCED
    assert [request.markers[0].producer_epoch for _, request in rig.sent()] == [1, 1]
    assert rig.failures == []


def test_a_transaction_that_has_ended_takes_no_longer(rig: TransactionRig) -> None:
    """A transaction is not aborted by timeout while its markers are being sent, nor once it is
    closed."""
    rig.open_transaction()
    assert rig.end() is E.NONE
    rig.clock.advance(TIMEOUT_MS + 20_000)
    assert (rig.state, rig.metadata.producer_epoch) == ("PrepareCommit", 0)
    while rig.markers:
        rig.answer_markers()
    assert rig.state == "CompleteCommit"
    written = rig.written()
    rig.clock.advance(TIMEOUT_MS + 20_000)
    assert (rig.state, rig.metadata.producer_epoch) == ("CompleteCommit", 0)
    assert rig.written() == written
    assert rig.failures == []


def test_the_timeout_counts_from_the_first_partition_whatever_is_added_later(
    rig: TransactionRig,
) -> None:
    """DP-133: ``abortTimedOutTransactions`` counts from the start of the transaction, whatever is
    added later."""
    rig.init()
    assert rig.add(ORDERS) is E.NONE
    began_ms = rig.clock.now_ms
    for number in (2, 3, 4):
        rig.clock.advance(TIMEOUT_MS // 3 - 1)
        assert rig.add(AUDIT._replace(partition=number)) is E.NONE
    assert (rig.metadata.start_ms, rig.state) == (began_ms, "Ongoing")
    assert rig.metadata.updated_ms > began_ms + TIMEOUT_MS // 2
    rig.clock.advance(10_003)
    assert (rig.state, rig.metadata.producer_epoch) == ("PrepareAbort", 1)


def test_a_transaction_is_not_aborted_for_time_that_the_process_missed(rig: TransactionRig) -> None:
    """A stall of the process extends only the open transaction; the next one counts from its own
    start, which is a date."""
    rig.open_transaction()
    rig.clock.advance(TIMEOUT_MS - 10_000)
    rig.clock.missed_ms += 10 * TIMEOUT_MS
    rig.clock.advance(10_000)
    assert rig.state == "Ongoing"
    rig.clock.advance(10_000)
    assert rig.state == "PrepareAbort"
    rig.answer_markers()
    rig.answer_markers()
    began_ms = rig.clock.now_ms + rig.clock.missed_ms
    assert rig.add(ORDERS, epoch=rig.init().producer_epoch) is E.NONE
    assert rig.coordinator.describe(ID).start_time_ms == began_ms
    rig.clock.advance(TIMEOUT_MS)
    assert rig.state == "Ongoing"


def test_a_loaded_transaction_counts_its_timeout_from_its_start(rig: TransactionRig) -> None:
    """The start of a transaction is a date in the log; only a coordinator that knew a later stall
    leaves it out of the count."""
    rig.clock.missed_ms += 10 * TIMEOUT_MS
    rig.open_transaction()
    began_ms = rig.metadata.start_ms
    rig.clock.advance(TIMEOUT_MS // 2)
    rig.resign()
    rig.lead(7)
    rig.clock.advance(TIMEOUT_MS // 2)
    assert (rig.metadata.start_ms, rig.state) == (began_ms, "Ongoing")
    rig.clock.advance(10_000)
    assert rig.state == "PrepareAbort"


def test_a_transaction_whose_change_is_being_written_is_aborted_afterwards(
    rig: TransactionRig,
) -> None:
    """DP-133: a pending change is written first, and the next check aborts the transaction."""
    rig.open_transaction()
    rig.holds_appends = True
    adding = rig.begin_adding(AUDIT._replace(partition=7))
    rig.clock.advance(TIMEOUT_MS + 10_000)
    assert (rig.metadata.pending_state, rig.metadata.producer_epoch) == (S.ONGOING, 0)
    assert len(rig.appends) == 1
    rig.holds_appends = False
    rig.answer_append()
    assert (adding.result(), rig.state) == (E.NONE, "Ongoing")
    rig.clock.advance(10_000)
    assert (rig.state, rig.metadata.producer_epoch) == ("PrepareAbort", 1)
    assert rig.failures == []


@pytest.mark.parametrize(("version", "epochs"), [("3.9", [1, 1]), ("1.1", [1, 2])])
def test_a_fence_that_cannot_be_written_raises_the_epoch_once(
    version: str, epochs: list[int]
) -> None:
    """KAFKA-9666: before its fix each failed attempt to fence raised the epoch."""
    rig = TransactionRig(version)
    rig.lead()
    rig.open_transaction()
    seen = []
    for _ in range(2):
        rig.append_error = E.NOT_ENOUGH_REPLICAS
        assert rig.init().error is E.COORDINATOR_NOT_AVAILABLE
        seen.append(rig.metadata.producer_epoch)
    assert (seen, rig.state) == (epochs, "Ongoing")
    rig.append_error = E.NONE
    assert rig.init().error is E.CONCURRENT_TRANSACTIONS
    assert rig.state == "PrepareAbort"


def test_unused_transactional_ids_expire() -> None:
    """An unused id is removed after a week, by tombstones in batches of limited size; one with an
    open transaction stays."""
    rig = TransactionRig()
    rig.lead()
    names = [f"id-{number}-{'x' * 80}" for number in range(20)]
    for name in names:
        rig.init(name)
    open_transaction_of_another = rig.init()
    assert open_transaction_of_another.error is E.NONE
    rig.add(producer_id=120, epoch=0)
    rig.metadata.timeout_ms = 10**10
    before = len(rig.log.stored)
    rig.clock.advance(604_800_000 + 3_600_000)
    assert [d.transactional_id for _, d in rig.coordinator.states.transactions()] == [ID]
    assert rig.written().count("-") == 20
    assert 1 < len(rig.log.stored) - before < 20
    assert rig.coordinator.describe(names[0]).error is E.TRANSACTIONAL_ID_NOT_FOUND


def test_an_id_expires_exactly_at_its_expiration_time(rig: TransactionRig) -> None:
    """An id expires exactly at its time, unless a change is pending
    (``TransactionStateManager.shouldExpire``)."""
    rig.init()
    rig.metadata.updated_ms = rig.host.wall_ms() - 604_800_000 + 1
    rig.coordinator.states.expire()
    assert rig.state == "Empty"
    rig.metadata.updated_ms -= 1
    rig.metadata.pending_state = S.ONGOING
    rig.coordinator.states.expire()
    assert rig.state == "Empty"
    rig.metadata.pending_state = None
    rig.coordinator.states.expire()
    assert rig.coordinator.describe(ID).error is E.TRANSACTIONAL_ID_NOT_FOUND


def test_an_id_stays_when_its_tombstone_cannot_be_written(rig: TransactionRig) -> None:
    rig.init()
    rig.append_error = E.NOT_ENOUGH_REPLICAS
    rig.clock.advance(604_800_000 + 3_600_000)
    assert (rig.state, rig.metadata.pending_state) == ("Empty", None)


# -- verification and descriptions ---------------------------------------------------------------


def test_verification(rig: TransactionRig) -> None:
    """KIP-890: partitions of the open transaction are verified; others are refused."""
    rig.open_transaction()
    assert rig.verify(ORDERS) == [E.NONE]
    other = AUDIT._replace(partition=9)
    assert rig.verify(ORDERS, other) == [E.NONE, E.TRANSACTION_ABORTABLE]
    assert rig.verify(name="") == [E.INVALID_REQUEST]
    assert rig.verify(name="other") == [E.INVALID_PRODUCER_ID_MAPPING]
    assert rig.verify(producer_id=7) == [E.INVALID_PRODUCER_ID_MAPPING]
    assert rig.verify(epoch=1) == [E.PRODUCER_FENCED]
    rig.end()
    assert rig.verify(ORDERS) == [E.CONCURRENT_TRANSACTIONS]


def test_an_open_transaction_is_described(rig: TransactionRig) -> None:
    """KIP-664: state, producer, timeout, start and partitions of a transaction are described."""
    rig.open_transaction()
    found = rig.coordinator.describe(ID)
    assert (found.error, found.state, found.producer_id) == (E.NONE, "Ongoing", 100)
    assert (found.timeout_ms, found.start_time_ms) == (TIMEOUT_MS, rig.clock.now_ms)
    assert found.partitions == (ORDERS, AUDIT)
    assert rig.coordinator.describe("").error is E.INVALID_REQUEST
    assert rig.coordinator.describe("other").error is E.TRANSACTIONAL_ID_NOT_FOUND


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
    rig: TransactionRig, request_of: dict[str, Any], names: list[str], unknown: tuple[str, ...]
) -> None:
    """KIP-664, KIP-994: transactions are listed by state, by producer and by how long they have
    been open."""
    rig.open_transaction()
    rig.init("second")
    rig.clock.advance(1000)
    answer = rig.coordinator.list_transactions(ListTransactionsRequest(**request_of))
    assert [found.transactional_id for found in answer.transactions] == names
    assert answer.unknown_states == unknown


def test_listing_transactions_does_not_compare_each_filter_with_each_transaction(
    rig: TransactionRig,
) -> None:
    """A list takes time linear in the numbers of filters and of transactions."""
    compared = 0

    class Counted(int):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int(self) == other

        __hash__ = int.__hash__

    rig.init("first")
    rig.init("second")
    wanted = tuple(Counted(number) for number in range(1000, 1100))
    answer = rig.coordinator.list_transactions(ListTransactionsRequest(producer_ids=wanted))
    assert (answer.transactions, compared) == ((), 0)


def test_a_listener_gets_each_new_state_of_a_transaction(rig: TransactionRig) -> None:
    """The listener gets each state of a transaction once the state is in force."""
    told: list[tuple[str, Any, Any]] = []
    rig.host.state_listener = lambda *change: told.append(change)
    rig.open_transaction()
    rig.end()
    assert [change for change in told if change[0] == f"transaction/{ID}"] == [
        (f"transaction/{ID}", None, "Empty"),
        (f"transaction/{ID}", "Empty", "Ongoing"),
        (f"transaction/{ID}", "Ongoing", "PrepareCommit"),
    ]
    assert {path for path, _, _ in told} == {
        f"transaction/{ID}{part}" for part in ("", "/producer", "/partitions")
    }
