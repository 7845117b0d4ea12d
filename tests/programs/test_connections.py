"""Connections between programs: TCP over the simulated network."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fakekafka.programs.tcp import WINDOW_BYTES
from fakekafka.tests.support.programs import LATENCY_MS, World

TRIP_S = LATENCY_MS / 1000
PORT = 7000


@asynccontextmanager
async def connected(name: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a connection that is closed at the end."""
    reader, writer = await asyncio.open_connection(name, PORT)
    try:
        yield reader, writer
    finally:
        writer.close()


async def serve(talk: Callable[[Any, Any], Awaitable[None]]) -> None:
    """Run a server that never ends."""
    server = await asyncio.start_server(talk, port=PORT)
    await server.serve_forever()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 20):
        writer.write(data)
        await writer.drain()
    writer.close()


def now_s() -> float:
    return asyncio.get_running_loop().time()


def test_programs_reach_each_other_by_name(world: World) -> None:
    """Connecting takes a round trip, and so does a request with its answer."""
    world.start(serve, echo, name="server")

    async def main() -> tuple[bytes, float, float]:
        reader, writer = await asyncio.open_connection("server", PORT)
        connected_s = now_s()
        writer.write(b"hello")
        answer = await reader.readexactly(5)
        answered_s = now_s()
        writer.close()
        await writer.wait_closed()
        return answer, connected_s, answered_s

    answer, connected_s, answered_s = world.run(main)
    assert answer == b"hello"
    assert connected_s == pytest.approx(2 * TRIP_S, abs=1e-3)
    assert answered_s == pytest.approx(4 * TRIP_S, abs=1e-3)


def test_a_large_text_arrives_whole_and_in_order(world: World) -> None:
    """A text arrives whole and in order, and the seed decides where it is split on the way."""
    text = bytes(range(256)) * 5000

    def run(world: World) -> list[int]:
        sizes: list[int] = []

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            got = b""
            while data := await reader.read(1 << 16):
                sizes.append(len(data))
                got += data
            writer.write(b"same" if got == text else b"other")
            writer.close()

        async def main() -> bytes:
            async with connected("server") as (reader, writer):
                for start in range(0, len(text), 10_000):
                    writer.write(text[start : start + 10_000])
                    await writer.drain()
                writer.write_eof()
                return await reader.read()

        world.start(serve, take, name="server")
        assert world.run(main) == b"same"
        return sizes

    sizes = run(world)
    again, other = World(1), World(2)
    assert run(again) == sizes
    assert run(other) != sizes
    assert any(size % 1000 for size in sizes)
    for one in (again, other):
        one.end()


def test_a_reader_that_does_not_read_stops_the_writer(world: World) -> None:
    """The window fills up, then the transport's buffer, and ``drain`` waits."""

    async def lazy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(100)
        while await reader.read(1 << 20):
            pass
        writer.close()

    async def main() -> tuple[int, float]:
        async with connected("server") as (_, writer):
            written = 0
            while now_s() < 100:
                writer.write(b"x" * 16_384)
                written += 16_384
                before_s = now_s()
                await writer.drain()
                if now_s() - before_s > 50:
                    return written, now_s()
        return -1, 0

    world.start(serve, lazy, name="server")
    written, resumed_s = world.run(main)
    assert WINDOW_BYTES < written < 2 * WINDOW_BYTES
    assert 100 <= resumed_s < 101


def test_a_server_that_is_not_there_refuses(world: World) -> None:
    """A connection is refused after one round trip, and a name that does not exist is unknown."""
    world.start(asyncio.sleep, 1000, name="other")

    async def main() -> tuple[float, str]:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("other", PORT)
        refused_s = now_s()
        with pytest.raises(socket.gaierror) as failure:
            await asyncio.open_connection("othr", PORT)
        return refused_s, str(failure.value)

    async def own() -> str:
        with pytest.raises(ConnectionRefusedError) as failure:
            await asyncio.open_connection("localhost", 9092)
        return str(failure.value)

    assert "own itself has no server there; Kafka is at kafka:9092" in world.run(own, name="own")
    refused_s, text = world.run(main)
    assert refused_s == pytest.approx(2 * TRIP_S, abs=1e-3)
    assert "'othr' in worker-1; did you mean 'other'?" in text
    assert "there are kafka, other, own, worker-1" in text


