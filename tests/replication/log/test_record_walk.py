"""What a leader checks in the records of a batch: that they are valid, and that the header
agrees."""

from __future__ import annotations

import random
from typing import Any

import pytest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.records import compression
from fakekafka.protocol.records.batch import RecordBatch, build_batch, with_timestamps
from fakekafka.protocol.records.format import (
    HEADER_SIZE,
    MalformedRecords,
    Record,
    decode_records,
    write_record,
)
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.lookups import offset_for_timestamp
from fakekafka.replication.log.record_walk import walk
from fakekafka.tests.support.logs import Tools
from fakekafka.tests.support.present import present

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def patched(data: bytes, position: int, new: bytes) -> bytes:
    """Return a batch with changed bytes and a valid checksum."""
    data = data[:position] + new + data[position + len(new) :]
    batch = RecordBatch.from_bytes(data)
    return with_timestamps(data, batch.timestamp_type, batch.max_timestamp)


def claiming(data: bytes, count: int) -> bytes:
    """Return a batch whose header states another number of records."""
    data = patched(data, 23, (count - 1).to_bytes(4, "big"))
    return patched(data, 57, count.to_bytes(4, "big"))


def with_body(codec: str, body: bytes, count: int = 1) -> bytes:
    """Return a batch of a valid checksum with these bytes as records."""
    empty = build_batch([], compression=codec)
    packed = compression.compress(compression.CODEC_IDS[codec], body)
    length = (len(empty) - 12 + len(packed)).to_bytes(4, "big")
    return claiming(empty[:8] + length + empty[12:] + packed, count)


def refusal(log: Any, data: bytes) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        append_as_leader(log, data, 0, 1_700_000_000_000)
    assert log.log_end_offset == 0
    return caught.value.code


