"""A well-behaved client, and a watch for stalls of the cluster's event loop."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import threading
import time
import traceback
from typing import NamedTuple

from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.tests.support.wire_trees import frame

_NAME = "good"
_LEADER_MOVES = (3, 5, 6, 19, 20)
"""Error codes after which a client retries: the partition is unknown or led by another broker, or
replicas are missing.
"""


class GoodClient(threading.Thread):
    """Sends metadata, produce and fetch requests in turn and records the longest waits."""

    def __init__(self, address: tuple[str, int], topic: str) -> None:
        """Create a client of the broker at ``address``, the leader of the topic's partition 0."""
        super().__init__(daemon=True)
        self._address = address
        self._ends = threading.Event()
        self.longest_waits_s = {"metadata": 0.0, "produce": 0.0, "fetch": 0.0}
        self.requests = self.served = self.refused = 0
        self.error: BaseException | None = None
        batch = build_batch([Record(0, 1, b"k", b"v" * 100)])
        produced = [{"name": topic, "partitionData": [{"index": 0, "records": batch}]}]
        tree = {"acks": -1, "timeoutMs": 60_000, "topicData": produced}
        self._produce = frame(0, 3, tree, _NAME)
        self._metadata = frame(3, 1, {"topics": [{"name": topic}]}, _NAME)
        self._topic = topic
        self._topic_at = 8 + 4 + 2 + len(topic.encode()) + 4 + 4
        """Position of the partition's error code in a produce response."""

    @property
    def longest_wait_s(self) -> float:
        return max(self.longest_waits_s.values())

    def run(self) -> None:
        try:
            with socket.create_connection(self._address, 60) as client:
                while not self._ends.wait(0.005):
                    self._ask(client, "metadata", self._metadata)
                    answer = self._ask(client, "produce", self._produce)
                    code, offset = struct.unpack_from(">hq", answer, self._topic_at)
                    if code in _LEADER_MOVES:
                        self.refused += 1  # attackers may send what a controller sends
                        continue
                    if code:
                        raise AssertionError(f"produce failed with error {code}")
                    self._ask(client, "fetch", self._fetch(offset))
                    self.served += 1
        except BaseException as error:
            self.error = error

    def _fetch(self, offset: int) -> bytes:
        partition = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 10_000}
        topics = [{"topic": self._topic, "partitions": [partition]}]
        return frame(1, 4, {"replicaId": -1, "maxBytes": 10_000, "topics": topics}, _NAME)

    def _ask(self, client: socket.socket, kind: str, request: bytes) -> bytes:
        began_s = time.monotonic()
        client.sendall(request)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            part = client.recv(65536)
            if not part:
                raise ConnectionError("the good client was disconnected")
            answer += part
        waited_s = time.monotonic() - began_s
        self.longest_waits_s[kind] = max(self.longest_waits_s[kind], waited_s)
        self.requests += 1
        return answer

    def end(self) -> None:
        self._ends.set()
        self.join(60)


class Stall(NamedTuple):
    """A time in which the event loop did not respond."""

    wall_s: float
    processor_s: float
    """Processor time in seconds of the event loop's thread during the stall."""
    doing: str
    """Stack of the event loop's thread during the stall."""


class StallWatch(threading.Thread):
    """Probes the event loop continually, and records its stack when it does not respond."""

    def __init__(self, loop: asyncio.AbstractEventLoop, least_s: float = 0.15) -> None:
        super().__init__(daemon=True)
        self._loop = loop
        self._least_s = least_s
        self._ends = threading.Event()
        self.stalls: list[Stall] = []

    def run(self) -> None:
        thread_ids: list[int] = []
        clock = 0
        while not self._ends.wait(0.01):
            alive = threading.Event()

            def show(alive: threading.Event = alive) -> None:
                thread_ids[:] = [threading.get_ident()]
                alive.set()

            began_s = time.monotonic()
            worked_s = time.clock_gettime(clock) if thread_ids else 0.0
            self._loop.call_soon_threadsafe(show)
            if not alive.wait(self._least_s) and thread_ids:
                frame = sys._current_frames().get(thread_ids[0])
                stack = traceback.extract_stack(frame) if frame is not None else []
                alive.wait(120)
                places = [
                    f"{entry.name} ({entry.filename[-40:]}:{entry.lineno})" for entry in stack
                ]
                self.stalls.append(
                    Stall(
                        time.monotonic() - began_s,
                        time.clock_gettime(clock) - worked_s,
                        " < ".join(reversed(places[-7:])),
                    )
                )
            elif not clock and thread_ids:
                clock = time.pthread_getcpuclockid(thread_ids[0])

    def longest(self, count: int = 10) -> list[Stall]:
        """Return the stalls with the most processor time of the event loop's thread."""
        return sorted(self.stalls, key=lambda stall: stall.processor_s, reverse=True)[:count]

    def end(self) -> None:
        self._ends.set()
        self.join(150)
