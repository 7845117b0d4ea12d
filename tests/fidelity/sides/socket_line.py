"""A connection over TCP."""

from __future__ import annotations

import select
import socket
import struct

from fakekafka.tests.fidelity.protocol.client import Closed, Line


class SocketLine(Line):
    """A connection to a broker that listens on a socket."""

    def __init__(self, host: str, port: int) -> None:
        try:
            self._socket = socket.create_connection((host, port), timeout=5)
        except OSError as error:
            raise Closed(str(error)) from None

    def send(self, frame: bytes) -> None:
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        except OSError as error:
            raise Closed(str(error)) from None

    def receive(self, timeout_s: float) -> bytes:
        self._socket.settimeout(timeout_s)
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._socket.recv(size - len(data))
            except OSError as error:
                raise Closed(str(error)) from None
            if not part:
                raise Closed("closed by the broker")
            data += part
        return bytes(data)

    def has_come(self) -> bool:
        readable, _, _ = select.select([self._socket], [], [], 0)
        return bool(readable)

    def close(self) -> None:
        self._socket.close()
