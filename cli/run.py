"""``fakekafka run``: runs a scenario in virtual time, checks its promises and records it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from ..protocol.errors import UsageError
from .exits import refuse_overwriting

if TYPE_CHECKING:
    from ..scenarios.spec import ScenarioSpec
    from ..scenarios.verdict import ScenarioResult

app: typer.Typer = typer.Typer(add_completion=False)
console: Console = Console()


def parameters_of(settings: list[str]) -> dict[str, Any]:
    """Parse settings such as ``cluster.brokers=5``. Values are TOML, or else plain text.

    A version is text even if it looks like a number: 0.10 is not 0.1.
    """
    from ..testing.parameters.toml_values import value_of_text

    values: dict[str, Any] = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator:
            raise UsageError(f"--set takes key=value, not {setting!r}")
        is_version = name == "cluster.kafka_version" and text[:1].isdigit()
        values[name] = text if is_version else value_of_text(text)
    return values


@app.command()
def command(
    scenario: Path = typer.Argument(..., help="a TOML file, or a name of `fakekafka scenarios`"),
    seed: int | None = typer.Option(None, help="seed; the scenario's own by default"),
    kafka_version: str | None = typer.Option(
        None, help="emulated version; a story runs for all of its versions by default"
    ),
    output: Path | None = typer.Option(
        None, "--out", "-o", help="file to record to, .fktrace; one file per version for a story"
    ),
    settings: list[str] = typer.Option(
        [], "--set", help="key=value overriding the file, repeatable"
    ),
    as_json: bool = typer.Option(False, "--json", help="machine-readable"),
) -> None:
    """Run a scenario. The exit status is 1 if an expectation or a promise is broken."""
    # Log messages of controllers belong to the scenario: they go to the trace, not the terminal.
    logging.getLogger("fakekafka").addHandler(logging.NullHandler())
    try:
        specs = _specs(scenario, settings, kafka_version)
        outputs = _outputs(output, specs)
        for one in outputs:
            if one is not None:
                _check_output(one, scenario)
        results = [_run(spec, seed, one, as_json) for spec, one in zip(specs, outputs, strict=True)]
    except UsageError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        found = [_json(result, one) for result, one in zip(results, outputs, strict=True)]
        typer.echo(json.dumps(found[0] if len(found) == 1 else found))
    elif len(results) > 1:
        _print_summary(results)
    raise typer.Exit(0 if all(result.ok for result in results) else 1)


def _outputs(output: Path | None, specs: list[ScenarioSpec]) -> list[Path | None]:
    """Return the file to record each run to. Several runs are those of a story, one per version,
    which is added to the file's name: ``loss.fktrace`` becomes ``loss-0.10.fktrace`` and so on."""
    if output is None or len(specs) == 1:
        return [output] * len(specs)
    versions = [spec.cluster.kafka_version for spec in specs]
    return [output.with_name(f"{output.stem}-{v}{output.suffix}") for v in versions]


def _check_output(output: Path, scenario: Path) -> None:
    """Raise ``UsageError`` before the run if its recording could not be written."""
    if output.is_dir():
        raise UsageError(f"cannot record to {output}: it is a directory; name a file in it")
    if not output.parent.is_dir():
        raise UsageError(f"cannot record to {output}: its directory must exist")
    refuse_overwriting(output, scenario, "scenario")


def _specs(scenario: Path, settings: list[str], kafka_version: str | None) -> list[ScenarioSpec]:
    """Load the scenario; a story once for each of its versions, unless a version is given."""
    from ..scenarios.file import load_scenario, with_parameters

    parameters = parameters_of(settings)
    if kafka_version is not None:
        parameters["cluster.kafka_version"] = kafka_version
    spec = load_scenario(scenario, parameters)
    if spec.matrix:
        keys = ", ".join(spec.matrix)
        typer.echo(
            f"ignoring the matrix ({keys}) in a single run; choose values with --set", err=True
        )
    if spec.story is None or "cluster.kafka_version" in parameters:
        return [spec]
    return [with_parameters(spec, {"cluster.kafka_version": v}) for v in spec.story.versions]


def _run(
    spec: ScenarioSpec, seed: int | None, output: Path | None, as_json: bool
) -> ScenarioResult:
    from ..scenarios.run import ScenarioRun, header_of, reproduce
    from ..tracing.recording.recorder import Recorder

    recorder = Recorder()
    run = ScenarioRun(spec, seed, recorder)
    result = run.run()
    if output is not None:
        try:
            recorder.save(output, header_of(run))
        except OSError as error:
            raise UsageError(f"{output}: cannot be written: {error.strerror}") from None
    if not as_json:
        _print(result, output, reproduce(run))
    return result


def _json(result: ScenarioResult, output: Path | None) -> dict[str, Any]:
    from .story_table import story_json

    found: dict[str, Any] = {
        "scenario": result.name,
        "seed": result.seed,
        "ok": result.ok,
        "problems": result.problems,
        "metrics": result.metrics,
        "fingerprint": result.fingerprint,
        "virtual_ms": result.virtual_ms,
    }
    if output is not None:
        found["trace"] = str(output)
    return found if result.story is None else {**found, **story_json(result.story)}


def _print(result: ScenarioResult, output: Path | None, reproduce: str) -> None:
    seconds = f"{result.virtual_ms / 1000:,.1f} virtual seconds"
    if result.story is not None:
        from .story_table import story_lines

        version = result.story.kafka_version
        _say(f"{result.name}, kafka_version {version}, seed {result.seed}: {seconds}")
        for line in story_lines(result.story):
            _say(line)
    else:
        _say(f"{result.name}, seed {result.seed}: {seconds}")
        for name, value in result.metrics.items():
            _say(f"  {name:24} {value:>12,.0f}")
        _say(f"  fingerprint {result.fingerprint}")
    for problem in result.problems:
        _say(f"  {problem}", style="red")
    if result.problems:
        _say(f"  seed {result.seed}; again: {reproduce}")
    if output is not None:
        _say(f"  recorded: fakekafka trace show {output}")


def _print_summary(results: list[ScenarioResult]) -> None:
    """Print the outcome of a story in each version."""
    from .story_table import outcome_text

    _say("")
    for result in results:
        story = result.story
        assert story is not None
        told = "a step failed" if story.outcome is None else outcome_text(story)
        _say(f"{story.kafka_version:10} {told}")


def _say(text: str, style: str | None = None) -> None:
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)
