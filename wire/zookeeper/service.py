"""The common part of the connections of a ZooKeeper server's listener."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

from ..request_memory import RequestMemory
from .port import ZooKeeperPort

MAX_PACKET_BYTES = 0xFFFFF
"""Default of ``jute.maxbuffer``."""
UNPROCESSED_BYTES_MAX = 64 * 1024 * 1024
"""Of all connections together; ZooKeeper bounds each by ``jute.maxbuffer`` only."""
CONNECT_TIMEOUT_MS = 10_000
"""Default of ``zookeeper.nio.sessionlessCnxnTimeout``: for connections without a session."""


OpenPort: TypeAlias = Callable[
    [int, Callable[[Any], None], Callable[[], None]], "ZooKeeperPort | None"
]
"""Gives a port to the server of this id, None when it does not run: the first function is called
with each of its packets, the second when it has died. On the loop's thread, as both are."""


class ZooKeeperService:
    """A ZooKeeper server as its connections see it: who answers, and within which limits."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        server_id: int,
        open_port: OpenPort,
        *,
        max_packet_bytes: int = MAX_PACKET_BYTES,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
    ) -> None:
        self.server_id: int = server_id
        self.open: OpenPort = open_port
        self.max_packet_bytes: int = max_packet_bytes
        self.memory: RequestMemory = RequestMemory(loop, UNPROCESSED_BYTES_MAX)
        self.connect_timeout_ms: int = connect_timeout_ms
