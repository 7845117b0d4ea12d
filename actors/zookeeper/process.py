"""A ZooKeeper server: its actor on the network, and its process, which can be killed and restarted
with its storage."""

from __future__ import annotations

from ...protocol.errors import UsageError
from ...protocol.names import zookeeper_name
from ...zkfake.server.roles import ZooKeeperConfig
from ...zkfake.server.server import ZooKeeperServer
from ...zkfake.server.storage import ZooKeeperStorage
from ..delivery import Delivery
from ..interfaces import AbstractRuntime, Process
from ..node import Node
from ..runtime.runtime import Runtime


class ZooKeeperActor(Node):
    """Passes messages to a server core. The storage outlives the actor, as a disk does."""

    def __init__(
        self,
        runtime: AbstractRuntime,
        name: str,
        process: Process,
        server_id: int,
        peers: dict[int, str],
        storage: ZooKeeperStorage,
        config: ZooKeeperConfig,
    ) -> None:
        super().__init__(runtime, name, process)
        self.server: ZooKeeperServer = ZooKeeperServer(self, server_id, peers, storage, config)

    def on_start(self) -> None:
        self.server.start()

    def handle(self, delivery: Delivery) -> None:
        self.server.on_message(delivery.sender.name, delivery.message)

    def peer_lost(self, machine: str, names: frozenset[str]) -> None:
        super().peer_lost(machine, names)
        for name in sorted(names):
            self.server.on_disconnect(name)

    def on_halt(self) -> None:
        self.server.crash()


class ZooKeeperProcess:
    """The process of one server, which can be killed and restarted; its storage survives."""

    def __init__(
        self,
        runtime: Runtime,
        server_id: int,
        peers: dict[int, str],
        storage: ZooKeeperStorage | None = None,
        config: ZooKeeperConfig | None = None,
    ) -> None:
        self.runtime = runtime
        self.server_id = server_id
        self.name: str = zookeeper_name(server_id)
        self.storage: ZooKeeperStorage = ZooKeeperStorage() if storage is None else storage
        self.is_restored: bool = self.storage.last_logged_zxid > 0
        """True if the storage comes from an earlier process."""
        self._peers = peers
        self._config = config or ZooKeeperConfig()
        self.node: ZooKeeperActor | None = None
        self.process: Process = runtime.process(self.name)

    @property
    def is_alive(self) -> bool:
        return self.node is not None

    @property
    def server(self) -> ZooKeeperServer:
        """The running server core; ``UsageError`` if the server is down."""
        if self.node is None:
            raise UsageError(f"{self.name} is not running; start it first")
        return self.node.server

    def start(self) -> None:
        if self.node is not None:
            raise UsageError(f"{self.name} is already running")
        self.process = self.runtime.process(self.name)
        self.node = self.runtime.spawn(
            ZooKeeperActor,
            self.name,
            self.process,
            self.server_id,
            self._peers,
            self.storage,
            self._config,
        )

    def kill(self) -> None:
        """Kill the process; logged transactions stay in its storage."""
        if self.node is None:
            raise UsageError(f"{self.name} is not running")
        self.runtime.note("crash", self.name, f"{self.name} is killed")
        self.node = None
        self.runtime.kill_process(self.process)
