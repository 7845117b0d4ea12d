"""ZooKeeper servers with TCP listeners, kazoo clients, and a client that writes raw frames.

The raw client encodes its requests and decodes its responses with kazoo's serialisers, so that both
directions are checked against an independent implementation.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from fakekafka.actors.runtime.live import LiveRuntime
from fakekafka.actors.runtime.threaded import ThreadedRuntime
from fakekafka.actors.zookeeper.process import ZooKeeperProcess
from fakekafka.protocol.names import zookeeper_name
from fakekafka.wire.zookeeper.gateway import ZooKeeperTcp
from kazoo.client import KazooClient
from kazoo.protocol import serialization as kz

PATIENCE_S = 20


class RawZooKeeper:
    """A connection on which frames are written and read by hand."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self.xid = 0

    def send(self, body: bytes) -> None:
        """Send a frame: the length and the body."""
        self.socket.sendall(struct.pack(">i", len(body)) + body)

    def frame(self) -> bytes:
        """Return the body of the next frame; raise ``EOFError`` at the end of the connection."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                raise EOFError
            data += chunk
        return data

    def connect(
        self,
        timeout_ms: int = 10_000,
        session_id: int = 0,
        password: bytes = bytes(16),
        last_zxid: int = 0,
    ) -> kz.Connect:
        """Open or resume a session; the response has session id 0 if that has expired."""
        self.send(kz.Connect(0, last_zxid, timeout_ms, session_id, password, False).serialize())
        return kz.Connect.deserialize(self.frame(), 0)[0]

    def call(self, request: Any, xid: int | None = None) -> int:
        """Send a request and return its xid."""
        if xid is None:
            self.xid += 1
            xid = self.xid
        self.send(struct.pack(">ii", xid, request.type) + request.serialize())
        return xid

    def reply(self) -> tuple[kz.ReplyHeader, bytes]:
        """Return header and body of the next reply."""
        frame = self.frame()
        header, at = kz.ReplyHeader.deserialize(frame, 0)
        return header, frame[at:]

    def event(self) -> kz.Watch:
        """Return the next reply, which must be a watch event."""
        header, body = self.reply()
        assert (header.xid, header.err) == (-1, 0)
        return kz.Watch.deserialize(body, 0)[0]

    def ask(self, request: Any) -> Any:
        """Send a request and return its successful response."""
        xid = self.call(request)
        header, body = self.reply()
        assert (header.xid, header.err) == (xid, 0)
        return request.deserialize(body, 0) if hasattr(request, "deserialize") else None

    def ended(self) -> bool:
        """Wait for the end of the connection; return True if nothing was received before it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.socket.close()


class Ensemble:
    """ZooKeeper servers on a real-time runtime, and their clients."""

    def __init__(self, count: int, runtime: LiveRuntime | ThreadedRuntime | None = None) -> None:
        self.runtime = runtime or LiveRuntime(1)
        names = {server_id: zookeeper_name(server_id) for server_id in range(1, count + 1)}
        peers = names if count > 1 else {}
        self.processes = {i: ZooKeeperProcess(self.runtime, i, peers) for i in names}
        for server_id in names:
            self.start_server(server_id)
        self.tcp = ZooKeeperTcp(self.runtime, names)
        self.tcp.start()
        self._kazoos: list[KazooClient] = []
        self._raws: list[RawZooKeeper] = []

    # --- clients

    def kazoo(self, *server_ids: int, timeout_s: float = 10, **options: Any) -> KazooClient:
        """Return a started client that tries the servers in order, by default all in any order."""
        hosts = ",".join(map(self.tcp.address, server_ids)) or self.tcp.connect_string
        client = KazooClient(hosts, timeout=timeout_s, randomize_hosts=not server_ids, **options)
        self._kazoos.append(client)
        client.start(PATIENCE_S)
        return client

    def raw(self, server_id: int = 1) -> RawZooKeeper:
        raw = RawZooKeeper(self.tcp.address(server_id))
        self._raws.append(raw)
        return raw

    # --- servers

    def start_server(self, server_id: int) -> None:
        process = self.processes[server_id]
        self.runtime.run_in(process.process, process.start)

    def kill(self, server_id: int) -> None:
        process = self.processes[server_id]
        self.runtime.run_in(process.process, process.kill)

    def call(self, server_id: int, function: Callable[[Any], Any]) -> Any:
        """Return the result of ``function(server core)``, called in the server's thread."""
        process = self.processes[server_id]
        return self.runtime.run_in(process.process, lambda: function(process.server))

    def serving(self) -> list[int]:
        return [
            server_id
            for server_id, process in self.processes.items()
            if process.is_alive and self.call(server_id, lambda server: server.is_serving)
        ]

    def leader(self) -> int:
        """Return the id of the leading server once all live servers serve."""
        alive = [server_id for server_id, process in self.processes.items() if process.is_alive]
        self.until(lambda: self.serving() == alive)
        (leader,) = [
            server_id
            for server_id in alive
            if self.call(server_id, lambda server: type(server.role).__name__) == "Leading"
        ]
        return leader

    def followers(self) -> list[int]:
        leader = self.leader()
        return [i for i, process in self.processes.items() if process.is_alive and i != leader]

    def expire(self, client: KazooClient) -> None:
        """Expire a client's session at a serving server."""
        session_id = client.client_id[0]
        self.call(self.serving()[0], lambda server: server.expire_session(session_id))

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true"

    def stop(self) -> None:
        for raw in self._raws:
            raw.close()
        for client in self._kazoos:
            with contextlib.suppress(Exception):
                client.stop()
            client.close()
        self.tcp.stop()
        self.runtime.stop()


MakeEnsemble = Callable[..., Ensemble]
"""Creates an ensemble of a number of servers, which is stopped after the test."""


class Recorder:
    """Collects the values passed to callbacks; ``take`` waits for the next."""

    def __init__(self) -> None:
        self._seen: list[Any] = []
        self._changed = threading.Condition()

    def add(self, value: Any) -> None:
        with self._changed:
            self._seen.append(value)
            self._changed.notify_all()

    def take(self) -> Any:
        with self._changed:
            assert self._changed.wait_for(lambda: self._seen, PATIENCE_S), "nothing came"
            return self._seen.pop(0)

    def take_until(self, wanted: Any) -> Any:
        """Drop values until one equals ``wanted``."""
        while self.take() != wanted:
            pass
        return wanted
