"""A ZooKeeper server as a process: it can be killed and started again with its storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol.errors import UsageError
from ...protocol.names import zookeeper_name
from ...zkfake.server.roles import ZooKeeperConfig
from ...zkfake.server.server import ZooKeeperServer
from ...zkfake.server.storage import ZooKeeperStorage
from ..runtime.runtime import Runtime
from .server import ZooKeeperActor

if TYPE_CHECKING:
    from ..surroundings import Process


class ZooKeeperProcess:
    """One server's life; the storage survives it."""

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
        """Whether the storage comes from a former process."""
        self._peers = peers
        self._config = config or ZooKeeperConfig()
        self.node: ZooKeeperActor | None = None
        self.process: Process = runtime.process(self.name)

    @property
    def is_alive(self) -> bool:
        return self.node is not None

    @property
    def server(self) -> ZooKeeperServer:
        """The running server core; ``UsageError`` when it is down."""
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
        """End the process; logged transactions stay in its storage."""
        if self.node is None:
            raise UsageError(f"{self.name} is not running")
        self.runtime.note("crash", self.name, f"{self.name} is killed")
        self.node = None
        self.runtime.kill_process(self.process)
