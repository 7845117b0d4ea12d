"""The records of one produced batch that a leader refuses, and why."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records.format import CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP
from .settings import LogSettings


class RecordErrors:
    """What is wrong with single records: their keys and their times."""

    __slots__ = ("_any_timestamp", "_found", "_now_ms", "_settings")

    def __init__(self, settings: LogSettings, now_ms: int) -> None:
        self._settings = settings
        self._now_ms = now_ms
        self._found: list[tuple[int, str]] = []
        self._any_timestamp = False

    def add(self, index: int, reason: str) -> None:
        """Refuse a record for what is no matter of its key or its time."""
        self._found.append((index, reason))

    def checker(self, timestamp_type: int) -> Callable[[int, int, bool], None]:
        """What looks at one record: its index, its time, and whether it has a key."""
        settings, now_ms = self._settings, self._now_ms
        difference_max_ms = settings.timestamp_difference_max_ms
        checks_times = settings.timestamp_type == CREATE_TIME
        least, most = now_ms - difference_max_ms, now_ms + difference_max_ms
        needs_key = settings.is_compacted
        found = self._found

        def check(index: int, timestamp: int, has_key: bool) -> None:
            if needs_key and not has_key:
                found.append((index, "a record without a key on a compacted topic"))
            elif checks_times and not least <= timestamp <= most and timestamp != NO_TIMESTAMP:
                self._any_timestamp = True
                found.append(
                    (
                        index,
                        f"timestamp {timestamp} is more than {difference_max_ms} ms "
                        f"away from {now_ms}",
                    )
                )
            elif timestamp_type == LOG_APPEND_TIME:
                self._any_timestamp = True
                found.append((index, "a producer may not set the append time"))

        return check

    def raise_if_any(self) -> None:
        """Raise ``KafkaError`` with every record that was refused."""
        found = self._found
        if not found:
            return
        code = ErrorCode.INVALID_TIMESTAMP if self._any_timestamp else ErrorCode.INVALID_RECORD
        reason = "timestamps are invalid" if self._any_timestamp else "records are invalid"
        raise KafkaError(
            code,
            f"{reason}; {len(found)} records were refused, the first: {found[0][1]}",
            tuple(found),
        )
