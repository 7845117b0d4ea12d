"""The parts of a broker process, and the interface of its socket side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ...protocol.config import BrokerConfig
from ...protocol.names import broker_name
from ...protocol.values import EndPoint
from ...protocol.versions import Behaviour
from ...replication.disk.disk import Disk

if TYPE_CHECKING:
    from ...statemachines.security.client_quotas import ClientQuotas

PORT = 9092
"""Port of the first listener in a simulation; other listeners have the ports after it."""


class BrokerListener(Protocol):
    """The socket side of a broker: TCP on the live runtimes, nothing in a simulation."""

    def bind(self, broker_id: int) -> tuple[EndPoint, ...]:
        """Bind the ports of a broker; connections queue, but nothing is read yet."""
        ...

    def serve(self) -> None:
        """Start reading requests."""
        ...

    def close(self) -> None:
        """Close every socket and refuse connections."""
        ...

    def lose_power(self) -> None:
        """Do as ``close``, but without notifying peers, where sockets allow that."""
        ...

    def enforce(self, quotas: ClientQuotas) -> None:
        """Throttle clients that exceed these quotas, from now on."""
        ...


class SimulatedListener:
    """The listener of a simulated broker: without sockets, but programs can be attached to it."""

    def __init__(
        self, listeners: Sequence[tuple[str, str]] = (("PLAINTEXT", "PLAINTEXT"),)
    ) -> None:
        """Create a broker's endpoints; ``listeners`` are pairs of name and security protocol."""
        self._listeners = tuple(listeners)
        self._front: BrokerListener | None = None
        self._broker_id: int | None = None
        self._is_serving = False
        self._quotas: ClientQuotas | None = None

    def attach(self, front: BrokerListener) -> None:
        """Attach the listener through which programs connect."""
        self._front = front
        if self._broker_id is None:
            return
        front.bind(self._broker_id)
        if self._quotas is not None:
            front.enforce(self._quotas)
        if self._is_serving:
            front.serve()

    def bind(self, broker_id: int) -> tuple[EndPoint, ...]:
        self._broker_id = broker_id
        if self._front is not None:
            self._front.bind(broker_id)
        host = broker_name(broker_id)
        return tuple(
            EndPoint(host, self.ports[name], name, protocol) for name, protocol in self._listeners
        )

    @property
    def ports(self) -> dict[str, int]:
        """Ports by listener name."""
        return {name: PORT + number for number, (name, _) in enumerate(self._listeners)}

    def serve(self) -> None:
        self._is_serving = True
        if self._front is not None:
            self._front.serve()

    def close(self) -> None:
        self._end()
        if self._front is not None:
            self._front.close()

    def lose_power(self) -> None:
        self._end()
        if self._front is not None:
            self._front.lose_power()

    def _end(self) -> None:
        self._broker_id = self._quotas = None
        self._is_serving = False

    def enforce(self, quotas: ClientQuotas) -> None:
        self._quotas = quotas
        if self._front is not None:
            self._front.enforce(quotas)


@dataclass
class BrokerSpec:
    """The parts of a broker process; restarts use the same object."""

    broker_id: int
    """Id of the broker; below 0 while a broker with ``broker.id=-1`` does not know its id."""
    config: BrokerConfig
    behaviour: Behaviour
    disk: Disk
    zookeepers: tuple[str, ...]
    listener: BrokerListener
    rack: str | None = None
    cluster_id: str = ""
    restart_delay_ms: float = 3000
    """Delay before a start is repeated that was refused because the broker is still registered."""
    on_state: list[Callable[[int, str], object]] = field(default_factory=list)
    """Called with (broker id, state) at each change of the broker's state."""

    def meta_properties(self) -> dict[str, dict[str, str]]:
        """Return the meta.properties of the log directories that can be read, by path."""
        disk = self.disk
        online = [path for path in disk.directories if path not in disk.offline_dirs]
        return {path: disk.read_meta_properties(path) for path in online}
