"""``Side``: what a scenario can do to a cluster, simulated, embedded or of Kafka."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fakekafka.tests.fidelity.protocol.client import Client, Closed, Line

SESSION_TIMEOUT_MS = 2500
_EXPIRY_S = 60.0

CONFIG: Mapping[str, str] = {
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "500",
    "replica.fetch.backoff.ms": "200",
    "replica.lag.time.max.ms": "5000",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "unclean.leader.election.enable": "false",
    "delete.topic.enable": "true",
}
"""Configuration of all brokers on every side; a cluster's shape may override and extend it."""


@dataclass(frozen=True)
class ClusterShape:
    """Number, racks and configuration of brokers; scenarios of equal shape can share them."""

    brokers: int = 3
    config: tuple[tuple[str, str | None], ...] = ()
    """Configuration that overrides ``CONFIG``; None takes Kafka's default."""
    racks: tuple[str, ...] = ("a", "b", "a")

    def configuration(self) -> dict[str, str]:
        merged: dict[str, str | None] = {**CONFIG, **dict(self.config)}
        return {name: value for name, value in merged.items() if value is not None}


class Znode(NamedTuple):
    """Data and data version of a znode, and the transaction that created it."""

    data: bytes
    version: int
    created: int


class Side(abc.ABC):
    """A cluster with brokers 1, 2, 3, ... and its ZooKeeper."""

    name = ""

    def __init__(self, kafka_version: str, shape: ClusterShape) -> None:
        self.kafka_version = kafka_version
        self.shape = shape
        self.broker_ids: Sequence[int] = tuple(range(1, shape.brokers + 1))
        self.up: set[int] = set()
        self.frozen: set[int] = set()
        self.expected: Any = None
        """Expected result of a look; a side in real time stops waiting when it sees it."""
        self.disturbed: set[int] = set()
        """Brokers that were started or frozen, so that their sessions may be new."""
        self.runs = 0
        """Number of histories that ran on this side, with the current one. It makes names of groups
        and transactional ids unique, as brokers keep their state."""
        self.left_open: set[str] = set()
        """Transactional ids of earlier histories, whose transactions may still be open."""

    # -- brokers -------------------------------------------------------------------------------

    @abc.abstractmethod
    def start(self, broker: int) -> str:
        """Start a broker; return ``running``, or ``ended`` if it cannot run."""

    @abc.abstractmethod
    def kill(self, broker: int) -> None:
        """Kill the broker's process."""

    @abc.abstractmethod
    def stop(self, broker: int) -> None:
        """Shut the broker down cleanly, and wait until it has ended."""

    @abc.abstractmethod
    def freeze(self, broker: int) -> None:
        """Suspend the broker's process."""

    @abc.abstractmethod
    def thaw(self, broker: int) -> None:
        """Resume the broker's process."""

    def fail_directory(self, broker: int, partition: str) -> None:
        """Break the log directory that holds a partition, as if its disk were gone."""
        raise NotImplementedError(self.name)

    def repair_directories(self, broker: int) -> None:
        """Repair the failed directories of a broker that does not run."""
        raise NotImplementedError(self.name)

    def start_many(self, brokers: Sequence[int]) -> list[str]:
        """Start brokers, together where that is faster; return the result of ``start`` for each."""
        return [self.start(broker) for broker in brokers]

    def end_session(self, broker: int) -> None:
        """End the ZooKeeper session of a dead or frozen broker."""
        self.wait(lambda: str(broker) not in (self.children("/brokers/ids") or ()), _EXPIRY_S)

    # -- connections ---------------------------------------------------------------------------

    @abc.abstractmethod
    def line(self, broker: int) -> Line:
        """Return a new connection to the broker; raise ``Closed`` if it is refused."""

    def connect(self, broker: int) -> Client:
        if broker not in self.up:
            raise Closed(f"broker {broker} is not running")
        return Client(self.line(broker))

    # -- ZooKeeper -----------------------------------------------------------------------------

    @abc.abstractmethod
    def znode(self, path: str) -> Znode | None: ...

    @abc.abstractmethod
    def children(self, path: str) -> list[str] | None:
        """Return the names of a znode's children, sorted; None if there is no such znode."""

    @abc.abstractmethod
    def create_znode(self, path: str, data: bytes, *, sequential: bool = False) -> bool:
        """Create a persistent znode; return False if it exists."""

    @abc.abstractmethod
    def set_znode(self, path: str, data: bytes) -> bool:
        """Replace a znode's data; return False if it does not exist."""

    @abc.abstractmethod
    def delete_znode(self, path: str) -> bool:
        """Delete a znode; return False if it does not exist."""

    # -- time ----------------------------------------------------------------------------------

    @abc.abstractmethod
    def now_ms(self) -> int: ...

    @abc.abstractmethod
    def pass_time(self, seconds: float) -> None: ...

    @abc.abstractmethod
    def wait(self, condition: Callable[[], object], timeout_s: float) -> bool:
        """Wait until a condition holds; return False on a timeout."""

    @abc.abstractmethod
    def settle(self, look: Callable[[], Any]) -> Any:
        """Wait until the result of ``look`` no longer changes, and return it."""

    def let_brokers_ask(self) -> None:
        """Make every broker send the current controller a request, unless it has done so before.

        Kafka's brokers had, as they were recorded through many scenarios. A broker that has not
        would ask the controller that it knew first (NodeToControllerRequestThread).
        """
        return

    @abc.abstractmethod
    def close(self) -> None:
        """End the cluster."""
