"""``fakekafka questions``: nine questions about leader election, each answered by runs."""

from __future__ import annotations

import json
import sys
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from ..protocol.errors import UsageError

app: typer.Typer = typer.Typer(add_completion=False)

_WIDTH_WITHOUT_TERMINAL = 110


@app.command()
def command(
    questions: list[int] = typer.Option([], "--question", help="1 to 9, repeatable; default all"),
    versions: list[str] = typer.Option(
        [], "--kafka-version", help="emulated version, repeatable; default all judged releases"
    ),
    as_json: bool = typer.Option(False, "--json", help="machine-readable"),
) -> None:
    """Answer nine questions about leader election, and demonstrate each answer by runs.

    The exit status is 1 if a run contradicts an answer.
    """
    from ..protocol.versions import JUDGED_VERSIONS
    from ..scenarios.questions.catalogue import QUESTIONS, answer

    console = _console()
    answers = []
    try:
        for number in dict.fromkeys(questions or QUESTIONS):
            answered = answer(number, versions or JUDGED_VERSIONS)
            answers.append(answered)
            if not as_json:
                _print(console, answered)
    except UsageError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    holds = all(answered.holds for answered in answers)
    if as_json:
        documents = [answered.as_dict() for answered in answers]
        typer.echo(json.dumps({"holds": holds, "questions": documents}))
    raise typer.Exit(0 if holds else 1)


def _console() -> Console:
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=_WIDTH_WITHOUT_TERMINAL)


def _print(console: Console, answered: Any) -> None:
    all_versions = tuple(answered.findings)
    console.print(f"[bold]{answered.number}. {answered.question}[/bold]")
    shown = [versions for versions, _ in answered.rows]
    with_versions = any(versions != all_versions for versions in shown)
    table = Table(*(["version"] if with_versions else []), *answered.columns)
    for versions, cells in answered.rows:
        first = [_names(versions, all_versions)] if with_versions else []
        table.add_row(*first, *(cell.replace("[", r"\[") for cell in cells))
    console.print(table)
    for versions, sentence in answered.conclusions:
        prefix = "" if versions == all_versions else f"Version {', '.join(versions)}: "
        console.print(prefix + sentence, markup=False)
    for versions, claim in answered.contradictions:
        where = _names(versions, all_versions)
        console.print(f"NOT SHOWN by the run (version {where}): {claim}", markup=False, style="red")
    console.print()


def _names(versions: tuple[str, ...], all_versions: tuple[str, ...]) -> str:
    if versions == all_versions and len(all_versions) > 1:
        return "all"
    return ", ".join(versions)
