"""Record batches: their bytes equal those of Kafka's clients, and records survive a round trip."""

from __future__ import annotations

import contextlib
import gzip
import random
import struct
import tracemalloc
import zlib
from typing import Any
from unittest import mock

import cramjam
import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from fakekafka.protocol.records import compression
from fakekafka.protocol.records.batch import (
    RecordBatch,
    build_batch,
    build_control_marker,
    with_timestamps,
)
from fakekafka.protocol.records.format import (
    HEADER,
    CorruptBatch,
    MalformedRecords,
    Record,
    add_sequence,
    write_record,
    write_varint,
)
from fakekafka.protocol.records.legacy import (
    build_message,
    down_converted_batch,
    parse_message,
    unwrap,
)
from fakekafka.protocol.records.small_batch import build_batch_of_one, build_batch_of_small
from fakekafka.tests.support.batches import parse_batches, with_base_offset

RECORDS = [
    Record(0, 1700000000000, b"key", b"value", (("h", b"1"), ("none", None))),
    Record(1, 1700000000007, None, b"v" * 300),
    Record(2, 1699999999000, b"tombstone", None),
]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_survive_every_codec(codec: str) -> None:
    """A batch decodes to the records it was built from, whatever the codec."""
    (batch,) = parse_batches(build_batch(RECORDS, compression=codec), verify=True)
    assert batch.records() == RECORDS
    assert compression.CODEC_IDS[codec] == batch.compression


def test_a_batch_with_a_gap_ends_with_its_last_record() -> None:
    """The last offset is not derived from the number of records, as compaction leaves gaps."""
    (batch,) = parse_batches(build_batch([RECORDS[0], RECORDS[2]]), verify=True)
    assert (batch.last_offset, batch.record_count) == (2, 2)
    assert [record.offset for record in batch.records()] == [0, 2]


def test_header_fields_are_readable() -> None:
    """Each header field has a property that returns the value the batch was built with."""
    data = build_batch(RECORDS, 0, 7, 42, 3, 100, is_transactional=True)
    batch = RecordBatch.from_bytes(data)
    expected = (7, 2, 42, 3, 100, 102, 3, True, False, 1700000000007, len(data))
    assert expected == (
        batch.partition_leader_epoch,
        batch.magic,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.last_sequence,
        batch.record_count,
        batch.is_transactional,
        batch.is_control,
        batch.max_timestamp,
        batch.size_in_bytes,
    )


def test_bytes_equal_those_of_another_implementation() -> None:
    """aiokafka builds the very same bytes from the same records."""
    builder = DefaultRecordBatchBuilder(2, 0, False, 9, 1, 5, 1 << 20)
    for record in RECORDS:
        builder.append(
            record.offset, record.timestamp, record.key, record.value, list(record.headers)
        )
    expected = bytes(builder.build())
    ours = build_batch(RECORDS, 0, HEADER.unpack_from(expected)[2], 9, 1, 5)
    assert expected == ours


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_other_implementations_read_our_compression(codec: str) -> None:
    """aiokafka's reader understands header and checksum of compressed batches."""
    batch = DefaultRecordBatch(build_batch(RECORDS, compression=codec))
    assert batch.validate_crc()


@pytest.mark.parametrize("offset_delta", [0, 63, 64, 8191, 8192])
@pytest.mark.parametrize("time_delta", [-1, 0, 63, 64, 127, 128, 8191, 8192])
def test_small_records_are_written_as_any_others(time_delta: int, offset_delta: int) -> None:
    for size in (0, 1, 55, 56, 57, 64):
        value = b"v" * size
        body = bytearray(1)
        for number in (time_delta, offset_delta, -1, size):
            write_varint(body, number)
        body += value + b"\x00"
        expected = bytearray()
        write_varint(expected, len(body))
        written = bytearray()
        write_record(written, Record(0, 0, None, value), offset_delta, time_delta)
        assert written == expected + body


