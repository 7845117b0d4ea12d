"""The text of a scenario's values, so that a changed scenario can be saved as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..testing.parameters.toml_values import flatten, toml_key, toml_value


def scenario_text(values: Mapping[str, Any]) -> str:
    """Return a scenario's values as TOML, with tables after plain values."""
    return "\n".join(_lines(values, "")).strip() + "\n"


def _lines(values: Mapping[str, Any], prefix: str) -> Iterator[str]:
    tables: list[tuple[str, str, Mapping[str, Any]]] = []
    for name, value in values.items():
        if name == "config" and isinstance(value, Mapping):
            value = flatten(value)  # Kafka's names contain dots
        key = toml_key(name)
        if isinstance(value, Mapping):
            tables.append((f"[{prefix}{key}]", f"{prefix}{key}.", value))
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            tables += [(f"[[{prefix}{key}]]", f"{prefix}{key}.", item) for item in value]
        else:
            yield f"{key} = {toml_value(value)}"
    for head, below, table in tables:
        if not table or any(not isinstance(item, Mapping) for item in table.values()):
            yield ""
            yield head
        yield from _lines(table, below)
