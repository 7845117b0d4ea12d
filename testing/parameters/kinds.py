"""Kinds of values. A kind describes a value in words, checks it, and has its JSON schema.

A kind is the same in every language. It accepts a value of Python, TOML or JSON, or parses a text,
and refuses a wrong value with one sentence: ``must be a whole number >= 1, not 'x'``.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

from ...protocol.errors import UsageError, did_you_mean
from ...protocol.values import frozen
from .toml_values import value_of_text

SHOWN_CHARACTERS = 200
"""Maximum number of characters that an error shows of a refused value."""
_LISTED_CHOICES_MAX = 6
"""Number of choices above which an error names only the nearest."""
_INT64_MAX = 2**63 - 1
_NUMBER_MAX = 1e15
"""Maximum of times and rates: 30,000 years in milliseconds."""


class BadArgument(UsageError):
    """A value that cannot be used; the message says where it is, and what would be right."""

    def __init__(self, problem: str, path: str = "") -> None:
        separator = " " if problem.startswith(("must ", "is ")) else ": "
        super().__init__(f"{path}{separator}{problem}" if path else problem)
        self.problem = problem
        self.path = path
        """Dotted name of the value, such as ``faults[0].at_ms``; empty for the whole input."""

    def with_prefix(self, name: str) -> BadArgument:
        """Return this error with a name put before its path."""
        dot = "." if name and self.path and not self.path.startswith("[") else ""
        return BadArgument(self.problem, f"{name}{dot}{self.path}")


@contextlib.contextmanager
def as_problem() -> Iterator[None]:
    """Turn a ``UsageError`` raised inside into a ``BadArgument`` of the same text."""
    try:
        yield
    except BadArgument:
        raise
    except UsageError as error:
        raise BadArgument(str(error)) from None


class NotOfKind(Exception):
    """Raised for a value of another kind; ``Kind.refusal`` makes the message."""


class Context:
    """The language in which a value is written, and what is known of the cluster there.

    Its methods check a part of a cluster and return it. Here nothing is known, and a broker is
    looked up only when it is used. Values are written as in Python.
    """

    has_text_keys = False
    """True if the keys of a mapping can only be strings."""

    def write(self, value: Any) -> str:
        """Return a value as it is written in this language."""
        return repr(value)

    def write_shortened(self, value: Any) -> str:
        """Return a value as it is written, shortened if necessary."""
        text = self.write(value)
        return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."

    def broker(self, broker: int | str) -> Any:
        """Check a broker named by its id or its role."""
        return broker

    def machine(self, machine: int | str) -> Any:
        """Check a machine of the network."""
        return machine

    def topic(self, name: str) -> str:
        """Check a topic that must exist."""
        return name

    def partition(self, topic: str, number: int) -> tuple[str, int]:
        """Check a partition of a topic."""
        return topic, number

    def replicas(self, broker_ids: list[int]) -> list[int]:
        """Check the brokers that are to hold a partition, the preferred leader first."""
        return broker_ids

    def server(self, server_id: int) -> int:
        """Check the id of a ZooKeeper server."""
        return server_id

    def log_dir(self, number: int) -> int:
        """Check the number of a broker's log directory."""
        return number

    def topic_config(self, config: Mapping[str, str]) -> dict[str, str]:
        """Check the configuration of a topic."""
        return dict(config)


ANYWHERE = Context()


