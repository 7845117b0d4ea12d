"""The root of the command line: a group that lists commands by name and loads only the one used."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ..builds import told_version
from .commands import COMMANDS, available_commands, load_command
from .exits import written_output


class LazyGroup(TyperGroup):
    """Lists placeholders made from the table of commands; loads the real command to run it."""

    def list_commands(self, ctx: Any) -> list[str]:
        return available_commands()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a placeholder with a name and a line of help, for listings and name matching."""
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(name=cmd_name, help=COMMANDS[cmd_name])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command to run; raise ``UsageError`` if it cannot be loaded."""
        name, stand_in, rest = super().resolve_command(ctx, args)
        if name is None or stand_in is None:
            return name, stand_in, rest
        return name, load_command(name), rest

    def make_context(self, *args: Any, **more: Any) -> Any:
        with written_output():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        # Handled here, because Typer itself would exit with status 1 on a broken pipe.
        with written_output():
            return super().invoke(ctx)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(told_version())
        raise typer.Exit


def build_root(help_text: str) -> Any:
    """Return the root command, to be called with ``args`` and ``prog_name``."""
    app = typer.Typer(
        cls=LazyGroup,
        help=help_text,
        no_args_is_help=True,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        version: bool = typer.Option(
            False,
            "--version",
            "-V",
            callback=_show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ) -> None:
        """Options of the root; the work is done by the commands."""

    root.__doc__ = help_text
    built: Any = get_command(app)
    # Typer takes its suggestions for a misspelt command from these.
    built.commands = {name: built.get_command(None, name) for name in available_commands()}
    return built
