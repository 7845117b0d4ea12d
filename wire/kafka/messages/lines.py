"""Source of Python as it grows, line by line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class Lines:
    """The body of a function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._indent = " "
        self._names = 0

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(self._indent + text)

    @contextlib.contextmanager
    def deeper(self) -> Iterator[None]:
        """Put what is added within below the line before."""
        before = self._indent
        self._indent += " "
        yield
        self._indent = before

    def new(self, name: str) -> str:
        """A name that stands nowhere else."""
        self._names += 1
        return f"{name}_{self._names}"
