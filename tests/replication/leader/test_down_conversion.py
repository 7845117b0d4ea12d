"""Fetch answers of v0 to v3 for batches of format v2 (docs/kafka/fetch.md,
docs/kafka/log.md#batches)."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from fakekafka.protocol.data import (
    FetchPartition,
    FetchRequest,
    ProducePartition,
    ProduceRequest,
    RequestContext,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import RecordBatch, build_control_marker
from fakekafka.protocol.records.legacy import LegacyMessageSet, build_message, parse_message
from fakekafka.replication.log.follower_append import append_as_follower
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.tests.support.batches import with_base_offset
from fakekafka.tests.support.down_conversion import down_converted
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, encode, led
from fakekafka.tracing.packing import PayloadPacker

NONE = ErrorCode.NONE
ROOM = 1 << 20


def old_fetch(
    cluster: ReplicaCluster,
    api_version: int,
    offset: int = 0,
    max_bytes: int = ROOM,
    replica_id: int = -1,
) -> Any:
    """Return one partition of the answer to an old consumer's fetch."""
    spec = FetchPartition(TP, offset, max_bytes=max_bytes)
    request = FetchRequest(replica_id, 0, 1, ROOM, (spec,))
    manager = cluster[0].manager
    answers: list[Any] = []
    manager.fetch.fetch_messages(request, RequestContext("c", api_version), answers.append)
    (answer,) = down_converted(
        request, answers[0], api_version, manager.hosted.partition
    ).partitions
    return answer


def append(cluster: ReplicaCluster, *batches: bytes) -> None:
    for batch in batches:
        log = cluster[0].log()
        append_as_leader(log, batch, 0, cluster.clock.now_ms)
    cluster[0].partition().maybe_increment_high_watermark(cluster.clock.now_ms)


def alone(**topic: str) -> ReplicaCluster:
    return led(brokers=1, topic=topic)


def messages(answer: Any) -> list[tuple[int, int, int, bytes | None]]:
    """Return (magic, offset, timestamp, value) of each entry, without unwrapping wrappers."""
    data = b"".join(batch.data for batch in answer.records)
    found, position = [], 0
    while (message := parse_message(data, position)) is not None:
        found.append((message.magic, message.offset, message.timestamp, message.value))
        position += message.size
    return found


