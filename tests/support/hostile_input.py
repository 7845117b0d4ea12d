"""Hostile input against a cluster in this process while a good client works.

Run it as ``python -m fakekafka.tests.support.hostile_input [COUNT] [--seed SEED] [--idle IDLE]``.

The input is random bytes and requests that are changed, truncated, or of absurd lengths, counts,
keys and versions, for the listeners of brokers, ZooKeeper and the control API; and records that are
broken, or expand to far more than their size. The report has the good client's longest waits, the
longest stalls of the event loop by wall clock and processor time, the growth of memory, and errors
in the logs.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import logging
import os
import random
import resource
import socket
import struct
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from fakekafka import Cluster
from fakekafka.actors.runtime.live import LiveRuntime
from fakekafka.control.server import ControlServer
from fakekafka.tests.support.good_client import GoodClient, Stall, StallWatch
from fakekafka.tests.support.hostile_payloads import Payloads
from fakekafka.tests.support.request_shapes import shapes

_OPEN_MAX = 20
_INTERESTING = (-1, 0, 1, 127, 255, 32767, 65536, 2**31 - 1, -(2**31), 104857600, 2**24)
_METHODS = ("GET", "GET", "POST", "DELETE", "PUT", "OPTIONS", "X" * 300)
_CONTROL_PATHS = (
    "/", "/openapi.json", "/brokers", "/topics", "/topics/x/0", "/topics/x/0/records", "/brokers/9",
    "/brokers/x", "/zookeeper/tree", "/%00", "/" + "a/" * 500, "/topics/" + "%41" * 2000,
)  # fmt: skip
_CONTROL_BODIES = (
    b"", b"{}", b"[]", b"{", b"null", b'{"name": 5}', b"[" * 50_000, b'{"a":' * 5_000,
    b'{"name": "' + b"x" * 100_000 + b'"}', b'{"a": [' + b"[]," * 200_000 + b"[]]}",
    b'{"a": ' + b"9" * 100_000 + b"}", bytes(range(256)) * 20,
)  # fmt: skip
_OPERATIONS = (1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 13, 14, 100, 101, 999, -11)


_TOPICS: dict[str, dict[str, str]] = {
    "x": {},
    "compacted": {"cleanup.policy": "compact"},
    "packed": {"compression.type": "gzip"},
    "timed": {"message.timestamp.type": "LogAppendTime"},
}
"""Topics that get records, each with a configuration that checks records differently."""


_KINDS = (
    (0.15, "ZooKeeper"),
    (0.17, "control API"),
    (0.171, "heavy records"),
    (0.22, "broken records"),
    (1, "requests"),
)
"""Kinds of inputs, each after the upper bound of its cumulative share."""


class Outcome(NamedTuple):
    """The outcome of a run."""

    seed: int
    inputs: int
    seconds: float
    waits_s: dict[str, float]
    """The good client's longest wait in seconds by kind of request."""
    requests: int
    """Number of the good client's requests."""
    stalls: tuple[Stall, ...]
    """Stalls in which the event loop worked most."""
    memory_before: int
    memory_most: int
    memory_after: int
    kinds: dict[str, int]
    """Number of inputs sent by kind."""
    complaints: tuple[str, ...]
    """Log records about failures of fakekafka itself."""

    @property
    def longest_wait_s(self) -> float:
        return max(self.waits_s.values())

    def __str__(self) -> str:
        grown = (self.memory_most - self.memory_before) / 1e6
        waits = ", ".join(f"{kind} {waited:.2f} s" for kind, waited in self.waits_s.items())
        return (
            f"seed {self.seed}: {self.inputs} inputs in {self.seconds:.0f} s; the good client "
            f"waited at most {waits} in {self.requests} requests; memory grew by {grown:.0f} MB "
            f"({self.memory_before / 1e6:.0f} before, {self.memory_most / 1e6:.0f} at most, "
            f"{self.memory_after / 1e6:.0f} after); {len(self.complaints)} complaints in the logs"
        )


_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 1 << 20


