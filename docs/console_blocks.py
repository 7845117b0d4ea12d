"""Runs the ```console blocks of the pages, and renews the output they show.

python docs/console_blocks.py            write the current output of the commands into the pages
python docs/console_blocks.py --check    change nothing; exit 1 and name the blocks that are stale

The commands of a page run one after the other in an empty folder with the examples in it, so that
a command can read files written by an earlier one. In the output a line ``...`` stands for any
lines and ``...`` inside a line for any text. A command without shown output may print anything, but
must exit with status 0. A block that depends on the machine or on real time is excluded by a
comment with a reason in the line above it: ``<!-- console: not run (reason) -->``. The pages of
docs/stories have a generator of their own.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"(?:^<!-- console: not run(?: \((?P<reason>[^\n]+)\))? -->\n)?"
    r"^```console\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NOT_RUN = "<!-- console: not run"
TIMEOUT_S = 120
PROGRAMS = {"fakekafka": [sys.executable, "-m", "fakekafka.cli.main"], "python": [sys.executable]}

Run = Callable[[str], list[str]]
"""Called with a command; returns the lines that it prints."""


@dataclass(frozen=True)
class Command:
    """A command of a block, with the output that the page shows."""

    line: int
    text: str
    shown: list[str]


def pages() -> list[Path]:
    """Return the pages whose blocks are renewed by this program."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if page.parent.name != "stories"]


def commands_of(body: str, line: int) -> list[Command]:
    """Return the commands of a block that begins at a line of its page."""
    found: list[Command] = []
    for number, text in enumerate(body.splitlines(), line):
        if text.startswith("$ "):
            found.append(Command(number, text[2:], []))
        elif found:
            found[-1].shown.append(text)
        else:
            raise ValueError("the block must begin with a command: $ ...")
    return found


def problems_of(text: str) -> list[str]:
    """Return the problems of a page's blocks that can be found without running them."""
    problems = []
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("body")) + 1
        if block[0].startswith(NOT_RUN):
            if not block["reason"]:
                problems.append(f"line {line}: a block that is not run needs a reason")
            continue
        try:
            for command in commands_of(block["body"], line):
                line = command.line
                arguments_of(command.text)
        except ValueError as error:
            problems.append(f"line {line}: {error}")
    return problems


def arguments_of(command: str) -> list[str]:
    """Return the arguments that run a page's command; raise ``ValueError`` if it is not allowed."""
    name, *arguments = shlex.split(command, comments=True)
    if name not in PROGRAMS:
        raise ValueError(f"{command!r}: only {', '.join(PROGRAMS)} can be run")
    return [*PROGRAMS[name], *arguments]


# -- comparing -----------------------------------------------------------------------------------


def _pattern(line: str) -> str:
    return ".*".join(map(re.escape, line.rstrip().split("..."))) + r" *"


def _is_gap(line: str) -> bool:
    return line.strip() == "..."


def agrees(shown: list[str], printed: list[str]) -> bool:
    """Return whether the output that a page shows matches the printed output."""
    parts = [r"(?:[^\n]*\n)*?" if _is_gap(line) else _pattern(line) + r"\n" for line in shown]
    return not shown or re.fullmatch("".join(parts), "".join(f"{p}\n" for p in printed)) is not None


def renewed(shown: list[str], printed: list[str]) -> list[str]:
    """Return the lines that the page should show: those most similar to its own, with gaps where it
    has gaps."""
    open_lines = [line for line in shown if "..." in line and not _is_gap(line)]

    def kept(new: str) -> str:
        """Return the page's own line with ``...`` in it if one matches, else the new line."""
        matching = (line for line in open_lines if re.fullmatch(_pattern(line), new))
        return next(matching, new.rstrip())

    if not any(map(_is_gap, shown)):
        return list(map(kept, printed))
    result: list[str] = []
    begin = 0
    groups = _groups(shown)
    for number, group in enumerate(groups):
        if number:
            result.append(next(filter(_is_gap, shown)))
        room = range(begin, max(begin, len(printed) - len(group)) + 1)
        if number == 0:
            room = range(1)
        elif number == len(groups) - 1:
            room = range(max(begin, len(printed) - len(group)), len(printed) + 1)
        start = max(room, key=lambda place: _likeness(group, printed[place : place + len(group)]))
        result += map(kept, printed[start : start + len(group)])
        begin = min(start + len(group), len(printed))
    return result


def _groups(shown: list[str]) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    for line in shown:
        if _is_gap(line):
            groups.append([])
        else:
            groups[-1].append(line)
    return groups


def _likeness(shown: list[str], printed: list[str]) -> float:
    pairs = zip(shown, printed, strict=False)
    return sum(difflib.SequenceMatcher(None, old, new).ratio() for old, new in pairs)


# -- pages ---------------------------------------------------------------------------------------


def renewed_page(text: str, run: Run) -> tuple[str, list[str]]:
    """Return the page with the current output, and the differences; matching blocks stay as they
    are."""
    differences: list[str] = []

    def renew(block: re.Match[str]) -> str:
        if block[0].startswith(NOT_RUN):
            return block[0]
        line = text.count("\n", 0, block.start("body")) + 1
        lines = []
        for command in commands_of(block["body"], line):
            printed = run(command.text)
            shown = command.shown
            if not agrees(shown, printed):
                shown = renewed(shown, printed)
                told = "\n".join(
                    difflib.unified_diff(command.shown, shown, "page", "run", "", "", 0, "")
                )
                differences.append(f"line {command.line}: $ {command.text}\n{told}")
            lines += [f"$ {command.text}", *shown]
        return "```console\n" + "".join(f"{line}\n" for line in lines) + "```"

    return BLOCK.sub(renew, text), differences


def runner(folder: Path) -> Run:
    """Return a function that runs commands in a folder with the examples in it.

    It raises ``ValueError`` for a command that exits with a status other than 0.
    """
    (folder / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}

    def run(command: str) -> list[str]:
        done = subprocess.run(
            arguments_of(command),
            cwd=folder,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT_S,
        )
        if done.returncode:
            raise ValueError(f"$ {command}\nleft with {done.returncode}:\n{done.stderr}")
        return done.stdout.splitlines()

    return run


def main(arguments: list[str]) -> int:
    """Write or check the blocks; return status 0, 1 for stale or faulty ones, 2 for wrong usage."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    status = 0
    for page in pages():
        text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()
        problems = problems_of(text)
        renewed_text, differences = text, list[str]()
        if not problems:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    renewed_text, differences = renewed_page(text, runner(Path(folder)))
                except ValueError as error:
                    problems = [str(error)]
        if differences and not arguments:
            page.write_text(renewed_text, encoding="utf-8")
            print(f"wrote {name}")
        elif differences:
            problems += [*differences, "it is stale: run `make docs`"]
        for problem in problems:
            print(f"{name}: {problem}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
