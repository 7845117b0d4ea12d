"""Sending of transaction markers to the leaders of a transaction's partitions
(docs/kafka/transactions.md#markers; Kafka's ``TransactionMarkerChannelManager``).

There is one queue per broker. Each turn of the sender packs the queued markers into one request per
broker, and each broker has at most one request in flight. If the leader of a partition has moved,
the marker is sent to the new leader; if no leader is alive, the marker waits for one. Once no
partition is left, the completion of the transaction is written to the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.host import Host, Timer
from ...protocol.transactions import (
    TransactionMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ...protocol.values import TopicPartition, assembled
from ...replication.partition.metadata_cache import MetadataCache
from .metadata import TransactionMetadata, TransitMetadata
from .state_manager import TransactionStateManager

RETRY_PAUSE_MS = 10
"""Delay of a retry in milliseconds. Kafka's sender retries at once; here a retry must take virtual
time."""
RECONNECT_BACKOFF_MS = 50
"""Time in milliseconds before the sender reconnects to a broker whose connection broke, as in
Kafka."""
_FENCING_ERRORS = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
)
"""Errors which show that another producer or coordinator has taken over the transaction."""
_NO_MARKER_ERRORS = frozenset(
    {ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION}
)
"""Errors of partitions that cannot hold transactional records, and so need no marker."""

SendMarkers = Callable[
    [int, WriteTxnMarkersRequest, Callable[[WriteTxnMarkersResponse | None], object]], object
]
"""Sends a request to a broker and calls the callback once: with the response, or with None if there
was none."""

_METADATA_GRACE_MS = 5000
"""Time in milliseconds after a broker's first metadata in which partitions may still be missing."""


@assembled
class _PendingTransaction:
    """A decided transaction whose markers are not all acknowledged."""

    coordinator_epoch: int
    is_commit: bool
    metadata: TransactionMetadata
    target: TransitMetadata
    is_loaded: bool
    """True if the transaction was already decided when this broker loaded it from the log."""


_Entry = tuple[_PendingTransaction, TransactionMarker]


class _BrokerMarkers:
    """The queued markers and unsent requests of one broker."""

    def __init__(self) -> None:
        self.queued: list[_Entry] = []
        self.unsent: deque[list[_Entry]] = deque()
        self.is_busy = False
        self.timer: Timer | None = None
        """Set while the broker is in its reconnect back-off."""


