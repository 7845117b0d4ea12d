"""Queue of a modelled producer for one partition: its batches, and how they are numbered.

Theory of operation. An idempotent producer numbers its records per partition and epoch. Numbers
must follow each other, so a batch that ends without being stored leaves a gap that no later batch
of the epoch can cross. The cure is a new epoch, in which numbers begin at 0 (KIP-360). A batch that
was sent is *tracked* until it is acknowledged or given up, also while it waits to be sent again;
of the tracked ones only the first may be sent again. The epoch is raised for a partition when

* a broker refused a batch for good: the gap is certain;
* a batch was given up that may be stored, nothing is tracked any more and the last number given was
  not acknowledged. Until that is known no new batch is numbered;
* a broker refused the very next number, so it lacks what it had acknowledged or what was given up.

Raising gives the tracked batches new numbers at once. One that is stored already is then stored a
second time: Kafka has this hazard too. A broker that was restarted, for instance, knows the numbers
of a producer's last batch only (docs/kafka/producer-state.md#forgetting), and refuses one that was
stored before it. The other partitions go on in the new epoch once they track nothing. Kafka has all
this in ``TransactionManager`` and ``RecordAccumulator.drainBatchesForOneNode``.
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
"""Called once per record with (error, offset); the offset is -1 unless it is known."""


class Identity(NamedTuple):
    """Who a producer is; one is told from another as an object, not by its numbers."""

    producer_id: int
    epoch: int


NO_IDENTITY = Identity(-1, -1)
"""Who a producer is without idempotence."""

EPOCH_MAX = 32767


class ProducerBatch:
    """Records that go out together."""

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
        self.base_sequence: int = -1  # given at the first send, kept over retries
        self.created_at_ms: int = created_at_ms
        self.operation: int | None = None
        """Seq of the event that began it, while the run is recorded."""
        self.sent_at_us: int = 0
        self.has_deadline: bool = False  # a call at the end of its delivery timeout is on its way
        self.has_ended: bool = False
        self.is_renumbered: bool = False  # since it was sent last
        self.is_retried: bool = False

    @property
    def end_sequence(self) -> int:
        """The number after its last record's."""
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
    """Batches that wait for one partition."""

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
        "open_batch",
        "ready_for",
        "sent_to",
        "topic_partition",
        "tracked",
    )

    def __init__(self, topic_partition: TopicPartition, is_idempotent: bool) -> None:
        self.topic_partition: TopicPartition = topic_partition
        self.name: str = str(topic_partition)
        self.is_idempotent: bool = is_idempotent
        self.batches: deque[ProducerBatch] = deque()
        """Those to be sent again come first, in the order of their numbers."""
        self.open_batch: ProducerBatch | None = None  # last of ``batches`` while it takes records
        self.in_flight: int = 0
        """Requests without an answer."""
        self.not_before_ms: int = 0
        self.lacks_leader: bool = False  # since a batch was sent last
        self.sent_to: int | None = None
        """While a run is recorded: the broker to which a batch was sent last."""
        self.is_waking: bool = False  # a call at ``not_before_ms`` is on its way
        self.is_known: bool = False
        """Metadata had the partition at some time."""
        self.expiry: Timer | None = None
        """Set while its first batch can be sent to nobody: when that batch is given up."""
        self.identity: Identity = NO_IDENTITY
        """In whose name its batches are numbered."""
        self.ready_for: Identity | None = None if is_idempotent else NO_IDENTITY
        """``identity`` while new batches may be numbered in it."""
        self.tracked: list[ProducerBatch] = []
        """With idempotence: those sent and not ended, in the order of their numbers."""
        self.next_sequence: int = 0
        self._acknowledged_sequence = 0  # the number after the last one acknowledged
        self._unresolved_sequence = -1  # the number after the last one given up after a retry

    def put_back(self, batch: ProducerBatch) -> None:
        """Put a batch back to be sent again, in the order of the numbers."""
        batch.is_retried = True
        position = 0
        for waiting in self.batches:
            if waiting.base_sequence < 0 or waiting.base_sequence > batch.base_sequence:
                break
            position += 1
        self.batches.insert(position, batch)

    # -- numbering ------------------------------------------------------------------------------

    def acknowledged(self, batch: ProducerBatch) -> None:
        """A batch is stored; the answer may come after it was given up."""
        end_sequence = batch.base_sequence + len(batch.records)
        if end_sequence > self._acknowledged_sequence:
            self._acknowledged_sequence = end_sequence
        if self.is_idempotent and not batch.has_ended:
            self.tracked.remove(batch)

    def given_up(self, batch: ProducerBatch) -> None:
        """A batch ended without an answer that says what became of it.

        Only one that was sent again holds the next ones up (``Sender.sendProducerData``); behind
        one that was sent once, they are refused if it is not stored, until they are given up.
        """
        if batch.base_sequence >= 0 and self.is_idempotent:
            self.tracked.remove(batch)
            if batch.is_retried:
                self._unresolved_sequence = max(self._unresolved_sequence, batch.end_sequence)
                self.ready_for = None

    def shows_gap(self, batch: ProducerBatch) -> bool:
        """Return whether a batch refused as out of order proves that something before it is
        missing.

        Otherwise it waits for others that are sent again first (``TransactionManager.canRetry``).
        """
        if self._unresolved_sequence >= 0:
            return batch.base_sequence == self._unresolved_sequence
        return not batch.is_renumbered and batch.base_sequence == self._acknowledged_sequence

    def wants_new_epoch(self) -> bool:
        """Return whether what was given up left a gap; asked when something ended, it may settle it
        (``TransactionManager.maybeResolveSequences``)."""
        if self._unresolved_sequence < 0 or self.tracked:
            return False
        if self.next_sequence != self._acknowledged_sequence:
            return True
        self._unresolved_sequence = -1
        self.ready_for = self.identity
        return False

    def may_send(self, batch: ProducerBatch, identity: Identity) -> bool:
        """Return whether the first batch can be sent with the number it has, or be given one as
        ``identity`` (``RecordAccumulator.shouldStopDrainBatchesForPartition``)."""
        if not self.is_idempotent:
            return True
        if batch.base_sequence >= 0:
            return self.tracked[0] is batch
        if self.ready_for is identity:
            return True
        if self.tracked or self._unresolved_sequence >= 0:
            return False
        self.number_anew(identity)
        return True

    def number_anew(self, identity: Identity) -> None:
        """Number batches in this name, from 0; also those that were sent and have not ended."""
        sequence = 0
        for batch in self.tracked:
            batch.base_sequence = sequence
            batch.is_renumbered = True
            sequence += len(batch.records)
        self.identity = self.ready_for = identity
        self.next_sequence = sequence
        self._acknowledged_sequence = 0
        self._unresolved_sequence = -1
