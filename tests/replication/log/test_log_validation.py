"""Which batches a leader refuses from clients, and how it rewrites those it accepts."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.records import compression, legacy
from fakekafka.protocol.records.batch import RecordBatch, build_batch, with_timestamps
from fakekafka.protocol.records.format import HEADER_SIZE, Record
from fakekafka.protocol.records.legacy import build_message
from fakekafka.replication.log import leader_append, validator
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.tests.support.batches import parse_batches
from fakekafka.tests.support.hostile_payloads import batch
from fakekafka.tests.support.logs import Tools


def refused(log: Any, data: bytes, now_ms: int, api_version: int | None = None) -> KafkaError:
    """Return the error of an append that must fail and leave the log unchanged."""
    before = log.log_end_offset
    with pytest.raises(KafkaError) as caught:
        append_as_leader(log, data, 0, now_ms, api_version=api_version)
    assert log.log_end_offset == before
    return caught.value


def changed(data: bytes, position: int, new: bytes) -> bytes:
    """Return a batch with changed bytes and a valid checksum."""
    patched = data[:position] + new + data[position + len(new) :]
    batch = RecordBatch.from_bytes(patched)
    return with_timestamps(patched, batch.timestamp_type, batch.max_timestamp)


@pytest.mark.parametrize(
    ("position", "new"),
    [
        (0, b"\0\0\0\0\0\0\0\x05"),  # a base offset of its own
        (23, b"\0\0\0\x07"),  # last offset delta does not fit the count
        (57, b"\0\0\0\0"),  # no records
        (57, b"\xff\xff\xff\xff"),
        (21, b"\0\x20"),  # a control batch
        (43, b"\0\0\0\0\0\0\0\x01"),  # a producer without a sequence
    ],
)
@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_batches_that_contradict_themselves(
    tools: type[Tools], position: int, new: bytes, policy: str
) -> None:
    """DP-115: control records, wrong counts, negative sequences and empty batches are refused."""
    log = tools.log(cleanup_policy=policy)
    data = tools.data(b"a", b"b", keys=[b"k", b"k"])
    error = refused(log, changed(data, position, new), tools.now_ms)
    assert error.code is ErrorCode.INVALID_RECORD


def test_records_without_key_on_a_compacted_topic(tools: type[Tools]) -> None:
    """DP-115: each record without a key is named by its index."""
    log = tools.log(cleanup_policy="compact")
    data = tools.data(b"a", b"b", b"c", keys=[None, b"k", None])
    error = refused(log, data, tools.now_ms)
    assert error.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [0, 2]


def test_timestamps_out_of_range_are_named(tools: type[Tools]) -> None:
    """DP-122: three timestamps out of range make three record errors of INVALID_TIMESTAMP."""
    log = tools.log(message_timestamp_difference_max_ms=1000)
    now = tools.now_ms
    data = tools.data(*[b"v"] * 4, times=[now - 1001, now, now + 1001, now - 5000])
    error = refused(log, data, now)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0, 2, 3]
    append_as_leader(log, tools.data(b"v", times=[-1]), 0, now)


def test_timestamp_errors_win(tools: type[Tools]) -> None:
    """DP-116: a batch with both invalid records and invalid timestamps gets INVALID_TIMESTAMP."""
    log = tools.log(cleanup_policy="compact", message_timestamp_difference_max_ms=1000)
    now = tools.now_ms
    data = tools.data(b"a", b"b", keys=[None, b"k"], times=[now, now - 2000])
    error = refused(log, data, now)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0, 1]


@pytest.mark.parametrize("kafka_version", ["1.1", "2.4"])
@pytest.mark.parametrize("is_compressed", [False, True])
def test_the_first_invalid_record_decides_the_error_until_2_4(
    tools: type[Tools], kafka_version: str, is_compressed: bool
) -> None:
    """DP-116: the error names only this record, without a reason (``LogValidator`` at 2.4.1)."""
    now = tools.now_ms
    log = tools.log(kafka_version, cleanup_policy="compact", message_timestamp_difference_max_ms=9)
    codec = "lz4" if is_compressed else "none"
    keyless = tools.data(
        b"a", b"b", b"c", keys=[b"k", None, b"k"], times=[now, now, now - 10], compression=codec
    )
    error = refused(log, keyless, now)
    assert (error.code, error.record_errors) == (ErrorCode.INVALID_RECORD, ((1, None),))
    early = tools.data(b"a", b"b", keys=[b"k", None], times=[now - 10, now], compression=codec)
    error = refused(log, early, now)
    assert (error.code, error.record_errors) == (ErrorCode.INVALID_TIMESTAMP, ((0, None),))


def test_producers_may_not_set_the_append_time(tools: type[Tools], log: Any) -> None:
    """The append-time bit from a client is an invalid timestamp on a CreateTime topic."""
    data = with_timestamps(tools.data(b"a", b"b"), 1, tools.now_ms)
    error = refused(log, data, tools.now_ms)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert len(error.record_errors) == 2


def test_damaged_batches_are_corrupt(tools: type[Tools], log: Any) -> None:
    """DP-122: any flipped byte covered by the checksum, compressed or not, is CORRUPT_MESSAGE."""
    for codec in ("none", "lz4"):
        data = bytearray(tools.data(b"abc" * 50, b"x", compression=codec))
        data[67] ^= 0x55
        assert refused(log, bytes(data), tools.now_ms).code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_damaged_payload_under_a_right_checksum(tools: type[Tools], log: Any, codec: str) -> None:
    """DP-122: a payload that its codec cannot decompress is CORRUPT_MESSAGE even if the checksum is
    valid."""
    data = tools.data(b"abc" * 50, b"x", compression=codec)
    assert refused(log, changed(data, 61, b"\xff" * 9), tools.now_ms).code is (
        ErrorCode.CORRUPT_MESSAGE
    )


@pytest.mark.parametrize("position", [8, 16])
def test_impossible_headers_are_corrupt(tools: type[Tools], log: Any, position: int) -> None:
    """A length below the minimum and an unknown magic are CORRUPT_MESSAGE."""
    data = tools.data(b"v")
    new = b"\0\0\0\x10" if position == 8 else b"\x03"
    damaged = data[:position] + new + data[position + len(new) :]
    assert refused(log, damaged, tools.now_ms).code is ErrorCode.CORRUPT_MESSAGE


def test_sizes(tools: type[Tools]) -> None:
    """DP-132: a batch larger than ``max.message.bytes`` or than a segment is refused; one of
    exactly the limit is accepted."""
    data = tools.data(b"x" * 100)
    log = tools.log(max_message_bytes=len(data))
    append_as_leader(log, data, 0, tools.now_ms)
    assert refused(log, tools.data(b"x" * 101), tools.now_ms).code is ErrorCode.MESSAGE_TOO_LARGE
    log = tools.log(segment_bytes=100)
    assert refused(log, data, tools.now_ms).code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_growing_by_conversion_is_checked_again(tools: type[Tools]) -> None:
    """A batch that decompression makes too large is refused."""
    log = tools.log(compression_type="uncompressed", max_message_bytes=1000)
    data = tools.data(b"x" * 5000, compression="gzip")
    assert len(data) < 1000
    assert refused(log, data, tools.now_ms).code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.pure  # replaces a constant, which compiled code does not look up
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_compressed_batch_has_a_limit_on_its_decompressed_size(
    tools: type[Tools], codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that decompresses to a thousand times ``max.message.bytes`` is refused, unless the
    topic allows larger ones."""
    monkeypatch.setattr("fakekafka.replication.log.settings._DECOMPRESSED_BYTES_TAKEN", 300_000)
    data = tools.data(bytes(310_000), compression=codec)
    log = tools.log(max_message_bytes=len(data))
    error = refused(log, data, tools.now_ms)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert f"{codec} data of more than 300000 bytes when decompressed" in str(error)
    log = tools.log(max_message_bytes=320_000)
    append_as_leader(log, data, 0, tools.now_ms)
    assert log.log_end_offset == 1


