"""Handlers of transactional requests of producers, leaders, coordinators and administrators."""

from __future__ import annotations

from collections.abc import Iterable

from ....coordinators.groups.offsets import TransactionalCommit
from ....protocol.awaiting import Pending, Task
from ....protocol.data import (
    ACKS_ALL,
    INTERNAL_CONTEXT,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    RequestContext,
)
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.internal_topics import OFFSETS_TOPIC
from ....protocol.records.batch import build_control_marker
from ....protocol.topic_names import validate_topic_name
from ....protocol.transactions import (
    ActiveProducer,
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    DescribedProducers,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionMarker,
    TransactionPartitions,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ....protocol.values import TopicPartition
from ....replication.log.validator import ORIGIN_COORDINATOR
from ....replication.log.verification import UNGUARDED, Unguarded, VerificationGuard
from ...delivery import Delivery
from ...port import Handler
from ..broker import Broker
from .broker_handlers import BrokerHandlers

_UNKNOWN_PARTITION_TEXT = "This server does not host this topic-partition."
_NONE = ErrorCode.NONE
_Errors = dict[TopicPartition, ErrorCode]
_FIRST_COMMIT_WITH_ABORTABLE = 4
"""First version of TxnOffsetCommit whose clients know TRANSACTION_ABORTABLE."""
_COMMIT_ERRORS = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""Errors of a failed verification -> errors with which the commit of offsets is answered."""


class TransactionHandlers(BrokerHandlers):
    """InitProducerId, and all requests of transactions besides produce and fetch."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._groups = broker.coordinators.groups
        self._transactions = broker.coordinators.transactions

    def by_type(self) -> dict[type, Handler]:
        return {
            InitProducerIdRequest: self.init_producer_id,
            AddPartitionsToTxnRequest: self.add_partitions,
            AddOffsetsToTxnRequest: self.add_offsets,
            EndTxnRequest: self.end,
            TxnOffsetCommitRequest: self.commit_offsets,
            WriteTxnMarkersRequest: self.write_markers,
            DescribeProducersRequest: self.describe_producers,
            DescribeTransactionsRequest: self.describe_transactions,
            ListTransactionsRequest: self.list_transactions,
        }

    # -- producers -----------------------------------------------------------------------------

    async def init_producer_id(
        self, request: InitProducerIdRequest, delivery: Delivery
    ) -> InitProducerIdResponse:
        """Return a producer id and an epoch (docs/kafka/transactions.md#requests)."""
        if request.transactional_id and not self._broker.behaviour.transactions:
            # As for FindCoordinator: the release has no transactions, and retrying does not help.
            return InitProducerIdResponse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if self._broker.state_listener is not None:
            owners = self._broker.runtime.owners
            owners[f"transaction/{request.transactional_id}"] = delivery.sender.name
        return await self._transactions.init_producer_id(request)

    async def add_partitions(
        self, request: AddPartitionsToTxnRequest, _delivery: Delivery
    ) -> AddPartitionsToTxnResponse | None:
        if not request.transactions:
            return None  # no response, which Kafka sends with the last transaction's outcome
        tasks = [Task(self._add_partitions(asked)) for asked in request.transactions]
        return AddPartitionsToTxnResponse(tuple([await task for task in tasks]))

    async def _add_partitions(self, asked: TransactionPartitions) -> AddPartitionsToTxnResult:
        """Add all partitions, or none if one of them does not exist."""
        contains = self._broker.metadata_cache.takes_offsets
        unknown = [partition for partition in asked.partitions if not contains(partition)]
        if unknown:
            errors = dict.fromkeys(asked.partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
            errors.update(dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            return AddPartitionsToTxnResult(asked.transactional_id, tuple(errors.items()))
        if asked.verify_only:
            return self._transactions.verify(asked)
        error = await self._transactions.add_partitions(
            asked.transactional_id, asked.producer_id, asked.producer_epoch, asked.partitions
        )
        return AddPartitionsToTxnResult(
            asked.transactional_id, tuple((partition, error) for partition in asked.partitions)
        )

    async def add_offsets(
        self, request: AddOffsetsToTxnRequest, _delivery: Delivery
    ) -> AddOffsetsToTxnResponse:
        """Add the partition that stores a group's offsets to the transaction."""
        partition = TopicPartition(OFFSETS_TOPIC, self._groups.partition_for(request.group_id))
        return AddOffsetsToTxnResponse(
            await self._transactions.add_partitions(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                (partition,),
            )
        )

    async def end(self, request: EndTxnRequest, _delivery: Delivery) -> EndTxnResponse:
        return EndTxnResponse(await self._transactions.end(request))

    async def commit_offsets(
        self, request: TxnOffsetCommitRequest, delivery: Delivery
    ) -> TxnOffsetCommitResponse:
        """Store offsets of a group that take effect when the transaction commits."""
        guard: VerificationGuard | Unguarded | None = UNGUARDED
        names = [partition.topic_partition for partition in request.partitions]
        known = [name for name in names if self._broker.metadata_cache.takes_offsets(name)]
        if known and self._verifies and request.group_id:
            error = self._groups.validate_commit_in_transaction(request.group_id)
            if error is _NONE:
                error, guard = await self._verify_commit(request, delivery)
            if error is not _NONE:
                errors = dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                errors.update(dict.fromkeys(known, error))
                return TxnOffsetCommitResponse(tuple(errors.items()))
        committed: Pending[_Errors] = Pending()
        commit = TransactionalCommit(
            request.group_id,
            request.producer_id,
            request.producer_epoch,
            request.partitions,
            request.member_id,
            request.group_instance_id,
            request.generation,
            guard,
        )
        self._groups.commit_in_transaction(commit, committed.set_result)
        return TxnOffsetCommitResponse(tuple((await committed).items()))

    @property
    def _verifies(self) -> bool:
        """True if leaders verify transactions with their coordinator (KIP-890)."""
        return bool(
            self._broker.behaviour.transactions_verified
            and self._broker.config["transaction.partition.verification.enable"]
        )

    async def _verify_commit(
        self, request: TxnOffsetCommitRequest, delivery: Delivery
    ) -> tuple[ErrorCode, VerificationGuard | None]:
        """Verify that the partition that stores the group's offsets is part of the transaction."""
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        version = context.api_version
        where = TopicPartition(OFFSETS_TOPIC, self._groups.partition_for(request.group_id))
        outcome: Pending[tuple[ErrorCode, VerificationGuard | None]] = Pending()
        self._broker.replica_manager.verified_produce.verify_one(
            TransactionPartitions(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                (where,),
                True,
            ),
            version < 0 or version >= _FIRST_COMMIT_WITH_ABORTABLE,
            lambda error, guard: outcome.set_result((error, guard)),
        )
        error, guard = await outcome
        return _COMMIT_ERRORS.get(error, error), guard

    # -- markers -------------------------------------------------------------------------------

    async def write_markers(
        self, request: WriteTxnMarkersRequest, _delivery: Delivery
    ) -> WriteTxnMarkersResponse:
        """Write markers to partitions that this broker leads; answers when all are replicated.

        Each marker is an append of its own, as in Kafka, and is written once to a partition that is
        named twice.
        """
        errors: dict[int, _Errors] = {}
        appends: list[tuple[TransactionMarker, Pending[_Errors]]] = []
        for marker in request.markers:
            refused = self._refused(marker.partitions)
            errors.setdefault(marker.producer_id, {}).update(refused)
            writable = [name for name in dict.fromkeys(marker.partitions) if name not in refused]
            if writable:
                appends.append((marker, self._append_marker(marker, writable)))
        for marker, append in appends:
            errors[marker.producer_id].update(await append)
        return WriteTxnMarkersResponse(
            tuple((producer_id, tuple(found.items())) for producer_id, found in errors.items())
        )

    def _refused(self, partitions: Iterable[TopicPartition]) -> _Errors:
        """Return errors for partitions without a log here, or with a message format below 2."""
        refused: _Errors = {}
        for name in partitions:
            hosted = self._broker.replica_manager.hosted.partition(name)
            if hosted is None or hosted.log is None:
                refused[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif hosted.log.settings.record_version != 2:
                refused[name] = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        return refused

    def _append_marker(
        self, marker: TransactionMarker, partitions: list[TopicPartition]
    ) -> Pending[_Errors]:
        data = build_control_marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.is_commit,
            marker.coordinator_epoch,
            self._broker.wall_ms(),
        )
        appended: Pending[_Errors] = Pending()

        def answered(response: ProduceResponse) -> None:
            errors = {result.topic_partition: result.error for result in response.partitions}
            written = [
                name.partition
                for name, error in errors.items()
                if name.topic == OFFSETS_TOPIC and error is _NONE
            ]
            if written:
                self._groups.transaction_completed(marker.producer_id, written, marker.is_commit)
            appended.set_result(errors)

        self._broker.replica_manager.produce.append_records(
            ProduceRequest(
                ACKS_ALL,
                self._broker.config["request.timeout.ms"],
                tuple(ProducePartition(name, data) for name in partitions),
            ),
            INTERNAL_CONTEXT,
            answered,
            origin=ORIGIN_COORDINATOR,
        )
        return appended

    # -- administrators ------------------------------------------------------------------------

    def describe_producers(
        self, request: DescribeProducersRequest, _delivery: Delivery
    ) -> DescribeProducersResponse:
        return DescribeProducersResponse(tuple(map(self._describe_producers, request.partitions)))

    def _describe_producers(self, name: TopicPartition) -> DescribedProducers:
        if self._broker.behaviour.describe_producers_says_why:
            try:
                validate_topic_name(name.topic, self._broker.behaviour)
            except KafkaError as error:
                return DescribedProducers(name, error.code, error_message=error.message)
        if not self._broker.metadata_cache.contains_topic(name.topic):
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            says_why = self._broker.behaviour.describe_producers_says_why
            return DescribedProducers(
                name, unknown, error_message=_UNKNOWN_PARTITION_TEXT if says_why else None
            )
        hosted = self._broker.replica_manager.hosted.partition(name)
        if hosted is None:
            return DescribedProducers(name, self._broker.replica_manager.hosted.lookup_error(name))
        if hosted.log is None:  # a follower with a log does answer
            return DescribedProducers(name, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        state = hosted.log.producers
        entries = () if state is None else state.entries.values()
        return DescribedProducers(
            name,
            _NONE,
            tuple(
                ActiveProducer(
                    entry.producer_id,
                    entry.epoch,
                    entry.last_sequence,
                    entry.last_timestamp,
                    entry.coordinator_epoch,
                    entry.transaction_first_offset,
                )
                for entry in entries
            ),
        )

    def describe_transactions(
        self, request: DescribeTransactionsRequest, _delivery: Delivery
    ) -> DescribeTransactionsResponse:
        describe = self._transactions.describe
        return DescribeTransactionsResponse(tuple(map(describe, request.transactional_ids)))

    def list_transactions(
        self, request: ListTransactionsRequest, _delivery: Delivery
    ) -> ListTransactionsResponse:
        return self._transactions.list_transactions(request)
