"""Real clients over TCP: joins the listeners of ``wire`` to the nodes of a runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...protocol.data import RequestContext
from ...protocol.names import TCP_CLIENTS, broker_name
from ...protocol.values import EndPoint
from .listener import KafkaListener
from .service import BrokerService
from .topic_names import uuid_bytes, uuid_text

if TYPE_CHECKING:
    from ...actors.broker.broker import Broker
    from ...actors.delivery import Delivery
    from ...actors.runtime.live import LiveRuntime
    from ...actors.runtime.threaded import ThreadedRuntime


class _TcpRequest:
    """The asker of one request that came over a connection: takes the reply to the socket."""

    __slots__ = ("_respond", "blocked", "name", "stopped")
    machine = TCP_CLIENTS

    def __init__(self, name: str, respond: Callable[[object], None]) -> None:
        self.name = name
        self.blocked = False
        self.stopped = False
        self._respond = respond

    def is_waiting_for(self, _correlation: int) -> bool:
        return True

    def receive(self, delivery: Delivery) -> None:
        self._respond(delivery.message)


class TcpGateway:
    """The ``Backend`` of the listeners: every request becomes a message of the network."""

    def __init__(
        self,
        runtime: LiveRuntime | ThreadedRuntime,
        kafka_version: str,
    ) -> None:
        self.runtime = runtime
        self.kafka_version = kafka_version

    def submit(
        self,
        broker_id: int,
        connection_name: str,
        request: object,
        context: RequestContext,
        respond: Callable[[object], None],
    ) -> None:
        runtime = self.runtime
        runtime.network.send(
            _TcpRequest(connection_name, respond),
            broker_name(broker_id),
            request,
            runtime.next_correlation(),
            context,
        )

    def topic_id(self, broker_id: int, topic: str) -> bytes | None:
        broker = self._broker(broker_id)
        text = "" if broker is None else broker.metadata_cache.topic_id(topic)
        return uuid_bytes(text) if text else None

    def topic_name(self, broker_id: int, topic_id: bytes) -> str | None:
        broker = self._broker(broker_id)
        return None if broker is None else broker.metadata_cache.topic_name(uuid_text(topic_id))

    def _broker(self, broker_id: int) -> Broker | None:
        """The broker, if its process is alive."""
        name = broker_name(broker_id)
        process = self.runtime.processes.get(name)
        broker: Any = None if process is None else process.nodes.get(name)
        return broker  # type: ignore[no-any-return]


class TcpListener:
    """A broker's listener on 127.0.0.1; keeps its port over restarts of the broker."""

    def __init__(
        self,
        gateway: TcpGateway,
        host: str,
        port: int,
        *,
        max_request_bytes: int,
        idle_ms: int,
        queued_bytes_max: int,
    ) -> None:
        """The limits are those of ``BrokerService``."""
        self._gateway = gateway
        self._runtime = gateway.runtime
        self._max_request_bytes = max_request_bytes
        self._idle_ms = idle_ms
        self._queued_bytes_max = queued_bytes_max
        self.host = host
        self.port = port
        self._listener: KafkaListener | None = None
        self._broker_id = -1

    def bind(self, broker_id: int) -> EndPoint:
        def bind() -> int:
            if self._listener is not None and self._broker_id != broker_id:
                self._listener.close()  # its service answers for the id that the broker had
                self._listener = None
            if self._listener is None:
                self._broker_id = broker_id
                loop = self._runtime.loop
                service = BrokerService(
                    loop,
                    broker_id,
                    self._gateway,
                    max_request_bytes=self._max_request_bytes,
                    idle_ms=self._idle_ms,
                    queued_bytes_max=self._queued_bytes_max,
                )
                self._listener = KafkaListener(loop, self.host, self.port, service)
            self._listener.bind()
            return self._listener.port

        self.port = self._runtime.thread.call(bind)
        return EndPoint(self.host, self.port)

    def serve(self) -> None:
        listener = self._listener
        if listener is not None:
            self._runtime.thread.call(listener.serve)

    def close(self) -> None:
        """Refuse clients; the port stays ours, so that a restart finds it free."""
        listener = self._listener
        if listener is not None:
            self._runtime.thread.call(lambda: listener.close(keep_port=True))

    def release(self) -> None:
        """Give the port back; for a cluster that stops."""
        listener = self._listener
        if listener is not None:
            self._runtime.thread.call(listener.close)
