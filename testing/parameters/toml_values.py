"""Conversion of values to and from TOML text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def toml_value(value: Any) -> str:
    """Return a value as TOML, with strings in quotes."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{toml_key(name)} = {toml_value(item)}" for name, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (str, bool)):
        return _as_json(value)
    return str(value)


def toml_key(name: str) -> str:
    """Return a key as TOML, in quotes unless it is a bare key."""
    is_bare = re.fullmatch(r"[\w-]+", name, re.ASCII)
    return name if is_bare else _as_json(name)


def _as_json(value: str | bool) -> str:
    import json  # not needed to start a cluster

    return json.dumps(value, ensure_ascii=False)


def toml_text(value: Any) -> str:
    """Return a value as TOML; a string has no quotes if it cannot be taken for another value."""
    if isinstance(value, str):
        import tomllib

        try:
            tomllib.loads(f"value = {value}")
        except tomllib.TOMLDecodeError:
            return value
    return toml_value(value)


def value_of_text(text: str) -> Any:
    """Return the value of a text in TOML, or the text itself if it is not a TOML value."""
    import tomllib  # not needed to start a cluster

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # a number of thousands of digits; nested too deeply
        return text


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested tables to dotted keys, so that Kafka's names may be written without quotes."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat
