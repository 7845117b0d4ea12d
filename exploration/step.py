"""The steps of histories: values that can be written as, and parsed from, a line of text."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from types import UnionType
from typing import (
    Any,
    ClassVar,
    Generic,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from ..protocol.errors import UsageError
from ..protocol.values import TopicPartition

World = TypeVar("World", contravariant=True)

SETTLING_EVERY_MS = 100
"""Interval in milliseconds at which a step is checked for whether its consequences are over."""
SETTLES_WITHIN_MS = 120_000
"""Maximum time in milliseconds to wait for the consequences of a step."""


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Step(Generic[World]):
    """Something that is done to a cluster, such as a fault or a request.

    Subclasses become frozen dataclasses. The fields of a step name the brokers, topics and the like
    that it affects, so that it means the same when earlier steps are removed. As text, a step is
    its verb, which is the name of the class in snake case, and a word for each field; defaults at
    the end are omitted.
    """

    verbs: ClassVar[dict[str, type[Step[Any]]]] = {}
    verb: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        cls.verb = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        Step.verbs[cls.verb] = cls
        dataclass(frozen=True)(cls)

    def __str__(self) -> str:
        values = list(self.values)
        defaults = [declared.default for declared in fields(self)]
        while defaults and values[-1] == defaults.pop():
            values.pop()
        words = map(_text_of, (kind for _, kind in _kinds(self.verb)), values)
        return " ".join((self.verb, *words))

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the fields."""
        return tuple(getattr(self, name) for name, _ in _kinds(self.verb))

    def do(self, world: World) -> bool:
        """Do the step; return False if it does not apply to the present state of the world."""
        raise NotImplementedError(f"{self.verb} is for another kind of world")

    def is_settled(self, world: World) -> bool:
        """Return True once the consequences of the step are over and the next one may be done."""
        return True


def parse_step(line: str) -> Step[Any]:
    """Parse the line of a step; raises ``UsageError`` if it is not valid."""
    verb, *words = line.split()
    kind = Step.verbs.get(verb)
    if kind is None:
        raise UsageError(f"no step is called {verb!r}; there are {', '.join(sorted(Step.verbs))}")
    required = sum(declared.default is MISSING for declared in fields(kind))
    kinds = _kinds(verb)
    if not required <= len(words) <= len(kinds):
        raise UsageError(f"{line!r}: {verb} takes {', '.join(name for name, _ in kinds)}")
    try:
        return kind(*(_value_of(kind, word) for (_, kind), word in zip(kinds, words, strict=False)))
    except ValueError as error:
        raise UsageError(f"{line!r}: {error}") from error


def read(text: str) -> tuple[str, list[Step[Any]]]:
    """Parse the text of a file into its description and its steps."""
    about, *lines = text.strip().splitlines()
    return about.removeprefix("# "), [parse_step(line) for line in lines if line.strip()]


def written(about: str, steps: Sequence[Step[Any]]) -> str:
    return "\n".join((f"# {about}", *map(str, steps))) + "\n"


@functools.cache
def _kinds(verb: str) -> tuple[tuple[str, Any], ...]:
    """Return the name and the type of each field."""
    step = Step.verbs[verb]
    hints = get_type_hints(step)
    return tuple((declared.name, hints[declared.name]) for declared in fields(step))


def _text_of(kind: Any, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if get_origin(kind) is tuple:
        items, separator = _items(kind, len(value))
        return separator.join(map(_text_of, items, value)) or "-"
    return str(value)


def _value_of(kind: Any, text: str) -> Any:
    if get_origin(kind) is UnionType:
        return None if text == "-" else _value_of(get_args(kind)[0], text)
    if get_origin(kind) is tuple:
        if text == "-":
            return ()
        _, separator = _items(kind, 0)
        parts = text.split(separator)
        items, _ = _items(kind, len(parts))
        return tuple(map(_value_of, items, parts))
    if kind is bool:
        return {"yes": True, "no": False}[text] if text in ("yes", "no") else int(text)
    if kind is TopicPartition:
        topic, _, partition = text.rpartition("-")
        return TopicPartition(topic, int(partition))
    return kind(text)


def _items(kind: Any, count: int) -> tuple[Sequence[Any], str]:
    """Return the types of a tuple's items, and their separator, as in ``a-0:1,2/a-1:3``."""
    items = get_args(kind)
    if items[-1] is not ...:
        return items, ":"
    return [items[0]] * count, "/" if get_origin(items[0]) is tuple else ","