@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_count_is_refused(tools: type[Tools], codec: str, count: int, policy: str) -> None:
    """DP-115: a header that states fewer or more records than there are is refused."""
    log = tools.log(cleanup_policy=policy)
    data = tools.data(b"x" * 30, b"y", keys=[b"k", b"k"], compression=codec)
    assert refusal(log, claiming(data, count)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("settings", [{}, {"message_timestamp_type": "LogAppendTime"}])
@pytest.mark.parametrize("codec", CODECS)
def test_garbage_instead_of_records_is_refused(
    tools: type[Tools], codec: str, settings: Any
) -> None:
    """Bytes that are not records, compressed or not, are INVALID_RECORD even under a valid
    checksum."""
    for body in (b"\xff" * 60, b"\x00" * 60, b"\x0c" * 20, b"\x02", b"\xfe\xff\xff\xff\x0f" * 5):
        for count in (1, 2):
            log = tools.log(**settings)
            assert refusal(log, with_body(codec, body, count)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("position", range(HEADER_SIZE, HEADER_SIZE + 10))
def test_a_single_small_record_is_checked_too(tools: type[Tools], log: Any, position: int) -> None:
    """Contradicting sizes are found also in a batch of one record, which takes a fast path."""
    data = tools.data(b"val")
    assert len(data) == HEADER_SIZE + 10
    for byte in (0x00, 0x02, 0x05, 0x0C, 0x7E, 0x80, 0xFF):
        broken = patched(data, position, bytes((byte,)))
        try:
            RecordBatch.from_bytes(broken).records()
        except MalformedRecords:
            assert refusal(log, broken) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("value_size", [1, 57, 58, 59, 8180, 8184, 8185, 8186, 70_000])
def test_a_single_record_is_checked_whatever_its_size(tools: type[Tools], value_size: int) -> None:
    """Contradictions are found in a single record whose numbers take one, two or three bytes."""
    data = tools.data(b"x" * value_size)
    assert append_as_leader(tools.log(), data, 0, tools.now_ms).last_offset == 0
    refused = 0
    for position in range(HEADER_SIZE, len(data) - value_size - 1):
        for bit in (1, 2, 128):
            broken = patched(data, position, bytes((data[position] ^ bit,)))
            try:
                RecordBatch.from_bytes(broken).records()
            except MalformedRecords:
                assert refusal(tools.log(), broken) is ErrorCode.INVALID_RECORD
                refused += 1
    assert refused >= 8


@pytest.mark.parametrize("size", [*range(1, 8), 65, 66, 8200, 8194, 8195])
def test_bytes_of_any_number_are_no_record(tools: type[Tools], size: int) -> None:
    """Repeated bytes are refused at any size, also at 65, which no record has, as its length would
    need a second byte."""
    for byte in (0, 1, 0x7F, 0x80, 0xFF):
        body = bytes((byte,)) * (size - 1) + b"\x00"
        assert refusal(tools.log(), with_body("none", body)) is ErrorCode.INVALID_RECORD


def test_a_small_record_that_claims_to_be_compressed_is_not_taken(
    tools: type[Tools], log: Any
) -> None:
    """The fast path is for uncompressed records; a record that claims compression and does not
    decompress is refused."""
    assert refusal(log, patched(tools.data(b"v"), 21, b"\0\1")) is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("record", "passes"),
    [
        (b"\x0c\0\0\0\x01\x01\0", True),
        (b"\x8c\x80\x80\x80\x00\0\0\0\x01\x01\0", True),  # five bytes hold 32 bits
        (b"\x8c\x80\x80\x80\x80\x00\0\0\0\x01\x01\0", False),
        (b"\x1e\0" + b"\x80" * 9 + b"\0\0\x01\x01\0", True),  # ten hold 64
        (b"\x20\0" + b"\x80" * 10 + b"\0\0\x01\x01\0", False),
        (b"\x10\0\0\0\x01\x01\x02\0\x01", True),  # a header with an empty name
        (b"\x0e\0\0\0\x01\x01\x02\x01", False),  # one without a name
        (b"\x0e\0\0\0\x01\x01\x01\0", False),  # minus one headers
        (b"\x0c\0\0\0\x05\x03\0", True),  # any negative size says that there is nothing
    ],
)
def test_numbers_of_a_record(record: bytes, passes: bool) -> None:
    """Numbers have at most five or ten bytes; only the sizes of header names may not be negative
    (docs/kafka/log.md#batches)."""
    assert (_walks(record), _decodes(record) or not passes) == (passes, True)


def _walks(record: bytes) -> bool:
    try:
        return walk(record, 0, 1) == (0, 0, True)
    except MalformedRecords:
        return False


def _decodes(record: bytes) -> bool:
    try:
        return len(decode_records(record, 0, 1, 0, 0)) == 1
    except MalformedRecords:
        return False


def test_walking_and_decoding_agree() -> None:
    """A batch, damaged or whole, passes the walk exactly if it can be decoded."""
    dice = random.Random(11)
    outcomes = set()
    for _ in range(400):
        count = dice.choice((1, 2, 3, 70))
        records = [
            Record(
                dice.choice((index, index, index, 9000)),
                dice.choice((0, 5, 100, 9000, 1 << 40, -5)),
                dice.choice((None, b"", b"k", b"k" * 200)),
                dice.choice((None, b"", b"v", b"v" * 300, b"v" * 9000)) if count < 9 else b"z",
                dice.choice(((), (), (("h", None), ("\xe9", b"x" * 70)))),
            )
            for index in range(count)
        ]
        data = bytearray(build_batch(records))
        for _ in range(dice.choice((0, 0, 1, 2))):
            data[dice.randrange(HEADER_SIZE, len(data))] = dice.choice((0, 1, 128, 255))
        body = bytes(data)
        walked: Any = None
        try:
            walked = walk(body, HEADER_SIZE, count)
            found = decode_records(body, HEADER_SIZE, count, 0, 0)
        except MalformedRecords:
            with pytest.raises(MalformedRecords):
                decode_records(body, HEADER_SIZE, count, 0, 0)
            assert walked is None
        else:
            times = [record.timestamp for record in found]
            in_order = [record.offset for record in found] == list(range(count))
            assert walked == (max(times), min(times), in_order)
        outcomes.add(walked is None)
    assert outcomes == {True, False}


def decoded(body: bytes, count: int) -> tuple[int, int, bool] | None:
    """Return what a walk must find out, or None if the walk must refuse the records."""
    try:
        found = decode_records(body, HEADER_SIZE, count, 0, 0)
    except MalformedRecords:
        return None
    times = [record.timestamp for record in found]
    return max(times), min(times), [record.offset for record in found] == list(range(count))


def walked(body: bytes, count: int) -> tuple[int, int, bool] | None:
    try:
        return walk(body, HEADER_SIZE, count)
    except MalformedRecords:
        return None


SHAPES: dict[str, Any] = {
    "all alike": lambda index, dice: (0, None, b"v" * 20),
    "keys": lambda index, dice: (index, b"k" * 70, b"v" * 200),
    "times of several bytes": lambda index, dice: (index * 1000, b"k", b"v" * 20),
    "times that go back": lambda index, dice: (-index * index, None, b"v"),
    "no values": lambda index, dice: (5, b"key", None),
    "numbered": lambda index, dice: (index // 9, None, b"%d" % index),
    "one in fifty differs": lambda index, dice: (3, None, b"v" * (20 + (index % 50 == 49))),
    "one has another size each time": lambda index, dice: (3, None, b"v" * dice.randrange(90)),
    "random times": lambda index, dice: (dice.randrange(1 << 20), None, b"v"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [100, 700])
def test_records_of_equal_shape_are_checked_as_if_each_were_decoded(shape: str, count: int) -> None:
    """Records of equal shape, whole, damaged or with an offset out of order, are judged as if each
    were decoded."""
    dice = random.Random(count)
    records = [
        Record(index, time, key, value)
        for index in range(count)
        for time, key, value in (SHAPES[shape](index, dice),)
    ]
    data = build_batch(records)
    assert walked(data, count) == decoded(data, count)
    assert walked(data, count) is not None
    for other in (count - 1, count + 1):
        assert walked(data, other) is None
    swapped = [records[1]._replace(offset=0), *records[1:-2], records[-1], records[-2]]
    assert walked(build_batch(swapped), count) == decoded(build_batch(swapped), count)
    passed = 0
    for _ in range(60):
        damaged = bytearray(data)
        damaged[dice.randrange(HEADER_SIZE, len(data))] = dice.choice((0, 1, 2, 127, 128, 255))
        expected = decoded(bytes(damaged), count)
        assert walked(bytes(damaged), count) == expected
        passed += expected is not None
    assert 0 < passed < 60


@pytest.mark.parametrize("count", [64, 65, 8192, 8193, 16385, 30000])
def test_offsets_of_any_number_of_bytes_are_in_order(count: int) -> None:
    """Records of equal shape grow where their offsets need more bytes; the last offset is checked,
    too."""
    bodies = [bytearray(), bytearray()]
    for body, last in zip(bodies, (count - 1, count), strict=True):
        for index in range(count):
            offset = last if index == count - 1 else index
            write_record(body, Record(index, 0, None, b"v"), offset, 7)
    assert walk(bytes(bodies[0]), 0, count) == (7, 7, True)
    assert walk(bytes(bodies[1]), 0, count) == (7, 7, False)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [1, 3])
def test_the_largest_timestamp_is_that_of_the_records(
    tools: type[Tools], log: Any, codec: str, count: int
) -> None:
    """A header with another maximum timestamp is corrected; the records stay unchanged."""
    times = [1000, 3000, 2000][:count]
    data = tools.data(*[b"v"] * count, times=times, compression=codec)
    info = append_as_leader(log, with_timestamps(data, 0, 9_999_999_999_999), 0, 5000)
    (batch,) = log.batches()
    assert info.max_timestamp == batch.max_timestamp == max(times)
    assert batch.is_intact()
    assert batch.data[HEADER_SIZE:] == data[HEADER_SIZE:]
    found = present(offset_for_timestamp(log, max(times)))
    assert (found.offset, found.timestamp) == (times.index(max(times)), max(times))
    assert offset_for_timestamp(log, max(times) + 1) is None


def test_a_compressed_batch_in_order_keeps_its_bytes(tools: type[Tools], log: Any) -> None:
    """A compressed batch keeps its bytes except offset and epoch."""
    data = tools.data(b"a" * 50, b"b" * 50, compression="gzip")
    append_as_leader(log, data, 0, tools.now_ms)
    assert next(iter(log.batches())).data[16:] == data[16:]


@pytest.mark.parametrize("codec", CODECS[1:])
def test_compressed_records_out_of_order_are_renumbered(
    tools: type[Tools], log: Any, codec: str
) -> None:
    """Offsets that old clients number wrongly inside a compressed batch are assigned anew by the
    leader."""
    records = [Record(0, 5, None, b"a"), Record(5, 6, None, b"b")]
    append_as_leader(log, build_batch(records, compression=codec, last_offset=1), 0, 9)
    assert [(r.offset, r.timestamp, r.value) for r in log.records()] == [(0, 5, b"a"), (1, 6, b"b")]


def test_offset_deltas_of_an_uncompressed_batch_are_ignored(tools: type[Tools], log: Any) -> None:
    """Kafka counts the records of an uncompressed batch but ignores their offset deltas."""
    data = build_batch([Record(0, 5, None, b"a"), Record(5, 5, None, b"b")], last_offset=1)
    assert append_as_leader(log, data, 0, 9).last_offset == 1
    assert next(iter(log.batches())).data[16:] == data[16:]


def test_a_timestamp_beyond_64_bits_is_refused(tools: type[Tools], log: Any) -> None:
    """The base timestamp plus a record's delta must fit 64 bits."""
    for first, second in ((1 << 62, 1 << 63), (-(1 << 62), -(1 << 63) - 1)):
        records = [Record(0, first, None, b"a"), Record(1, second, None, b"b")]
        data = build_batch(records, max_timestamp=max(first, -1))
        assert refusal(log, data) is ErrorCode.INVALID_RECORD


def test_times_before_the_epoch_leave_no_largest_time(tools: type[Tools], log: Any) -> None:
    """Kafka's maximum timestamp begins at -1, the timestamp of records without one."""
    append_as_leader(log, tools.data(b"a", b"b", times=[-1, -7]), 0, 9)
    append_as_leader(log, tools.data(b"a", times=[-7]), 0, 9)
    assert [batch.max_timestamp for batch in log.batches()] == [-1, -1]


def test_the_append_time_bit_is_refused_whatever_the_topic(tools: type[Tools]) -> None:
    """No producer may set the bit, even for a LogAppendTime topic
    (docs/kafka/log.md#validation)."""
    log = tools.log(message_timestamp_type="LogAppendTime")
    data = with_timestamps(tools.data(b"a", b"b"), 1, 77)
    assert refusal(log, data) is ErrorCode.INVALID_TIMESTAMP


def test_header_names_that_are_not_utf_8_pass(tools: type[Tools], log: Any) -> None:
    """Kafka decodes header names leniently and late, so that they need not be UTF-8."""
    data = build_batch([Record(0, 5, None, b"v", (("name", b"1"),))])
    append_as_leader(log, patched(data, data.index(b"name"), b"n\xff\xfee"), 0, 9)
    assert log.records()[0].headers == (("n\ufffd\ufffde", b"1"),)
