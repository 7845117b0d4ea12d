"""Effects: the actions that a group requests. The group only collects them; its coordinator carries
them out in order (``GroupStore.carry_out``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from ...protocol.errors import ErrorCode
from ...protocol.groups import JoinGroupResponse, SyncGroupResponse
from .records import GroupValue

JoinReply = Callable[[JoinGroupResponse], object]
"""Callback that answers a JoinGroup. The group keeps it, and returns it with the answer."""
SyncReply = Callable[[SyncGroupResponse], object]


class TimeLimit(IntEnum):
    """A timeout of one member, or of the whole group."""

    SESSION = 1
    """Per member: time within which a heartbeat or another request must arrive."""
    MEMBER_ID = 2
    """Per member id given out: time within which a member must join with it (KIP-394)."""
    JOINING = 3
    """Per group: time within which all members must rejoin."""
    SYNCING = 4
    """Per group: time within which all members must send SyncGroup (KAFKA-12890)."""


class AnswerMember(NamedTuple):
    """Answer a member."""

    reply: Callable[[Any], object]
    response: JoinGroupResponse | SyncGroupResponse


class StoreGroup(NamedTuple):
    """Append the record of a generation; ``then`` is called with the error for the members once
    the record is replicated or has failed."""

    value: GroupValue
    then: Callable[[ErrorCode], None]


class SetTimer(NamedTuple):
    """Start or restart a timeout; ``Group.expire_timeout`` is called when it expires."""

    limit: TimeLimit
    member_id: str
    """Empty for a timeout of the group."""
    delay_ms: int


class CancelTimer(NamedTuple):
    """Cancel a timeout, if it runs."""

    limit: TimeLimit
    member_id: str = ""


class WriteLine(NamedTuple):
    """Write a line into the broker's log."""

    level: str
    line: str


class NoteChange(NamedTuple):
    """Record a change of state in the trace; None stands for an absent value."""

    name: str
    old: object
    new: object


class NoteSilence(NamedTuple):
    """Record that the effects which follow are caused by a client's silence."""

    client_id: str
    member_id: str
    silent_ms: int
    text: str


class NoteWait(NamedTuple):
    """Record that the effects which follow are caused by clients that missed a timeout."""

    client_ids: Sequence[str]
    waited_ms: int


Effect = (
    AnswerMember
    | StoreGroup
    | SetTimer
    | CancelTimer
    | WriteLine
    | NoteChange
    | NoteSilence
    | NoteWait
)
