"""The ZooKeeper server actor: one ``zkfake`` server core on the network."""

from __future__ import annotations

from ...zkfake.server.roles import ZooKeeperConfig
from ...zkfake.server.server import ZooKeeperServer
from ...zkfake.server.storage import ZooKeeperStorage
from ..delivery import Delivery
from ..node import Node
from ..surroundings import Process, Surroundings


class ZooKeeperActor(Node):
    """Feeds a server core; the storage outlives the actor as a disk does."""

    def __init__(
        self,
        runtime: Surroundings,
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
