"""Records of ``__consumer_offsets``: their bytes are Kafka's, and decoding restores the values."""

from __future__ import annotations

import struct

import pytest
from fakekafka.coordinators.groups.records import (
    GroupKey,
    GroupValue,
    MemberValue,
    OffsetKey,
    OffsetValue,
    decode_group_value,
    decode_key,
    decode_value,
    encode_group_key,
    encode_group_value,
    encode_key,
    encode_value,
    subscribed_topics,
)
from fakekafka.protocol.errors import ClientError
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.builds(OffsetKey, TEXT, TEXT, INT32))
def test_keys_survive_encoding(key: OffsetKey) -> None:
    assert decode_key(encode_key(key)) == key


@given(st.builds(OffsetValue, INT64, INT32, TEXT, INT64, st.just(-1)))
def test_values_survive_encoding(value: OffsetValue) -> None:
    assert decode_value(encode_value(value)) == value


def test_a_key_is_version_1_group_topic_partition() -> None:
    assert encode_key(OffsetKey("g", "orders", 7)) == (
        b"\x00\x01\x00\x01g\x00\x06orders\x00\x00\x00\x07"
    )


def test_a_value_is_version_3_offset_epoch_metadata_time() -> None:
    assert encode_value(OffsetValue(5, 2, "m", 9)) == (
        b"\x00\x03" + struct.pack(">qi", 5, 2) + b"\x00\x01m" + struct.pack(">q", 9)
    )


def test_keys_of_the_older_version_are_decoded_too() -> None:
    data = b"\x00\x00" + encode_key(OffsetKey("g", "orders", 7))[2:]
    assert decode_key(data) == OffsetKey("g", "orders", 7)


@pytest.mark.parametrize(("version", "rest"), [(0, b""), (1, struct.pack(">q", 99)), (2, b"")])
def test_older_values_have_no_leader_epoch(version: int, rest: bytes) -> None:
    """Offset values of version 1 hold an expiry after the commit time, and no leader epoch."""
    data = struct.pack(">hq", version, 5) + b"\x00\x01m" + struct.pack(">q", 9) + rest
    assert decode_value(data) == OffsetValue(5, -1, "m", 9, 99 if version == 1 else -1)


def test_an_offset_with_an_expiry_is_written_as_version_1() -> None:
    value = OffsetValue(5, -1, "m", 9, 99)
    assert encode_value(value)[:2] == b"\x00\x01"
    assert decode_value(encode_value(value)) == value


def test_a_groups_own_record_has_a_key_of_its_own() -> None:
    assert encode_group_key(GroupKey("g")) == b"\x00\x02\x00\x01g"
    assert decode_key(b"\x00\x02\x00\x01g") == GroupKey("g")


MEMBERS = st.builds(
    MemberValue,
    TEXT,
    st.none() | TEXT,
    TEXT,
    TEXT,
    INT32,
    INT32,
    st.binary(max_size=40),
    st.binary(max_size=40),
)
GROUPS = st.builds(
    GroupValue,
    TEXT,
    INT32,
    st.none() | TEXT,
    st.none() | TEXT,
    INT64,
    st.lists(MEMBERS, max_size=3).map(tuple),
)


@given(GROUPS, st.sampled_from([1, 2, 3]))
def test_older_group_values_lack_newer_fields(group: GroupValue, version: int) -> None:
    """Group values of version 2 lack instance ids; version 1 also lacks the time of the state."""
    expected = group
    if version < 3:
        plain = tuple(member._replace(group_instance_id=None) for member in group.members)
        expected = expected._replace(members=plain)
    if version < 2:
        expected = expected._replace(state_timestamp_ms=-1)
    assert decode_group_value(encode_group_value(group, version)) == expected


def test_a_group_is_type_generation_protocol_leader_time_members() -> None:
    member = MemberValue("m", None, "c", "/h", 5, 6, b"sub", b"own")
    data = encode_group_value(GroupValue("consumer", 2, "range", "m", 9, (member,)))
    assert data == (
        b"\x00\x03\x00\x08consumer\x00\x00\x00\x02\x00\x05range\x00\x01m"
        + struct.pack(">qi", 9, 1)
        + b"\x00\x01m\xff\xff\x00\x01c\x00\x02/h"
        + struct.pack(">ii", 5, 6)
        + b"\x00\x00\x00\x03sub\x00\x00\x00\x03own"
    )


def test_the_oldest_groups_rebalance_as_long_as_their_sessions() -> None:
    """Group values of version 0 have no rebalance timeout; the session timeout takes its place."""
    data = (
        b"\x00\x00\x00\x08consumer\x00\x00\x00\x02\xff\xff\xff\xff"
        + struct.pack(">i", 1)
        + b"\x00\x01m\x00\x01c\x00\x02/h"
        + struct.pack(">i", 6)
        + b"\x00\x00\x00\x00\x00\x00\x00\x00"
    )
    (member,) = decode_group_value(data).members
    assert (member.rebalance_timeout_ms, member.session_timeout_ms) == (6, 6)


def test_a_subscription_of_any_version_begins_with_its_topics() -> None:
    assert subscribed_topics(b"\x00\x03\x00\x00\x00\x01\x00\x01tmore") == ("t",)
    with pytest.raises(ClientError):
        subscribed_topics(b"\x00\x01\x00\x00\x00\x05")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x00\x07", "unknown key version 7 in __consumer_offsets"),
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
        (b"\x00\x09", "unknown value version 9 of an offset in __consumer_offsets"),
        (b"\x00\x03\x00", "ends too early"),
        (b"", "ends too early"),
        (encode_value(OffsetValue(5, 2, "m", 9))[:-1], "ends too early"),
        (struct.pack(">hq", 1, 5) + b"\x00\x05m", "a string of 5 bytes does not fit"),
    ],
)
def test_a_broken_value_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ClientError, match=message):
        decode_value(data)
