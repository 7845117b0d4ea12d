"""Handlers of transactions: what producers, leaders, coordinators and administrators ask."""

from __future__ import annotations

from collections.abc import Iterable

from ....protocol.awaiting import Pending, Task
from ....protocol.data import (
    ACKS_ALL,
    INTERNAL_CONTEXT,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
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
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ....protocol.values import TopicPartition
from ...delivery import Delivery
from ...port import Handler
from ..parts import BrokerParts

_NONE = ErrorCode.NONE
_Errors = dict[TopicPartition, ErrorCode]


class TransactionHandlers:
    """InitProducerId, and all that transactions need beside producing and fetching."""

    __slots__ = (
        "_behaviour",
        "_config",
        "_groups",
        "_metadata_cache",
        "_node",
        "_replica_manager",
        "_transactions",
    )

    def __init__(self, parts: BrokerParts) -> None:
        self._node = parts.node
        self._behaviour = parts.behaviour
        self._config = parts.config
        self._metadata_cache = parts.metadata_cache
        self._groups = parts.groups
        self._replica_manager = parts.replica_manager
        self._transactions = parts.transactions

    def by_type(self) -> dict[type, Handler]:
        """The handlers by the requests they take."""
        return {
            InitProducerIdRequest: self.init_producer_id,
            AddPartitionsToTxnRequest: self.add_partitions,
            AddOffsetsToTxnRequest: self.add_offsets,
            EndTxnRequest: self.end,
            WriteTxnMarkersRequest: self.write_markers,
            DescribeProducersRequest: self.describe_producers,
            DescribeTransactionsRequest: self.describe_transactions,
            ListTransactionsRequest: self.list_transactions,
        }

    # -- producers -----------------------------------------------------------------------------

    async def init_producer_id(
        self, request: InitProducerIdRequest, _delivery: Delivery
    ) -> InitProducerIdResponse:
        """A producer id and an epoch (docs/kafka/transactions.md#requests)."""
        if request.transactional_id and not self._behaviour.transactions:
            # As for FindCoordinator: there are no transactions, and retrying will not help.
            return InitProducerIdResponse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return await self._transactions.init_producer_id(request)

    async def add_partitions(
        self, request: AddPartitionsToTxnRequest, _delivery: Delivery
    ) -> AddPartitionsToTxnResponse:
        tasks = [Task(self._add_partitions(asked)) for asked in request.transactions]
        return AddPartitionsToTxnResponse(tuple([await task for task in tasks]))

    async def _add_partitions(self, asked: TransactionPartitions) -> AddPartitionsToTxnResult:
        """One partition that does not exist keeps all of them out."""
        contains = self._metadata_cache.contains
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
        """The partition that keeps the offsets of a group becomes part of the transaction."""
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

    # -- markers -------------------------------------------------------------------------------

    async def write_markers(
        self, request: WriteTxnMarkersRequest, _delivery: Delivery
    ) -> WriteTxnMarkersResponse:
        """End transactions on partitions that this broker leads; answered when all is replicated.

        Each marker is an append of its own, as in Kafka.
        """
        errors: dict[int, _Errors] = {}
        appends: list[tuple[TransactionMarker, Pending[_Errors]]] = []
        for marker in request.markers:
            refused = self._refused(marker.partitions)
            errors.setdefault(marker.producer_id, {}).update(refused)
            writable = [name for name in marker.partitions if name not in refused]
            if writable:
                appends.append((marker, self._append_marker(marker, writable)))
        for marker, append in appends:
            errors[marker.producer_id].update(await append)
        return WriteTxnMarkersResponse(
            tuple((producer_id, tuple(found.items())) for producer_id, found in errors.items())
        )

    def _refused(self, partitions: Iterable[TopicPartition]) -> _Errors:
        """Partitions without a log here, and those whose messages know no transactions."""
        refused: _Errors = {}
        for name in partitions:
            hosted = self._replica_manager.partition(name)
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
            self._node.now_ms(),
        )
        appended: Pending[_Errors] = Pending()

        def answered(response: ProduceResponse) -> None:
            errors = {result.topic_partition: result.error for result in response.partitions}
            appended.set_result(errors)

        self._replica_manager.append_records(
            ProduceRequest(
                ACKS_ALL,
                self._config["request.timeout.ms"],
                tuple(ProducePartition(name, data) for name in partitions),
            ),
            INTERNAL_CONTEXT,
            answered,
            origin="coordinator",
        )
        return appended

    # -- administrators ------------------------------------------------------------------------

    def describe_producers(
        self, request: DescribeProducersRequest, _delivery: Delivery
    ) -> DescribeProducersResponse:
        return DescribeProducersResponse(tuple(map(self._describe_producers, request.partitions)))

    def _describe_producers(self, name: TopicPartition) -> DescribedProducers:
        try:
            validate_topic_name(name.topic, self._behaviour)
        except KafkaError as error:
            return DescribedProducers(name, error.code, error_message=error.message)
        if not self._metadata_cache.contains_topic(name.topic):
            return DescribedProducers(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        hosted = self._replica_manager.partition(name)
        if hosted is None:
            return DescribedProducers(name, self._replica_manager.hosted.lookup_error(name))
        if not hosted.is_leader or hosted.log is None:
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
