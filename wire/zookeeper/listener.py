"""The listening socket of one ZooKeeper server, and its connections."""

from __future__ import annotations

import asyncio

from ..accepting import AcceptingListener
from ..request_memory import RequestMemory
from .connection import ZooKeeperBackend, ZooKeeperConnection

MAX_PACKET_BYTES = 0xFFFFF
"""Default of ``jute.maxbuffer``."""
UNPROCESSED_BYTES_MAX = 64 * 1024 * 1024
"""Of all connections together; ZooKeeper bounds each by ``jute.maxbuffer`` only."""
CONNECT_TIMEOUT_MS = 10_000
"""Default of ``zookeeper.nio.sessionlessCnxnTimeout``: for connections without a session."""


class ZooKeeperListener(AcceptingListener[ZooKeeperConnection]):
    """One server's listener on TCP."""

    __slots__ = ("backend", "connect_timeout_ms", "max_packet_bytes", "memory", "server_id")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        host: str,
        port: int,
        server_id: int,
        backend: ZooKeeperBackend,
        *,
        max_packet_bytes: int = MAX_PACKET_BYTES,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
    ) -> None:
        super().__init__(loop, host, port, f"ZooKeeper server {server_id}")
        self.server_id = server_id
        self.backend = backend
        self.max_packet_bytes = max_packet_bytes
        self.memory = RequestMemory(loop, UNPROCESSED_BYTES_MAX)
        self.connect_timeout_ms = connect_timeout_ms

    def _make_connection(self) -> ZooKeeperConnection:
        return ZooKeeperConnection(self)
