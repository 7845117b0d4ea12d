"""The schema of payloads: which fields a message type has, and how their values nest.

A trace stores a message as the list of its field values; the names are written once per type.
Each field also has a *shape*, which tells a reader what its value consists of:

    None              a plain value
    "LeaderAndIsr"    a nested message (or named tuple), stored as the list of its fields
    ["*", shape]      a sequence of such values
    ["(", a, b, ...]  a tuple of fixed length
    ["%", "ErrorCode"]  an integer that stands for a name
    "?"               anything; messages inside carry their type as ``["@Type", field, ...]``
"""

from __future__ import annotations

import ast
import enum
import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..protocol.errors import ErrorCode
from ..zkfake.messages import ZkCode

Shape = Any
FieldShapes = tuple[tuple[str, Shape], ...]

RECORD_BATCH = "RecordBatch"
RECORD_BATCH_FIELDS: FieldShapes = tuple(
    (name, None) for name in ("base_offset", "last_offset", "leader_epoch", "size")
)
"""Fields of a batch that a trace keeps; records are never kept."""
RECORD_BATCH_ATTRIBUTES = ("base_offset", "last_offset", "partition_leader_epoch", "size_in_bytes")

ENUM_NAMES: dict[str, dict[int, str]] = {
    "ErrorCode": {int(code): code.name for code in ErrorCode},
    "ZkCode": {int(code): code.name for code in ZkCode},
}
_PLAIN = frozenset({"int", "str", "bool", "float", "None", "object_id"})
_SEQUENCES = frozenset({"tuple", "list", "Sequence", "Iterable", "frozenset", "set"})
_BYTES = frozenset({"bytes", "memoryview", "bytearray"})
BYTES = "bytes"
"""Internal shape of byte fields, which are truncated to the limit; stored as None (plain)."""


def _lookup(owner: type, name: str) -> Any:
    for base in owner.__mro__:
        namespace = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
        if name in namespace:
            return namespace[name]
    return None


def _shape_of_name(owner: type, name: str, nested: list[type]) -> Shape:
    if name in _PLAIN:
        return None
    if name in _BYTES:
        return BYTES
    if name == RECORD_BATCH:
        return RECORD_BATCH
    found = _lookup(owner, name)
    if not isinstance(found, type):
        return "?"
    if issubclass(found, enum.IntEnum):
        return ["%", name] if name in ENUM_NAMES else None
    if issubclass(found, (int, str)):
        return None
    if is_message_type(found):
        nested.append(found)
        return name
    return "?"


def _shape(owner: type, node: ast.expr, nested: list[type]) -> Shape:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return _shape(owner, ast.parse(node.value, mode="eval").body, nested)
        return None if node.value is None else "?"
    if isinstance(node, ast.Name):
        return _shape_of_name(owner, node.id, nested)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [_shape(owner, side, nested) for side in (node.left, node.right)]
        if sides[0] == sides[1]:
            return sides[0]
        if BYTES in sides and all(side in (None, BYTES) for side in sides):
            return BYTES
        # An optional value has the shape of the value. A union of two messages needs a tag.
        optional = [
            shape
            for shape, side in zip(sides, (node.right, node.left), strict=True)
            if isinstance(side, ast.Constant) and side.value is None
        ]
        return optional[0] if optional else "?"
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return _shape_of_subscript(owner, node.value.id, node.slice, nested)
    return "?"


def _shape_of_subscript(owner: type, name: str, inner: ast.expr, nested: list[type]) -> Shape:
    if name == "Literal":
        return None
    if name not in _SEQUENCES:
        return "?"
    items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    ellipsis = len(items) == 2 and isinstance(items[1], ast.Constant) and items[1].value is Ellipsis
    if name != "tuple" or ellipsis or len(items) == 1:
        item = _shape(owner, items[0], nested)
        if item in (None, BYTES, "?"):
            return item
        return ["*", item]
    shapes = [_shape(owner, item, nested) for item in items]
    if "?" in shapes:
        return "?"
    if any(contains_bytes(shape) for shape in shapes):
        return "?"
    return None if all(shape is None for shape in shapes) else ["(", *shapes]


def contains_bytes(shape: Shape) -> bool:
    if isinstance(shape, list):
        return any(contains_bytes(item) for item in shape[1:])
    return bool(shape == BYTES)


def is_message_type(cls: type) -> bool:
    """Return whether values of a class are recorded by field: dataclasses and named tuples."""
    return hasattr(cls, "__dataclass_fields__") or (
        issubclass(cls, tuple) and hasattr(cls, "_fields")
    )


