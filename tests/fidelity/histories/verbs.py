"""A step of a history, and how it is written: one line a step, which a scenario file holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """One thing that is done to a cluster: a verb and its arguments, which have no spaces."""

    verb: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.verb, *self.arguments))


History = Sequence[Step]


def step(verb: str, *arguments: object) -> Step:
    return Step(verb, tuple(map(str, arguments)))


def parse(line: str) -> Step:
    """The step that a line says."""
    verb, *arguments = line.split()
    return Step(verb, tuple(arguments))


def read(text: str) -> tuple[str, list[Step]]:
    """What a file says it is about, and its steps."""
    about, *lines = text.strip().splitlines()
    return about.removeprefix("# "), [parse(line) for line in lines if line.strip()]


def written(about: str, history: History) -> str:
    return "\n".join((f"# {about}", *map(str, history))) + "\n"


def replicas_text(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))


def assignment_text(assignment: Sequence[Sequence[int]]) -> str:
    """Partitions in order: ``1,2/2,3`` are two with two replicas each."""
    return "/".join(map(replicas_text, assignment))


def replicas_of(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def assignment_of(text: str) -> list[list[int]]:
    return [replicas_of(part) for part in text.split("/")]