@pytest.mark.parametrize(("api_version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_format_follows_the_version(api_version: int, magic: int) -> None:
    """v0 and v1 get magic 0, v2 and v3 magic 1; only the latter carry timestamps
    (docs/kafka/fetch.md#errors)."""
    cluster = alone()
    append(cluster, encode("a", "b", timestamp=77), encode("c", timestamp=78))
    times = (77, 77, 78) if magic else (-1, -1, -1)
    expected = [
        (magic, offset, time, value)
        for offset, (time, value) in enumerate(zip(times, (b"a", b"b", b"c"), strict=True))
    ]
    answer = old_fetch(cluster, api_version)
    assert messages(answer) == expected
    assert (answer.error, answer.high_watermark) == (NONE, 3)


@pytest.mark.parametrize("api_version", [0, 1, 2, 3])
def test_uncompressed_answers_start_at_the_fetch_offset(api_version: int) -> None:
    """DP-81: an uncompressed answer omits records of the same batch before the fetch offset."""
    cluster = alone()
    append(cluster, encode("a", "b", "c"))
    found = messages(old_fetch(cluster, api_version, 1))
    assert [(offset, value) for _, offset, _, value in found] == [(1, b"b"), (2, b"c")]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_compressed_answers_start_with_the_whole_batch(codec: str) -> None:
    """DP-81: a compressed batch stays one wrapper with the offset of its last record."""
    cluster = alone()
    append(cluster, encode("a", "b", "c", compression=codec))
    answer = old_fetch(cluster, 2, 1)
    assert [offset for _, offset, _, _ in messages(answer)] == [2]
    (old,) = answer.records
    assert [(r.offset, r.value) for r in old.records()] == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_conversion_may_be_switched_off() -> None:
    """message.downconversion.enable=false answers consumers UNSUPPORTED_VERSION
    (docs/kafka/fetch.md#errors)."""
    cluster = alone(**{"message.downconversion.enable": "false"})
    append(cluster, encode("a"))
    assert old_fetch(cluster, 3).error is ErrorCode.UNSUPPORTED_VERSION
    assert old_fetch(cluster, 0).error is ErrorCode.UNSUPPORTED_VERSION


def test_messages_of_the_old_format_are_not_converted() -> None:
    """Messages of format 0.10 are not converted for v2 and v3, but are for v0 and v1."""
    off = {"message.downconversion.enable": "false", "message.format.version": "0.10.2"}
    cluster = alone(**off)
    append(cluster, encode("a"))
    assert [magic for magic, *_ in messages(old_fetch(cluster, 2))] == [1]
    assert old_fetch(cluster, 1).error is ErrorCode.UNSUPPORTED_VERSION


def test_zstd_cannot_be_converted() -> None:
    """A zstd batch at the fetch offset is error 76; a later one ends the answer before it
    (docs/kafka/fetch.md#errors)."""
    cluster = alone()
    append(cluster, encode("a"), encode("b", compression="zstd"), encode("c"))
    assert [value for *_, value in messages(old_fetch(cluster, 3))] == [b"a"]
    assert old_fetch(cluster, 3, 1).error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert [value for *_, value in messages(old_fetch(cluster, 3, 2))] == [b"c"]


@pytest.mark.parametrize("api_version", [0, 1, 2, 3])
def test_records_that_cannot_be_read_cannot_be_converted(api_version: int) -> None:
    """Unreadable data, which an old log may hold, is CORRUPT_MESSAGE unless whole batches precede
    it."""
    cluster = alone()
    append(cluster, encode("a"))
    bad = encode("x" * 30)
    bad = with_base_offset(bad[:61] + b"\xff" * 9 + bad[70:], 1, 0)
    append_as_follower(cluster[0].log(), [RecordBatch.from_bytes(bad)], cluster.clock.now_ms)
    append(cluster)
    assert [value for *_, value in messages(old_fetch(cluster, api_version))] == [b"a"]
    assert old_fetch(cluster, api_version, 1).error is ErrorCode.CORRUPT_MESSAGE
    with_hard_limits = api_version <= 2  # then the first bytes are sent as they are
    error = old_fetch(cluster, api_version, 1, 20).error
    assert error is (NONE if with_hard_limits else ErrorCode.CORRUPT_MESSAGE)


@pytest.mark.parametrize("api_version", [0, 1, 2])
def test_too_large_message_is_cut_off(api_version: int) -> None:
    """DP-73: up to v2 the limit is hard; the bytes of the first message that fit are returned."""
    cluster = alone()
    append(cluster, encode("x" * 300))
    answer = old_fetch(cluster, api_version, max_bytes=200)
    assert [len(batch.data) for batch in answer.records] == [200]
    assert messages(answer) == []
    assert answer.error is NONE
    stored = cluster[0].log().active.stored[0]
    assert answer.records[0].data == stored[:200]  # ``hasCompatibleMagic`` of no whole batch


def test_a_log_of_message_sets_is_cut_in_their_format() -> None:
    """A topic of message format 0.10 sends the bytes of a message of that format that fit."""
    cluster = alone(**{"message.format.version": "0.10.2"})
    append(cluster, encode("x" * 300))
    (old,) = old_fetch(cluster, 2, max_bytes=200).records
    (whole,) = old_fetch(cluster, 2).records
    assert old.data == whole.data[:200]
    assert messages(old_fetch(cluster, 2)) != []


def test_too_large_message_is_whole_from_v3_on() -> None:
    """From v3 on the first batch may exceed the limits, both converted and stored
    (docs/kafka/fetch.md#limits)."""
    cluster = alone()
    append(cluster, encode("x" * 300))
    assert [value for *_, value in messages(old_fetch(cluster, 3, max_bytes=10))] == [b"x" * 300]


def test_a_converted_answer_is_no_larger_than_the_bytes_read() -> None:
    """KIP-283: converted records that need more room than their batch did are cut off."""
    cluster = alone()
    append(cluster, encode("a"), encode(*"bcdefghijk"))
    log = cluster[0].log()
    read = sum(len(batch.data) for batch in log.batches(0))
    answer = old_fetch(cluster, 3)
    assert sum(len(batch.data) for batch in answer.records) == read
    values = [value for *_, value in messages(answer)]
    assert values[0] == b"a"
    assert 1 < len(values) < 11


@pytest.mark.parametrize("left", [1, 11, 12, 13, 40, 60])
def test_the_answer_has_as_many_bytes_as_were_read(left: int) -> None:
    """KIP-283: behind the converted batches the answer has the start of a message too long for it,
    in place of the bytes that were cut off (``LazyDownConversionRecordsSend``)."""
    cluster = alone()
    append(cluster, encode("a"), encode("b"))
    size = len(cluster[0].log().active.stored[0])
    (old,) = old_fetch(cluster, 3, max_bytes=size + left).records
    assert len(old.data) == size + left
    (alone_,) = old.records()
    assert alone_.value == b"a"
    rest = old.data[len(build_message(0, 1, None, b"a", 1)) :]
    length = max(len(rest) + 1, 61)
    assert rest == (struct.pack(">qi", -1, length) + bytes(len(rest)))[: len(rest)]


def test_long_answers_are_filled_in_pieces() -> None:
    """KIP-283: each filler is at most 128 KiB long and begins a message."""
    cluster = alone()
    append(cluster, encode("a" * 1000, compression="gzip"), encode("b" * 300_000))
    end = len(cluster[0].log().active.stored[0]) + 200_000
    (old,) = old_fetch(cluster, 3, max_bytes=end).records
    assert len(old.data) == end
    assert [record.value for record in old.records()] == [b"a" * 1000]
    assert old.data.count(b"\xff" * 8) == 2


def test_before_2_0_all_that_was_read_is_converted() -> None:
    """1.1 converts all that was read, without cutting or filling; an incomplete batch is left out
    (``FileRecords.downConvert``)."""
    cluster = led("1.1", brokers=1)
    append(cluster, encode("a"), encode(*"bcdefghijk"), encode("z"))
    stored = cluster[0].log().active.stored
    answer = old_fetch(cluster, 3, max_bytes=len(stored[0]) + len(stored[1]) + 5)
    assert [value for *_, value in messages(answer)] == [b"%c" % c for c in b"abcdefghijk"]
    (old,) = answer.records
    assert len(old.data) > len(stored[0]) + len(stored[1])


@pytest.mark.parametrize("offset", [1, 2])
def test_nothing_new_is_an_empty_answer(offset: int) -> None:
    """At the high watermark and above the answer is empty, without filler."""
    cluster = led(brokers=2)
    append(cluster, encode("a"), encode("b"))
    cluster.fetch(0, 1, replica_id=1)
    answer = old_fetch(cluster, 2, offset, max_bytes=5)
    assert (answer.error, answer.records, answer.high_watermark) == (NONE, (), 1)


def test_followers_read_to_the_end_whatever_the_switch_says() -> None:
    """message.downconversion.enable is for consumers only; an old follower's limit is hard, too
    (docs/kafka/fetch.md#errors)."""
    cluster = led(brokers=2, topic={"message.downconversion.enable": "false"})
    append(cluster, encode("a"), encode("b"))
    answer = old_fetch(cluster, 1, replica_id=1)
    assert [value for *_, value in messages(answer)] == [b"a", b"b"]
    assert len(old_fetch(cluster, 1, max_bytes=5, replica_id=1).records[0].data) == 5


def test_broker_0_is_a_follower_like_others() -> None:
    """The switch does not apply to broker 0 either."""
    cluster = led(brokers=2, leader=1, topic={"message.downconversion.enable": "false"})
    append_as_leader(cluster[1].log(), encode("a"), 0, cluster.clock.now_ms)
    request = FetchRequest(0, 0, 1, ROOM, (FetchPartition(TP, 0, max_bytes=ROOM),))
    answers: list[Any] = []
    manager = cluster[1].manager
    manager.fetch.fetch_messages(request, RequestContext("c", 3), answers.append)
    (answer,) = down_converted(request, answers[0], 3, manager.hosted.partition).partitions
    assert [value for *_, value in messages(answer)] == [b"a"]


def test_markers_alone_become_the_start_of_a_message() -> None:
    """KIP-283: old formats have no markers; the start of an oversized message makes the consumer
    read on."""
    cluster = alone()
    append(cluster, encode("a", producer_id=5, producer_epoch=0, base_sequence=0))
    marker = build_control_marker(5, 0, True, 0, 1)
    log = cluster[0].log()
    append_as_leader(log, marker, 0, cluster.clock.now_ms, origin="coordinator")
    append(cluster)
    answer = old_fetch(cluster, 3, 1)
    assert (answer.error, messages(answer)) == (NONE, [])
    assert [len(batch.data) for batch in answer.records] == [12]
    assert [value for *_, value in messages(old_fetch(cluster, 3, 0))] == [b"a"]


def test_error_answers_are_not_converted() -> None:
    """An error answer is not converted."""
    assert old_fetch(alone(), 1, 9).error is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("api_version", [0, 1, 2])
def test_new_consumers_read_records_of_old_producers(api_version: int) -> None:
    """Produce v0 to v2 carries message sets; they are stored as batches of format v2
    (docs/kafka/log.md#batches)."""
    cluster = alone()
    magic = 1 if api_version == 2 else 0
    old = b"".join(build_message(0, magic, None, value, 50) for value in (b"a", b"b"))
    answers: list[Any] = []
    cluster[0].manager.produce.append_records(
        ProduceRequest(-1, 1000, (ProducePartition(TP, old),)),
        RequestContext("c", api_version),
        lambda response: answers.extend(response.partitions),
    )
    assert (answers[0].error, answers[0].base_offset) == (NONE, 0)
    (batch,) = cluster[0].log().batches(0)
    records = batch.records()
    assert [(r.value, r.timestamp) for r in records] == [
        (b"a", 50 if magic else -1),
        (b"b", 50 if magic else -1),
    ]
    assert [value for *_, value in messages(old_fetch(cluster, api_version))] == [b"a", b"b"]


def test_a_message_set_is_no_longer_taken_from_v3_on() -> None:
    """5.1 row 5: from v3 on a request must have exactly one batch of format v2."""
    cluster = alone()
    old = build_message(0, 1, None, b"a", 50)
    answers: list[Any] = []
    cluster[0].manager.produce.append_records(
        ProduceRequest(-1, 1000, (ProducePartition(TP, old),)),
        RequestContext("c", 3),
        lambda response: answers.extend(response.partitions),
    )
    assert answers[0].error is ErrorCode.INVALID_RECORD


def test_old_messages_read_like_a_batch() -> None:
    """Old messages are read like a batch; a message cut off at the end is omitted."""
    data = build_message(4, 1, b"k", b"v", 9) + build_message(5, 1, None, b"w", 9)[:-1]
    (record,) = LegacyMessageSet(data, 4, 5).records()
    assert (record.offset, record.timestamp, record.key, record.value) == (4, 9, b"k", b"v")


def test_a_trace_shows_converted_answers_like_batches() -> None:
    """A trace shows offsets and size of a converted answer; a message set has no leader epoch."""
    old = LegacyMessageSet(build_message(4, 1, b"k", b"v", 9), 4, 5)
    assert PayloadPacker(64).extract(old) == (4, 5, -1, len(old.data))
