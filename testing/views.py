"""Snapshots: what a partition or a replica looks like at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..protocol.errors import NotThereYet
from ..protocol.values import TopicPartition, frozen


class ConsumerRecord(NamedTuple):
    """A record and where it is, with the names of Kafka's own ``ConsumerRecord``."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970: of its creation, or of its append with ``LogAppendTime``."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, repr=False)
class ReplicaView:
    """One replica as its broker holds it."""

    broker_id: int
    role: str
    """``leader``, ``follower`` or ``none`` when the broker does not know the partition."""
    state: str
    """State in the controller's replica state machine, such as ``OnlineReplica``."""
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    leader_epoch: int
    epochs: tuple[tuple[int, int], ...]
    """Leader-epoch cache: (epoch, start offset) pairs."""
    log_dir: str | None = None
    """The log directory it is stored in, also while the broker or the directory is down."""

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
    partition: int
    size_bytes: int
    offset_lag: int
    """Of a future log: how many records are still to be copied."""
    is_future: bool
    """It will replace the partition's log, which is being moved here."""


@frozen
class LogDirView:
    """A log directory of a broker, as DescribeLogDirs tells of it."""

    path: str
    is_online: bool
    replicas: tuple[StoredReplicaView, ...]
    total_bytes: int
    usable_bytes: int
    """Size of the volume; -1 if the directory is in memory."""


@dataclass(frozen=True, repr=False)
class PartitionView:
    """A partition as the controller, its leader and its replicas see it."""

    topic: str
    partition: int
    state: str
    """State in the controller's partition state machine, such as ``OnlinePartition``."""
    leader: int | None
    """Broker id, or None while there is no leader."""
    leader_epoch: int
    controller_epoch: int
    zk_version: int
    """Version of the partition's state znode that the decision has: Kafka's partition epoch."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    high_watermark: int
    """At the leader; -1 without one."""
    log_start_offset: int
    log_end_offset: int
    _replicas: dict[int, ReplicaView] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        leader = "no leader" if self.leader is None else f"leader {self.leader}"
        replicas = ", ".join(map(repr, self._replicas.values()))
        return (
            f"<{self.topic}-{self.partition} {self.state or 'state unknown'}: {leader}, "
            f"epoch {self.leader_epoch}, ISR {list(self.isr)} of {list(self.replicas)}, "
            f"high watermark {self.high_watermark}; {replicas}>"
        )

    def replica(self, broker_id: int) -> ReplicaView:
        """That broker's replica; ``NotThereYet`` names the replicas there are."""
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
    client_id: str
    group_instance_id: str | None
    """Set for static members."""
    assignment: tuple[TopicPartition, ...]
    """What the leader gave it in this generation; empty for members that are no consumers."""


@dataclass(frozen=True, repr=False)
class GroupView:
    """A consumer group as its coordinator has it."""

    group_id: str
    state: str
    """``Empty``, ``PreparingRebalance``, ``CompletingRebalance``, ``Stable``, or ``Dead`` for a
    group that does not exist."""
    coordinator: int | None
    """Broker id, or None while there is none."""
    generation: int = -1
    protocol_type: str = ""
    protocol: str = ""
    leader: str | None = None
    """Member id."""
    members: tuple[GroupMemberView, ...] = ()
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    """What is committed."""
    lag: dict[TopicPartition, int] = field(default_factory=dict)
    """How far each offset is behind the high watermark."""

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
