"""One segment of a log: batches in offset order with a sparse time index.

A batch is stored as its bytes, which all replicas share, in a list: a million small batches must
not take much more memory than their bytes. Views of batches are created on reading, except that
of the last batch, which most readers want. The list is also the offset index: batches are found
by bisection over their last offsets. Timestamps need not ascend, so an entry of the time index
holds a new largest timestamp and the number of batches it covers. Files get an entry at most once
per ``index.interval.bytes``; in memory, ``_BATCHES_PER_TIME`` is a further limit.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...protocol.records.batch import RecordBatch
from ...protocol.records.format import NO_TIMESTAMP, OFFSETS

RELATIVE_OFFSET_MAX = 2147483647
_BATCHES_PER_TIME = 16
"""Minimum number of batches between entries of the time index. A sparse one saves memory."""
_BATCHES_NEAR_TAIL = 8
"""Number of batches at the end of a segment among which an offset is searched first."""


class AbortedEntry(NamedTuple):
    """An entry of the transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the abort marker."""
    last_stable_offset: int
    """Last stable offset after this transaction; a search up to this offset or less ends here."""


class Segment:
    """Batches from ``base_offset`` on, up to the base of the next segment."""

    __slots__ = (
        "_noted_timestamp",
        "_time_batches",
        "_time_index",
        "aborted",
        "base_offset",
        "created_ms",
        "first_timestamp",
        "index_entries",
        "indexed_bytes",
        "last_batch",
        "last_modified_ms",
        "max_timestamp",
        "max_timestamp_batch",
        "size",
        "stored",
        "time_index_grew",
    )

    def __init__(self, base_offset: int, created_ms: int = 0) -> None:
        self.base_offset: int = base_offset
        self.stored: list[bytes] | tuple[bytes, ...] = ()
        """Batches as bytes; a list from the first append on, so that empty logs have no list."""
        self.last_batch: RecordBatch | None = None
        """View of the last batch; None if the segment is empty."""
        self.size: int = 0
        """Size of all batches in bytes."""
        self.created_ms: int = created_ms
        self.last_modified_ms: int = created_ms
        self.first_timestamp: int = NO_TIMESTAMP
        """Largest timestamp of the first batch, from which time-based rolling counts."""
        self.max_timestamp: int = NO_TIMESTAMP
        self.max_timestamp_batch: int = 0
        """Position of the first batch with ``max_timestamp``."""
        self.index_entries: int = 0
        """Number of entries that an offset index in a file has."""
        self.indexed_bytes: int = 0
        """``size`` at the last index entry."""
        self.time_index_grew: bool = False
        """Whether the last index entry came with a new largest timestamp."""
        self._noted_timestamp = NO_TIMESTAMP
        """The largest timestamp as of the last index entry."""
        self._time_index: array[int] | None = None
        self._time_batches: array[int] | None = None
        self.aborted: list[AbortedEntry] | None = None

    def append(
        self, batch: RecordBatch, max_timestamp: int, now_ms: int, index_interval_bytes: int
    ) -> bool:
        """Append a batch; return True if an index entry is due for it."""
        stored = self.stored
        data = batch.data
        size = self.size
        indexed = False
        self.last_batch = batch
        if not stored:
            self.stored = [data]
            self.first_timestamp = max_timestamp
            self.max_timestamp = max_timestamp
            self.max_timestamp_batch = 0
        else:
            if max_timestamp > self.max_timestamp:
                self.max_timestamp = max_timestamp
                self.max_timestamp_batch = len(stored)
            stored.append(data)  # type: ignore[union-attr]
            if size - self.indexed_bytes > index_interval_bytes:
                self.indexed_bytes = size
                self.index_entries += 1
                self._note_time()
                indexed = True
        self.size = size + len(data)
        self.last_modified_ms = now_ms
        return indexed

    def discard(self) -> None:
        """Drop the batches; the segment must not be read afterwards."""
        self.stored = ()
        self.last_batch = None

    def _note_time(self) -> None:
        timestamp = self.max_timestamp
        count = len(self.stored)
        self.time_index_grew = timestamp > self._noted_timestamp or self._time_index is None
        self._noted_timestamp = timestamp
        times, counts = self._time_index, self._time_batches
        if times is None or counts is None:
            self._time_index = array("q", (timestamp,))
            self._time_batches = array("I", (count,))
        elif timestamp == times[-1]:
            counts[-1] = count  # no later timestamp: extend the entry to the batches since
        elif count - counts[-1] >= _BATCHES_PER_TIME:
            times.append(timestamp)
            counts.append(count)

    def find(self, offset: int) -> int:
        """Return the position of the first batch whose last offset is at or after ``offset``."""
        stored = self.stored
        last = self.last_batch
        if last is not None and last.base_offset <= offset:  # readers mostly read the tail
            return len(stored) - 1 if offset <= last.last_offset else len(stored)
        # Followers and the high watermark are close to the tail.
        near = len(stored) - _BATCHES_NEAR_TAIL
        low = near if near > 0 and _last_offset(stored[near - 1]) < offset else 0
        return bisect_left(stored, offset, low, key=_last_offset)

    def views(self, start: int, end: int) -> list[RecordBatch]:
        """Return views of the batches from position ``start`` up to, but excluding, ``end``."""
        stored = self.stored
        if start + 1 == end == len(stored) and self.last_batch is not None:
            return [self.last_batch]
        return [RecordBatch.from_bytes(data) for data in stored[start:end]]

    def walk(self, start: int = 0) -> Iterator[RecordBatch]:
        """Iterate over views of the batches from a position on, created one at a time."""
        for data in self.stored[start:] if start else self.stored:
            yield RecordBatch.from_bytes(data)

    @property
    def batches(self) -> list[RecordBatch]:
        """Views of all batches, created on each access."""
        return list(self.walk())

    def first_batch_with_time(self, timestamp: int) -> int:
        """Return a position before which no batch has a record at or after ``timestamp``."""
        if self._time_index is None:
            return 0
        entry = bisect_left(self._time_index, timestamp)
        return self._time_batches[entry - 1] if entry else 0  # type: ignore[index]

    @property
    def largest_timestamp(self) -> int:
        """Timestamp used by retention: the largest of the records, or else the last write's."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.last_modified_ms

    @property
    def next_offset(self) -> int:
        """Offset after the last one in this segment."""
        return self.base_offset if self.last_batch is None else self.last_batch.last_offset + 1

    def replace_batches(
        self, batches: Sequence[RecordBatch], now_ms: int, index_interval_bytes: int
    ) -> None:
        """Replace the content with ``batches`` and rebuild the indexes, except ``aborted``."""
        created_ms, modified_ms, aborted = self.created_ms, self.last_modified_ms, self.aborted
        self.__init__(self.base_offset, created_ms)  # type: ignore[misc]
        self.aborted = aborted
        for batch in batches:
            self.append(batch, batch.max_timestamp, now_ms, index_interval_bytes)
        self.last_modified_ms = modified_ms

    def truncate_to(self, offset: int, index_interval_bytes: int) -> int:
        """Remove the batches that reach ``offset``; return the number of bytes removed."""
        before = self.size
        keep = bisect_left(self.stored, offset, key=_last_offset)
        if self.aborted is not None:
            self.aborted = [e for e in self.aborted if e.last_offset < offset] or None
        if keep < len(self.stored):
            kept = self.views(0, keep)
            self.replace_batches(kept, self.last_modified_ms, index_interval_bytes)
        return before - self.size

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}, {len(self.stored)} batches, {self.size} bytes)"


def _last_offset(data: bytes) -> int:
    base_offset, last_delta = OFFSETS.unpack_from(data)
    return base_offset + last_delta  # type: ignore[no-any-return]