@pytest.mark.pure  # replaces a constant, which compiled code does not look up
def test_an_old_wrapper_message_has_a_limit_on_its_decompressed_size(
    tools: type[Tools], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrapper messages of formats v0 and v1 have the same limit."""
    monkeypatch.setattr("fakekafka.replication.log.settings._DECOMPRESSED_BYTES_TAKEN", 300_000)
    inner = build_message(0, 1, b"k", bytes(310_000), tools.now_ms)
    log = tools.log(max_message_bytes=300_000)
    for codec in (1, 3):
        payload = compression.compress(codec, inner)
        wrapper = build_message(0, 1, None, payload, tools.now_ms, codec)
        assert refused(log, wrapper, tools.now_ms).code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.pure  # replaces a constant, which compiled code does not look up
@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_a_compressed_batch_has_no_more_records_than_an_uncompressed_one(
    tools: type[Tools], policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compressed batch has no more records than an uncompressed one: millions of equal records
    take a few bytes, but a microsecond each to check."""
    monkeypatch.setattr("fakekafka.replication.log.settings._MESSAGE_BYTES_USUAL", 700)
    fits, more = (
        build_batch([Record(at, tools.now_ms, b"k", b"") for at in range(count)], compression=1)
        for count in (100, 101)
    )
    log = tools.log(max_message_bytes=700, cleanup_policy=policy)
    append_as_leader(log, fits, 0, tools.now_ms)
    error = refused(log, more, tools.now_ms)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "101 records in a batch, at most 100" in str(error)
    assert log.log_end_offset == 100
    append_as_leader(tools.log(max_message_bytes=707), more, 0, tools.now_ms)


@pytest.mark.pure  # replaces a constant, which compiled code does not look up
def test_an_old_wrapper_message_has_no_more_records_than_an_uncompressed_set(
    tools: type[Tools], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrapper messages of formats v0 and v1 have the same limit on their number of records."""
    monkeypatch.setattr("fakekafka.replication.log.settings._MESSAGE_BYTES_USUAL", 700)
    one = build_message(0, 1, b"k", b"", tools.now_ms)
    log = tools.log(max_message_bytes=700)
    wrapped = [
        build_message(0, 1, None, compression.compress(1, one * count), tools.now_ms, 1)
        for count in (100, 101)
    ]
    append_as_leader(log, wrapped[0], 0, tools.now_ms)
    error = refused(log, wrapped[1], tools.now_ms)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "gzip data of more than 100 messages" in str(error)


@pytest.mark.pure  # replaces a constant, which compiled code does not look up
def test_too_many_wrapped_messages_are_refused_before_any_is_parsed(
    tools: type[Tools], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages in a wrapper are counted by their sizes, and refused after reading the wrapper
    only."""
    monkeypatch.setattr("fakekafka.replication.log.settings._MESSAGE_BYTES_USUAL", 700)
    one = build_message(0, 1, b"k", b"", tools.now_ms)
    wrapper = build_message(0, 1, None, compression.compress(1, one * 200), tools.now_ms, 1)
    log = tools.log(max_message_bytes=700)
    read: list[int] = []
    original = legacy.parse_message

    def parse(*arguments: Any) -> Any:
        read.append(1)
        return original(*arguments)

    monkeypatch.setattr(legacy, "parse_message", parse)
    assert refused(log, wrapper, tools.now_ms).code is ErrorCode.MESSAGE_TOO_LARGE
    assert read == []


@pytest.mark.pure
def test_records_whose_offsets_change_are_scanned_once(
    tools: type[Tools], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records whose offsets change are scanned once: the validator uses what the fast path
    found."""
    looks: list[int] = []
    for module in (leader_append, validator):

        def look(*arguments: Any, original: Any = module.scan_records) -> Any:
            looks.append(1)
            return original(*arguments)

        monkeypatch.setattr(module, "scan_records", look)
    record = build_batch([Record(0, tools.now_ms, b"k", b"v" * 40)])[HEADER_SIZE:]
    log = tools.log()
    append_as_leader(log, batch(compression.compress(1, record * 3), 3, 1), 0, tools.now_ms)
    assert looks == [1]
    (stored,) = log.batches()
    assert [one.offset for one in stored.records()] == [0, 1, 2]


def test_one_batch_per_request(tools: type[Tools], log: Any) -> None:
    """A request of a new client with several batches of format v2, or none, is INVALID_RECORD."""
    two = tools.data(b"a") + tools.data(b"b")
    assert refused(log, two, tools.now_ms, 9).code is ErrorCode.INVALID_RECORD
    assert refused(log, two, tools.now_ms).code is ErrorCode.INVALID_RECORD
    assert refused(log, b"", tools.now_ms, 9).code is ErrorCode.INVALID_RECORD
    old = build_message(0, 1, b"k", b"v", tools.now_ms)
    assert refused(log, old, tools.now_ms, 3).code is ErrorCode.INVALID_RECORD
    mixed = tools.data(b"a") + old
    assert refused(log, mixed, tools.now_ms).code is ErrorCode.INVALID_RECORD


def test_zstd_needs_a_new_client_and_broker(tools: type[Tools], log: Any) -> None:
    """DP-122: Produce v6 with zstd is refused, v7 accepted; brokers before 2.1 do not support
    zstd."""
    data = tools.data(b"v", compression="zstd")
    assert refused(log, data, tools.now_ms, 6).code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert append_as_leader(log, data, 0, tools.now_ms, api_version=7).first_offset == 0
    old = tools.log("1.1")
    assert refused(old, data, tools.now_ms, 7).code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_idempotence_needs_the_new_format(tools: type[Tools]) -> None:
    """A topic of an old message format refuses idempotent batches."""
    log = tools.log("2.8", **{"message.format.version": "0.10.2"})
    data = tools.data(b"v", producer_id=1, producer_epoch=0, base_sequence=0)
    error = refused(log, data, tools.now_ms)
    assert error.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


# -- rewriting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["none", "gzip", "lz4"])
@pytest.mark.parametrize("target", ["producer", "uncompressed", "zstd", "snappy"])
def test_recompression_keeps_records(tools: type[Tools], source: str, target: str) -> None:
    """DP-115: recompressing keeps count, offsets, times, keys, headers and producer fields."""
    records = [Record(i, tools.now_ms + i, b"k%d" % i, b"v" * 50, (("h", b"1"),)) for i in range(5)]
    data = build_batch(records, 0, -1, 7, 2, 0, source)
    log = tools.log(compression_type=target)
    append_as_leader(log, tools.data(b"first"), 0, tools.now_ms)
    append_as_leader(log, data, 4, tools.now_ms)
    stored = list(log.batches())[1]
    expected = [record._replace(offset=record.offset + 1) for record in records]
    assert stored.records() == expected
    codec = compression.CODEC_IDS[source if target == "producer" else target]
    assert (stored.compression, stored.is_intact()) == (codec, True)
    assert (stored.producer_id, stored.producer_epoch, stored.base_sequence) == (7, 2, 0)
    assert stored.partition_leader_epoch == 4


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("target", ["producer", "lz4"])
def test_append_time_topics(tools: type[Tools], codec: str, target: str) -> None:
    """DP-115: LogAppendTime keeps count and offsets; all records have the broker's time."""
    log = tools.log(message_timestamp_type="LogAppendTime", compression_type=target)
    data = tools.data(b"a", b"b", times=[5, 6], compression=codec)
    info = append_as_leader(log, data, 0, 9999)
    assert (info.log_append_time_ms, info.max_timestamp) == (9999, 9999)
    assert [(r.offset, r.timestamp, r.value) for r in log.records()] == [
        (0, 9999, b"a"),
        (1, 9999, b"b"),
    ]
    assert all(batch.is_intact() for batch in log.batches())


def test_create_time_answers_no_append_time(tools: type[Tools], log: Any) -> None:
    """The append time in the answer is -1 unless the topic uses LogAppendTime."""
    assert append_as_leader(log, tools.data(b"a"), 0, 9999).log_append_time_ms == -1


def test_wrong_maximum_timestamp_is_corrected(tools: type[Tools]) -> None:
    """Where records are scanned, the header's maximum timestamp is corrected to theirs."""
    log = tools.log(cleanup_policy="compact")
    data = tools.data(b"a", keys=[b"k"], times=[50])
    wrong = with_timestamps(data, 0, 9)
    append_as_leader(log, wrong, 0, 60)
    (batch,) = log.batches()
    assert (batch.max_timestamp, batch.is_intact()) == (50, True)


def test_unordered_compressed_records_are_renumbered(tools: type[Tools]) -> None:
    """A compressed batch whose offset deltas do not count up is rebuilt by the broker."""
    records = [Record(1, 5, b"a", b"1"), Record(0, 5, b"b", b"2")]
    data = build_batch(records, compression="gzip", last_offset=1)
    log = tools.log(cleanup_policy="compact")
    append_as_leader(log, data, 0, 60)
    assert [(r.offset, r.key) for r in log.records()] == [(0, b"a"), (1, b"b")]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 3])
def test_old_message_sets_are_converted(
    tools: type[Tools], log: Any, magic: int, codec: int
) -> None:
    """Message sets of Produce v0 to v2 become one batch of format v2 with new offsets."""
    plain = b"".join(
        build_message(n, magic, b"k%d" % n, b"v%d" % n, tools.now_ms + n) for n in range(3)
    )
    data = plain
    if codec:
        inner = compression.compress(codec, plain)
        data = build_message(2, magic, None, inner, tools.now_ms, codec)
    tools.fill(log, 2)
    info = append_as_leader(log, data, 6, tools.now_ms, api_version=2)
    assert (info.first_offset, info.last_offset) == (2, 4)
    stored = list(log.batches())[-1]
    assert [(r.offset, r.key, r.value) for r in stored.records()] == [
        (2, b"k0", b"v0"),
        (3, b"k1", b"v1"),
        (4, b"k2", b"v2"),
    ]
    assert (stored.magic, stored.compression, stored.is_intact()) == (2, codec, True)
    times = [tools.now_ms + n for n in range(3)] if magic else [-1] * 3
    assert [r.timestamp for r in stored.records()] == times


def test_old_message_sets_are_checked(tools: type[Tools], log: Any) -> None:
    """Checksum, size and nesting of old messages are checked like those of batches."""
    good = build_message(0, 1, b"k", b"v", 5)
    damaged = good[:-1] + bytes([good[-1] ^ 1])
    assert refused(log, damaged, tools.now_ms).code is ErrorCode.CORRUPT_MESSAGE
    wrapper = build_message(0, 1, None, compression.compress(1, good), 5, 1)
    nested = build_message(0, 1, None, compression.compress(1, wrapper), 5, 1)
    error = refused(log, nested, tools.now_ms)
    assert (error.code, error.record_errors[0][0]) == (ErrorCode.INVALID_RECORD, 0)
    assert refused(log, wrapper + good, tools.now_ms).code is ErrorCode.INVALID_RECORD
    assert refused(log, good + wrapper, tools.now_ms).code is ErrorCode.INVALID_RECORD
    garbage = build_message(0, 1, None, b"garbage", 5, 1)
    assert refused(log, garbage, tools.now_ms).code is ErrorCode.CORRUPT_MESSAGE
    small = tools.log(max_message_bytes=20)
    assert refused(small, good, tools.now_ms).code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_memoryview_is_validated_like_bytes(tools: type[Tools], log: Any) -> None:
    """A payload may be a memory view of a socket's buffer; the log stores a copy of its own."""
    buffer = bytearray(tools.data(b"a", b"b"))
    append_as_leader(log, memoryview(buffer), 0, tools.now_ms)
    buffer[:] = bytes(len(buffer))
    assert [r.value for r in log.records()] == [b"a", b"b"]
    assert len(parse_batches(b"".join(b.data for b in log.batches()), verify=True)) == 1
