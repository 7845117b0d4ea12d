"""Kafka's primitive types over memory views: readers and writers, classic and flexible.

The two encodings of strings, arrays and tagged fields (KIP-482) are two classes with the same
methods, so an API module is written once for all its versions. A reader raises ``ClientError`` or
``struct.error`` or ``UnicodeDecodeError`` on nonsense; ``wire.kafka.codec`` turns all into
``ClientError``. Strings are ``str``, uuids 16 raw bytes, durations integer milliseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from struct import Struct, pack, unpack
from typing import Protocol, TypeVar

from ...protocol.errors import ClientError
from ...protocol.values import TopicPartition
from .topic_names import NO_TOPIC_NAMES, TopicNames

Buffer = bytes | bytearray | memoryview

INT8 = Struct(">b")
INT16 = Struct(">h")
INT32 = Struct(">i")
INT64 = Struct(">q")
NO_TAGS = b"\0"
_UNSIGNED_VARINT_BYTES_MAX = 5


class Reader:
    """A cursor over the body of a message in the classic (not flexible) encoding."""

    __slots__ = ("at", "data", "end", "names")

    flexible = False

    def __init__(self, data: memoryview, at: int = 0, names: TopicNames = NO_TOPIC_NAMES) -> None:
        self.data = data
        self.names = names
        """What topic ids of the message are resolved with."""
        self.at = at
        """0 <= at <= end."""
        self.end = len(data)

    def unpack(self, layout: Struct) -> tuple[int, ...]:
        """Several fixed-size fields at once."""
        at = self.at
        values = layout.unpack_from(self.data, at)
        self.at = at + layout.size
        return values

    def int8(self) -> int:
        at = self.at
        (value,) = INT8.unpack_from(self.data, at)
        self.at = at + 1
        return value  # type: ignore[no-any-return]

    def int16(self) -> int:
        at = self.at
        (value,) = INT16.unpack_from(self.data, at)
        self.at = at + 2
        return value  # type: ignore[no-any-return]

    def int32(self) -> int:
        at = self.at
        (value,) = INT32.unpack_from(self.data, at)
        self.at = at + 4
        return value  # type: ignore[no-any-return]

    def int64(self) -> int:
        at = self.at
        (value,) = INT64.unpack_from(self.data, at)
        self.at = at + 8
        return value  # type: ignore[no-any-return]

    def boolean(self) -> bool:
        return self.int8() != 0

    def uuid(self) -> bytes:
        return bytes(self.slice(16))

    def slice(self, size: int) -> memoryview:
        """The next ``size`` bytes, not copied."""
        at = self.at
        after = at + size
        if size < 0 or after > self.end:
            raise ClientError(f"a field of {size} bytes where {self.end - at} are left")
        self.at = after
        return self.data[at:after]

    def unsigned_varint(self) -> int:
        at = self.at
        data = self.data
        if at >= self.end:
            raise ClientError("the message ends where a length should be")
        byte = data[at]
        if byte < 0x80:
            self.at = at + 1
            return byte
        if at + 1 < self.end and data[at + 1] < 0x80:
            self.at = at + 2
            return byte & 0x7F | data[at + 1] << 7
        value = byte & 0x7F
        for index in range(1, _UNSIGNED_VARINT_BYTES_MAX):
            if at + index >= self.end:
                raise ClientError("the message ends inside a varint")
            byte = data[at + index]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                self.at = at + index + 1
                return value
        raise ClientError("a varint of more than 5 bytes")

    # The four below, and what they are built from, differ between the encodings.

    def string_size(self) -> int:
        return self.int16()

    def array_size(self) -> int:
        return self.int32()

    def bytes_size(self) -> int:
        return self.int32()

    def tagged(self) -> dict[int, memoryview]:
        """The tagged fields at the end of a structure: tag -> value."""
        return {}

    def tags(self) -> None:
        """Skip the tagged fields at the end of a structure."""

    def nullable_string(self) -> str | None:
        size = self.string_size()
        return None if size < 0 else str(self.slice(size), "utf-8")

    def string(self) -> str:
        size = self.string_size()
        if size < 0:
            raise ClientError("null where a string is required")
        return str(self.slice(size), "utf-8")

    def nullable_array(self) -> int:
        """The number of elements that follow; -1 for null."""
        count = self.array_size()
        if count > self.end - self.at:
            raise ClientError(f"an array of {count} elements in {self.end - self.at} bytes")
        return max(count, -1)

    def array(self) -> int:
        """The number of elements that follow."""
        count = self.nullable_array()
        if count < 0:
            raise ClientError("null where an array is required")
        return count

    def nullable_bytes(self) -> memoryview | None:
        size = self.bytes_size()
        if size < 0:
            return None
        at = self.at
        after = at + size
        if after > self.end:
            raise ClientError(f"a field of {size} bytes where {self.end - at} are left")
        self.at = after
        return self.data[at:after]

    def required_bytes(self) -> memoryview:
        """Bytes that may not be null."""
        found = self.nullable_bytes()
        if found is None:
            raise ClientError("null where bytes are required")
        return found

    def int32s(self) -> tuple[int, ...]:
        """An array of int32."""
        return self._int32s(self.array())

    def nullable_int32s(self) -> tuple[int, ...] | None:
        count = self.nullable_array()
        return None if count < 0 else self._int32s(count)

    def _int32s(self, count: int) -> tuple[int, ...]:
        return unpack(f">{count}i", self.slice(4 * count))

    def strings(self) -> tuple[str, ...]:
        return tuple([self.string() for _ in range(self.array())])

    def nullable_topic_partitions(self) -> tuple[TopicPartition, ...] | None:
        """An array of (topic, array of partition numbers), flattened; None for null."""
        count = self.nullable_array()
        return None if count < 0 else self._topic_partitions(count)

    def topic_partitions(self) -> tuple[TopicPartition, ...]:
        """The same for an array that is never null."""
        return self._topic_partitions(self.array())

    def _topic_partitions(self, count: int) -> tuple[TopicPartition, ...]:
        partitions: list[TopicPartition] = []
        for _ in range(count):
            topic = self.string()
            partitions += [TopicPartition(topic, number) for number in self.int32s()]
            self.tags()
        return tuple(partitions)


class CompactReader(Reader):
    """A cursor over a flexible message: varint lengths, tagged fields (KIP-482)."""

    __slots__ = ()

    flexible = True

    def string_size(self) -> int:
        return self.unsigned_varint() - 1

    def array_size(self) -> int:
        return self.unsigned_varint() - 1

    def bytes_size(self) -> int:
        return self.unsigned_varint() - 1

    def string(self) -> str:
        # The common case of a short string, without a call per byte.
        at = self.at
        data = self.data
        if at < self.end and 0 < data[at] < 0x80:
            after = at + data[at]
            if after <= self.end:
                self.at = after
                return str(data[at + 1 : after], "utf-8")
        return super().string()

    def nullable_string(self) -> str | None:
        at = self.at
        if at < self.end and not self.data[at]:
            self.at = at + 1
            return None
        return super().nullable_string()

    def array(self) -> int:
        # Below 127 elements; what does not fit in is refused by the general way.
        at = self.at
        if at < self.end and 0 < self.data[at] < 0x80 and at + self.data[at] <= self.end:
            self.at = at + 1
            return self.data[at] - 1
        return super().array()

    def tagged(self) -> dict[int, memoryview]:
        fields: dict[int, memoryview] = {}
        for _ in range(self.unsigned_varint()):
            tag = self.unsigned_varint()
            fields[tag] = self.slice(self.unsigned_varint())
        return fields

    def tags(self) -> None:
        at = self.at
        if at < self.end and not self.data[at]:
            self.at = at + 1
            return
        self.tagged()


def unsigned_varint(value: int) -> bytes:
    """A varint of 32 bits, unsigned."""
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append((value & 0x7F) | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class Writer:
    """Collects the body of a message in the classic encoding as a list of buffers."""

    __slots__ = ("listener", "names", "parts", "throttle_ms")

    flexible = False

    def __init__(self, names: TopicNames = NO_TOPIC_NAMES, listener: str = "PLAINTEXT") -> None:
        self.parts: list[Buffer] = []
        self.names = names
        self.listener = listener  # whose endpoints the client is told
        self.throttle_ms = 0  # for how long the client is told to wait

    def pack(self, layout: Struct, *values: int) -> None:
        """Several fixed-size fields at once."""
        self.parts.append(layout.pack(*values))

    def int8(self, value: int) -> None:
        self.parts.append(INT8.pack(value))

    def int16(self, value: int) -> None:
        self.parts.append(INT16.pack(value))

    def int32(self, value: int) -> None:
        self.parts.append(INT32.pack(value))

    def int64(self, value: int) -> None:
        self.parts.append(INT64.pack(value))

    def boolean(self, value: bool) -> None:
        self.parts.append(b"\1" if value else b"\0")

    def uuid(self, value: bytes) -> None:
        self.parts.append(value)

    def raw(self, value: Buffer) -> None:
        """Bytes as they are, by reference."""
        self.parts.append(value)

    # Methods below differ between the encodings.

    def string(self, value: str) -> None:
        encoded = value.encode()
        self.parts.append(INT16.pack(len(encoded)) + encoded)

    def nullable_string(self, value: str | None) -> None:
        if value is None:
            self.parts.append(b"\xff\xff")
        else:
            self.string(value)

    def array(self, count: int) -> None:
        """The number of elements that will follow; -1 for null."""
        self.parts.append(INT32.pack(count))

    def bytes_size(self, size: int) -> None:
        self.parts.append(INT32.pack(size))

    def sized_bytes(self, value: Buffer) -> None:
        """Size and bytes, by reference."""
        self.bytes_size(len(value))
        self.parts.append(value)

    def tags(self, *fields: tuple[int, bytes]) -> None:
        """The tagged fields that end a structure, in tag order."""

    def int32s(self, values: Sequence[int]) -> None:
        self.array(len(values))
        self.parts.append(pack(f">{len(values)}i", *values))


class CompactWriter(Writer):
    """Collects the body of a flexible message (KIP-482)."""

    __slots__ = ()

    flexible = True

    def string(self, value: str) -> None:
        encoded = value.encode()
        self.parts.append(unsigned_varint(len(encoded) + 1) + encoded)

    def nullable_string(self, value: str | None) -> None:
        if value is None:
            self.parts.append(b"\0")
        else:
            self.string(value)

    def array(self, count: int) -> None:
        self.parts.append(unsigned_varint(count + 1))

    def bytes_size(self, size: int) -> None:
        self.parts.append(unsigned_varint(size + 1))

    def tags(self, *fields: tuple[int, bytes]) -> None:
        if not fields:
            self.parts.append(NO_TAGS)
            return
        self.parts.append(unsigned_varint(len(fields)))
        for tag, value in fields:
            self.parts.append(unsigned_varint(tag) + unsigned_varint(len(value)) + value)


class HasTopicPartition(Protocol):
    """A result for one partition."""

    @property
    def topic_partition(self) -> TopicPartition: ...


R = TypeVar("R", bound=HasTopicPartition)


def by_topic(results: Sequence[R]) -> Collection[tuple[str, Sequence[R]]]:
    """Group results by topic, topics in order of first appearance."""
    if len(results) == 1:
        return ((results[0].topic_partition[0], results),)
    groups: dict[str, list[R]] = {}
    for result in results:
        topic = result.topic_partition[0]
        if topic in groups:
            groups[topic].append(result)
        else:
            groups[topic] = [result]
    return groups.items()
