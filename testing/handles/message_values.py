"""Conversion of Kafka's requests and responses to and from plain values of JSON and TOML."""

from __future__ import annotations

import base64
import dataclasses
import enum
import functools
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any

from ...protocol.errors import ErrorCode, UsageError, did_you_mean

_TYPE_NAMES = {int: "a whole number", str: "a text", bool: "true or false", float: "a number"}


def read_message(kind: type, value: Any, where: str) -> Any:
    """Return a message made from an object of its fields; ``UsageError`` names a wrong field.

    Bytes are written in base64, errors and other enumerations by name, a partition as
    ``[topic, partition]``.
    """
    return _read_fields(kind, value, where)


def plain_value(value: Any) -> Any:
    """Return a message as dictionaries, lists, strings and numbers."""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(plain_value(key)): plain_value(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value):
        return {f.name: plain_value(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_value(item) for item in value]
    slots = getattr(type(value), "__slots__", ())
    names = [name for name in slots if not name.startswith("_") and hasattr(value, name)]
    return {name: plain_value(getattr(value, name)) for name in names} if names else str(value)


@functools.cache
def _fields_of(kind: type) -> dict[str, tuple[Any, bool]]:
    """Return the fields of a message: the name to its type and True if it is required."""
    namespace = vars(sys.modules[kind.__module__])
    if dataclasses.is_dataclass(kind):
        missing = dataclasses.MISSING
        given = [
            (f.name, f.type, f.default is missing and f.default_factory is missing)
            for f in dataclasses.fields(kind)
            if f.init
        ]
    else:
        defaults = getattr(kind, "_field_defaults", {})
        given = [
            (name, annotation, name not in defaults)
            for name, annotation in kind.__annotations__.items()
        ]
    return {
        name: (_resolved(annotation, namespace), is_required)
        for name, annotation, is_required in given
    }


def _resolved(annotation: Any, namespace: dict[str, Any]) -> Any:
    try:
        return eval(annotation, namespace) if isinstance(annotation, str) else annotation
    except NameError:  # a type that is imported only for type checkers
        return Any


def _read_fields(kind: type, value: Any, where: str) -> Any:
    fields = _fields_of(kind)
    if isinstance(value, list | tuple) and not dataclasses.is_dataclass(kind):
        value = dict(zip(fields, value, strict=False)) if len(value) == len(fields) else None
    if not isinstance(value, Mapping):
        raise UsageError(f"{where} must be an object with {list(fields)}")
    for name in value:
        if name not in fields:
            raise UsageError(f"{where} has no {name!r}{did_you_mean(name, fields)}")
    missing = [name for name, (_, required) in fields.items() if required and name not in value]
    if missing:
        raise UsageError(f"{where} needs {missing}")
    return kind(**{n: _read(fields[n][0], item, f"{where}.{n}") for n, item in value.items()})


def _read(wanted: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(wanted)
    if wanted is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        return _read_union(typing.get_args(wanted), value, where)
    if origin is tuple:
        return _read_tuple(typing.get_args(wanted), value, where)
    if isinstance(wanted, type):
        return _read_plain(wanted, value, where)
    return value


def _read_union(options: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in options:
        return None
    return _read(next(option for option in options if option is not type(None)), value, where)


def _read_tuple(items: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise UsageError(f"{where} must be a list, not {value!r}")
    if len(items) == 2 and items[1] is Ellipsis:
        items = (items[0],) * len(value)
    if len(items) != len(value):
        raise UsageError(f"{where} must be a list of {len(items)}, not {value!r}")
    pairs = enumerate(zip(items, value, strict=True))
    return tuple(_read(kind, item, f"{where}[{number}]") for number, (kind, item) in pairs)


def _read_plain(wanted: type, value: Any, where: str) -> Any:
    if issubclass(wanted, enum.Enum):
        return _read_enum(wanted, value, where)
    if wanted is bytes:
        try:
            return base64.b64decode(value, validate=True)
        except (ValueError, TypeError):
            raise UsageError(f"{where} must be bytes in base64, not {value!r}") from None
    if dataclasses.is_dataclass(wanted) or hasattr(wanted, "_fields"):
        return _read_fields(wanted, value, where)
    accepted = (int, float) if wanted is float else wanted
    is_right = isinstance(value, accepted) and (wanted is bool or not isinstance(value, bool))
    if wanted in _TYPE_NAMES and not is_right:
        raise UsageError(f"{where} must be {_TYPE_NAMES[wanted]}, not {value!r}")
    return value


def _read_enum(wanted: type[enum.Enum], value: Any, where: str) -> Any:
    if isinstance(value, str) and value in wanted.__members__:
        return wanted[value]
    if wanted is ErrorCode and isinstance(value, int) and not isinstance(value, bool):
        try:
            return ErrorCode(value)
        except ValueError:
            pass
    raise UsageError(f"{where}: there is no {value!r}; names are {list(wanted.__members__)[:20]}")
