"""Values that every layer speaks of: partitions, leadership, replica assignments, brokers."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

from .declaring.methods import assembled as assembled
from .declaring.methods import frozen as frozen
from .declaring.methods import message as message

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)

ZERO_UUID = bytes(16)
NO_LEADER = -1
"""Leader id of a partition that has no leader (Kafka: ``LeaderAndIsr.NoLeader``)."""
LEADER_DURING_DELETE = -2
"""Leader id announced for partitions of a topic being deleted."""
EPOCH_UNKNOWN = -1
EPOCH_DURING_DELETE = -2
NO_OFFSET = -1


class Request(Generic[R_co]):
    """The base of Kafka's requests; in brackets stands the type of the response."""

    __slots__ = ()


class TopicPartition(NamedTuple):
    """A partition's name; sorts by topic, then number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class PartitionReplica(NamedTuple):
    """A replica of a partition (Kafka: ``PartitionAndReplica``)."""

    topic: str
    partition: int
    broker_id: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@message
class LeaderAndIsr:
    """Leadership of one partition as stored in its state znode."""

    leader: int
    """Broker id, or ``NO_LEADER``."""
    leader_epoch: int
    """Grows by one with every leadership decision; never with an ISR expansion."""
    isr: tuple[int, ...]
    """In-sync replica ids in list order; never empty once created (2.8)."""
    zk_version: int
    """Data version of the state znode this value was read from or written as."""
    is_recovering: bool = False
    """Elected from outside the ISR, and no ISR proposed since (KIP-704)."""

    def with_zk_version(self, zk_version: int) -> LeaderAndIsr:
        return LeaderAndIsr(
            self.leader, self.leader_epoch, self.isr, zk_version, self.is_recovering
        )


@message
class LeaderIsrAndControllerEpoch:
    """Leadership plus the epoch of the controller that decided it."""

    leader_and_isr: LeaderAndIsr
    controller_epoch: int


@message
class ReplicaAssignment:
    """Replicas of a partition with what an ongoing reassignment adds and removes (KIP-455)."""

    replicas: tuple[int, ...]
    """All replicas, target first: a superset of ``adding`` and ``removing``."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def origin(self) -> tuple[int, ...]:
        """Replicas before the ongoing reassignment."""
        if not self.adding:
            return self.replicas
        return tuple(r for r in self.replicas if r not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """Replicas after the ongoing reassignment."""
        if not self.removing:
            return self.replicas
        return tuple(r for r in self.replicas if r not in self.removing)

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    def reassign_to(self, target: Iterable[int]) -> ReplicaAssignment:
        """Start (or redirect) a reassignment to ``target``, from the *origin* replicas."""
        wanted = tuple(target)
        origin = self.origin
        full = tuple(dict.fromkeys(wanted + origin))
        before, after = frozenset(origin), frozenset(wanted)
        return ReplicaAssignment(
            full,
            tuple(r for r in full if r not in before),
            tuple(r for r in full if r not in after),
        )

    def remove_replica(self, replica: int) -> ReplicaAssignment:
        return ReplicaAssignment(
            tuple(r for r in self.replicas if r != replica),
            tuple(r for r in self.adding if r != replica),
            tuple(r for r in self.removing if r != replica),
        )


@message
class EndPoint:
    """A listener a broker advertises."""

    host: str
    port: int
    listener: str = "PLAINTEXT"
    security_protocol: str = "PLAINTEXT"


@message
class BrokerInfo:
    """A registered broker as the controller announces it."""

    id: int
    endpoints: tuple[EndPoint, ...]
    rack: str | None = None
    features: tuple[tuple[str, int, int], ...] = ()

    def endpoint(self, listener: str) -> EndPoint | None:
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


def changed(value: T, **fields: Any) -> T:
    """A copy of a message with some fields replaced."""
    return replace(value, **fields)  # type: ignore[type-var]


def uuid_text(uuid: bytes) -> str:
    """A uuid as Kafka prints it: url-safe base64 without padding; the zero uuid is empty."""
    if uuid == ZERO_UUID:
        return ""
    return base64.urlsafe_b64encode(uuid)[:22].decode("ascii")


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of a uuid as Kafka prints it; zero for the empty text."""
    if not text:
        return ZERO_UUID
    return base64.urlsafe_b64decode(text + "==")
