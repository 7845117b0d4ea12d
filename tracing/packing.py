"""Packs messages into bytes: an extractor per message type returns the fields, msgpack packs them.

To msgpack's packer a message is an unknown object, so that it calls ``PayloadPacker.extract`` for
the fields; nested messages are treated alike, so a payload costs one call per message in it.
Nothing that differs between two equal runs may get in: no ids, no hash order, no default repr.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgpack

from ..protocol.declaring.methods import reader_of_fields
from .events import Truncated
from .schema import (
    BYTES,
    RECORD_BATCH,
    RECORD_BATCH_ATTRIBUTES,
    FieldShapes,
    Shape,
    contains_bytes,
    field_shapes,
    is_message_type,
)

TRUNCATED_CODE = 1
"""msgpack extension type of truncated bytes: full length as u64 LE, then the head."""
_LENGTH = struct.Struct("<Q")
ZNODE_BYTES_LIMIT = 1024
"""Bytes kept of a field named ``data``: these are znodes, which explain more than records do."""

Extract = Callable[[Any], Any]
_PLAIN = frozenset({type(None), str, float, bytes, bytearray, memoryview, tuple, list, dict})
_NAMED_TUPLES = frozenset({"TopicPartition", "PartitionReplica"})


def _unpack_extension(code: int, data: bytes) -> Any:
    if code == TRUNCATED_CODE:
        return Truncated(_LENGTH.unpack_from(data)[0], data[_LENGTH.size :])
    return msgpack.ExtType(code, data)


def unpack(data: bytes | memoryview) -> Any:
    """Unpack bytes that a packer of this module wrote."""
    return msgpack.unpackb(data, ext_hook=_unpack_extension, strict_map_key=False, use_list=True)


def unpack_counted(data: bytes | memoryview, most: int) -> Any:
    """Unpack bytes; raise ``ValueError`` if they have more than ``most`` lists and maps."""
    left = most

    def count(value: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError(f"more than {most:,} lists and maps")
        return value

    return msgpack.unpackb(
        data,
        ext_hook=_unpack_extension,
        object_hook=count,
        list_hook=count,
        strict_map_key=False,
        max_array_len=10 * most,
    )


def cut_bytes(length: int, head: bytes) -> msgpack.ExtType:
    """Return the packed form of bytes that are truncated to their head."""
    return msgpack.ExtType(TRUNCATED_CODE, _LENGTH.pack(length) + head)


_FIELDS_OF_BATCH = attrgetter(*RECORD_BATCH_ATTRIBUTES)


class _Extractors(dict[type, Extract]):
    """Maps a class to its extractor, which is made on first use."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[type], Extract]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, cls: type) -> Extract:
        extractor = self[cls] = self._make(cls)
        return extractor