@pytest.mark.parametrize("timestamp", [-2, -1, 0, 1, 1767225600123])
@pytest.mark.parametrize("size", [0, 1, 8, 55, 56, 57, 58, 63, 64, 200, 8184, 8185, 8192, 1 << 20])
def test_a_batch_of_one_has_the_same_bytes_as_any_other_batch(size: int, timestamp: int) -> None:
    value = random.Random(size).randbytes(size)
    expected = build_batch([Record(0, timestamp, None, value, ())], 0, -1, 4711, 3, 99)
    assert build_batch_of_one(value, timestamp, 4711, 3, 99) == expected
    plain = build_batch([Record(0, timestamp, None, value, ())])
    assert build_batch_of_one(value, timestamp) == plain


@pytest.mark.parametrize("count", [1, 2, 64, 65, 300])
@pytest.mark.parametrize("step_ms", [0, 1, 27])
def test_a_batch_of_small_records_has_the_same_bytes_as_any_other(count: int, step_ms: int) -> None:
    """Differences of times and of offsets take one byte or two."""
    records = [(None, b"v" * (i % 56), 1767225600123 + i * step_ms, None) for i in range(count)]
    expected = build_batch(
        [
            Record(i, timestamp, None, value, ())
            for i, (_, value, timestamp, _) in enumerate(records)
        ],
        producer_id=4711,
        producer_epoch=3,
        base_sequence=99,
    )
    assert build_batch_of_small(records, 4711, 3, 99) == expected


@pytest.mark.parametrize(
    "other",
    [
        (b"key", b"v", 1000, None),
        (None, None, 1000, None),
        (None, b"v" * 56, 1000, None),
        (None, b"v", 999, None),
        (None, b"v", 9192, None),
    ],
)
def test_a_record_that_is_not_small_is_left_to_the_general_way(
    other: tuple[bytes | None, bytes, int, None],
) -> None:
    """A key, no value, a long value, or a time before or long after the first is not small."""
    plain = (None, b"v", 1000, None)
    assert build_batch_of_small([plain, plain], -1, -1, -1) is not None
    assert build_batch_of_small([plain, other], -1, -1, -1) is None
    assert build_batch_of_small([(None, b"v", -1, None)], -1, -1, -1) is None


def test_offset_and_epoch_are_patched_without_changing_the_checksum() -> None:
    """The checksum still holds after a leader has assigned the offset and the leader epoch."""
    moved = RecordBatch.from_bytes(with_base_offset(build_batch(RECORDS), 1000, 9))
    assert (
        moved.base_offset,
        moved.last_offset,
        moved.partition_leader_epoch,
        moved.is_intact(),
    ) == (1000, 1002, 9, True)
    assert [record.offset for record in moved.records()] == [1000, 1001, 1002]


def test_append_time_is_the_time_of_all_records() -> None:
    """If the append-time bit is set, readers use the maximum timestamp for every record."""
    batch = RecordBatch.from_bytes(with_timestamps(build_batch(RECORDS), 1, 5555))
    assert batch.is_intact()
    assert {5555} == {record.timestamp for record in batch.records()}


@pytest.mark.parametrize("is_commit", [True, False])
def test_control_marker_round_trip(is_commit: bool) -> None:
    """A marker says whether it commits, and carries the epoch of its coordinator."""
    batch = RecordBatch.from_bytes(build_control_marker(5, 2, is_commit, 8, 99))
    marker = batch.control_marker()
    assert marker is not None
    assert (is_commit, 8) == marker
    assert (batch.is_control, batch.is_transactional, batch.base_sequence, batch.record_count) == (
        True,
        True,
        -1,
        1,
    )


