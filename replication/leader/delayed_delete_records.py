"""DeleteRecords requests that wait for the replicas (docs/kafka/purgatory.md#purgatory)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ...protocol.data import DeleteRecordsResponse
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition
from ..waiting.purgatory import DelayedOperation

_NONE = ErrorCode.NONE


class LowWatermarks(Protocol):
    """Source of the low watermarks of the partitions led here."""

    def low_watermark_of(self, topic_partition: TopicPartition) -> tuple[ErrorCode, int]: ...
    def keepers(self, topic_partition: TopicPartition, offset: int) -> list[str]: ...


class DelayedDeleteRecords(DelayedOperation):
    """Waits until the live replicas of each partition raised their log start."""

    __slots__ = ("_handler", "_pending", "_respond", "_results")

    def __init__(
        self,
        handler: LowWatermarks,
        timeout_ms: int,
        results: list[tuple[TopicPartition, ErrorCode, int]],
        pending: dict[int, int],
        respond: Callable[[DeleteRecordsResponse], object],
    ) -> None:
        super().__init__(timeout_ms)
        self._handler = handler
        self._results = results
        self._pending = pending
        """Index into the results -> requested log start of partitions not deleted yet."""
        self._respond = respond

    def try_complete(self) -> bool:
        for index, wanted_offset in tuple(self._pending.items()):
            topic_partition = self._results[index][0]
            error, low_watermark = self._handler.low_watermark_of(topic_partition)
            if error is not _NONE:
                self._results[index] = (topic_partition, error, -1)
            elif low_watermark >= wanted_offset:
                self._results[index] = (topic_partition, _NONE, low_watermark)
            else:
                continue
            del self._pending[index]
        return not self._pending and self.force_complete()

    def waited_for(self) -> list[str]:
        names: dict[str, None] = {}
        for index, offset in self._pending.items():
            names.update(dict.fromkeys(self._handler.keepers(self._results[index][0], offset)))
        return list(names)

    def on_complete(self) -> None:
        for index in self._pending:
            topic_partition = self._results[index][0]
            self._results[index] = (topic_partition, ErrorCode.REQUEST_TIMED_OUT, -1)
        self._pending = {}
        self._respond(DeleteRecordsResponse(tuple(self._results)))
