"""Kafka messages as trees: dictionaries of fields by the names of the field table."""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.messages.readers import reader
from fakekafka.wire.kafka.messages.table import (
    Direction,
    Field,
    Message,
    includes,
    message,
    with_nulls,
)
from fakekafka.wire.kafka.messages.varints import encoded_varint
from fakekafka.wire.kafka.messages.writers import writer

Fields = Sequence[Field]
_CONTROLLED_SHUTDOWN = 7


def written(found: Message, version: int, tree: Mapping[str, Any]) -> bytes:
    """Return the encoded tree, with defaults for missing fields; null is written anywhere.

    Raises ``KeyError`` for a field that no version has.
    """
    parts: list[Any] = []
    _writer(found, version)(_as_tuple(found.fields, version, tree), None, parts)
    return b"".join(parts)


def read(found: Message, version: int, data: bytes) -> tuple[dict[str, Any], int]:
    """Return the tree of a message and its length in bytes.

    Tagged fields without a value are left out.
    """
    values, size = _reader(found, version)(data, None)
    return _as_tree(found.fields, version, values), size


@functools.cache
def _writer(found: Message, version: int) -> Any:
    selected = _selected(found.fields, version, "[]")
    return writer(with_nulls(found), version, f"[{selected}]", {})


@functools.cache
def _reader(found: Message, version: int) -> Any:
    return reader(found, version, lambda *values: values, _selected(found.fields, version), {})


def _present(fields: Fields, version: int) -> list[Field]:
    return [field for field in fields if includes(field.versions, version)]


def _selected(fields: Fields, version: int, brackets: str = "()") -> str:
    return " ".join(
        f"{field.name}{brackets[0]}{_selected(field.children, version, brackets)}{brackets[1]}"
        if field.children
        else field.name
        for field in _present(fields, version)
    )


def _as_tuple(fields: Fields, version: int, tree: Mapping[str, Any]) -> tuple[Any, ...]:
    unknown = tree.keys() - {field.name for field in fields}
    if unknown:
        raise KeyError(f"no field {sorted(unknown)}; there are {[f.name for f in fields]}")
    values: list[Any] = []
    for field in _present(fields, version):
        value = tree.get(field.name, None if field.tag >= 0 else field.default)
        if value is not None and field.children:
            is_array = field.is_array
            structures = value if is_array else [value]
            found = [_as_tuple(field.children, version, one) for one in structures]
            value = found if is_array else found[0]
        elif value is not None and field.kind == "records":
            value = (SimpleNamespace(data=value),)
        values.append(value)
    return tuple(values)


def _as_tree(fields: Fields, version: int, values: Sequence[Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for field, value in zip(_present(fields, version), values, strict=True):
        if includes(field.tagged, version) and value in (field.default, None):
            continue
        if value is not None and field.children:
            structures = value if field.is_array else [value]
            found = [_as_tree(field.children, version, one) for one in structures]
            value = found if field.is_array else found[0]
        elif isinstance(value, tuple):
            value = list(value)
        tree[field.name] = bytes(value) if isinstance(value, memoryview) else value
    return tree


class NamesByHex:
    """Maps each topic to an id made from its name, and each id to a name made from its digits."""

    def topic_id(self, topic: str) -> bytes:
        return topic.encode().ljust(16, b".")[:16]

    def topic_name(self, topic_id: bytes) -> str | None:
        return topic_id.hex()


CODEC = Codec("3.9", NamesByHex())


def body(
    key: int, version: int, tree: Mapping[str, Any], direction: Direction = "request"
) -> bytes:
    """Return an encoded message of an API."""
    return written(message(key, direction), version, tree)


def header(key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Return a request header in the version that belongs to the request's version."""
    raw = struct.pack(">hhi", key, version, correlation_id)
    if key == _CONTROLLED_SHUTDOWN and version == 0:
        return raw
    encoded = None if client_id is None else client_id.encode()
    raw += struct.pack(">h", -1 if encoded is None else len(encoded)) + (encoded or b"")
    return raw + b"\0" if includes(message(key, "request").flexible, version) else raw


def frame(
    key: int,
    version: int,
    tree: Mapping[str, Any],
    client_id: str | None = None,
    *,
    unknown_tags: int = 0,
) -> bytes:
    """Return a whole request with its size, optionally with unknown tagged fields at its end."""
    request = header(key, version, 1, client_id) + body(key, version, tree)
    if unknown_tags:
        tags = b"".join(encoded_varint(tag) + b"\0" for tag in range(unknown_tags))
        request = request[:-1] + encoded_varint(unknown_tags) + tags
    return struct.pack(">i", len(request)) + request


def decoded_request(key: int, version: int, /, **fields: Any) -> Any:
    """Return the request as a broker decodes it."""
    return CODEC.decode(key, version, memoryview(body(key, version, fields)))


def decoded_response(key: int, version: int, response: Any, request: Any = None) -> Any:
    """Return the response as a client decodes it, to its last byte."""
    raw = b"".join(CODEC.encode(key, version, response, request))
    tree, size = read(message(key, "response"), version, raw)
    assert size == len(raw)
    return tree
