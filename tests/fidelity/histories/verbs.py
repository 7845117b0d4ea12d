"""Steps that only histories judged by Kafka have; the others are those of exploration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

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
"""Groups whose members have instance ids, where the release supports them (KIP-345)."""
HASTY_GROUPS = ("h",)
"""Groups with a minimal timeout for members to rejoin or sync."""

History = Sequence[Step[Any]]
Assignment = tuple[tuple[int, ...], ...]


Verb: TypeAlias = Step[Any]


class Create(Verb):
    topic: str
    assignment: Assignment
    configs: tuple[str, ...] = ()


class Expand(Verb):
    topic: str
    assignment: Assignment
    """Replicas of the partitions that are added."""


class Move(Verb):
    topic: str
    partition: int
    replicas: tuple[int, ...]


class Moves(Verb):
    """List the reassignments that are under way."""


class Elect(Verb):
    kind: str
    """``preferred`` or ``unclean``."""
    topic: str
    partition: int


class Config(Verb):
    topic: str
    change: str
    """``name=value``; an empty value deletes the configuration."""


class Produce(Verb):
    topic: str
    partition: int
    acks: int


class Send(Verb):
    """A batch of an idempotent producer."""

    producer: str
    topic: str
    partition: int
    how: str
    """``next``, ``again`` (the last one), ``gap``, or with a new ``epoch``."""


class Read(Verb):
    topic: str
    partition: int


class Trim(Verb):
    """Delete the records before an offset; -1 is the end."""

    topic: str
    partition: int
    offset: int


class Coordinator(Verb):
    """Create the offsets topic, with one partition."""

    replicas: tuple[int, ...]


class Commit(Verb):
    group: str
    topic: str
    partition: int
    offset: int


class Offsets(Verb):
    """Ask what a group has committed."""

    group: str


class Enter(Verb):
    """A member joins, for the first time or again."""

    group: str
    member: str
    is_anew: bool = False
    """True if the member has forgotten its member id."""


class Doze(Verb):
    """A member joins and sends no heartbeats, so that its session expires."""

    group: str


class Knock(Verb):
    """A client asks for a member id and does not join with it."""

    group: str


class Misfit(Verb):
    """A client joins with another protocol type (0) or another protocol (1)."""

    group: str
    other: int


class Sync(Verb):
    group: str
    who: str
    """``all`` joined members, the ``leader`` or the ``followers``."""


class Beat(Verb):
    """A heartbeat."""

    group: str
    member: str


class Quit(Verb):
    """A member leaves."""

    group: str
    member: str


class CommitAs(Verb):
    """A member commits an offset."""

    group: str
    member: str
    topic: str
    partition: int
    offset: int


class Forget(Verb):
    """Delete a group."""

    group: str


class ForgetOffset(Verb):
    """Delete an offset of a group."""

    group: str
    topic: str
    partition: int


class Groups(Verb):
    """List and describe the groups."""


class TransactionLog(Verb):
    """Create the topic of transactions, with one partition."""

    replicas: tuple[int, ...]


class Init(Verb):
    """One of the two producers of a transactional id is initialised."""

    name: str
    who: str
    how: str
    """``new``, or ``bump`` to raise the epoch of the producer id (KIP-360)."""


class Add(Verb):
    """A partition becomes part of a transaction."""

    name: str
    who: str
    topic: str
    partition: int


class Put(Verb):
    """A batch of a transaction."""

    name: str
    who: str
    topic: str
    partition: int


class Include(Verb):
    """The offsets of a group become part of a transaction."""

    name: str
    who: str
    group: str


class PutOffset(Verb):
    """An offset of a transaction."""

    name: str
    who: str
    group: str
    topic: str
    partition: int
    offset: int


class End(Verb):
    name: str
    who: str
    is_commit: bool


class Outlast(Verb):
    """A producer begins a transaction, which times out."""

    name: str
    who: str
    topic: str
    partition: int


class Transactions(Verb):
    """Describe and list transactions."""


class Producers(Verb):
    """Describe the producers of a partition."""

    topic: str
    partition: int


class Quota(Verb):
    """Set how many bytes a second a user may produce; 0 removes the quota."""

    user: str
    value: int


class Quotas(Verb):
    user: str


class Permit(Verb):
    """Allow a user to ``read`` or ``write`` a topic."""

    topic: str
    operation: str
    user: str


class Revoke(Verb):
    """Delete a user's ACLs on a topic."""

    topic: str
    user: str


class Acls(Verb):
    """Describe a user's ACLs."""

    user: str


class Configs(Verb):
    """Describe a topic's configuration."""

    topic: str
