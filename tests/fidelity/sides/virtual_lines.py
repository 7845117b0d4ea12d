"""Connections into a simulation: the code that serves sockets, without sockets, in virtual time.

A frame passes through the same ``Connection``, codec and gateway as a frame over TCP, so a scenario
on a simulation gets the responses that a client of a cluster would get.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, cast

from fakekafka.actors.runtime.virtual import VirtualRuntime
from fakekafka.testing.simulation import Simulation
from fakekafka.tests.fidelity.protocol.client import Closed, Line
from fakekafka.wire.kafka.connection import Connection
from fakekafka.wire.kafka.gateway import TcpLink
from fakekafka.wire.kafka.service import BrokerService
from fakekafka.wire.kafka.tcp_listener import TcpGateway

_PEER = ("127.0.0.1", 50000)
_LOCAL = ("127.0.0.1", 9092)


class _VirtualHandle:
    """The handle that ``call_later`` gives."""

    def __init__(self, runtime: VirtualRuntime, delay_s: float, function: Any) -> None:
        self._timer = runtime.call_later(None, max(1, int(delay_s * 1_000_000)), function)

    def cancel(self) -> None:
        self._timer.cancel()


class VirtualLoop:
    """The part of an event loop that connections use, on the clock of a simulation."""

    def __init__(self, runtime: VirtualRuntime) -> None:
        self._runtime = runtime

    def time(self) -> float:
        return self._runtime.now_us() / 1_000_000

    def call_later(
        self, delay_s: float, function: Callable[..., object], *arguments: Any
    ) -> _VirtualHandle:
        return _VirtualHandle(self._runtime, delay_s, lambda: function(*arguments))

    def call_at(
        self, time_s: float, function: Callable[..., object], *arguments: Any
    ) -> _VirtualHandle:
        return self.call_later(time_s - self.time(), function, *arguments)

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> _VirtualHandle:
        return self.call_later(0, function, *arguments)


class _NoLog:
    """Discards a listener's messages about clients, and raises failures of the emulation."""

    def log(
        self, level: int, text: str, *arguments: object, exc_info: BaseException | None = None
    ) -> None:
        if exc_info is not None:
            raise exc_info


class VirtualListener:
    """The listener of one broker."""

    def __init__(self, simulation: Simulation, broker: int) -> None:
        runtime = simulation.runtime
        self.loop = VirtualLoop(runtime)
        self.bounded_log = _NoLog()
        self.refusals: list[str] = []
        gateway = TcpGateway(cast(Any, runtime), simulation.kafka_version)
        self.service = BrokerService(
            cast(Any, self.loop), broker, gateway, idle_ms=0, link=TcpLink(runtime.network, broker)
        )

    def log_refusal(self, peer: str, reason: str) -> None:
        self.refusals.append(reason)

    def on_connection_made(self, connection: Connection) -> bool:
        return True

    def on_connection_lost(self, connection: Connection) -> None:
        """Do nothing, as the listener keeps no connections."""


class _Transport:
    """The client's end of a connection, which keeps the bytes that the broker writes."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.is_open = True

    def get_extra_info(self, name: str) -> Any:
        return {"sockname": _LOCAL, "peername": _PEER}.get(name)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def writelines(self, parts: list[Any]) -> None:
        for part in parts:
            self.written += part

    def pause_reading(self) -> None:
        """Do nothing, as the scenario itself delivers each frame."""

    def resume_reading(self) -> None:
        """Do nothing, as no frame is waiting."""

    def close(self) -> None:
        self.is_open = False

    abort = close


class VirtualLine(Line):
    """A connection of a scenario to a broker of a simulation."""

    def __init__(self, simulation: Simulation, listener: VirtualListener, broker: int) -> None:
        self._simulation = simulation
        self._process = simulation.processes[broker]
        self._incarnation = self._process.broker
        self._transport = _Transport()
        self._connection = Connection(cast(Any, listener), listener.service)
        self._connection.connection_made(cast(Any, self._transport))

    def send(self, frame: bytes) -> None:
        if not self._is_alive():
            raise Closed("the broker is gone")
        data = struct.pack(">i", len(frame)) + frame
        while data:
            buffer = self._connection.get_buffer(len(data))
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            self._connection.buffer_updated(count)
            data = data[count:]

    def has_come(self) -> bool:
        return self._frame_size() is not None or not self._is_alive()

    def receive(self, timeout_s: float) -> bytes:
        written = self._transport.written
        if not self.has_come():
            try:
                self._simulation.run_until(self.has_come, timeout_s * 1000)
            except TimeoutError:
                raise Closed("no answer in time") from None
        size = self._frame_size()
        if size is None:
            raise Closed("closed by the broker")
        frame = bytes(written[4 : 4 + size])
        del written[: 4 + size]
        return frame

    def _frame_size(self) -> int | None:
        """Return the size of the next frame if it has arrived whole."""
        written = self._transport.written
        if len(written) < 4:
            return None
        (size,) = struct.unpack_from(">i", written)
        return size if len(written) >= 4 + size else None

    def _is_alive(self) -> bool:
        return (
            self._transport.is_open
            and self._process.is_alive
            and self._process.broker is self._incarnation
        )

    def close(self) -> None:
        self._transport.is_open = False
        self._connection.connection_lost(None)
