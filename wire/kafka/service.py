"""The state that the connections of a broker's listener share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ..request_memory import RequestMemory
from .backend import Backend, BrokerTopicNames
from .security.listener_security import OPEN, ListenerSecurity

if TYPE_CHECKING:
    from .codec import Codec, RequestHeader
    from .paced_queue import ClientLink

_RECEIVE_BUFFER_BYTES = 65536


class ClientObserver(Protocol):
    """Observes requests and answers; called on the event loop's thread, must not wait or raise."""

    def on_connect(self, broker_id: int, connection: str) -> None:
        """Called when a client has connected; ``connection`` is Kafka's name of the connection."""
        ...

    def on_disconnect(self, broker_id: int, connection: str) -> None:
        """Called when a connection has ended, no matter which side closed it."""
        ...

    def on_request(self, connection: str, header: RequestHeader, request: Any) -> None:
        """Called with each request that was decoded."""
        ...

    def on_response(
        self, broker_id: int, connection: str, header: RequestHeader, request: Any, response: Any
    ) -> None:
        """Called when a request is answered with a response message."""
        ...


class BrokerService:
    """A broker as its connections see it: its backend, codec, security and limits."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        broker_id: int,
        backend: Backend,
        *,
        listener_name: str = "PLAINTEXT",
        max_request_bytes: int = 104857600,
        idle_ms: int = 600000,
        queued_bytes_max: int = -1,
        security: ListenerSecurity = OPEN,
        has_consumer_groups: bool = False,
        link: ClientLink | None = None,
        observer: ClientObserver | None = None,
    ) -> None:
        """``max_request_bytes`` is ``socket.request.max.bytes``, ``idle_ms`` is
        ``connections.max.idle.ms`` (0 or less for no limit), ``queued_bytes_max`` is
        ``queued.max.request.bytes``. Without a ``link`` nothing is delayed; an ``observer`` is
        called with requests and responses.
        """
        self.broker_id: int = broker_id
        self.backend: Backend = backend
        self.listener_name: str = listener_name
        self.max_request_bytes: int = max_request_bytes
        self.idle_ms: int = idle_ms
        self.security: ListenerSecurity = security
        self.link: ClientLink | None = link
        self.observer: ClientObserver | None = observer
        self._kafka_version = backend.kafka_version
        self._topic_names = BrokerTopicNames(backend, broker_id)
        self._has_consumer_groups = has_consumer_groups
        self._codec: Codec | None = None
        self.connection_delay_ms: Callable[[str], int] = _no_delay_ms
        """Returns the milliseconds after which a new connection from an address is closed; 0 to
        accept it."""
        self.memory: RequestMemory = RequestMemory(loop, queued_bytes_max)
        self.receive_buffer: memoryview = memoryview(b"")
        """Buffer into which all connections receive, in turn; made for the first connection."""
        self._connection_count = 0

    @property
    def codec(self) -> Codec:
        """Decoder and encoder of all connections; made for the first one."""
        if self._codec is None:
            from .codec import Codec

            self._codec = Codec(
                self._kafka_version,
                self._topic_names,
                self.listener_name,
                has_consumer_groups=self._has_consumer_groups,
            )
        return self._codec

    def limit_connections(self, delay_ms: Callable[[str], int] | None) -> None:
        """Set ``connection_delay_ms``; None accepts all connections."""
        self.connection_delay_ms = _no_delay_ms if delay_ms is None else delay_ms

    def next_connection_index(self) -> int:
        if not self._connection_count:
            self.receive_buffer = memoryview(bytearray(_RECEIVE_BUFFER_BYTES))
        self._connection_count += 1
        return self._connection_count - 1


def _no_delay_ms(_address: str) -> int:
    """Accept every connection, as there is no quota."""
    return 0
