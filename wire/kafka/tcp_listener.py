"""Real clients over TCP: connects the listeners of ``wire`` to the nodes of a runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...protocol.names import broker_name
from ...protocol.values import EndPoint, frozen
from .backend import Backend
from .gateway import Gateway, TcpLink
from .listener import KafkaListener
from .service import BrokerService, ClientObserver

if TYPE_CHECKING:
    from ...actors.runtime.live import LiveRuntime
    from ...actors.runtime.threaded import ThreadedRuntime
    from ...protocol.security.configuration import ListenerSpec
    from ...protocol.security.scram import ScramCredential
    from ...statemachines.security.client_quotas import ClientQuotas
    from .security.listener_security import ListenerSecurity
    from .security.sasl import TokenCredential
    from .security.throttling import RequestTimer


class TcpGateway(Gateway):
    """The ``Backend`` of the listeners; sends every request as a message over the network."""

    runtime: LiveRuntime | ThreadedRuntime


@frozen
class BrokerCredentials:
    """A broker's knowledge of users: passwords from its settings, the rest from ZooKeeper."""

    users: Mapping[str, str]
    gateway: Gateway
    broker_id: int

    def password(self, user: str) -> str | None:
        return self.users.get(user)

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        security = self.gateway.security(self.broker_id)
        return None if security is None else security.scram.get(mechanism, user)

    def delegation_token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        security = self.gateway.security(self.broker_id)
        found = None if security is None else security.tokens.credential(mechanism, token_id)
        if found is None:
            return None
        from .security.sasl import TokenCredential

        token, credential = found
        return TokenCredential(token.owner.partition(":")[2], credential, token.expires_at_ms)


class TcpListener:
    """A broker's listeners on one address; they keep their ports over restarts of the broker."""

    def __init__(
        self,
        gateway: TcpGateway,
        host: str,
        listeners: Sequence[tuple[ListenerSpec, int]],
        security_of: Callable[[int, ListenerSpec], ListenerSecurity],
        *,
        advertised_host: str,
        max_request_bytes: int,
        idle_ms: int,
        queued_bytes_max: int,
        has_consumer_groups: bool = False,
        guard: Callable[[TcpGateway], Backend] | None = None,
    ) -> None:
        """``listeners`` has the port of each listener, 0 for a free port; ``security_of`` returns
        the security of a broker's listener; clients are given ``advertised_host``; the limits are
        those of ``BrokerService``; ``guard`` returns a backend between the connections and the
        gateway.
        """
        self._gateway = gateway
        self._backend: Backend = gateway if guard is None else guard(gateway)
        self._runtime = gateway.runtime
        self._specs = tuple(listeners)
        self._security_of = security_of
        self._max_request_bytes = max_request_bytes
        self._idle_ms = idle_ms
        self._queued_bytes_max = queued_bytes_max
        self._has_consumer_groups = has_consumer_groups
        self.host = host
        self._advertised_host = advertised_host
        self._ports = {spec.name: port for spec, port in self._specs}
        self._listeners: dict[str, KafkaListener] = {}
        self._broker_id = -1
        self._is_released = False
        """True if the cluster stops: no port is bound again, even if a broker still asks for it."""
        self._timer: RequestTimer | None = None
        self._observer: ClientObserver | None = None

    @property
    def port(self) -> int:
        """Port of the first listener; 0 before it is bound, if it takes a free port."""
        return self._ports[self._specs[0][0].name]

    @property
    def ports(self) -> dict[str, int]:
        """The ports by the listeners' names."""
        return dict(self._ports)

    def bind(self, broker_id: int) -> tuple[EndPoint, ...]:
        def bind() -> None:
            if self._broker_id != broker_id:
                for listener in self._listeners.values():
                    listener.close()  # its service has the former id of the broker
                self._listeners.clear()
                self._broker_id = broker_id
            for spec, _ in self._specs:
                if spec.name not in self._listeners:
                    self._listeners[spec.name] = self._make(spec, self._ports[spec.name])
                if not self._is_released:
                    self._ports[spec.name] = self._listeners[spec.name].bind()

        self._runtime.thread.call(bind)
        return tuple(
            EndPoint(self._advertised_host, self._ports[spec.name], spec.name, spec.protocol)
            for spec, _ in self._specs
        )

    def _make(self, spec: ListenerSpec, port: int) -> KafkaListener:
        loop = self._runtime.loop
        service = BrokerService(
            loop,
            self._broker_id,
            self._backend,
            listener_name=spec.name,
            max_request_bytes=self._max_request_bytes,
            idle_ms=self._idle_ms,
            queued_bytes_max=self._queued_bytes_max,
            security=self._security_of(self._broker_id, spec),
            has_consumer_groups=self._has_consumer_groups,
            link=TcpLink(self._runtime.network, self._broker_id),
            observer=self._observer,
        )
        return KafkaListener(loop, self.host, port, service)

    def observe(self, observer: ClientObserver | None) -> None:
        """Set the observer of all requests and responses from now on; None removes it."""

        def begin() -> None:
            self._observer = observer
            for listener in self._listeners.values():
                listener.service.observer = observer

        self._runtime.thread.call(begin)

    def enforce(self, quotas: ClientQuotas) -> None:
        """Throttle clients that exceed these quotas; without a quota nothing is counted."""
        gateway, backend = self._gateway, self._backend
        if quotas.is_any:
            from .security.throttling import ThrottlingBackend  # imported only for quotas

            now_ms = self._runtime.now_ms
            backend = ThrottlingBackend(backend, quotas, now_ms, gateway.partition_count)
        for listener in self._listeners.values():
            listener.service.backend = backend
            listener.service.limit_connections(
                (lambda address: quotas.connect(address, self._runtime.now_ms()))
                if quotas.limits_connections
                else None
            )

        self._time_requests(quotas)

    def _time_requests(self, quotas: ClientQuotas) -> None:
        """Measure how long requests take, while a quota limits that time."""
        network = self._runtime.network
        if self._timer is not None:
            network.stop_observing(self._timer.on_delivery)
            self._timer = None
        if quotas.limits_request_time:
            from .security.throttling import RequestTimer

            name = broker_name(self._broker_id)
            self._timer = RequestTimer(name, quotas, self._runtime.now_ms)
            network.observe(self._timer.on_delivery)

    def serve(self) -> None:
        self._with_all(KafkaListener.serve)

    def close(self) -> None:
        """Refuse clients; the ports stay bound, so that a restart can use them again."""
        self._with_all(lambda listener: listener.close(keep_port=True))

    def lose_power(self) -> None:
        """Do the same as ``close``: clients on the same machine notice the end in any case."""
        self.close()

    def release(self) -> None:
        """Release the ports for good, for a cluster that stops while its brokers still run."""

        def release() -> None:
            self._is_released = True
            for listener in self._listeners.values():
                listener.close()

        self._runtime.thread.call(release)

    def _with_all(self, action: Callable[[KafkaListener], object]) -> None:
        def act() -> None:
            if not self._is_released:
                for listener in self._listeners.values():
                    action(listener)

        if self._listeners:
            self._runtime.thread.call(act)
