"""A listener on 127.0.0.1 with a stub behind it, and a client that writes raw frames."""

from __future__ import annotations

import asyncio
import contextlib
import io
import struct
from collections.abc import Callable
from typing import Any

from fakekafka.protocol.data import RequestContext
from fakekafka.wire.kafka.listener import KafkaListener
from fakekafka.wire.kafka.service import BrokerService
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32


class StubBackend:
    """Records requests and responds with the result of ``answer`` or, without it, on demand."""

    kafka_version = "3.9"

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.contexts: list[RequestContext] = []
        self.responders: list[Callable[[Any], None]] = []
        self.answer: Callable[[Any], Any] | None = None
        self.ids: dict[str, bytes] = {}

    def submit(
        self,
        broker_id: int,
        connection_name: str,
        request: Any,
        context: RequestContext,
        respond: Callable[[Any], None],
    ) -> None:
        self.requests.append(request)
        self.contexts.append(context)
        if self.answer is None:
            self.responders.append(respond)
        else:
            respond(self.answer(request))

    def topic_id(self, broker_id: int, topic: str) -> bytes | None:
        return self.ids.get(topic)

    def topic_name(self, broker_id: int, topic_id: bytes) -> str | None:
        for name, known_id in self.ids.items():
            if known_id == topic_id:
                return name
        return None


class RawClient:
    """A connection on which frames are written and read by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def request(self, key: int, version: int, correlation_id: int, **fields: Any) -> None:
        """Send a request encoded by kio; ``fields`` are those of its entity."""
        self.send(request_frame(key, version, correlation_id, **fields))

    async def frame(self) -> bytes:
        """Return the next response without its size field."""
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def response(self, key: int, version: int) -> tuple[int, Any]:
        """Return the correlation id and kio entity of the next response."""
        return parse_response(key, version, await self.frame())

    async def ended(self) -> bool:
        """Wait for the end of the connection; return True if nothing was received before it."""
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


class Wire:
    """The listener under test with its backend and event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, serves: bool = True, **options: Any
    ) -> None:
        self.loop = loop
        self.backend = StubBackend()
        self.service = BrokerService(loop, 7, self.backend, **options)
        self.listener = KafkaListener(loop, "127.0.0.1", 0, self.service)
        self.clients: list[RawClient] = []
        if serves:
            self.listener.serve()

    async def connect(self) -> RawClient:
        client = RawClient(*await asyncio.open_connection("127.0.0.1", self.listener.port))
        self.clients.append(client)
        return client

    async def until(self, condition: Callable[[], Any]) -> None:
        """Run the event loop until the condition holds."""
        while not condition():
            await asyncio.sleep(0.0005)

    async def stop(self) -> None:
        for client in self.clients:
            await client.close()
        self.listener.close()
        await self.until(lambda: not (self.listener.connections or self.listener._tasks))
        for _ in range(3):
            await asyncio.sleep(0)


MakeWire = Callable[..., Wire]
"""Creates a listener with the given options, which is stopped after the test."""


def request_frame(key: int, version: int, correlation_id: int, **fields: Any) -> bytes:
    """Return a whole request encoded by kio, with size and header."""
    schema = load_request_schema(key, version)
    header = schema.__header_schema__(
        request_api_key=i16(key),
        request_api_version=i16(version),
        correlation_id=i32(correlation_id),
        client_id="raw",
    )
    buffer = io.BytesIO()
    entity_writer(type(header))(buffer, header)
    entity_writer(schema)(buffer, schema(**fields))
    body = buffer.getvalue()
    return struct.pack(">i", len(body)) + body


def parse_response(key: int, version: int, frame: bytes) -> tuple[int, Any]:
    """Return the correlation id and entity of a response, decoded by kio to its last byte."""
    schema = load_response_schema(key, version)
    header, at = entity_reader(schema.__header_schema__)(frame, 0)
    entity, size = entity_reader(schema)(frame, at)
    assert at + size == len(frame)
    return header.correlation_id, entity
