"""Notes by which programs report something: events of the trace that a test can wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..actors.runtime.virtual import VirtualRuntime


class Note(NamedTuple):
    """A report by a program or a test."""

    text: str
    """Text of the note."""
    values: dict[str, Any]
    """Values reported with the text, by name."""
    program: str
    """Name of the program whose code reported the note, or ``scenario``."""
    time_ms: float
    """Virtual milliseconds since the run began."""
    event: int | None
    """Number of its event in the trace; None in a run without recording."""

    def has(self, text: str | None, values: dict[str, Any]) -> bool:
        """Return whether the note has this text and at least these values."""
        return (text is None or self.text == text) and all(
            name in self.values and self.values[name] == value for name, value in values.items()
        )

    def __str__(self) -> str:
        values = "".join(f" {name}={value!r}" for name, value in self.values.items())
        return f"{self.text}{values}"


class Notes:
    """Notes in the order in which they were made."""

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

    def matching(self, text: str | None, values: dict[str, Any]) -> list[Note]:
        """Return the notes with a text and at least these values."""
        return [note for note in self._all if note.has(text, values)]