def return_freed_memory() -> None:
    """Have glibc return large blocks as soon as they are freed.

    By default glibc raises its thresholds with the blocks it sees, and keeps up to 64 MB of free
    memory for each thread that ever needed some, so that resident memory would say little about
    memory in use.
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Inputs:
    """Draws inputs; the same seed gives the same inputs."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._shapes = list(shapes())
        self._kinds = (
            self._bytes, self._framed, self._valid, self._changed, self._cut_off, self._length,
            self._count, self._header, self._several,
        )  # fmt: skip

    def for_broker(self) -> bytes:
        return self._random.choice(self._kinds)()

    def for_zookeeper(self) -> bytes:
        draw = self._random
        packets = [struct.pack(">iqiqi", 0, 0, 6000, 0, 16) + bytes(16)]
        for _ in range(draw.randrange(4)):
            body = draw.randbytes(draw.randrange(60))
            if draw.random() < 0.5:
                body = struct.pack(">i", 4) + b"/x_y" + body
            operation = draw.choice(_OPERATIONS)
            packets.append(struct.pack(">ii", draw.randrange(100), operation) + body)
        data = b"".join(struct.pack(">i", len(packet)) + packet for packet in packets)
        kind = draw.randrange(4)
        if kind == 0:
            return self._bytes()
        if kind == 1:
            return self._mutated(data)
        return data[: draw.randrange(1, len(data) + 1)] if kind == 2 else data

    def for_control(self) -> bytes:
        """Return a request to the control API, mostly one that makes no sense."""
        draw = self._random
        kind = draw.randrange(6)
        if kind == 0:
            return self._bytes()
        path = draw.choice(_CONTROL_PATHS)
        body = draw.choice(_CONTROL_BODIES)
        size = draw.choice((len(body), len(body), len(body) + 5, -1, 10**9, 0))
        head = f"{draw.choice(_METHODS)} {path} HTTP/1.0\r\nContent-Length: {size}\r\n\r\n"
        data = head.encode() + body
        return self._mutated(data) if kind == 1 else data

    def _bytes(self) -> bytes:
        return self._random.randbytes(self._random.randrange(1, 500))

    def _framed(self) -> bytes:
        data = self._bytes()
        return struct.pack(">i", len(data)) + data

    def _valid(self) -> bytes:
        size = self._random.choice((0, 1, 2, 5, 30, 30, 200))
        return self._random.choice(self._shapes).frame(size)

    def _mutated(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self._random.randrange(1, 6)):
            changed[self._random.randrange(len(changed))] = self._random.randrange(256)
        return bytes(changed)

    def _changed(self) -> bytes:
        data = self._valid()
        return data[:4] + self._mutated(data[4:])

    def _cut_off(self) -> bytes:
        data = self._valid()
        return data[: self._random.randrange(1, len(data))]

    def _length(self) -> bytes:
        size = self._random.choice((*_INTERESTING, self._random.randrange(-(2**31), 2**31)))
        return struct.pack(">i", size) + self._valid()[4:]

    def _count(self) -> bytes:
        data = bytearray(self._valid())
        if len(data) > 20:
            at = self._random.randrange(14, len(data) - 4)
            struct.pack_into(">i", data, at, self._random.choice(_INTERESTING))
        return bytes(data)

    def _header(self) -> bytes:
        data = bytearray(self._valid())
        key = self._random.choice((*range(80), -1, 32767))
        struct.pack_into(">hh", data, 4, key, self._random.choice((*range(-1, 20), 32767)))
        return bytes(data)

    def _several(self) -> bytes:
        return b"".join(self._valid() for _ in range(self._random.randrange(2, 6)))


class Complaints(logging.Handler):
    """Collects log records about failures of fakekafka itself."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or (record.levelno >= logging.ERROR and not self._is_ordered(record)):
            self.found.append(f"{record.name}: {record.getMessage()} {record.exc_info!r}")

    @staticmethod
    def _is_ordered(record: logging.LogRecord) -> bool:
        """Return True for a log record caused by a request that only controllers or brokers send,
        such as partitions without replicas or brokers that shut down.
        """
        return "stays in" in record.getMessage() and ".controller-" in record.name


class Attack:
    """Sends inputs; some connections stay open for a while, and no response is awaited."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._open: list[socket.socket] = []

    def send(self, address: tuple[str, int], data: bytes) -> None:
        client = socket.socket()
        client.settimeout(5)
        with contextlib.suppress(OSError):
            client.connect(address)
            client.sendall(data)
        self._open.append(client)
        if len(self._open) > _OPEN_MAX:
            leaving = self._open.pop(self._draw.randrange(_OPEN_MAX))
            with contextlib.suppress(OSError):
                leaving.setblocking(False)
                leaving.recv(65536)
            leaving.close()

    def end(self) -> None:
        for client in self._open:
            client.close()


