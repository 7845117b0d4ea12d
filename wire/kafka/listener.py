"""The listening socket of one broker, and its connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..accepting import AcceptingListener
from .service import BrokerService

if TYPE_CHECKING:
    from .connection import Connection


class KafkaListener(AcceptingListener["Connection"]):
    """A broker's listener on TCP."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, host: str, port: int, service: BrokerService
    ) -> None:
        super().__init__(loop, host, port, f"broker {service.broker_id}", service.security.tls)
        self.service: BrokerService = service

    def _make_connection(self) -> Connection:
        from .connection import Connection  # imported on the first connection

        return Connection(self, self.service)
