"""``ClusterRecording``: the recording of a ``Cluster``, in a file or in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...protocol.errors import UsageError
from .. import arguments

if TYPE_CHECKING:
    from ...actors.runtime.runtime import Runtime
    from ...tracing.reading.reader import Trace
    from ...tracing.recording.recorder import Recorder


class ClusterRecording:
    """A recording of every event in a file, of the latest events in memory, or of nothing."""

    def __init__(self, trace: Any) -> None:
        self._path: Path | None = None
        self._keep: int | None = None
        if isinstance(trace, int):
            self._keep = arguments.integer("trace", trace, 1)
        else:
            self._path = arguments.file_path("trace", trace)
        self._recorder: Recorder | None = None
        self._header: dict[str, Any] = {}

    def start(self, runtime: Runtime, mode: str, kafka_version: str, config: Any) -> None:
        """Start recording, unless nothing is to be recorded."""
        if self._path is None and self._keep is None:
            return
        from ...tracing.header import build_header
        from ...tracing.recording.locked_recorder import LockedRecorder
        from ...tracing.recording.writer import TraceWriter

        self._header = build_header(mode=mode, kafka_version=kafka_version, config=config)
        writer = None if self._path is None else TraceWriter(self._path, self._header)
        self._recorder = LockedRecorder(writer, self._keep)
        runtime.record(self._recorder)
        runtime.note("start", "scenario", f"Kafka {kafka_version}")

    def close(self) -> None:
        """Finish the file; events kept in memory stay."""
        if self._recorder is not None:
            self._recorder.close()

    def _kept(self) -> Recorder:
        if self._keep is None or self._recorder is None:
            raise UsageError(
                "this cluster keeps no events in memory; start it with Cluster(trace=20_000)"
            )
        return self._recorder

    def trace(self) -> Trace:
        from ...tracing.reading.reader import Trace

        return Trace(self._kept().trace(self._header))

    def save(self, path: str | Path) -> None:
        self._kept().save(path, self._header)
