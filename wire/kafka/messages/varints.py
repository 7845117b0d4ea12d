"""Unsigned varints, and tagged fields, whose sizes they encode (KIP-482)."""

from __future__ import annotations

from ....protocol.errors import ClientError

Buffer = bytes | bytearray | memoryview
_SHIFT_MAX = 28
ONE_BYTE = [bytes((value,)) for value in range(0x80)]
"""All varints of one byte, by value."""


def unsigned_varint(data: Buffer, at: int) -> tuple[int, int]:
    """Read a varint of up to 5 bytes; return its value and the position after it."""
    try:
        byte = data[at]
        value = byte & 0x7F
        shift = 7
        while byte > 0x7F:
            if shift > _SHIFT_MAX:
                raise ClientError("a varint of more than 5 bytes")
            at += 1
            byte = data[at]
            value |= (byte & 0x7F) << shift
            shift += 7
    except IndexError:
        raise ClientError("the message ends inside a varint") from None
    return value, at + 1


def tagged_fields(data: Buffer, at: int) -> tuple[dict[int, Buffer], int]:
    """Read the tagged fields at the end of a structure; return tag -> value, and the position after
    them."""
    fields: dict[int, Buffer] = {}
    count, at = unsigned_varint(data, at)
    for _ in range(count):
        tag, at = unsigned_varint(data, at)
        size, at = unsigned_varint(data, at)
        if at + size > len(data):
            raise too_long(size, len(data) - at)
        fields[tag] = data[at : at + size]
        at += size
    return fields, at


def too_long(size: int, remaining: int) -> ClientError:
    """Return the error for a field that extends beyond the data."""
    return ClientError(f"a field of {size} bytes with {remaining} remaining")


def encoded_varint(value: int) -> bytes:
    """Encode an unsigned varint of up to 32 bits."""
    if value < 0x80:
        return ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    encoded = bytearray()
    while value > 0x7F:
        encoded.append((value & 0x7F) | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
