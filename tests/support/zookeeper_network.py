"""A small deterministic network in virtual time for ZooKeeper servers and clients."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

from fakekafka.protocol.awaiting import Task
from fakekafka.tests.support.hosts import FakeClock, FakeHost
from fakekafka.zkfake.client.client import ZooKeeperClient
from fakekafka.zkfake.client.handlers import StateChangeHandler
from fakekafka.zkfake.messages import CreateRequest, ZkCode
from fakekafka.zkfake.server.roles import ZooKeeperConfig
from fakekafka.zkfake.server.server import ZooKeeperServer
from fakekafka.zkfake.server.storage import ZooKeeperStorage

EPOCH_MS = 1_767_225_600_000
_LATENCY_MS = 1


def codes(responses: list[Any]) -> list[ZkCode]:
    return [response.code for response in responses]


class _Host(FakeHost):
    """A node of the test network; dead once ``is_alive`` is False."""

    def __init__(self, network: ZkNetwork, name: str) -> None:
        super().__init__(name, network.clock, network.rng)
        self.network = network

    def send(self, destination: str, message: Any) -> None:
        if self.is_alive:
            self.network.send(self.name, destination, message)


class ZkNetwork:
    """Servers ``zk-<id>`` and named clients, with ordered links of one millisecond a hop."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = random.Random(seed)
        self.clock = FakeClock(EPOCH_MS)
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

    @property
    def now_us(self) -> int:
        return self.clock.now_us - EPOCH_MS * 1000

    def run_for(self, ms: float) -> None:
        self.clock.advance(ms)

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 300_000) -> None:
        end_ms = self.clock.now_ms + limit_ms
        while not condition():
            assert self.clock.step(), "nothing is left to happen"
            assert self.clock.now_ms <= end_ms, "the condition did not come true in time"

    def run(self, coroutine: Coroutine[Any, Any, Any], limit_ms: int = 300_000) -> Any:
        task = Task(coroutine)
        self.run_until(lambda: task.done, limit_ms)
        return task.result()

    # --- messages

    def send(self, source: str, destination: str, message: Any) -> None:
        self.log.append((source, destination, message))
        if (source, destination) in self.cuts or self.lose(source, destination, message):
            return
        self.clock.call_later_ms(_LATENCY_MS, lambda: self.deliver(source, destination, message))

    @contextlib.contextmanager
    def held_back(self, source: str, destination: str) -> Iterator[None]:
        """Hold messages of a link in one direction and send them at the end of the context."""
        loses, held = self.lose, []

        def hold(one: str, other: str, message: Any) -> bool:
            is_held = (one, other) == (source, destination)
            if is_held:
                held.append(message)
            return is_held or loses(one, other, message)

        self.lose = hold
        yield
        self.lose = loses
        for message in held:
            self.send(source, destination, message)

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
        """Kill a process, whose peers all learn that their connections broke."""
        name = f"zk-{server_id}"
        self.hosts.pop(name).is_alive = False
        del self.handlers[name]
        self.servers.pop(server_id).crash()
        for peer in list(self.handlers.values()):
            self.clock.call_later_ms(_LATENCY_MS, partial(peer.on_disconnect, name))

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
        """Return a client that knows one server only."""
        ids, self.ids = self.ids, (server_id,)
        client = self.connected(name, **options)
        self.ids = ids
        return client

    def write(self, client: ZooKeeperClient, *paths: str) -> None:
        """Create nodes, which must all succeed."""
        responses = self.run(client.handle_requests([CreateRequest(p) for p in paths]))
        assert [response.code for response in responses] == [ZkCode.OK] * len(paths)

    def write_until_done(self, client: ZooKeeperClient, path: str) -> None:
        """Create a node; if a response was lost, the retry finds the node already there."""
        code = self.run(client.handle_request(CreateRequest(path))).code
        assert code in (ZkCode.OK, ZkCode.NODEEXISTS)

    def messages(self, *types: type) -> list[Any]:
        """Return the messages sent so far, lost ones included."""
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
        """Run until ``count`` servers (default: all live ones) serve; return the leader's id."""
        wanted = len(self.servers) if count is None else count
        self.run_until(lambda: len(self.serving()) >= wanted and len(self.leaders()) == 1)
        return self.leaders()[0]


class Recorder:
    """A handler that records every event."""

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
