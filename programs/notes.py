"""Reports of programs about themselves: rows of the trace that a test can wait and ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..actors.runtime.virtual import VirtualRuntime


class Note(NamedTuple):
    """A report."""

    text: str
    """What was reported."""
    values: dict[str, Any]
    """The values reported with it, by name."""
    program: str
    """Whose code reported it: the name of a program, or ``scenario``."""
    time_ms: float
    """Virtual milliseconds since the run began."""
    event: int | None
    """Number of its row in the trace, None in a run that is not recorded."""

    def has(self, text: str | None, values: dict[str, Any]) -> bool:
        """Return whether it is of this text and has these values, and maybe others."""
        return (text is None or self.text == text) and all(
            name in self.values and self.values[name] == value for name, value in values.items()
        )

    def __str__(self) -> str:
        told = "".join(f" {name}={value!r}" for name, value in self.values.items())
        return f"{self.text}{told}"


class Notes:
    """Reports in the order in which they came."""

    def __init__(self, runtime: VirtualRuntime) -> None:
        self._runtime = runtime
        self._all: list[Note] = []

    def add(self, program: str, text: str, values: dict[str, Any]) -> Note:
        runtime = self._runtime
        note = Note(text, values, program, runtime.now / 1000, None)
        if runtime.recorder is not None:
            cause = runtime.begin_step()
            event = runtime.recorder.event(
                runtime.now, "note", program, None, None, None, cause, str(note)
            )
            note = note._replace(event=event)
        self._all.append(note)
        return note

    def having(self, text: str | None, values: dict[str, Any]) -> list[Note]:
        """Return those of a text that have these values."""
        return [note for note in self._all if note.has(text, values)]
