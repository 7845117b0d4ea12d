"""Invalid requests, made from a valid one by changing one field at a time."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fakekafka.wire.kafka.messages.table import Field, Message, includes

_TEXTS = ("", "nope", "a b")
_NUMBERS = (-2, -1, 0, 9)
_OTHER_ID = "1" * 32

Path = tuple[str | int, ...]


def mutations(
    message: Message, version: int, tree: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a label and the fields of each invalid request; the valid value is left out."""
    for path, field in _places(message.fields, version, tree, ()):
        present = _at(tree, path)
        for name, value in _values(field, path, present):
            changed = copy.deepcopy(dict(tree))
            holder = _at(changed, path[:-1])
            holder[path[-1]] = value
            yield f"{_written(path)} {name}", changed


def _places(
    fields: Sequence[Field], version: int, tree: Mapping[str, Any], before: Path
) -> Iterator[tuple[Path, Field]]:
    for field in fields:
        if not includes(field.versions, version) or includes(field.tagged, version):
            continue
        path = (*before, field.name)
        yield path, field
        value = tree.get(field.name)
        if field.children and isinstance(value, list) and value:
            yield from _places(field.children, version, value[0], (*path, 0))


def _at(tree: Any, path: Path) -> Any:
    for part in path:
        if isinstance(part, int) or part in tree:
            tree = tree[part]
        else:
            return None
    return tree


def _written(path: Path) -> str:
    return ".".join(str(part) for part in path if not isinstance(part, int))


def _values(field: Field, path: Path, present: Any) -> Iterator[tuple[str, Any]]:
    if field.is_array:
        yield "null", None
        if present:
            yield "empty", []
            yield "twice", [*present, *present]
    elif field.kind == "string":
        for text in _TEXTS:
            if text != present:
                yield f"{text!r}", text
        if present is not None:
            yield "null", None
    elif field.kind in ("bytes", "records"):
        yield "null", None
        yield "empty", b""
        yield "x", b"x"
    elif field.kind == "bool":
        yield str(not present).lower(), not present
    elif field.kind == "uuid":
        yield "another", _OTHER_ID
    elif field.kind == "float64":
        yield "-1", -1.0
    elif field.kind != "{}":
        for number in _NUMBERS:
            if number != present:
                yield str(number), number