def test_bytes_sent_over_a_cut_link_arrive_when_it_heals(world: World) -> None:
    """Bytes arrive when the link heals, as with TCP; one direction alone can be cut."""
    world.start(serve, echo, name="server")
    network = world.runtime.network

    async def main() -> list[float]:
        times = []
        async with connected("server") as (reader, writer):
            for _ in range(2):
                writer.write(b"hello")
                await reader.readexactly(5)
                times.append(now_s())
                await asyncio.sleep(1)
        return times

    program = world.start(main)
    for source, target in (("worker-1", "server"), ("server", "worker-1")):
        world.run_for(0.5)
        begun_s = world.now_s
        network.cut(source, target)
        world.run_for(10)
        network.heal()
        first_s, second_s = world.result(program)
        assert first_s < begun_s
        assert second_s == pytest.approx(begun_s + 10, abs=0.1)
        program.restart()


def test_a_connection_over_a_cut_link_waits_and_is_given_up(world: World) -> None:
    """A connection attempt is given up after 127 seconds, as on Linux."""
    world.start(serve, echo, name="server")
    world.runtime.network.cut("worker-1", "server")

    async def main() -> float:
        with pytest.raises(TimeoutError):
            await asyncio.open_connection("server", PORT)
        return now_s()

    assert world.run(main) == 127


def test_a_lossy_link_is_slow_and_loses_nothing(world: World) -> None:
    """TCP retransmits lost segments, so a lossy link is slow and loses nothing."""
    world.start(serve, echo, name="server")
    world.runtime.network.set_loss(0.5)

    async def main() -> float:
        async with connected("server") as (reader, writer):
            begun_s = now_s()
            for number in range(20):
                writer.write(b"%04d" % number)
                assert await reader.readexactly(4) == b"%04d" % number
            return now_s() - begun_s

    took_s = world.run(main)
    assert took_s > 20 * 2 * TRIP_S + 1


def test_bandwidth_counts_the_bytes(world: World) -> None:
    """Half a megabyte over a link of one megabyte a second takes half a second."""
    world.start(serve, echo, name="server")
    world.runtime.network.set_bandwidth(1.0, "worker-1", "server")

    async def main() -> float:
        async with connected("server") as (reader, writer):
            begun_s = now_s()
            writer.write(b"x" * 500_000)
            await reader.readexactly(500_000)
            return now_s() - begun_s

    assert world.run(main) == pytest.approx(0.5 + 2 * TRIP_S, abs=0.05)


def test_the_connections_of_a_killed_program_are_reset(world: World) -> None:
    """The peer sees the reset after the latency of the link."""
    server = world.start(serve, echo, name="server")

    async def main() -> float:
        async with connected("server") as (reader, _):
            with pytest.raises(ConnectionResetError):
                await reader.read()
            return now_s()

    program = world.start(main)
    world.run_for(5)
    server.kill()
    assert world.result(program) == pytest.approx(5 + TRIP_S, abs=1e-3)


