"""Snapshots of partitions, replicas, log directories and consumer groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..protocol.errors import NotThereYet
from ..protocol.values import TopicPartition, frozen


class ConsumerRecord(NamedTuple):
    """A record with its topic, partition and offset, named as in Kafka's ``ConsumerRecord``."""

    topic: str
    """Name of the topic."""
    partition: int
    """Partition number."""
    offset: int
    """Offset in the partition."""
    timestamp: int
    """Time in milliseconds since 1970 at which the record was created, or appended if the topic has
    ``LogAppendTime``."""
    key: bytes | None
    """The key; None if the record has none."""
    value: bytes | None
    """The value; None in a tombstone."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """Pairs of a header's name and its value, which may be None."""


@frozen
class ReplicaView:
    """A replica as its broker holds it."""

    broker_id: int
    """Id of the broker that holds the replica."""
    role: str
    """``leader``, ``follower``, or ``none`` if the broker does not know the partition."""
    state: str
    """State in the controller's replica state machine, such as ``OnlineReplica``."""
    log_start_offset: int
    """First offset of the log."""
    high_watermark: int
    """High watermark as this replica knows it."""
    log_end_offset: int
    """Offset that the next record will have."""
    leader_epoch: int
    """Leader epoch in which the replica follows or leads."""
    epochs: tuple[tuple[int, int], ...]
    """Leader-epoch cache: (epoch, start offset) pairs."""
    log_dir: str | None = None
    """Log directory that holds the replica, even while the directory or its broker is down."""

    def __repr__(self) -> str:
        if self.role == "none":
            return f"<broker {self.broker_id}: no log>"
        return (
            f"<broker {self.broker_id}: {self.role}, epoch {self.leader_epoch}, "
            f"{self.log_start_offset} to {self.log_end_offset}, "
            f"high watermark {self.high_watermark}>"
        )


@frozen
class StoredReplicaView:
    """A log in a log directory."""

    topic: str
    """Topic of the log."""
    partition: int
    """Partition number."""
    size_bytes: int
    """Size of the log in bytes."""
    offset_lag: int
    """Number of records that a future log still has to copy."""
    is_future: bool
    """True for a future log, which replaces the partition's log once it has been moved here."""


@frozen
class LogDirView:
    """A log directory of a broker, as DescribeLogDirs describes it."""

    path: str
    """Name of the directory in ``log.dirs``, or its path on the real disk."""
    is_online: bool
    """False once the directory has failed."""
    replicas: tuple[StoredReplicaView, ...]
    """The logs in the directory."""
    total_bytes: int
    """Size of the volume in bytes; -1 if the directory is in memory."""
    usable_bytes: int
    """Free bytes of the volume; -1 if the directory is in memory."""


@frozen
class PartitionView:
    """A partition as the controller, its leader and its replicas see it."""

    topic: str
    """Name of the topic."""
    partition: int
    """Partition number."""
    state: str
    """State in the controller's partition state machine, such as ``OnlinePartition``."""
    leader: int | None
    """Broker id of the leader; None while there is no leader."""
    leader_epoch: int
    """Current leader epoch."""
    controller_epoch: int
    """Controller epoch stored with the partition's state."""
    zk_version: int
    """Version of the partition's state znode, which is Kafka's partition epoch."""
    replicas: tuple[int, ...]
    """Broker ids of the replicas, in the order of the assignment."""
    isr: tuple[int, ...]
    """Broker ids of the in-sync replicas."""
    adding: tuple[int, ...]
    """Broker ids that a reassignment adds."""
    removing: tuple[int, ...]
    """Broker ids that a reassignment removes."""
    high_watermark: int
    """High watermark at the leader; -1 without a leader."""
    log_start_offset: int
    """Log start offset at the leader; -1 without a leader."""
    log_end_offset: int
    """Log end offset at the leader; -1 without a leader."""
    _replicas: dict[int, ReplicaView]

    def __repr__(self) -> str:
        leader = "no leader" if self.leader is None else f"leader {self.leader}"
        replicas = ", ".join(map(repr, self._replicas.values()))
        return (
            f"<{self.topic}-{self.partition} {self.state or 'state unknown'}: {leader}, "
            f"epoch {self.leader_epoch}, ISR {list(self.isr)} of {list(self.replicas)}, "
            f"high watermark {self.high_watermark}; {replicas}>"
        )

    def replica(self, broker_id: int) -> ReplicaView:
        """Return the replica of a broker; ``NotThereYet`` if it holds none."""
        try:
            return self._replicas[broker_id]
        except (KeyError, TypeError):
            raise NotThereYet(
                f"broker {broker_id!r} holds no replica of {self.topic}-{self.partition}; "
                f"replicas are {list(self.replicas)}"
            ) from None


@frozen
class GroupMemberView:
    """A member of a consumer group as its coordinator knows it."""

    member_id: str
    """Member id that the coordinator assigned."""
    client_id: str
    """The ``client.id`` of the member."""
    group_instance_id: str | None
    """The ``group.instance.id`` of a static member; None for others."""
    assignment: tuple[TopicPartition, ...]
    """Partitions assigned to the member in this generation; empty for members that are not
    consumers."""


@dataclass(frozen=True, repr=False)
class GroupView:
    """A consumer group as its coordinator knows it."""

    group_id: str
    """Name of the group."""
    state: str
    """``Empty``, ``PreparingRebalance``, ``CompletingRebalance``, ``Stable``, or ``Dead`` for a
    group that does not exist. Release 0.10 calls the third ``AwaitingSync``."""
    coordinator: int | None
    """Broker id of the coordinator; None while there is none."""
    generation: int = -1
    """Generation, which rises with every rebalance; -1 for a group that does not exist."""
    protocol_type: str = ""
    """Protocol type; ``consumer`` for consumers."""
    protocol: str = ""
    """Name of the assignor, such as ``range``."""
    leader: str | None = None
    """Member id of the leader."""
    members: tuple[GroupMemberView, ...] = ()
    """The members, in the order in which they joined."""
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    """The committed offset of each partition."""
    lag: dict[TopicPartition, int] = field(default_factory=dict)
    """Number of records between the committed offset of each partition and its high watermark."""

    def __repr__(self) -> str:
        if self.state == "Dead":
            return f"<group {self.group_id} Dead: no coordinator knows it>"
        members = [
            f"{member.group_instance_id or member.client_id} "
            f"({', '.join(map(str, member.assignment)) or 'nothing'})"
            for member in self.members
        ]
        offsets = [
            f"{key} at {offset} (lag {self.lag.get(key, 'unknown')})"
            for key, offset in self.offsets.items()
        ]
        return (
            f"<group {self.group_id} {self.state}: generation {self.generation}, "
            f"coordinator {self.coordinator}; members {', '.join(members) or 'none'}; "
            f"committed {', '.join(offsets) or 'nothing'}>"
        )
