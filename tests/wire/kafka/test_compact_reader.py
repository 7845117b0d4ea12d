"""The reader of flexible messages: sizes of one byte go a short way, with the same outcome."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakekafka.protocol.errors import ClientError
from fakekafka.wire.kafka.primitives import CompactReader, unsigned_varint


def reader(data: bytes) -> CompactReader:
    return CompactReader(memoryview(data))


@pytest.mark.parametrize("count", [0, 1, 5, 126, 127, 128, 300, 20_000, 3_000_000])
def test_an_array_gives_its_number_of_elements(count: int) -> None:
    size = unsigned_varint(count + 1)
    one = reader(size + bytes(count))
    assert (one.array(), one.at) == (count, len(size))


@pytest.mark.parametrize("count", [1, 5, 126, 127, 300])
def test_an_array_longer_than_the_message_is_refused(count: int) -> None:
    with pytest.raises(ClientError, match=f"an array of {count} elements"):
        reader(unsigned_varint(count + 1) + bytes(count - 1)).array()


def test_a_null_array_is_refused_where_it_is_required() -> None:
    with pytest.raises(ClientError, match="null where an array is required"):
        reader(b"\0").array()


@pytest.mark.parametrize("read", [CompactReader.array, CompactReader.nullable_string])
def test_nothing_is_read_beyond_the_end(read: Callable[[CompactReader], object]) -> None:
    with pytest.raises(ClientError, match="ends where a length should be"):
        read(reader(b""))


@pytest.mark.parametrize("text", [None, "", "a", "x" * 126, "y" * 127, "z" * 20_000])
def test_a_nullable_string_is_read_whole(text: str | None) -> None:
    size = b"\0" if text is None else unsigned_varint(len(text) + 1)
    one = reader(size + (text or "").encode() + b"rest")
    assert one.nullable_string() == text
    assert bytes(one.slice(4)) == b"rest"
