"""The listening socket of one ZooKeeper server, and its connections."""

from __future__ import annotations

import asyncio

from ..accepting import AcceptingListener
from .connection import ZooKeeperConnection
from .service import ZooKeeperService


class ZooKeeperListener(AcceptingListener[ZooKeeperConnection]):
    """A server's listener on TCP."""

    __slots__ = ("service",)

    def __init__(
        self, loop: asyncio.AbstractEventLoop, host: str, port: int, service: ZooKeeperService
    ) -> None:
        super().__init__(loop, host, port, f"ZooKeeper server {service.server_id}")
        self.service: ZooKeeperService = service

    def _make_connection(self) -> ZooKeeperConnection:
        return ZooKeeperConnection(self, self.service)
