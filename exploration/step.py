"""A step of a history: a value with one line of text, which says all of it."""

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
"""A step whose consequences go on is asked so often whether they are over."""
SETTLES_WITHIN_MS = 120_000


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Step(Generic[World]):
    """A thing that is done to a cluster.

    Subclasses become frozen dataclasses. A step is resolved: its fields name whom it concerns, so
    that it means the same when steps before it are left out. Its line is the verb, which is the
    name of the class, and a word for each field; at the end defaults are left out.
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
        """The values of its fields."""
        return tuple(getattr(self, name) for name, _ in _kinds(self.verb))

    def do(self, world: World) -> bool:
        """Do it; False if it does not apply to the world as it is."""
        raise NotImplementedError(f"{self.verb} is for another kind of world")

    def is_settled(self, world: World) -> bool:
        """Return whether its consequences are over: no other step is done before."""
        return True


def parse_step(line: str) -> Step[Any]:
    """The step that a line says; ``UsageError`` if it says none."""
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
    """Return what a file says it is about, and its steps."""
    about, *lines = text.strip().splitlines()
    return about.removeprefix("# "), [parse_step(line) for line in lines if line.strip()]


def written(about: str, steps: Sequence[Step[Any]]) -> str:
    return "\n".join((f"# {about}", *map(str, steps))) + "\n"


@functools.cache
def _kinds(verb: str) -> tuple[tuple[str, Any], ...]:
    """Name and kind of each field."""
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
    """The kinds of a tuple's items, and what stands between them, as in ``a-0:1,2/a-1:3``."""
    items = get_args(kind)
    if items[-1] is not ...:
        return items, ":"
    return [items[0]] * count, "/" if get_origin(items[0]) is tuple else ","
