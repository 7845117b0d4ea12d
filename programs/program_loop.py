"""The event loop of a program: streams and servers on the simulated network, executors."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl as tls
import sys
from asyncio import sslproto
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .calls import ReadyCall, TimedCall
from .errors import refuse
from .loop import AsyncGenerators, SimulatedLoop
from .tcp import Address, ConnectionEnd, Machine
from .transport import SimulatedSocket, SocketOfTransport, StreamTransport
from .watchdog import Stuck, watchdog

if TYPE_CHECKING:
    from .acts import Acts
    from .running import RunningProgram

_HANDSHAKE_TIMEOUT_S = 60.0
_SHUTDOWN_TIMEOUT_S = 30.0


class Server(asyncio.AbstractServer):
    """A program's server, which listens on ports of its machine."""

    def __init__(
        self,
        loop: ProgramLoop,
        factory: Callable[[], asyncio.BaseProtocol],
        addresses: Sequence[Address],
        tls_context: tls.SSLContext | None,
    ) -> None:
        self._loop = loop
        self._factory = factory
        self._addresses = list(addresses)
        self._tls = tls_context
        self._is_serving = False
        self._is_closed = False
        self._clients: dict[StreamTransport, None] = {}
        self._all_closed: asyncio.Future[None] = loop.create_future()
        # Done when the server is closed and its last client has gone.
        self._forever: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<simulated server at {self._addresses}>"

    @property
    def sockets(self) -> tuple[SocketOfTransport, ...]:
        if self._is_closed:
            return ()
        return tuple(SocketOfTransport(address) for address in self._addresses)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def is_serving(self) -> bool:
        return self._is_serving

    def listen(self) -> None:
        """Start to accept connections."""
        if not self._is_serving and not self._is_closed:
            self._is_serving = True
            for _, port in self._addresses:
                self._loop.machine.acceptors[port] = self._accept

    async def start_serving(self) -> None:
        self.listen()

    async def serve_forever(self) -> None:
        if self._is_closed:
            raise RuntimeError(f"server {self!r} is closed")
        self.listen()
        self._forever = self._loop.create_future()
        try:
            await self._forever
        finally:
            self._forever = None
            self.close()
            await self.wait_closed()

    def _accept(self, end: ConnectionEnd) -> None:
        self._loop.call_soon(self._connect, end)

    def _connect(self, end: ConnectionEnd) -> None:
        if self._is_closed or end.is_gone:
            end.reset()
            return
        protocol = self._factory()
        if self._tls is not None:
            protocol = tls_protocol(self._loop, protocol, self._tls, None, server_side=True)
        client = StreamTransport(self._loop, end, protocol, lost_callback=self._client_lost)
        self._clients[client] = None
        client.begin()

    def _client_lost(self, client: StreamTransport) -> None:
        self._clients.pop(client, None)
        self._check_all_closed()

    def _check_all_closed(self) -> None:
        if self._is_closed and not self._clients and not self._all_closed.done():
            self._all_closed.set_result(None)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._is_serving:
            self._is_serving = False
            for _, port in self._addresses:
                self._loop.machine.acceptors.pop(port, None)
        if self._forever is not None and not self._forever.done():
            self._forever.cancel()
        self._check_all_closed()

    def close_clients(self) -> None:
        """Close its connections (Python 3.13)."""
        for client in list(self._clients):
            client.close()

    def abort_clients(self) -> None:
        """Reset its connections (Python 3.13)."""
        for client in list(self._clients):
            client.abort()

    async def wait_closed(self) -> None:
        """Wait until the server is closed and its connections have ended.

        As in Python 3.11, connections are not waited for there if the server is already closed.
        """
        if self._is_closed and sys.version_info < (3, 12):
            return
        await asyncio.shield(self._all_closed)

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self.close()
        await self.wait_closed()


