"""The trace file: frames, index, damage and slices."""

from __future__ import annotations

import gc
import struct
import zlib
from pathlib import Path

import cramjam
import pytest
from fakekafka import __version__
from fakekafka.protocol.errors import UsageError
from fakekafka.tests.support.traces import header, record_fetches, write_failover
from fakekafka.tracing.chunks import bitmap, in_bitmap
from fakekafka.tracing.events import TraceError
from fakekafka.tracing.format import (
    CHUNK_FRAME,
    CODECS,
    END_MAGIC,
    FRAME_HEAD,
    MAGIC,
    OLD_TRAILER,
    TRAILER,
    decode_frame,
    encode_frame,
)
from fakekafka.tracing.reading.queries import selected
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.recording.writer import TraceWriter
from fakekafka.tracing.slices import write_slice
from fakekafka.tracing.trace_file import TraceReader
from fakekafka.tracing.verify import refusal


@pytest.mark.parametrize("codec", ["raw", "zlib", "zstd"])
def test_a_written_file_is_read_back(tmp_path: Path, codec: str) -> None:
    """A written file reads back with equal events and fingerprint, with every codec."""
    recorder = Recorder(TraceWriter(tmp_path / "a.fktrace", header(), codec=codec))
    record_fetches(recorder, 2345)
    recorder.close()
    with TraceReader(tmp_path / "a.fktrace") as trace:
        assert [event.seq for event in trace.events()] == list(range(2345))
        assert trace.fingerprint == recorder.fingerprint()
        assert trace.outline == recorder.outline()
        assert trace.problem is None
        assert trace.header["seed"] == 42
        assert trace.counts() == ({"send": 2345}, {"FetchRequest": 2345})


def test_file_begins_and_ends_as_specified(tmp_path: Path) -> None:
    """A file is magic, frames and a trailer with index offset and digest."""
    recorder = write_failover(tmp_path / "a.fktrace")
    data = (tmp_path / "a.fktrace").read_bytes()
    assert data.startswith(MAGIC)
    offset, digest, checksum, magic = TRAILER.unpack(data[-TRAILER.size :])
    assert magic == END_MAGIC
    assert checksum == zlib.crc32(data[-TRAILER.size :][:40])
    assert digest.hex() == recorder.fingerprint()
    assert data[offset] == 3
    kind, codec, length, _ = struct.unpack_from("<BBII", data, 8)
    assert (kind, codec) == (1, 2)
    assert data[8 + 10 + length] == 2


def test_a_damaged_fingerprint_is_reported_and_cannot_be_verified(tmp_path: Path) -> None:
    """A damaged fingerprint is reported; the events are readable but cannot be verified."""
    path = tmp_path / "a.fktrace"
    recorder = write_failover(path)
    for place in (1, 5, 20, 39):
        data = bytearray(path.read_bytes())
        data[place - TRAILER.size] ^= 4
        (tmp_path / "b.fktrace").write_bytes(data)
        with TraceReader(tmp_path / "b.fktrace") as trace:
            assert "wrong checksum of the trailer" in str(trace.problem)
            assert trace.fingerprint is None
            assert len(trace) == len(recorder)


def test_a_file_of_an_earlier_release_ends_without_a_checksum(tmp_path: Path) -> None:
    """A file of an earlier release, without the trailer's checksum, is read whole."""
    path = tmp_path / "a.fktrace"
    recorder = write_failover(path)
    data = path.read_bytes()
    offset, digest, _, _ = TRAILER.unpack(data[-TRAILER.size :])
    path.write_bytes(data[: -TRAILER.size] + OLD_TRAILER.pack(offset, digest, MAGIC))
    with TraceReader(path) as trace:
        assert (trace.problem, trace.fingerprint) == (None, recorder.fingerprint())
        assert len(trace) == len(recorder)