@frozen
class Kind:
    """A kind of values."""

    words: str
    """Description of the value, for messages and documents."""
    schema: Mapping[str, Any]
    """JSON schema of the value."""
    convert: Callable[[Any, Context], Any]
    """Called with a value and its context; returns the value as the API has it. Raises
    ``NotOfKind``, or ``BadArgument`` to say more."""
    example: Any = None
    parse_text: Callable[[str], Any] = value_of_text
    """Parses the text of an option or a query. A text that cannot be parsed is returned, and
    ``convert`` refuses it."""
    takes_null: bool = False
    """True if null is a value of its own; otherwise null means that no value is given."""
    type: type = object
    """Type of the value; ``int``, ``float``, ``str`` and ``bool`` become columns of a batch."""

    def describe(self, context: Context = ANYWHERE) -> str:
        """Return the description, with an example as it is written in a context."""
        example = "" if self.example is None else f", such as {context.write(self.example)}"
        return self.words + example

    def read(self, value: Any, context: Context = ANYWHERE) -> Any:
        """Return the value as the API has it; ``BadArgument`` if it is not of this kind."""
        try:
            return self.convert(value, context)
        except NotOfKind:
            raise self.refusal(value, context) from None

    def refusal(self, value: Any, context: Context = ANYWHERE) -> BadArgument:
        """Return the error for a value of another kind."""
        return BadArgument(
            f"must be {self.describe(context)}, not {context.write_shortened(value)}"
        )

    def read_at(self, name: str, value: Any, context: Context) -> Any:
        """Read the value that a table or a list has under a name."""
        try:
            return self.read(value, context)
        except BadArgument as error:
            raise error.with_prefix(name) from None

    def check(self, name: str, value: Any) -> Any:
        """Check an argument of a call in Python; ``BadArgument`` has its name."""
        return self.read_at(name, value, ANYWHERE)


# -- single values ---------------------------------------------------------------------------------


@functools.cache
def whole(least: int | None = None, most: int | None = None, *, limit: int = _INT64_MAX) -> Kind:
    """Return the kind of whole numbers in a range; ``limit`` applies where no ``most`` is given."""
    words = "a whole number" + _range_words(least, most)
    top = limit if most is None else most

    def convert(value: Any, context: Context) -> int:
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise NotOfKind
        found = int(value)
        if least is not None and found < least:
            raise NotOfKind
        if found > top or found < -limit - 1:
            if most is not None:
                raise NotOfKind
            raise BadArgument(f"must be at most {limit:,}, not {context.write_shortened(value)}")
        return found

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Kind(words, _without_none(schema), convert, parse_text=_parse_whole_number, type=int)


@functools.cache
def number(
    of_what: str = "", least: float = 0.0, most: float | None = None, *, is_above: bool = False
) -> Kind:
    """Return the kind of numbers in a range, without ``least`` itself if ``is_above``.

    ``of_what`` is the unit in words.
    """
    unit = f" of {of_what}" if of_what else ""
    if most is None:
        words = f"a finite number{unit} {'>' if is_above else '>='} {least:g}"
    elif is_above:
        words = f"a number{unit} above {least:g} and at most {_format_number(most)}"
    else:
        words = f"a number{unit}{_range_words(least, most)}"
    top = _NUMBER_MAX if most is None else most

    def convert(value: Any, context: Context) -> float:
        found: Any = value
        if not isinstance(value, Real) or isinstance(value, bool):
            raise NotOfKind
        if not found >= least or (is_above and found == least):  # NaN, too
            raise NotOfKind
        if found > top:
            if most is not None or found == math.inf:
                raise NotOfKind
            raise BadArgument(f"must be at most {top:g}, not {context.write_shortened(value)}")
        return float(found)

    above = {"exclusiveMinimum": least} if is_above else {"minimum": least}
    schema = _without_none({"type": "number", **above, "maximum": most})
    return Kind(words, schema, convert, parse_text=_parse_number, type=float)


def _range_words(least: float | None, most: float | None) -> str:
    if most is None:
        return "" if least is None else f" >= {_format_number(least)}"
    return f" from {_format_number(least or 0)} to {_format_number(most)}"


def _format_number(number: float) -> str:
    return f"{number:,.10g}" if number >= 1_000_000 else f"{number:.10g}"


def _without_none(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if value is not None}


def _parse_whole_number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text


def _parse_number(text: str) -> Any:
    found = _parse_whole_number(text)
    try:
        return float(text) if found is text else found
    except ValueError:
        return text


