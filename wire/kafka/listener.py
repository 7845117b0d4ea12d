"""The listening socket of one broker, and its connections."""

from __future__ import annotations

import asyncio

from ..accepting import AcceptingListener
from .connection import Connection
from .service import BrokerService


class KafkaListener(AcceptingListener[Connection]):
    """A broker's listener on TCP."""

    __slots__ = ("service",)

    def __init__(
        self, loop: asyncio.AbstractEventLoop, host: str, port: int, service: BrokerService
    ) -> None:
        super().__init__(loop, host, port, f"broker {service.broker_id}", service.security.tls)
        self.service: BrokerService = service

    def _make_connection(self) -> Connection:
        return Connection(self, self.service)
