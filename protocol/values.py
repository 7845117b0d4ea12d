"""Values that every layer speaks of: partitions, leadership, replica assignments, brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar, dataclass_transform

T = TypeVar("T")

NO_LEADER = -1
"""Leader id of a partition that has no leader (Kafka: ``LeaderAndIsr.NoLeader``)."""
LEADER_DURING_DELETE = -2
"""Leader id announced for partitions of a topic being deleted."""
EPOCH_UNKNOWN = -1
EPOCH_DURING_DELETE = -2
NO_OFFSET = -1


class _ReadToLearn:
    """A class attribute that somebody reads to learn the fields of a message."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        return self._read()


@dataclass_transform(frozen_default=True)
def message(cls: type[T]) -> type[T]:
    """Declare a message: an immutable dataclass with slots, whose methods are made on first use.

    Type checkers see a frozen dataclass. At run time it is a plain one, because a frozen
    ``__init__`` costs four times as much and messages are the hottest objects of a simulation.

    The standard library writes and compiles the source of each method. For the messages of all
    APIs together this takes longer than the start of a cluster, and a run uses few of them.
    """
    declared = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    declared |= {"__annotations__": cls.__annotations__, "__qualname__": cls.__qualname__}
    own = [name for name, kind in cls.__annotations__.items() if "ClassVar" not in kind]
    inherited = [name for base in cls.__mro__[-2:0:-1] for name in vars(base).get("__slots__", ())]
    names = list(dict.fromkeys([*inherited, *own]))

    def finish(*finished: str, **options: bool) -> None:
        # From a copy, since the standard library changes the class that it is given: so it does no
        # harm if two threads come here at once.
        copy = _class(cls, {**declared, "__doc__": "no signature is worked out"})
        made = vars(dataclass(repr=False, **options)(copy))
        for name in finished or [name for name in made if name in _MADE_WITH_INIT]:
            if name not in declared:
                setattr(slotted, name, made[name])

    def first_init(self: Any, *values: Any, **named: Any) -> None:
        finish(eq=False)
        slotted.__init__(self, *values, **named)

    def first_eq(self: Any, other: object) -> Any:
        finish("__eq__", "__hash__", unsafe_hash=True)
        return slotted.__eq__(self, other)

    def first_hash(self: Any) -> int:
        finish("__eq__", "__hash__", unsafe_hash=True)
        return hash(self)

    def shown(self: Any) -> str:
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({told})"

    def fields() -> Any:
        finish(eq=False)
        return vars(slotted)["__dataclass_fields__"]

    methods = {"__init__": first_init, "__eq__": first_eq, "__hash__": first_hash}
    slots = tuple(name for name in own if name not in inherited)
    kept = {name: value for name, value in declared.items() if name not in own}
    learnt = {
        "__dataclass_fields__": _ReadToLearn(fields),
        "__signature__": _ReadToLearn(lambda: finish(eq=False)),  # None: __init__ tells it
    }
    slotted: Any = _class(cls, {**methods, "__repr__": shown, **kept, **learnt, "__slots__": slots})
    return slotted  # type: ignore[no-any-return]


_MADE_WITH_INIT = (
    "__init__",
    "__dataclass_fields__",
    "__dataclass_params__",
    "__match_args__",
    "__replace__",
    "__setattr__",  # these four if the standard library is told to freeze
    "__delattr__",
    "__getstate__",
    "__setstate__",
)


def _class(like: type[Any], namespace: dict[str, Any]) -> Any:
    """A class of the same name, of the same kind and with the same bases."""
    kind: Any = type(like)
    return kind(like.__name__, like.__bases__, namespace)


class TopicPartition(NamedTuple):
    """A partition's name; sorts by topic, then number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class PartitionReplica(NamedTuple):
    """One replica of a partition (Kafka: ``PartitionAndReplica``)."""

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
