"""The errors in a response, as text."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition

_ERRORS_SHOWN = 3
_WITHOUT_ERRORS = frozenset(
    {
        "int", "str", "bytes", "bool", "float", "None", "tuple", "memoryview",
        "TopicPartition", "RecordBatch", "AbortedTransaction",
    }
)  # fmt: skip
"""Types of fields that contain no error."""


def errors_text(response: object) -> str | None:
    """Return the first errors in a response with their subjects; None if there is no error."""
    if not has_error(response):
        return None
    return ", ".join(dict.fromkeys(text for _, text in first_errors(response)))


def first_errors(response: object) -> list[tuple[ErrorCode, str]]:
    """Return the first errors in a response, each with a text of its subject and name."""
    return list(islice(_errors(response, ""), _ERRORS_SHOWN))


def has_error(value: Any) -> bool:
    """Return whether a response contains an error; faster than ``first_errors``."""
    kind = value.__class__
    if kind is ErrorCode:
        return value is not ErrorCode.NONE
    if kind is tuple:
        return any(map(has_error, value)) if value else False
    names = _known_fields.get(kind)
    if names is None:
        names = _fields(kind) if hasattr(kind, "__dataclass_fields__") else ()
        _known_fields[kind] = names
    for name in names:
        found = getattr(value, name)
        if found is not ErrorCode.NONE and found is not None and has_error(found):
            return True
    return False


_known_fields: dict[type, tuple[str, ...]] = {}


@functools.cache
def _fields(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a message that may contain an error."""
    return tuple(
        field.name
        for field in dataclasses.fields(kind)
        if not _WITHOUT_ERRORS.issuperset(re.findall(r"\w+", str(field.type)))
    )


def _errors(value: Any, about: str) -> Iterator[tuple[ErrorCode, str]]:
    if isinstance(value, ErrorCode):
        if value is not ErrorCode.NONE:
            yield value, f"{about} {value.name}".strip()
    elif isinstance(value, tuple):
        if value and isinstance(value[0], str | TopicPartition):
            about = str(value[0])
        for item in value:
            yield from _errors(item, about)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        about = str(getattr(value, "topic_partition", None) or getattr(value, "name", "") or about)
        kind: Any = type(value)
        for name in _fields(kind):
            yield from _errors(getattr(value, name), about)
