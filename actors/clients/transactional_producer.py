"""A modelled transactional producer: one transaction after another, one batch at a time.

Its methods are coroutines, to be awaited by a task of its node. It finds its coordinator, retries
what may be retried, and raises what an application has to know: that it has to abort, or that
another producer has its transactional id. After a batch that may or may not be stored it continues
in the next epoch (KIP-360), as Kafka's client does since 2.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...protocol.awaiting import Disconnected, RequestTimeout
from ...protocol.data import (
    ACKS_ALL,
    InitProducerIdRequest,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from ...protocol.errors import ErrorCode, UsageError
from ...protocol.groups import OffsetCommitPartition
from ...protocol.host import sleep
from ...protocol.names import broker_name
from ...protocol.records.batch import build_batch
from ...protocol.records.format import Record
from ...protocol.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    TransactionPartitions,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from ...protocol.values import TopicPartition, frozen
from ..interfaces import AbstractRuntime, Process
from .client import RETRY_BACKOFF_MS, check_numbers, refuse_setting
from .client_operation import AnsweredWithError, ClientOperation
from .coordinated import GROUP, TRANSACTION, CoordinatedClient

_NONE = ErrorCode.NONE
_NO_IDENTITY = (-1, -1)
_FENCED = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
    }
)


class TransactionAbortable(AnsweredWithError):
    """Raised if the transaction cannot be committed: abort it and begin another."""


class ProducerFenced(AnsweredWithError):
    """Raised if another producer has the transactional id, or the coordinator has ended the
    transaction."""


@frozen
class TransactionalProducerSettings:
    """Kafka's settings of a transactional producer, with the defaults of the 3.x clients."""

    transactional_id: str = ""
    """The transactional id."""
    transaction_timeout_ms: int = 60000
    """Time in milliseconds after which the coordinator aborts a transaction."""
    request_timeout_ms: int = 30000
    """Time in milliseconds for which a request waits for its answer."""
    delivery_timeout_ms: int = 120000
    """Time in milliseconds after which a batch is given up."""
    raises_epoch: bool = True
    """True to continue in the next epoch after a batch given up (KIP-360); False before 2.5."""

    def __post_init__(self) -> None:
        """Raise ``UsageError`` for values that no producer can work with."""
        if not isinstance(self.transactional_id, str) or not self.transactional_id:
            refuse_setting(self, "transactional_id", "a text that is not empty")
        minimums = {"transaction_timeout_ms": 1, "request_timeout_ms": 0, "delivery_timeout_ms": 0}
        check_numbers(self, minimums)


