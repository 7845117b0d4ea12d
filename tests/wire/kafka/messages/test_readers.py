"""Readers refuse malformed messages, and their fast paths give the same results as slow ones."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from fakekafka.protocol.errors import ClientError
from fakekafka.tests.support.wire_trees import CODEC, body, read
from fakekafka.wire.kafka.messages.selection import selection
from fakekafka.wire.kafka.messages.table import message
from fakekafka.wire.kafka.messages.varints import encoded_varint, tagged_fields, unsigned_varint

DESCRIBE_GROUPS, DELETE_GROUPS, SASL_AUTHENTICATE, LIST_TRANSACTIONS = 15, 42, 36, 66
COMPACT = 2
"""First flexible version of DeleteGroups, whose request is an array of strings, and of
SaslAuthenticate, whose request is bytes.
"""


def decoded(key: int, version: int, data: bytes) -> Any:
    return CODEC.decode(key, version, memoryview(data))


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 16_383, 16_384, 3_000_000, 2**32 - 1])
def test_a_varint_survives_encoding(value: int) -> None:
    encoded = encoded_varint(value)
    assert unsigned_varint(b"x" + encoded + b"rest", 1) == (value, 1 + len(encoded))
    for cut in range(len(encoded)):
        with pytest.raises(ClientError, match="ends inside a varint"):
            unsigned_varint(encoded[:cut], 0)


def test_a_varint_has_up_to_five_bytes() -> None:
    assert unsigned_varint(b"\xff\xff\xff\xff\x0f", 0) == (2**32 - 1, 5)
    with pytest.raises(ClientError, match="more than 5 bytes"):
        unsigned_varint(b"\xff\xff\xff\xff\xff\x01", 0)


def test_tagged_fields_are_found_by_their_tags() -> None:
    """The last of several fields with the same tag counts."""
    data = b"\3" + b"\1\2ab" + b"\x80\1\0" + b"\1\1c"
    assert tagged_fields(data + b"rest", 0) == ({1: b"c", 128: b""}, len(data))
    with pytest.raises(ClientError, match="a field of 9 bytes with 1 remaining"):
        tagged_fields(b"\1\0\x09a", 0)


@pytest.mark.parametrize("version", [1, COMPACT])
@pytest.mark.parametrize("count", [0, 1, 5, 126, 127, 128, 300])
def test_an_array_has_its_announced_number_of_elements(version: int, count: int) -> None:
    names = tuple(str(number) for number in range(count))
    assert decoded(DELETE_GROUPS, version, body(DELETE_GROUPS, version, {"groupsNames": names}))
    size = encoded_varint(count + 1) if version == COMPACT else struct.pack(">i", count)
    if count:
        with pytest.raises(ClientError, match=f"{count} elements with {count - 1} bytes"):
            decoded(DELETE_GROUPS, version, size + bytes(count - 1))


@pytest.mark.parametrize("version", [1, COMPACT])
@pytest.mark.parametrize("text", ["", "a", "x" * 126, "y" * 127, "z" * 20_000, "é" * 64])
def test_a_string_is_read_whole(version: int, text: str) -> None:
    data = body(DELETE_GROUPS, version, {"groupsNames": [text, "after"]})
    assert decoded(DELETE_GROUPS, version, data).group_ids == (text, "after")
    with pytest.raises(ClientError, match="cannot be decoded"):
        decoded(DELETE_GROUPS, version, data[: len(data) - 8])


@pytest.mark.parametrize("version", [1, COMPACT])
def test_text_is_utf_8(version: int) -> None:
    data = body(DELETE_GROUPS, version, {"groupsNames": ["ab"]}).replace(b"ab", b"\xff\xfe")
    with pytest.raises(ClientError, match="utf-8"):
        decoded(DELETE_GROUPS, version, data)


@pytest.mark.parametrize(
    ("key", "version", "data", "what"),
    [
        (DELETE_GROUPS, 1, b"\xff\xff\xff\xff", "an array is"),
        (DELETE_GROUPS, 1, b"\x80\0\0\0", "an array is"),
        (DELETE_GROUPS, COMPACT, b"\0\0", "an array is"),
        (DELETE_GROUPS, 1, b"\0\0\0\1\xff\xff", "a string is"),
        (DELETE_GROUPS, COMPACT, b"\2\0\0", "a string is"),
        (SASL_AUTHENTICATE, 1, b"\xff\xff\xff\xfe", "bytes are"),
        (SASL_AUTHENTICATE, COMPACT, b"\0\0", "bytes are"),
    ],
)
def test_null_is_refused_where_it_is_not_allowed(
    key: int, version: int, data: bytes, what: str
) -> None:
    """A size below zero stands for null in either encoding, and is refused for required values."""
    with pytest.raises(ClientError, match=f"null where {what} required"):
        decoded(key, version, data)


def test_an_array_of_numbers_is_bounded_by_the_remaining_bytes() -> None:
    """The size of an array counts in elements, which are wider than a byte."""
    with pytest.raises(ClientError, match="a field of 32 bytes with 20 remaining"):
        decoded(LIST_TRANSACTIONS, 0, b"\1\5" + bytes(20))


@pytest.mark.parametrize("version", [1, COMPACT])
def test_nothing_is_read_beyond_the_end(version: int) -> None:
    whole = body(DELETE_GROUPS, version, {"groupsNames": ["a", "b"]})
    for cut in range(len(whole)):
        with pytest.raises(ClientError, match="cannot be decoded"):
            decoded(DELETE_GROUPS, version, whole[:cut])


def test_bytes_after_a_message_are_ignored() -> None:
    """As in Kafka, the parser stops at the last field."""
    assert decoded(DELETE_GROUPS, 1, bytes(4) + b"more").group_ids == ()


def test_unknown_tags_are_passed_over() -> None:
    """KIP-482: a reader ignores tags that it does not know."""
    request = decoded(DESCRIBE_GROUPS, 5, b"\2\2g\1" + b"\2" + b"\5\3xyz" + b"\x80\1\0")
    assert (request.group_ids, request.include_authorized_operations) == (("g",), True)


def test_a_tree_has_only_the_fields_of_its_version() -> None:
    """The tree has no fields of later versions, and the data after it is not read."""
    found = message(DESCRIBE_GROUPS, "request")
    assert read(found, 2, b"\0\0\0\1\0\1gmore") == ({"groups": ["g"]}, 7)


def test_a_selection_has_fields_attributes_and_nested_selections() -> None:
    whole, inner, pair = selection("errorCode=error members(memberId a=b.c) results[name error]")
    assert (whole.field, whole.attribute, whole.inner) == ("errorCode", "error", [])
    assert [(one.field, one.attribute) for one in inner.inner] == [("memberId", ""), ("a", "b.c")]
    assert (inner.is_tuple, pair.is_tuple) == (False, True)
    assert [one.field for one in pair.inner] == ["name", "error"]
