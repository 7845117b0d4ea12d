"""A client connection: reads frames, processes one request at a time, sends responses in order.

Kafka mutes a channel while one of its requests is processed; here later frames wait in a queue,
and reading pauses when the queue is long. Small frames are copied from a receive buffer that all
connections of the listener share, as each uses it only within one callback of the event loop. A
large frame of which only a part has arrived gets a buffer of its own, which the socket then fills
directly, so that usual produce requests are never copied; ``RequestMemory`` decides the size of
that buffer.

A slow link delays frames before they are processed, and answers before they are written. Delays of
several messages overlap, but the broker still processes one request of the connection at a time.

A client that sends malformed data is disconnected, with one line in the log.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
from collections import deque
from collections.abc import Callable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, cast

from ...protocol.awaiting import Disconnected
from ...protocol.data import ProduceRequest, RequestContext
from ...protocol.errors import ClientError, ClosingAnswer, ErrorCode, KafkaError
from ...protocol.security.configuration import ANONYMOUS
from ..accepting import AcceptingListener, cut
from .api import DROPPED, CodecAnswer, SplitRequest
from .backend import Throttled
from .codec import RequestHeader
from .exchange import Exchange, submit_parts
from .messages.varints import Buffer
from .paced_queue import PacedQueue
from .service import BrokerService

if TYPE_CHECKING:
    from .security.authenticator import AuthenticationStep, Authenticator

logger: logging.Logger = logging.getLogger("fakekafka.wire")

_SIZE = Struct(">i")
_unpack_size = _SIZE.unpack_from
_OWN_BUFFER_BYTES_MIN = 4096
"""Size from which an incomplete frame gets a buffer of its own."""
_WAITING_FRAMES_MAX = 64
_WAITING_BYTES_MAX = 4 * 1024 * 1024
_WAITING_FRAME_BYTES = 256  # overhead counted per waiting frame
_OUTGOING_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of answers on their way to the client from which on no request is processed."""
_CONTEXTS_MAX = 64


