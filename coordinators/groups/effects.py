"""Effects: what a group wants done. A group only names them; its coordinator carries them out, in
the order in which they were named (``GroupStore.carry_out``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from ...protocol.errors import ErrorCode
from ...protocol.groups import JoinGroupResponse, SyncGroupResponse
from .records import GroupValue

JoinReply = Callable[[JoinGroupResponse], object]
"""The way of an answer to who joins. A group keeps it and hands it back with the answer."""
SyncReply = Callable[[SyncGroupResponse], object]


class TimeLimit(IntEnum):
    """A time that a group gives to one member, or to all."""

    SESSION = 1
    """Of a member: it is to be heard of."""
    MEMBER_ID = 2
    """Of an id that was given out: somebody is to join with it (KIP-394)."""
    JOINING = 3
    """Of the group: all members are to join again."""
    SYNCING = 4
    """Of the group: all members are to ask for their assignment (KAFKA-12890)."""


class AnswerMember(NamedTuple):
    """Answer a member."""

    reply: Callable[[Any], object]
    response: JoinGroupResponse | SyncGroupResponse


class StoreGroup(NamedTuple):
    """Append the record of a generation; ``then`` goes on in the group, with the error for its
    members, once the record is replicated or refused."""

    value: GroupValue
    then: Callable[[ErrorCode], None]


class SetTimer(NamedTuple):
    """Start of a time, anew if it runs; ``Group.time_is_up`` ends it."""

    limit: TimeLimit
    member_id: str
    """Empty for a time of the group."""
    delay_ms: int


class CancelTimer(NamedTuple):
    """End a time, if it runs."""

    limit: TimeLimit
    member_id: str = ""


class WriteLine(NamedTuple):
    """Write a line into the broker's log."""

    level: str
    line: str


class NoteChange(NamedTuple):
    """Note a change of state in the record of the run; None for what is not there."""

    name: str
    old: object
    new: object


class NoteSilence(NamedTuple):
    """Note that what follows is due to a client's silence."""

    client_id: str
    member_id: str
    silent_ms: int
    text: str


class NoteWait(NamedTuple):
    """Note that what follows is due to clients for whom the time that is up has waited in vain."""

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
