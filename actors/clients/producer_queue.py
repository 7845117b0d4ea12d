"""What a modelled producer keeps for one partition: its batches, and how they are numbered.

Theory of operation. An idempotent producer numbers its records per partition and epoch. Numbers
must follow each other, so a batch that ends without being stored leaves a gap that no later batch
of the epoch can cross. The cure is a new epoch, in which numbers begin at 0 (KIP-360):

* *failed*: a broker refused it for good. The gap is certain; the epoch is raised.
* *expired*: nobody knows whether it was stored. No new batch is numbered until those that were
  sent have ended. If the last one was acknowledged, there is no gap; else the epoch is raised.
* *out of order*: the very next batch is refused, so the broker lacks what it had acknowledged, or
  what expired. The epoch is raised, and the batch sent again with a new number.

Raising waits for the answers that are under way. The other partitions go on in the new epoch as
soon as nothing of the old one is left. Kafka has this in ``TransactionManager``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition

Callback = Callable[[ErrorCode, int], object]
"""Called once per record with (error, offset); the offset is -1 unless it is known."""

Identity = tuple[int, int]
"""Producer id and epoch; compared by identity."""

NOBODY: Identity = (-1, -1)
"""Who a producer is without idempotence."""

EPOCH_MAX = 32767


class Batch:
    """Records that go out together."""

    __slots__ = ("base_sequence", "created_at_ms", "records", "sent_at_us")

    def __init__(self, created_at_ms: int) -> None:
        self.records: list[tuple[bytes | None, bytes | None, int, Callback | None]] = []
        self.base_sequence = -1  # given at the first send, kept over retries
        self.created_at_ms = created_at_ms
        self.sent_at_us = 0

    @property
    def end_sequence(self) -> int:
        """The number after its last record's."""
        return self.base_sequence + len(self.records)


class PartitionQueue:
    """What waits for one partition."""

    __slots__ = (
        "_acknowledged_sequence",
        "_needs_epoch",
        "_unresolved_sequence",
        "batches",
        "identity",
        "in_flight",
        "is_waking",
        "next_sequence",
        "not_before_ms",
        "open_batch",
        "ready_for",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, is_idempotent: bool) -> None:
        self.topic_partition = topic_partition
        self.batches: deque[Batch] = deque()
        """Those to be sent again come first, in the order of their numbers."""
        self.open_batch: Batch | None = None  # last of ``batches`` while it takes records
        self.in_flight = 0
        self.not_before_ms = 0
        self.is_waking = False  # a call at ``not_before_ms`` is on its way
        self.identity = NOBODY
        """In whose name its batches are numbered."""
        self.ready_for: Identity | None = None if is_idempotent else NOBODY
        """``identity`` while new batches may be numbered in it."""
        self.next_sequence = 0
        self._acknowledged_sequence = 0  # the number after the last one acknowledged
        self._unresolved_sequence = -1  # the number after the last one that expired
        self._needs_epoch = False

    def put_back(self, batch: Batch) -> None:
        """Let a batch be sent again, in the order of the numbers."""
        position = 0
        for waiting in self.batches:
            if waiting.base_sequence < 0 or waiting.base_sequence > batch.base_sequence:
                break
            position += 1
        self.batches.insert(position, batch)

    # -- numbering ------------------------------------------------------------------------------

    def acknowledged(self, batch: Batch) -> None:
        end_sequence = batch.base_sequence + len(batch.records)
        if end_sequence > self._acknowledged_sequence:
            self._acknowledged_sequence = end_sequence

    def failed(self, batch: Batch) -> None:
        """A batch ended at a broker that did not store it, or not for certain."""
        if batch.base_sequence >= 0 and self.identity is not NOBODY:
            self._needs_epoch = True
            self.ready_for = None

    def expired(self, batch: Batch) -> None:
        """A batch ended before it was sent once more."""
        if batch.base_sequence >= 0 and self.identity is not NOBODY:
            self._unresolved_sequence = max(self._unresolved_sequence, batch.end_sequence)
            self.ready_for = None

    def out_of_order(self, batch: Batch) -> None:
        """A broker refused the number; it may be the turn of a batch that is sent again first."""
        unresolved = self._unresolved_sequence
        expected = self._acknowledged_sequence if unresolved < 0 else unresolved
        if batch.base_sequence == expected:
            self.failed(batch)

    def wants_new_epoch(self) -> bool:
        """Whether it goes on in a new epoch only; no answer may be under way."""
        if self._needs_epoch:
            return True
        return (
            self._unresolved_sequence >= 0
            and self.next_sequence != self._acknowledged_sequence
            and not self.has_numbered
        )

    @property
    def has_numbered(self) -> bool:
        """Whether a batch with a number waits to be sent again."""
        return bool(self.batches) and self.batches[0].base_sequence >= 0

    def go_on_as(self, identity: Identity) -> None:
        """Number new batches in this name: from 0 if it is another one."""
        if self.identity is not identity:
            self.identity = identity
            self.next_sequence = self._acknowledged_sequence = 0
            for batch in self.batches:
                batch.base_sequence = -1
        self._needs_epoch = False
        self._unresolved_sequence = -1
        self.ready_for = identity