def test_a_program_that_ends_closes_its_connections(world: World) -> None:
    """The peer of a program that ends reads the end of the stream."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(b"bye")
        done.set()

    async def main() -> None:
        await asyncio.start_server(greet, port=PORT)
        await done.wait()

    writers: list[asyncio.StreamWriter] = []
    done = asyncio.Event()
    world.start(main, name="server")

    async def client() -> bytes:
        async with connected("server") as (reader, _):
            return await reader.read()

    assert world.run(client) == b"bye"


def test_a_paused_program_leaves_its_connections_open(world: World) -> None:
    """The program's machine accepts connections and bytes, and the program answers once
    it resumes.
    """
    server = world.start(serve, echo, name="server")
    world.run_for(1)
    server.pause()

    async def main() -> float:
        async with connected("server") as (reader, writer):
            writer.write(b"hello")
            await reader.readexactly(5)
            return now_s()

    program = world.start(main)
    world.run_for(30)
    assert program.is_running
    server.resume()
    assert world.result(program) == pytest.approx(31 + TRIP_S, abs=1e-3)


def test_a_server_closes_and_its_port_is_free_again(world: World) -> None:
    """Two servers cannot have the same port, which is free again once its server has closed."""

    async def main() -> list[str]:
        told = []
        server = await asyncio.start_server(echo, "localhost", PORT)
        told.append(str(server.sockets[0].getsockname()[1]))
        with pytest.raises(OSError, match="address already in use"):
            await asyncio.start_server(echo, port=PORT)
        reader, writer = await asyncio.open_connection("localhost", PORT)
        writer.write(b"x")
        told.append((await reader.read(1)).decode())
        writer.close()
        server.close()
        await server.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("worker-1", PORT)
        other = await asyncio.start_server(echo, port=0)
        told.append(str(other.is_serving()))
        other.close()
        return told

    assert world.run(main) == ["7000", "x", "True"]


@pytest.mark.parametrize("how", ["close", "abort"])
def test_a_server_ends_its_connections(world: World, how: str) -> None:
    """``Server.close_clients`` and ``abort_clients`` of Python 3.13 exist under every Python."""

    async def main() -> str:
        server = await asyncio.start_server(echo, port=PORT)
        reader, writer = await asyncio.open_connection("localhost", PORT)
        await asyncio.sleep(TRIP_S)
        getattr(server, f"{how}_clients")()
        assert server.is_serving()
        try:
            return str(await reader.read())
        except ConnectionResetError:
            return "reset"
        finally:
            writer.close()

    assert world.run(main) == {"close": "b''", "abort": "reset"}[how]


def test_a_closed_server_waits_for_its_connections_as_in_its_python_version(world: World) -> None:
    """``wait_closed`` waits for connections since 3.12; before, only if called before ``close``."""
    waits = sys.version_info >= (3, 12)

    async def main() -> list[bool]:
        server = await asyncio.start_server(echo, port=PORT)
        _reader, writer = await asyncio.open_connection("localhost", PORT)
        await asyncio.sleep(TRIP_S)
        before = asyncio.ensure_future(server.wait_closed())
        await asyncio.sleep(0)
        server.close()
        after = asyncio.ensure_future(server.wait_closed())
        await asyncio.sleep(1)
        told = [before.done(), after.done()]
        writer.close()
        await asyncio.sleep(1)
        return [*told, before.done(), after.done()]

    assert world.run(main) == [False, not waits, True, True]


def test_a_program_may_connect_a_socket_of_its_own(world: World) -> None:
    """Clients that choose among addresses, such as aiohttp, connect a socket of their own."""
    world.start(serve, echo, name="server")

    async def main() -> tuple[bytes, str]:
        loop = asyncio.get_running_loop()
        ((family, kind, protocol, _, address), *_) = socket.getaddrinfo("server", PORT)
        own = socket.socket(family, kind, protocol)
        own.setblocking(False)
        await loop.sock_connect(own, address)
        peer = own.getpeername()
        reader, writer = await asyncio.open_connection(sock=own)
        writer.write(b"hello")
        answer = await reader.readexactly(5)
        writer.close()
        return answer, (await loop.getnameinfo(peer))[0]

    assert world.run(main) == (b"hello", "server")


def test_an_abandoned_connection_attempt_leaves_no_connection(world: World) -> None:
    """The server sees the abandoned connection open and then reset."""
    lost: list[BaseException | None] = []

    class Watcher(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            lost.append(exc)

    async def server() -> None:
        await asyncio.get_running_loop().create_server(Watcher, port=PORT)
        await asyncio.sleep(1000)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5 * TRIP_S):
                await asyncio.open_connection("server", PORT)
        await asyncio.sleep(1)

    world.start(server, name="server")
    world.run(main)
    assert [type(error) for error in lost] == [ConnectionResetError]
