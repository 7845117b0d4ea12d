"""The state that the connections of a ZooKeeper server's listener share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

from ..request_memory import RequestMemory
from .port import ZooKeeperPort

MAX_PACKET_BYTES = 0xFFFFF
"""Default of ``jute.maxbuffer``."""
UNPROCESSED_BYTES_MAX = 64 * 1024 * 1024
"""Limit for all connections together; ZooKeeper only limits each one, by ``jute.maxbuffer``."""
CONNECT_TIMEOUT_MS = 10_000
"""Default of ``zookeeper.nio.sessionlessCnxnTimeout``, after which a connection without a session
is closed."""


OpenPort: TypeAlias = Callable[
    [int, Callable[[Any], None], Callable[[], None]], "ZooKeeperPort | None"
]
"""Returns a port to the server with this id, or None if the server does not run. The first function
is called with each of its messages, the second when it dies. All run on the event loop's thread."""


class ZooKeeperService:
    """A ZooKeeper server as its connections see it: how to reach it, and its limits."""

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
