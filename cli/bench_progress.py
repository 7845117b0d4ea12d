"""The progress of many runs: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn


class HowFar(Protocol):
    """The progress of a batch; ``str`` gives it as text."""

    @property
    def done(self) -> int: ...

    @property
    def total(self) -> int: ...

    @property
    def work(self) -> float:
        """Fraction of the work that is done, from 0 to 1."""
        ...


class BatchProgress:
    """Shows a bar on a terminal; elsewhere prints a line after every tenth of the work."""

    def __init__(self, console: Console, title: str, *, quiet: bool) -> None:
        self._console = console
        self._title = title
        self._quiet = quiet
        self._last = 0
        self._bar: Progress | None = None
        self._task: Any = None

    def __enter__(self) -> BatchProgress:
        if not self._quiet and self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[told]}"),
                console=self._console,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=1.0, told="starts")
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, text: str) -> None:
        """Show what the batch waits for before its first run."""
        if self._bar is not None:
            self._bar.update(self._task, told=text)
        elif not self._quiet:
            sys.stderr.write(f"{self._title}: {text}\n")

    def update(self, report: HowFar) -> None:
        """Show the progress of the batch."""
        if self._bar is not None:
            self._bar.update(self._task, completed=report.work, told=str(report))
        elif not self._quiet:
            tenth = 10 if report.done == report.total else min(int(report.work * 10), 9)
            if tenth > self._last:
                self._last = tenth
                sys.stderr.write(f"{self._title}: {report}\n")