def test_damage_is_noticed() -> None:
    """A flipped bit fails the checksum."""
    data = bytearray(build_batch(RECORDS))
    assert RecordBatch.from_bytes(bytes(data)).is_intact()
    data[-1] ^= 1
    assert not RecordBatch.from_bytes(bytes(data)).is_intact()


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_without_records_is_read_whatever_codec_it_names(codec: int) -> None:
    """A batch without records has no data to decompress, and is never written with a codec."""
    data = bytearray(build_batch([], compression=codec))
    assert RecordBatch.from_bytes(bytes(data)).compression == 0
    data[22] |= codec
    assert RecordBatch.from_bytes(bytes(data)).records() == []


@pytest.mark.parametrize("count", [2, 4])
def test_wrong_record_count_is_malformed(count: int) -> None:
    """A count that does not match the bytes is found when the records are read."""
    data = bytearray(build_batch(RECORDS))
    data[57:61] = count.to_bytes(4, "big")
    with pytest.raises(MalformedRecords):
        RecordBatch.from_bytes(bytes(data)).records()


def test_every_cut_of_a_body_is_malformed() -> None:
    """No prefix of the records is mistaken for all of them."""
    data = build_batch(RECORDS)
    for end in range(61, len(data)):
        with pytest.raises(MalformedRecords):
            RecordBatch.from_bytes(data[:end]).records()


def test_sequences_wrap() -> None:
    """The sequence number after 2147483647 is 0."""
    assert add_sequence(2147483647, 1) == 0
    assert add_sequence(2147483645, 5) == 2
    assert add_sequence(2147483646, 1) == 2147483647


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("payload", [b"", b"nonsense" * 9, b"\x82SNAPPY\0" + b"\xff" * 20])
def test_garbage_is_a_corrupt_payload(codec: int, payload: bytes) -> None:
    """No codec raises anything but ``CorruptPayload``."""
    with contextlib.suppress(compression.CorruptPayload):
        assert compression.decompress(codec, payload) == b""


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_old_message_sets_round_trip(magic: int, codec: int) -> None:
    """Down-converted batches read back as the same keys, values and offsets."""
    data = with_base_offset(build_batch(RECORDS, compression=codec), 70, 0)
    old = down_converted_batch(RecordBatch.from_bytes(data), magic, 0)[0]
    found = []
    position = 0
    while (message := parse_message(old, position)) is not None:
        found += unwrap(message)
        position += message.size
    offsets = [70, 71, 72] if magic == 1 or not codec else [0, 1, 2]
    times = [r.timestamp for r in RECORDS] if magic else [-1, -1, -1]
    if magic == 0 and codec:
        offsets = [70, 71, 72]
    assert [(r.key, r.value) for r in RECORDS] == [(m.key, m.value) for m in found]
    assert (offsets, times) == ([m.offset for m in found], [m.timestamp for m in found])


def test_down_conversion_starts_at_the_offset_asked_for() -> None:
    """DP-81: uncompressed sets of old formats begin exactly at the requested offset."""
    batch = RecordBatch.from_bytes(build_batch(RECORDS))
    message = parse_message(down_converted_batch(batch, 1, 2)[0], 0)
    assert message is not None
    assert (message.offset, message.key) == (2, b"tombstone")


def test_down_conversion_leaves_markers_out_and_refuses_zstd() -> None:
    """Markers do not exist in old formats; zstd cannot be read by their consumers."""
    marker = RecordBatch.from_bytes(build_control_marker(1, 0, True, 0, 5))
    assert down_converted_batch(marker, 1, 0)[0] == b""
    with pytest.raises(ValueError, match="zstd"):
        down_converted_batch(RecordBatch.from_bytes(build_batch(RECORDS, compression="zstd")), 1, 0)


