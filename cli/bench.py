"""``fakekafka bench``: list and run batches of simulated clusters."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .exits import INTERRUPTED, TERMINATED, ended_by_sigterm

if TYPE_CHECKING:
    from ..spark_bench.results import BatchResult

app = typer.Typer(add_completion=False, no_args_is_help=True)
console = Console()


def _parse(settings: list[str]) -> dict[str, Any]:
    from ..protocol.errors import UsageError

    values: dict[str, Any] = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator:
            raise UsageError(f"--set takes name=value, not {setting!r}")
        # A version is text even where it looks like a number: 0.10 is not 0.1.
        kinds = (str,) if name == "kafka_version" else (int, float, str)
        for kind in kinds:
            try:
                values[name] = kind(text)
                break
            except ValueError:
                continue
    return values


@app.command("list")
def list_suites(as_json: bool = typer.Option(False, "--json", help="machine-readable")) -> None:
    """List the suites."""
    from ..spark_bench.suites.catalogue import SUITES

    if as_json:
        console.print_json(json.dumps({name: suite.about for name, suite in SUITES.items()}))
        return
    for name, suite in SUITES.items():
        console.print(f"{name:12} {suite.about}")


@app.command("run")
def run(
    suite: str,
    runs: int = typer.Option(100, help="number of simulated clusters"),
    engine: str = typer.Option(
        "auto", help="spark, process or serial; auto: spark where it can run, else process"
    ),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="directory for the tables, as Parquet"
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="replace the tables in --out"),
    seed: int = typer.Option(0, help="seed of the first run; they count up"),
    workers: int | None = typer.Option(None, help="worker processes (default: all cores)"),
    settings: list[str] = typer.Option([], "--set", help="parameter=value, repeatable"),
    as_json: bool = typer.Option(False, "--json", help="machine-readable"),
) -> None:
    """Run a batch and print its percentiles."""
    from ..protocol.errors import UsageError
    from ..spark_bench.batch import BatchEnded, run_suite
    from ..spark_bench.report import report
    from .percentile_table import print_percentiles

    ended: BatchEnded | None = None
    try:
        if out is not None and importlib.util.find_spec("pyarrow") is None:
            raise UsageError("writing Parquet needs pyarrow: pip install 'fakekafka[spark]'")
        with ended_by_sigterm(), _Progress(suite, quiet=as_json) as progress:
            batch = run_suite(
                suite,
                runs=runs,
                engine=engine,
                out=out,
                seed=seed,
                workers=workers,
                progress=progress.update,
                overwrite=overwrite,
                **_parse(settings),
            )
    except BatchEnded as error:
        ended, batch = error, error.batch
    except (UsageError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps(report(batch)))
    elif batch.runs:
        print_percentiles(console, batch, f"{suite}, {batch.runs} runs")
        _print_batch(batch, out)
    if ended is not None:
        typer.echo(f"{suite}: {ended}", err=True)
        interrupted = isinstance(ended.cause, KeyboardInterrupt)
        raise typer.Exit(INTERRUPTED if interrupted else TERMINATED)
    raise typer.Exit(0 if batch.ok == batch.runs else 1)


def _print_batch(batch: BatchResult, out: Path | None) -> None:
    """Print a line about the batch, and the runs that broke a promise."""
    console.print(
        f"{batch.ok} of {batch.runs} runs kept every promise; {batch.wall_s:.1f} s on "
        f"{batch.engine}, {batch.setup_s:.1f} s to start it"
        + (f"; tables in {out}" if out is not None else ""),
        soft_wrap=True,
    )
    for bad in [row for row in batch.rows if row["status"] != "ok"][:5]:
        text = f"seed {bad['seed']}: {bad['problems']}\n    {bad['reproduce']}"
        console.print(text, markup=False, soft_wrap=True)


class _Progress:
    """Show a bar on a terminal; elsewhere print a line after every tenth of the runs."""

    def __init__(self, title: str, *, quiet: bool) -> None:
        self._title = title
        self._quiet = quiet
        self._last = 0
        self._bar: Progress | None = None
        self._task: Any = None

    def __enter__(self) -> _Progress:
        if not self._quiet and console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=console,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=None)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, total: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif not self._quiet and done * 10 // total > self._last:
            self._last = done * 10 // total
            sys.stderr.write(f"{self._title}: {done} of {total} runs\n")
