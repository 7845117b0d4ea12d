"""One segment of a log: batches in offset order with a sparse time index.

The offset index of a segment in memory is the list of its batches itself: batches are found by
bisection over their last offsets. Times need not ascend, so the time index notes, at most once
per ``index.interval.bytes``, a new largest timestamp and how many batches it covers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from ..protocol.record_batch import NO_TIMESTAMP, RecordBatch

RELATIVE_OFFSET_MAX = 2147483647

_last_offset = attrgetter("last_offset")


class AbortedEntry(NamedTuple):
    """An entry of the transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the abort marker."""
    last_stable_offset: int
    """The last stable offset once this transaction was decided: ends the search."""


class Segment:
    """Batches from ``base_offset`` on, up to the base of the next segment."""

    __slots__ = (
        "_time_batches",
        "_time_index",
        "_unindexed_bytes",
        "aborted",
        "base_offset",
        "batches",
        "created_ms",
        "first_timestamp",
        "index_entries",
        "last_modified_ms",
        "max_timestamp",
        "max_timestamp_batch",
        "size",
        "time_index_grew",
    )

    def __init__(self, base_offset: int, created_ms: int = 0) -> None:
        self.base_offset = base_offset
        self.batches: list[RecordBatch] | tuple[RecordBatch, ...] = ()
        """A list once something was appended; an empty log keeps no list."""
        self.size = 0
        """Bytes of all batches."""
        self.created_ms = created_ms
        self.last_modified_ms = created_ms
        self.first_timestamp = NO_TIMESTAMP
        """Largest timestamp of the first batch: time-based rolling counts from it."""
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_batch = 0
        """Position of the first batch that holds ``max_timestamp``."""
        self.index_entries = 0
        """Entries an offset index would hold by now."""
        self._unindexed_bytes = 0
        self.time_index_grew = False
        """Whether the last index entry noted a new largest timestamp."""
        self._time_index: array[int] | None = None
        self._time_batches: array[int] | None = None
        self.aborted: list[AbortedEntry] | None = None

    def append(
        self, batch: RecordBatch, max_timestamp: int, now_ms: int, index_interval_bytes: int
    ) -> bool:
        """Add a batch behind the last; True if an index entry is due before it."""
        batches = self.batches
        size = len(batch.data)
        indexed = False
        if not batches:
            self.batches = [batch]
            self.first_timestamp = max_timestamp
            self.max_timestamp = max_timestamp
            self.max_timestamp_batch = 0
        else:
            if max_timestamp > self.max_timestamp:
                self.max_timestamp = max_timestamp
                self.max_timestamp_batch = len(batches)
            batches.append(batch)  # type: ignore[union-attr]
            if self._unindexed_bytes > index_interval_bytes:
                self._unindexed_bytes = 0
                self.index_entries += 1
                self._note_time()
                indexed = True
        self._unindexed_bytes += size
        self.size += size
        self.last_modified_ms = now_ms
        return indexed

    def _note_time(self) -> None:
        index = self._time_index
        self.time_index_grew = index is None or self.max_timestamp > index[-1]
        if index is None:
            self._time_index = array("q", (self.max_timestamp,))
            self._time_batches = array("q", (len(self.batches),))
        elif self.time_index_grew:
            index.append(self.max_timestamp)
            self._time_batches.append(len(self.batches))  # type: ignore[union-attr]
        else:
            # Still no later time: the entry covers the batches since.
            self._time_batches[-1] = len(self.batches)  # type: ignore[index]

    def find(self, offset: int) -> int:
        """Position of the first batch whose last offset is at or after ``offset``."""
        batches = self.batches
        if batches and batches[-1].base_offset <= offset:  # readers mostly read the tail
            return len(batches) - 1 if offset <= batches[-1].last_offset else len(batches)
        return bisect_left(batches, offset, key=_last_offset)

    def first_batch_with_time(self, timestamp: int) -> int:
        """A position before which no batch holds a record at or after ``timestamp``."""
        if self._time_index is None:
            return 0
        entry = bisect_left(self._time_index, timestamp)
        return self._time_batches[entry - 1] if entry else 0  # type: ignore[index]

    @property
    def largest_timestamp(self) -> int:
        """What retention goes by: the records' time, or else that of the last write."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.last_modified_ms

    @property
    def next_offset(self) -> int:
        """The offset after the last one stored here."""
        return self.batches[-1].last_offset + 1 if self.batches else self.base_offset

    def replace_batches(
        self, batches: Sequence[RecordBatch], now_ms: int, index_interval_bytes: int
    ) -> None:
        """Make ``batches`` the content and build the indexes anew; keeps the aborted list."""
        created_ms, modified_ms, aborted = self.created_ms, self.last_modified_ms, self.aborted
        self.__init__(self.base_offset, created_ms)  # type: ignore[misc]
        self.aborted = aborted
        for batch in batches:
            self.append(batch, batch.max_timestamp, now_ms, index_interval_bytes)
        self.last_modified_ms = modified_ms

    def truncate_to(self, offset: int, index_interval_bytes: int) -> int:
        """Drop the batches that reach ``offset`` or beyond; gives the bytes removed."""
        before = self.size
        keep = bisect_left(self.batches, offset, key=_last_offset)
        if self.aborted is not None:
            self.aborted = [e for e in self.aborted if e.last_offset < offset] or None
        if keep < len(self.batches):
            self.replace_batches(self.batches[:keep], self.last_modified_ms, index_interval_bytes)
        return before - self.size

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}, {len(self.batches)} batches, {self.size} bytes)"
