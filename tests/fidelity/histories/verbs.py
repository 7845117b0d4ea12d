"""Steps that only the judge by Kafka has; the others are those of exploration."""

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
"""Their members have instance ids, where the release knows them (KIP-345)."""
HASTY_GROUPS = ("h",)
"""They wait no time worth mentioning for members that shall join or sync again."""

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
    """Of the partitions that are added."""


class Move(Verb):
    topic: str
    partition: int
    replicas: tuple[int, ...]


class Moves(Verb):
    """Ask for the reassignments that are under way."""


class Elect(Verb):
    kind: str
    """``preferred`` or ``unclean``."""
    topic: str
    partition: int


class Config(Verb):
    topic: str
    change: str
    """``name=value``; without a value it is deleted."""


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
    """It has forgotten the id that it had."""


class Doze(Verb):
    """Somebody joins and falls silent: the session ends."""

    group: str


class Knock(Verb):
    """Somebody asks for an id and does not join with it."""

    group: str


class Misfit(Verb):
    """Somebody joins with another kind of protocol (0) or another protocol (1)."""

    group: str
    other: int


class Sync(Verb):
    group: str
    who: str
    """``all`` who have joined, the ``leader`` or its ``followers``."""


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
    """A producer takes the id of a transactional id: one of the two that may have it."""

    name: str
    who: str
    how: str
    """``new``, or ``bump``: the epoch of the id that it has is to rise (KIP-360)."""


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
    """A producer begins a transaction and lets its time run out."""

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
    """Set how many bytes a second a user may produce; 0 takes the quota away."""

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
    """Take back what a user may do with a topic."""

    topic: str
    user: str


class Acls(Verb):
    """Ask what a user may do."""

    user: str


class Configs(Verb):
    """Describe a topic's configuration."""

    topic: str
