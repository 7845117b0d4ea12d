"""Messages of the actors generated from the types of their fields."""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from fakekafka.protocol import admin, control, data, groups, transactions, values
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records import batch
from fakekafka.protocol.records import format as record_format
from fakekafka.protocol.records.batch import RecordBatch, build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.security import acls, authentication, delegation_tokens, quotas
from fakekafka.protocol.values import BrokerInfo, EndPoint, uuid_text

_MODULES = (
    admin, control, data, groups, transactions, acls, authentication, delegation_tokens, quotas,
)  # fmt: skip
_KNOWN = {**vars(batch), **vars(record_format), **vars(values), **vars(control)}
RESPONSES: dict[str, type] = {
    name.removesuffix("Response"): kind
    for module in _MODULES
    for name, kind in vars(module).items()
    if name.endswith("Response") and not name.endswith("PartitionResponse")
}
"""Response types by the name of their request."""
RESPONSES |= {
    "AlterPartition": RESPONSES["AlterIsr"],
    "DescribeCluster": RESPONSES["Metadata"],
    "IncrementalAlterConfigs": RESPONSES["AlterConfigs"],
}


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, localns=_KNOWN)


def _parts(message: Any) -> list[str]:
    """Return the names of the fields of a message or named tuple."""
    if hasattr(message, "_fields"):
        return list(message._fields)
    return [field.name for field in dataclasses.fields(message)]


def distinct(kind: Any) -> Any:
    """Return a message with distinct texts and numbers, no null, and arrays of one element."""
    numbers = itertools.count(1)
    return _made(kind, "", lambda: next(numbers))


def _made(kind: Any, name: str, number: Callable[[], int]) -> Any:
    arguments = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _made(arguments[0], name, number)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return (_made(arguments[0], name, number),)
        return tuple(_made(one, f"{name}.{at}", number) for at, one in enumerate(arguments))
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        if kind is BrokerInfo:
            return BrokerInfo(number(), (EndPoint(f"host{number()}", number()),), f"r{number()}")
        hints = _hints(kind)
        return kind(*(_made(hints[one], one, number) for one in _parts(kind)))
    return _plain(kind, name, number())


def _plain(kind: Any, name: str, number: int) -> Any:
    if kind is ErrorCode:
        return ErrorCode.NONE
    if kind is RecordBatch:
        return RecordBatch.from_bytes(build_batch([Record(0, number, b"k", b"v")]))
    if issubclass(kind, enum.Enum):
        return list(kind)[2]
    if kind is str:
        if name in _UUIDS:
            return uuid_text(number.to_bytes(16, "big"))
        return f"User:{number}" if name in _PRINCIPALS else f"text{number}"
    if kind is bytes:
        return number.to_bytes(2, "big")
    return kind(number % 100) if kind in (int, float) else False


_UUIDS = ("topic_id", "assignment.0", "assignment.0.0")
_PRINCIPALS = ("owner", "requester", "renewers")


def alterations(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield for each part of the value its name and the value with that part altered."""
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        for one in _parts(value):
            for part, altered in alterations(getattr(value, one), one):
                yield part, _replaced(value, one, altered)
    elif isinstance(value, tuple):
        for at, item in enumerate(value):
            for part, altered in alterations(item, f"{name}.{at}"):
                yield part, (*value[:at], altered, *value[at + 1 :])
    else:
        yield name, _altered(value, name)


def _replaced(value: Any, name: str, altered: Any) -> Any:
    if hasattr(value, "_fields"):
        return value._replace(**{name: altered})
    return dataclasses.replace(value, **{name: altered})


def _altered(value: Any, name: str) -> Any:
    if isinstance(value, ErrorCode):
        return ErrorCode.NOT_CONTROLLER
    if isinstance(value, RecordBatch):
        return RecordBatch.from_bytes(build_batch([Record(0, 5, b"k", b"another")]))
    if isinstance(value, enum.Enum):
        return list(type(value))[3]
    if isinstance(value, str):
        return uuid_text(bytes(range(16))) if name in _UUIDS else value + "x"
    if isinstance(value, bytes):
        return value + b"x"
    return not value if isinstance(value, bool) else value + 1
