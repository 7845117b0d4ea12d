"""Queue of a modelled producer for one partition: its batches, and how they are numbered.

Theory of operation. An idempotent producer numbers its records per partition and epoch. Sequence
numbers must be consecutive, so a batch that ends without being stored leaves a gap that no later
batch of the epoch can cross. The remedy is a new epoch, in which numbers begin at 0 (KIP-360). A
batch that was sent is *tracked* until it is acknowledged or given up, also while it waits to be
sent again; only the first tracked batch may be sent again. The epoch is raised for a partition when

* a broker refused a batch for good, so that the gap is certain; * a batch that may be stored was
given up, no batch is tracked any more, and the last number assigned was not acknowledged. Until
this is known, no new batch is numbered; * a broker refused the very next number, so that it lacks a
batch that was acknowledged or given up.

Raising the epoch renumbers the tracked batches at once. A batch that is already stored is then
stored a second time, a hazard that Kafka has too. For instance, a restarted broker knows the
numbers of a producer's last batch only (docs/kafka/producer-state.md#forgetting), and refuses a
batch that was stored before it. The other partitions move to the new epoch once they track no
batch. Kafka has all this in ``TransactionManager`` and
``RecordAccumulator.drainBatchesForOneNode``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ...protocol.errors import ErrorCode
from ...protocol.host import Timer
from ...protocol.records.batch import build_batch
from ...protocol.records.format import Record
from ...protocol.records.small_batch import build_batch_of_one, build_batch_of_small
from ...protocol.values import TopicPartition

Callback = Callable[[ErrorCode, int], object]
"""Called once per record with (error, offset); the offset is -1 if it is unknown."""


class Identity(NamedTuple):
    """Identity of a producer; compared as an object, not by its numbers."""

    producer_id: int
    epoch: int


NO_IDENTITY = Identity(-1, -1)
"""Identity of a producer without idempotence, or without a producer id yet."""

EPOCH_MAX = 32767


class ProducerBatch:
    """Records that are sent together."""

    __slots__ = (
        "base_sequence",
        "created_at_ms",
        "has_deadline",
        "has_ended",
        "is_renumbered",
        "is_retried",
        "operation",
        "records",
        "sent_at_us",
    )

    def __init__(self, created_at_ms: int) -> None:
        self.records: list[tuple[bytes | None, bytes | None, int, Callback | None]] = []
        self.base_sequence: int = -1  # assigned at the first send, kept over retries
        self.created_at_ms: int = created_at_ms
        self.operation: int | None = None
        """Seq of the event that began the batch, while the run is recorded."""
        self.sent_at_us: int = 0
        self.has_deadline: bool = False  # True if a call at its delivery timeout is scheduled
        self.has_ended: bool = False
        self.is_renumbered: bool = False  # since it was last sent
        self.is_retried: bool = False

    @property
    def end_sequence(self) -> int:
        """The sequence number after that of the last record."""
        return self.base_sequence + len(self.records)

    def encode(self, identity: Identity) -> bytes:
        records = self.records
        producer_id, producer_epoch = identity
        base_sequence = self.base_sequence if producer_id >= 0 else -1
        if len(records) == 1:
            key, value, timestamp, _ = records[0]
            if key is None and value is not None:
                return build_batch_of_one(
                    value, timestamp, producer_id, producer_epoch, base_sequence
                )
        else:
            small = build_batch_of_small(records, producer_id, producer_epoch, base_sequence)
            if small is not None:
                return small
        encoded = [
            Record(index, timestamp, key, value, ())
            for index, (key, value, timestamp, _) in enumerate(records)
        ]
        return build_batch(encoded, 0, -1, producer_id, producer_epoch, base_sequence)


class PartitionQueue:
    """The batches of one partition, and how they are numbered."""

    __slots__ = (
        "_acknowledged_sequence",
        "_unresolved_sequence",
        "batches",
        "expiry",
        "identity",
        "in_flight",
        "is_idempotent",
        "is_known",
        "is_waking",
        "lacks_leader",
        "name",
        "next_sequence",
        "not_before_ms",
        "numbering_identity",
        "open_batch",
        "sent_to",
        "topic_partition",
        "tracked",
    )

    def __init__(self, topic_partition: TopicPartition, is_idempotent: bool) -> None:
        self.topic_partition: TopicPartition = topic_partition
        self.name: str = str(topic_partition)
        self.is_idempotent: bool = is_idempotent
        self.batches: deque[ProducerBatch] = deque()
        """Waiting batches; those to be sent again come first, in the order of their numbers."""
        self.open_batch: ProducerBatch | None = None  # last of ``batches`` while it takes records
        self.in_flight: int = 0
        """Number of requests without an answer."""
        self.not_before_ms: int = 0
        self.lacks_leader: bool = False  # True if there was no leader since a batch was last sent
        self.sent_to: int | None = None
        """Broker to which a batch was last sent, while the run is recorded."""
        self.is_waking: bool = False  # True if a call at ``not_before_ms`` is scheduled
        self.is_known: bool = False
        """True once metadata have contained the partition."""
        self.expiry: Timer | None = None
        """Timer that gives up the first batch; set while the batch cannot be sent to any broker."""
        self.identity: Identity = NO_IDENTITY
        """Identity under which the batches are numbered."""
        self.numbering_identity: Identity | None = None if is_idempotent else NO_IDENTITY
        """``identity`` while new batches may be numbered under it, otherwise None."""
        self.tracked: list[ProducerBatch] = []
        """With idempotence, batches sent and not ended, in the order of their numbers."""
        self.next_sequence: int = 0
        self._acknowledged_sequence = 0  # the number after the last one acknowledged
        self._unresolved_sequence = -1  # the number after the last one given up after a retry

    def put_back(self, batch: ProducerBatch) -> None:
        """Put a batch back to be sent again, at its place in the order of the numbers."""
        batch.is_retried = True
        position = 0
        for waiting in self.batches:
            if waiting.base_sequence < 0 or waiting.base_sequence > batch.base_sequence:
                break
            position += 1
        self.batches.insert(position, batch)

    # -- numbering ------------------------------------------------------------------------------

    def record_acknowledged(self, batch: ProducerBatch) -> None:
        """Note that a batch is stored; the answer may arrive after the batch was given up."""
        end_sequence = batch.base_sequence + len(batch.records)
        if end_sequence > self._acknowledged_sequence:
            self._acknowledged_sequence = end_sequence
        if self.is_idempotent and not batch.has_ended:
            self.tracked.remove(batch)

    def record_expired(self, batch: ProducerBatch) -> None:
        """Note that a batch ended without an answer that says whether it is stored.

        Only a batch that was sent again blocks the next ones (``Sender.sendProducerData``). After a
        batch that was sent once and is not stored, they are refused until they are given up.
        """
        if batch.base_sequence >= 0 and self.is_idempotent:
            self.tracked.remove(batch)
            if batch.is_retried:
                self._unresolved_sequence = max(self._unresolved_sequence, batch.end_sequence)
                self.numbering_identity = None

    def proves_gap(self, batch: ProducerBatch) -> bool:
        """Return whether a batch refused as out of order proves that an earlier one is missing.

        Otherwise it waits for batches that are sent again first (``TransactionManager.canRetry``).
        """
        if self._unresolved_sequence >= 0:
            return batch.base_sequence == self._unresolved_sequence
        return not batch.is_renumbered and batch.base_sequence == self._acknowledged_sequence

    def resolve_sequences(self) -> bool:
        """Return True if a batch given up left a gap, so that a new epoch is needed. If it is
        certain that there is none, let new batches be numbered again
        (``TransactionManager.maybeResolveSequences``)."""
        if self._unresolved_sequence < 0 or self.tracked:
            return False
        if self.next_sequence != self._acknowledged_sequence:
            return True
        self._unresolved_sequence = -1
        self.numbering_identity = self.identity
        return False

    def may_send(self, batch: ProducerBatch, identity: Identity) -> bool:
        """Return whether the first batch can be sent with its number, or can be numbered under
        ``identity`` (``RecordAccumulator.shouldStopDrainBatchesForPartition``)."""
        if not self.is_idempotent:
            return True
        if batch.base_sequence >= 0:
            return self.tracked[0] is batch
        if self.numbering_identity is identity:
            return True
        if self.tracked or self._unresolved_sequence >= 0:
            return False
        self.renumber(identity)
        return True

    def renumber(self, identity: Identity) -> None:
        """Number batches from 0 under an identity, including those sent and not ended."""
        sequence = 0
        for batch in self.tracked:
            batch.base_sequence = sequence
            batch.is_renumbered = True
            sequence += len(batch.records)
        self.identity = self.numbering_identity = identity
        self.next_sequence = sequence
        self._acknowledged_sequence = 0
        self._unresolved_sequence = -1
