"""The leader-epoch history of a log: the start offset of each epoch
(docs/kafka/offsets-and-epochs.md#the-epoch-cache).

Kafka's ``LeaderEpochFileCache`` with the look-up and assignment rules of 0.11 to 1.1 (KIP-101) and
of 2.0 and later (KIP-279). The entries are in two parallel lists owned by the storage; changing
them stands for writing ``leader-epoch-checkpoint``, which is synced at each change.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from ...protocol.data import EpochEndOffset

UNDEFINED = EpochEndOffset(-1, -1)


class LeaderEpochCache:
    """Epochs and start offsets; both strictly increase."""

    __slots__ = ("_changed", "_kip_279", "epochs", "start_offsets")

    def __init__(
        self,
        epochs: list[int],
        start_offsets: list[int],
        kip_279: bool = True,
        changed: Callable[[LeaderEpochCache], object] | None = None,
    ) -> None:
        self.epochs: list[int] = epochs
        self.start_offsets: list[int] = start_offsets
        self._kip_279 = kip_279
        self._changed = changed
        """Called after each change, to write the checkpoint."""

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self.epochs, self.start_offsets, strict=True))

    @property
    def latest_epoch(self) -> int:
        """Last epoch; -1 if the history is empty."""
        return self.epochs[-1] if self.epochs else -1

    @property
    def earliest_epoch(self) -> int:
        return self.epochs[0] if self.epochs else -1

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that ``epoch`` begins at ``start_offset``; return False if nothing changes.

        An epoch or offset below the last one removes the entries it contradicts, as the log was
        rewritten; until 1.1 it was ignored instead. Raises ``ValueError`` for negative values.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} and start offset {start_offset} may not be negative")
        epochs, starts = self.epochs, self.start_offsets
        if epochs:
            if epoch == epochs[-1] and start_offset >= starts[-1]:
                return False
            if not self._kip_279 and (epoch <= epochs[-1] or start_offset < starts[-1]):
                return False
            while epochs and (epochs[-1] >= epoch or starts[-1] >= start_offset):
                epochs.pop()
                starts.pop()
        epochs.append(epoch)
        starts.append(start_offset)
        self._notify()
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """Return the greatest epoch at or below ``epoch`` and its end; (-1, -1) if undefined.

        Until 1.1 the result contains the requested epoch instead, and is undefined for an epoch
        older than the history, as it always is for a later one.
        """
        epochs = self.epochs
        if epoch == -1 or not epochs:
            return UNDEFINED
        latest = epochs[-1]
        if epoch == latest:
            return EpochEndOffset(epoch, log_end_offset)
        if epoch > latest:
            return UNDEFINED
        after = bisect_right(epochs, epoch)
        if not self._kip_279:
            if epoch < epochs[0]:
                return UNDEFINED
            return EpochEndOffset(epoch, self.start_offsets[after])
        if after == 0:
            return EpochEndOffset(epoch, self.start_offsets[0])
        return EpochEndOffset(epochs[after - 1], self.start_offsets[after])

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that begin at or after ``end_offset``."""
        starts = self.start_offsets
        if end_offset < 0 or not starts or starts[-1] < end_offset:
            return
        keep = bisect_left(starts, end_offset)
        del starts[keep:]
        del self.epochs[keep:]
        self._notify()

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove the epochs before ``start_offset``; the epoch that covers it then begins there."""
        starts = self.start_offsets
        covering = bisect_right(starts, start_offset) - 1
        if start_offset < 0 or covering < 0:
            return
        if covering == 0 and starts[0] == start_offset:
            return
        starts[covering] = start_offset
        del starts[:covering]
        del self.epochs[:covering]
        self._notify()

    def clear(self) -> None:
        if self.epochs:
            self.epochs.clear()
            self.start_offsets.clear()
            self._notify()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed(self)
