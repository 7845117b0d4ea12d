"""Encoding and decoding of the fields in the keys and values of the internal topics."""

from __future__ import annotations

import struct

from ..protocol.errors import ClientError


def string(text: str | None) -> bytes:
    """Encode a text, preceded by its length in two bytes; the length of None is -1."""
    if text is None:
        return b"\xff\xff"
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def sized_bytes(data: bytes) -> bytes:
    """Encode bytes, preceded by their length in four bytes."""
    return struct.pack(">i", len(data)) + data


class Cursor:
    """A sequential reader of fields, which raises ``ClientError`` if the data ends too early."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data: bytes = data
        self.at: int = 0

    def number(self, form: str) -> int:
        try:
            (value,) = struct.unpack_from(form, self.data, self.at)
        except struct.error:
            raise ClientError(
                f"a record of {len(self.data)} bytes ends too early, at byte {self.at}"
            ) from None
        self.at += struct.calcsize(form)
        return int(value)

    def slice(self, length: int, what: str) -> bytes:
        end = self.at + length
        if length < 0 or end > len(self.data):
            raise ClientError(f"{what} of {length} bytes does not fit at byte {self.at}")
        found = self.data[self.at : end]
        self.at = end
        return found

    def _text(self, length: int) -> str:
        at = self.at
        try:
            return self.slice(length, "a string").decode()
        except UnicodeDecodeError as error:
            raise ClientError(f"the string at byte {at} is no UTF-8: {error.reason}") from None

    def nullable_string(self) -> str | None:
        length = self.number(">h")
        return None if length == -1 else self._text(length)

    def string(self) -> str:
        return self._text(self.number(">h"))

    def sized_bytes(self) -> bytes:
        return self.slice(self.number(">i"), "a field")

    # The compact encoding (KIP-482): a length is a varint of the length plus 1, and 0 is null.

    def varint(self) -> int:
        value = shift = 0
        while shift < 35:
            byte = self.number(">B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise ClientError(f"the varint before byte {self.at} is too long")

    def compact_length(self) -> int:
        """Read a length; null counts as 0."""
        return max(self.varint() - 1, 0)

    def nullable_compact_string(self) -> str | None:
        size = self.varint()
        return None if size == 0 else self._text(size - 1)

    def compact_string(self) -> str:
        text = self.nullable_compact_string()
        if text is None:
            raise ClientError(f"the string before byte {self.at} is null")
        return text

    def tags(self) -> dict[int, bytes]:
        """Read tagged fields, by tag number."""
        return {self.varint(): self.slice(self.varint(), "a field") for _ in range(self.varint())}
