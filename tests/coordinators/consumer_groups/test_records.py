"""Records of groups of the consumer protocol (KIP-848), byte for byte as Kafka 3.9 writes them."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.consumer_groups import records
from fakekafka.coordinators.consumer_groups.member import (
    ClassicMembership,
    ConsumerMember,
    MemberState,
)
from fakekafka.coordinators.consumer_groups.records import GroupRecord, SubscribedTopic
from fakekafka.protocol.errors import ClientError
from fakekafka.protocol.values import uuid_text

TOPIC = uuid_text(bytes(range(16)))
MEMBER = ConsumerMember(
    "m",
    3,
    2,
    MemberState.UNREVOKED_PARTITIONS,
    "i",
    None,
    5000,
    "c",
    "/h",
    ("t",),
    server_assignor="range",
    assigned={TOPIC: (0, 1)},
    pending_revocation={TOPIC: (2,)},
    classic=ClassicMembership(6000, (("range", b"\1"),)),
)
ID = bytes(range(16)).hex()
WRITTEN = [
    (records.group_epoch("g", 7), "0003000167", "0000" "00000007" "00"),
    (
        records.subscribed_topics("g", (SubscribedTopic(TOPIC, "t", 2, ((0, ("r",)),)),)),
        "0004000167",
        "0000" "02" + ID + "0274" "00000002" "02" "00000000" "02" "0272" "00" "00" "00",
    ),
    (
        records.member_metadata("g", MEMBER),
        "000500016700016d",
        "0000" "0269" "00" "0263" "032f68" "02" "0274" "01" "00001388" "0672616e6765"
        "01" "00" "10" "01" "00001770" "02" "0672616e6765" "0201" "00" "00",
    ),
    (records.target_epoch("g", 7), "0006000167", "0000" "00000007" "00"),
    (
        records.target("g", "m", {TOPIC: (0, 1)}),
        "000700016700016d",
        "0000" "02" + ID + "03" "00000000" "00000001" "00" "00",
    ),
    (
        records.current("g", MEMBER),
        "000800016700016d",
        "0000" "00000003" "00000002" "01"
        "02" + ID + "03" "00000000" "00000001" "00"
        "02" + ID + "02" "00000002" "00" "00",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("record", "key", "value"), WRITTEN)
def test_a_record_has_kafkas_bytes(record: GroupRecord, key: str, value: str) -> None:
    written_key, written_value = records.encode(record)
    assert written_key.hex() == key
    assert written_value is not None
    assert written_value.hex() == value


@pytest.mark.parametrize(("record", "key", "value"), WRITTEN)
def test_a_record_is_read_again(record: GroupRecord, key: str, value: str) -> None:
    """A member's own record holds its subscription, not its assignment."""
    found = records.decode(bytes.fromhex(key), bytes.fromhex(value))
    if record.kind is records.RecordKind.MEMBER:
        record = record._replace(
            value=MEMBER._replace(
                member_epoch=0,
                previous_epoch=-1,
                state=MemberState.STABLE,
                assigned={},
                pending_revocation={},
            )
        )
    assert found == record
    assert records.decode(bytes.fromhex(key), None) == record._replace(value=None)


def test_unknown_records_are_skipped_and_malformed_ones_refused() -> None:
    assert records.decode(b"\0\2\0\1g", None) is None
    assert records.decode(b"\0\x0b\0\1g", b"") is None
    for value in (b"\0\1\0\0\0\1\0", b"\0\0\0", b""):
        with pytest.raises(ClientError):
            records.decode(b"\0\3\0\1g", value)
    with pytest.raises(ClientError, match="state 9"):
        records.decode(b"\0\x08\0\1g\0\1m", b"\0\0" + bytes(8) + b"\x09\1\1\0")
