"""Reads the declared flags of the emulated versions, and writes the pages about them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from fakekafka.protocol.releases.release import Release
from fakekafka.protocol.versions import JUDGED_VERSIONS, KAFKA_VERSIONS, behaviour

DECLARED_IN = "protocol/releases/behaviour.py"
_FILE = Path(__file__).resolve().parents[1] / DECLARED_IN
_SECTION = re.compile(r" *# -- (.+)")


@dataclass(frozen=True)
class Change:
    """A release that changed a flag."""

    release: str
    sources: tuple[str, ...]
    value: Any
    """Value of the flag from this release on."""


@dataclass(frozen=True)
class Flag:
    """A flag with its section, its meaning and all of its changes, oldest first."""

    name: str
    section: str
    meaning: str
    changes: tuple[Change, ...]

    @property
    def when(self) -> str:
        """The releases at which the flag changes, as text: ``since 2.4 and before 3.0``."""
        if not isinstance(self.changes[0].value, bool):
            return ", ".join(f"{_shown(c.value)} since {c.release}" for c in self.changes)
        return " and ".join(f"{'since' if c.value else 'before'} {c.release}" for c in self.changes)

    @property
    def sources(self) -> str:
        return ", ".join(dict.fromkeys(source for c in self.changes for source in c.sources))


def declared_flags(text: str | None = None) -> list[Flag]:
    """Read all flags in the order of their declarations.

    Raises ``ValueError`` for a declaration that is none of: ``since``, ``before``, two of them
    joined by ``and`` or ``or``, ``steps`` with one source for each step.
    """
    text = _FILE.read_text(encoding="utf-8") if text is None else text
    titles = {}
    for number, line in enumerate(text.splitlines(), 1):
        if found := _SECTION.fullmatch(line):
            titles[number] = found[1]
    flags = []
    for target, value, meaning in _assignments(ast.parse(text)):
        above = [title for number, title in titles.items() if number < target.lineno]
        if above:  # assignments before the first title are not flags
            changes = tuple(_changes(value))
            flags.append(Flag(target.attr, above[-1], " ".join(meaning.split()), changes))
    return flags


def _assignments(tree: ast.Module) -> Iterator[tuple[ast.Attribute, ast.expr, str]]:
    """Yield the constructor's assignments, each with the docstring below it."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    (body,) = (function.body for function in functions if function.name == "__init__")
    for statement, text in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.Assign):
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, statement.value
        else:
            continue
        if isinstance(target, ast.Attribute):
            yield target, value, _text_of(text)


def _text_of(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value)
    return ""


def _changes(value: ast.expr) -> Iterator[Change]:
    if isinstance(value, ast.BoolOp):
        for part in value.values:
            yield from _changes(part)
        return
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        raise ValueError(f"no declaration of a flag: {ast.unparse(value)}")
    arguments: list[Any] = [ast.literal_eval(argument) for argument in value.args]
    if value.func.id == "steps":
        _, later, *sources = arguments
        for (release, changed), source in zip(later.items(), sources, strict=True):
            yield Change(release, (source,), changed)
    else:
        release, *sources = arguments
        yield Change(release, tuple(sources), {"since": True, "before": False}[value.func.id])


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "-"
    return str(value).replace("_", " ")


def _in_markdown(meaning: str) -> str:
    return meaning.replace("``", "`")


_ON_THREADS = """\
One thing has no flag: the controller's threads. Since 0.11 (KAFKA-5028) one thread takes
events from one queue. In 0.10 several threads took turns under `controllerLock`: ZkClient's
event thread, the rebalancing timer, the thread of deletions, the threads that send to
brokers, and a request for controlled shutdown. Here each of those turns is an event of the
same queue in every version. An event stands for the work done while the lock is held. No
event begins before the previous one has ended, and events run in the order in which they
were requested. Where 0.10's threads raced for the lock, fakekafka plays one order. Deletion
continues within the event that resumes it, where 0.10 woke its thread.
"""


_EMULATED = (
    "`kafka_version` chooses the release whose behaviour a cluster shows: any from 0.10.1 to 3.9,",
    "the default. An emulated release is the last one with bug fixes of its line:\n",
    "| `kafka_version` | release | compared with |",
    "|---|---|---|",
    *(
        f'| `"{version}"` | {Release(version).exact_version} | '
        f"{'real brokers' if version in JUDGED_VERSIONS else ''} |"
        for version in KAFKA_VERSIONS
    ),
    '\n`"0.10.1"` is another name of `"0.10"`, and `"0.11"` of `"0.11.0"`.\n',
    "Four releases are judged: what they do is compared with brokers of Kafka",
    "([fidelity](fidelity.md)). The others are derived. Each difference between releases is one",
    "flag below, named for what it does, and declared with the release that brought it; no other",
    "code compares versions. [Releases](../kafka/releases.md) tells the same release by release.",
    "The APIs with their versions are what a broker of each of the releases answered, and the",
    "configurations with their defaults and bounds are what each declares. Random histories run",
    "in all of them and have to end whole. Whether a broker of such a release does the same was",
    "not looked at.\n",
)


def versions_page(source_note: str) -> str:
    """Return the page that lists the flags with their values in the emulated versions."""
    shown = JUDGED_VERSIONS
    lines = [source_note, "# Emulated versions\n", *_EMULATED, _ON_THREADS]
    for section, flags in groupby(declared_flags(), lambda flag: flag.section):
        lines += [f"## {section.capitalize()}\n", "| flag | " + " | ".join(shown) + " | in Kafka |"]
        lines.append("|---|" + "---|" * (len(shown) + 1))
        for flag in flags:
            values = [_shown(getattr(behaviour(version), flag.name)) for version in shown]
            told = f"{flag.when} ({flag.sources}): {_in_markdown(flag.meaning)}"
            lines.append(f"| `{flag.name}` | {' | '.join(values)} | {told} |")
        lines.append("")
    return "\n".join(lines)


_RELEASES = """\
# Releases

What each release of Kafka changed, from 0.10.2 on, as far as fakekafka emulates it, with the source
of the change and the flag that other code asks for ([emulated versions](../reference/versions.md)).
A release with bug fixes stands under its own number.
"""


def releases_page(source_note: str, defaults: str) -> str:
    """Return the page that lists the changes of each release."""
    changed: dict[str, list[str]] = {}
    for flag in declared_flags():
        for change in flag.changes:
            changed.setdefault(change.release, []).append(_row(flag, change))
    lines = [source_note, _RELEASES]
    for release in sorted(changed, key=_number):
        lines += [f"## {release}\n", "| what | source | flag |", "|---|---|---|"]
        lines += [*changed[release], ""]
    return "\n".join([*lines, defaults])


def _number(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]


def _row(flag: Flag, change: Change) -> str:
    meaning = _in_markdown(flag.meaning)
    if change.value is False:
        meaning = f"no longer: {meaning}"
    elif change.value is not True:
        meaning = f"{_shown(change.value)}: {meaning}"
    return f"| {meaning} | {', '.join(change.sources)} | `{flag.name}` |"