@functools.cache
def field_shapes(cls: type) -> tuple[FieldShapes, tuple[type, ...]]:
    """Return the fields of a message type with their shapes, and the types they mention."""
    if issubclass(cls, tuple):
        return tuple((name, None) for name in cls._fields), ()  # type: ignore[attr-defined]
    if issubclass(cls, BaseException):
        return (("text", None),), ()
    fields = getattr(cls, "__dataclass_fields__", None)
    if fields is None:
        return (), ()
    shapes: list[tuple[str, Shape]] = []
    nested: list[type] = []
    for name, field in fields.items():
        annotation = (
            field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "?")
        )
        try:
            node = ast.parse(annotation, mode="eval").body
        except SyntaxError:
            shapes.append((name, "?"))
            continue
        shapes.append((name, _shape(cls, node, nested)))
    return tuple(shapes), tuple(nested)


EpochsOf = Callable[[list[Any]], list[int | None]]
"""Returns [controller epoch, leader epoch, znode version] of a payload, each None if absent. In a
request about many partitions they are those of the first."""


def _at(payload: list[Any], places: Mapping[str, int], name: str) -> Any:
    place = places.get(name)
    return None if place is None else payload[place]


class Schema:
    """The field names and shapes of a trace's message types; names the values of payloads."""

    def __init__(self, types: Iterable[tuple[str, FieldShapes]] = ()) -> None:
        self.types: dict[str, FieldShapes] = {RECORD_BATCH: RECORD_BATCH_FIELDS}
        self._namers: dict[str, Callable[[list[Any]], dict[str, Any]]] = {}
        self._epochs: dict[str, EpochsOf | None] = {}
        self.add(types)

    def add(self, types: Iterable[Any]) -> None:
        for name, fields in types:
            self.types[name] = tuple((field, shape) for field, shape in fields)
            self._namers.pop(name, None)
            self._epochs.pop(name, None)

    def epochs_of(self, type_name: str) -> EpochsOf | None:
        """Return the function that reads epochs from a type's payloads; None if it has none."""
        if type_name in self._epochs:
            return self._epochs[type_name]
        found = self._epochs[type_name] = self._new_epochs_of(type_name)
        return found

    def _new_epochs_of(self, type_name: str) -> EpochsOf | None:
        fields = self.types.get(type_name, ())
        shapes = dict(fields)
        entries = next((name for name in ("partition_states", "partitions") if name in shapes), "")
        is_direct = "controller_epoch" in shapes or "leader_epoch" in shapes
        if not (is_direct or entries == "partition_states" or type_name == "AlterIsrRequest"):
            return None
        own = {name: place for place, (name, _) in enumerate(fields)}
        inner: dict[str, int] = {}
        if entries and isinstance(shapes[entries], list) and shapes[entries][0] == "*":
            inner = {
                name: place
                for place, (name, _) in enumerate(self.types.get(shapes[entries][1], ()))
            }

        def read(payload: list[Any]) -> list[int | None]:
            items = payload[own[entries]] if entries else ()
            first, places = (items[0], inner) if items else (payload, own)
            controller_epoch = _at(payload, own, "controller_epoch")
            if controller_epoch is None:
                controller_epoch = _at(first, places, "controller_epoch")
            return [
                controller_epoch,
                _at(first, places, "leader_epoch"),
                _at(first, places, "zk_version"),
            ]

        return read

    def name_fields(self, type_name: str, payload: list[Any]) -> dict[str, Any]:
        """Return a payload as field name to value; fields of unknown types are numbered."""
        namer = self._namers.get(type_name)
        if namer is None:
            namer = self._namers[type_name] = self._new_namer(type_name)
        return namer(payload)

    def _new_namer(self, type_name: str) -> Callable[[list[Any]], dict[str, Any]]:
        fields = self.types.get(type_name)
        if fields is None:
            return lambda payload: {f"field_{i}": value for i, value in enumerate(payload)}
        if all(shape is None for _, shape in fields):
            names = [name for name, _ in fields]
            return lambda payload: dict(zip(names, payload, strict=False))
        return lambda payload: {
            name: self._value(shape, value)
            for (name, shape), value in zip(fields, payload, strict=False)
        }

    def _value(self, shape: Shape, value: Any) -> Any:
        if shape is None or value is None:
            return value
        if shape == "?":
            return self._tagged(value)
        if isinstance(shape, str):
            if shape == "TopicPartition":
                return f"{value[0]}-{value[1]}"
            return self.name_fields(shape, value)
        if shape[0] == "*":
            return [self._value(shape[1], item) for item in value]
        if shape[0] == "%":
            return ENUM_NAMES.get(shape[1], {}).get(value, value)
        return [self._value(item, part) for item, part in zip(shape[1:], value, strict=False)]

    def _tagged(self, value: Any) -> Any:
        if isinstance(value, list):
            if value and isinstance(value[0], str) and value[0].startswith("@"):
                name = value[0][1:]
                if name in self.types:
                    if name == "TopicPartition":
                        return f"{value[1]}-{value[2]}"
                    return {"@type": name, **self.name_fields(name, value[1:])}
            return [self._tagged(item) for item in value]
        if isinstance(value, dict):
            return {key: self._tagged(item) for key, item in value.items()}
        return value
