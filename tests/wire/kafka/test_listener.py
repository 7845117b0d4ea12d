"""Listeners on asyncio and uvloop: binding, refusing, and serving again on the same port."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest
from fakekafka.actors.runtime import live
from fakekafka.actors.runtime.live import LoopThread
from fakekafka.protocol.data import MetadataResponse
from fakekafka.tests.support.kafka_listener import MakeWire, Wire
from fakekafka.tests.support.present import present
from fakekafka.wire.accepting import AcceptingListener


class _Listener(AcceptingListener[Any]):
    def _make_connection(self) -> asyncio.BaseProtocol:
        return asyncio.Protocol()


METADATA = MetadataResponse((), "cluster", -1, ())


async def test_clients_connect_before_the_listener_serves(make_wire: MakeWire) -> None:
    """The port is known, and connections are queued, from ``bind`` on."""
    wire = make_wire(serves=False)
    port = wire.listener.bind()
    early = socket.create_connection(("127.0.0.1", port))
    wire.listener.serve()
    await wire.until(lambda: wire.listener.connections)
    early.close()


@pytest.mark.parametrize("keep_port", [False, True])
async def test_a_closed_listener_refuses_at_once_and_serves_again_on_the_same_port(
    wire: Wire, keep_port: bool
) -> None:
    """A killed broker's sockets are closed at once, and a restarted broker has its port again."""
    client = await wire.connect()
    await wire.until(lambda: wire.listener.connections)
    port = wire.listener.port
    wire.listener.close(keep_port=keep_port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)
    assert await client.ended()
    assert wire.listener.connections == ()
    wire.listener.serve()
    assert port == wire.listener.port
    again = await wire.connect()
    wire.backend.answer = lambda request: METADATA
    again.request(3, 1, 1, topics=())
    assert (await again.response(3, 1))[0] == 1


@pytest.mark.parametrize("keep_port", [False, True])
async def test_copies_of_its_sockets_in_a_forked_process_change_nothing(
    wire: Wire, keep_port: bool
) -> None:
    """If ``multiprocessing`` forks, the child has a copy of every socket for its whole life."""
    client = await wire.connect()
    await wire.until(lambda: wire.listener.connections)
    (connection,) = wire.listener.connections
    accepted = present(connection._transport).get_extra_info("socket")
    copies = [os.dup(present(wire.listener._socket).fileno()), os.dup(accepted.fileno())]
    port = wire.listener.port
    wire.listener.close(keep_port=keep_port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)
    assert await client.ended()
    wire.listener.serve()
    again = await wire.connect()
    wire.backend.answer = lambda request: METADATA
    again.request(3, 1, 1, topics=())
    assert (await again.response(3, 1))[0] == 1
    for copy in copies:
        os.close(copy)


async def test_a_connection_accepted_while_the_listener_closes_is_dropped(wire: Wire) -> None:
    """No connection outlives its listener."""
    client = socket.create_connection(("127.0.0.1", wire.listener.port))
    wire.listener._accept()
    wire.listener.close()
    for _ in range(5):
        await asyncio.sleep(0)
    assert wire.listener.connections == ()
    client.settimeout(2)
    with contextlib.suppress(ConnectionResetError):
        assert client.recv(1) == b""
    client.close()


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, live.new_event_loop])
def test_a_connection_accepted_as_the_loop_ends_is_closed(
    monkeypatch: pytest.MonkeyPatch, make_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """A cluster that stops just as a client connects leaves no socket open."""
    monkeypatch.setattr(live, "new_event_loop", make_loop)
    thread = LoopThread("ending")
    listener = _Listener(thread.loop, "127.0.0.1", 0, "broker 1")
    client = socket.create_connection(("127.0.0.1", listener.bind()))
    accepted: list[socket.socket] = []

    def end() -> None:
        listener.serve()
        listener._accept()
        accepted.extend(listener._tasks.values())
        listener.close()
        thread.loop.stop()

    thread.call(end)
    thread._own_thread.join()
    client.close()
    assert [known.fileno() for known in accepted] == [-1]


async def test_a_kept_port_cannot_be_bound_by_others(wire: Wire) -> None:
    """No other socket gets the port while a broker is down."""
    port = wire.listener.port
    wire.listener.close(keep_port=True)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))


def test_a_kept_port_is_never_free(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket that keeps the port is bound before the listening one is closed. In a gap between
    them an outgoing connection of a client could be given the port.
    """
    port = wire.listener.bind()
    listening = present(wire.listener._socket)
    bound_socket = type(wire.listener)._bound_socket
    seen = []

    def bound(self: Any, **options: Any) -> Any:
        found = bound_socket(self, **options)
        seen.append((listening.fileno() >= 0, found.getsockname()[1]))
        return found

    monkeypatch.setattr(type(wire.listener), "_bound_socket", bound)
    wire.listener.close(keep_port=True)
    assert seen == [(True, port)]
    assert listening.fileno() < 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_taken_port_is_named_in_the_error(wire: Wire, make_wire: MakeWire) -> None:
    """The message names the broker and the address, and says what to do."""
    from fakekafka.protocol.errors import UsageError

    port = wire.listener.bind()
    other = make_wire(serves=False)
    other.listener.port = port
    with pytest.raises(UsageError, match=rf"broker 7 cannot listen on 127.0.0.1:{port}: .*in use"):
        other.listener.bind()
    other.listener.port = 0
