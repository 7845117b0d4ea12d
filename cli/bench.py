"""``fakekafka bench``: list and run batches of simulated clusters, report and compare them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from ..protocol.errors import UsageError
from .bench_progress import BatchProgress
from .exits import INTERRUPTED, TERMINATED, ended_by_sigterm

if TYPE_CHECKING:
    from ..spark_bench.planning.suite import Suite
    from ..spark_bench.reports.results import BatchResult

app: typer.Typer = typer.Typer(add_completion=False, no_args_is_help=True)
console: Console = Console()
_SHOWN_BROKEN = 5


def _load(name: str) -> Suite:
    from ..spark_bench.planning.suite import find_source, load_suite

    return load_suite(find_source(name))


@app.command("list")
def list_suites(as_json: bool = typer.Option(False, "--json", help="machine-readable")) -> None:
    """List the suites."""
    from ..spark_bench.planning.suite import SUITES

    abouts = {name: _load(name).about for name in SUITES}
    if as_json:
        console.print_json(json.dumps(abouts))
        return
    width = max(map(len, abouts))
    for name, about in abouts.items():
        # Wrap words only on a terminal: programs read whole lines.
        console.print(
            f"{name:{width}} {' '.join(about.split())}",
            markup=False,
            highlight=False,
            soft_wrap=not console.is_terminal,
        )


@app.command("show")
def show(suite: str = typer.Argument(help="name of a suite, or a file")) -> None:
    """Show what a suite varies and measures, and which parameters it takes."""
    found = _load(suite)
    typer.echo(f"{found.name}: {found.about}")
    typer.echo(f"\nseeds for each configuration: {found.runs}")
    for table in found.matrix:
        texts = (f"{name} = {', '.join(map(str, values))}" for name, values in table.items())
        typer.echo("varies " + "; ".join(texts))
    if found.parameters:
        typer.echo("\nparameters")
    for parameter in found.parameters.values():
        typer.echo(f"  {parameter.name} = {parameter.default}")
    if found.measures:
        typer.echo("\nmeasures")
    for name, text in found.measures.items():
        typer.echo(f"  {name}: {text}")


@app.command("run")
def run(
    suite: str = typer.Argument(help="name of a suite, or a file: .toml or .py"),
    runs: int | None = typer.Option(None, help="seeds for each configuration"),
    engine: str = typer.Option(
        "auto", help="spark, process or serial; auto: spark if it is available, else process"
    ),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="directory for the tables, as Parquet"
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="replace the tables in --out"),
    resume: bool = typer.Option(False, "--resume", help="continue the batch in --out"),
    seed: int = typer.Option(0, help="first seed; they count up"),
    workers: int | None = typer.Option(None, help="worker processes (default: all cores)"),
    settings: list[str] = typer.Option([], "--set", help="parameter=value, repeatable"),
    matrix: list[str] = typer.Option(
        [], "--matrix", help="parameter=value,value instead of the suite's own, repeatable"
    ),
    no_matrix: bool = typer.Option(False, "--no-matrix", help="a single configuration"),
    budget: list[str] = typer.Option(
        [], "--budget", help="events, virtual_s, wall_s or memory_mb=number, repeatable"
    ),
    samples: int = typer.Option(0, help="runs of each configuration that keep every value"),
    master: str | None = typer.Option(None, help="Spark's master, such as spark://host:7077"),
    conf: list[str] = typer.Option([], "--conf", help="name=value for Spark, repeatable"),
    costs_from: Path | None = typer.Option(
        None, help="tables of an earlier batch, used to start long runs first"
    ),
    as_json: bool = typer.Option(False, "--json", help="machine-readable"),
) -> None:
    """Run a batch and print its percentiles."""
    from ..spark_bench.batch import BatchEnded, run_suite
    from ..spark_bench.planning.settings import read_conf, read_matrix, read_numbers, read_settings

    ended: BatchEnded | None = None
    try:
        _check_out(out, resume)
        found = _load(suite)
        engine = _choose(engine, master, suite, quiet=as_json)
        with ended_by_sigterm(), BatchProgress(console, suite, quiet=as_json) as progress:
            batch = run_suite(
                suite,
                runs=runs,
                engine=engine,
                out=out,
                seed=seed,
                workers=workers,
                progress=progress.update,
                overwrite=overwrite,
                resume=resume,
                matrix=read_matrix(found, matrix, no_matrix),
                budget=read_numbers("--budget", budget),
                samples=samples,
                master=master,
                conf=read_conf(conf),
                costs_from=costs_from,
                notice=progress.tell,
                **read_settings(found, settings),
            )
    except BatchEnded as error:
        ended, batch = error, error.batch
    except (UsageError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    _tell(batch, out, as_json=as_json)
    if ended is not None:
        typer.echo(f"{suite}: {ended}", err=True)
        interrupted = isinstance(ended.cause, KeyboardInterrupt)
        raise typer.Exit(INTERRUPTED if interrupted else TERMINATED)
    raise typer.Exit(0 if batch.ok == batch.runs else 1)


def _check_out(out: Path | None, resume: bool) -> None:
    """Raise ``UsageError`` early if the tables cannot be written."""
    if out is None and resume:
        raise UsageError("--resume goes on with a batch in a directory: name it with --out")
    if out is not None and importlib.util.find_spec("pyarrow") is None:
        raise UsageError("writing Parquet needs pyarrow: pip install 'fakekafka[spark]'")


def _choose(engine: str, master: str | None, suite: str, *, quiet: bool) -> str:
    """Return the engine, resolving ``auto``; print to standard error why it is not Spark."""
    from ..spark_bench.engines.engine import choose_engine

    if engine != "auto":
        return engine
    if master:
        return "spark"
    engine, reason = choose_engine()
    if engine != "spark" and not quiet:
        typer.echo(f"{suite}: runs in processes, because {reason}", err=True)
    return engine


def _tell(batch: BatchResult, out: Path | None, *, as_json: bool) -> None:
    from ..spark_bench.reports.summary import report

    if as_json:
        typer.echo(json.dumps(report(batch)))
    elif batch.runs:
        _print_batch(batch, out)


def _print_batch(batch: BatchResult, out: Path | None) -> None:
    """Print a table for each configuration, a line about the batch, and the broken runs."""
    from ..spark_bench.reports.summary import unfinished_lines
    from .percentile_table import print_percentiles

    for configuration in batch.configurations.values():
        if configuration.runs:
            label = f": {configuration.label}" if configuration.label else ""
            title = f"{batch.suite}{label}, {configuration.runs} runs"
            print_percentiles(console, batch, configuration, title)
    console.print(
        f"{batch.ok} of {batch.runs} runs kept every promise; {batch.wall_s:.1f} s on "
        f"{batch.engine}, {batch.setup_s:.1f} s to start it"
        + (f"; tables in {out}" if out is not None else ""),
        soft_wrap=True,
    )
    for note in (*unfinished_lines(batch), *batch.notes):
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    for bad in batch.broken[:_SHOWN_BROKEN]:
        text = f"seed {bad['seed']}, {bad['status']}: {bad['problems']}\n    {bad['reproduce']}"
        console.print(text, markup=False, soft_wrap=True)


@app.command("trace")
def trace(
    suite: str = typer.Argument(help="name of a suite, or a file"),
    out: Path | None = typer.Option(None, "--out", "-o", help="the trace (default: SUITE.fktrace)"),
    seed: int = typer.Option(0, help="seed of the run"),
    settings: list[str] = typer.Option([], "--set", help="parameter=value, repeatable"),
) -> None:
    """Record one run of a suite, for fakekafka trace."""
    from ..spark_bench.planning.recording import record
    from ..spark_bench.planning.settings import read_settings

    found = _load(suite)
    out = out or Path(f"{found.name}-seed-{seed}.fktrace")
    problems = record(suite, seed, read_settings(found, settings), out)
    typer.echo(f"{out}: fakekafka trace story {out}")
    for problem in problems:
        typer.echo(problem)
    raise typer.Exit(1 if problems else 0)


@app.command("report")
def make_report(
    directory: Path = typer.Argument(help="directory given to bench run --out"),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="the page (default: report.html in the directory)"
    ),
    pictures: bool = typer.Option(True, help="write the figures as PNG files, too"),
) -> None:
    """Write a self-contained page about a batch, and pictures of its figures."""
    from ..spark_bench.reports.page import write_page
    from ..spark_bench.reports.pictures import draw
    from ..spark_bench.reports.source import ReportSource

    source = ReportSource(directory)
    page = out or directory / "report.html"
    shown = write_page(source, page)
    typer.echo(str(page))
    if pictures:
        for path in draw(shown, page.parent / "pictures"):
            typer.echo(str(path))


@app.command("compare")
def compare_batches(
    before: Path = typer.Argument(help="directory of a batch"),
    after: Path = typer.Argument(help="directory of another batch"),
    fail_over: float | None = typer.Option(
        None,
        help="exit with 1 if a value is significantly worse by more than this percentage, if "
        "significantly more runs do not end, or if promises are broken that were kept",
    ),
    as_json: bool = typer.Option(False, "--json", help="machine-readable"),
) -> None:
    """Compare two batches run by run with the same seeds; print the significant differences."""
    from ..spark_bench.reports.compare import compare
    from ..spark_bench.reports.source import ReportSource
    from .comparison_table import comparison_data, print_comparison

    found = compare(ReportSource(before), ReportSource(after))
    if as_json:
        typer.echo(json.dumps(comparison_data(found)))
    else:
        print_comparison(console, found)
    if fail_over is not None:
        raise typer.Exit(1 if found.is_regression(fail_over) else 0)
