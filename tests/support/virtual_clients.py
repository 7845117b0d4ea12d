"""Clients that write frames into a simulation and record the responses with their times."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, cast

from fakekafka import Simulation
from fakekafka.tests.fidelity.sides.virtual_lines import VirtualListener
from fakekafka.wire.kafka.connection import Connection


class Transport:
    """The client's end of a connection, which records what was received and when."""

    def __init__(self, now_ms: Callable[[], float]) -> None:
        self._now_ms = now_ms
        self.arrived: list[tuple[float, bytes]] = []
        self.closed_ms: float | None = None
        self.is_reading = True

    def get_extra_info(self, name: str) -> Any:
        ends = {"sockname": ("127.0.0.1", 9092), "peername": ("127.0.0.1", 50000)}
        return ends.get(name)

    def write(self, data: Any) -> None:
        self.writelines([data])

    def writelines(self, parts: Any) -> None:
        assert self.closed_ms is None
        self.arrived.append((self._now_ms(), b"".join(map(bytes, parts))))

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def close(self) -> None:
        self.closed_ms = self._now_ms()

    abort = close


class VirtualClient:
    """A client of one broker, whose clock starts when it connects."""

    def __init__(self, simulation: Simulation, broker: int = 1) -> None:
        self.simulation = simulation
        self._began_ms = simulation.now_ms
        self.transport = Transport(self.elapsed_ms)
        listener = VirtualListener(simulation, broker)
        self.connection = Connection(cast(Any, listener), listener.service)
        self.connection.connection_made(cast(Any, self.transport))
        self.service = listener.service

    def elapsed_ms(self) -> float:
        return round(self.simulation.now_ms - self._began_ms, 1)

    def send(self, *frames: bytes) -> None:
        data = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
        while data:
            buffer = self.connection.get_buffer(len(data))
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            self.connection.buffer_updated(count)
            data = data[count:]

    @property
    def answers(self) -> list[tuple[float, int]]:
        """Return the time and correlation id of each response."""
        return [
            (time_ms, struct.unpack_from(">i", data, 4)[0])
            for time_ms, data in self.transport.arrived
        ]


def header(key: int, version: int, correlation_id: int) -> bytes:
    return struct.pack(">hhih", key, version, correlation_id, 1) + b"c"


def metadata(correlation_id: int, topics: Sequence[str] = ()) -> bytes:
    """Return a metadata request for topics, which asks to create them."""
    named = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    return header(3, 1, correlation_id) + struct.pack(">i", len(topics)) + named


def api_versions(correlation_id: int) -> bytes:
    return header(18, 0, correlation_id)
