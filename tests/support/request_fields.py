"""The parts of which requests are written by hand: fields, arrays, and shapes that grow."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

PARTITION_KINDS = ("topics", "partitions", "same partition", "same topic")
NAMES: dict[str, Callable[[int], str]] = {
    "names with dots": lambda index: f"t.{index}",
    "names with underscores": lambda index: f"a_b_{index}",
    "same name": lambda index: "same",
}


class Shape(NamedTuple):
    """A request that grows with a number."""

    name: str
    key: int
    version: int
    body: Callable[[int], bytes]
    flexible: bool = False

    def frame(self, size: int) -> bytes:
        """The whole request, with size and header."""
        header = struct.pack(">hhih", self.key, self.version, 1, -1)
        request = header + (b"\0" if self.flexible else b"") + self.body(size)
        return struct.pack(">i", len(request)) + request


def int8(value: int) -> bytes:
    return struct.pack(">b", value)


def int16(value: int) -> bytes:
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    return struct.pack(">i", value)


def int64(value: int) -> bytes:
    return struct.pack(">q", value)


def string(text: str) -> bytes:
    return int16(len(text)) + text.encode()


def array(items: Iterable[bytes]) -> bytes:
    found = list(items)
    return int32(len(found)) + b"".join(found)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact(text: str) -> bytes:
    return varint(len(text) + 1) + text.encode()


def compact_array(items: Iterable[bytes]) -> bytes:
    found = list(items)
    return varint(len(found) + 1) + b"".join(found)


def partitions(kind: str, size: int, entry: Callable[[int], bytes]) -> bytes:
    """An array of topics, each an array of partitions."""
    if kind == "topics":
        return array(string(f"t_{index}") + array([entry(0)]) for index in range(size))
    if kind == "same topic":
        return array(string("x") + array([entry(0)]) for _ in range(size))
    numbers = range(size) if kind == "partitions" else [0] * size
    return array([string("x") + array(entry(number) for number in numbers)])


def compact_partitions(kind: str, size: int, entry: Callable[[int], bytes]) -> bytes:
    """The same in a flexible request; topics and partitions without tagged fields."""

    def topic(name: str, numbers: Iterable[int]) -> bytes:
        return compact(name) + compact_array(entry(number) for number in numbers) + b"\0"

    if kind == "topics":
        return compact_array(topic(f"t_{index}", [0]) for index in range(size))
    if kind == "same topic":
        return compact_array(topic("x", [0]) for _ in range(size))
    return compact_array([topic("x", range(size) if kind == "partitions" else [0] * size)])
