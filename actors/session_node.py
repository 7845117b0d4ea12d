"""A node with a ZooKeeper session of its own."""

from __future__ import annotations

from ..protocol.declaring.native import mypyc_attr
from ..zkfake.client.client import ZooKeeperClient
from .delivery import Delivery
from .interfaces import AbstractRuntime, Process
from .node import Node


@mypyc_attr(allow_interpreted_subclasses=True)
class SessionNode(Node):
    """Passes messages of ZooKeeper on to its client, which ends together with the node."""

    def __init__(
        self,
        runtime: AbstractRuntime,
        name: str,
        process: Process,
        servers: tuple[str, ...],
        session_timeout_ms: int,
        max_in_flight: int = 10,
    ) -> None:
        super().__init__(runtime, name, process)
        self.zk_client: ZooKeeperClient = ZooKeeperClient(
            self, servers, session_timeout_ms, max_in_flight
        )

    def handle(self, delivery: Delivery) -> None:
        if not self.zk_client.on_message(delivery.sender.name, delivery.message):
            super().handle(delivery)

    def peer_lost(self, machine: str, names: frozenset[str]) -> None:
        super().peer_lost(machine, names)
        for name in sorted(names):
            self.zk_client.on_disconnect(name)

    def on_halt(self) -> None:
        self.zk_client.abandon()
