"""A client connection of a ZooKeeper server: jute frames in and out.

The connection talks to its server through a *link*: it sends requests as messages of ``zkfake``,
and the server's messages come back to ``on_message``. Packets are numbered per direction, so that a
message lost by the network ends the connection, as a lost segment would for TCP. Answers are sent
in the order of the requests, including those that are answered without the server.

A lost connection does not end the session: only ``closeSession`` or its timeout does.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from struct import Struct
from typing import Any, cast

from ...protocol.errors import ClientError, invariant
from ...zkfake.messages import (
    AuthFailed,
    ClientPacket,
    ConnectionClosed,
    ConnectRequest,
    ConnectResponse,
    Ping,
    ServerPacket,
    WatchEvent,
    ZkCode,
)
from ..accepting import AcceptingListener, cut
from .jute import AUTH, AUTH_XID, PING, Call, Connect
from .jute_answers import encode_connected, encode_event, encode_reply, encode_response
from .port import ZooKeeperPort
from .service import ZooKeeperService

logger: logging.Logger = logging.getLogger("fakekafka.wire")

_SIZE = Struct(">i")
_PING_XID = -2
_CALLS_MAX = 1000
"""Number of unanswered calls at which no more are read."""


class ZooKeeperConnection(asyncio.Protocol):
    """The server's end of one client connection."""

    def __init__(
        self, listener: AcceptingListener[ZooKeeperConnection], service: ZooKeeperService
    ) -> None:
        self._listener = listener
        self._service = service
        self._transport: asyncio.Transport | None = None
        self._link: ZooKeeperPort | None = None
        """Port to the server; None before the connection is made and after it has ended."""
        self._peer = "?"
        self._frames = bytearray()
        """Bytes received but not processed yet."""
        self._connect: Connect | None = None
        self._connect_timer: asyncio.TimerHandle | None = None
        self._is_connected = False
        """True if the server has accepted the session, so that calls may be sent."""
        self._is_over = False
        """True if nothing is read or written any more; the transport may still be closing."""
        self._is_processing = False
        self._calls: deque[Call] = deque()
        """Unanswered calls, oldest first; the first one always waits for the server."""
        self._session_id = 0
        self._sent = 0
        self._received = 0
        """Numbers of packets sent to the server and received from it."""
        self._zxid = 0
        """Last zxid that the client was sent."""
        self._reading_paused = False
        self._writing_paused = False

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's.
        self._transport = transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._peer = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "?"
        transport_socket = transport.get_extra_info("socket")
        if transport_socket is not None:
            transport_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener = self._listener
        if not listener.on_connection_made(self):
            self.close()
            return
        service = self._service
        self._link = service.open(service.server_id, self.on_message, self.close)
        if self._link is None:
            self.close()
            return
        self._connect_timer = listener.loop.call_later(
            service.connect_timeout_ms / 1000, self._on_connect_timeout
        )

    def data_received(self, data: bytes) -> None:
        if not self._is_over:
            self._frames += data
            self._process()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_over and self._frames:
            self._log_refusal(
                f"the connection ended inside a frame, after {len(self._frames)} bytes of it"
            )
        self._transport = None
        self._finish()
        self._listener.on_connection_lost(self)

    def pause_writing(self) -> None:
        self._writing_paused = True
        self.update_reading()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._process()

    # Messages of the client.

    def _process(self) -> None:
        """Process the complete frames, as far as limits allow."""
        if self._is_processing:
            return  # an answer came at once: the loop below continues with the next frame
        self._is_processing = True
        try:
            while self._is_ready() and (frame := self._next_frame()) is not None:
                if self._connect is None:
                    self._on_connect(Connect(frame))
                else:
                    self._on_call(Call(frame))
        except ClientError as error:
            self.refuse(str(error))
        finally:
            self._is_processing = False
        if not self._is_over:
            self._service.memory.note(self, len(self._frames))
        self.update_reading()

    def _is_ready(self) -> bool:
        if self._is_over or self._writing_paused or len(self._calls) >= _CALLS_MAX:
            return False
        return self._is_connected or self._connect is None

    def _next_frame(self) -> bytes | None:
        frames = self._frames
        if len(frames) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(frames)
        if not 0 <= size <= self._service.max_packet_bytes:
            raise ClientError(
                f"a frame of {size} bytes; jute.maxbuffer is {self._service.max_packet_bytes}"
            )
        end = _SIZE.size + size
        if len(frames) < end:
            return None
        frame = bytes(frames[_SIZE.size : end])
        del frames[:end]
        return frame

    def update_reading(self) -> None:
        """Resume reading, or pause it if too much waits here or in all connections together."""
        transport = self._transport
        if transport is None or self._is_over:
            return
        has_enough = len(self._frames) > self._service.max_packet_bytes + _SIZE.size
        should_pause = (
            has_enough
            or self._writing_paused
            or len(self._calls) >= _CALLS_MAX
            or not self._service.memory.may_read(self)
        )
        if should_pause != self._reading_paused:
            self._reading_paused = should_pause
            if should_pause:
                transport.pause_reading()
            else:
                transport.resume_reading()

    def _on_connect(self, connect: Connect) -> None:
        self._connect = connect
        link = self._link
        assert link is not None
        if not connect.is_authentic:
            self._reject_session(connect)
            return
        link.send(
            ConnectRequest(
                link.connection_id,
                connect.session_id,
                connect.session_timeout_ms,
                connect.last_zxid_seen,
            )
        )

    def _on_call(self, call: Call) -> None:
        if call.opcode == PING:
            self._send_ping()
        elif call.request is not None:
            self._calls.append(call)
            self._send_call(call)
        else:
            self._calls.append(call)
            self._answer_local_calls()

    def _send_call(self, call: Call) -> None:
        link = self._link
        assert link is not None
        number = self._sent
        self._sent = number + 1
        link.send(
            ClientPacket(link.connection_id, number, self._session_id, call.xid, call.request)
        )

    def _send_ping(self) -> None:
        link = self._link
        assert link is not None
        number = self._sent
        self._sent = number + 1
        link.send(Ping(link.connection_id, number, self._session_id))

    def _answer_local_calls(self) -> None:
        """Answer calls that need no server, once all calls before them are answered."""
        calls = self._calls
        while calls and calls[0].request is None:
            call = calls.popleft()
            self._write(encode_reply(call.xid, self._zxid, call.code))
            if call.opcode == AUTH and call.code:
                self.refuse("unknown authentication scheme", flush=True)
                return

    # Messages of the server.

    def on_message(self, message: Any) -> None:
        """Handle a message of the server; ignore one for another connection."""
        link = self._link
        if link is None or message.connection_id != link.connection_id:
            return
        if isinstance(message, ServerPacket | WatchEvent | Ping):
            if message.number != self._received:
                self.close()  # a message before this one was lost
                return
            self._received += 1
            self._on_packet(message)
        elif isinstance(message, ConnectResponse):
            self._on_connected(message)
        elif isinstance(message, AuthFailed):
            self._write(encode_reply(AUTH_XID, self._zxid, ZkCode.AUTHFAILED))
            self._finish(flush=True)
        elif isinstance(message, ConnectionClosed):
            self._finish(flush=True)

    def _on_packet(self, packet: ServerPacket | WatchEvent | Ping) -> None:
        if isinstance(packet, WatchEvent):
            self._write(encode_event(packet.type, packet.path))
        elif isinstance(packet, Ping):
            self._write(encode_reply(_PING_XID, self._zxid, 0))
        else:
            calls = self._calls
            invariant(calls and calls[0].xid == packet.xid, "answers come in the order of calls")
            self._zxid = max(self._zxid, packet.response.zxid)
            self._write(encode_response(calls.popleft(), packet.response))
            self._answer_local_calls()
            if self._frames or self._reading_paused:
                self._process()

    def _on_connected(self, response: ConnectResponse) -> None:
        connect = self._connect
        assert connect is not None
        if response.session_id == 0:
            self._reject_session(connect)
            return
        self._cancel_connect_timer()
        self._session_id = response.session_id
        self._zxid = connect.last_zxid_seen
        self._is_connected = True
        self._write(encode_connected(connect, response.session_id, response.session_timeout_ms))
        self._process()

    def _reject_session(self, connect: Connect) -> None:
        """Answer that the requested session has expired, and close the connection."""
        self._write(encode_connected(connect, 0, 0))
        self._finish(flush=True)

    def _write(self, frame: bytes) -> None:
        if self._transport is not None and not self._is_over:
            self._transport.write(frame)

    # The end.

    def close(self) -> None:
        """Close the connection at once, without logging."""
        self._finish()

    def _on_connect_timeout(self) -> None:
        self._connect_timer = None
        timeout_ms = self._service.connect_timeout_ms
        if self._connect is None:
            self.refuse(f"no connect request within {timeout_ms} ms")
        else:
            logger.debug("%s: no session within %d ms, closed", self._peer, timeout_ms)
            self.close()

    def refuse(self, reason: str, *, flush: bool = False) -> None:
        """Close the connection and log the reason."""
        if not self._is_over:
            self._log_refusal(reason)
            self._finish(flush=flush)

    def _log_refusal(self, reason: str) -> None:
        self._listener.log_refusal(self._peer, reason)

    def _finish(self, *, flush: bool = False) -> None:
        """End the connection; with ``flush``, after the data written has been sent."""
        if not self._is_over:
            self._is_over = True
            self._cancel_connect_timer()
            self._frames.clear()
            self._service.memory.note(self, 0)
            self._calls.clear()
            if self._link is not None:
                self._link.close()
                self._link = None
        if self._transport is not None:
            if flush:
                self._transport.close()
            else:
                cut(self._transport)

    def _cancel_connect_timer(self) -> None:
        if self._connect_timer is not None:
            self._connect_timer.cancel()
            self._connect_timer = None
