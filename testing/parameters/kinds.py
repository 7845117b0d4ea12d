"""Kinds of values: what one may be, in words, as a check, and as a schema of JSON.

A kind is the same in every language. It takes a value of Python, TOML or JSON, or reads a text, and
refuses another with one sentence: ``must be a whole number >= 1, not 'x'``.
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
"""Of a value that is refused: it may be of any size."""
_TOLD_CHOICES = 6
"""If there are more, the nearest says enough."""
_INT64_MAX = 2**63 - 1
_NUMBER_MAX = 1e15
"""No time and no rate needs to be greater: 30,000 years in milliseconds."""


class BadArgument(UsageError):
    """A value that cannot be used: where it stands, and what would be right."""

    def __init__(self, problem: str, path: str = "") -> None:
        joint = " " if problem.startswith(("must ", "is ")) else ": "
        super().__init__(f"{path}{joint}{problem}" if path else problem)
        self.problem = problem
        self.path = path
        """Its dotted name, such as ``faults[0].at_ms``; empty for the whole."""

    def below(self, name: str) -> BadArgument:
        """The same, as the table sees it that has the value under a name."""
        dot = "." if name and self.path and not self.path.startswith("[") else ""
        return BadArgument(self.problem, f"{name}{dot}{self.path}")


@contextlib.contextmanager
def as_problem() -> Iterator[None]:
    """Turn a refusal inside, which is a whole sentence, into a problem of the value here."""
    try:
        yield
    except BadArgument:
        raise
    except UsageError as error:
        raise BadArgument(str(error)) from None


class NotOfKind(Exception):
    """Says that a value is of another kind; the kind itself finds the words."""


class Context:
    """The place where a value is written, and what is known of the cluster there.

    Here nothing is known: a broker is looked up when the thing is done. Values are written as in
    Python.
    """

    has_text_keys = False
    """Whether the keys of a mapping can only be strings."""

    def write(self, value: Any) -> str:
        """A value as it is written here."""
        return repr(value)

    def shown(self, value: Any) -> str:
        """The beginning of a value."""
        text = self.write(value)
        return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."

    def broker(self, broker: int | str) -> Any:
        """A broker that is named by its id or its role."""
        return broker

    def machine(self, machine: int | str) -> Any:
        """A machine of the network."""
        return machine

    def topic(self, name: str) -> str:
        """A topic that is there."""
        return name

    def partition(self, topic: str, number: int) -> tuple[str, int]:
        """A partition of a topic."""
        return topic, number

    def replicas(self, broker_ids: list[int]) -> list[int]:
        """The brokers that are to hold a partition, the preferred leader first."""
        return broker_ids

    def server(self, server_id: int) -> int:
        """A ZooKeeper server."""
        return server_id

    def log_dir(self, number: int) -> int:
        """A kind: one of a broker's log directories."""
        return number

    def topic_config(self, config: Mapping[str, str]) -> dict[str, str]:
        """Configuration of a topic."""
        return dict(config)


ANYWHERE = Context()


@frozen
class Kind:
    """A kind of values."""

    words: str
    """The words for what it must be, for messages and documents."""
    schema: Mapping[str, Any]
    """The same as a schema of JSON."""
    take: Callable[[Any, Context], Any]
    """Gives the value as the API has it; raises ``NotOfKind``, or ``BadArgument`` where more can be
    said."""
    example: Any = None
    of_text: Callable[[str], Any] = value_of_text
    """Reads it from an option or a query. A text that is none stays a text, and is refused."""
    takes_null: bool = False
    """Whether null is a value; else it says in JSON that nothing is given."""
    type: type = object
    """Of the value: ``int``, ``float``, ``str`` and ``bool`` are columns of a batch."""

    def told(self, context: Context = ANYWHERE) -> str:
        """Return what it must be, with an example as it is written there."""
        such = "" if self.example is None else f", such as {context.write(self.example)}"
        return self.words + such

    def read(self, value: Any, context: Context = ANYWHERE) -> Any:
        """The value as the API has it; raises ``BadArgument`` for what it cannot be."""
        try:
            return self.take(value, context)
        except NotOfKind:
            raise self.refusal(value, context) from None

    def refusal(self, value: Any, context: Context = ANYWHERE) -> BadArgument:
        """Return what is said of a value that is of another kind."""
        return BadArgument(f"must be {self.told(context)}, not {context.shown(value)}")

    def read_at(self, name: str, value: Any, context: Context) -> Any:
        """The value that a table or a list has under a name."""
        try:
            return self.read(value, context)
        except BadArgument as error:
            raise error.below(name) from None

    def check(self, name: str, value: Any) -> Any:
        """An argument of a call in Python; raises ``BadArgument`` with its name."""
        return self.read_at(name, value, ANYWHERE)


# -- single values ---------------------------------------------------------------------------------


@functools.cache
def whole(least: int | None = None, most: int | None = None, *, limit: int = _INT64_MAX) -> Kind:
    """A whole number in a range; no number that makes sense is above ``limit``."""
    words = "a whole number" + _span(least, most)
    top = limit if most is None else most

    def take(value: Any, context: Context) -> int:
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise NotOfKind
        found = int(value)
        if least is not None and found < least:
            raise NotOfKind
        if found > top or found < -limit - 1:
            if most is not None:
                raise NotOfKind
            raise BadArgument(f"must be at most {limit:,}, not {context.shown(value)}")
        return found

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Kind(words, _without_none(schema), take, of_text=_whole_of_text, type=int)