def tls_protocol(
    loop: asyncio.AbstractEventLoop,
    protocol: asyncio.BaseProtocol,
    context: tls.SSLContext,
    waiter: asyncio.Future[Any] | None,
    *,
    server_side: bool,
    server_hostname: str | None = None,
    call_connection_made: bool = True,
    handshake_timeout_s: float | None = None,
    shutdown_timeout_s: float | None = None,
) -> Any:
    """Return asyncio's TLS protocol around a protocol that reads plain text."""
    protocol_of_tls: Any = sslproto.SSLProtocol
    return protocol_of_tls(
        loop,
        protocol,
        context,
        waiter,
        server_side,
        server_hostname,
        call_connection_made,
        ssl_handshake_timeout=handshake_timeout_s or _HANDSHAKE_TIMEOUT_S,
        ssl_shutdown_timeout=shutdown_timeout_s or _SHUTDOWN_TIMEOUT_S,
    )


class ProgramLoop(SimulatedLoop):
    """The loop of one run of a program."""

    __deletable__: tuple[str, ...] = ("_program", "machine")
    reads_at_once = False

    def __init__(self, program: RunningProgram, machine: Machine) -> None:
        super().__init__(program.runtime, program.name)
        self._program = program
        self.acts: Acts | None = program.acts
        self.machine: Machine = machine
        self.generators: AsyncGenerators = AsyncGenerators(self)
        self.main: asyncio.Task[Any] | None = None
        """Held here because the objects that the task waits for may have no other reference."""

    def _begin_turn(self) -> None:
        self._program.environment.begin_turn(self._program)

    def _end_turn(self) -> None:
        self._program.environment.end_turn()

    def _turn(self) -> None:
        if self._is_closed:
            return
        program = self._program
        try:
            super()._turn()
        except SystemExit as error:
            program.handle_system_exit(error)
        except Stuck:
            pass
        if watchdog.stuck_at is not None and program.loop is self:
            program.fail_blocked()

    def detach(self) -> None:
        super().detach()
        del self._program, self.machine

    def main_ended(self, main: asyncio.Task[Any]) -> None:
        """Report the end of main. A method of the loop, as the loop can drop its program."""
        if not self._is_closed:
            self._program.main_ended(self, main)

    def _fail_endless_loop(self, call: ReadyCall | TimedCall | None) -> None:
        self._program.fail_endless_loop(repr(call))

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        super().default_exception_handler(context)
        self._program.report_unhandled_error(context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Stuck):
            raise error
        if not self._is_closed:  # errors from the garbage of a dead program are ignored
            super().call_exception_handler(context)

    # -- life ----------------------------------------------------------------------------------

    def run_forever(self) -> None:
        raise RuntimeError("This event loop is already running: the simulation runs it")

    def run_until_complete(self, future: Any) -> Any:
        if asyncio.iscoroutine(future):
            future.close()
        raise RuntimeError(
            "This event loop is already running: the simulation runs it; await instead"
        )

    def stop(self) -> None:
        raise RuntimeError(f"{self.name} stops its event loop before its main function has ended")

    def close(self) -> None:
        raise RuntimeError("Cannot close a running event loop")

    async def shutdown_asyncgens(self) -> None:
        await self.generators.close_all()

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing: all functions of executors have already ended."""

    # -- functions of executors ----------------------------------------------------------------

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run the function at once; time that it sleeps passes before its result is available."""
        self._require_open()
        future = self.create_future()
        result, error = None, None
        with self._program.environment.executor() as slept_s:
            try:
                result = func(*args)
            except (SystemExit, KeyboardInterrupt, Stuck):
                raise
            except BaseException as raised:
                error = raised
        if error is None:
            settle = partial(_set_result, future, result)
        else:
            settle = partial(_set_exception, future, error)
        if slept_s():
            self.call_later(slept_s(), settle)
        else:
            self.call_soon(settle)
        return future

    def set_default_executor(self, executor: Any) -> None:
        """Ignore the executor, because functions run at once."""

    # -- names ---------------------------------------------------------------------------------

    async def getaddrinfo(
        self,
        host: bytes | str | None,
        port: bytes | str | int | None,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002 - the name of asyncio
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        await asyncio.sleep(0)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)
            for address in self.addresses(host, port)
        ]

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        await asyncio.sleep(0)
        return self._program.names.name_of(sockaddr[0]), str(sockaddr[1])

    def addresses(self, host: bytes | str | None, port: bytes | str | int | None) -> list[Address]:
        """Return the addresses of a name on the simulated network."""
        if isinstance(host, bytes):
            host = host.decode()
        try:
            number = int(port or 0)
        except ValueError:
            number = socket.getservbyname(port.decode() if isinstance(port, bytes) else str(port))
        found = self._program.names.addresses(host, self.machine)
        return [(address, number) for address in found]

    # -- connections ---------------------------------------------------------------------------

    async def create_connection(
        self,
        protocol_factory: Callable[[], Any],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        server_hostname: str | None = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        all_errors: bool = False,
        **_options: Any,
    ) -> Any:
        """Connect to a server of the simulated network.

        Options that choose among addresses of a real machine have no effect.
        """
        context = tls.create_default_context() if ssl is True else ssl or None
        timeouts = ssl_handshake_timeout, ssl_shutdown_timeout
        if sock is not None:
            if not isinstance(sock, SimulatedSocket) or sock.end is None:
                raise ValueError(f"{sock!r} is not connected; give host and port")
            end, sock.end = sock.end, None
            return await self._open(
                end, protocol_factory(), context, server_hostname or "", *timeouts
            )
        if host is None or port is None:
            raise ValueError("host and port was not specified and no sock specified")
        if server_hostname is not None and not ssl:
            raise ValueError("server_hostname is only meaningful with ssl")
        errors: list[OSError] = []
        for _, _, _, _, address in await self.getaddrinfo(host, port):
            try:
                end = await self._connect_end(address)
            except OSError as error:
                errors.append(error)
                continue
            return await self._open(
                end, protocol_factory(), context, server_hostname or host, *timeouts
            )
        if all_errors:
            raise ExceptionGroup("create_connection failed", errors)
        if len(errors) == 1 or all(str(error) == str(errors[0]) for error in errors):
            raise errors[0]
        raise OSError(f"Multiple exceptions: {', '.join(map(str, errors))}")

    async def sock_connect(self, sock: Any, address: Any) -> None:
        """Connect a socket that the program has created."""
        if not isinstance(sock, SimulatedSocket):
            refuse(self.name, "uses a real socket", _STREAMS)
        ((place, port), *_) = self.addresses(address[0], address[1])
        sock.connected(await self._connect_end((place, port)))

    async def _connect_end(self, address: Address) -> ConnectionEnd:
        outcome: asyncio.Future[ConnectionEnd] = self.create_future()

        def done(result: ConnectionEnd | OSError) -> bool:
            if self._is_closed or outcome.done():
                return False
            if isinstance(result, OSError):
                text = f"Connect call failed {address}"
                if address[0] == self.machine.address:
                    text += f": {self.name} itself has no server there; Kafka is at kafka:9092"
                outcome.set_exception(type(result)(result.errno, text))
            else:
                outcome.set_result(result)
            return True

        if self.acts is not None:
            self.record_act(f"connects to {self._program.names.name_of(address[0])}:{address[1]}")
        names = self._program.names
        names.tcp.connect(self.machine, names.machine_at(address[0]), address[1], done)
        try:
            return await outcome
        except asyncio.CancelledError:
            if outcome.done() and not outcome.cancelled() and outcome.exception() is None:
                outcome.result().reset()
            raise

    async def _open(
        self,
        end: ConnectionEnd,
        protocol: Any,
        context: tls.SSLContext | None,
        server_hostname: str,
        handshake_timeout_s: float | None,
        shutdown_timeout_s: float | None,
    ) -> tuple[Any, Any]:
        if context is None:
            transport = StreamTransport(self, end, protocol)
            transport.begin()
            return transport, protocol
        waiter = self.create_future()
        secure = tls_protocol(
            self,
            protocol,
            context,
            waiter,
            server_side=False,
            server_hostname=server_hostname,
            handshake_timeout_s=handshake_timeout_s,
            shutdown_timeout_s=shutdown_timeout_s,
        )
        transport = StreamTransport(self, end, secure)
        transport.begin()
        try:
            await waiter
        except BaseException:
            transport.close()
            raise
        return secure._app_transport, protocol

    async def start_tls(
        self,
        transport: Any,
        protocol: Any,
        sslcontext: tls.SSLContext,
        *,
        server_side: bool = False,
        server_hostname: str | None = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
    ) -> Any:
        if not isinstance(transport, StreamTransport):
            raise TypeError(f"transport {transport!r} is not supported by start_tls()")
        waiter = self.create_future()
        secure = tls_protocol(
            self,
            protocol,
            sslcontext,
            waiter,
            server_side=server_side,
            server_hostname=server_hostname,
            call_connection_made=False,
            handshake_timeout_s=ssl_handshake_timeout,
            shutdown_timeout_s=ssl_shutdown_timeout,
        )
        transport.pause_reading()
        transport.set_protocol(secure)
        self.call_soon(secure.connection_made, transport)
        self.call_soon(transport.resume_reading)
        try:
            await waiter
        except BaseException:
            transport.close()
            raise
        return secure._app_transport

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: Any = None,
        port: int | None = None,
        *,
        sock: Any = None,
        ssl: tls.SSLContext | None = None,
        start_serving: bool = True,
        **_options: Any,
    ) -> Any:
        """Listen on a port of the program's machine, whatever the host; port 0 takes a free one."""
        if sock is not None:
            refuse(self.name, "listens on a socket of its own", "give host and port")
        number = port or self.machine.free_port()
        if number in self.machine.acceptors:
            raise OSError(
                errno.EADDRINUSE,
                f"error while attempting to bind on address ({host!r}, {number}): "
                f"{os.strerror(errno.EADDRINUSE).lower()}",
            )
        server = Server(self, protocol_factory, [(self.machine.address, number)], ssl)
        if start_serving:
            server.listen()
        await asyncio.sleep(0)
        return server

    # -- not simulated -------------------------------------------------------------------------

    def add_signal_handler(  # type: ignore[override]
        self, sig: int, callback: Any, *args: Any
    ) -> None:
        refuse(
            self.name,
            "sets a handler of a signal",
            "leave it out where NotImplementedError is raised; `handle.kill()` ends the program",
        )

    def remove_signal_handler(self, sig: int) -> bool:
        return False


