"""Input and output shared by the explorations of clusters and of tests."""

from __future__ import annotations

import functools
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console

from ...protocol.errors import UsageError
from ..exits import DOES_NOT_HOLD, INTERRUPTED, TERMINATED

if TYPE_CHECKING:
    from ...exploration.explorer import Exploration
    from ...exploration.step import Step

console: Console = Console(highlight=False)


def print_line(line: str) -> None:
    """Print a line without markup or wrapping."""
    console.print(line, markup=False, soft_wrap=True)


def seconds(text: str) -> float:
    """Parse a budget such as 90s into seconds; raise ``UsageError`` if it is malformed."""
    matched = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)", text)
    if matched is None:
        raise UsageError(f"--budget takes 90s, 10m or 2h, not {text!r}")
    return float(matched[1]) * {"s": 1, "m": 60, "h": 3600}[matched[2]]


def steps_of(text: str | None) -> tuple[Step[Any], ...] | None:
    """Parse the steps in an option, which are separated by semicolons."""
    from ...exploration.step import parse_step

    if text is None:
        return None
    return tuple(parse_step(line) for line in text.split(";") if line.strip())


def be_silent() -> None:
    """Suppress warnings of the emulation, as faults cause many."""
    logging.getLogger("fakekafka").addHandler(logging.NullHandler())


def check_extent(runs: int, out: Path | None, resume: bool) -> None:
    """Raise ``UsageError`` for options that make no sense, before any work begins."""
    if runs < 1:
        raise UsageError(f"--runs must be at least 1, not {runs}")
    if resume and out is None:
        raise UsageError("--resume goes on with an exploration in a directory: name it with --out")


def carry_out(
    exploration: Exploration,
    engine: str,
    jobs: int | None,
    out: Path | None,
    budget_s: float | None,
) -> BaseException | None:
    """Run an exploration and show its progress; return the exception that ended it early."""
    from ...exploration.explorer import explore
    from ...spark_bench.engines.engine import open_engine
    from ..bench_progress import BatchProgress

    chosen = "process" if engine == "auto" else engine
    with BatchProgress(console, "explore", quiet=False) as progress:
        open_it = functools.partial(open_engine, chosen, jobs, notice=progress.tell)
        return explore(exploration, open_it, budget_s=budget_s, out=out, progress=progress.update)


def leave(exploration: Exploration, ended: BaseException | None, holds: bool) -> NoReturn:
    """Exit with the status that reports the result of the exploration."""
    if ended is None:
        raise typer.Exit(0 if holds else DOES_NOT_HOLD)
    done, runs = len(exploration.done), exploration.settings.runs
    typer.echo(f"ended after {done} of {runs} runs", err=True)
    raise typer.Exit(INTERRUPTED if isinstance(ended, KeyboardInterrupt) else TERMINATED)