class MarkerChannels:
    """Sends the markers of the transactions that this broker coordinates."""

    def __init__(
        self,
        host: Host,
        request_timeout_ms: int,
        metadata_cache: MetadataCache,
        states: TransactionStateManager,
        send: SendMarkers,
        start_task: Callable[[Coroutine[Any, Any, None]], object],
        first_metadata_ms: int | None,
    ) -> None:
        self._host = host
        self._request_timeout_ms = request_timeout_ms
        self._metadata_cache = metadata_cache
        self._states = states
        self._send = send
        self._start_task = start_task
        self._channels: dict[int, _BrokerMarkers] = {}
        self._without_leader: list[_Entry] = []
        self._append_retries: list[_PendingTransaction] = []
        self._pending: dict[str, _PendingTransaction] = {}
        self._turn: Timer | None = None
        self._turn_at_ms = 0
        self._first_metadata_ms = first_metadata_ms
        """When this broker first received metadata from the controller."""

    @property
    def pending_count(self) -> int:
        """Number of transactions that are decided but not completed."""
        return len(self._pending)

    @property
    def without_leader_count(self) -> int:
        """Kafka's gauge ``UnknownDestinationQueueSize``."""
        return len(self._without_leader)

    # -- from the coordinator ------------------------------------------------------------------

    def add(
        self,
        coordinator_epoch: int,
        is_commit: bool,
        metadata: TransactionMetadata,
        target: TransitMetadata,
        is_loaded: bool = False,
    ) -> None:
        """Send the markers of a decided transaction, and write ``target`` once all are written.

        ``is_loaded`` is true if the transaction was already decided when this broker loaded it.
        """
        pending = _PendingTransaction(coordinator_epoch, is_commit, metadata, target, is_loaded)
        self._pending[metadata.transactional_id] = pending
        self._queue(pending, tuple(metadata.partitions))
        self._maybe_write_completion(pending)

    def remove_markers_for_partition(self, number: int) -> None:
        """Drop the queued markers of a log partition that another broker now coordinates."""
        for queue in self._queues():
            kept = [
                entry
                for entry in queue
                if self._states.partition_for(entry[0].metadata.transactional_id) != number
            ]
            if len(kept) != len(queue):
                for pending, _ in queue:
                    name = pending.metadata.transactional_id
                    if self._states.partition_for(name) == number:
                        self._remove_pending(pending)
                queue[:] = kept

    def _queues(self) -> list[list[_Entry]]:
        return [self._without_leader, *(channel.queued for channel in self._channels.values())]

    def _remove_pending(self, pending: _PendingTransaction) -> None:
        name = pending.metadata.transactional_id
        if self._pending.get(name) is pending:
            del self._pending[name]

    def metadata_changed(self) -> None:
        """Retry markers that wait for a live leader. Kafka's sender polls instead."""
        if self._first_metadata_ms is None:
            self._first_metadata_ms = self._host.now_ms()
        if self._without_leader:
            self._wake()

    # -- queues --------------------------------------------------------------------------------

    def _queue(
        self, pending: _PendingTransaction, partitions: Iterable[TopicPartition], delay_ms: int = 0
    ) -> None:
        """Queue the markers of partitions for their leaders; deleted partitions need no marker.

        Partitions missing from the metadata count as deleted. The exception is a transaction loaded
        from the log soon after the broker started, because the controller does not announce all
        partitions at once.
        """
        may_lack_partitions = pending.is_loaded and self._remaining_grace_ms() > 0
        by_broker: dict[int | None, list[TopicPartition]] = {}
        deleted: list[TopicPartition] = []
        for partition in partitions:
            state = self._metadata_cache.partition_state(partition)
            if state is None and may_lack_partitions:
                by_broker.setdefault(None, []).append(partition)
            elif state is None:
                deleted.append(partition)
            else:
                alive = self._metadata_cache.is_alive(state.leader)
                by_broker.setdefault(state.leader if alive else None, []).append(partition)
        metadata = pending.metadata
        for broker_id, names in by_broker.items():
            marker = TransactionMarker(
                metadata.producer_id,
                metadata.producer_epoch,
                pending.is_commit,
                tuple(names),
                pending.coordinator_epoch,
            )
            if broker_id is None:
                self._without_leader.append((pending, marker))
            else:
                self._channels.setdefault(broker_id, _BrokerMarkers()).queued.append(
                    (pending, marker)
                )
        if deleted:
            if not self._is_current(pending):
                self._remove_pending(pending)
            else:
                for partition in deleted:
                    metadata.remove_partition(partition)
                self._maybe_write_completion(pending)
        self._wake(delay_ms)

    def _is_current(self, pending: _PendingTransaction) -> bool:
        """Return whether this broker still coordinates the transaction, under the same epoch."""
        name = pending.metadata.transactional_id
        return self._states.current(name, pending.coordinator_epoch) is not None

    def _wake(self, delay_ms: int = 0) -> None:
        at_ms = self._host.now_ms() + delay_ms
        if self._turn is not None:
            if self._turn_at_ms <= at_ms:
                return
            self._turn.cancel()
        self._turn_at_ms = at_ms
        self._turn = self._host.call_later_ms(delay_ms, self._take_turn)

    def _cancel_turn(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def _take_turn(self) -> None:
        """Retry failed appends to the log, and send the queued markers as requests."""
        self._turn = None
        retries, self._append_retries = self._append_retries, []
        for pending in retries:
            self._start_task(self._write_completion(pending))
        unsendable, self._without_leader = self._without_leader, []
        for pending, marker in unsendable:
            self._queue(pending, marker.partitions)
        self._cancel_turn()  # the loop below sends the markers queued just now
        for broker_id, channel in tuple(self._channels.items()):
            if channel.queued:
                channel.unsent.append(channel.queued)
                channel.queued = []
                self._send_next(broker_id, channel)
        if self._append_retries:
            self._wake(self._request_timeout_ms)
        if self._without_leader and (remaining_ms := self._remaining_grace_ms()) > 0:
            self._wake(remaining_ms)

    def _remaining_grace_ms(self) -> int:
        """Return for how many milliseconds the controller may still announce partitions."""
        if self._first_metadata_ms is None:
            return 0
        return max(0, self._first_metadata_ms + _METADATA_GRACE_MS - self._host.now_ms())

    def _send_next(self, broker_id: int, channel: _BrokerMarkers) -> None:
        if channel.is_busy or channel.timer is not None or not channel.unsent:
            return
        channel.is_busy = True
        entries = channel.unsent.popleft()
        request = WriteTxnMarkersRequest(tuple(marker for _, marker in entries))

        def answered(response: WriteTxnMarkersResponse | None) -> None:
            channel.is_busy = False
            if response is None:
                self._disconnected(broker_id, channel, entries)
            else:
                self._answered(entries, response)
                self._send_next(broker_id, channel)
            if self._append_retries:
                self._wake()

        self._send(broker_id, request, answered)

    # -- answers -------------------------------------------------------------------------------

    def _disconnected(self, broker_id: int, channel: _BrokerMarkers, entries: list[_Entry]) -> None:
        """Requeue the markers of an unreachable broker for the present leaders."""

        def try_again() -> None:
            channel.timer = None
            self._send_next(broker_id, channel)

        channel.timer = self._host.call_later_ms(RECONNECT_BACKOFF_MS, try_again)
        failed = [*entries, *(entry for batch in channel.unsent for entry in batch)]
        channel.unsent.clear()
        for pending, marker in failed:
            if self._is_current(pending):
                self._queue(pending, marker.partitions)
            else:
                self._remove_pending(pending)

    def _answered(self, entries: list[_Entry], response: WriteTxnMarkersResponse) -> None:
        outcomes: dict[int, dict[TopicPartition, ErrorCode]] = {}
        for producer_id, partitions in response.markers:
            outcomes.setdefault(producer_id, {}).update(partitions)
        for pending, marker in entries:
            if not self._is_current(pending):
                self._remove_pending(pending)
                continue
            errors = outcomes.get(marker.producer_id, {})
            self._handle_result(pending, marker.partitions, errors)

    def _handle_result(
        self,
        pending: _PendingTransaction,
        partitions: tuple[TopicPartition, ...],
        errors: dict[TopicPartition, ErrorCode],
    ) -> None:
        """Handle the outcome of one marker (Kafka's ``TransactionMarkerRequestCompletionHandler``).

        Any other error is retried. On one that it never expects, Kafka's broker halts.
        """
        retried: list[TopicPartition] = []
        is_fenced = False
        for partition in partitions:
            error = errors.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            if error is ErrorCode.NONE or error in _NO_MARKER_ERRORS:
                pending.metadata.remove_partition(partition)
            elif error in _FENCING_ERRORS:
                self._remove_pending(pending)
                is_fenced = True
            else:
                retried.append(partition)
        if is_fenced:
            return
        if retried:
            self._queue(pending, retried, RETRY_PAUSE_MS)
        else:
            self._maybe_write_completion(pending)

    # -- completion ----------------------------------------------------------------------------

    def _maybe_write_completion(self, pending: _PendingTransaction) -> None:
        name = pending.metadata.transactional_id
        if not pending.metadata.partitions and self._pending.get(name) is pending:
            del self._pending[name]
            self._start_task(self._write_completion(pending))

    async def _write_completion(self, pending: _PendingTransaction) -> None:
        """Write the completion of the transaction, unless this broker no longer coordinates it."""
        error = await self._states.append(
            pending.metadata.transactional_id,
            pending.coordinator_epoch,
            pending.target,
            stays_pending_if_unavailable=True,
        )
        if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            # Kafka's sender polls its selector with the same timeout, unless it is woken earlier.
            self._append_retries.append(pending)
            self._wake(self._request_timeout_ms)
        elif error not in (
            ErrorCode.NONE,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ):
            raise KafkaError(
                error,
                f"completion of {pending.metadata.transactional_id} could not be written",
            )