def _addresses(text: str) -> list[tuple[str, int]]:
    split = [address.rsplit(":", 1) for address in text.split(",")]
    return [(host, int(port)) for host, port in split]


def run(count: int, seed: int, idle: int) -> Outcome:
    """Send ``count`` inputs and return the outcome."""
    logger = logging.getLogger("fakekafka")
    complaints = Complaints()
    logger.addHandler(complaints)
    propagated, logger.propagate = logger.propagate, False
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):  # where the control API's server reports errors
            outcome = _run(count, seed, idle, complaints)
        told = ("standard error: " + printed.getvalue()[:2000],) if printed.getvalue() else ()
        return outcome._replace(complaints=outcome.complaints + told)
    finally:
        logger.removeHandler(complaints)
        logger.propagate = propagated


def _drawn_kind(draw: random.Random) -> str:
    """Return the kind of the next input, as in ``_KINDS``."""
    share = draw.random()
    return next(kind for most, kind in _KINDS if share < most)


def _run(count: int, seed: int, idle: int, complaints: Complaints) -> Outcome:
    inputs, draw = Inputs(seed), random.Random(seed + 1)
    payloads = Payloads(random.Random(seed + 2), tuple(_TOPICS))
    with Cluster(3, zookeeper_ports=[0]) as cluster, contextlib.ExitStack() as stack:
        for name, config in _TOPICS.items():
            cluster.create_topic(name, partitions=4, config=config)
        cluster.create_topic("good", assignment={0: [1, 2, 3]})
        brokers = _addresses(cluster.bootstrap_servers)
        (zookeeper,) = _addresses(cluster.zookeeper_connect)
        control = ControlServer(cluster)
        stack.callback(control.close)
        host, port = control.url.removeprefix("http://").rsplit(":", 1)
        memory_before = memory_most = resident_bytes()
        for index in range(idle):
            stack.enter_context(socket.create_connection(brokers[index % len(brokers)], 30))
        good = GoodClient(brokers[0], "good")
        good.start()
        assert isinstance(cluster.runtime, LiveRuntime)
        watch = StallWatch(cluster.runtime.loop)
        watch.start()
        attack = Attack(draw)
        began_s = time.monotonic()
        kinds: Counter[str] = Counter()
        for index in range(count):
            kind = _drawn_kind(draw)
            kinds[kind] += 1
            if kind == "ZooKeeper":
                attack.send(zookeeper, inputs.for_zookeeper())
            elif kind == "control API":
                attack.send((host, int(port)), inputs.for_control())
            elif kind == "heavy records":
                attack.send(draw.choice(brokers), payloads.heavy())
            elif kind == "broken records":
                attack.send(draw.choice(brokers), payloads.broken())
            else:
                attack.send(draw.choice(brokers), inputs.for_broker())
            if index % 500 == 0:
                memory_most = max(memory_most, resident_bytes())
        seconds = time.monotonic() - began_s
        good.end()
        watch.end()
        attack.end()
        if good.error is not None:
            complaints.found.append(f"the good client failed: {good.error!r}")
        complaints.found += [f"{name}: {error!r}" for name, error in cluster.runtime.failures]
        memory_most = max(memory_most, resident_bytes())
        return Outcome(
            seed, count, seconds, good.longest_waits_s, good.requests, tuple(watch.longest()),
            memory_before, memory_most, resident_bytes(), dict(kinds), tuple(complaints.found),
        )  # fmt: skip


def main() -> int:
    """Run and return the exit status, 0 if the cluster withstood the input."""
    parser = argparse.ArgumentParser(description="Hostile input against a cluster.")
    parser.add_argument("count", type=int, nargs="?", default=200_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--idle", type=int, default=2000)
    options = parser.parse_args()
    return_freed_memory()
    needed = 2 * (options.idle + 200)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, hard), hard))
    print(f"seed {options.seed}", flush=True)
    outcome = run(options.count, options.seed, options.idle)
    print(outcome)
    print(", ".join(f"{number} {kind}" for kind, number in outcome.kinds.items()))
    for stall in outcome.stalls:
        print(
            f"the loop gave no sign for {stall.wall_s:.2f} s, of which it worked "
            f"{stall.processor_s:.2f} s, in {stall.doing}"
        )
    for complaint in outcome.complaints[:20]:
        print(complaint)
    grown = outcome.memory_most - outcome.memory_before
    return int(outcome.longest_wait_s > 2 or grown > 200_000_000 or bool(outcome.complaints))


if __name__ == "__main__":
    raise SystemExit(main())