@pytest.mark.parametrize("codec", ["zlib", "zstd"])
@pytest.mark.parametrize("size", [50, 100_000, 20_000_000])
def test_a_chunk_that_would_expand_too_much_is_stored_uncompressed(codec: str, size: int) -> None:
    """A chunk that would expand too much is stored uncompressed, so that it stays readable."""
    frame = encode_frame(CHUNK_FRAME, bytes(size), CODECS[codec])
    assert decode_frame(frame, 0, "a").body == bytes(size)
    mixed = bytes(size) + bytes(range(256)) * (size // 4000)
    assert decode_frame(encode_frame(CHUNK_FRAME, mixed, CODECS[codec]), 0, "a").body == mixed


def test_interesting_events_are_indexed(tmp_path: Path) -> None:
    """Crashes and restarts are found by the index, without decoding events."""
    write_failover(tmp_path / "a.fktrace")
    with TraceReader(tmp_path / "a.fktrace") as trace:
        assert [trace.event(seq).kind for seq in trace.interesting()] == ["crash", "restart"]


def test_crashed_writer_leaves_a_readable_file(tmp_path: Path) -> None:
    """Without a trailer the index is rebuilt from whole frames."""
    writer = TraceWriter(tmp_path / "a.fktrace", header())
    record_fetches(Recorder(writer), 2500)
    writer.abandon()
    with TraceReader(tmp_path / "a.fktrace") as trace:
        assert len(trace) == 2000
        assert trace.fingerprint is None
        assert trace.problem == "the file has no end: the run was cut off"
        assert trace.event(1999).fields["partitions"][0]["fetch_offset"] == 1999
        assert trace.counts()[0] == {"send": 2000}
        assert list(trace.events(0, None, trace.chunk_filter({"actor": "nobody"}))) == []


def test_a_file_truncated_at_any_byte_is_readable(tmp_path: Path) -> None:
    """A file truncated at any byte gives its whole chunks or a clear error."""
    record_path = tmp_path / "a.fktrace"
    recorder = Recorder(TraceWriter(record_path, header()))
    record_fetches(recorder, 2100)
    recorder.close()
    data = record_path.read_bytes()
    cut = tmp_path / "cut.fktrace"
    lengths = set()
    refused = 0
    for size in (*range(0, 200, 20), *range(200, len(data), max(1, len(data) // 97))):
        cut.write_bytes(data[:size])
        try:
            with TraceReader(cut) as trace:
                lengths.add(len(list(trace.events())) if trace.problem else -1)
        except TraceError as error:
            refused += str(cut) in str(error)
    assert refused > 1
    assert lengths <= {0, 1000, 2000, 2100}
    assert len(lengths) > 1


@pytest.mark.parametrize("codec", ["zlib", "zstd"])
def test_a_frame_that_decompresses_to_too_much_is_refused(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame that would expand beyond the maximum is refused."""
    monkeypatch.setattr("fakekafka.tracing.format._GROWING_BYTES", 1_000_000)

    def frame(size: int) -> bytes:
        whole = bytes(size)
        packed = zlib.compress(whole) if codec == "zlib" else bytes(cramjam.zstd.compress(whole))
        head = FRAME_HEAD.pack(CHUNK_FRAME, CODECS[codec], len(packed), zlib.crc32(packed))
        return head + packed

    assert decode_frame(frame(1_000_000), 0, "a").body == bytes(1_000_000)
    with pytest.raises(TraceError, match=r"damaged frame at byte 0: .*more than 1000000 bytes"):
        decode_frame(frame(1_000_001), 0, "a")


def test_damaged_chunk_ends_the_readable_part(tmp_path: Path) -> None:
    """A chunk with a wrong checksum ends the readable part and is named with its place."""
    path = tmp_path / "a.fktrace"
    writer = TraceWriter(path, header())
    record_fetches(Recorder(writer), 2500)
    writer.abandon()
    data = bytearray(path.read_bytes())
    data[-20] ^= 0xFF
    path.write_bytes(data)
    with TraceReader(path) as trace:
        assert len(trace) == 1000
        assert "wrong checksum of the frame at byte" in (trace.problem or "")


@pytest.mark.parametrize("content", [b"", b"FK", b"not a trace at all, but long enough"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    """The error for a file that is no trace names the file."""
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(TraceError, match="other: not a trace file"):
        TraceReader(path)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    """A missing file is a TraceError."""
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        TraceReader(tmp_path / "none")


def test_missing_event_is_named(tmp_path: Path) -> None:
    """The error for a missing event names the events that exist."""
    write_failover(tmp_path / "a.fktrace")
    with (
        TraceReader(tmp_path / "a.fktrace") as trace,
        pytest.raises(TraceError, match=r"no event #99: the trace holds 22 events, #0 to #21"),
    ):
        trace.event(99)


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    """A file of another format is refused, as its kinds and fields are unknown here."""
    TraceWriter(tmp_path / "a.fktrace", {**header(), "format": 1}).abandon()
    with pytest.raises(
        TraceError, match=r"a\.fktrace: written in format 1; this release reads format 4"
    ):
        TraceReader(tmp_path / "a.fktrace")


def test_unknown_codec_and_bad_header_are_refused(tmp_path: Path) -> None:
    """An unknown codec or a bad header is refused before anything is written."""
    with pytest.raises(UsageError, match="unknown codec 'lzma'; use one of raw, zlib, zstd"):
        TraceWriter(tmp_path / "a", header(), codec="lzma")
    with pytest.raises(UsageError, match="plain values only"):
        TraceWriter(tmp_path / "a", {**header(), "x": object()})
    assert not (tmp_path / "a").exists()


def test_the_header_has_everything_needed_to_repeat_the_run() -> None:
    """A header has what is needed to repeat the run and nothing of the wall clock."""
    head = header(config={"b": 1, "a": 2}, virtual_epoch_ms=7)
    assert head == header(config={"a": 2, "b": 1}, virtual_epoch_ms=7)
    assert list(head["config"].items()) == [("a", "2"), ("b", "1")]
    assert (head["fakekafka"], head["mode"], head["seed"]) == (__version__, "sim", 42)
    assert head["virtual_epoch_ms"] == 7


def test_bitmaps() -> None:
    """Bitmaps hold numbers of any size in as few bytes as possible."""
    bits = bitmap([0, 9, 130])
    assert [n for n in range(200) if in_bitmap(bits, n)] == [0, 9, 130]
    assert len(bits) == 17
    assert bitmap([]) == b""


def test_slice_keeps_seqs_and_names_itself(tmp_path: Path) -> None:
    """Events of a slice keep their numbers, and its header names the part."""
    write_failover(tmp_path / "a.fktrace")
    with TraceReader(tmp_path / "a.fktrace") as trace:
        chosen = list(selected(trace.events(), actors=frozenset({"broker-2"}), start_us=7_000_000))
        count = write_slice(trace, iter(chosen), tmp_path / "b.fktrace", "--actor broker-2")
        fields = {event.seq: event.fields for event in chosen}
    with TraceReader(tmp_path / "b.fktrace") as part:
        assert count == len(part) == len(chosen) > 3
        assert {event.seq: event.fields for event in part.events()} == fields
        assert part.header["part"] == "--actor broker-2"
        assert refusal(part) == "it holds only a part of its run (--actor broker-2)"
        with pytest.raises(TraceError, match="no event #0"):
            part.event(0)


def test_reading_keeps_the_cyclic_collector_off(tmp_path: Path) -> None:
    """The garbage collector is off while events, which have no cycles, are decoded. It is on again
    for the caller's code, and stays off if the caller had disabled it.
    """
    recorder = Recorder(TraceWriter(tmp_path / "a.fktrace", header()))
    record_fetches(recorder, 5000)
    recorder.close()
    collections: list[int] = []
    gc.callbacks.append(lambda phase, info: collections.append(info["generation"]))
    try:
        with TraceReader(tmp_path / "a.fktrace") as trace:
            assert all(gc.isenabled() for _ in trace.events())
        # One collection may run after a chunk was read; during the read there were some dozens.
        assert len(collections) // 2 <= 2 * len(trace.chunks)
        gc.disable()
        with TraceReader(tmp_path / "a.fktrace") as trace:
            assert not any(gc.isenabled() for _ in trace.events())
    finally:
        gc.enable()
        gc.callbacks.pop()
