"""Verification of transactional batches before they are appended (KIP-890;
docs/kafka/transactions.md#verification; Kafka's ``ReplicaManager.handleProduceAppend``)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ...protocol.data import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    RequestContext,
)
from ...protocol.errors import ErrorCode
from ...protocol.host import Host
from ...protocol.records.format import NO_SEQUENCE, TRANSACTIONAL_BIT, Readable
from ...protocol.values import TopicPartition, changed
from ..log.verification import VerificationGuard
from ..partition.hosted_partitions import HostedPartitions
from .produce import Guards, ProduceHandler

if TYPE_CHECKING:
    from ...protocol.transactions import TransactionPartitions

FIRST_PRODUCE_WITH_ABORTABLE = 11
"""First version of Produce whose clients know TRANSACTION_ABORTABLE."""
_NONE = ErrorCode.NONE
_RETRIED_AS = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors answered as NOT_ENOUGH_REPLICAS, which old clients retry without fetching metadata."""
_unpack_attributes = struct.Struct(">h").unpack_from
_unpack_producer = struct.Struct(">qhi").unpack_from
_ATTRIBUTES_AT = 21
_PRODUCER_AT = 43
_HEADER_SIZE = 61


class Verify(Protocol):
    """Asks the coordinator of a transactional id to verify partitions."""

    def __call__(
        self,
        transaction: TransactionPartitions,
        knows_abortable: bool,
        callback: Callable[[Mapping[TopicPartition, ErrorCode]], object],
    ) -> object:
        """Call ``callback`` once, with the errors of the partitions that may not be written."""
        ...


def transactional_producer(records: Readable | None) -> tuple[int, int, int] | None:
    """Return producer id, epoch and first sequence of a transactional batch; None for another."""
    if records is None or len(records) < _HEADER_SIZE or records[16] != 2:
        return None
    (attributes,) = _unpack_attributes(records, _ATTRIBUTES_AT)
    if not attributes & TRANSACTIONAL_BIT:
        return None
    producer: tuple[int, int, int] = _unpack_producer(records, _PRODUCER_AT)
    return producer if producer[0] >= 0 else None


class VerifiedProduce:
    """Verifies with the coordinator each partition in which a transaction is about to begin."""

    def __init__(self, hosted: HostedPartitions, produce: ProduceHandler, host: Host) -> None:
        self._hosted = hosted
        self._produce = produce
        self._host = host
        self.verify: Verify | None = None
        """Asks the coordinators; None if nothing is verified."""

    def append(
        self,
        request: ProduceRequest,
        context: RequestContext,
        respond: Callable[[ProduceResponse], object],
    ) -> None:
        """Append a client's batches, after the verification of transactional ones."""
        transactional_id = request.transactional_id
        verify = self.verify
        if transactional_id is None or verify is None:
            self._produce.append_records(request, context, respond)
            return
        found = list(self._transactional(request.partitions, context))
        producers = {producer[:2] for _, producer in found}
        if len(producers) > 1:
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
            respond(self._failed(request.partitions, error))
            return
        errors: dict[TopicPartition, ErrorCode] = {}
        guards: dict[TopicPartition, VerificationGuard] = {}
        for name, producer in found:
            guard = self.start(name, producer, errors)
            if guard is not None:
                guards[name] = guard
        if not guards:
            self._append(request, context, respond, errors, guards)
            return
        ((producer_id, epoch),) = producers

        def verified(unverified: Mapping[TopicPartition, ErrorCode]) -> None:
            self._append(request, context, respond, {**errors, **unverified}, guards)

        from ...protocol.transactions import TransactionPartitions  # rarely needed

        verify(
            TransactionPartitions(transactional_id, producer_id, epoch, tuple(guards), True),
            context.api_version < 0 or context.api_version >= FIRST_PRODUCE_WITH_ABORTABLE,
            verified,
        )

    def verify_one(
        self,
        transaction: TransactionPartitions,
        knows_abortable: bool,
        callback: Callable[[ErrorCode, VerificationGuard | None], object],
    ) -> None:
        """Verify the one partition to which a coordinator of this broker is about to append.

        ``callback`` is called once, with an error and the guard of a transaction to begin, if any.
        """
        (name,) = transaction.partitions
        errors: dict[TopicPartition, ErrorCode] = {}
        guard = self.start(
            name, (transaction.producer_id, transaction.producer_epoch, NO_SEQUENCE), errors
        )
        if guard is None or self.verify is None:
            callback(errors.get(name, _NONE), None)
            return
        self.verify(
            transaction,
            knows_abortable,
            lambda unverified: callback(unverified.get(name, _NONE), guard),
        )

    def start(
        self,
        name: TopicPartition,
        producer: tuple[int, int, int],
        errors: dict[TopicPartition, ErrorCode],
    ) -> VerificationGuard | None:
        """Return the guard of a transaction that is about to begin in a partition led here.

        Return None if it has begun already, or if the partition is not led here, which adds an
        entry to ``errors``.
        """
        partition = self._hosted.partition(name)
        if partition is None:
            errors[name] = self._hosted.lookup_error(name)
            return None
        if not partition.is_leader or partition.log is None:
            errors[name] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            return None
        producer_id, epoch, sequence = producer
        state = partition.log.producer_state()
        return state.start_verification(producer_id, sequence, epoch, self._host.wall_ms())

    def _transactional(
        self, partitions: Sequence[ProducePartition], context: RequestContext
    ) -> Iterator[tuple[TopicPartition, tuple[int, int, int]]]:
        """Iterate over the transactional batches that are not refused anyway."""
        for entry in partitions:
            producer = transactional_producer(entry.records)
            if producer is not None:
                name = entry.topic_partition
                if self._produce.refusal(name, entry.records, context) is _NONE:
                    yield name, producer

    def _append(
        self,
        request: ProduceRequest,
        context: RequestContext,
        respond: Callable[[ProduceResponse], object],
        errors: Mapping[TopicPartition, ErrorCode],
        guards: Guards,
    ) -> None:
        """Append to the verified partitions; answer the others with their errors."""
        if not errors:
            self._produce.append_records(request, context, respond, guards=guards)
            return
        entries = tuple(p for p in request.partitions if p.topic_partition not in errors)
        failed = {name: self._unverified(name, error) for name, error in errors.items()}

        def appended(response: ProduceResponse) -> None:
            by_name = {**failed, **{p.topic_partition: p for p in response.partitions}}
            answers = tuple(by_name[entry.topic_partition] for entry in request.partitions)
            respond(changed(response, partitions=answers))

        if entries:
            rest = changed(request, partitions=entries)
            self._produce.append_records(rest, context, appended, guards=guards)
        else:
            appended(ProduceResponse(()))

    def _unverified(self, name: TopicPartition, error: ErrorCode) -> ProducePartitionResponse:
        message = None
        if error in _RETRIED_AS:
            message = (
                "Unable to verify the partition has been added to the transaction. "
                f"Underlying error: {error.name}"
            )
            error = ErrorCode.NOT_ENOUGH_REPLICAS
        elif error is ErrorCode.INVALID_TXN_STATE:
            message = "Partition was not added to the transaction"
        return changed(self._produce.failed_produce(name, error), error_message=message)

    def _failed(self, partitions: Sequence[ProducePartition], error: ErrorCode) -> ProduceResponse:
        return ProduceResponse(
            tuple(self._produce.failed_produce(p.topic_partition, error) for p in partitions)
        )
