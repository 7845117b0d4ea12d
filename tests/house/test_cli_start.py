"""The start of the command: at once for --version, loading one module otherwise; statuses
0, 1, 2.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from fakekafka.builds import told_version
from fakekafka.cli import commands
from fakekafka.cli.commands import COMMANDS, available_commands, load_command
from fakekafka.cli.main import main
from fakekafka.protocol.errors import UsageError

MODULES_AFTER = """
import sys
from fakekafka.cli.main import main
try:
    main({arguments!r})
except SystemExit as ended:
    assert not ended.code, ended.code
print("MODULES", *sorted(sys.modules))
"""


def modules_after(*arguments: str) -> tuple[str, set[str]]:
    """Run a command line in a fresh interpreter; return its output and the modules loaded."""
    program = MODULES_AFTER.format(arguments=list(arguments))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    output, _, modules = done.stdout.partition("MODULES ")
    return output, set(modules.split())


def leave_status(arguments: list[str]) -> object:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_needs_no_library(option: str) -> None:
    """`fakekafka --version` prints without importing Typer, Rich or any cluster code."""
    output, modules = modules_after(option)
    assert output == f"{told_version()}\n"
    assert modules.isdisjoint({"typer", "rich", "pykka", "msgpack", "asyncio", "fakekafka.testing"})


def test_the_package_can_be_run_as_a_module() -> None:
    """`python -m fakekafka` is the same command."""
    done = subprocess.run(
        [sys.executable, "-m", "fakekafka", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{told_version()}\n"


def test_help_lists_the_commands_and_imports_none() -> None:
    """The list comes from the table, so that a broken command module does not break it."""
    output, modules = modules_after("--help")
    for name in available_commands():
        assert f" {name} " in output
        assert f"fakekafka.cli.{name}" not in modules


def test_every_command_of_the_table_is_installed() -> None:
    """Every command in the table has a module."""
    assert available_commands() == list(COMMANDS)


def test_a_missing_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command the help is printed, and the status is 2."""
    assert leave_status([]) == 2
    assert "Usage" in "".join(capsys.readouterr())


@pytest.mark.parametrize("arguments", [["unheard-of"], ["--unheard-of"]])
def test_an_unknown_word_is_wrong_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the unknown word."""
    assert leave_status(arguments) == 2
    assert arguments[0] in capsys.readouterr().err


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty stand-in for fakekafka.cli, importable as ``stand_in_cli``."""
    folder = tmp_path / "stand_in_cli"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith("stand_in_cli")]:
        del sys.modules[name]


def test_only_commands_with_a_module_are_listed(package: Path) -> None:
    """A command that is not installed is not offered."""
    (package / "trace.py").touch()
    (package / "demo.py").touch()
    assert available_commands("stand_in_cli") == ["demo", "trace"]


def test_a_missing_module_is_named(package: Path) -> None:
    """The error says that the command is not installed."""
    with pytest.raises(UsageError, match=r"`fakekafka serve` is not part of this installation"):
        load_command("serve", "stand_in_cli")


@pytest.mark.parametrize(
    ("module", "remedy"),
    [("uvloop", r"fakekafka\[fast\]"), ("pyspark", r"fakekafka\[spark\]"), ("abacus9", "abacus9")],
)
def test_a_missing_library_names_the_extra(
    package: Path, monkeypatch: pytest.MonkeyPatch, module: str, remedy: str
) -> None:
    """The error names the extra to install."""
    monkeypatch.setitem(sys.modules, module, None)
    (package / "debug.py").write_text(
        f"raise ModuleNotFoundError('No module', name={module + '.app'!r})"
    )
    with pytest.raises(UsageError, match=remedy):
        load_command("debug", "stand_in_cli")


def test_a_module_without_a_command_is_refused(package: Path) -> None:
    """A module must offer ``app`` or ``command``."""
    (package / "run.py").touch()
    with pytest.raises(UsageError, match="neither `app` nor `command`"):
        load_command("run", "stand_in_cli")


FUNCTION = '''
def command(name: str) -> None:
    """Greet."""
    print("hello", name)
'''
APP = """
import typer
app = typer.Typer()
@app.callback()
def root() -> None: ...
@app.command()
def greet(name: str) -> None:
    print("hello", name)
    raise typer.Exit(1)
"""


@pytest.fixture
def stand_ins(package: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Put three stand-in commands behind the real group: a function, an app and a failing one."""
    from fakekafka.cli import group

    (package / "run.py").write_text(FUNCTION)
    (package / "trace.py").write_text(APP)
    (package / "serve.py").write_text(
        "from fakekafka.protocol.errors import UsageError\n"
        "def command() -> None: raise UsageError('port 70000 is above 65535')"
    )
    monkeypatch.setattr(group, "load_command", lambda name: load_command(name, "stand_in_cli"))
    monkeypatch.setattr(group, "available_commands", lambda: available_commands("stand_in_cli"))
    return commands


@pytest.mark.usefixtures("stand_ins")
@pytest.mark.parametrize(
    ("arguments", "status", "output"),
    [
        (["run", "you"], 0, "hello you\n"),
        (["trace", "greet", "you"], 1, "hello you\n"),
        (["run"], 2, ""),
        (["trace", "unheard-of"], 2, ""),
    ],
)
def test_commands_run_with_their_status(
    arguments: list[str], status: int, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 0 is success, 1 a negative result, 2 wrong usage."""
    assert leave_status(arguments) == status
    assert capsys.readouterr().out == output


@pytest.mark.usefixtures("stand_ins")
def test_wrong_input_is_a_message_not_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """A ``UsageError`` at any depth becomes a message of one line and status 2."""
    assert leave_status(["serve"]) == 2
    assert capsys.readouterr().err == "error: port 70000 is above 65535\n"


def test_the_extras_named_exist(texts: dict[str, str]) -> None:
    """Every extra that a message recommends is declared in pyproject.toml."""
    import tomllib

    extras = tomllib.loads(texts["pyproject.toml"])["project"]["optional-dependencies"]
    assert set(commands.EXTRA_OF_PACKAGE.values()) <= set(extras)
