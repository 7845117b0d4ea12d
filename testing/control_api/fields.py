"""What the fields of the control API may hold: how each kind is checked, told and documented."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...protocol.errors import UsageError

_SHOWN_CHARACTERS = 200


@dataclass(frozen=True)
class Kind:
    """One kind of JSON value."""

    told: str
    """What a field of this kind must be, in words."""
    schema: Mapping[str, Any]
    """The same for the OpenAPI document."""
    holds: Callable[[Any], bool]
    nullable: bool = False
    """Whether null is a value; elsewhere it means that the field is not given."""


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _is_list_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(holds, value))


def _is_machine(value: Any) -> bool:
    return _is_string(value) or _is_integer(value)


def _is_config(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_plain, value.values()))


def _is_assignment(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _is_whole(key) and _is_list_of(_is_integer)(brokers) for key, brokers in value.items()
    )


def _is_partition(value: Any) -> bool:
    match value:
        case [str(), number]:
            return _is_integer(number)
    return False


def _is_move(value: Any) -> bool:
    match value:
        case [topic, number, brokers]:
            target = brokers is None or _is_list_of(_is_integer)(brokers)
            return _is_partition([topic, number]) and target
    return False


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


_ARRAY = {"type": "array", "items": {"type": "array"}}
_BROKERS = {"type": "array", "items": {"type": "integer"}}

KINDS: dict[str, Kind] = {
    "string": Kind("string", {"type": "string"}, _is_string),
    "text": Kind(
        "string or null",
        {"type": ["string", "null"]},
        lambda value: value is None or _is_string(value),
        nullable=True,
    ),
    "integer": Kind("integer (of 32 bits)", {"type": "integer"}, _is_integer),
    "number": Kind("number", {"type": "number"}, _is_number),
    "boolean": Kind("boolean", {"type": "boolean"}, _is_boolean),
    "config": Kind(
        'object, such as {"retention.ms": 5000}',
        {
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        },
        _is_config,
    ),
    "assignment": Kind(
        'object of partition to brokers, such as {"0": [1, 2]}',
        {"type": "object", "additionalProperties": _BROKERS},
        _is_assignment,
    ),
    "partitions": Kind(
        'array of [topic, partition], such as [["orders", 0]]', _ARRAY, _is_list_of(_is_partition)
    ),
    "moves": Kind(
        'array of [topic, partition, brokers or null], such as [["orders", 0, [1, 2]]]',
        _ARRAY,
        _is_list_of(_is_move),
    ),
    "groups": Kind(
        "array of groups of broker ids or machine names, such as [[1], [2, 3]]",
        _ARRAY,
        _is_list_of(_is_list_of(_is_machine)),
    ),
}
"""Name to kind; ``text`` is a string that may be null."""


def checked_body(
    body: Mapping[str, Any], parameters: tuple[tuple[str, str, bool], ...]
) -> dict[str, Any]:
    """The fields that are given, each of its kind; raises ``UsageError`` naming the one at fault.

    ``parameters`` are (name, kind, required); null is as good as not given.
    """
    known = [name for name, _, _ in parameters]
    given = {}
    unknown = [name for name in body if name not in known]
    if unknown:
        raise UsageError(f"unknown {unknown}; fields are {known}")
    for name, kind_name, _ in parameters:
        kind = KINDS[kind_name]
        if name not in body or (body[name] is None and not kind.nullable):
            continue
        if not kind.holds(body[name]):
            raise UsageError(f"{name} must be {kind.told}, not {_shown(body[name])}")
        given[name] = body[name]
    missing = [name for name, _, needed in parameters if needed and name not in given]
    if missing:
        raise UsageError(f"missing {missing}; fields are {known}")
    return given


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."


def whole_number(name: str, text: str) -> int:
    """The number in a part of a path; raises ``UsageError`` for anything else."""
    if not _is_whole(text):
        raise UsageError(f"{name} must be a whole number, not {text!r}")
    return int(text)
