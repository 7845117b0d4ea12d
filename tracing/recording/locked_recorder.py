"""The recorder for runtimes with several threads."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..format import CHUNK_EVENTS
from ..trace import MemoryTrace
from .recorder import Recorder
from .writer import TraceWriter

if TYPE_CHECKING:
    from ...actors.interfaces import AbstractRuntime, EventSink
    from ...protocol.host import LogListener, LogOffsets, StateListener


class LockedRecorder(Recorder):
    """A recorder that several threads may call; the order of calls is the order of events."""

    waiting_max = CHUNK_EVENTS  # so that no thread waits long while chunks are made

    def __init__(self, writer: TraceWriter | None = None, keep: int | None = None) -> None:
        self._lock = threading.RLock()
        super().__init__(writer, keep)
        self.intake: EventSink | None = None  # so that every event goes through ``event``

    def event(self, *args: Any, **kwargs: Any) -> int:
        with self._lock:
            return super().event(*args, **kwargs)

    def state_listener(self, runtime: AbstractRuntime, actor: str) -> StateListener:
        with self._lock:
            listener = super().state_listener(runtime, actor)

        def changed(path: str, old: Any, new: Any) -> None:
            with self._lock:
                listener(path, old, new)

        return changed

    def log_listener(
        self, runtime: AbstractRuntime, actor: str, paths: tuple[str, str, str]
    ) -> LogListener:
        with self._lock:
            listener = super().log_listener(runtime, actor, paths)

        def moved(log: LogOffsets) -> None:
            with self._lock:
                listener(log)

        return moved

    def state(
        self, seq: int | None, path: str, old: Any, new: Any, time_us: int | None = None
    ) -> None:
        with self._lock:
            super().state(seq, path, old, new, time_us)

    def trace(self, header: Mapping[str, Any] | None = None) -> MemoryTrace:
        with self._lock:
            return super().trace(header)

    def fingerprint(self) -> str:
        with self._lock:
            return super().fingerprint()

    def outline(self) -> str:
        with self._lock:
            return super().outline()

    def raw_since(self, first: int) -> list[Any]:
        with self._lock:
            return super().raw_since(first)

    def close(self) -> None:
        with self._lock:
            super().close()