def choice(*values: str) -> Kind:
    """Return the kind of one of several strings."""
    known = list(dict.fromkeys(values))
    names = [repr(value) for value in known]
    words = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

    def convert(value: Any, context: Context) -> str:
        if isinstance(value, str) and value in known:
            return value
        hint, shown = did_you_mean(value, known, cutoff=0.5), context.write_shortened(value)
        if hint and len(known) > _LISTED_CHOICES_MAX:
            raise BadArgument(f"{shown} is not possible{hint}")
        raise BadArgument(f"must be {words}, not {shown}{hint}")

    return Kind(words, {"type": "string", "enum": known}, convert, parse_text=str, type=str)


def instance(words: str, kind: Any, schema: Mapping[str, Any], **more: Any) -> Kind:
    """Return the kind of values of a Python type."""

    def convert(value: Any, _context: Context) -> Any:
        if not isinstance(value, kind):
            raise NotOfKind
        return value

    return Kind(words, schema, convert, **{"type": kind, **more})


_TRUE_OR_FALSE = {"true": True, "false": False, "1": True, "0": False}

FLAG = instance(
    "true or false",
    bool,
    {"type": "boolean"},
    parse_text=lambda text: _TRUE_OR_FALSE.get(text.lower(), text),
)
STRING = instance("a string", str, {"type": "string"}, parse_text=str)
OBJECT = instance("a table", Mapping, {"type": "object"}, type=object)


def _convert_name(value: Any, _context: Context) -> str:
    if not isinstance(value, str) or not value:
        raise NotOfKind
    return value


NAME = Kind(
    "a string that is not empty",
    {"type": "string", "minLength": 1},
    _convert_name,
    parse_text=str,
    type=str,
)


def nullable(kind: Kind) -> Kind:
    """Return a kind that also accepts null as a value of its own."""

    def convert(value: Any, context: Context) -> Any:
        return None if value is None else kind.convert(value, context)

    schema = {**kind.schema, "type": [kind.schema["type"], "null"]}
    return Kind(f"{kind.words} or null", schema, convert, kind.example, takes_null=True)


COUNT = whole(1)
INDEX = whole(0)
"""Number of a partition or a log directory, or an offset."""
INT32 = whole(limit=2**31 - 1)
MILLISECONDS = number("milliseconds")
CLOCK_SHIFT = number("milliseconds", -1e11, 1e11)
"""A shift of a wall clock by up to about three years, forward or back."""
CLOCK_RATE = number(least=0.1, most=10.0)
"""The rate of a clock, as a multiple of the usual rate."""
SECONDS = number("seconds")
PROBABILITY = number(most=1.0)
MEGABYTES_PER_SECOND = number("megabytes per second", is_above=True)


# -- several values --------------------------------------------------------------------------------


def list_of(
    kind: Kind, words: str, example: Any, *, least: int = 0, takes_one: bool = False
) -> Kind:
    """Return the kind of lists of a kind; ``takes_one`` also accepts a single value."""

    def convert(value: Any, context: Context) -> list[Any]:
        if takes_one and (isinstance(value, str) or not isinstance(value, Iterable)):
            value = [value]
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise NotOfKind
        found = [kind.read_at(f"[{place}]", item, context) for place, item in enumerate(value)]
        if len(found) < least:
            raise NotOfKind
        return found

    schema: dict[str, Any] = {"type": "array", "items": dict(kind.schema)}
    if least:
        schema["minItems"] = least
    return Kind(words, schema, convert, example)


def tuple_of(kind: Kind, words: str, example: Any, **more: Any) -> Kind:
    """Return the kind of lists of a kind that become tuples."""
    as_list = list_of(kind, words, example, **more)
    return replace(as_list, convert=lambda value, context: tuple(as_list.convert(value, context)))


def pair(words: str, example: tuple[float, float], *, rises: bool = False) -> Kind:
    """Return the kind of two numbers; with ``rises`` the second is not below the first."""

    def convert(value: Any, context: Context) -> tuple[float, float]:
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise NotOfKind
        first, second = (number().read_at(f"[{n}]", one, context) for n, one in enumerate(value))
        if rises and second < first:
            raise NotOfKind
        return first, second

    schema = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    return Kind(words, schema, convert, list(example))