class PayloadPacker:
    """Packs values that may contain messages, and collects the schema of the types it packs."""

    def __init__(self, record_bytes_limit: int) -> None:
        self.record_bytes_limit = record_bytes_limit
        self.schema: dict[str, FieldShapes] = {}
        """Fields of each type, in order of the types' first use."""
        extractors = _Extractors(self._new_extractor)
        self.extractors: dict[type, Extract] = extractors
        """Class to the function that returns a message's fields, ready for ``pack``."""

        def extract(value: Any) -> Any:
            return extractors[value.__class__](value)

        self.extract: Extract = extract
        """Returns the fields of any message (msgpack's ``default`` hook)."""
        self.pack: Callable[[Any], bytes] = msgpack.Packer(default=extract).pack

    def declare(self, cls: type) -> None:
        """Add a message type, and the types that its fields mention, to the schema."""
        if cls.__name__ in self.schema or cls.__name__ == RECORD_BATCH:
            return
        shapes, nested = field_shapes(cls)
        if not shapes and not is_message_type(cls):
            shapes = (("value", "?"),)
        self.schema[cls.__name__] = tuple((name, _stored(shape)) for name, shape in shapes)
        for other in nested:
            self.declare(other)

    # -- extractors ----------------------------------------------------------------------------

    def _new_extractor(self, cls: type) -> Extract:
        if any(base.__name__ == RECORD_BATCH for base in cls.__mro__):
            return _FIELDS_OF_BATCH
        if hasattr(cls, "__dataclass_fields__"):
            self.declare(cls)
            return self._message_extractor(cls, field_shapes(cls)[0])
        if issubclass(cls, BaseException):
            self.declare(cls)
            return lambda error: (str(error),)
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            self.declare(cls)
            return tuple
        if cls in _PLAIN or issubclass(cls, int):
            return lambda value: value
        if issubclass(cls, enum.Enum):
            return lambda member: member.value if isinstance(member.value, str) else member.name
        if issubclass(cls, (set, frozenset)):
            return lambda items: sorted(items, key=repr)
        is_function = any("__call__" in vars(base) for base in cls.__mro__)
        # An object without a value of its own: neither its id nor its build may get into a trace.
        name = "<function>" if is_function else f"<{cls.__name__}>"
        return lambda _: name

    def _message_extractor(self, cls: type, shapes: FieldShapes) -> Extract:
        """Return the extractor of a message type, which reads all fields at once."""
        read = reader_of_fields(cls, [name for name, _ in shapes])
        rows = [place for place, (_, shape) in enumerate(shapes) if _is_row(shape)]
        converters = [
            (place, self._converter(name, shape))
            for place, (name, shape) in enumerate(shapes)
            if shape == "?" or contains_bytes(shape)
        ]
        if not rows and not converters:
            return read
        extractors = self.extractors

        def extract(message: Any) -> list[Any]:
            values = list(read(message))
            for place in rows:
                if values[place]:
                    values[place] = [extractors[item.__class__](item) for item in values[place]]
            for place, convert in converters:
                values[place] = convert(values[place])
            return values

        return extract

    def _converter(self, name: str, shape: Shape) -> Extract:
        """Return a function that prepares the values of a field which msgpack cannot pack as is."""
        if shape == "?":
            return self.tagged
        limit = self.record_bytes_limit
        if name == "data":
            limit = max(limit, ZNODE_BYTES_LIMIT)
        return lambda value: _limit_bytes(value, limit)

    def tagged(self, value: Any) -> Any:
        """Prepare a value of unknown shape: messages in it are tagged with their type name."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return _limit_bytes(value, self.record_bytes_limit)
        cls = value.__class__
        if cls.__name__ == RECORD_BATCH or hasattr(cls, "__dataclass_fields__"):
            return ["@" + cls.__name__, *self.extract(value)]
        if isinstance(value, BaseException):
            return ["@" + cls.__name__, *self.extract(value)]
        if isinstance(value, tuple) and hasattr(cls, "_fields"):
            self.declare(cls)
            return ["@" + cls.__name__, *(self.tagged(item) for item in value)]
        if isinstance(value, dict):
            return {str(key): self.tagged(item) for key, item in value.items()}
        if isinstance(value, (set, frozenset)):
            return [self.tagged(item) for item in sorted(value, key=repr)]
        if isinstance(value, (list, tuple)):
            return [self.tagged(item) for item in value]
        return value  # an enum or an unknown object: the packer calls ``extract``


def _is_row(shape: Shape) -> bool:
    """Return whether a shape is a sequence of messages. Named tuples of plain values do not count:
    they are packed as they are."""
    return (
        isinstance(shape, list)
        and shape[0] == "*"
        and isinstance(shape[1], str)
        and shape[1] not in _NAMED_TUPLES
    )


def _stored(shape: Shape) -> Shape:
    """Return a shape as the file has it, in which bytes are plain values."""
    if isinstance(shape, list):
        return [shape[0], *(_stored(item) for item in shape[1:])]
    return None if shape == BYTES else shape


def _limit_bytes(value: Any, limit: int) -> Any:
    if value.__class__ is bytes:
        return value if len(value) <= limit else cut_bytes(len(value), value[:limit])
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_limit_bytes(item, limit) for item in value]
    if not isinstance(value, (bytes, bytearray, memoryview)):
        return value
    length = value.nbytes if isinstance(value, memoryview) else len(value)
    if length <= limit:
        return bytes(value)
    return cut_bytes(length, bytes(value[:limit]))


def repack(value: Any) -> Any:
    """Prepare an unpacked value to be packed again."""
    if isinstance(value, Truncated):
        return cut_bytes(*value)
    if isinstance(value, (list, tuple)):
        return [repack(item) for item in value]
    if isinstance(value, dict):
        return {key: repack(item) for key, item in value.items()}
    return value
