"""The sub-commands of ``fakekafka``, each of which is loaded only when it is used.

A command ``name`` lives in the module ``fakekafka.cli.<name>``, which offers either ``app`` (a
``typer.Typer``) or ``command`` (a function that Typer can wrap). Listing the commands reads the
table below and imports none of them, so ``fakekafka --help`` and every other command stay quick
and keep working when one module or its extra is missing.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from ..protocol.errors import UsageError

if TYPE_CHECKING:
    from typer.core import TyperCommand, TyperGroup

COMMANDS: dict[str, str] = {
    "demo": "A one-minute tour: a client, a killed leader, nothing lost, a batch of simulations.",
    "serve": "Run a cluster for clients in any language.",
    "run": "Run a scenario in virtual time and record it.",
    "trace": "Ask questions about a recorded run: show, grep, at, why, watch, diff, verify, story.",
    "debug": "Step through a run: forward, back, to breakpoints; inject faults.",
    "scenarios": "List the scenarios and stories that run by name.",
    "bench": "Run batches of simulated clusters.",
    "explore": "Search for broken promises: random faults in virtual time, checked by invariants.",
    "questions": "Answer nine questions about leader election, each demonstrated by runs.",
}
"""Name of each command to its line in ``fakekafka --help``, in the order shown."""

EXTRA_OF_PACKAGE: dict[str, str] = {
    "matplotlib": "spark",
    "pandas": "spark",
    "plotly": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
    "textual": "debug",
    "uvloop": "fast",
}
"""Top-level module to the extra of this package that installs it."""

_MODULES = {"debug": "debug.command", "explore": "explore.command"}
"""Name to module, for commands that have a folder of their own."""

PACKAGE = __name__.rpartition(".")[0]


def available_commands(package: str = PACKAGE) -> list[str]:
    """Return the commands whose module is installed, in the order of the table."""
    return [name for name in COMMANDS if importlib.util.find_spec(f"{package}.{name}") is not None]


def load_command(name: str, package: str = PACKAGE) -> TyperCommand | TyperGroup:
    """Import the module of a command and build the command.

    Raises ``UsageError`` if the module is missing, offers neither ``app`` nor ``command``, or needs
    a package that is not installed; the message then names the extra to install.
    """
    module_name = f"{package}.{_MODULES.get(name, name)}"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UsageError(_explain_missing(name, module_name, error)) from error
    return _build(name, module)


def _explain_missing(name: str, module_name: str, error: ModuleNotFoundError) -> str:
    missing = error.name or ""
    if missing == module_name:
        return f"`fakekafka {name}` is not part of this installation: {module_name} is missing"
    extra = EXTRA_OF_PACKAGE.get(missing.split(".")[0])
    remedy = f"pip install 'fakekafka[{extra}]'" if extra else f"install {missing}"
    return f"`fakekafka {name}` needs the Python package {missing!r}: {remedy}"


def _build(name: str, module: Any) -> TyperCommand | TyperGroup:
    import typer
    from typer.main import get_command

    app = getattr(module, "app", None)
    if app is None:
        function = getattr(module, "command", None)
        if function is None:
            raise UsageError(f"{module.__name__} offers neither `app` nor `command`")
        app = typer.Typer(add_completion=False)
        app.command(name, help=function.__doc__ or COMMANDS.get(name))(function)
    built: Any = get_command(app)
    built.name = name
    built.short_help = COMMANDS.get(name)
    return built  # type: ignore[no-any-return]
