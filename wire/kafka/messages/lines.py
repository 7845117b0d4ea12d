"""Python source that is generated line by line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class Lines:
    """The lines of a function's body."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._indent = " "
        self._names = 0

    def line(self, text: str) -> None:
        """Add a line with the current indentation."""
        self.lines.append(self._indent + text)

    @contextlib.contextmanager
    def indented(self) -> Iterator[None]:
        """Indent the lines that are added in this context."""
        before = self._indent
        self._indent += " "
        yield
        self._indent = before

    def new(self, name: str) -> str:
        """Return a name that is not used yet."""
        self._names += 1
        return f"{name}_{self._names}"
