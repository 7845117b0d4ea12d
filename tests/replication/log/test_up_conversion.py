"""Messages of formats v0 and v1 are converted to format v2 without decoding each message
(docs/kafka/log.md#validation)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.records import compression as codecs
from fakekafka.protocol.records import legacy
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import TIMESTAMP_TYPE_BIT, Record
from fakekafka.protocol.records.legacy import build_message
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.tests.support.logs import NOW_MS, Tools

PARTS = (None, b"", b"x", b"y" * 63, b"z" * 64, b"w" * 9000)


def drawn(count: int, magic: int) -> list[Record]:
    """Records whose numbers each take one, two or three bytes."""
    draw = random.Random(count)
    return [
        Record(
            index,
            NOW_MS + draw.choice((0, 0, 0, -1, 63, 64, 100_000)) if magic else -1,
            draw.choice(PARTS[:5]),
            draw.choice(PARTS[:5] if index % 1000 else PARTS),
        )
        for index in range(count)
    ]


def wrapper(payload: bytes, magic: int = 1, codec: int = codecs.GZIP, attributes: int = 0) -> bytes:
    packed = codecs.compress(codec, payload)
    return build_message(0, magic, None, packed, NOW_MS, codec | attributes)


@pytest.mark.parametrize(("magic", "count"), [(0, 300), (1, 300), (1, 8200), (1, 1)])
@pytest.mark.parametrize("codec", [codecs.NONE, codecs.GZIP])
def test_a_converted_batch_equals_one_encoded_from_its_records(
    magic: int, codec: int, count: int
) -> None:
    """The batch equals, byte for byte, the result of decoding the messages and encoding them as
    records."""
    records = drawn(count, magic)
    plain = b"".join(build_message(r.offset, magic, r.key, r.value, r.timestamp) for r in records)
    produced = wrapper(plain, magic, codec) if codec else plain
    log = Tools.log(max_message_bytes=1 << 24)
    append_as_leader(log, produced, 0, NOW_MS, api_version=2)
    (stored,) = log.batches()
    assert stored.data == build_batch(records, leader_epoch=0, compression=codec)


def test_wrapped_messages_make_no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """No object is created per message: for 140,000 messages in 4 kB of gzip that took 1.4 s."""
    one = build_message(0, 1, None, b"", 1)
    data = wrapper(one * 1000)
    parsed: list[int] = []
    original = legacy.parse_message

    def parse(*arguments: Any) -> Any:
        parsed.append(1)
        return original(*arguments)

    monkeypatch.setattr(legacy, "parse_message", parse)
    log = Tools.log()
    append_as_leader(log, data, 0, NOW_MS, api_version=2)
    assert (log.log_end_offset, parsed) == (1000, [])


def test_the_time_of_a_wrapper_holds_for_all() -> None:
    """A wrapper that has the append time of another broker gives it to its messages, whose own
    timestamps are ignored."""
    inner = b"".join(build_message(at, 1, b"k", b"v", 5 + at) for at in range(3))
    log = Tools.log()
    append_as_leader(log, wrapper(inner, attributes=TIMESTAMP_TYPE_BIT), 0, NOW_MS, api_version=2)
    assert [record.timestamp for record in log.records()] == [NOW_MS] * 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:-20],
        lambda data: data + b"\0" * 11,
        lambda data: data + b"\0" * 16,
        lambda data: data[:-1] + b"?",
        lambda data: data[:16] + b"\2" + data[17:],
        lambda data: data[:16] + b"\0" + data[17:],
        lambda data: data[:30] + b"\x7f" + data[31:],
    ],
)
def test_errors_inside_a_wrapper_are_corrupt_messages(damage: Any) -> None:
    """Truncated sets and wrong checksums, formats and sizes in a wrapper are CORRUPT_MESSAGE."""
    good = build_message(0, 1, b"k", b"v", 5)
    with pytest.raises(KafkaError) as caught:
        append_as_leader(Tools.log(), wrapper(good + damage(good)), 0, NOW_MS, api_version=2)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_every_message_that_is_refused_is_named() -> None:
    """On a compacted topic every message without a key is named by its index in the wrapper."""
    inner = b"".join(build_message(at, 1, b"k" if at % 2 else None, b"v", 5) for at in range(5))
    log = Tools.log(cleanup_policy="compact")
    with pytest.raises(KafkaError) as caught:
        append_as_leader(log, wrapper(inner), 0, NOW_MS, api_version=2)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in caught.value.record_errors] == [0, 2, 4]


@pytest.mark.parametrize("codec", [codecs.NONE, codecs.GZIP])
def test_times_too_far_apart_are_refused(codec: int) -> None:
    """Messages are refused if their timestamps differ by more than a record can express."""
    plain = build_message(0, 1, b"k", b"v", (1 << 63) - 1) + build_message(1, 1, b"k", b"v", -5)
    with pytest.raises(KafkaError) as caught:
        append_as_leader(Tools.log(), wrapper(plain) if codec else plain, 0, NOW_MS, api_version=2)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
