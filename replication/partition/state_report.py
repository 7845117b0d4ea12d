"""What a partition tells whoever records the run; a partition has none while nobody does."""

from __future__ import annotations

from typing import Any

from ...protocol.host import StateListener
from ...protocol.values import TopicPartition
from ..log.log import Log

_NAMES = (
    "role", "leader", "leader_epoch", "isr", "proposed_isr", "log_end_offset", "high_watermark",
    "log_start_offset",
)  # fmt: skip
_FETCHER_NAMES = ("fetches_from", "fetch_stage", "fetch_offset")
_OFFSETS = 5
"""Place of the first of the three offsets."""
_UNREPORTED = (None, None, None, (), None)
_NO_OFFSETS = (None, None, None)


class StateReport:
    """Knows what was told last, by ``_NAMES``, and tells what is different now."""

    __slots__ = (
        "_fetcher",
        "_fetcher_paths",
        "_offset_paths",
        "_offsets",
        "_paths",
        "_tell",
        "_told",
    )

    def __init__(self, tell: StateListener, topic_partition: TopicPartition) -> None:
        self._tell = tell
        self._paths = tuple(f"{topic_partition}/{name}" for name in _NAMES)
        self._offset_paths = self._paths[_OFFSETS:]
        self._told: list[Any] = [*_UNREPORTED, *_NO_OFFSETS]
        self._offsets: tuple[int | None, ...] = _NO_OFFSETS
        """The last three of what was told; those in ``_told`` may be older."""
        self._fetcher_paths = tuple(f"{topic_partition}/{name}" for name in _FETCHER_NAMES)
        self._fetcher: tuple[int | None, str | None, int | None] = (None, None, None)

    def changed(self, now: list[Any]) -> None:
        """Tell all that is different in a list of values by ``_NAMES``."""
        before, self._told = [*self._told[:_OFFSETS], *self._offsets], now
        self._offsets = tuple(now[_OFFSETS:])
        for path, old, new in zip(self._paths, before, now, strict=True):
            if old != new:
                self._tell(path, old, new)

    def fetching(self, leader_id: int | None, stage: str | None, offset: int | None) -> None:
        """A fetcher has come to another stage with it; None for all when it does not copy it."""
        told = self._fetcher
        now = self._fetcher = (leader_id, stage, offset)
        for path, old, new in zip(self._fetcher_paths, told, now, strict=True):
            if old != new:
                self._tell(path, old, new)

    def log_moved(self, log: Log) -> None:
        """The same, where nothing but the offsets of the log can be different."""
        now = (log.log_end_offset, log.high_watermark, log.log_start_offset)
        told = self._offsets
        if now != told:
            self._offsets = now
            self._tell(self._offset_paths, told, now)
