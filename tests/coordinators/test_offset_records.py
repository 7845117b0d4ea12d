"""Records of ``__consumer_offsets``: the bytes are Kafka's, and come back as they went in."""

from __future__ import annotations

import struct

import pytest
from fakekafka.coordinators.offsets.records import (
    OffsetKey,
    OffsetValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from fakekafka.protocol.errors import ClientError
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.builds(OffsetKey, TEXT, TEXT, INT32))
def test_keys_come_back(key: OffsetKey) -> None:
    assert decode_key(encode_key(key)) == key


@given(st.builds(OffsetValue, INT64, INT32, TEXT, INT64))
def test_values_come_back(value: OffsetValue) -> None:
    assert decode_value(encode_value(value)) == value


def test_a_key_is_version_1_group_topic_partition() -> None:
    assert encode_key(OffsetKey("g", "orders", 7)) == (
        b"\x00\x01\x00\x01g\x00\x06orders\x00\x00\x00\x07"
    )


def test_a_value_is_version_3_offset_epoch_metadata_time() -> None:
    assert encode_value(OffsetValue(5, 2, "m", 9)) == (
        b"\x00\x03" + struct.pack(">qi", 5, 2) + b"\x00\x01m" + struct.pack(">q", 9)
    )


def test_the_older_key_version_is_read_alike() -> None:
    data = b"\x00\x00" + encode_key(OffsetKey("g", "orders", 7))[2:]
    assert decode_key(data) == OffsetKey("g", "orders", 7)


@pytest.mark.parametrize(
    ("version", "rest"),
    [(0, b""), (1, struct.pack(">q", 99)), (2, b"")],
)
def test_older_values_have_no_leader_epoch(version: int, rest: bytes) -> None:
    """Version 1 has an expiry after the commit time, which is not needed here."""
    data = struct.pack(">hq", version, 5) + b"\x00\x01m" + struct.pack(">q", 9) + rest
    assert decode_value(data) == OffsetValue(5, -1, "m", 9)


def test_a_groups_own_record_is_no_offset() -> None:
    assert decode_key(b"\x00\x02\x00\x01g") is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x00\x07", "key version 7 of __consumer_offsets is unknown"),
        (b"\x00\x01\x00\x09g", "a string of 9 bytes does not fit"),
        (b"\x00\x01\xff\xffg", "a string of -1 bytes does not fit"),
        (b"", "ends too early"),
        (b"\x00\x01\x00\x01g\x00\x01t\x00", "ends too early"),
        (b"\x00\x01\x00\x01g", "ends too early"),
        (b"\x00\x01\x00\x01\xff\x00\x01t\x00\x00\x00\x00", "no UTF-8"),
    ],
)
def test_a_broken_key_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ClientError, match=message):
        decode_key(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x00\x09", "value version 9 of __consumer_offsets is unknown"),
        (b"\x00\x03\x00", "ends too early"),
        (b"", "ends too early"),
        (encode_value(OffsetValue(5, 2, "m", 9))[:-1], "ends too early"),
        (struct.pack(">hq", 1, 5) + b"\x00\x05m", "a string of 5 bytes does not fit"),
    ],
)
def test_a_broken_value_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ClientError, match=message):
        decode_value(data)
