"""Stores histories that reach what few others do: ``python -m fakekafka.tests.histories.corpus``.

Reads the output of ``fakekafka explore --out DIRECTORY``, takes the late runs that reached
something new, removes the steps that are not needed for it, and writes the rest to ``rare/``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fakekafka.exploration.generator import shrink
from fakekafka.exploration.history import TARGETS, History, Outcome, run
from fakekafka.exploration.step import Step, parse_step
from fakekafka.tests.support.paths import ROOT

FOLDER = ROOT / "tests" / "histories" / "rare"
KINDS = ("state", "transition", "error", "flag")
"""Kinds of reached items that are worth a history; faults and their pairs come from the plan."""
_BEGIN = "Reaches "
_RUNS_MAX = 80
"""Maximum number of runs to shorten a history."""


class Kept(NamedTuple):
    """A history and the items that it reaches."""

    history: History
    items: frozenset[str]

    @property
    def about(self) -> str:
        return f"{_BEGIN}{'; '.join(sorted(self.items))}."

    @property
    def file_name(self) -> str:
        """File name, made from the first item that the history reaches."""
        words = re.sub(r"[^a-z0-9]+", "_", min(self.items).lower())
        version = self.history.kafka_version.replace(".", "_")
        return f"{words}_{version}.txt"


def items_of(about: str) -> frozenset[str]:
    """Return the items that a kept history reaches, from its first line."""
    return frozenset(about.removeprefix(_BEGIN).removesuffix(".").split("; "))


def late_finds(runs: Path, version: str, after: int) -> Iterator[Kept]:
    """Yield the runs that reached something new after ``after`` others."""
    with runs.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            found = json.loads(line)
            items = {item for item in found["new"] if item.partition(":")[0] in KINDS}
            if number >= after and items and not found["violations"]:
                steps = tuple(map(parse_step, found["taken"]))
                history = History(TARGETS[found["target"]], version, found["seed"], steps)
                yield Kept(history, frozenset(items))


def shortened(kept: Kept) -> Kept | None:
    """Remove unneeded steps of a history; return None if its items are not reached again."""
    runs = 0

    def reaches(steps: Sequence[Step[Any]]) -> bool:
        nonlocal runs
        runs += 1
        if runs > _RUNS_MAX:
            raise _Enough
        if not is_reached(kept.items, run(kept.history.with_steps(steps), covers=True)):
            return False
        found.append(kept.history.with_steps(steps))
        return True

    found: list[History] = []
    with contextlib.suppress(_Enough):
        if reaches(kept.history.steps or ()):
            shrink(kept.history.steps or (), reaches)
    return Kept(found[-1], kept.items) if found else None


def is_reached(items: frozenset[str], outcome: Outcome) -> bool:
    """Return True if a run reached all items and broke no promise."""
    return not outcome.violations and items <= outcome.reached


class _Enough(Exception):
    """Raised when the budget of runs is used up."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m fakekafka.tests.histories.corpus")
    parser.add_argument("directory", type=Path, help="as --out of the exploration names it")
    parser.add_argument("--kafka-version", required=True)
    parser.add_argument("--after", type=int, default=200, help="runs that are passed over")
    parser.add_argument("--most", type=int, default=12, help="histories; the latest are taken")
    chosen = parser.parse_args(arguments)
    finds = list(late_finds(chosen.directory / "runs.jsonl", chosen.kafka_version, chosen.after))
    for find in finds[-chosen.most :]:
        kept = shortened(find)
        if kept is None:
            print(f"not reached again: {find.about}")
            continue
        (FOLDER / kept.file_name).write_text(kept.history.written(kept.about), encoding="utf-8")
        print(f"{kept.file_name}: {'; '.join(map(str, kept.history.steps or ()))}")


if __name__ == "__main__":
    main()
