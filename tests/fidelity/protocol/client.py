"""A raw client: one request at a time, without retries, with error codes as received."""

from __future__ import annotations

import abc
import struct
from collections.abc import Mapping
from typing import Any

from fakekafka.tests.fidelity.protocol.encoding import KEYS, decode, encode
from fakekafka.tests.support.wire_trees import header

CLIENT_ID = "judge"
_TIMEOUT_S = 20.0


class Closed(Exception):
    """The broker closed the connection, refused it, or does not answer."""


class Line(abc.ABC):
    """A connection that sends and receives frames, which are passed without their size."""

    @abc.abstractmethod
    def send(self, frame: bytes) -> None:
        """Send one frame; raise ``Closed`` if the connection is closed."""

    @abc.abstractmethod
    def receive(self, timeout_s: float) -> bytes:
        """Wait for the next frame; raise ``Closed`` if none arrives."""

    @abc.abstractmethod
    def has_come(self) -> bool:
        """Return True if ``receive`` would return, or raise ``Closed``, without waiting."""

    @abc.abstractmethod
    def close(self) -> None: ...


class Client:
    """A connection to a broker."""

    def __init__(self, line: Line, client_id: str = CLIENT_ID) -> None:
        self._line = line
        self._client_id = client_id
        self._correlation_id = 0
        self._expected: list[tuple[int, int]] = []

    def send(self, api: str, version: int, fields: Mapping[str, Any]) -> None:
        """Send a request without waiting for its response."""
        key = KEYS[api]
        self.send_body(key, version, encode(key, version, fields))

    def send_body(self, key: int, version: int, body: bytes) -> None:
        """Send a request with an encoded body, which may be invalid."""
        self._correlation_id += 1
        start = header(key, version, self._correlation_id, self._client_id)
        self._line.send(start + body)
        self._expected.append((key, version))

    def receive_bytes(self, timeout_s: float = _TIMEOUT_S) -> bytes:
        """Return the bytes of the next response after its correlation id."""
        frame = self._line.receive(timeout_s)
        (correlation_id,) = struct.unpack_from(">i", frame)
        wanted = self._correlation_id - len(self._expected) + 1
        if correlation_id != wanted:
            raise Closed(f"response {correlation_id} came instead of {wanted}")
        return frame[4:]

    def receive(self, timeout_s: float = _TIMEOUT_S) -> dict[str, Any]:
        """Return the tree of the next response."""
        data = self.receive_bytes(timeout_s)
        key, version = self._expected.pop(0)
        return decode(key, version, data)

    def has_answer(self) -> bool:
        """Return True if ``receive`` need not wait."""
        return self._line.has_come()

    def ask(
        self, api: str, version: int, fields: Mapping[str, Any], timeout_s: float = _TIMEOUT_S
    ) -> dict[str, Any]:
        """Send a request and wait for its response."""
        self.send(api, version, fields)
        return self.receive(timeout_s)

    def close(self) -> None:
        self._line.close()
