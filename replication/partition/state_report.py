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
_LOG_END, _HIGH_WATERMARK, _LOG_START = 5, 6, 7
_UNREPORTED = (None, None, None, (), None, None, None, None)


class StateReport:
    """Knows what was told last, by ``_NAMES``, and tells what is different now."""

    __slots__ = ("_fetcher", "_fetcher_paths", "_paths", "_tell", "_told")

    def __init__(self, tell: StateListener, topic_partition: TopicPartition) -> None:
        self._tell = tell
        self._paths = tuple(f"{topic_partition}/{name}" for name in _NAMES)
        self._told: list[Any] = list(_UNREPORTED)
        self._fetcher_paths = tuple(f"{topic_partition}/{name}" for name in _FETCHER_NAMES)
        self._fetcher: tuple[int | None, str | None, int | None] = (None, None, None)

    def changed(self, now: list[Any]) -> None:
        """Tell all that is different in a list of values by ``_NAMES``."""
        before, self._told = self._told, now
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
        told, paths = self._told, self._paths
        end = log.log_end_offset
        if end != told[_LOG_END]:
            self._tell(paths[_LOG_END], told[_LOG_END], end)
            told[_LOG_END] = end
        high_watermark = log.high_watermark
        if high_watermark != told[_HIGH_WATERMARK]:
            self._tell(paths[_HIGH_WATERMARK], told[_HIGH_WATERMARK], high_watermark)
            told[_HIGH_WATERMARK] = high_watermark
        start = log.log_start_offset
        if start != told[_LOG_START]:
            self._tell(paths[_LOG_START], told[_LOG_START], start)
            told[_LOG_START] = start
