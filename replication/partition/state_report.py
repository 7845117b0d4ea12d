"""Reports of a partition's state to the recorder of a run; none without a recorder."""

from __future__ import annotations

from typing import Any, Self

from ...protocol.host import LogListener, ReplicaHost, StateListener
from ...protocol.values import TopicPartition
from ..log.log import Log

_NAMES = ("role", "leader", "leader_epoch", "isr", "proposed_isr")
_OFFSET_NAMES = ("log_end_offset", "high_watermark", "log_start_offset")
_FETCHER_NAMES = ("fetches_from", "fetch_stage", "fetch_offset")


class StateReport:
    """Remembers the last reported values and reports those that change. Offsets change all the
    time, so all three are reported: this is less work than comparing them, and the recorder knows
    their previous values."""

    __slots__ = (
        "_fetcher",
        "_fetcher_paths",
        "_last_values",
        "_offset_paths",
        "_paths",
        "_report_change",
        "log_moved",
    )  # fmt: skip

    def __init__(
        self,
        report_change: StateListener,
        log_moved: LogListener,
        topic_partition: TopicPartition,
        offset_paths: tuple[str, str, str],
    ) -> None:
        self._report_change = report_change
        self.log_moved: LogListener = log_moved
        """Called with the log when nothing but its offsets can have changed."""
        self._paths = tuple(f"{topic_partition}/{name}" for name in _NAMES)
        self._last_values: list[Any] = [None, None, None, (), None]
        self._offset_paths = offset_paths
        self._fetcher_paths = tuple(f"{topic_partition}/{name}" for name in _FETCHER_NAMES)
        self._fetcher: tuple[int | None, str | None, int | None] = (None, None, None)

    @classmethod
    def if_recorded(cls, host: ReplicaHost, topic_partition: TopicPartition) -> Self | None:
        """Return the report of a partition; None if the run is not recorded."""
        report_change = host.state_listener
        if report_change is None:
            return None
        offset_paths = _offset_paths(topic_partition)
        log_moved = host.log_listener(offset_paths)
        return (
            None
            if log_moved is None
            else cls(report_change, log_moved, topic_partition, offset_paths)
        )

    def report_absence(self) -> None:
        """Report all values as None, as the broker has no replica any more, or none yet."""
        self.report_values([None] * len(_NAMES), None)

    def report_values(self, values: list[Any], log: Log | None) -> None:
        """Report the changed values, given in the order of ``_NAMES``, and the offsets."""
        before, self._last_values = self._last_values, values
        for path, old, new in zip(self._paths, before, values, strict=True):
            if old != new:
                self._report_change(path, old, new)
        if log is not None:
            self.log_moved(log)
        else:
            for path in self._offset_paths:
                self._report_change(path, None, None)

    def report_fetcher(self, leader_id: int | None, stage: str | None, offset: int | None) -> None:
        """Report the stage of a fetcher that copies the partition; all None if none does."""
        before = self._fetcher
        now = self._fetcher = (leader_id, stage, offset)
        for path, old, new in zip(self._fetcher_paths, before, now, strict=True):
            if old != new:
                self._report_change(path, old, new)


def _offset_paths(topic_partition: TopicPartition) -> tuple[str, str, str]:
    first, second, third = (f"{topic_partition}/{name}" for name in _OFFSET_NAMES)
    return first, second, third
