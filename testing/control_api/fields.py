"""What the fields of the control API may hold: how each kind is checked, told and documented."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...protocol.errors import UsageError

_SHOWN_CHARACTERS = 200


class Field(NamedTuple):
    """A field of a body, or a parameter of a query."""

    name: str
    kind: str
    """A name in ``KINDS``."""
    is_required: bool = False
    meaning: str = ""


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
    of_text: Callable[[str], Any] | None = None
    """Reads it from a query; None where it cannot stand in one. Text that is none stays text."""


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _is_list_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(holds, value))


def _is_pair(value: Any) -> bool:
    return _is_list_of(_is_number)(value) and len(value) == 2


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


def _is_limit(value: Any) -> bool:
    return value == "all" or _is_integer(value)


def _is_partition_error(value: Any) -> bool:
    match value:
        case [topic, number, error]:
            return _is_partition([topic, number]) and (_is_string(error) or _is_integer(error))
    return False


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _integer_of(text: str) -> Any:
    return int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else text


def _boolean_of(text: str) -> Any:
    return {"true": True, "false": False}.get(text, text)


_ARRAY = {"type": "array", "items": {"type": "array"}}
_BROKERS = {"type": "array", "items": {"type": "integer"}}
_PAIR = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}

KINDS: dict[str, Kind] = {
    "string": Kind("string", {"type": "string"}, _is_string, of_text=str),
    "strings": Kind(
        'array of strings, such as ["FetchResponse"]',
        {"type": "array", "items": {"type": "string"}},
        _is_list_of(_is_string),
    ),
    "text": Kind(
        "string or null",
        {"type": ["string", "null"]},
        lambda value: value is None or _is_string(value),
        nullable=True,
    ),
    "integer": Kind("integer (of 32 bits)", {"type": "integer"}, _is_integer, of_text=_integer_of),
    "offset": Kind(
        "offset (an integer from 0)",
        {"type": "integer", "minimum": 0},
        _is_offset,
        of_text=_integer_of,
    ),
    "number": Kind("number", {"type": "number"}, _is_number),
    "range": Kind("array of two numbers, such as [1, 5]", _PAIR, _is_pair),
    "boolean": Kind("boolean", {"type": "boolean"}, _is_boolean, of_text=_boolean_of),
    "machine": Kind(
        'broker id or the name of a machine, such as 2 or "zk-1"',
        {"type": ["integer", "string"]},
        _is_machine,
    ),
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
    "partition_errors": Kind(
        'array of [topic, partition, error], such as [["orders", 0, "NOT_LEADER_OR_FOLLOWER"]]',
        _ARRAY,
        lambda value: bool(value) and _is_list_of(_is_partition_error)(value),
    ),
    "limit": Kind('integer or "all"', {"type": ["integer", "string"]}, _is_limit),
    "object": Kind("object", {"type": "object"}, lambda value: isinstance(value, dict)),
    "groups": Kind(
        "array of groups of broker ids or machine names, such as [[1], [2, 3]]",
        _ARRAY,
        _is_list_of(_is_list_of(_is_machine)),
    ),
}
"""Name to kind; ``text`` is a string that may be null."""


def checked_fields(given: Mapping[str, Any], fields: tuple[Field, ...]) -> dict[str, Any]:
    """The fields that are given, each of its kind; raises ``UsageError`` naming the one at fault.

    Null is as good as not given.
    """
    known = [field.name for field in fields]
    checked = {}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UsageError(f"unknown {unknown}; fields are {known}")
    for name, kind_name, _, _ in fields:
        kind = KINDS[kind_name]
        if name not in given or (given[name] is None and not kind.nullable):
            continue
        if not kind.holds(given[name]):
            raise UsageError(f"{name} must be {kind.told}, not {_shown(given[name])}")
        checked[name] = given[name]
    missing = [field.name for field in fields if field.is_required and field.name not in checked]
    if missing:
        raise UsageError(f"missing {missing}; fields are {known}")
    return checked


def checked_query(given: Mapping[str, str], fields: tuple[Field, ...]) -> dict[str, Any]:
    """The same for the parameters of a query, which are text."""
    readers = {field.name: KINDS[field.kind].of_text for field in fields}
    values = {}
    for name, text in given.items():
        read = readers.get(name)
        values[name] = text if read is None else read(text)
    return checked_fields(values, fields)


def _shown(value: Any) -> str:
    text = json.dumps(_beginning(value), ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."


def _beginning(value: Any) -> Any:
    """What may be shown of a value, which may be of any size."""
    if isinstance(value, str):
        return value[: _SHOWN_CHARACTERS + 1]
    if isinstance(value, list):
        return [_beginning(item) for item in value[:_SHOWN_CHARACTERS]]
    if isinstance(value, dict):
        kept = list(value.items())[:_SHOWN_CHARACTERS]
        return {key[: _SHOWN_CHARACTERS + 1]: _beginning(item) for key, item in kept}
    return value


def whole_number(name: str, text: str) -> int:
    """The number in a part of a path; raises ``UsageError`` for anything else."""
    if not _is_whole(text):
        raise UsageError(f"{name} must be a whole number, not {text!r}")
    return int(text)


def broker_named(text: str) -> int | str:
    """A broker in a path: its id, or the part it plays, such as ``leader:orders-0``."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,10}", text) else text
