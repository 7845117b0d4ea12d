"""Parts of a broker process, and the socket side it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ...protocol.config import BrokerConfig
from ...protocol.names import broker_name
from ...protocol.values import EndPoint
from ...protocol.versions import Behaviour
from ...replication.disk.disk import Disk
from ...statemachines.security.client_quotas import ClientQuotas


class BrokerListener(Protocol):
    """The socket side of a broker: TCP on the live runtimes, nothing in a simulation."""

    def bind(self, broker_id: int) -> tuple[EndPoint, ...]:
        """Take the ports for a broker; connections queue but nothing is read yet."""
        ...

    def serve(self) -> None:
        """Start reading requests."""
        ...

    def close(self) -> None:
        """Close every socket and refuse connections."""
        ...

    def enforce(self, quotas: ClientQuotas) -> None:
        """Throttle clients that exceed these quotas, from now on."""
        ...


class SimulatedListener:
    """Endpoint of a broker that no socket reaches."""

    def bind(self, broker_id: int) -> tuple[EndPoint, ...]:
        return (EndPoint(broker_name(broker_id), 9092),)

    def serve(self) -> None:
        """No socket, nothing to read."""

    def close(self) -> None:
        """No socket, nothing to close."""

    def enforce(self, quotas: ClientQuotas) -> None:
        """No socket, so no client to throttle."""


@dataclass
class BrokerSpec:
    """Parts of a broker process; the same object for every restart."""

    broker_id: int
    """Below 0 while a broker with ``broker.id=-1`` does not know its id."""
    config: BrokerConfig
    behaviour: Behaviour
    disk: Disk
    zookeepers: tuple[str, ...]
    listener: BrokerListener
    rack: str | None = None
    cluster_id: str = ""
    restart_delay_ms: float = 3000
    """How long a start waits that was refused because the broker is registered already."""
    on_state: list[Callable[[int, str], object]] = field(default_factory=list)
    """Called with (broker id, state) at each change of the broker's state."""

    def meta_properties(self) -> dict[str, dict[str, str]]:
        """Return the meta.properties of the log directories that can be read, by path."""
        disk = self.disk
        online = [path for path in disk.directories if path not in disk.offline_dirs]
        return {path: disk.read_meta_properties(path) for path in online}
