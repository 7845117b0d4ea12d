"""Changes of state on their way from a core to the recorder."""

from __future__ import annotations

from typing import Any

from .surroundings import StateSink, Surroundings


class StateChanges:
    """Takes the changes of one actor; each joins the event that is being handled."""

    __slots__ = ("_prefix", "_recorder", "_runtime")

    def __init__(self, runtime: Surroundings, recorder: StateSink, actor: str) -> None:
        self._runtime = runtime
        self._recorder = recorder
        self._prefix = f"{actor}/"

    def changed(self, path: str, old: Any, new: Any) -> None:
        runtime = self._runtime
        self._recorder.state(runtime.cause, self._prefix + path, old, new, runtime.now_us())