class Connection(asyncio.BufferedProtocol):
    """The broker's end of one client connection."""

    __slots__ = (
        "_authenticator",
        "_closed",
        "_contexts",
        "_counted_bytes",
        "_ends_when_answered",
        "_exchange",
        "_failure_timer",
        "_frame",
        "_frame_size",
        "_frame_view",
        "_idle_timer",
        "_incoming",
        "_last_active_s",
        "_listener",
        "_loop",
        "_mute_timer",
        "_outgoing",
        "_partial_frame",
        "_peer",
        "_principal",
        "_processing",
        "_reading_paused",
        "_requests",
        "_service",
        "_transport",
        "_waiting",
        "_waiting_bytes",
        "_writing_paused",
        "name",
    )

    def __init__(self, listener: AcceptingListener[Connection], service: BrokerService) -> None:
        self._listener = listener
        self._loop = listener.loop
        self._service = service
        self._transport: asyncio.Transport | None = None
        self.name: str = ""
        """Name in Kafka's format for connections: ``local:port-peer:port-index``."""
        self._peer = "?"
        self._partial_frame = b""  # the beginning of a small frame that is not complete yet
        self._frame: bytearray | None = None
        """The incomplete frame that the socket fills directly; None while there is none."""
        self._frame_size = 0
        """Size of the incomplete frame; its buffer may be smaller, and grow."""
        self._frame_view = memoryview(b"")
        """The part of the frame's buffer that is not filled yet."""
        self._counted_bytes = 0
        """Bytes that the listener's memory counts for this connection."""
        self._incoming: PacedQueue[Buffer] = PacedQueue(listener.loop, self._on_incoming)
        """Frames that the slow link still delays."""
        self._waiting: deque[Buffer] = deque()
        """Frames that have arrived and wait to be processed."""
        self._waiting_bytes = 0
        self._outgoing: PacedQueue[Sequence[Buffer] | None] = PacedQueue(
            listener.loop, self._on_outgoing
        )
        """Answers that the slow link still delays; None closes the connection."""
        self._ends_when_answered = False
        """True if the client has sent EOF: the connection closes once its requests are answered."""
        self._exchange: Exchange | None = None
        """The request in processing, if any."""
        self._processing = False
        self._reading_paused = False
        self._writing_paused = False
        self._closed = False
        self._requests = 0
        self._contexts: dict[tuple[int, str], RequestContext] = {}
        self._last_active_s = 0.0
        self._idle_timer: asyncio.TimerHandle | None = None
        sasl = service.security.sasl
        self._authenticator: Authenticator | None = None
        if sasl is not None:
            from .security.authenticator import Authenticator  # imported only with SASL

            self._authenticator = Authenticator(sasl, service.codec)
        self._principal = ANONYMOUS
        self._mute_timer: asyncio.TimerHandle | None = None
        """Runs while the client is throttled because it used more than its quota."""
        self._failure_timer: asyncio.TimerHandle | None = None
        """Runs while a refused client waits for its answer or for the end of the connection."""

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's.
        self._transport = transport = cast(asyncio.Transport, transport)
        local = _address_text(transport.get_extra_info("sockname"))
        self._peer = _address_text(transport.get_extra_info("peername"))
        self.name = f"{local}-{self._peer}-{self._service.next_connection_index()}"
        transport_socket = transport.get_extra_info("socket")
        if transport_socket is not None:
            transport_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._last_active_s = self._loop.time()
        if not self._listener.on_connection_made(self):
            self.close()
            return
        delay_ms = self._service.connection_delay_ms(self._peer.rpartition(":")[0])
        if delay_ms:
            self._delay_close(transport, delay_ms)
            return
        principal = self._service.security.principal(transport)
        if principal is None:
            self.refuse("no rule of ssl.principal.mapping.rules applies to the certificate")
            return
        self._principal = principal
        self._watch_idleness()
        observer = self._service.observer
        if observer is not None:
            observer.on_connect(self._service.broker_id, self.name)

    def _delay_close(self, transport: asyncio.Transport, delay_ms: int) -> None:
        """Close the connection after a delay, as its address connects too often (KIP-612)."""
        self._closed = True
        transport.pause_reading()
        self._failure_timer = self._loop.call_later(delay_ms / 1000, self.close)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._failure_timer is not None:
            self._failure_timer.cancel()
            self._failure_timer = None
        self._outgoing.clear()
        is_begun = self._frame is not None
        received = (
            len(self._frame) - len(self._frame_view) if self._frame else len(self._partial_frame)
        )
        if not self._closed and (is_begun or received):
            self._listener.log_refusal(
                self._peer, f"the connection ended inside a frame, after {received} bytes of it"
            )
        self._release()
        self._listener.on_connection_lost(self)
        observer = self._service.observer
        if observer is not None:
            observer.on_disconnect(self._service.broker_id, self.name)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is not None:
            return self._frame_view
        receive = self._service.receive_buffer
        if rest := self._partial_frame:
            receive[: len(rest)] = rest
            return receive[len(rest) :]
        return receive

    def buffer_updated(self, nbytes: int) -> None:
        if self._closed:
            return
        self._last_active_s = self._loop.time()
        frame = self._frame
        if frame is not None:
            self._frame_view = self._frame_view[nbytes:]
            if not len(self._frame_view):
                if len(frame) < self._frame_size:
                    self._grow(frame)
                else:
                    self._frame = None
                    self._enqueue(memoryview(frame))
        else:
            self._cut_frames(len(self._partial_frame) + nbytes)
        self._process()

    def eof_received(self) -> bool:
        """Keep the connection open for requests sent before EOF, as Kafka's ``Selector`` does."""
        transport = self._transport
        if transport is None or not (self._incoming or self._waiting):
            return False
        self._ends_when_answered = transport.get_extra_info("sslcontext") is None
        return self._ends_when_answered

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._process()

    # Frames.

    def _cut_frames(self, end: int) -> None:
        """Enqueue the complete frames in the first ``end`` bytes of the receive buffer."""
        receive = self._service.receive_buffer
        start = 0
        while end - start >= 4:
            (size,) = _unpack_size(receive, start)
            if not 0 <= size <= self._service.max_request_bytes:
                self.refuse(
                    f"a frame of {size} bytes; socket.request.max.bytes is "
                    f"{self._service.max_request_bytes}"
                )
                return
            frame_end = start + 4 + size
            if frame_end <= end:
                frame = bytes(receive[start + 4 : frame_end])
                # Copying parts of a small frame is cheaper than creating views.
                self._enqueue(frame if size < _OWN_BUFFER_BYTES_MIN else memoryview(frame))
                start = frame_end
                continue
            if size >= _OWN_BUFFER_BYTES_MIN:
                self._begin_frame(size, receive[start + 4 : end])
                start = end
            break
        self._partial_frame = bytes(receive[start:end]) if start < end else b""

    def _begin_frame(self, size: int, received: memoryview) -> None:
        count = len(received)
        self._frame = frame = bytearray(self._service.memory.buffer_size(size, count))
        self._frame_size = size
        self._frame_view = memoryview(frame)[count:]
        frame[:count] = received

    def _grow(self, full: bytearray) -> None:
        """Move the incomplete frame to a larger buffer."""
        received = len(full)
        self._frame = frame = bytearray(
            self._service.memory.buffer_size(self._frame_size, received)
        )
        frame[:received] = full
        self._frame_view = memoryview(frame)[received:]

    def _enqueue(self, frame: Buffer) -> None:
        link = self._service.link
        delay_s = 0.0 if link is None else link.to_broker_s(len(frame) + _SIZE.size)
        if delay_s > 0 or self._incoming:
            self._incoming.put(frame, len(frame), delay_s)
        else:
            self._waiting.append(frame)
            self._waiting_bytes += len(frame)

    def _on_incoming(self, frame: Buffer) -> None:
        """Process a frame that has arrived over the slow link."""
        self._waiting.append(frame)
        self._waiting_bytes += len(frame)
        self._process()

    def _process(self) -> None:
        """Process waiting frames until a request has to wait for its answer."""
        if self._processing:
            return  # an answer came at once: the loop below continues with the next frame
        self._processing = True
        try:
            while (
                self._waiting
                and self._exchange is None
                and not self._writing_paused
                and self._outgoing.bytes_held < _OUTGOING_BYTES_MAX
                and self._mute_timer is None
            ):
                frame = self._waiting.popleft()
                self._waiting_bytes -= len(frame)
                self._handle(frame)
        finally:
            self._processing = False
        if self._transport is None or self._closed:
            return
        if self._ends_when_answered and not (self._incoming or self._waiting or self._exchange):
            self._close_after_answers()
            return
        if self._waiting or self._incoming or self._frame is not None or self._counted_bytes:
            self._note_memory()
        if self._reading_paused or self._waiting or self._counted_bytes:
            self.update_reading()

    def _bytes_waiting(self) -> int:
        """Return the bytes held by frames that are delayed by the link or wait for processing."""
        count = len(self._waiting) + len(self._incoming)
        return self._waiting_bytes + self._incoming.bytes_held + _WAITING_FRAME_BYTES * count

    def _note_memory(self) -> None:
        held = self._bytes_waiting()
        if self._frame is not None:
            held += len(self._frame)
        if held != self._counted_bytes:
            self._counted_bytes = held
            self._service.memory.note(self, held)

    def update_reading(self) -> None:
        """Resume reading, or pause it if too much waits here or in all connections together."""
        transport = self._transport
        if transport is None or self._closed:
            return
        if (
            len(self._waiting) > _WAITING_FRAMES_MAX
            or self._bytes_waiting() > _WAITING_BYTES_MAX
            or (self._counted_bytes and not self._service.memory.may_read(self))
        ) != self._reading_paused:
            self._reading_paused = not self._reading_paused
            if self._reading_paused:
                transport.pause_reading()
            else:
                transport.resume_reading()

    # Requests and responses.

    def _handle(self, frame: Buffer) -> None:
        if self._authenticator is not None and self._authenticated(self._authenticator, frame):
            return
        service, codec = self._service, self._service.codec
        try:
            header = codec.parse_header(frame)
            request = codec.decode(header.api_key, header.api_version, frame[header.body_offset :])
        except ClientError as malformed:
            self.refuse(str(malformed))
            return
        self._requests += 1
        if service.observer is not None:
            service.observer.on_request(self.name, header, request)
        if request is DROPPED:
            return
        exchange = self._exchange = Exchange(self, header, request)
        if isinstance(request, CodecAnswer):
            exchange.respond(request.response)
            return
        context = self._context(header)
        try:
            if isinstance(request, SplitRequest):
                self._submit_parts(request, context, exchange)
            else:
                service.backend.submit(
                    service.broker_id, self.name, request, context, exchange.respond
                )
        except Exception as error:
            exchange.respond(error)

    def _authenticated(self, authenticator: Authenticator, frame: Buffer) -> bool:
        """Return whether the frame was part of the client's authentication."""
        step = authenticator.receive(frame)
        if step is None:
            return False
        transport = self._transport
        self._requests += 1
        if transport is None:
            return True
        if step.failure is not None:
            self._fail_authentication(transport, step)
            return True
        self._write(transport, step.answer)
        if authenticator.principal is not None:
            self._principal = authenticator.principal
            self._contexts.clear()
        return True

    def _fail_authentication(self, transport: asyncio.Transport, step: AuthenticationStep) -> None:
        """Refuse a client that failed to authenticate, after a delay that slows its retries."""
        self._listener.log_refusal(self._peer, f"failed authentication: {step.failure}")
        self._closed = True
        self._release()
        sasl = self._service.security.sasl
        delay_ms = sasl.failure_delay_ms if sasl is not None and step.is_delayed else 0

        def end() -> None:
            self._failure_timer = None
            if step.answer:
                self._write(transport, step.answer)
            self._close_transport_after_answers(transport)

        if not delay_ms:
            end()
            return
        transport.pause_reading()
        self._failure_timer = self._loop.call_later(delay_ms / 1000, end)

    def _submit_parts(
        self, split: SplitRequest, context: RequestContext, exchange: Exchange
    ) -> None:
        service, name = self._service, self.name

        def submit(request: Any, respond: Callable[[Any], None]) -> None:
            service.backend.submit(service.broker_id, name, request, context, respond)

        submit_parts(split, exchange, submit, self._loop)

    def on_response(self, exchange: Exchange, response: Any) -> None:
        """Send the answer to the request in processing; ignore one to any other request."""
        if self._exchange is not exchange:
            return
        self._exchange = None
        if isinstance(response, BaseException):
            if isinstance(response, ClosingAnswer):
                self._send(exchange, response.response, 0)
                self._close_after_answers()
            else:
                self._close_on_error(response)
            return
        if type(response) is not Throttled:
            self._answer(exchange, response, 0)
        elif response.is_held_back:
            answer_late = functools.partial(self._answer_late, exchange, response)
            self._mute(response.throttle_ms, answer_late)
        else:
            self._mute(response.throttle_ms, self._unmute)
            self._answer(exchange, response.response, response.throttle_ms)

    def _answer_late(self, exchange: Exchange, throttled: Throttled) -> None:
        """Send an answer that was held back."""
        self._mute_timer = None
        self._answer(exchange, throttled.response, throttled.throttle_ms)

    def _answer(self, exchange: Exchange, response: Any, throttle_ms: int) -> None:
        request = exchange.request
        service = self._service
        if service.observer is not None:
            header = exchange.header
            service.observer.on_response(service.broker_id, self.name, header, request, response)
        if isinstance(request, ProduceRequest) and request.acks == 0:
            if any(result.error is not ErrorCode.NONE for result in response.partitions):
                # The only way to make a client without acknowledgements refresh its metadata.
                logger.debug("%s: a produce request with acks=0 failed", self.name)
                self.close()
                return
        else:
            self._send(exchange, response, throttle_ms)
        self._process()

    def _mute(self, throttle_ms: int, end: Callable[[], None]) -> None:
        """Process no request for ``throttle_ms`` milliseconds, then call ``end``."""
        if self._mute_timer is not None:
            self._mute_timer.cancel()
        self._mute_timer = self._loop.call_later(throttle_ms / 1000, end)

    def _unmute(self) -> None:
        self._mute_timer = None
        self._process()

    def _send(self, exchange: Exchange, response: Any, throttle_ms: int) -> None:
        header = exchange.header
        try:
            parts = self._service.codec.encode_frame(
                header.api_key,
                header.api_version,
                header.correlation_id,
                response,
                exchange.request,
                throttle_ms,
            )
        except Exception as error:
            self._close_on_error(error)
            return
        transport = self._transport
        if transport is None:
            return
        self._last_active_s = self._loop.time()
        self._write(transport, parts)

    def _write(self, transport: asyncio.Transport, parts: Sequence[Buffer]) -> None:
        """Send an answer to the client, delayed by the slow link if there is one."""
        link = self._service.link
        size = sum(map(len, parts)) if link is not None else 0
        delay_s = 0.0 if link is None else link.to_client_s(size)
        if delay_s > 0 or self._outgoing:
            self._outgoing.put(parts, size, delay_s)
        elif len(parts) == 1:
            transport.write(parts[0])
        else:
            transport.writelines(parts)

    def _on_outgoing(self, parts: Sequence[Buffer] | None) -> None:
        """Write an answer that has passed the slow link, or close the connection for None."""
        transport = self._transport
        if transport is None:
            return
        if parts is None:
            transport.close()
            return
        transport.writelines(parts)
        self._process()

    def _close_transport_after_answers(self, transport: asyncio.Transport) -> None:
        """Close the connection once the answers written before have passed the slow link."""
        if self._outgoing:
            self._outgoing.put(None, 0, 0.0)
        else:
            transport.close()

    def _context(self, header: RequestHeader) -> RequestContext:
        key = (header.api_version, header.client_id)
        context = self._contexts.get(key)
        if context is None:
            if len(self._contexts) >= _CONTEXTS_MAX:
                self._contexts.clear()
            context = self._contexts[key] = RequestContext(
                client_id=header.client_id,
                api_version=header.api_version,
                listener=self._service.listener_name,
                principal=self._principal,
                security_protocol=self._service.security.protocol,
                client_host=self._peer.rpartition(":")[0],
                is_token_authenticated=(
                    self._authenticator is not None and self._authenticator.is_token_authenticated
                ),
            )
        return context

    # The end.

    def close(self) -> None:
        """Close at once, without logging; a request in processing stays unanswered."""
        if self._failure_timer is not None:
            self._failure_timer.cancel()
            self._failure_timer = None
        elif self._closed:
            return
        self._closed = True
        self._release()
        self._outgoing.clear()
        if self._transport is not None:
            cut(self._transport)

    def _close_after_answers(self) -> None:
        """Close the connection once all answers written before have been sent."""
        self._closed = True
        self._release()
        if self._transport is not None:
            self._close_transport_after_answers(self._transport)

    def refuse(self, reason: str) -> None:
        """Close the connection and log the reason."""
        if not self._closed:
            self._listener.log_refusal(self._peer, reason)
            self.close()

    def _close_on_error(self, error: BaseException) -> None:
        if isinstance(error, KafkaError | Disconnected):
            logger.debug("%s: closed the connection instead of answering: %s", self.name, error)
        else:
            self._listener.bounded_log.log(
                logging.ERROR, "%s: the request failed", self.name, exc_info=error
            )
        self.close()

    def _release(self) -> None:
        """Drop all that the connection holds: frames, the request in processing, timers."""
        self._exchange = None
        self._incoming.clear()
        self._waiting.clear()
        self._waiting_bytes = 0
        self._frame = None
        self._partial_frame = b""
        if self._counted_bytes:
            self._counted_bytes = 0
            self._service.memory.note(self, 0)
        for timer in (self._idle_timer, self._mute_timer):
            if timer is not None:
                timer.cancel()
        self._idle_timer = self._mute_timer = None

    def _watch_idleness(self) -> None:
        """Close after ``connections.max.idle.ms`` without traffic; no timer is set per frame."""
        loop = self._loop
        idle_max_s = self._service.idle_ms / 1000
        if idle_max_s <= 0:
            return
        idle_s = loop.time() - self._last_active_s
        if idle_s >= idle_max_s and self._exchange is None:
            if self._partial_frame or self._frame is not None or not self._requests:
                self.refuse(f"no complete request within {self._service.idle_ms} ms")
            else:
                logger.debug("%s: idle for %d ms, closed", self.name, self._service.idle_ms)
                self.close()
            return
        remaining_s = idle_max_s - idle_s if idle_s < idle_max_s else idle_max_s
        self._idle_timer = loop.call_later(remaining_s, self._watch_idleness)


def _address_text(address: Any) -> str:
    if isinstance(address, tuple) and len(address) >= 2:
        return f"{address[0]}:{address[1]}"
    return str(address or "?")
