"""The state that a coordinator keeps of a transactional id, and its transitions
(docs/kafka/transactions.md#states; Kafka's ``TransactionMetadata``).

A transition takes two steps: ``prepare_*`` returns the state to write to the transaction log and
marks the transition as pending; ``complete`` applies it once its record is replicated. No other
transition may be prepared while one is pending.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.errors import ErrorCode, InvariantError, KafkaError
from ...protocol.values import TopicPartition, message
from .states import VALID_PREVIOUS_STATES, TransactionState

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
EPOCH_MAX = 32767
_EMPTY = TransactionState.EMPTY
_ONGOING = TransactionState.ONGOING
_DEAD = TransactionState.DEAD


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Return whether this is the last epoch for clients; the one after it is reserved for
    fencing."""
    return producer_epoch >= EPOCH_MAX - 1


@message
class TransitMetadata:
    """The target of a transition, as written to the log."""

    producer_id: int
    last_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: tuple[TopicPartition, ...]
    start_ms: int
    """When the first partition was added; -1 if there is no transaction."""
    updated_ms: int


class TransactionMetadata:
    """State of one transactional id."""

    __slots__ = (
        "began_ms",
        "begun_by",
        "fence_failed",
        "last_producer_epoch",
        "last_producer_id",
        "partitions",
        "pending_state",
        "producer_epoch",
        "producer_id",
        "start_ms",
        "state",
        "timeout_ms",
        "transactional_id",
        "updated_ms",
    )

    def __init__(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        timeout_ms: int,
        state: TransactionState,
        updated_ms: int,
        partitions: Iterable[TopicPartition] = (),
        start_ms: int = -1,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.last_producer_id: int = NO_PRODUCER_ID
        """The previous producer id; it is not in the log, so a new coordinator loses it, as in
        Kafka."""
        self.producer_epoch: int = producer_epoch
        self.last_producer_epoch: int = NO_PRODUCER_EPOCH
        """The previous epoch, with which a producer may retry if it missed the response
        (KIP-360)."""
        self.timeout_ms: int = timeout_ms
        self.state: TransactionState = state
        self.pending_state: TransactionState | None = None
        """Target state of the transition being written, which excludes other transitions."""
        self.partitions: dict[TopicPartition, None] = dict.fromkeys(partitions)
        """Partitions of the transaction; once decided, only those whose marker is outstanding."""
        self.start_ms: int = start_ms
        self.began_ms: int = start_ms
        """``start_ms`` on the runtime's clock, by which the transaction times out."""
        self.begun_by: int | None = None
        """Number of the event at which the transaction began, if the run is recorded."""
        self.updated_ms: int = updated_ms
        self.fence_failed: bool = False
        """True if the write of a fencing epoch failed, so that the next fencing reuses the
        epoch."""

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.producer_epoch)

    def is_valid_producer_id(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether the producer id can belong to this transactional id (KIP-360); the epoch
        is checked later."""
        return (
            self.producer_epoch == NO_PRODUCER_EPOCH
            or producer_id == self.producer_id
            or (producer_id == self.last_producer_id and is_epoch_exhausted(producer_epoch))
        )

    # -- preparing -----------------------------------------------------------------------------

    def prepare_fence_producer_epoch(self) -> TransitMetadata:
        """Prepare to fence the present epoch, so that the transaction is aborted under the next.

        The new epoch is never returned to a client.
        """
        if self.producer_epoch == EPOCH_MAX:
            raise InvariantError(
                f"{self.transactional_id} has used all producer epochs and cannot be fenced"
            )
        epoch = self.producer_epoch if self.fence_failed else self.producer_epoch + 1
        return self._prepare(
            TransactionState.PREPARE_EPOCH_FENCE,
            producer_epoch=epoch,
            last_producer_epoch=NO_PRODUCER_EPOCH,
            updated_ms=self.updated_ms,
        )

    def prepare_increment_producer_epoch(
        self, timeout_ms: int, expected_epoch: int | None, wall_ms: int
    ) -> TransitMetadata:
        """Prepare an empty transaction under the next epoch.

        ``expected_epoch`` is the epoch that the producer sent (KIP-360): the present epoch, or the
        previous one if the producer retries a request whose response was lost. Raises
        ``KafkaError`` PRODUCER_FENCED for any other epoch.
        """
        if self.is_epoch_exhausted:
            raise InvariantError(f"{self.transactional_id} has used all producer epochs")
        epoch, last_epoch = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        if expected_epoch is not None:
            if self.producer_epoch in (NO_PRODUCER_EPOCH, expected_epoch):
                last_epoch = self.producer_epoch
            elif expected_epoch == self.last_producer_epoch:
                epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
            else:
                raise KafkaError(
                    ErrorCode.PRODUCER_FENCED,
                    f"epoch {expected_epoch} of {self.transactional_id} is neither "
                    f"{self.producer_epoch} nor the one before",
                )
        return self._prepare_empty(self.producer_id, epoch, last_epoch, timeout_ms, wall_ms)

    def prepare_producer_id_rotation(
        self, producer_id: int, timeout_ms: int, wall_ms: int, keep_last_epoch: bool
    ) -> TransitMetadata:
        """Prepare an empty transaction under a new producer id, after the epochs ran out."""
        if self.state is _ONGOING or self.state.is_prepared:
            raise InvariantError(
                f"{self.transactional_id} has an open transaction and keeps its producer id"
            )
        last_epoch = self.producer_epoch if keep_last_epoch else NO_PRODUCER_EPOCH
        return self._prepare_empty(producer_id, 0, last_epoch, timeout_ms, wall_ms)

    def _prepare_empty(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, wall_ms: int
    ) -> TransitMetadata:
        return self._prepare(
            _EMPTY,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=(),
            start_ms=-1,
            updated_ms=wall_ms,
        )

    def prepare_add_partitions(
        self, partitions: Iterable[TopicPartition], wall_ms: int
    ) -> TransitMetadata:
        """Prepare to add partitions to the transaction; the first of them begin it."""
        return self._prepare(
            _ONGOING,
            partitions=tuple(dict.fromkeys((*self.partitions, *partitions))),
            start_ms=self.start_ms if self.state is _ONGOING else wall_ms,
            updated_ms=wall_ms,
        )

    def prepare_abort_or_commit(self, is_commit: bool, wall_ms: int) -> TransitMetadata:
        """Prepare the decision to commit or abort."""
        state = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
        return self._prepare(state, updated_ms=wall_ms)

    def prepare_complete(self, wall_ms: int) -> TransitMetadata:
        """Prepare the completion of a decided transaction."""
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        self.fence_failed = False
        return self._prepare(
            TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
            partitions=(),
            updated_ms=wall_ms,
        )

    def prepare_dead(self) -> TransitMetadata:
        """Prepare the removal of the transactional id, which a tombstone records."""
        return self._prepare(_DEAD, partitions=(), updated_ms=self.updated_ms)

    def _prepare(
        self,
        state: TransactionState,
        *,
        updated_ms: int,
        producer_id: int | None = None,
        producer_epoch: int | None = None,
        last_producer_epoch: int | None = None,
        timeout_ms: int | None = None,
        partitions: tuple[TopicPartition, ...] | None = None,
        start_ms: int | None = None,
    ) -> TransitMetadata:
        """Prepare a transition; fields left out keep their value."""
        if self.pending_state is not None:
            raise InvariantError(
                f"{self.transactional_id} cannot prepare {state.title} while its transition to "
                f"{self.pending_state.title} is pending"
            )
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise InvariantError(
                f"{self.transactional_id} cannot change from {self.state.title} to {state.title}"
            )
        if producer_id is None:
            producer_id = self.producer_id
        if producer_epoch is None:
            producer_epoch = self.producer_epoch
        if producer_id < 0 or (producer_epoch < 0 and state is not _DEAD):
            raise InvariantError(
                f"{self.transactional_id} cannot have producer id {producer_id} and epoch "
                f"{producer_epoch}"
            )
        self.pending_state = state
        return TransitMetadata(
            producer_id,
            self.producer_id,
            producer_epoch,
            self.last_producer_epoch if last_producer_epoch is None else last_producer_epoch,
            self.timeout_ms if timeout_ms is None else timeout_ms,
            state,
            tuple(self.partitions) if partitions is None else partitions,
            self.start_ms if start_ms is None else start_ms,
            updated_ms,
        )

    # -- completing ----------------------------------------------------------------------------

    def complete(self, target: TransitMetadata) -> None:
        """Apply the pending transition, whose record is replicated.

        Raises ``InvariantError`` if ``target`` cannot follow the present state.
        """
        state = self.pending_state
        if state is None or state is not target.state or not self._is_valid_target(target):
            raise InvariantError(
                f"{self.transactional_id} in state {self.state.title} cannot change to {target}"
            )
        if state is _EMPTY:
            self.timeout_ms = target.timeout_ms
            self.producer_epoch = target.producer_epoch
            self.last_producer_epoch = target.last_producer_epoch
            self.producer_id = target.producer_id
            self.last_producer_id = target.last_producer_id
        elif state is _ONGOING:
            self.start_ms = target.start_ms
            self.partitions.update(dict.fromkeys(target.partitions))
        elif not state.is_prepared:
            self.start_ms = target.start_ms
            self.partitions.clear()
        self.updated_ms = target.updated_ms
        self.pending_state = None
        self.state = state

    def _is_valid_target(self, target: TransitMetadata) -> bool:
        """Return whether the target can follow the present state."""
        state = target.state
        if state is _EMPTY:
            is_next_epoch = target.producer_epoch in (self.producer_epoch, self.producer_epoch + 1)
            is_new_id = target.producer_epoch == 0 and target.producer_id != self.producer_id
            return (is_next_epoch or is_new_id) and not target.partitions and target.start_ms == -1
        if state is _DEAD or state is TransactionState.PREPARE_EPOCH_FENCE:
            return False  # the first ends in removal, the second becomes PrepareAbort
        if (
            target.producer_epoch != self.producer_epoch
            or target.producer_id != self.producer_id
            or target.timeout_ms != self.timeout_ms
        ):
            return False
        if state is _ONGOING:
            return set(self.partitions) <= set(target.partitions)
        if state.is_prepared:
            same_partitions = set(self.partitions) == set(target.partitions)
            return same_partitions and target.start_ms == self.start_ms
        return target.start_ms != -1

    def remove_partition(self, partition: TopicPartition) -> None:
        """Remove a partition that no longer needs a marker."""
        if not self.state.is_prepared:
            raise InvariantError(
                f"{self.transactional_id} in state {self.state.title} has no markers to write"
            )
        self.partitions.pop(partition, None)

    def __repr__(self) -> str:
        pending = "" if self.pending_state is None else f" -> {self.pending_state.title}"
        return (
            f"TransactionMetadata({self.transactional_id!r}, producer {self.producer_id} epoch "
            f"{self.producer_epoch}, {self.state.title}{pending})"
        )
