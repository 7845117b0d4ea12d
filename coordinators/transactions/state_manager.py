"""The transactional ids that this broker coordinates, and their records in the transaction log
(docs/kafka/transactions.md#the-log; Kafka's ``TransactionStateManager``).

The leader of a partition of ``__transaction_state`` coordinates the transactional ids that hash to
the partition. The leader epoch of the partition is the coordinator epoch: a transition prepared
under an older epoch is not completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ...protocol.awaiting import Pending
from ...protocol.config import BrokerConfig
from ...protocol.data import (
    ACKS_ALL,
    INTERNAL_CONTEXT,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from ...protocol.errors import ClientError, ErrorCode, KafkaError
from ...protocol.host import Host
from ...protocol.internal_topics import TRANSACTIONS_TOPIC
from ...protocol.records.batch import build_batch
from ...protocol.records.format import MalformedRecords, Record
from ...protocol.transactions import ListedTransaction, ListTransactionsRequest
from ...protocol.values import TopicPartition, assembled
from ...replication.log.validator import ORIGIN_COORDINATOR
from ..append_errors import APPEND_ERRORS
from ..partitioning import coordinating_partition
from .metadata import TransactionMetadata, TransitMetadata
from .records import decode_key, decode_value, encode_key, encode_value
from .states import EXPIRABLE_STATES, STATE_BY_TITLE, TransactionState

if TYPE_CHECKING:
    from ...replication.log.log import Log
    from ...replication.partition.partition import Partition
    from ...replication.replica_manager import ReplicaManager

_NONE = ErrorCode.NONE
_WRITE_ERRORS = {
    **APPEND_ERRORS,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
_RECORD_OVERHEAD = 30
"""Upper bound of the bytes in a tombstone besides its transactional id."""


class CoordinatorEpochAndMetadata(NamedTuple):
    """A transactional id that this broker coordinates."""

    coordinator_epoch: int
    metadata: TransactionMetadata | None
    """State of the transactional id; None if it was never initialized."""


@assembled
class _OwnedPartition:
    """A loaded partition of the transaction log."""

    coordinator_epoch: int
    hosted: Partition
    transactions: dict[str, TransactionMetadata]


class TransactionStateManager:
    """Keeps the state of the transactional ids whose log partitions this broker leads."""

    def __init__(self, host: Host, config: BrokerConfig, replicas: ReplicaManager) -> None:
        self._host = host
        self._config = config
        self._replicas = replicas
        self._owned: dict[int, _OwnedPartition] = {}
        self._loading: dict[int, int] = {}
        """Coordinator epochs of the partitions about to be read."""
        self._waiting: dict[int, Callable[[], object]] = {}
        """Loads of partitions that wait for metadata from the controller."""

    def partition_for(self, transactional_id: str) -> int:
        """Return the partition of ``__transaction_state`` whose leader coordinates the id."""
        return coordinating_partition(
            TRANSACTIONS_TOPIC, transactional_id, self._replicas.metadata_cache, self._config
        )

    @property
    def owns_any(self) -> bool:
        return bool(self._owned or self._loading)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the log partitions that are loaded or being loaded."""
        return (*self._owned, *self._loading)

    # -- lookup --------------------------------------------------------------------------------

    def find(self, transactional_id: str) -> CoordinatorEpochAndMetadata:
        """Return the state of a transactional id, with its coordinator epoch.

        Raises ``KafkaError`` COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR.
        """
        owned = self._owned_partition(transactional_id)
        return CoordinatorEpochAndMetadata(
            owned.coordinator_epoch, owned.transactions.get(transactional_id)
        )

    def put_if_absent(self, metadata: TransactionMetadata) -> TransactionMetadata:
        """Keep a new id and return its state, or the state already kept; raise like ``find``."""
        transactions = self._owned_partition(metadata.transactional_id).transactions
        kept = transactions.setdefault(metadata.transactional_id, metadata)
        if kept is metadata:
            self._tell(metadata.transactional_id, metadata)
        return kept

    def _owned_partition(self, transactional_id: str) -> _OwnedPartition:
        number = self.partition_for(transactional_id)
        if number in self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        owned = self._owned.get(number)
        if owned is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return owned

    def current(self, transactional_id: str, coordinator_epoch: int) -> TransactionMetadata | None:
        """Return the state of an id if it is coordinated here under this epoch, else None."""
        try:
            found = self.find(transactional_id)
        except KafkaError:
            return None
        return found.metadata if found.coordinator_epoch == coordinator_epoch else None

    def transactions(self) -> Iterator[tuple[int, TransactionMetadata]]:
        """Yield all loaded ids with their coordinator epochs; changes meanwhile are safe."""
        for owned in tuple(self._owned.values()):
            for metadata in tuple(owned.transactions.values()):
                yield owned.coordinator_epoch, metadata

    def list_transactions(
        self, request: ListTransactionsRequest
    ) -> tuple[tuple[str, ...], tuple[ListedTransaction, ...]]:
        """Return the requested states that do not exist, and the ids that pass the filters.

        Raises ``KafkaError`` COORDINATOR_LOAD_IN_PROGRESS while any partition is being loaded.
        """
        if self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        states, producer_ids = dict.fromkeys(request.states), frozenset(request.producer_ids)
        unknown = tuple(title for title in states if title not in STATE_BY_TITLE)
        wall_ms = self._host.wall_ms()
        return unknown, tuple(
            ListedTransaction(metadata.transactional_id, metadata.producer_id, metadata.state.title)
            for _, metadata in self.transactions()
            if metadata.state is not TransactionState.DEAD
            and (not producer_ids or metadata.producer_id in producer_ids)
            and (not states or metadata.state.title in states)
            and (request.duration_ms < 0 or wall_ms - metadata.start_ms > request.duration_ms)
        )

    # -- leadership ----------------------------------------------------------------------------

    def load(
        self, hosted: Partition, loaded: Callable[[int, list[TransactionMetadata]], object]
    ) -> None:
        """Schedule the loading of a partition that this broker now leads.

        ``loaded`` is called with the coordinator epoch and the transactional ids read, unless the
        leadership is lost before. A broker that has just started learns of its leaderships before
        it knows the cluster's partitions; until it does, partitions that wait for a marker would
        seem deleted. So loading waits for the metadata. Kafka has it by the time it has read the
        log.
        """
        number = hosted.topic_partition.partition
        epoch = hosted.leader_epoch
        self._loading[number] = epoch

        def load() -> None:
            if self._loading.get(number) != epoch:
                return
            if self._replicas.metadata_cache.partition_state(hosted.topic_partition) is None:
                self._waiting[number] = load
                return
            transactions = {} if hosted.log is None else _read(hosted.log)
            self._owned[number] = _OwnedPartition(epoch, hosted, transactions)
            for metadata in transactions.values():
                self._record_start_time(metadata)
                self._tell(metadata.transactional_id, metadata)
            del self._loading[number]
            loaded(epoch, list(transactions.values()))

        self._host.call_later_ms(0, load)

    def metadata_changed(self) -> None:
        """Resume the loads that waited for metadata."""
        waiting, self._waiting = self._waiting, {}
        for load in waiting.values():
            load()

    def unload(self, number: int) -> None:
        """Forget a partition that this broker no longer leads."""
        self._loading.pop(number, None)
        self._waiting.pop(number, None)
        owned = self._owned.pop(number, None)
        if owned is not None:
            for transactional_id in owned.transactions:
                self._tell(transactional_id, None)

    def _tell(
        self, transactional_id: str, metadata: TransactionMetadata | None, before: str | None = None
    ) -> None:
        """Report the state of a transaction to the recorder; ``metadata`` is None for an unknown
        one."""
        tell = self._host.state_listener
        if tell is None:
            return
        path = f"transaction/{transactional_id}"
        if metadata is None:
            values: tuple[Any, Any, Any] = (None, None, None)
        else:
            producer = [metadata.producer_id, metadata.producer_epoch]
            partitions = [str(name) for name in metadata.partitions] or None
            values = (metadata.state.title, producer, partitions)
        if before != values[0] or metadata is None:
            tell(path, before, values[0])
        tell(f"{path}/producer", None, values[1])
        tell(f"{path}/partitions", None, values[2])

    # -- the log -------------------------------------------------------------------------------

    def append(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        target: TransitMetadata,
        stays_pending_if_unavailable: bool = False,
    ) -> Pending[ErrorCode]:
        """Write a prepared transition, and complete it once its record is replicated.

        A transition that fails is no longer pending. With ``stays_pending_if_unavailable`` it stays
        pending after COORDINATOR_NOT_AVAILABLE, as the caller will write it again.
        """
        outcome: Pending[ErrorCode] = Pending()
        try:
            found = self.find(transactional_id)
        except KafkaError as error:
            outcome.set_result(error.code)
            return outcome
        if found.metadata is None or found.coordinator_epoch != coordinator_epoch:
            outcome.set_result(ErrorCode.NOT_COORDINATOR)
            return outcome

        def appended(error: ErrorCode) -> None:
            error = _WRITE_ERRORS.get(error, error)
            if error is _NONE:
                error = self._complete(transactional_id, coordinator_epoch, target)
            elif not (
                stays_pending_if_unavailable and error is ErrorCode.COORDINATOR_NOT_AVAILABLE
            ):
                metadata = self.current(transactional_id, coordinator_epoch)
                if metadata is not None:
                    metadata.pending_state = None
            outcome.set_result(error)

        wall_ms = self._host.wall_ms()
        record = Record(0, wall_ms, encode_key(transactional_id), encode_value(target), ())
        self._write(
            self.partition_for(transactional_id), build_batch([record]), target.timeout_ms, appended
        )
        return outcome

    def _write(
        self, number: int, data: bytes, timeout_ms: int, appended: Callable[[ErrorCode], object]
    ) -> None:
        entry = ProducePartition(TopicPartition(TRANSACTIONS_TOPIC, number), data)

        def answered(response: ProduceResponse) -> None:
            appended(response.partitions[0].error)

        self._replicas.produce.append_records(
            ProduceRequest(ACKS_ALL, timeout_ms, (entry,)),
            INTERNAL_CONTEXT,
            answered,
            origin=ORIGIN_COORDINATOR,
        )

    def _complete(
        self, transactional_id: str, coordinator_epoch: int, target: TransitMetadata
    ) -> ErrorCode:
        try:
            found = self.find(transactional_id)
        except KafkaError as error:
            return error.code
        metadata = found.metadata
        if metadata is None or found.coordinator_epoch != coordinator_epoch:
            return ErrorCode.NOT_COORDINATOR
        before = metadata.state.title
        is_open = metadata.state is TransactionState.ONGOING
        metadata.complete(target)
        if not is_open:
            self._record_start_time(metadata)
        self._tell(transactional_id, metadata, before)
        return _NONE

    def _record_start_time(self, metadata: TransactionMetadata) -> None:
        """Note when the transaction began on the runtime's clock, for its timeout."""
        open_ms = self._host.wall_ms() - metadata.start_ms
        metadata.began_ms = self._host.now_ms() - open_ms
        if self._host.causes is not None:
            metadata.begun_by = self._host.causes.current()

    # -- expiry --------------------------------------------------------------------------------

    def expire(self) -> None:
        """Write tombstones for ids unused for ``transactional.id.expiration.ms``."""
        latest_ms = self._host.wall_ms() - self._config["transactional.id.expiration.ms"]
        for number, owned in tuple(self._owned.items()):
            log = owned.hosted.log
            if log is None:
                continue
            expired: list[str] = []
            size = 0
            for transactional_id, metadata in tuple(owned.transactions.items()):
                if (
                    metadata.pending_state is not None
                    or metadata.state not in EXPIRABLE_STATES
                    or metadata.updated_ms > latest_ms
                ):
                    continue
                size += len(transactional_id.encode()) + _RECORD_OVERHEAD
                if expired and size > log.settings.max_message_bytes:
                    self._write_tombstones(number, owned, expired)
                    expired, size = [], 0
                metadata.prepare_dead()
                expired.append(transactional_id)
            if expired:
                self._write_tombstones(number, owned, expired)

    def _write_tombstones(self, number: int, owned: _OwnedPartition, expired: list[str]) -> None:
        epoch = owned.coordinator_epoch
        epochs = {name: owned.transactions[name].producer_epoch for name in expired}

        def appended(error: ErrorCode) -> None:
            now_owned = self._owned.get(number)
            if now_owned is None:
                return
            for name, producer_epoch in epochs.items():
                metadata = now_owned.transactions.get(name)
                if metadata is None:
                    continue
                if (
                    error is _NONE
                    and now_owned.coordinator_epoch == epoch
                    and metadata.pending_state is TransactionState.DEAD
                    and metadata.producer_epoch == producer_epoch
                ):
                    del now_owned.transactions[name]
                    self._tell(name, None)
                else:
                    metadata.pending_state = None

        wall_ms = self._host.wall_ms()
        records = [
            Record(index, wall_ms, encode_key(name), None, ()) for index, name in enumerate(epochs)
        ]
        self._write(number, build_batch(records), self._config["request.timeout.ms"], appended)


def _read(log: Log) -> dict[str, TransactionMetadata]:
    """Return the latest state of each id; reading stops at a record that cannot be decoded."""
    transactions: dict[str, TransactionMetadata] = {}
    for batch in log.batches():
        if batch.is_control:
            continue
        try:
            for record in batch.records():
                name = None if record.key is None else decode_key(record.key)
                if name is None:
                    continue
                if record.value is None:
                    transactions.pop(name, None)
                else:
                    transactions[name] = decode_value(name, record.value)
        except (ClientError, MalformedRecords):
            break
    return transactions
