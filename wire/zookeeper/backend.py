"""The ZooKeeper servers behind a listener, as it needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class ZooKeeperLink(Protocol):
    """The way from one connection to its server and back."""

    connection_id: int
    """Unique among all connections to the server, over its restarts."""

    def send(self, message: Any) -> None:
        """Hand the server a packet of ``zkfake.messages``."""
        ...

    def close(self) -> None:
        """The connection is gone: deliver nothing more. Idempotent."""
        ...


class ZooKeeperBackend(Protocol):
    """The servers behind a listener; called on the loop's thread only."""

    def open(
        self, server_id: int, on_message: Callable[[Any], None], on_lost: Callable[[], None]
    ) -> ZooKeeperLink | None:
        """A link to a server, None when it does not run.

        ``on_message`` is called on the loop's thread with every packet of the server,
        ``on_lost`` when the server has died.
        """
        ...
