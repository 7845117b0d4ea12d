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
