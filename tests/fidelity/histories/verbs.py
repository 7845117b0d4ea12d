"""Steps that only the judge by Kafka has; the others are those of exploration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fakekafka.exploration.cluster_steps import (
    Cancel,
    Delete,
    Freeze,
    Kill,
    Resign,
    Start,
    Stop,
    Thaw,
)
from fakekafka.exploration.step import Step

__all__ = ["Cancel", "Delete", "Freeze", "History", "Kill", "Resign", "Start", "Stop", "Thaw"]

STATIC_GROUPS = ("s",)
"""Their members have instance ids, where the release knows them (KIP-345)."""
HASTY_GROUPS = ("h",)
"""They wait no time worth mentioning for members that shall join or sync again."""

History = Sequence[Step[Any]]
Assignment = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Create(Step[Any]):
    topic: str
    assignment: Assignment
    configs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expand(Step[Any]):
    topic: str
    assignment: Assignment
    """Of the partitions that are added."""


@dataclass(frozen=True)
class Move(Step[Any]):
    topic: str
    partition: int
    replicas: tuple[int, ...]


@dataclass(frozen=True)
class Moves(Step[Any]):
    """Ask for the reassignments that are under way."""


@dataclass(frozen=True)
class Elect(Step[Any]):
    kind: str
    """``preferred`` or ``unclean``."""
    topic: str
    partition: int


@dataclass(frozen=True)
class Config(Step[Any]):
    topic: str
    change: str
    """``name=value``; without a value it is deleted."""


@dataclass(frozen=True)
class Produce(Step[Any]):
    topic: str
    partition: int
    acks: int


@dataclass(frozen=True)
class Send(Step[Any]):
    """A batch of an idempotent producer."""

    producer: str
    topic: str
    partition: int
    how: str
    """``next``, ``again`` (the last one), ``gap``, or with a new ``epoch``."""


@dataclass(frozen=True)
class Read(Step[Any]):
    topic: str
    partition: int


@dataclass(frozen=True)
class Trim(Step[Any]):
    """Delete the records before an offset; -1 is the end."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Coordinator(Step[Any]):
    """Create the offsets topic, with one partition."""

    replicas: tuple[int, ...]


@dataclass(frozen=True)
class Commit(Step[Any]):
    group: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Offsets(Step[Any]):
    """Ask what a group has committed."""

    group: str


@dataclass(frozen=True)
class Enter(Step[Any]):
    """A member joins, for the first time or again."""

    group: str
    member: str
    is_anew: bool = False
    """It has forgotten the id that it had."""


@dataclass(frozen=True)
class Doze(Step[Any]):
    """Somebody joins and falls silent: the session ends."""

    group: str


@dataclass(frozen=True)
class Knock(Step[Any]):
    """Somebody asks for an id and does not join with it."""

    group: str


@dataclass(frozen=True)
class Misfit(Step[Any]):
    """Somebody joins with another kind of protocol (0) or another protocol (1)."""

    group: str
    other: int


@dataclass(frozen=True)
class Sync(Step[Any]):
    group: str
    who: str
    """``all`` who have joined, the ``leader`` or its ``followers``."""


@dataclass(frozen=True)
class Beat(Step[Any]):
    """A heartbeat."""

    group: str
    member: str


@dataclass(frozen=True)
class Quit(Step[Any]):
    """A member leaves."""

    group: str
    member: str


@dataclass(frozen=True)
class CommitAs(Step[Any]):
    """A member commits an offset."""

    group: str
    member: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Forget(Step[Any]):
    """Delete a group."""

    group: str


@dataclass(frozen=True)
class ForgetOffset(Step[Any]):
    """Delete an offset of a group."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True)
class Groups(Step[Any]):
    """List and describe the groups."""


@dataclass(frozen=True)
class TransactionLog(Step[Any]):
    """Create the topic of transactions, with one partition."""

    replicas: tuple[int, ...]


@dataclass(frozen=True)
class Init(Step[Any]):
    """A producer takes the id of a transactional id: one of the two that may have it."""

    name: str
    who: str
    how: str
    """``new``, or ``bump``: the epoch of the id that it has is to rise (KIP-360)."""


@dataclass(frozen=True)
class Add(Step[Any]):
    """A partition becomes part of a transaction."""

    name: str
    who: str
    topic: str
    partition: int


@dataclass(frozen=True)
class Put(Step[Any]):
    """A batch of a transaction."""

    name: str
    who: str
    topic: str
    partition: int


@dataclass(frozen=True)
class Include(Step[Any]):
    """The offsets of a group become part of a transaction."""

    name: str
    who: str
    group: str


@dataclass(frozen=True)
class PutOffset(Step[Any]):
    """An offset of a transaction."""

    name: str
    who: str
    group: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class End(Step[Any]):
    name: str
    who: str
    is_commit: bool


@dataclass(frozen=True)
class Outlast(Step[Any]):
    """A producer begins a transaction and lets its time run out."""

    name: str
    who: str
    topic: str
    partition: int


@dataclass(frozen=True)
class Transactions(Step[Any]):
    """Describe and list transactions."""


@dataclass(frozen=True)
class Producers(Step[Any]):
    """Describe the producers of a partition."""

    topic: str
    partition: int


@dataclass(frozen=True)
class Quota(Step[Any]):
    """Set how many bytes a second a user may produce; 0 takes the quota away."""

    user: str
    value: int


@dataclass(frozen=True)
class Quotas(Step[Any]):
    user: str


@dataclass(frozen=True)
class Permit(Step[Any]):
    """Let a user ``read`` or ``write`` a topic."""

    topic: str
    operation: str
    user: str


@dataclass(frozen=True)
class Revoke(Step[Any]):
    """Take back what a user may do with a topic."""

    topic: str
    user: str


@dataclass(frozen=True)
class Acls(Step[Any]):
    """Ask what a user may do."""

    user: str


@dataclass(frozen=True)
class Configs(Step[Any]):
    """Describe a topic's configuration."""

    topic: str
