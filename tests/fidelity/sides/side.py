"""``Side``: what a scenario can do to a cluster, whoever it is."""

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
"""What all brokers are configured with on every side; a cluster may change and add."""


@dataclass(frozen=True)
class ClusterShape:
    """Brokers that several scenarios can share."""

    brokers: int = 3
    config: tuple[tuple[str, str | None], ...] = ()
    """Over ``CONFIG``; None takes Kafka's default."""
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
        """What a look shall see; a side that lives in real time waits no longer when it does."""
        self.disturbed: set[int] = set()
        """Brokers whose sessions may be new, as they were started or frozen."""
        self.runs = 0
        """How many histories it has seen, this one included: groups and transactional ids of each
        have names of their own, as what is known of them stays."""
        self.left_open: set[str] = set()
        """Transactional ids of earlier histories, whose transactions may be under way."""

    # -- brokers -------------------------------------------------------------------------------

    @abc.abstractmethod
    def start(self, broker: int) -> str:
        """Start a broker; gives ``running``, or ``ended`` if it cannot run."""

    @abc.abstractmethod
    def kill(self, broker: int) -> None:
        """End its process at once."""

    @abc.abstractmethod
    def stop(self, broker: int) -> None:
        """Shut it down in order and wait until it has ended."""

    @abc.abstractmethod
    def freeze(self, broker: int) -> None:
        """Freeze its process: it stands still."""

    @abc.abstractmethod
    def thaw(self, broker: int) -> None:
        """Thaw its process: it goes on."""

    def fail_directory(self, broker: int, partition: str) -> None:
        """Break the log directory that holds a partition, as if its disk were gone."""
        raise NotImplementedError(self.name)

    def repair_directories(self, broker: int) -> None:
        """Put failed directories of a broker that does not run in order."""
        raise NotImplementedError(self.name)

    def start_many(self, brokers: Sequence[int]) -> list[str]:
        """Start brokers, at once where that is faster; gives what ``start`` gives of each."""
        return [self.start(broker) for broker in brokers]

    def end_session(self, broker: int) -> None:
        """End the ZooKeeper session of a broker that is dead or stands still."""
        self.wait(lambda: str(broker) not in (self.children("/brokers/ids") or ()), _EXPIRY_S)

    # -- connections ---------------------------------------------------------------------------

    @abc.abstractmethod
    def line(self, broker: int) -> Line:
        """A new connection; raises ``Closed``."""

    def connect(self, broker: int) -> Client:
        if broker not in self.up:
            raise Closed(f"broker {broker} is not running")
        return Client(self.line(broker))

    # -- ZooKeeper -----------------------------------------------------------------------------

    @abc.abstractmethod
    def znode(self, path: str) -> Znode | None: ...

    @abc.abstractmethod
    def children(self, path: str) -> list[str] | None:
        """Their names, sorted; None where there is no znode."""

    @abc.abstractmethod
    def create_znode(self, path: str, data: bytes, *, sequential: bool = False) -> bool:
        """Create a persistent znode; False if it is there."""

    @abc.abstractmethod
    def set_znode(self, path: str, data: bytes) -> bool:
        """Replace its data; False if it is not there."""

    @abc.abstractmethod
    def delete_znode(self, path: str) -> bool:
        """Delete it; False if it is not there."""

    # -- time ----------------------------------------------------------------------------------

    @abc.abstractmethod
    def now_ms(self) -> int: ...

    @abc.abstractmethod
    def pass_time(self, seconds: float) -> None: ...

    @abc.abstractmethod
    def wait(self, condition: Callable[[], object], timeout_s: float) -> bool:
        """Wait until a condition holds; False if it does not in time."""

    @abc.abstractmethod
    def settle(self, look: Callable[[], Any]) -> Any:
        """Wait until nothing changes any more; gives the last look."""

    def let_brokers_ask(self) -> None:
        """Every broker has asked today's controller for something, where that is not so yet.

        The brokers of Kafka were recorded through many scenarios and had. One that had not would
        ask the controller that it knew first (NodeToControllerRequestThread).
        """
        return

    @abc.abstractmethod
    def close(self) -> None:
        """End everything."""
