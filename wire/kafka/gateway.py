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
    from ...actors.broker.process import BrokerProcess
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
        brokers: Callable[[], dict[int, BrokerProcess]],
        kafka_version: str,
    ) -> None:
        self._runtime = runtime
        self._brokers = brokers
        self.kafka_version = kafka_version

    def submit(
        self,
        broker_id: int,
        connection_name: str,
        request: object,
        context: RequestContext,
        respond: Callable[[object], None],
    ) -> None:
        runtime = self._runtime
        runtime.network.send(
            _TcpRequest(connection_name, respond),
            broker_name(broker_id),
            request,
            runtime.next_correlation(),
            context,
        )

    def topic_id(self, broker_id: int, topic: str) -> bytes | None:
        broker = self._brokers()[broker_id].broker
        text = "" if broker is None else broker.metadata_cache.topic_id(topic)
        return uuid_bytes(text) if text else None

    def topic_name(self, broker_id: int, topic_id: bytes) -> str | None:
        broker = self._brokers()[broker_id].broker
        return None if broker is None else broker.metadata_cache.topic_name(uuid_text(topic_id))


class TcpListener:
    """A broker's listener on 127.0.0.1; keeps its port over restarts of the broker."""

    def __init__(self, runtime: LiveRuntime | ThreadedRuntime, host: str, port: int) -> None:
        self._runtime = runtime
        self.host = host
        self.port = port
        self.gateway: Any = None
        self.max_request_bytes = 104857600
        self.idle_ms = 600000
        self.queued_bytes_max = -1
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
                    self.gateway,
                    max_request_bytes=self.max_request_bytes,
                    idle_ms=self.idle_ms,
                    queued_bytes_max=self.queued_bytes_max,
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
