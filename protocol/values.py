"""Values that every layer uses: partitions, leadership, replica assignments, brokers."""

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
    """Base class of Kafka's requests, generic over the type of the response."""

    __slots__ = ()


class TopicPartition(NamedTuple):
    """The name of a partition; sorts by topic, then by number."""

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
    """The leadership of one partition, as stored in its state znode."""

    leader: int
    """Broker id, or ``NO_LEADER``."""
    leader_epoch: int
    """Leader epoch; incremented by each leadership decision, but not by an ISR expansion."""
    isr: tuple[int, ...]
    """Ids of the in-sync replicas, in stored order; never empty once created (2.8)."""
    zk_version: int
    """Data version of the state znode that this value was read from or written to."""
    is_recovering: bool = False
    """True after an election from outside the ISR, until the leader proposes an ISR (KIP-704)."""

    def with_zk_version(self, zk_version: int) -> LeaderAndIsr:
        return LeaderAndIsr(
            self.leader, self.leader_epoch, self.isr, zk_version, self.is_recovering
        )


@message
class LeaderIsrAndControllerEpoch:
    """The leadership of a partition, with the epoch of the controller that decided it."""

    leader_and_isr: LeaderAndIsr
    controller_epoch: int


@message
class ReplicaAssignment:
    """The replicas of a partition, and those an ongoing reassignment adds or removes (KIP-455)."""

    replicas: tuple[int, ...]
    """All replicas, the target replicas first: a superset of ``adding`` and ``removing``."""
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
    """A listener that a broker advertises."""

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
    """Return a copy of a message with some fields replaced."""
    return replace(value, **fields)  # type: ignore[type-var]


def uuid_text(uuid: bytes) -> str:
    """Return a UUID as Kafka prints it, in URL-safe base64 without padding.

    The zero UUID is an empty string.
    """
    if uuid == ZERO_UUID:
        return ""
    return base64.urlsafe_b64encode(uuid)[:22].decode("ascii")


def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of a UUID as Kafka prints it; the zero UUID for an empty string."""
    if not text:
        return ZERO_UUID
    return base64.urlsafe_b64decode(text + "==")
