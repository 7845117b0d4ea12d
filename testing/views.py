"""Snapshots: what a partition or a replica looks like at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..protocol.errors import NotThereYet
from ..protocol.values import TopicPartition, frozen


class ConsumerRecord(NamedTuple):
    """A record and where it is, with the names of Kafka's own ``ConsumerRecord``."""

    topic: str
    """Its topic."""
    partition: int
    """Number of its partition."""
    offset: int
    """Its offset in the partition."""
    timestamp: int
    """Milliseconds since 1970: of its creation, or of its append if the topic has
    ``LogAppendTime``."""
    key: bytes | None
    """The key, None if it has none."""
    value: bytes | None
    """The value, None in a tombstone."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """Pairs of a name, and bytes or None."""


@frozen
class ReplicaView:
    """A replica as its broker holds it."""

    broker_id: int
    """The broker that holds it."""
    role: str
    """``leader``, ``follower``, or ``none`` if the broker does not know the partition."""
    state: str
    """State in the controller's replica state machine, such as ``OnlineReplica``."""
    log_start_offset: int
    """Its first offset."""
    high_watermark: int
    """The high watermark that it knows."""
    log_end_offset: int
    """The offset that its next record will have."""
    leader_epoch: int
    """The leader epoch that it follows, or leads in."""
    epochs: tuple[tuple[int, int], ...]
    """Leader-epoch cache: (epoch, start offset) pairs."""
    log_dir: str | None = None
    """The log directory it is stored in, also while that directory or its broker is down."""

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
    """The topic of the log."""
    partition: int
    """Number of the partition."""
    size_bytes: int
    """Bytes that the log takes."""
    offset_lag: int
    """Of a future log: how many records are still to be copied."""
    is_future: bool
    """It will replace the partition's log, which is being moved here."""


@frozen
class LogDirView:
    """A log directory of a broker, as DescribeLogDirs tells of it."""

    path: str
    """The name that ``log.dirs`` gives it, or its path on the real disk."""
    is_online: bool
    """False once it has failed."""
    replicas: tuple[StoredReplicaView, ...]
    """The logs in it."""
    total_bytes: int
    """Size of the volume; -1 if the directory is in memory."""
    usable_bytes: int
    """Bytes of that which are free; -1 if the directory is in memory."""


@frozen
class PartitionView:
    """A partition as the controller, its leader and its replicas see it."""

    topic: str
    """Its topic."""
    partition: int
    """Its number."""
    state: str
    """State in the controller's partition state machine, such as ``OnlinePartition``."""
    leader: int | None
    """Broker id, or None while there is no leader."""
    leader_epoch: int
    """Leader epoch of the newest decision."""
    controller_epoch: int
    """Epoch of the controller that took it."""
    zk_version: int
    """Version of the partition's state znode with that decision: Kafka's partition epoch."""
    replicas: tuple[int, ...]
    """Broker ids, in the order of the assignment."""
    isr: tuple[int, ...]
    """Broker ids of the in-sync replicas."""
    adding: tuple[int, ...]
    """Broker ids that a reassignment adds."""
    removing: tuple[int, ...]
    """Broker ids that a reassignment removes."""
    high_watermark: int
    """At the leader; -1 without one."""
    log_start_offset: int
    """At the leader; -1 without one."""
    log_end_offset: int
    """At the leader; -1 without one."""
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
        """The replica of a broker; ``NotThereYet`` names the replicas there are."""
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
    """As the coordinator gave it."""
    client_id: str
    """The ``client.id`` of the member."""
    group_instance_id: str | None
    """Of a static member; None for others."""
    assignment: tuple[TopicPartition, ...]
    """The partitions that the leader gave it in this generation; empty for members that are not
    consumers."""


@dataclass(frozen=True, repr=False)
class GroupView:
    """A consumer group as its coordinator has it."""

    group_id: str
    """Name of the group."""
    state: str
    """``Empty``, ``PreparingRebalance``, ``CompletingRebalance``, ``Stable``, or ``Dead`` for a
    group that does not exist. Release 0.10 calls the third ``AwaitingSync``."""
    coordinator: int | None
    """Broker id, or None while there is none."""
    generation: int = -1
    """Rises with every rebalance; -1 for a group that does not exist."""
    protocol_type: str = ""
    """``consumer`` for consumers."""
    protocol: str = ""
    """The assignor, such as ``range``."""
    leader: str | None = None
    """Member id of the leader."""
    members: tuple[GroupMemberView, ...] = ()
    """The members, in the order in which they came."""
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    """The committed offset of each partition."""
    lag: dict[TopicPartition, int] = field(default_factory=dict)
    """Records between each of them and the high watermark."""

    def __repr__(self) -> str:
        if self.state == "Dead":
            return f"<group {self.group_id} Dead: nobody knows it>"
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
