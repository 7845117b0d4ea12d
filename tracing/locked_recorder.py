"""The recorder of runtimes with several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from .recorder import RECORD_BYTES_LIMIT, Recorder
from .trace import MemoryTrace
from .writer import TraceWriter


class LockedRecorder(Recorder):
    """A recorder that several threads may call: the order of calls is the order of events."""

    def __init__(
        self,
        writer: TraceWriter | None = None,
        keep: int | None = None,
        record_bytes_limit: int = RECORD_BYTES_LIMIT,
    ) -> None:
        self._lock = threading.RLock()
        super().__init__(writer, keep, record_bytes_limit)

    def _event_function(self) -> Callable[..., int]:
        record = super()._event_function()

        def event(*args: Any, **kwargs: Any) -> int:
            with self._lock:
                return record(*args, **kwargs)

        return event

    def state(
        self, seq: int | None, path: str, old: Any, new: Any, time_us: int | None = None
    ) -> None:
        with self._lock:
            super().state(seq, path, old, new, time_us)

    def answers(self, answer_id: int, request_id: int) -> None:
        with self._lock:
            super().answers(answer_id, request_id)

    def trace(self, header: Mapping[str, Any] | None = None) -> MemoryTrace:
        with self._lock:
            return super().trace(header)

    def fingerprint(self) -> str:
        with self._lock:
            return super().fingerprint()

    def close(self) -> None:
        with self._lock:
            super().close()
