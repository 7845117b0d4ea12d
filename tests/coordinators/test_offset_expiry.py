"""Offsets that are removed with their topic, with their group, or after their retention."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.groups.records import (
    GroupKey,
    OffsetKey,
    OffsetValue,
    decode_key,
    decode_value,
    encode_group_key,
    encode_key,
    encode_value,
)
from fakekafka.protocol.groups import OffsetCommitPartition
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.batches import parse_batches
from fakekafka.tests.support.group_rig import AUDIT, NONE, ORDERS, START_MS, GroupRig, log_of

DAY_MS = 86_400_000
VALUE = encode_value(OffsetValue(4, 1, "", START_MS))


def tombstones(rig: GroupRig) -> list[list[OffsetKey | GroupKey]]:
    """Return the keys deleted by tombstones without an acknowledgement, append by append."""
    found = []
    for request in rig.replicas.appended:
        if request.acks == 0:
            (batch,) = parse_batches(request.partitions[0].records)
            assert all(record.value is None for record in batch.records())
            found.append([decode_key(record.key or b"") for record in batch.records()])
    return found


def test_each_offset_of_a_deleted_partition_is_removed_by_a_tombstone() -> None:
    """Offsets of deleted partitions are removed by one unawaited append per group, as in Kafka's
    cleanupGroupMetadata."""
    keys = [
        OffsetKey("group", "orders", 0),
        OffsetKey("other", "orders", 0),
        OffsetKey("group", "audit", 3),
        OffsetKey("group", "orders", 1),
    ]
    rig = GroupRig(log=log_of(*((encode_key(key), VALUE) for key in keys)))
    rig.coordinator.partitions_deleted([ORDERS, TopicPartition("orders", 1)])
    assert [(c.topic_partition, c.offset) for c in rig.fetch()] == [(AUDIT, 4)]
    assert tombstones(rig) == [[keys[0], keys[3]], [keys[1]]]
    assert list(rig.coordinator.groups) == ["group"]


def test_deleted_partitions_without_offsets_write_nothing(rig: GroupRig) -> None:
    rig.coordinator.partitions_deleted([ORDERS])
    assert rig.replicas.appended == []


def test_in_0_10_offsets_outlived_their_topic() -> None:
    """Until KAFKA-2000 (0.10.2) offsets outlived their topic."""
    rig = GroupRig("0.10")
    rig.commit()
    rig.coordinator.partitions_deleted([ORDERS])
    assert rig.offset() == 7


@pytest.mark.parametrize(("version", "kept_days"), [("3.9", 7), ("2.8", 7), ("1.1", 1)])
def test_offsets_of_a_group_that_only_commits_expire(version: str, kept_days: int) -> None:
    """Offsets expire ``offsets.retention.minutes`` after the commit; the group is removed with the
    last of them."""
    rig = GroupRig(version)
    rig.commit()
    rig.host.advance(kept_days * DAY_MS - 600_000)
    assert rig.offset() == 7
    rig.host.advance(1_200_001)
    assert rig.coordinator.groups == {}
    assert tombstones(rig) == [[OffsetKey("group", "orders", 0)]]


def test_an_offset_expires_when_it_is_as_old_as_the_retention(rig: GroupRig) -> None:
    """KIP-211: an offset expires when it is exactly as old as the retention, to the millisecond."""
    rig.commit()
    group = rig.coordinator.groups["group"]
    assert group.remove_expired_offsets(START_MS + DAY_MS - 1, DAY_MS) == []
    assert group.remove_expired_offsets(START_MS + DAY_MS, DAY_MS) == [ORDERS]


def test_retention_of_an_empty_groups_offsets_counts_from_when_it_became_empty(
    rig: GroupRig,
) -> None:
    """KIP-211: retention counts from when the group became empty, not from the commit; the group's
    record is removed, too."""
    rig.stable("a")
    rig.commit(member="a", generation=1)
    for _ in range(1000):
        rig.host.advance(9000)
        assert rig.heartbeat("a") == NONE
    rig.leave("a")
    assert rig.state == "Empty"
    rig.host.advance(7 * DAY_MS - 600_000)
    assert rig.offset() == 7
    rig.host.advance(1_200_000)
    assert rig.coordinator.groups == {}
    assert tombstones(rig) == [[OffsetKey("group", "orders", 0), GroupKey("group")]]


def subscription(*topics: str) -> bytes:
    """The metadata of a consumer."""
    names = b"".join(len(t).to_bytes(2, "big") + t.encode() for t in topics)
    return b"\x00\x01" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("version", "left"), [("3.9", [ORDERS]), ("2.8", [ORDERS]), ("1.1", []), ("0.10", [])]
)
def test_offsets_of_topics_that_a_stable_group_reads_are_kept(
    version: str, left: list[TopicPartition]
) -> None:
    """KIP-211: offsets of topics that a stable group reads are kept; before, readers of idle topics
    lost their place."""
    rig = GroupRig(version, offsets_retention_minutes=20)
    rig.stable("a", protocols=(("range", subscription("orders")),), session_ms=300_000)
    both = (OffsetCommitPartition(ORDERS, 7), OffsetCommitPartition(AUDIT, 8))
    rig.commit(*both, member="a", generation=1)
    for _ in range(9):
        rig.host.advance(200_000)
        assert rig.heartbeat("a") == NONE
    assert [c.topic_partition for c in rig.fetch()] == left


@pytest.mark.parametrize("version", ["3.9", "2.8", "1.1"])
def test_a_commit_may_name_its_retention_time(version: str) -> None:
    """OffsetCommit of versions 2 to 4 may name a retention time; it is stored with the offset."""
    rig = GroupRig(version)
    rig.commit(retention_ms=1000)
    (record,) = rig.log.records()
    assert decode_value(record.value or b"").expire_timestamp_ms == START_MS + 1000
    rig.host.advance(600_000)
    assert rig.offset() == -1


def test_an_offset_with_a_commit_under_way_does_not_expire(rig: GroupRig) -> None:
    rig.commit()
    rig.host.advance(7 * DAY_MS - 600_000)
    rig.replicas.is_held = True
    rig.commit(OffsetCommitPartition(ORDERS, 9))
    rig.host.advance(1_200_000)
    assert rig.offset() == 7
    rig.replicas.answer()
    assert rig.offset() == 9


@pytest.mark.parametrize("version", ["3.9", "1.1"])
def test_old_records_get_the_time_of_the_broker(version: str) -> None:
    """Offset records of value version 0 have no expiry."""
    old = b"\x00\x00" + (5).to_bytes(8, "big") + b"\x00\x00" + START_MS.to_bytes(8, "big")
    log = log_of((encode_key(OffsetKey("group", *ORDERS)), old))
    rig = GroupRig(version, log=log, offsets_retention_minutes=5)
    assert rig.offset() == 5
    rig.host.advance(600_000)
    assert rig.coordinator.groups == {}


def test_a_deleted_group_is_not_loaded() -> None:
    key = encode_key(OffsetKey("group", *ORDERS))
    group = encode_group_key(GroupKey("group"))
    rig = GroupRig(log=log_of((key, VALUE), (key, None), (group, None)))
    assert rig.coordinator.groups == {}
