"""Small requests that expand to many or large records cost the broker little."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.records import batch as batches
from fakekafka.protocol.records import compression as codecs
from fakekafka.protocol.records.batch import RecordBatch, build_batch
from fakekafka.protocol.records.format import Record, write_record
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.tests.support.hostile_payloads import batch, record_with_headers
from fakekafka.tests.support.logs import NOW_MS, Tools

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "compacted": {"cleanup_policy": "compact"},
    "compressed": {"compression_type": "gzip"},
    "append time": {"message_timestamp_type": "LogAppendTime"},
    "times limited": {"message_timestamp_difference_max_ms": 1000},
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("codec", [codecs.NONE, codecs.GZIP])
def test_no_produced_record_is_decoded(
    monkeypatch: pytest.MonkeyPatch, name: str, codec: int
) -> None:
    """140,000 small records, decoded to check their keys or to correct their offsets, blocked the
    event loop for 1.3 s.
    """
    body = bytearray()
    for index in range(300):
        write_record(body, Record(0, 0, b"k", b"%d" % index, (("h", b"v"),)), 7, 0)
    data = bytearray(batch(codecs.compress(codec, body), 300, codec))
    data = bytearray(batches.with_timestamps(data, 0, 0))
    data[27:35] = NOW_MS.to_bytes(8, "big")
    produced = batches.with_timestamps(data, 0, NOW_MS)
    log = Tools.log(**CONFIGURATIONS[name])

    def refuse(*_: Any) -> Any:
        raise AssertionError("a record was decoded")

    with monkeypatch.context() as patched:
        patched.setattr(batches, "decode_records", refuse)
        append_as_leader(log, produced, 0, NOW_MS, api_version=3)
    (stored,) = log.batches()
    assert stored.is_intact()
    assert [record.value for record in stored.records()] == [b"%d" % n for n in range(300)]
    rebuilt = codec or name == "compressed"
    offsets = [record.offset for record in stored.records()]
    assert offsets == (list(range(300)) if rebuilt else [7] * 300)


@pytest.mark.pure
@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("offset", [0, 7])
def test_produced_records_are_decompressed_once(
    monkeypatch: pytest.MonkeyPatch, name: str, offset: int
) -> None:
    """32 MiB in 32 kB were decompressed to be validated, to check the keys, and to be rebuilt: each
    took 0.1 s and as much memory.
    """
    record = bytearray()
    write_record(record, Record(0, 0, b"k", b"v"), offset, NOW_MS)
    produced = batch(codecs.compress(codecs.GZIP, record), 1, codecs.GZIP)
    log = Tools.log(**CONFIGURATIONS[name])
    seen: list[int] = []
    original = codecs.decompress

    def decompress(*arguments: Any, **named: Any) -> bytes:
        seen.append(1)
        return original(*arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(codecs, "decompress", decompress)
        append_as_leader(log, produced, 0, NOW_MS, api_version=3)
    assert seen == [1]
    assert [record.offset for record in log.records()] == [0]


@pytest.mark.parametrize("codec", [codecs.NONE, codecs.GZIP])
def test_a_rebuilt_batch_counts_its_times_from_its_first_record(codec: int) -> None:
    """As with Kafka's builder, this holds whatever base timestamp the producer used
    (``MemoryRecordsBuilder.appendWithOffset``).
    """
    body = bytearray()
    for delta in (NOW_MS + 9, NOW_MS, NOW_MS + 100):
        write_record(body, Record(0, 0, b"k", b"v"), 3, delta)
    produced = batch(codecs.compress(codec, body), 3, codec)
    log = Tools.log(compression_type="lz4")
    append_as_leader(log, produced, 0, NOW_MS, api_version=3)
    (stored,) = log.batches()
    assert stored.base_timestamp == NOW_MS + 9
    times = [NOW_MS + 9, NOW_MS, NOW_MS + 100]
    assert [(r.offset, r.timestamp) for r in stored.records()] == list(enumerate(times))
    assert stored.data == build_batch(stored.records(), leader_epoch=0, compression="lz4")


def test_headers_count_like_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """32 MiB of records with 110 empty headers each, 33 kB in gzip, blocked the event loop for 42
    s.
    """
    monkeypatch.setattr("fakekafka.replication.log.settings._MESSAGE_BYTES_USUAL", 700)
    config: dict[str, Any] = {"max_message_bytes": 700}
    for count, headers in ((1, 100), (10, 10), (100, 1)):
        packed = codecs.compress(codecs.GZIP, record_with_headers(headers) * count)
        append_as_leader(Tools.log(**config), batch(packed, count, 1), 0, NOW_MS)
        one_more = record_with_headers(headers + 1) + record_with_headers(headers) * (count - 1)
        packed = codecs.compress(codecs.GZIP, one_more)
        for topic in (config, config | {"message_timestamp_type": "LogAppendTime"}):
            with pytest.raises(KafkaError) as caught:
                append_as_leader(Tools.log(**topic), batch(packed, count, 1), 0, NOW_MS)
            assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
            assert "gzip data of more than 100 headers" in str(caught.value)


def test_a_header_that_says_less_than_its_size_is_malformed() -> None:
    """A negative count does not bypass the limit."""
    record = b"\x0e\0\0\0\1\1\1\0"
    with pytest.raises(KafkaError) as caught:
        append_as_leader(Tools.log(), batch(record, 1), 0, NOW_MS)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert RecordBatch.from_bytes(batch(record, 1)).record_count == 1
