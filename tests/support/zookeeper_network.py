"""A tiny deterministic network with virtual time for ZooKeeper servers and clients."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from fakekafka.protocol.awaiting import Task
from fakekafka.protocol.host import Causes, StateListener
from fakekafka.zkfake.client.client import ZooKeeperClient
from fakekafka.zkfake.client.handlers import StateChangeHandler
from fakekafka.zkfake.messages import CreateRequest, ZkCode
from fakekafka.zkfake.server.roles import ZooKeeperConfig
from fakekafka.zkfake.server.server import ZooKeeperServer
from fakekafka.zkfake.server.storage import ZooKeeperStorage

EPOCH_MS = 1_767_225_600_000


class _Timer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class _Host:
    """A node of the test network; dead once ``is_alive`` is False."""

    def __init__(self, network: ZkNetwork, name: str) -> None:
        self.network = network
        self.name = name
        self.rng = network.rng
        self.state_listener: StateListener | None = None
        self.causes: Causes | None = None
        self.is_alive = True

    def now_ms(self) -> int:
        return EPOCH_MS + self.network.now_us // 1000

    wall_ms = now_ms

    def call_later_ms(self, delay_ms: float, callback: Callable[[], object]) -> _Timer:
        timer = _Timer(callback)

        def fire() -> None:
            if self.is_alive and timer.callback is not None:
                timer.callback()

        self.network.schedule(int(delay_ms * 1000), fire)
        return timer

    def own_session(self, session_id: int, client: str) -> None:
        """Nobody records causes."""

    def blame_session(self, session_id: int, timeout_ms: int) -> None:
        """Causes are not recorded."""

    def blame_silence(self, peer: str, silent_ms: float, text: str) -> None:
        """No run is recorded, so nothing is told."""

    def send(self, destination: str, message: Any) -> None:
        if self.is_alive:
            self.network.send(self.name, destination, message)


class ZkNetwork:
    """Servers ``zk-<id>``, clients by name, links in order, one millisecond a hop."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = random.Random(seed)
        self.now_us = 0
        self.latency_us = 1000
        self.events: list[tuple[int, int, Callable[[], object]]] = []
        self.sequence = 0
        self.handlers: dict[str, Any] = {}
        self.hosts: dict[str, _Host] = {}
        self.storages: dict[int, ZooKeeperStorage] = {}
        self.servers: dict[int, ZooKeeperServer] = {}
        self.clients: dict[str, ZooKeeperClient] = {}
        self.cuts: set[tuple[str, str]] = set()
        self.lose: Callable[[str, str, Any], bool] = lambda *_: False
        self.log: list[tuple[str, str, Any]] = []
        self.config = ZooKeeperConfig()
        self.ids: tuple[int, ...] = ()

    # --- time

    def schedule(self, delay_us: int, callback: Callable[[], object]) -> None:
        self.sequence += 1
        heapq.heappush(self.events, (self.now_us + delay_us, self.sequence, callback))

    def step(self) -> bool:
        if not self.events:
            return False
        self.now_us, _, callback = heapq.heappop(self.events)
        callback()
        return True

    def run_for(self, ms: float) -> None:
        end_us = self.now_us + int(ms * 1000)
        while self.events and self.events[0][0] <= end_us:
            self.step()
        self.now_us = end_us

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 300_000) -> None:
        end_us = self.now_us + limit_ms * 1000
        while not condition():
            assert self.events, "nothing is left to happen"
            assert self.events[0][0] <= end_us, "the condition did not come true in time"
            self.step()

    def run(self, coroutine: Coroutine[Any, Any, Any], limit_ms: int = 300_000) -> Any:
        task = Task(coroutine)
        self.run_until(lambda: task.done, limit_ms)
        return task.result()

    # --- messages

    def send(self, source: str, destination: str, message: Any) -> None:
        self.log.append((source, destination, message))
        if (source, destination) in self.cuts or self.lose(source, destination, message):
            return
        self.schedule(self.latency_us, lambda: self.deliver(source, destination, message))

    def deliver(self, source: str, destination: str, message: Any) -> None:
        handler = self.handlers.get(destination)
        if handler is not None:
            handler.on_message(source, message)

    def cut(self, one: str, other: str) -> None:
        self.cuts.add((one, other))
        self.cuts.add((other, one))

    def isolate(self, name: str) -> None:
        for other in [*self.handlers, *(f"zk-{i}" for i in self.ids)]:
            if other != name:
                self.cut(name, other)

    def heal(self) -> None:
        self.cuts.clear()

    # --- nodes

    def ensemble(self, size: int, start: bool = True) -> None:
        self.ids = tuple(range(1, size + 1))
        if start:
            for server_id in self.ids:
                self.start(server_id)

    def start(self, server_id: int) -> ZooKeeperServer:
        name = f"zk-{server_id}"
        host = self.hosts[name] = _Host(self, name)
        storage = self.storages.setdefault(server_id, ZooKeeperStorage())
        peers = {i: f"zk-{i}" for i in self.ids} if len(self.ids) > 1 else {}
        server = ZooKeeperServer(host, server_id, peers, storage, self.config)
        self.servers[server_id] = server
        self.handlers[name] = server
        server.start()
        return server

    def kill(self, server_id: int) -> None:
        """The process dies; everyone learns that its connections broke."""
        name = f"zk-{server_id}"
        self.hosts.pop(name).is_alive = False
        del self.handlers[name]
        self.servers.pop(server_id).crash()
        for peer in list(self.handlers.values()):
            self.schedule(self.latency_us, partial(peer.on_disconnect, name))

    def client(
        self, name: str = "client", session_timeout_ms: int = 6000, **options: Any
    ) -> ZooKeeperClient:
        host = self.hosts[name] = _Host(self, name)
        servers = [f"zk-{i}" for i in self.ids]
        client = ZooKeeperClient(host, servers, session_timeout_ms, **options)
        self.clients[name] = self.handlers[name] = client
        client.start()
        return client

    def connected(self, name: str = "client", **options: Any) -> ZooKeeperClient:
        client = self.client(name, **options)
        self.run(client.wait_until_connected())
        return client

    def client_at(self, server_id: int, name: str = "client", **options: Any) -> ZooKeeperClient:
        """A client that knows one server only."""
        ids, self.ids = self.ids, (server_id,)
        client = self.connected(name, **options)
        self.ids = ids
        return client

    def write(self, client: ZooKeeperClient, *paths: str) -> None:
        """Create nodes; each must succeed."""
        responses = self.run(client.handle_requests([CreateRequest(p) for p in paths]))
        assert [response.code for response in responses] == [ZkCode.OK] * len(paths)

    def write_until_done(self, client: ZooKeeperClient, path: str) -> None:
        """Create a node; when the answer got lost the repetition finds it there."""
        code = self.run(client.handle_request(CreateRequest(path))).code
        assert code in (ZkCode.OK, ZkCode.NODEEXISTS)

    def messages(self, *types: type) -> list[Any]:
        """Those sent so far, lost ones included."""
        return [message for *_, message in self.log if isinstance(message, types)]

    def crash_client(self, name: str) -> None:
        self.hosts.pop(name).is_alive = False
        del self.handlers[name]
        self.clients.pop(name).abandon()

    # --- views

    def leaders(self) -> list[int]:
        return [
            i
            for i, server in self.servers.items()
            if server.is_serving and server.election.vote.leader == i
        ]

    def serving(self) -> list[int]:
        return sorted(i for i, server in self.servers.items() if server.is_serving)

    def settle(self, count: int | None = None) -> int:
        """Run until ``count`` servers (default: all alive) serve; the leader's id."""
        wanted = len(self.servers) if count is None else count
        self.run_until(lambda: len(self.serving()) >= wanted and len(self.leaders()) == 1)
        return self.leaders()[0]


class Recorder:
    """Handler of everything that writes down what it was told."""

    def __init__(self, log: list[str], name: str = "") -> None:
        self.log = log
        self.name = name

    def on_creation(self) -> None:
        self.log.append(f"{self.name}created")

    def on_deletion(self) -> None:
        self.log.append(f"{self.name}deleted")

    def on_data_change(self) -> None:
        self.log.append(f"{self.name}changed")

    def on_child_change(self) -> None:
        self.log.append(f"{self.name}children")


class Sessions(StateChangeHandler):
    def __init__(self, log: list[str], name: str = "", fail: bool = False) -> None:
        self.log = log
        self.name = name
        self.fail = fail

    def before_initializing_session(self) -> None:
        self.log.append(f"{self.name}before")
        if self.fail:
            raise RuntimeError("a bad callback")

    def after_initializing_session(self) -> None:
        self.log.append(f"{self.name}after")

    def on_auth_failure(self) -> None:
        self.log.append(f"{self.name}auth failed")
