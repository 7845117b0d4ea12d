"""Strict reading of one TOML table: typed values, and an error for every unknown key."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from ...protocol.errors import UsageError, did_you_mean

INTEGER_MAX = 2**64
"""No number of a scenario needs to be greater."""


class ScenarioError(UsageError):
    """A scenario that cannot be used; names the file, the key, and what would be right."""

    def __init__(self, source: str, key: str | None, problem: str) -> None:
        """Without a key it is the file itself that has the problem."""
        if key is None:
            super().__init__(f"{source} {problem}")
        else:
            super().__init__(f"{source}: {key}: {problem}" if key else f"{source}: {problem}")
        self.source = source
        self.key = key or ""


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` or the list of what there is."""
    names = list(known)
    listed = f"; there are {', '.join(names)}" if names else ""
    return did_you_mean(word, names, cutoff=0.5) or listed


_KINDS = {bool: "true or false", int: "a whole number", str: "a text", dict: "a table"}


class Table:
    """A table of the file at a key; every read notes the name, ``finish`` refuses the rest."""

    def __init__(self, source: str, key: str, values: Any) -> None:
        self.source = source
        self.key = key
        if not isinstance(values, Mapping):
            raise ScenarioError(source, key, f"must be a table, not {values!r}")
        self._values = values
        self._asked: dict[str, None] = {}

    def error(self, name: str, problem: str) -> ScenarioError:
        return ScenarioError(self.source, self.path(name), problem)

    def path(self, name: str) -> str:
        if not name:
            return self.key
        return f"{self.key}.{name}" if self.key else name

    def has(self, name: str) -> bool:
        self._asked[name] = None
        return name in self._values

    def raw(self, name: str, default: Any = None) -> Any:
        self._asked[name] = None
        return self._values.get(name, default)

    def rest(self) -> dict[str, Any]:
        """What has not been asked for, and is now."""
        left = {name: value for name, value in self._values.items() if name not in self._asked}
        self._asked.update(dict.fromkeys(left))
        return left

    def finish(self) -> None:
        """Refuse keys that no reader has taken."""
        for name in self._values:
            if name not in self._asked:
                raise self.error(name, f"unknown key{nearest(name, self._asked)}")

    # -- typed values --------------------------------------------------------------------------

    def _typed(self, name: str, kind: type, default: Any) -> Any:
        if not self.has(name):
            return default
        value = self._values[name]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(name, f"must be {_KINDS[kind]}, not {value!r}")
        return value

    def text(self, name: str, default: str = "", choices: Iterable[str] = ()) -> str:
        value: str = self._typed(name, str, default)
        allowed = list(choices)
        if allowed and value not in allowed:
            raise self.error(name, f"{value!r} is not possible{nearest(value, allowed)}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        return bool(self._typed(name, bool, default))

    def integer(self, name: str, default: int, minimum: int = 0, maximum: int = INTEGER_MAX) -> int:
        value: int = self._typed(name, int, default)
        if value < minimum:
            raise self.error(name, f"must be at least {minimum}, not {value}")
        if value > maximum:
            raise self.error(name, f"must be at most {maximum:,}")
        return value

    def number(
        self, name: str, default: float, minimum: float = 0.0, maximum: float = math.inf
    ) -> float:
        if not self.has(name):
            return default
        value = self._values[name]
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or (isinstance(value, int) and abs(value) > INTEGER_MAX)
            or not math.isfinite(value)
        ):
            raise self.error(name, f"must be a number, not {value!r}")
        if not minimum <= value <= maximum:
            span = _span(minimum, maximum)
            raise self.error(name, f"must be {span}, not {value:.10g}")
        return float(value)

    def items(self, name: str) -> list[Any]:
        value = self.raw(name, [])
        if not isinstance(value, list):
            raise self.error(name, f"must be a list, not {value!r}")
        return value

    def table(self, name: str) -> Table:
        return Table(self.source, self.path(name), self.raw(name, {}))

    def tables(self, name: str) -> list[Table]:
        """An array of tables; a single table counts as one."""
        value = self.raw(name, [])
        if isinstance(value, Mapping):
            return [Table(self.source, self.path(name), value)]
        if not isinstance(value, list):
            raise self.error(name, f"must be an array of tables ([[{name}]]), not {value!r}")
        return [Table(self.source, f"{self.path(name)}[{i}]", item) for i, item in enumerate(value)]


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys: Kafka's names may be written without quotes."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _span(minimum: float, maximum: float) -> str:
    if maximum == math.inf:
        return f"at least {minimum:g}"
    return f"{minimum:g} to {maximum:.10g}"


def toml_text(value: Any) -> str:
    """A value as TOML; a text without quotes where it could be nothing else."""
    if isinstance(value, str):
        try:
            tomllib.loads(f"value = {value}")
        except tomllib.TOMLDecodeError:
            return value
    return toml_value(value)


def toml_value(value: Any) -> str:
    """A value as TOML, texts in quotes."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{toml_value(name)} = {toml_value(item)}" for name, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (str, bool)):  # written as in JSON
        return json.dumps(value, ensure_ascii=False)
    return str(value)
