"""Parameters, each with a name, a kind of value and a meaning, and the reading of their values.

One table of parameters serves every language. A ``declared`` field of a dataclass is a parameter,
too.
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
"""Marks a parameter without a default, which is absent from the result if it is not given."""


@frozen
class Parameter:
    """An argument of an action, or a key of a table."""

    name: str
    kind: Kind
    is_required: bool = False
    meaning: str = ""
    default: Any = NO_DEFAULT
    default_words: str = ""
    """Description of the default in documents, if it is not just a value."""
    key: str = ""
    """Name in scenario files; empty if it is the same."""

    @property
    def in_files(self) -> Parameter:
        """The parameter under its name in scenario files."""
        return dataclasses.replace(self, name=self.key, key="") if self.key else self


def required(
    name: str, kind: Kind, meaning: str = "", *, default: Any = NO_DEFAULT, key: str = ""
) -> Parameter:
    """Return a parameter that must be given."""
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
    """Return a parameter that may be left out."""
    return Parameter(name, kind, False, meaning, default, default_words, key)


def read(
    parameters: Iterable[Parameter],
    given: Mapping[str, Any],
    context: Context = ANYWHERE,
    *,
    other_names: Iterable[str] = (),
    fills_defaults: bool = False,
) -> dict[str, Any]:
    """Return the given values, in the order of the parameters.

    Null counts as not given. The error for an unknown key also lists ``other_names``.
    Raises ``BadArgument`` with the name at fault.
    """
    known = {parameter.name: parameter for parameter in parameters}
    if not isinstance(given, Mapping):
        raise BadArgument(f"must be a table, not {context.write_shortened(given)}")
    for name in given:
        if name not in known:
            raise unknown_key(name, [*known, *other_names])
    found = {}
    for name, parameter in known.items():
        kind = parameter.kind
        if name not in given or (given[name] is None and not kind.takes_null):
            if parameter.is_required:
                raise is_missing(kind.describe(context), name)
            if fills_defaults and parameter.default is not NO_DEFAULT:
                found[name] = parameter.default
            continue
        found[name] = kind.read_at(name, given[name], context)
    return found


def is_missing(right: str, name: str) -> BadArgument:
    """Return the error for a missing key."""
    return BadArgument(f"is missing; write {right}", name)


def unknown_key(name: str, known: Iterable[str]) -> BadArgument:
    """Return the error for a key that a table does not have."""
    return BadArgument(f"unknown key{nearest(name, known)}", name)


@contextlib.contextmanager
def inside(name: str) -> Iterator[None]:
    """Put a name before the path of each ``BadArgument`` raised inside."""
    try:
        yield
    except BadArgument as error:
        raise error.with_prefix(name) from None


def nearest(word: object, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?``, or the list of known names."""
    names = list(known)
    listed = f"; there are {', '.join(names)}" if names else ""
    return did_you_mean(word, names, cutoff=0.5) or listed


# -- dataclasses as tables -------------------------------------------------------------------------


_DECLARED = "parameter"


def declared(default: Any, kind: Kind, meaning: str = "", *, default_words: str = "") -> Any:
    """Return a dataclass field that is a parameter; without a default it must be given."""
    metadata = {_DECLARED: (kind, default is NO_DEFAULT, meaning, default, default_words)}
    if default is NO_DEFAULT:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@functools.cache
def parameters_of(table: type) -> tuple[Parameter, ...]:
    """Return the declared fields of a dataclass as parameters."""
    return tuple(
        Parameter(field.name, *field.metadata[_DECLARED])
        for field in dataclasses.fields(table)
        if _DECLARED in field.metadata
    )


def tables_of(table: type) -> Kind:
    """Return the kind of arrays of tables, each read as this dataclass; one table is accepted as
    an array."""

    def convert(value: Any, context: Context) -> tuple[Any, ...]:
        entries = [value] if isinstance(value, Mapping) else value
        if not isinstance(entries, list):
            raise NotOfKind
        found = []
        for place, entry in enumerate(entries):
            with inside(f"[{place}]"):
                found.append(table(**read(parameters_of(table), entry, context)))
        return tuple(found)

    return Kind("an array of tables", {"type": "array", "items": {"type": "object"}}, convert)