@functools.cache
def number(
    of_what: str = "", least: float = 0.0, most: float | None = None, *, is_above: bool = False
) -> Kind:
    """A number in a range, or above ``least``; ``of_what`` is its unit in words."""
    unit = f" of {of_what}" if of_what else ""
    if most is None:
        words = f"a finite number{unit} {'>' if is_above else '>='} {least:g}"
    elif is_above:
        words = f"a number{unit} above {least:g} and at most {_written(most)}"
    else:
        words = f"a number{unit}{_span(least, most)}"
    top = _NUMBER_MAX if most is None else most

    def take(value: Any, context: Context) -> float:
        found: Any = value
        if not isinstance(value, Real) or isinstance(value, bool):
            raise NotOfKind
        if not found >= least or (is_above and found == least):  # NaN, too
            raise NotOfKind
        if found > top:
            if most is not None or found == math.inf:
                raise NotOfKind
            raise BadArgument(f"must be at most {top:g}, not {context.shown(value)}")
        return float(found)

    above = {"exclusiveMinimum": least} if is_above else {"minimum": least}
    schema = _without_none({"type": "number", **above, "maximum": most})
    return Kind(words, schema, take, of_text=_number_of_text, type=float)


def _span(least: float | None, most: float | None) -> str:
    if most is None:
        return "" if least is None else f" >= {_written(least)}"
    return f" from {_written(least or 0)} to {_written(most)}"


def _written(number: float) -> str:
    return f"{number:,.10g}" if number >= 1_000_000 else f"{number:.10g}"


def _without_none(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if value is not None}


def _whole_of_text(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text


def _number_of_text(text: str) -> Any:
    found = _whole_of_text(text)
    try:
        return float(text) if found is text else found
    except ValueError:
        return text


def choice(*values: str) -> Kind:
    """A kind: one of several strings."""
    known = list(dict.fromkeys(values))
    names = [repr(value) for value in known]
    words = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

    def take(value: Any, context: Context) -> str:
        if isinstance(value, str) and value in known:
            return value
        hint, shown = did_you_mean(value, known, cutoff=0.5), context.shown(value)
        if hint and len(known) > _TOLD_CHOICES:
            raise BadArgument(f"{shown} is not possible{hint}")
        raise BadArgument(f"must be {words}, not {shown}{hint}")

    return Kind(words, {"type": "string", "enum": known}, take, of_text=str, type=str)


def instance(words: str, kind: Any, schema: Mapping[str, Any], **more: Any) -> Kind:
    """Values of one type of Python."""

    def take(value: Any, _context: Context) -> Any:
        if not isinstance(value, kind):
            raise NotOfKind
        return value

    return Kind(words, schema, take, **{"type": kind, **more})


_TRUE_OR_FALSE = {"true": True, "false": False, "1": True, "0": False}

FLAG = instance(
    "true or false",
    bool,
    {"type": "boolean"},
    of_text=lambda text: _TRUE_OR_FALSE.get(text.lower(), text),
)
STRING = instance("a string", str, {"type": "string"}, of_text=str)
OBJECT = instance("a table", Mapping, {"type": "object"}, type=object)


def _take_name(value: Any, _context: Context) -> str:
    if not isinstance(value, str) or not value:
        raise NotOfKind
    return value


NAME = Kind(
    "a string that is not empty",
    {"type": "string", "minLength": 1},
    _take_name,
    of_text=str,
    type=str,
)


def nullable(kind: Kind) -> Kind:
    """The kind, or null, which is a value of its own."""

    def take(value: Any, context: Context) -> Any:
        return None if value is None else kind.take(value, context)

    schema = {**kind.schema, "type": [kind.schema["type"], "null"]}
    return Kind(f"{kind.words} or null", schema, take, kind.example, takes_null=True)


COUNT = whole(1)
INDEX = whole(0)
"""Numbers of partitions and of log directories, and offsets."""
INT32 = whole(limit=2**31 - 1)
MILLISECONDS = number("milliseconds")
CLOCK_SHIFT = number("milliseconds", -1e11, 1e11)
"""About three years either way."""
CLOCK_RATE = number(least=0.1, most=10.0)
"""The rate of a clock, as a multiple of the right one."""
SECONDS = number("seconds")
PROBABILITY = number(most=1.0)
MEGABYTES_PER_SECOND = number("megabytes per second", is_above=True)


# -- several values --------------------------------------------------------------------------------


def list_of(
    kind: Kind, words: str, example: Any, *, least: int = 0, takes_one: bool = False
) -> Kind:
    """Several values of a kind, as a list; ``takes_one``: or one alone."""

    def take(value: Any, context: Context) -> list[Any]:
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
    return Kind(words, schema, take, example)


def tuple_of(kind: Kind, words: str, example: Any, **more: Any) -> Kind:
    """The same, as a tuple."""
    as_list = list_of(kind, words, example, **more)
    return replace(as_list, take=lambda value, context: tuple(as_list.take(value, context)))


def pair(words: str, example: tuple[float, float], *, rises: bool = False) -> Kind:
    """Two numbers; ``rises``: the second is not below the first."""

    def take(value: Any, context: Context) -> tuple[float, float]:
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise NotOfKind
        first, second = (number().read_at(f"[{n}]", one, context) for n, one in enumerate(value))
        if rises and second < first:
            raise NotOfKind
        return first, second

    schema = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    return Kind(words, schema, take, list(example))
