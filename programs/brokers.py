"""Listeners of brokers on the simulated network, for programs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ..actors.broker.spec import PORT
from ..protocol.config import CONSUMER_PROTOCOL, BrokerConfig
from ..protocol.data import RequestContext
from ..protocol.names import broker_name
from ..protocol.security.configuration import ListenerSpec, SecurityConfig
from ..protocol.values import EndPoint
from ..wire.kafka.backend import Backend, Respond
from ..wire.kafka.gateway import ClientRequest, Gateway
from ..wire.kafka.listener import KafkaListener
from ..wire.kafka.security.listener_security import OPEN, ListenerSecurity
from ..wire.kafka.security.throttling import ThrottlingBackend
from ..wire.kafka.service import BrokerService
from .loop import SimulatedLoop
from .names import Names
from .program_loop import tls_protocol
from .tcp import ConnectionEnd, Machine
from .transport import StreamTransport

if TYPE_CHECKING:
    from ..actors.runtime.virtual import VirtualRuntime
    from ..statemachines.security.client_quotas import ClientQuotas


class Security(Protocol):
    """Security requirements of the brokers' listeners."""

    @property
    def config(self) -> SecurityConfig: ...

    def guard(self, config: BrokerConfig) -> Callable[[Gateway], Backend] | None:
        """Return a factory of the backend that authorizes requests; None without an authorizer."""
        ...

    def listener_security(
        self, gateway: Gateway, config: BrokerConfig, broker_id: int, listener: ListenerSpec
    ) -> ListenerSecurity:
        """Return the security requirements of one listener of a broker."""
        ...


class ProgramGateway(Gateway):
    """The ``Backend`` of brokers' listeners whose clients are programs."""

    def __init__(self, runtime: VirtualRuntime, kafka_version: str, names: Names) -> None:
        super().__init__(runtime, kafka_version)
        self._names = names

    def _client_of(self, connection_name: str, request: object, context: RequestContext) -> str:
        program = self._names.name_of(context.client_host)
        member_id = getattr(request, "member_id", None)
        if member_id and self.runtime.recorder is not None:
            self.runtime.owners[member_id] = program
        return program

    def _sender(self, client: str, respond: Respond) -> ClientRequest:
        return ClientRequest(client, client, respond, has_byte_faults=True)


class _Listener(KafkaListener):
    """A broker's listener without a socket."""

    __slots__ = ("_pending_ends",)

    def __init__(self, loop: asyncio.AbstractEventLoop, port: int, service: BrokerService) -> None:
        super().__init__(loop, broker_name(service.broker_id), port, service)
        self._pending_ends: list[ConnectionEnd] = []

    def serve(self) -> None:
        self._accepting = True
        pending, self._pending_ends = self._pending_ends, []
        for end in pending:
            self.accept(end)

    def accept(self, end: ConnectionEnd) -> None:
        """Accept a connection; before the listener serves, connections wait, as in a kernel."""
        if not self._accepting:
            self._pending_ends.append(end)
            return
        protocol = self._make_connection()
        loop: SimulatedLoop = self.loop  # type: ignore[assignment]
        if self._tls is not None:
            protocol = tls_protocol(
                loop, protocol, self._tls, loop.create_future(), server_side=True
            )
        StreamTransport(loop, end, protocol, has_socket=False).begin()


class BrokerFront:
    """The socket side of one broker, on the simulated network: a ``BrokerListener``."""

    def __init__(
        self, gateway: ProgramGateway, names: Names, config: BrokerConfig, security: Security | None
    ) -> None:
        self._gateway = gateway
        self._names = names
        self._config = config
        self._security = security
        guard = None if security is None else security.guard(config)
        self._backend: Backend = gateway if guard is None else guard(gateway)
        self._listeners: list[_Listener] = []
        self._machine: Machine | None = None

    def bind(self, broker_id: int) -> tuple[EndPoint, ...]:
        self._machine = machine = self._names.add(broker_name(broker_id), 0)
        loop = SimulatedLoop(self._gateway.runtime, machine.name)  # type: ignore[abstract,arg-type]
        if not machine.is_up:
            machine.power_on()
        security = self._security
        if security is None:
            self._listeners = [self._listener(loop, broker_id, "PLAINTEXT", PORT, OPEN)]
        else:
            self._listeners = [
                self._listener(
                    loop,
                    broker_id,
                    spec.name,
                    PORT + number,
                    security.listener_security(self._gateway, self._config, broker_id, spec),
                )
                for number, spec in enumerate(security.config.listeners)
            ]
        for listener in self._listeners:
            machine.acceptors[listener.port] = listener.accept
        return ()

    def _listener(
        self, loop: SimulatedLoop, broker_id: int, name: str, port: int, security: ListenerSecurity
    ) -> _Listener:
        config = self._config
        service = BrokerService(
            loop,
            broker_id,
            self._backend,
            listener_name=name,
            max_request_bytes=config["socket.request.max.bytes"],
            idle_ms=config["connections.max.idle.ms"],
            queued_bytes_max=config["queued.max.request.bytes"],
            security=security,
            has_consumer_groups=CONSUMER_PROTOCOL
            in config["group.coordinator.rebalance.protocols"],
        )
        return _Listener(loop, port, service)

    def serve(self) -> None:
        for listener in self._listeners:
            listener.serve()

    def close(self) -> None:
        self._close()
        if self._machine is not None:
            self._machine.process_died()

    def _close(self) -> None:
        for listener in self._listeners:
            listener.close()

    def lose_power(self) -> None:
        if self._machine is not None:
            self._machine.power_off()
        self._close()

    def enforce(self, quotas: ClientQuotas) -> None:
        gateway, backend = self._gateway, self._backend
        now_ms = gateway.runtime.now_ms
        if quotas.is_any:
            backend = ThrottlingBackend(backend, quotas, now_ms, gateway.partition_count)
        for listener in self._listeners:
            listener.service.backend = backend
            listener.service.limit_connections(
                (lambda address: quotas.connect(address, now_ms()))
                if quotas.limits_connections
                else None
            )
