"""A wrong version of the package as data: what a file says instead of what, and what catches it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
AREAS = ("replication", "elections", "controller", "zookeeper", "coordinators", "quotas", "acls")
"""Each has a file of mutants of its name beside this one."""


class MutantError(ValueError):
    """A mutant that cannot be made, or a name that none has."""


class Exploration(NamedTuple):
    """Runs of ``fakekafka explore`` from its first seed on."""

    version: str
    target: str
    """Empty: all of them in turn."""
    runs: int
    """In so many one breaks a promise; as many are carried out at most."""


class Mutant(NamedTuple):
    """One wrong version."""

    name: str
    area: str
    file: str
    """Path from the root of the repository."""
    was: str
    """What is replaced; it stands in the file exactly once."""
    now: str
    wrong: str
    """What is wrong then, and what a user would see."""
    catcher: str | Exploration
    """Name of a test as pytest has it, or the runs of an exploration."""

    def applied(self, source: str) -> str:
        """Return the wrong version of the file's text; raises ``MutantError`` if it has no place
        in it, or several."""
        count = source.count(self.was)
        if count != 1:
            there = f"{count} times" if count else "no more"
            raise MutantError(
                f"{self.name} has gone stale: {self.file} has its text {there}, not once"
            )
        return source.replace(self.was, self.now)


def read_mutants(area: str, folder: Path = HERE) -> list[Mutant]:
    """The mutants of an area's file, in its order."""
    tables = tomllib.loads((folder / f"{area}.toml").read_text(encoding="utf-8"))
    return [_mutant(name, area, table) for name, table in tables.items()]


def _mutant(name: str, area: str, table: dict[str, Any]) -> Mutant:
    explored = table.get("explored")
    if (explored is None) == ("test" not in table):
        raise MutantError(f"{name}: either a test or an exploration catches it")
    catcher = table["test"] if explored is None else Exploration(**{"target": "", **explored})
    return Mutant(
        name, area, table["file"], table["was"], table["now"], table["wrong"].strip(), catcher
    )


def chosen(names: Sequence[str], folder: Path = HERE) -> list[Mutant]:
    """The mutants that are called so, or whose area is; all where no name is given.

    Raises ``MutantError`` for a name that nothing has.
    """
    mutants = [mutant for area in AREAS for mutant in read_mutants(area, folder)]
    known = {name for mutant in mutants for name in (mutant.name, mutant.area)}
    for name in names:
        if name not in known:
            raise MutantError(f"no mutant or area is called {name!r}; areas are {', '.join(AREAS)}")
    return [m for m in mutants if not names or m.name in names or m.area in names]
