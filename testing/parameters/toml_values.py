"""Values as TOML text, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def toml_value(value: Any) -> str:
    """A value as TOML, strings in quotes."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{toml_key(name)} = {toml_value(item)}" for name, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (str, bool)):
        return _as_json(value)
    return str(value)


def toml_key(name: str) -> str:
    """A key as TOML, in quotes where it has other characters than a word."""
    is_bare = re.fullmatch(r"[\w-]+", name, re.ASCII)
    return name if is_bare else _as_json(name)


def _as_json(value: str | bool) -> str:
    import json  # a cluster starts without it

    return json.dumps(value, ensure_ascii=False)


def toml_text(value: Any) -> str:
    """A value as TOML; a string without quotes where it could be nothing else."""
    if isinstance(value, str):
        import tomllib

        try:
            tomllib.loads(f"value = {value}")
        except tomllib.TOMLDecodeError:
            return value
    return toml_value(value)


def value_of_text(text: str) -> Any:
    """The TOML value that a text is; the text itself where it is none."""
    import tomllib  # a cluster starts without it

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # a number of thousands of digits; nested too deeply
        return text


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys: Kafka's names may be written without quotes."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat
