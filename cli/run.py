"""``fakekafka run``: a scenario in virtual time, judged and recorded."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

app = typer.Typer(add_completion=False)
console = Console()


def _parameters(settings: list[str]) -> dict[str, Any]:
    """``--set cluster.brokers=5``: values are TOML, and plain text where they are not."""
    import tomllib

    from ..protocol.errors import UsageError

    values: dict[str, Any] = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator:
            raise UsageError(f"--set takes key=value, not {setting!r}")
        try:
            values[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[name] = text
    return values


@app.command()
def command(
    scenario: Path = typer.Argument(..., help="a TOML file, such as examples/scenarios/..."),
    seed: int | None = typer.Option(None, help="seed; the scenario's own by default"),
    output: Path | None = typer.Option(None, "-o", "--output", help="record to this .fktrace"),
    settings: list[str] = typer.Option([], "--set", help="key=value over the file, repeatable"),
    as_json: bool = typer.Option(False, "--json", help="machine-readable"),
) -> None:
    """Run a scenario; exit status 1 when an expectation or a promise is broken."""
    # What controllers log belongs to the scenario: it is in the trace, not on the terminal.
    logging.getLogger("fakekafka").addHandler(logging.NullHandler())
    from ..protocol.errors import UsageError
    from ..testing.scenario_file import load_scenario
    from ..testing.scenarios import ScenarioRun, header_of
    from ..tracing.recorder import Recorder

    try:
        spec = load_scenario(scenario, _parameters(settings))
        if output is not None and (output.is_dir() or not output.parent.is_dir()):
            raise UsageError(f"cannot record to {output}: its directory must exist")
        recorder = Recorder()
        run = ScenarioRun(spec, seed, recorder)
    except UsageError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    result = run.run()
    if output is not None:
        try:
            recorder.save(output, header_of(run))
        except OSError as error:
            typer.echo(f"error: {output}: cannot be written: {error.strerror}", err=True)
            raise typer.Exit(2) from None
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "scenario": result.name,
                    "seed": result.seed,
                    "ok": result.ok,
                    "problems": result.problems,
                    "metrics": result.metrics,
                    "fingerprint": result.fingerprint,
                    "virtual_ms": result.virtual_ms,
                }
            )
        )
    else:
        _print(result, output)
    raise typer.Exit(0 if result.ok else 1)


def _print(result: Any, output: Path | None) -> None:
    console.print(
        f"{result.name}, seed {result.seed}: {result.virtual_ms / 1000:,.1f} virtual seconds",
        highlight=False,
    )
    for name, value in result.metrics.items():
        console.print(f"  {name:24} {value:>12,.0f}", highlight=False)
    console.print(f"  fingerprint {result.fingerprint}", highlight=False)
    for problem in result.problems:
        console.print(f"  [red]{problem}[/red]", highlight=False)
    if output is not None:
        console.print(f"  recorded: fakekafka trace show {output}", highlight=False, soft_wrap=True)
