"""State of idempotent producers in a log, and of the transactions open in it.

Kafka's ``ProducerStateManager`` (docs/kafka/producer-state.md). Leaders check clients' batches
against this state; followers and restarted brokers rebuild it from the log. A snapshot keeps only
the last batch of each producer, so after loading one, only that batch is known as a duplicate.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records.checksum import crc32c
from ...protocol.records.format import SEQUENCE_MAX, ControlMarker, add_sequence
from .verification import UNGUARDED, Unguarded, VerificationGuard, VerificationGuards

BATCHES_KEPT = 5
NO_EPOCH = -1
_SNAPSHOT_VERSION = 1
_SNAPSHOT_HEADER = struct.Struct(">hI")
_SNAPSHOT_COUNT = struct.Struct(">i")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")


class BatchMetadata(NamedTuple):
    """One of the last batches of a producer."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the marker."""
    is_aborted: bool


class ProducerEntry:
    """State of one producer id on one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int, epoch: int = NO_EPOCH) -> None:
        self.producer_id: int = producer_id
        self.epoch: int = epoch
        self.batches: list[BatchMetadata] = []
        """Last batches of ``epoch``, oldest first; at most five."""
        self.coordinator_epoch: int = -1
        self.transaction_first_offset: int = -1
        """First offset of the open transaction; -1 while none is open."""
        self.last_timestamp: int = -1

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def duplicate_of(self, epoch: int, first: int, last: int) -> BatchMetadata | None:
        """Return the remembered batch with exactly these sequences, or None."""
        if epoch == self.epoch:
            for batch in self.batches:
                if batch.first_sequence == first and batch.last_sequence == last:
                    return batch
        return None

    def take_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch

    def add(self, batch: BatchMetadata, timestamp: int) -> None:
        """Remember the next batch of ``epoch``, with its largest timestamp."""
        batches = self.batches
        batches.append(batch)
        if len(batches) > BATCHES_KEPT:
            del batches[0]
        self.last_timestamp = timestamp


class CorruptSnapshot(ValueError):
    """Raised for an unreadable producer snapshot; Kafka deletes it and loads an older one."""


class ProducerStateManager:
    """The producers of one partition, and its open and unreplicated transactions."""

    __slots__ = ("entries", "first_unstable_offset", "guards", "ongoing", "unreplicated")

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.ongoing: dict[int, int] = {}
        """Producer id of each open transaction by its first offset, in ascending order."""
        self.unreplicated: dict[int, int] = {}
        """Marker offset of each transaction decided at or above the high watermark, by its first
        offset."""
        self.first_unstable_offset: int = -1
        """First offset of the oldest transaction that is open or not replicated; -1 if none."""
        self.guards: VerificationGuards = VerificationGuards()
        """Guards of the producers that are about to begin a transaction here."""

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, now_ms: int
    ) -> VerificationGuard | None:
        """Return the guard for a transaction about to begin; None if one is open already."""
        if self._has_open_transaction(producer_id):
            return None
        return self.guards.start(producer_id, sequence, epoch, now_ms)

    def _has_open_transaction(self, producer_id: int) -> bool:
        entry = self.entries.get(producer_id)
        return entry is not None and entry.transaction_first_offset >= 0

    # -- checks of a leader -----------------------------------------------------------------

    def check_data_batch(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_sequence: int,
        is_transactional: bool,
        is_client: bool,
        unknown_error: ErrorCode | None,
        guard: VerificationGuard | Unguarded | None = UNGUARDED,
    ) -> BatchMetadata | None:
        """Check a batch before a leader appends it; return the original if it is a duplicate.

        Raises ``KafkaError``: ``unknown_error`` for an unknown producer whose sequence is not 0
        (None accepts it), INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or
        INVALID_TXN_STATE, in the order of docs/kafka/producer-state.md#checks. Batches of
        coordinators have no sequence, so only their epoch is checked.
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            if is_transactional and not isinstance(guard, Unguarded):
                self.guards.check(producer_id, guard)
            if is_client and self.guards:
                self.guards.check_order(producer_id, first_sequence)
            if unknown_error is not None and first_sequence != 0:
                raise KafkaError(
                    unknown_error,
                    f"producer {producer_id} is unknown on this partition, but its first sequence "
                    f"is {first_sequence}, not 0",
                )
            return None
        if is_client:
            duplicate = entry.duplicate_of(epoch, first_sequence, last_sequence)
            if duplicate is not None:
                return duplicate
        is_open = entry.transaction_first_offset >= 0
        if is_transactional and not is_open and not isinstance(guard, Unguarded):
            self.guards.check(producer_id, guard)
        _check_epoch(entry, epoch)
        if is_client:
            if self.guards:
                self.guards.check_order(producer_id, first_sequence)
            _check_sequence(entry, epoch, first_sequence)
        if not is_transactional and is_open:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} sent a batch outside the transaction that it has open",
            )
        return None

    def check_marker(self, producer_id: int, epoch: int, marker: ControlMarker) -> None:
        """Check a marker before a leader appends it (docs/kafka/producer-state.md#markers).

        Raises ``KafkaError`` INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            return
        _check_epoch(entry, epoch)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} in a marker of producer "
                f"{producer_id} is older than the current {entry.coordinator_epoch}",
            )

    # -- appended batches -------------------------------------------------------------------

    def append_data_batch(
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        is_transactional: bool,
    ) -> None:
        """Update the state for a data batch that was appended."""
        if is_transactional and self.guards:
            self.guards.drop(producer_id)
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        elif epoch != entry.epoch:
            entry.take_epoch(epoch)
        last_sequence = base_sequence
        if last_offset != first_offset and base_sequence >= 0:
            last_sequence = add_sequence(base_sequence, last_offset - first_offset)
        noted = BatchMetadata(base_sequence, last_sequence, first_offset, last_offset, timestamp)
        entry.add(noted, timestamp)
        if is_transactional and entry.transaction_first_offset < 0:
            entry.transaction_first_offset = first_offset
            self.ongoing[first_offset] = producer_id
            if self.first_unstable_offset < 0:
                self.first_unstable_offset = first_offset

    def append_marker(
        self,
        producer_id: int,
        epoch: int,
        marker: ControlMarker,
        offset: int,
        timestamp: int,
    ) -> CompletedTransaction | None:
        """Update the state for an appended marker; return the transaction it ended, if any."""
        self.guards.drop(producer_id)
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        else:
            entry.take_epoch(epoch)
        first_offset = entry.transaction_first_offset
        entry.transaction_first_offset = -1
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = timestamp
        if first_offset < 0:
            return None
        return CompletedTransaction(producer_id, first_offset, offset, not marker.is_commit)

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """Return the last stable offset once ``completed`` counts as decided."""
        for first_offset in self.ongoing:
            if first_offset != completed.first_offset:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTransaction) -> None:
        """Move a decided transaction from ``ongoing`` to ``unreplicated``."""
        self.ongoing.pop(completed.first_offset, None)
        self.unreplicated[completed.first_offset] = completed.last_offset
        self._find_first_unstable()

    def on_high_watermark(self, high_watermark: int) -> None:
        """Remove the decided transactions whose marker is replicated."""
        unreplicated = self.unreplicated
        if unreplicated:
            done = [first for first, last in unreplicated.items() if last < high_watermark]
            for first in done:
                del unreplicated[first]
            if done:
                self._find_first_unstable()

    def _find_first_unstable(self) -> None:
        self.first_unstable_offset = min((*self.ongoing, *self.unreplicated), default=-1)

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Remove producers inactive for ``expiration_ms`` without an open transaction.

        Return their number.
        """
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.transaction_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        self.guards.expire(now_ms, expiration_ms)
        return len(expired)

    def remove_below(self, log_start_offset: int) -> None:
        """Remove producers without a batch at or above the log start, and their transactions.

        This is Kafka's ``truncateHead``. It also removes producers known only by a marker.
        """
        gone = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.last_offset < log_start_offset
        ]
        for producer_id in gone:
            first_offset = self.entries.pop(producer_id).transaction_first_offset
            self.ongoing.pop(first_offset, None)
        if gone:
            self._find_first_unstable()

    # -- snapshots --------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the content of a ``.snapshot`` file, in Kafka's format version 1."""
        body = [_SNAPSHOT_COUNT.pack(len(self.entries))]
        for entry in self.entries.values():
            last = entry.batches[-1] if entry.batches else None
            body.append(
                _SNAPSHOT_ENTRY.pack(
                    entry.producer_id,
                    entry.epoch,
                    last.last_sequence if last else -1,
                    last.last_offset if last else -1,
                    last.last_offset - last.first_offset if last else 0,
                    entry.last_timestamp,
                    entry.coordinator_epoch,
                    entry.transaction_first_offset,
                )
            )
        content = b"".join(body)
        return _SNAPSHOT_HEADER.pack(_SNAPSHOT_VERSION, crc32c(content)) + content

    @classmethod
    def from_snapshot(cls, data: bytes) -> ProducerStateManager:
        """Read a snapshot; raises ``CorruptSnapshot``."""
        state = cls()
        try:
            version, checksum = _SNAPSHOT_HEADER.unpack_from(data)
            content = memoryview(data)[_SNAPSHOT_HEADER.size :]
            if version != _SNAPSHOT_VERSION:
                raise CorruptSnapshot(f"producer snapshot of unknown version {version}")
            if checksum != crc32c(content):
                raise CorruptSnapshot("producer snapshot with a wrong checksum")
            (count,) = _SNAPSHOT_COUNT.unpack_from(content)
            for index in range(count):
                state._load(_SNAPSHOT_ENTRY.unpack_from(content, 4 + index * _SNAPSHOT_ENTRY.size))
        except struct.error:
            raise CorruptSnapshot("producer snapshot cut short") from None
        state.ongoing = dict(sorted(state.ongoing.items()))
        state._find_first_unstable()
        return state

    def _load(self, fields: tuple[int, ...]) -> None:
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator, first = fields
        entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        entry.coordinator_epoch = coordinator
        entry.last_timestamp = timestamp
        entry.transaction_first_offset = first
        if offset >= 0:
            first_sequence = sequence
            if sequence >= 0:
                first_sequence = sequence - delta
                if first_sequence < 0:
                    first_sequence += SEQUENCE_MAX + 1
            entry.batches.append(
                BatchMetadata(first_sequence, sequence, offset - delta, offset, timestamp)
            )
        if first >= 0:
            self.ongoing[first] = producer_id


def _check_epoch(entry: ProducerEntry, epoch: int) -> None:
    if epoch < entry.epoch:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"epoch {epoch} of producer {entry.producer_id} is older than the current "
            f"{entry.epoch}",
        )


def _check_sequence(entry: ProducerEntry, epoch: int, first_sequence: int) -> None:
    if epoch != entry.epoch:
        # A new epoch starts over; an entry without an epoch is as good as unknown.
        if first_sequence != 0 and entry.epoch != NO_EPOCH:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {entry.producer_id} begins epoch {epoch} with sequence "
                f"{first_sequence} instead of 0",
            )
        return
    last = entry.last_sequence
    expected = 0 if last == SEQUENCE_MAX else last + 1
    if first_sequence != expected:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {entry.producer_id}: sequence {first_sequence} is not the expected "
            f"{expected}",
        )
