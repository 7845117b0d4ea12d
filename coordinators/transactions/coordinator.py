"""The transaction coordinator of a broker (docs/kafka/transactions.md#requests;
Kafka's ``TransactionCoordinator``).

A request is a coroutine: it checks the state of the transactional id, prepares a transition, and
waits for the record of the transition to be replicated. Failures are returned as error codes, never
raised.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from ...protocol.config import BrokerConfig
from ...protocol.data import InitProducerIdRequest, InitProducerIdResponse
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.host import Host
from ...protocol.internal_topics import TRANSACTIONS_TOPIC
from ...protocol.transactions import (
    AddPartitionsToTxnResult,
    DescribedTransaction,
    EndTxnRequest,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionPartitions,
)
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from .markers import MarkerChannels, SendMarkers
from .metadata import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TransactionMetadata, TransitMetadata
from .periodic import Periodic
from .state_manager import TransactionStateManager
from .states import TransactionState, end_txn_error

if TYPE_CHECKING:
    from ...replication.partition.partition import Partition
    from ...replication.replica_manager import ReplicaManager

_NONE = ErrorCode.NONE
_FENCE = TransactionState.PREPARE_EPOCH_FENCE
NextProducerId = Callable[[], Coroutine[Any, Any, int]]


class TransactionCoordinator:
    """Coordinates the transactional ids whose partition of the log this broker leads."""

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        replicas: ReplicaManager,
        next_producer_id: NextProducerId,
        send_markers: SendMarkers,
        start_task: Callable[[Coroutine[Any, Any, Any]], object],
        *,
        started_ms: int,
        first_metadata_ms: int | None = None,
    ) -> None:
        """``started_ms`` is when the broker started. ``first_metadata_ms`` is when it first
        received metadata from the controller; None if it has not yet."""
        self._host = host
        self._config = config
        self._behaviour = behaviour
        self._next_producer_id = next_producer_id
        self._start_task = start_task
        self._fenced = (
            ErrorCode.PRODUCER_FENCED
            if behaviour.producer_fenced_error
            else ErrorCode.INVALID_PRODUCER_EPOCH
        )
        self.states: TransactionStateManager = TransactionStateManager(host, config, replicas)
        self.markers: MarkerChannels = MarkerChannels(
            host,
            config["request.timeout.ms"],
            replicas.metadata_cache,
            self.states,
            send_markers,
            start_task,
            first_metadata_ms,
        )
        self._periodic = [
            Periodic(host, config[interval], work, lambda: self.states.owns_any, started_ms)
            for interval, work in (
                (
                    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
                    self.abort_timed_out,
                ),
                ("transaction.remove.expired.transaction.cleanup.interval.ms", self.states.expire),
            )
        ]

    # -- leadership ----------------------------------------------------------------------------

    def leadership_changed(
        self, leaders: Iterable[Partition], followers: Iterable[Partition]
    ) -> None:
        """Load ``leaders`` and unload ``followers``, if they are of the transaction log."""
        for partition in leaders:
            if partition.topic_partition.topic == TRANSACTIONS_TOPIC:
                self.markers.remove_markers_for_partition(partition.topic_partition.partition)
                self.states.load(partition, self._loaded)
                for periodic in self._periodic:
                    periodic.wake()
        for partition in followers:
            if partition.topic_partition.topic == TRANSACTIONS_TOPIC:
                self._resign(partition.topic_partition.partition)

    def metadata_changed(self) -> None:
        """Resume loads and markers that waited for metadata from the controller."""
        self.states.metadata_changed()
        self.markers.metadata_changed()

    def partitions_stopped(self, partitions: Iterable[TopicPartition]) -> None:
        """Unload stopped partitions of the transaction log."""
        for partition in partitions:
            if partition.topic == TRANSACTIONS_TOPIC:
                self._resign(partition.partition)

    def reset(self) -> None:
        """Drop all transactional ids and unsent markers, as if the log had been deleted."""
        for number in self.states.numbers:
            self._resign(number)

    def _resign(self, number: int) -> None:
        self.states.unload(number)
        self.markers.remove_markers_for_partition(number)

    def _loaded(self, coordinator_epoch: int, transactions: list[TransactionMetadata]) -> None:
        """Resume transactions that the previous coordinator had decided by sending their
        markers."""
        wall_ms = self._host.wall_ms()
        decided = [
            (metadata, metadata.state is TransactionState.PREPARE_COMMIT)
            for metadata in transactions
            if metadata.state.is_prepared
        ]
        targets = [metadata.prepare_complete(wall_ms) for metadata, _ in decided]
        for (metadata, is_commit), target in zip(decided, targets, strict=True):
            self.markers.add(coordinator_epoch, is_commit, metadata, target, is_loaded=True)

    # -- InitProducerId ------------------------------------------------------------------------

    async def init_producer_id(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        """Return a producer id and epoch, which fence producers with an earlier epoch.

        If a transaction is open, abort it and return CONCURRENT_TRANSACTIONS, so that the producer
        retries.
        """
        transactional_id = request.transactional_id
        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
            return InitProducerIdResponse(ErrorCode.INVALID_REQUEST)
        if transactional_id == "":
            return InitProducerIdResponse(ErrorCode.INVALID_REQUEST)
        try:
            if transactional_id is None:
                return InitProducerIdResponse(_NONE, await self._next_producer_id(), 0)
            max_timeout_ms = self._config["transaction.max.timeout.ms"]
            if not 0 < request.transaction_timeout_ms <= max_timeout_ms:
                return InitProducerIdResponse(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
            coordinator_epoch, target = await self._prepare_init(transactional_id, request)
        except KafkaError as failure:
            return InitProducerIdResponse(failure.code)
        if target.state is _FENCE:
            error = await self._end(
                transactional_id, target.producer_id, target.producer_epoch, False, False
            )
            return InitProducerIdResponse(
                ErrorCode.CONCURRENT_TRANSACTIONS if error is _NONE else error
            )
        error = await self.states.append(transactional_id, coordinator_epoch, target)
        if error is not _NONE:
            return InitProducerIdResponse(error)
        return InitProducerIdResponse(_NONE, target.producer_id, target.producer_epoch)

    async def _prepare_init(
        self, transactional_id: str, request: InitProducerIdRequest
    ) -> tuple[int, TransitMetadata]:
        """Return the coordinator epoch and the transition to write; raise ``KafkaError``."""
        producer_id: int | None = None
        while True:
            # Looked up again after each await: the transactional id may have changed meanwhile.
            coordinator_epoch, metadata = self.states.find(transactional_id)
            if metadata is None and producer_id is not None:
                metadata = self.states.put_if_absent(
                    TransactionMetadata(
                        transactional_id,
                        producer_id,
                        NO_PRODUCER_EPOCH,
                        request.transaction_timeout_ms,
                        TransactionState.EMPTY,
                        self._host.wall_ms(),
                    )
                )
            if metadata is not None:
                target = self._init_target(metadata, request, producer_id)
                if target is not None:
                    return coordinator_epoch, target
            producer_id = await self._next_producer_id()

    def _init_target(
        self,
        metadata: TransactionMetadata,
        request: InitProducerIdRequest,
        new_producer_id: int | None,
    ) -> TransitMetadata | None:
        """Return the transition to write, or None if a new producer id is needed but missing.

        Raises ``KafkaError``.
        """
        has_expectation = request.producer_id != NO_PRODUCER_ID
        if metadata.pending_state is not None:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if has_expectation and not metadata.is_valid_producer_id(
            request.producer_id, request.producer_epoch
        ):
            raise KafkaError(self._fenced)
        state = metadata.state
        if state.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if state is TransactionState.ONGOING:
            return metadata.prepare_fence_producer_epoch()
        wall_ms = self._host.wall_ms()
        timeout_ms = request.transaction_timeout_ms
        if metadata.is_epoch_exhausted and (
            not has_expectation or request.producer_epoch == metadata.producer_epoch
        ):
            if new_producer_id is None:
                return None
            return metadata.prepare_producer_id_rotation(
                new_producer_id, timeout_ms, wall_ms, has_expectation
            )
        expected_epoch = request.producer_epoch if has_expectation else None
        return metadata.prepare_increment_producer_epoch(timeout_ms, expected_epoch, wall_ms)

    # -- AddPartitionsToTxn --------------------------------------------------------------------

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: tuple[TopicPartition, ...],
    ) -> ErrorCode:
        """Add partitions to the transaction; the first of them begin it."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        try:
            coordinator_epoch, metadata = self._find(transactional_id, producer_id)
        except KafkaError as error:
            return error.code
        if metadata.producer_epoch != producer_epoch:
            return self._fenced
        if metadata.pending_state is not None or metadata.state.is_prepared:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if metadata.state is TransactionState.ONGOING and all(
            partition in metadata.partitions for partition in partitions
        ):
            return _NONE
        target = metadata.prepare_add_partitions(partitions, self._host.wall_ms())
        return await self.states.append(transactional_id, coordinator_epoch, target)

    def verify(self, transaction: TransactionPartitions) -> AddPartitionsToTxnResult:
        """Return for each partition whether it belongs to the transaction (KIP-890).

        A pending transition is ignored: the append to the partition checks again.
        """
        transactional_id = transaction.transactional_id
        error = _NONE
        if not transactional_id:
            error = ErrorCode.INVALID_REQUEST
        else:
            try:
                _, metadata = self._find(transactional_id, transaction.producer_id)
            except KafkaError as failure:
                error = failure.code
            else:
                if metadata.producer_epoch != transaction.producer_epoch:
                    error = self._fenced
                elif metadata.state.is_prepared:
                    error = ErrorCode.CONCURRENT_TRANSACTIONS
        if error is not _NONE:
            return AddPartitionsToTxnResult(
                transactional_id, tuple((partition, error) for partition in transaction.partitions)
            )
        return AddPartitionsToTxnResult(
            transactional_id,
            tuple(
                (
                    partition,
                    _NONE if partition in metadata.partitions else ErrorCode.TRANSACTION_ABORTABLE,
                )
                for partition in transaction.partitions
            ),
        )

    def _find(self, transactional_id: str, producer_id: int) -> tuple[int, TransactionMetadata]:
        """Return the coordinator epoch and the state of a transactional id.

        Raises ``KafkaError``: INVALID_PRODUCER_ID_MAPPING if the producer id does not match.
        """
        coordinator_epoch, metadata = self.states.find(transactional_id)
        if metadata is None or metadata.producer_id != producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return coordinator_epoch, metadata

    # -- EndTxn --------------------------------------------------------------------------------

    async def end(self, request: EndTxnRequest) -> ErrorCode:
        """Commit or abort; return NONE once the decision is replicated, before any marker is."""
        return await self._end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.is_commit,
            True,
        )

    async def _end(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        is_commit: bool,
        is_from_client: bool,
    ) -> ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        try:
            coordinator_epoch, metadata = self._find(transactional_id, producer_id)
        except KafkaError as failure:
            return failure.code
        requires_equal_epoch = is_from_client and self._behaviour.ending_needs_equal_epoch
        if producer_epoch < metadata.producer_epoch or (
            requires_equal_epoch and producer_epoch != metadata.producer_epoch
        ):
            return self._fenced
        if metadata.pending_state not in (None, _FENCE):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if metadata.state is not TransactionState.ONGOING:
            return end_txn_error(metadata.state, is_commit)
        is_fence = not is_commit and metadata.pending_state is _FENCE
        if is_fence:
            metadata.pending_state = None
            metadata.producer_epoch = producer_epoch
            metadata.last_producer_epoch = NO_PRODUCER_EPOCH
        target = metadata.prepare_abort_or_commit(is_commit, self._host.wall_ms())
        error = await self.states.append(transactional_id, coordinator_epoch, target)
        if error is not _NONE:
            if is_fence and self._behaviour.failed_fence_remembered:
                present = self.states.current(transactional_id, coordinator_epoch)
                if present is not None:
                    present.fence_failed = True
            return error
        return self._send_markers(transactional_id, coordinator_epoch, target, is_commit)

    def _send_markers(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        decided: TransitMetadata,
        is_commit: bool,
    ) -> ErrorCode:
        """Send the markers of a decision that is in the log."""
        try:
            found_epoch, metadata = self._find(transactional_id, decided.producer_id)
        except KafkaError as error:
            return error.code
        if found_epoch != coordinator_epoch:
            return ErrorCode.NOT_COORDINATOR
        if metadata.producer_epoch != decided.producer_epoch:
            return self._fenced
        if metadata.pending_state is not None:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if metadata.state is not decided.state:
            return ErrorCode.INVALID_TXN_STATE
        target = metadata.prepare_complete(self._host.wall_ms())
        self.markers.add(coordinator_epoch, is_commit, metadata, target)
        return _NONE

    def abort_timed_out(self) -> None:
        """Abort the transactions that have been open for longer than their timeout."""
        now_ms = self._host.now_ms()
        for _, metadata in self.states.transactions():
            if (
                metadata.pending_state is None
                and metadata.state is TransactionState.ONGOING
                and metadata.began_ms + metadata.timeout_ms < now_ms
            ):
                if self._host.causes is not None:
                    self._tell_timeout(metadata)
                fence = metadata.prepare_fence_producer_epoch()
                self._start_task(
                    self._end(
                        metadata.transactional_id,
                        fence.producer_id,
                        fence.producer_epoch,
                        False,
                        False,
                    )
                )

    def _tell_timeout(self, metadata: TransactionMetadata) -> None:
        name, timeout_ms = metadata.transactional_id, metadata.timeout_ms
        text = f"the transaction of {name} has been open for more than {timeout_ms} ms"
        assert self._host.causes is not None
        self._host.causes.record_due_entry(
            "TransactionCoordinator.abort_timed_out", metadata.begun_by
        )
        self._host.report_silence(f"transaction/{name}", timeout_ms, text)

    # -- descriptions --------------------------------------------------------------------------

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """Describe one transactional id (KIP-664)."""
        if not transactional_id:
            return DescribedTransaction(transactional_id, ErrorCode.INVALID_REQUEST)
        try:
            metadata = self.states.find(transactional_id).metadata
        except KafkaError as error:
            return DescribedTransaction(transactional_id, error.code)
        if metadata is None or metadata.state is TransactionState.DEAD:
            return DescribedTransaction(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return DescribedTransaction(
            transactional_id,
            _NONE,
            metadata.state.title,
            metadata.timeout_ms,
            metadata.start_ms,
            metadata.producer_id,
            metadata.producer_epoch,
            tuple(metadata.partitions),
        )

    def list_transactions(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        """List the transactional ids that this broker coordinates (KIP-664)."""
        try:
            unknown, listed = self.states.list_transactions(request)
        except KafkaError as error:
            return ListTransactionsResponse(error.code)
        return ListTransactionsResponse(_NONE, unknown, listed)
