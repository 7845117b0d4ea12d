"""Parameters: a name, what its value may be, and what it means; tables of them are read here.

One table serves every language. A field of a dataclass that is ``declared`` is a parameter, too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...protocol.errors import did_you_mean
from ...protocol.values import frozen
from .kinds import ANYWHERE, BadArgument, Context, Kind, NotOfKind

NO_DEFAULT: Any = object()
"""The default of what is just not given."""


@frozen
class Parameter:
    """An argument of something that can be done, or a key of a table."""

    name: str
    kind: Kind
    is_required: bool = False
    meaning: str = ""
    default: Any = NO_DEFAULT
    default_words: str = ""
    """For documents, where the default is not just a value."""
    key: str = ""
    """Its name in scenario files, where that is another one."""

    @property
    def in_files(self) -> Parameter:
        """As scenario files call it."""
        return dataclasses.replace(self, name=self.key, key="") if self.key else self


def required(
    name: str, kind: Kind, meaning: str = "", *, default: Any = NO_DEFAULT, key: str = ""
) -> Parameter:
    """A parameter that must be given."""
    return Parameter(name, kind, True, meaning, default, key=key)


def optional(
    name: str,
    kind: Kind,
    meaning: str = "",
    default: Any = NO_DEFAULT,
    *,
    default_words: str = "",
    key: str = "",
) -> Parameter:
    """A parameter that may be left out."""
    return Parameter(name, kind, False, meaning, default, default_words, key)


def read(
    parameters: Iterable[Parameter],
    given: Mapping[str, Any],
    context: Context = ANYWHERE,
    *,
    beside: Iterable[str] = (),
    fills_defaults: bool = False,
) -> dict[str, Any]:
    """The values that are given, in the order of the parameters.

    Null is as good as not given. ``beside`` are names that the same table has for others. Raises
    ``BadArgument`` with the name at fault.
    """
    known = {parameter.name: parameter for parameter in parameters}
    if not isinstance(given, Mapping):
        raise BadArgument(f"must be a table, not {context.shown(given)}")
    for name in given:
        if name not in known:
            raise unknown_key(name, [*known, *beside])
    found = {}
    for name, parameter in known.items():
        kind = parameter.kind
        if name not in given or (given[name] is None and not kind.takes_null):
            if parameter.is_required:
                raise is_missing(kind.told(context), name)
            if fills_defaults and parameter.default is not NO_DEFAULT:
                found[name] = parameter.default
            continue
        found[name] = kind.read_at(name, given[name], context)
    return found


def is_missing(right: str, name: str) -> BadArgument:
    """Return what is said of a key that must be given."""
    return BadArgument(f"is missing; write {right}", name)


def unknown_key(name: str, known: Iterable[str]) -> BadArgument:
    """Return what is said of a key that a table does not have."""
    return BadArgument(f"unknown key{nearest(name, known)}", name)


@contextlib.contextmanager
def inside(name: str) -> Iterator[None]:
    """Problems inside are told with this name before theirs."""
    try:
        yield
    except BadArgument as error:
        raise error.below(name) from None


def nearest(word: object, known: Iterable[str]) -> str:
    """``; did you mean 'x'?``, or the list of what there is."""
    names = list(known)
    listed = f"; there are {', '.join(names)}" if names else ""
    return did_you_mean(word, names, cutoff=0.5) or listed


# -- dataclasses as tables -------------------------------------------------------------------------


_DECLARED = "parameter"


def declared(default: Any, kind: Kind, meaning: str = "", *, default_words: str = "") -> Any:
    """A field of a dataclass that is a parameter; without a default it must be given."""
    metadata = {_DECLARED: (kind, default is NO_DEFAULT, meaning, default, default_words)}
    if default is NO_DEFAULT:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@functools.cache
def parameters_of(table: type) -> tuple[Parameter, ...]:
    """The declared fields of a dataclass."""
    return tuple(
        Parameter(field.name, *field.metadata[_DECLARED])
        for field in dataclasses.fields(table)
        if _DECLARED in field.metadata
    )


def tables_of(table: type) -> Kind:
    """Kind of an array of such tables; one alone is an array, too."""

    def take(value: Any, context: Context) -> tuple[Any, ...]:
        entries = [value] if isinstance(value, Mapping) else value
        if not isinstance(entries, list):
            raise NotOfKind
        found = []
        for place, entry in enumerate(entries):
            with inside(f"[{place}]"):
                found.append(table(**read(parameters_of(table), entry, context)))
        return tuple(found)

    return Kind("an array of tables", {"type": "array", "items": {"type": "object"}}, take)
