"""Verification by a leader that a partition belongs to a transaction, which it asks the coordinator
(KIP-890; docs/kafka/transactions.md#verification; Kafka's ``AddPartitionsToTxnManager``).

One request per coordinator is in flight. Later verifications wait for the next request, which has
at most one entry for each transactional id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode
from ...protocol.host import Host
from ...protocol.internal_topics import TRANSACTIONS_TOPIC
from ...protocol.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    TransactionPartitions,
)
from ...protocol.values import TopicPartition
from ...replication.partition.metadata_cache import MetadataCache
from ..partitioning import coordinating_partition

_NONE = ErrorCode.NONE
VerificationCallback = Callable[[Mapping[TopicPartition, ErrorCode]], object]
"""Called with the partitions that may not be written, each with its error."""

SendVerification = Callable[
    [int, AddPartitionsToTxnRequest, Callable[[AddPartitionsToTxnResponse | None], object]], object
]
"""Sends a request to a coordinator and calls the callback once: with the response, or with None if
there was none."""


class _QueuedVerifications:
    """Transactions to verify in the next request to one coordinator."""

    __slots__ = ("callbacks", "knows_abortable", "transactions")

    def __init__(self, knows_abortable: bool) -> None:
        self.knows_abortable = knows_abortable
        """True if the first client knows TRANSACTION_ABORTABLE; as in Kafka, that counts for the
        whole request."""
        self.transactions: dict[str, TransactionPartitions] = {}
        self.callbacks: dict[str, VerificationCallback] = {}


class TransactionVerifier:
    """Asks coordinators whether the partitions that this broker leads belong to a transaction."""

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        metadata_cache: MetadataCache,
        send: SendVerification,
    ) -> None:
        self._host = host
        self._config = config
        self._metadata_cache = metadata_cache
        self._send = send
        self._queued: dict[int, _QueuedVerifications] = {}
        self._in_flight: dict[int, None] = {}

    def verify(
        self,
        transaction: TransactionPartitions,
        knows_abortable: bool,
        callback: VerificationCallback,
    ) -> None:
        """Verify partitions; call ``callback`` once the coordinator has answered or cannot be
        reached.

        A client that does not know TRANSACTION_ABORTABLE receives INVALID_TXN_STATE instead.
        """
        coordinator = self._coordinator_of(transaction.transactional_id)
        if coordinator is None:
            callback(dict.fromkeys(transaction.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        queued = self._queued.get(coordinator)
        if queued is None:
            queued = self._queued[coordinator] = _QueuedVerifications(knows_abortable)
            self._host.call_later_ms(0, lambda: self._send_next(coordinator))
        before = queued.transactions.get(transaction.transactional_id)
        if before is not None:
            if before.producer_epoch > transaction.producer_epoch:
                callback(dict.fromkeys(transaction.partitions, ErrorCode.INVALID_PRODUCER_EPOCH))
                return
            # The earlier request is of the same client, which retries, or of a fenced zombie.
            is_fenced = before.producer_epoch < transaction.producer_epoch
            error = ErrorCode.INVALID_PRODUCER_EPOCH if is_fenced else ErrorCode.NETWORK_EXCEPTION
            superseded = queued.callbacks.pop(transaction.transactional_id)
            superseded(dict.fromkeys(before.partitions, error))
        queued.transactions[transaction.transactional_id] = transaction
        queued.callbacks[transaction.transactional_id] = callback

    def _coordinator_of(self, transactional_id: str) -> int | None:
        """Return the broker that coordinates a transactional id; None if it is not alive."""
        cache = self._metadata_cache
        number = coordinating_partition(TRANSACTIONS_TOPIC, transactional_id, cache, self._config)
        state = cache.partition_state(TopicPartition(TRANSACTIONS_TOPIC, number))
        return state.leader if state is not None and cache.is_alive(state.leader) else None

    def _send_next(self, broker_id: int) -> None:
        if broker_id in self._in_flight:
            return
        queued = self._queued.pop(broker_id, None)
        if queued is None:
            return
        self._in_flight[broker_id] = None

        def answered(response: AddPartitionsToTxnResponse | None) -> None:
            del self._in_flight[broker_id]
            self._answered(queued, response)
            self._send_next(broker_id)

        request = AddPartitionsToTxnRequest(tuple(queued.transactions.values()))
        self._send(broker_id, request, answered)

    def _answered(
        self, queued: _QueuedVerifications, response: AddPartitionsToTxnResponse | None
    ) -> None:
        error = ErrorCode.NETWORK_EXCEPTION if response is None else response.error
        if error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            error = ErrorCode.INVALID_TXN_STATE
        if response is None or error is not _NONE:
            for transactional_id, callback in queued.callbacks.items():
                partitions = queued.transactions[transactional_id].partitions
                callback(dict.fromkeys(partitions, error))
            return
        for result in response.results:
            queued.callbacks[result.transactional_id](_unverified(result, queued.knows_abortable))


def _unverified(
    result: AddPartitionsToTxnResult, knows_abortable: bool
) -> dict[TopicPartition, ErrorCode]:
    errors: dict[TopicPartition, ErrorCode] = {}
    for partition, error in result.partitions:
        if error is ErrorCode.PRODUCER_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        elif error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
            error = ErrorCode.INVALID_TXN_STATE
        if error is not _NONE:
            errors[partition] = error
    return errors
