"""asyncio transports over one end of a simulated connection."""

from __future__ import annotations

import asyncio
import socket
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .errors import refuse

if TYPE_CHECKING:
    from .loop import SimulatedLoop
    from .tcp import Address, ConnectionEnd

_READ_BYTES_MAX = 256 * 1024
_HIGH_WATER_BYTES = 64 * 1024


class SocketOfTransport:
    """The object returned by ``get_extra_info("socket")``, with addresses and options."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto: int = socket.IPPROTO_TCP

    def __init__(self, name: Address, peer_name: Address | None = None) -> None:
        self._name = name
        self._peer_name = peer_name
        self._options: dict[tuple[int, int], Any] = {}

    def __repr__(self) -> str:
        return f"<simulated socket {self._name} to {self._peer_name}>"

    def getsockname(self) -> Address:
        return self._name

    def getpeername(self) -> Address:
        if self._peer_name is None:
            raise OSError(107, "Transport endpoint is not connected")
        return self._peer_name

    def setsockopt(self, level: int, option: int, value: Any, length: int | None = None) -> None:
        self._options[level, option] = value

    def getsockopt(self, level: int, option: int, length: int = 0) -> Any:
        return self._options.get((level, option), 0)

    def fileno(self) -> int:
        return -1

    def gettimeout(self) -> float:
        return 0.0


class SimulatedSocket(SocketOfTransport):
    """A program's ``socket.socket``, for ``loop.sock_connect`` and ``create_connection``.

    Some clients, such as aiohttp's, create sockets themselves to choose among addresses.
    """

    def __init__(self, program: str) -> None:
        super().__init__(("0.0.0.0", 0))
        self._program = program
        self.end: ConnectionEnd | None = None
        """Set once connected, until a transport takes over the end."""

    def connected(self, end: ConnectionEnd) -> None:
        """Store the end of the new connection."""
        self.end, self._name, self._peer_name = end, end.name, end.peer_name

    def setblocking(self, flag: bool) -> None:
        if flag:
            self._refuse("a socket that blocks")

    def settimeout(self, value: float | None) -> None:
        if value != 0:
            self._refuse("a socket that blocks")

    def bind(self, address: Address) -> None:
        self._name = address

    def close(self) -> None:
        if self.end is not None:
            self.end.close()
            self.end = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._refuse(f"`{name}` of a socket")

    def _refuse(self, what: str) -> None:
        refuse(
            self._program,
            f"uses {what}",
            "use asyncio.open_connection, asyncio.start_server or loop.create_connection",
        )


class StreamTransport(asyncio.Transport):
    """A TCP transport. It calls its protocol in turns of the loop, as asyncio's does."""

    __deletable__: tuple[str, ...] = ("_end",)

    def __init__(
        self,
        loop: SimulatedLoop,
        end: ConnectionEnd,
        protocol: asyncio.BaseProtocol,
        *,
        has_socket: bool = True,
        lost_callback: Callable[[StreamTransport], object] | None = None,
    ) -> None:
        extra: dict[str, Any] = {"sockname": end.name, "peername": end.peer_name}
        if has_socket:
            extra["socket"] = SocketOfTransport(end.name, end.peer_name)
        super().__init__(extra)
        self._loop = loop
        self._end = end
        self._protocol = protocol
        self._lost_callback = lost_callback
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)
        self._is_closing = False
        self._is_lost = False
        self._is_reading = False
        self._is_read_due = False
        self._is_eof_delivered = False
        self._is_ended = False
        self._is_writing_paused = False
        self._high_bytes = _HIGH_WATER_BYTES
        self._low_bytes = _HIGH_WATER_BYTES // 4
        end.transport = self

    def __repr__(self) -> str:
        state = "closed" if self._is_lost else "closing" if self._is_closing else "open"
        return f"<simulated transport {self._end.name} to {self._end.peer_name}, {state}>"

    def begin(self) -> None:
        """Notify the protocol of the connection, and start reading."""
        self._protocol.connection_made(self)
        if not self._is_closing:
            self.resume_reading()

    # -- the protocol --------------------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    # -- reading -------------------------------------------------------------------------------

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        if self._is_closing or self._is_reading:
            return
        self._is_reading = True
        if self._end.has_data or self._end.has_peer_ended:
            self.on_readable()

    def on_readable(self) -> None:
        """Schedule a read of the received bytes."""
        if self._is_reading and not self._is_read_due:
            if self._loop.reads_at_once:
                self._read()
            else:
                self._is_read_due = True
                self._loop.call_soon(self._read)

    def _read(self) -> None:
        self._is_read_due = False
        end = self._end
        while self._is_reading and not self._is_closing and end.has_data:
            try:
                self._deliver_data()
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self._fail(error, "protocol.data_received() raised")
                return
        if (
            self._is_reading
            and not self._is_closing
            and end.has_peer_ended
            and not self._is_eof_delivered
        ):
            self._is_eof_delivered = True
            self._deliver_eof()

    def _deliver_data(self) -> None:
        end, protocol = self._end, self._protocol
        if not self._is_buffered:
            protocol.data_received(end.read(_READ_BYTES_MAX))  # type: ignore[attr-defined]
            return
        buffer = protocol.get_buffer(-1)  # type: ignore[attr-defined]
        if not len(buffer):
            raise RuntimeError("get_buffer() returned an empty buffer")
        data = end.read(len(buffer))
        buffer[: len(data)] = data
        protocol.buffer_updated(len(data))  # type: ignore[attr-defined]

    def _deliver_eof(self) -> None:
        try:
            keeps_open = self._protocol.eof_received()  # type: ignore[attr-defined]
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._fail(error, "protocol.eof_received() raised")
            return
        if not keeps_open:
            self.close()

    def _fail(self, error: BaseException, what: str) -> None:
        """Report an unexpected error of the protocol, and close the connection."""
        self._loop.call_exception_handler(
            {
                "message": f"Fatal error: {what}",
                "exception": error,
                "transport": self,
                "protocol": self._protocol,
            }
        )
        self._end.reset()
        self._close_with_error(error if isinstance(error, Exception) else None)

    # -- writing -------------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"data argument must be a bytes-like object, not {type(data).__name__!r}"
            )
        if self._is_ended:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._is_closing or not data:
            return
        if self._loop.acts is not None:
            self._record_write(bytes(data))
        self._end.send(bytes(data))
        if self._end.unsent_bytes > self._high_bytes and not self._is_writing_paused:
            self._is_writing_paused = True
            self._call(self._protocol.pause_writing)

    def _record_write(self, data: bytes) -> None:
        port = self._end.peer_name[1]
        peer = f"{self._end.peer_machine.name}:{port}"
        if isinstance(self._protocol, SSLProtocol):  # OpenSSL draws its own random numbers
            self._loop.record_act(f"sends by TLS to {peer}")
        else:
            self._loop.record_act(f"sends {len(data)} bytes to {peer}", data)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._is_ended and not self._is_closing:
            self._is_ended = True
            self._end.end()

    def on_writable(self) -> None:
        """Resume the protocol's writing if enough waiting bytes were sent."""
        self._loop.call_soon(self._resume_writing)

    def _resume_writing(self) -> None:
        if self._is_writing_paused and self._end.unsent_bytes <= self._low_bytes:
            self._is_writing_paused = False
            self._call(self._protocol.resume_writing)
        if self._is_closing and not self._is_lost and not self._end.unsent_bytes:
            self._call_connection_lost(None)

    def _call(self, function: Any) -> None:
        try:
            function()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._loop.call_exception_handler(
                {
                    "message": f"protocol.{function.__name__}() failed",
                    "exception": error,
                    "transport": self,
                    "protocol": self._protocol,
                }
            )

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = _HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high_bytes, self._low_bytes = high, low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low_bytes, self._high_bytes

    def get_write_buffer_size(self) -> int:
        return self._end.unsent_bytes

    # -- the end -------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if self._is_closing:
            return
        if self._loop.acts is not None:
            self._loop.record_act("closes a connection")
        self._is_closing = True
        self._is_reading = False
        self._end.close()
        if not self._end.unsent_bytes:
            self._loop.call_soon(self._call_connection_lost, None)

    def abort(self) -> None:
        self._end.reset()
        self._close_with_error(None)

    def _force_close(self, error: Exception | None) -> None:
        """Abort because of an error; asyncio's TLS protocol calls this method."""
        self._end.reset()
        self._close_with_error(error)

    def detach(self) -> None:
        """Drop the connection, because the program is dead."""
        self._is_closing = True
        del self._end

    def on_lost(self, error: OSError) -> None:
        """Report the loss of the connection: reset by the peer, or given up."""
        if not self._loop.is_closed():
            self._close_with_error(error)

    def _close_with_error(self, error: Exception | None) -> None:
        self._is_closing = True
        self._is_reading = False
        self._loop.call_soon(self._call_connection_lost, error)

    def _call_connection_lost(self, error: Exception | None) -> None:
        if not self._is_lost:
            self._is_lost = True
            try:
                self._protocol.connection_lost(error)
            finally:
                if self._lost_callback is not None:
                    self._lost_callback(self)
