"""The common part of the connections of a ZooKeeper server's listener."""

from __future__ import annotations

import asyncio

from ..request_memory import RequestMemory
from .backend import ZooKeeperBackend

MAX_PACKET_BYTES = 0xFFFFF
"""Default of ``jute.maxbuffer``."""
UNPROCESSED_BYTES_MAX = 64 * 1024 * 1024
"""Of all connections together; ZooKeeper bounds each by ``jute.maxbuffer`` only."""
CONNECT_TIMEOUT_MS = 10_000
"""Default of ``zookeeper.nio.sessionlessCnxnTimeout``: for connections without a session."""


class ZooKeeperService:
    """A ZooKeeper server as its connections see it: who answers, and within which limits."""

    __slots__ = ("backend", "connect_timeout_ms", "max_packet_bytes", "memory", "server_id")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        server_id: int,
        backend: ZooKeeperBackend,
        *,
        max_packet_bytes: int = MAX_PACKET_BYTES,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
    ) -> None:
        self.server_id: int = server_id
        self.backend: ZooKeeperBackend = backend
        self.max_packet_bytes: int = max_packet_bytes
        self.memory: RequestMemory = RequestMemory(loop, UNPROCESSED_BYTES_MAX)
        self.connect_timeout_ms: int = connect_timeout_ms