class SimulatedTransactionalProducer(CoordinatedClient):
    """Produces in transactions; ``start_task`` runs a coroutine that awaits its methods."""

    def __init__(
        self,
        runtime: AbstractRuntime,
        name: str,
        process: Process,
        bootstrap: tuple[int, ...],
        settings: TransactionalProducerSettings,
    ) -> None:
        super().__init__(runtime, name, process, bootstrap, settings.request_timeout_ms)
        self.settings: TransactionalProducerSettings = settings
        """Settings of the producer."""
        self.transactional_id: str = settings.transactional_id
        """Transactional id of the producer."""
        self.committed: int = 0
        """Number of transactions committed."""
        self.aborted: int = 0
        """Number of transactions aborted."""
        self._identity = _NO_IDENTITY
        self._sequences: dict[TopicPartition, int] = {}
        self._added_partitions: set[TopicPartition] = set()
        self._is_open = False
        self._has_unknown_outcome = False

    # -- called by applications ----------------------------------------------------------------

    async def init_transactions(self) -> None:
        """Fence the previous producer with the transactional id, and wait until its transaction is
        aborted."""
        with ClientOperation(self, "init_transactions"):
            await self._init_producer_id(_NO_IDENTITY)

    def begin(self) -> None:
        """Begin a transaction; nothing is sent."""
        if self._identity == _NO_IDENTITY or self._is_open:
            raise UsageError(
                f"{self.name} cannot begin a transaction before init_transactions, "
                "or while another is open"
            )
        self._is_open = True
        self._added_partitions.clear()
        self._report_transaction("open")

    async def write(self, topic_partition: tuple[str, int], values: Sequence[bytes | None]) -> int:
        """Write one batch in the transaction; returns its first offset.

        Raises ``TransactionAbortable`` or ``ProducerFenced`` from
        ``fakekafka.actors.clients.transactional_producer``.
        """
        self._require_open()
        where = TopicPartition(*topic_partition)
        self.use_topic(where.topic)
        with ClientOperation(self, "produce", str(where)) as operation:
            if where not in self._added_partitions:
                await self._add_partition(where)
            return await self._produce(where, values, operation)

    async def send_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        generation: int = -1,
        member_id: str = "",
    ) -> None:
        """Commit offsets of a group as part of the transaction; raises the same as ``write``."""
        self._require_open()
        with ClientOperation(self, "send_offsets", group_id):
            await self._send_offsets(group_id, offsets, generation, member_id)

    async def _send_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        generation: int,
        member_id: str,
    ) -> None:
        producer_id, epoch = self._identity
        answer = await self.ask_coordinator(
            TRANSACTION,
            self.transactional_id,
            AddOffsetsToTxnRequest(self.transactional_id, producer_id, epoch, group_id),
            lambda response: response.error,
        )
        self._raise_for_error(answer.error)
        request = TxnOffsetCommitRequest(
            self.transactional_id,
            group_id,
            producer_id,
            epoch,
            tuple(OffsetCommitPartition(where, offset) for where, offset in offsets.items()),
            generation,
            member_id,
        )
        answer = await self.ask_coordinator(GROUP, group_id, request, _first_error)
        error = _first_error(answer)
        if error is not _NONE:
            raise TransactionAbortable(
                f"{self.name}: the group coordinator answered {error.name}", error
            )

    async def commit(self) -> None:
        """Commit the transaction; raises ``ProducerFenced``."""
        self._require_open()
        with ClientOperation(self, "commit_transaction"):
            await self._end(True)
        self.committed += 1

    async def abort(self) -> None:
        """Abort the transaction; raises ``ProducerFenced``."""
        self._require_open()
        with ClientOperation(self, "abort_transaction"):
            await self._end(False)
            self.aborted += 1
            if self._has_unknown_outcome:
                await self._init_producer_id(
                    self._identity if self.settings.raises_epoch else _NO_IDENTITY
                )

    # -- requests ------------------------------------------------------------------------------

    def _report_transaction(self, state: str | None) -> None:
        """Report to the recorder how this producer sees its transaction."""
        self.report_state("transaction", state)
        self.report_state(
            "transaction_partitions", [str(name) for name in sorted(self._added_partitions)] or None
        )

    def _require_open(self) -> None:
        if not self._is_open:
            raise UsageError(f"{self.name} has no open transaction; call begin first")

    def _raise_for_error(self, error: ErrorCode) -> None:
        """Raise for an error that a coordinator answered for good."""
        if error is _NONE:
            return
        self.report_state("last_error", error.name)
        if error in _FENCED:
            self._is_open = False
            self._report_transaction("fenced")
            raise ProducerFenced(f"{self.name}: the coordinator answered {error.name}", error)
        raise TransactionAbortable(f"{self.name}: the coordinator answered {error.name}", error)

    async def _init_producer_id(self, current_identity: tuple[int, int]) -> None:
        request = InitProducerIdRequest(
            self.transactional_id, self.settings.transaction_timeout_ms, *current_identity
        )
        answer = await self.ask_coordinator(
            TRANSACTION, self.transactional_id, request, lambda response: response.error
        )
        self._raise_for_error(answer.error)
        self._identity = (answer.producer_id, answer.producer_epoch)
        self._sequences.clear()
        self._is_open = self._has_unknown_outcome = False
        self.report_state("producer", self._identity)
        self.report_state("transaction", None)

    async def _add_partition(self, where: TopicPartition) -> None:
        request = AddPartitionsToTxnRequest(
            (TransactionPartitions(self.transactional_id, *self._identity, (where,)),)
        )
        while True:
            answer: AddPartitionsToTxnResponse = await self.ask_coordinator(
                TRANSACTION, self.transactional_id, request, _added_error
            )
            error = _added_error(answer)
            if error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                break
            await sleep(self, RETRY_BACKOFF_MS)  # the coordinator does not know the partition yet
        self._raise_for_error(error)
        self._added_partitions.add(where)
        self._report_transaction("open")

    async def _produce(
        self, where: TopicPartition, values: Sequence[bytes | None], operation: ClientOperation
    ) -> int:
        wall_ms = self.wall_ms()
        deadline_ms = self.now_ms() + self.settings.delivery_timeout_ms
        sequence = self._sequences.get(where, 0)
        data = build_batch(
            [Record(index, wall_ms, None, value, ()) for index, value in enumerate(values)],
            producer_id=self._identity[0],
            producer_epoch=self._identity[1],
            base_sequence=sequence,
            is_transactional=True,
        )
        request = ProduceRequest(
            ACKS_ALL,
            self.request_timeout_ms,
            (ProducePartition(where, data),),
            self.transactional_id,
        )
        while True:
            error, offset = await self._produce_once(where, request)
            if error is _NONE:
                self._sequences[where] = sequence + len(values)
                return offset
            if not error.is_retriable or self.now_ms() >= deadline_ms:
                self._has_unknown_outcome = True
                self.report_state("last_error", error.name)
                raise TransactionAbortable(
                    f"{self.name}: a batch for {where} failed with {error.name}", error
                )
            self.refresh_metadata()
            await sleep(self, RETRY_BACKOFF_MS)
            operation.retry(f"{where} again")

    async def _produce_once(
        self, where: TopicPartition, request: ProduceRequest
    ) -> tuple[ErrorCode, int]:
        leader = self.leaders.get(where)
        if leader is None:
            return ErrorCode.LEADER_NOT_AVAILABLE, -1
        try:
            answer: ProduceResponse = await self.ask(
                broker_name(leader[0]), request, self.request_timeout_ms
            )
        except (Disconnected, RequestTimeout):
            return ErrorCode.NETWORK_EXCEPTION, -1
        return answer.partitions[0].error, answer.partitions[0].base_offset

    async def _end(self, is_commit: bool) -> None:
        self._report_transaction("committing" if is_commit else "aborting")
        answer = await self.ask_coordinator(
            TRANSACTION,
            self.transactional_id,
            EndTxnRequest(self.transactional_id, *self._identity, is_commit),
            lambda response: response.error,
        )
        # If no partition was added, the coordinator knows of no transaction.
        if answer.error is not ErrorCode.INVALID_TXN_STATE or self._added_partitions:
            self._raise_for_error(answer.error)
        self._is_open = False
        self._added_partitions.clear()
        self._report_transaction(None)


def _added_error(response: AddPartitionsToTxnResponse) -> ErrorCode:
    return response.results[0].partitions[0][1]


def _first_error(response: TxnOffsetCommitResponse) -> ErrorCode:
    return next((error for _, error in response.partitions if error is not _NONE), _NONE)