def test_damaged_old_message_is_corrupt() -> None:
    """The checksum of v0 and v1 messages is checked."""
    data = bytearray(build_message(0, 1, b"k", b"v", 5))
    data[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        parse_message(bytes(data), 0)


ZEROS = bytes(3_000_000)
LIMIT = 1_000_000
BOMBS = {
    "gzip": (1, compression.compress(1, ZEROS)),
    "gzip of many members": (1, compression.compress(1, ZEROS[:700_000]) * 4),
    "snappy in blocks": (2, compression.compress(2, ZEROS)),
    "snappy": (2, bytes(cramjam.snappy.compress_raw(ZEROS))),
    "snappy that claims 4 GB": (2, b"\xff\xff\xff\xff\x0f" + b"\0" * 9),
    "lz4": (3, compression.compress(3, ZEROS)),
    "lz4 of large blocks": (3, bytes(cramjam.lz4.compress(ZEROS))),
    "zstd": (4, compression.compress(4, ZEROS)),
    "zstd of one repeated byte": (
        4,
        # Each block: a header of three bytes, then the byte that is repeated.
        b"\x28\xb5\x2f\xfd\0\x58" + struct.pack("<I", 131072 << 3 | 2) * 23 + b"\3\0\0\0",
    ),
}


@pytest.mark.parametrize(("what", "magic"), [*((what, 2) for what in BOMBS), ("lz4", 0)])
def test_a_payload_beyond_the_limit_is_refused_before_it_takes_memory(
    what: str, magic: int
) -> None:
    """A few bytes may decompress to a thousand times as many; memory stays near the limit."""
    codec, payload = BOMBS[what]
    tracemalloc.start()
    try:
        with pytest.raises(compression.CorruptPayload) as caught:
            compression.decompress(codec, payload, magic, LIMIT)
        largest = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(caught.value, compression.PayloadTooLarge)
    assert "of more than 1000000 bytes when decompressed" in str(caught.value)
    assert largest < 4 * LIMIT


def test_many_members_are_read_without_copying_the_rest_for_each() -> None:
    """Each member of a gzip payload costs the same, however many follow."""
    member = gzip.compress(b"", mtime=0)
    payload = member * 4000 + gzip.compress(b"end", mtime=0)
    given = []
    original = zlib.decompressobj

    class Counting:
        def __init__(self, bits: int) -> None:
            self.stream: Any = original(bits)

        def decompress(self, data: bytes, most: int) -> bytes:
            given.append(len(data))
            return bytes(self.stream.decompress(data, most))

        def __getattr__(self, name: str) -> Any:
            return getattr(self.stream, name)

    with mock.patch.object(zlib, "decompressobj", Counting):
        assert compression.decompress(1, payload, limit=LIMIT) == b"end"
    assert len(given) > 4000
    assert max(given) < 20_000 < len(payload)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_payload_of_just_the_limit_is_read(codec: int) -> None:
    """Data of exactly the limit is accepted, even where the blocks could hold more."""
    data = ZEROS[:LIMIT]
    payload = compression.compress(codec, data)
    assert compression.decompress(codec, payload, limit=LIMIT) == data
    with pytest.raises(compression.PayloadTooLarge):
        compression.decompress(codec, payload, limit=LIMIT - 1)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_every_cut_of_a_large_payload_is_corrupt(codec: int) -> None:
    """Decompression of payloads that may exceed the limit refuses the same as the fast path."""
    payload = compression.compress(codec, zlib.compress(bytes(range(256)) * 9) * 3)
    for end in range(1, len(payload) - 8, 7):
        with pytest.raises(compression.CorruptPayload):
            compression.decompress(codec, payload[:end], limit=700)


def test_a_batch_that_decompresses_to_too_much_is_not_read() -> None:
    """All readers of batches apply the same limit."""
    payload = compression.compress(1, bytes(compression.DECOMPRESSED_BYTES_MAX + 1))
    data = bytearray(build_batch([], compression=0))
    data[22] |= 1
    data[57:61] = (1).to_bytes(4, "big")
    data += payload
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    with pytest.raises(MalformedRecords, match="gzip data of more than 104857600 bytes"):
        RecordBatch.from_bytes(bytes(data)).records()
