"""Hostile and foreign trace files cause a clear error and bounded memory."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
from fakekafka.cli.main import main
from fakekafka.tests.support.traces import header, record_failover
from fakekafka.tracing.events import TraceError
from fakekafka.tracing.format import (
    CODECS,
    CONTAINERS_MAX,
    FRAME_BYTES_MAX,
    FRAME_HEAD,
    HEADER_FRAME,
    MAGIC,
    TRAILER,
    decode_frame,
    encode_frame,
    pack_header,
    pack_trailer,
)
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.trace_file import TraceReader

EVIL: tuple[Any, ...] = (
    None, -1, 2**63, 1e308, float("nan"), "", b"x", [], {}, [[[]]], {"a": 1}, True, "A" * 5000,
    "<script>alert(1)</script>", 2**31,
)  # fmt: skip


def frames_of(data: bytes) -> list[tuple[int, bytes]]:
    """Return kind and body of every frame, the index last."""
    found, offset = [], len(MAGIC)
    while offset < len(data) - TRAILER.size:
        frame = decode_frame(data, offset, "x")
        found.append((frame.kind, frame.body))
        offset += frame.length
    return found


def file_of(frames: list[tuple[int, bytes]]) -> bytes:
    """Return a file with these frames and valid checksums."""
    parts, index = bytearray(MAGIC), 0
    for kind, body in frames:
        index = len(parts)
        parts += encode_frame(kind, body, CODECS["raw"])
    return bytes(parts + pack_trailer(index, b"\0" * 32))


def changed(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """Return the value with one part replaced by a hostile value or removed."""
    if depth > 6 or rng.random() < 0.15 or not value or not isinstance(value, (list, dict)):
        return rng.choice(EVIL)
    key = rng.randrange(len(value)) if isinstance(value, list) else rng.choice(list(value))
    other = value.copy()
    if rng.random() < 0.15:
        del other[key]
    else:
        other[key] = changed(value[key], rng, depth + 1)
    return other


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "sound.fktrace"
    recorder = Recorder()
    record_failover(recorder)
    recorder.save(path, header())
    return path.read_bytes()


VERBS: tuple[tuple[str, ...], ...] = (
    ("info",), ("show", "-vv"), ("why", "5"), ("effects", "0"), ("at", "5"), ("story",),
    ("watch", "*"), ("grep", "kind == drop"),
)  # fmt: skip


@pytest.mark.slow
def test_a_malformed_trace_is_an_error_without_a_traceback(
    recording: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each verb handles sixty hostile files with valid checksums by a result or one-line errors."""
    rng = random.Random(7)
    path = tmp_path / "evil.fktrace"
    told = 0
    for _ in range(60):
        frames = frames_of(recording)
        number = rng.randrange(len(frames))
        kind, body = frames[number]
        content = msgpack.unpackb(body, strict_map_key=False)
        frames[number] = kind, msgpack.packb(changed(content, rng))
        path.write_bytes(file_of(frames))
        for verb, *more in VERBS:
            with pytest.raises(SystemExit) as ended:
                main(["trace", verb, str(path), *more])
            assert ended.value.code in (None, 0, 1, 2)
            errors = capsys.readouterr().err.splitlines()
            assert all(line.startswith(("error: ", "warning: ", "nothing ")) for line in errors)
            told += ended.value.code == 2
    assert told > 50


def _bomb(body: bytes) -> bytes:
    """Return a file whose header has this body, compressed by zlib."""
    packed = zlib.compress(body, 9)
    head = FRAME_HEAD.pack(HEADER_FRAME, CODECS["zlib"], len(packed), zlib.crc32(packed))
    return MAGIC + head + packed


def _among_noise(stored: int, count: int, item: bytes) -> bytes:
    """Return a list of ``count`` items beside random bytes, to keep its compression ratio low."""
    noise = b"\xc6" + stored.to_bytes(4, "big") + random.Random(1).randbytes(stored)
    return b"\x92" + noise + b"\xdd" + count.to_bytes(4, "big") + item * count


_MANY_MAPS = b"\xdc\xea\x60" + b"\x80" * 60_000
_GROWTH_MB_MAX = 60
"""Maximum growth of memory in MB when a small file declares large content."""
BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "grows": (lambda: _bomb(b"\xc0" * (FRAME_BYTES_MAX + 1)), "has more than"),
    "maps": (lambda: _bomb(b"\xdc\x00\x10" + _MANY_MAPS * 16), "lists and maps"),
    "nothings": (
        lambda: _bomb(b"\xdd\x00\x0f\xff\x00" + b"\xc0" * 0xFFF00),
        "exceeds max_array_len",
    ),
    "maps of a usual size": (
        lambda: _bomb(_among_noise(42_000, 4_000_000, b"\x80")),
        "lists and maps",
    ),
    "lists of a usual size": (
        lambda: _bomb(_among_noise(9_000, 900_000, b"\x90")),
        "lists and maps",
    ),
    "words": (lambda: _bomb(_among_noise(5_000, 340_000, b"\xa2ab")), "written in format None"),
    "declares": (lambda: _bomb(b"\xdd\xff\xff\xff\xff\x01"), "cannot be unpacked"),
    "nests": (lambda: _bomb(b"\x91" * 100_000 + b"\x01"), "cannot be unpacked"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_grows_is_refused(name: str, tmp_path: Path) -> None:
    """A file of a few hundred kilobytes that expands to gigabytes is refused by the size, the
    number of values or the depth of its content.
    """
    make, told = BOMBS[name]
    path = tmp_path / f"{name}.fktrace"
    path.write_bytes(make())
    assert path.stat().st_size < 600_000
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000,) * 2)\n"
        "from fakekafka.tracing.trace_file import TraceReader, TraceError\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
        "before = peak()\n"
        "try: TraceReader(sys.argv[1])\n"
        "except TraceError as error: print(error)\n"
        "print(peak() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert told in done.stdout
    assert int(done.stdout.split()[-1]) < _GROWTH_MB_MAX


def test_a_frame_may_hold_as_much_as_any_run_needs() -> None:
    """A frame may have three million lists, as does a snapshot of some 100,000 partitions."""
    assert CONTAINERS_MAX >= 3_000_000


def test_a_header_of_the_wrong_type_is_refused(tmp_path: Path) -> None:
    """A file whose header is a number, or whose index is a list, is refused with a TraceError."""
    path = tmp_path / "odd.fktrace"
    sound = (HEADER_FRAME, pack_header(header()))
    path.write_bytes(file_of([(HEADER_FRAME, b"\x05")]))
    with pytest.raises(TraceError, match=r"written in format None"):
        TraceReader(path)
    path.write_bytes(file_of([sound, (3, msgpack.packb([1, 2]))]))
    with pytest.raises(TraceError, match=r"odd\.fktrace: damaged, or not written by fakekafka"):
        TraceReader(path)
