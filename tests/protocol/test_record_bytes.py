"""What is read from encoded records without decoding them equals what the decoded records say."""

from __future__ import annotations

import random

import pytest
from fakekafka.protocol.records.batch import RecordBatch, build_batch
from fakekafka.protocol.records.format import (
    HEADER_SIZE,
    MalformedRecords,
    Record,
    decode_records,
    write_record,
)
from fakekafka.protocol.records.record_bytes import (
    body_of,
    record_contents,
    record_deltas,
    renumbered,
)


def records(seed: int, count: int) -> list[Record]:
    dice = random.Random(seed)
    return [
        Record(
            dice.choice((index, 0, 63, 64, 8191, 8192, 1 << 20)),
            dice.choice((0, 5, 9000, 1 << 40, -5)),
            dice.choice((None, b"", b"k", b"k" * 200)),
            dice.choice((None, b"", b"v", b"v" * 300)),
            dice.choice(((), (), (("h", None), ("\xe9", b"x" * 70)))),
        )
        for index in range(count)
    ]


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("seed", range(5))
def test_marks_and_contents_are_those_of_the_decoded_records(seed: int, codec: str) -> None:
    """Times, offsets, keys and values are read correctly, whatever the sizes of their numbers."""
    batch = RecordBatch.from_bytes(
        build_batch(records(seed, 90), 7, compression=codec, last_offset=100)
    )
    decoded = batch.records()
    body, position = body_of(batch)
    count, base_timestamp = batch.record_count, batch.base_timestamp
    assert [
        (base_timestamp + t, 7 + o, has) for t, o, has in record_deltas(body, position, count)
    ] == [(one.timestamp, one.offset, one.key is not None) for one in decoded]
    found = list(record_contents(body, position, count))
    assert [(7 + o, base_timestamp + t, k, v) for t, o, k, v in found] == [
        one[:4] for one in decoded
    ]


@pytest.mark.parametrize("seed", range(5))
def test_renumbered_records_differ_in_their_offsets_only(seed: int) -> None:
    """The bytes equal those of an encoder that writes the same records at the offsets 0, 1, 2."""
    given = records(seed, 90)
    body = bytearray(b"other bytes")
    expected = bytearray()
    for index, record in enumerate(given):
        write_record(body, record, record.offset, record.timestamp)
        write_record(expected, record, index, record.timestamp)
    assert renumbered(bytes(body), 11, len(given)) == expected


@pytest.mark.parametrize("earlier_ms", [5, -70, 1 << 40])
def test_renumbered_records_may_count_from_another_time(earlier_ms: int) -> None:
    """The bytes equal those of an encoder that writes the same times relative to a later base."""
    given = records(1, 90)
    body = bytearray(b"other bytes")
    expected = bytearray()
    for index, record in enumerate(given):
        write_record(body, record, record.offset, record.timestamp)
        write_record(expected, record, index, record.timestamp - earlier_ms)
    assert renumbered(bytes(body), 11, len(given), earlier_ms) == expected


def test_a_time_too_far_from_the_first_is_malformed() -> None:
    """The difference of two timestamps of 64 bits may not fit into 64 bits."""
    body = bytearray()
    for delta in ((1 << 63) - 1, -5):
        write_record(body, Record(0, 0, None, b"v"), 0, delta)
    with pytest.raises(MalformedRecords):
        renumbered(bytes(body), 0, 2, (1 << 63) - 1)


def test_offsets_of_every_length_are_written() -> None:
    """Offset 64 is the first that takes two bytes, and 8192 the first that takes three."""
    body = bytearray()
    for _ in range(9000):
        write_record(body, Record(0, 0, b"k", None), 0, 0)
    found = decode_records(bytes(renumbered(bytes(body), 0, 9000)), 0, 9000, 0, 0)
    assert [record.offset for record in found] == list(range(9000))


def test_records_that_are_missing_are_malformed() -> None:
    """A stored batch that counts too many records is reported, as when it is decoded."""
    data = build_batch([Record(0, 1, b"k", b"v")])
    for read in (record_deltas, record_contents):
        with pytest.raises(MalformedRecords):
            list(read(data, HEADER_SIZE, 2))
