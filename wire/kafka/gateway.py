"""Sends requests of clients as messages to the nodes of a runtime, and their replies as answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...actors.delivery import Delivery, Endpoint
from ...protocol.data import RequestContext
from ...protocol.declaring.native import mypyc_attr
from ...protocol.names import TCP_CLIENTS, broker_name
from ...protocol.values import uuid_bytes, uuid_text
from .backend import Respond
from .operations import TcpOperation

if TYPE_CHECKING:
    from ...actors.broker.broker import Broker
    from ...actors.broker.security import BrokerSecurity
    from ...actors.network.network import Network
    from ...actors.runtime.runtime import Runtime
    from ...statemachines.security.authorizer import Authorizer


class ClientRequest(Endpoint):
    """The sender of one request that arrived over TCP; passes the reply to its connection."""

    __slots__ = (
        "_respond",
        "blocked",
        "has_byte_delays",
        "has_byte_faults",
        "machine",
        "name",
        "stopped",
    )

    def __init__(self, name: str, machine: str, respond: Respond, *, has_byte_faults: bool) -> None:
        self.name: str = name
        self.machine: str = machine
        self.blocked: bool = False
        self.stopped: bool = False
        self.has_byte_delays: bool = True
        self.has_byte_faults: bool = has_byte_faults
        self._respond = respond

    def is_waiting_for(self, correlation: int) -> bool:
        return True

    def receive(self, delivery: Delivery) -> None:
        self._respond(delivery.message)


class TcpLink:
    """The link between the TCP clients and one broker, as a ``ClientLink``."""

    __slots__ = ("_broker", "_network")

    def __init__(self, network: Network, broker_id: int) -> None:
        self._network = network
        self._broker = broker_name(broker_id)

    def to_broker_s(self, size: int) -> float:
        return self._network.transit_us(TCP_CLIENTS, self._broker, size) / 1e6

    def to_client_s(self, size: int) -> float:
        return self._network.transit_us(self._broker, TCP_CLIENTS, size) / 1e6


@mypyc_attr(allow_interpreted_subclasses=True)
class Gateway:
    """The brokers of a runtime, as listeners see them."""

    def __init__(self, runtime: Runtime, kafka_version: str) -> None:
        self.runtime = runtime
        self.kafka_version = kafka_version

    def topic_id(self, broker_id: int, topic: str) -> bytes | None:
        broker = self._broker(broker_id)
        text = "" if broker is None else broker.metadata_cache.topic_id(topic)
        return uuid_bytes(text) if text else None

    def topic_name(self, broker_id: int, topic_id: bytes) -> str | None:
        broker = self._broker(broker_id)
        return None if broker is None else broker.metadata_cache.topic_name(uuid_text(topic_id))

    def authorizer(self, broker_id: int) -> Authorizer | None:
        """Return the broker's authorizer; None while the broker is down."""
        security = self.security(broker_id)
        return None if security is None else security.authorizer

    def knows_topic(self, broker_id: int, topic: str) -> bool:
        """Return whether the broker knows the topic."""
        broker = self._broker(broker_id)
        return broker is not None and broker.metadata_cache.contains_topic(topic)

    def partition_count(self, broker_id: int, topic: str) -> int:
        """Return the topic's number of partitions in the broker's metadata."""
        broker = self._broker(broker_id)
        cache = None if broker is None else broker.metadata_cache
        return 0 if cache is None else sum(1 for _ in cache.topic_partitions(topic))

    def security(self, broker_id: int) -> BrokerSecurity | None:
        """Return the broker's knowledge of users; None while the broker is down."""
        broker = self._broker(broker_id)
        return None if broker is None else broker.security

    def _sender(self, client: str, respond: Respond) -> ClientRequest:
        return ClientRequest(client, TCP_CLIENTS, respond, has_byte_faults=False)

    def _client_of(self, connection_name: str, request: object, context: RequestContext) -> str:
        """Return the name of the client that sent a request."""
        return connection_name

    def submit(
        self,
        broker_id: int,
        connection_name: str,
        request: object,
        context: RequestContext,
        respond: Respond,
    ) -> None:
        """Send a client's request to its broker; a recorded run also records an operation."""
        client = self._client_of(connection_name, request, context)
        runtime = self.runtime
        before = runtime.cause
        if runtime.recorder is not None:
            operation = TcpOperation(runtime, client, context.client_id, request, respond)
            respond, runtime.cause = operation.end, operation.number
        correlation = runtime.next_correlation()
        target = broker_name(broker_id)
        sender = self._sender(client, respond)
        runtime.network.send(sender, target, request, correlation, context)
        runtime.cause = before

    def _broker(self, broker_id: int) -> Broker | None:
        """Return the broker; None if its process is not alive."""
        name = broker_name(broker_id)
        process = self.runtime.processes.get(name)
        broker: Any = None if process is None else process.nodes.get(name)
        return broker  # type: ignore[no-any-return]
