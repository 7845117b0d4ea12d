"""Trees of values to bytes and back, by the table of ``messages``.

A tree is a dict of fields by Kafka's names. What a request leaves out has its default; a response
is read to its last byte, and each field that its version has is in the tree.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from fakekafka.tests.fidelity.protocol.messages import Field, Message, includes, messages

_NUMBERS = {
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
    "bool": ">?",
}
_API_VERSIONS = 18
_CONTROLLED_SHUTDOWN = 7


class Malformed(ValueError):
    """Bytes that are no response by the table."""


class _Writer:
    def __init__(self, version: int, flexible: bool) -> None:
        self.out = bytearray()
        self._version = version
        self._flexible = flexible

    def fields(self, fields: Sequence[Field], tree: Mapping[str, Any]) -> None:
        tagged: list[tuple[int, bytes]] = []
        unknown = set(tree) - {field.name for field in fields}
        if unknown:
            raise KeyError(f"no field {sorted(unknown)}; there are {[f.name for f in fields]}")
        for field in fields:
            if not includes(field.versions, self._version):
                continue
            value = tree.get(field.name, field.default())
            if field.name not in tree and field.kind == "{}" and value == {}:
                value = {}
            if includes(field.tagged, self._version):
                if field.name in tree:
                    inner = _Writer(self._version, self._flexible)
                    inner.value(field, value)
                    tagged.append((field.tag, bytes(inner.out)))
                continue
            self.value(field, value)
        if self._flexible:
            self.varint(len(tagged))
            for tag, raw in sorted(tagged):
                self.varint(tag)
                self.varint(len(raw))
                self.out += raw

    def value(self, field: Field, value: Any) -> None:
        if field.is_array:
            self._array(field, value)
        elif field.kind == "{}":
            if includes(field.nullable, self._version):
                self.out += b"\xff" if value is None else b"\x01"
            if value is not None:
                self.fields(field.children, value)
        else:
            self._plain(field.kind, value)

    def _array(self, field: Field, value: Sequence[Any] | None) -> None:
        count = -1 if value is None else len(value)
        if self._flexible:
            self.varint(count + 1)
        else:
            self.out += struct.pack(">i", count)
        for element in value or ():
            if field.children:
                self.fields(field.children, element)
            else:
                self._plain(field.kind.removeprefix("[]"), element)

    def _plain(self, kind: str, value: Any) -> None:
        if kind in _NUMBERS:
            self.out += struct.pack(_NUMBERS[kind], value)
        elif kind == "uuid":
            self.out += bytes.fromhex(value)
        elif kind == "string":
            raw = None if value is None else value.encode()
            self._sized(raw, ">h")
        else:
            self._sized(value, ">i")

    def _sized(self, raw: bytes | None, form: str) -> None:
        size = -1 if raw is None else len(raw)
        if self._flexible:
            self.varint(size + 1)
        else:
            self.out += struct.pack(form, size)
        self.out += raw or b""

    def varint(self, value: int) -> None:
        while value > 0x7F:
            self.out.append((value & 0x7F) | 0x80)
            value >>= 7
        self.out.append(value)


class _Reader:
    def __init__(self, data: bytes, at: int, version: int, flexible: bool) -> None:
        self.data = data
        self.at = at
        self._version = version
        self._flexible = flexible

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise Malformed(f"{size} bytes at {self.at} of {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form: str) -> Any:
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return value

    def varint(self) -> int:
        shift = value = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def fields(self, fields: Sequence[Field]) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        tagged: dict[int, Field] = {}
        for field in fields:
            if not includes(field.versions, self._version):
                continue
            if includes(field.tagged, self._version):
                tagged[field.tag] = field
            else:
                tree[field.name] = self._value(field)
        if self._flexible:
            for _ in range(self.varint()):
                tag, size = self.varint(), self.varint()
                end = self.at + size
                if tag in tagged:
                    tree[tagged[tag].name] = self._value(tagged[tag])
                    if self.at != end:
                        raise Malformed(f"tagged field {tagged[tag].name} has another size")
                else:
                    tree[f"tag {tag}"] = self.take(size).hex()
        return tree

    def _value(self, field: Field) -> Any:
        if field.is_array:
            count = self.varint() - 1 if self._flexible else self.number(">i")
            if count < 0:
                return None
            if field.children:
                return [self.fields(field.children) for _ in range(count)]
            return [self._plain(field.kind.removeprefix("[]")) for _ in range(count)]
        if field.kind == "{}":
            if includes(field.nullable, self._version) and self.number(">b") < 0:
                return None
            return self.fields(field.children)
        return self._plain(field.kind)

    def _plain(self, kind: str) -> Any:
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind == "uuid":
            return self.take(16).hex()
        form = ">h" if kind == "string" else ">i"
        size = self.varint() - 1 if self._flexible else self.number(form)
        if size < 0:
            return None
        raw = self.take(size)
        return raw.decode() if kind == "string" else raw


def header(key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header of a request, in the version that goes with the request's."""
    raw = struct.pack(">hhi", key, version, correlation_id)
    if key == _CONTROLLED_SHUTDOWN and version == 0:
        return raw
    encoded = None if client_id is None else client_id.encode()
    raw += struct.pack(">h", -1 if encoded is None else len(encoded)) + (encoded or b"")
    message = messages()[(key, "request")]
    return raw + b"\0" if includes(message.flexible, version) else raw


def encode(key: int, version: int, tree: Mapping[str, Any]) -> bytes:
    """The body of a request."""
    message = messages()[(key, "request")]
    writer = _Writer(version, includes(message.flexible, version))
    writer.fields(message.fields, tree)
    return bytes(writer.out)


def decode(key: int, version: int, data: bytes) -> dict[str, Any]:
    """The tree of a response without its size and correlation id."""
    message: Message = messages()[(key, "response")]
    flexible = includes(message.flexible, version)
    reader = _Reader(data, 0, version, flexible)
    if flexible and key != _API_VERSIONS and reader.varint():
        raise Malformed("tagged fields in the header")
    tree = reader.fields(message.fields)
    if reader.at != len(data):
        raise Malformed(f"{len(data) - reader.at} bytes are left over")
    return tree
