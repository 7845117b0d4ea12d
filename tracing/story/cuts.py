"""Finds the records that replicas lose at the ends of their logs, and whether these were
acknowledged.

A replica holds an acknowledged record if it took part in the leader epoch in which the leader
acknowledged it, and its log reached the record's offset. At the same offset a replica of another
epoch has another record. A truncation in an epoch concerns records of earlier epochs.
"""

from __future__ import annotations

from typing import Any


class Cuts:
    """Tracks the ends of all replicas' logs, and the offsets that were acknowledged."""

    __slots__ = ("_acknowledged", "_ends", "_epochs")

    def __init__(self) -> None:
        self._epochs: dict[tuple[str, str], list[int]] = {}  # (broker, partition), oldest first
        self._ends: dict[tuple[str, str], int] = {}
        """(broker, partition) to the end of the log when the broker went off, while it is off."""
        self._acknowledged: dict[str, dict[int, list[int]]] = {}
        """Partition to leader epoch to offsets of the first records of acknowledged batches."""

    def take_part(self, broker: str, partition: str, old: int | None, new: int | None) -> None:
        """Note that a replica is leader or follower in a new leader epoch."""
        epochs = self._epochs.setdefault((broker, partition), [])
        if old is None and new is not None and new in epochs[-1:]:
            epochs.append(new)  # its records from before it was off are of the same epoch
        for epoch in (old, new):
            if epoch is not None and epoch not in epochs[-2:]:
                epochs.append(epoch)

    def acknowledge(self, broker: str, partition: str, base_offset: int) -> None:
        """Note that a leader acknowledged a batch to a client; -1 is an unknown offset."""
        epochs = self._epochs.get((broker, partition))
        if base_offset >= 0:
            epoch = epochs[-1] if epochs else -1
            offsets = self._acknowledged.setdefault(partition, {}).setdefault(epoch, [])
            offsets.append(base_offset)

    def end_offset(self, broker: str, partition: str, old: Any, new: Any) -> str | None:
        """Note a new end of a replica's log; return a text for the story if records were lost."""
        key = broker, partition
        if new is None:
            self._ends[key] = old
            return None
        if old is None:
            old = self._ends.pop(key, None)
            if old is None or new >= old:
                return None
            epochs = self._epochs.get(key, [])
            text = f"{broker} comes back with {partition} up to {new}, it was at {old}"
        else:
            if new >= old:
                return None
            epochs = self._epochs.get(key, [])[:-1]
            text = f"{broker} cuts its log of {partition} from {old} to {new}"
        found = sorted(
            {
                offset
                for epoch in (*epochs, -1)
                for offset in self._acknowledged.get(partition, {}).get(epoch, ())
                if new <= offset < old
            }
        )
        if not found:
            return f"{text}; nothing of that was acknowledged"
        batches = "1 acknowledged batch was" if len(found) == 1 else (
            f"{len(found)} acknowledged batches were")  # fmt: skip
        return f"{text}; {batches} in it, the first at offset {found[0]}"

    def delete(self, broker: str, partition: str) -> None:
        """Forget a replica that its broker has deleted; if it comes back, it begins empty."""
        for table in (self._epochs, self._ends):
            table.pop((broker, partition), None)

    def forget(self, partition: str) -> None:
        """Forget a partition whose topic was deleted."""
        self._acknowledged.pop(partition, None)
        for table in (self._epochs, self._ends):
            for key in [key for key in table if key[1] == partition]:
                del table[key]