def _set_result(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _set_exception(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def _refusing_method(name: str, what: str, instead: str) -> Any:
    def method(self: ProgramLoop, *_args: Any, **_options: Any) -> Any:
        refuse(self.name, what, instead)

    method.__name__ = name
    return method


_STREAMS = "use asyncio.open_connection, asyncio.start_server or loop.create_connection"
_REFUSED = {
    **dict.fromkeys(("add_reader", "add_writer"), ("watches a file descriptor", _STREAMS)),
    **dict.fromkeys(
        (
            "sock_accept",
            "sock_recv",
            "sock_recv_into",
            "sock_recvfrom",
            "sock_recvfrom_into",
            "sock_sendall",
            "sock_sendfile",
            "sock_sendto",
            "connect_accepted_socket",
        ),
        ("uses a real socket", _STREAMS),
    ),
    "create_datagram_endpoint": ("sends datagrams", "replace it in the test, or use TCP"),
    **dict.fromkeys(
        ("create_unix_connection", "create_unix_server"), ("uses a Unix socket", _STREAMS)
    ),
    **dict.fromkeys(
        ("connect_read_pipe", "connect_write_pipe"),
        ("opens a pipe", "replace it in the test, or use a live Cluster"),
    ),
    **dict.fromkeys(
        ("subprocess_exec", "subprocess_shell"),
        ("starts another process", "replace it in the test, or use a live Cluster"),
    ),
    "sendfile": ("sends a file", "read it and write its bytes"),
}
for _name, (_what, _instead) in _REFUSED.items():
    setattr(ProgramLoop, _name, _refusing_method(_name, _what, _instead))
