"""The parameters of a suite, read from the signature of its ``scenario``, and their checks.

``def scenario(run, brokers: Count = 3, kafka_version: Version = "3.9")`` has two parameters. An
annotation is ``int``, ``float``, ``str`` or ``bool``, or one of these with limits:
``Annotated[int, AtLeast(2)]``.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import math
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from ...protocol.errors import UsageError
from ...protocol.versions import DEFAULT_KAFKA_VERSION, KAFKA_VERSIONS

_KINDS: dict[type, tuple[type, ...]] = {
    int: (int,),
    float: (int, float),
    str: (str,),
    bool: (bool,),
}


@dataclasses.dataclass(frozen=True, slots=True)
class AtLeast:
    """The smallest value of a number."""

    minimum: float


@dataclasses.dataclass(frozen=True, slots=True)
class AtMost:
    """The largest value of a number."""

    maximum: float


@dataclasses.dataclass(frozen=True, slots=True)
class OneOf:
    """All possible values of a text."""

    choices: tuple[str, ...]


Count = Annotated[int, AtLeast(1)]
"""A whole number of at least 1."""
Milliseconds = Annotated[float, AtLeast(0)]
Version = Annotated[str, OneOf((DEFAULT_KAFKA_VERSION, *KAFKA_VERSIONS))]
"""An emulated release of Kafka."""


@dataclasses.dataclass(frozen=True, slots=True)
class SuiteParameter:
    """A parameter of a suite, which is a column of the table of runs."""

    name: str
    kind: type
    default: Any
    limits: tuple[Any, ...] = ()

    def check(self, value: Any) -> Any:
        """Return a value in this parameter's type; raise ``UsageError`` if it is not allowed."""
        kinds: Any = _KINDS[self.kind]
        is_bool = isinstance(value, bool)
        if not isinstance(value, kinds) or is_bool != (self.kind is bool):
            raise UsageError(f"{self.name} must be {self.kind.__name__}, not {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{self.name} must be a finite number, not {value!r}")
        for limit in self.limits:
            if isinstance(limit, AtLeast) and value < limit.minimum:
                raise UsageError(f"{self.name} must be at least {limit.minimum:g}, not {value!r}")
            if isinstance(limit, AtMost) and value > limit.maximum:
                raise UsageError(f"{self.name} must be at most {limit.maximum:g}, not {value!r}")
            if isinstance(limit, OneOf) and value not in limit.choices:
                choices = ", ".join(dict.fromkeys(limit.choices))
                raise UsageError(f"{self.name} must be one of {choices}, not {value!r}")
        return float(value) if self.kind is float else value


def parameters_of(function: Callable[..., object], source: str) -> dict[str, SuiteParameter]:
    """Return the parameters of a scenario: all arguments but the first, which is the run.

    Raises ``UsageError`` for an argument without a default or of an unsupported type.
    """
    try:
        annotations = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise UsageError(f"{source}: an annotation of scenario cannot be read: {error}") from None
    arguments = list(inspect.signature(function).parameters.values())
    if not arguments:
        raise UsageError(f"{source}: scenario takes no argument; write def scenario(run, ...)")
    parameters: dict[str, SuiteParameter] = {}
    for argument in arguments[1:]:
        name = argument.name
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            raise UsageError(f"{source}: scenario has *{name}; name each parameter")
        if argument.default is argument.empty:
            raise UsageError(f"{source}: parameter {name} has no default; write {name}: int = 3")
        annotation = annotations.get(name, type(argument.default))
        limits: tuple[Any, ...] = ()
        if typing.get_origin(annotation) is Annotated:
            annotation, *more = typing.get_args(annotation)
            limits = tuple(more)
        if annotation not in _KINDS:
            raise UsageError(
                f"{source}: parameter {name} is {annotation!r}; it can be int, float, str or bool"
            )
        parameter = SuiteParameter(name, annotation, argument.default, limits)
        parameters[name] = dataclasses.replace(parameter, default=parameter.check(argument.default))
    return parameters


def check_values(
    suite: str, parameters: Mapping[str, SuiteParameter], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all parameters with the given values or their defaults.

    Raises ``UsageError`` for a parameter that the suite does not have, and for a wrong value.
    """
    for name in values:
        if name not in parameters:
            raise UsageError(f"{suite} has no parameter {name!r}{hint(name, parameters)}")
    return {
        name: parameter.check(values[name]) if name in values else parameter.default
        for name, parameter in parameters.items()
    }


def hint(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message: ``; did you mean 'x'?`` and the known names."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1)
    if near:
        return f"; did you mean {near[0]!r}? There are {', '.join(names)}"
    return f"; there are {', '.join(names)}" if names else "; it has none"
