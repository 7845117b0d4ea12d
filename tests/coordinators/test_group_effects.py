"""A group without a coordinator: the effects it returns for each input, in order."""

from __future__ import annotations

import random
from typing import Any

from fakekafka.coordinators.groups.effects import (
    AnswerMember,
    CancelTimer,
    Effect,
    NoteChange,
    SetTimer,
    StoreGroup,
    TimeLimit,
    WriteLine,
)
from fakekafka.coordinators.groups.group import Group, GroupEnvironment, JoiningClient
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import JoinGroupRequest, LeavingMember, SyncGroupRequest
from fakekafka.protocol.versions import behaviour

NONE = ErrorCode.NONE
CLIENT = JoiningClient("app", "/127.0.0.1", may_need_member_id=False, may_skip_assignment=True)


def new_group() -> Group:
    config = BrokerConfig({"broker.id": 1, "group.initial.rebalance.delay.ms": 3000}, "3.9")
    environment = GroupEnvironment(config, behaviour("3.9"), lambda: 5, random.Random(1))
    return Group("g", environment)


def taken(group: Group) -> list[Effect]:
    """Return the group's effects except records of traces and lines of the log."""
    effects, group.effects = group.effects, []
    return [e for e in effects if not isinstance(e, (NoteChange, WriteLine))]


def join(group: Group, reply: Any, member_id: str = "") -> str:
    """Let a member join and return its id."""
    known = set(group.members)
    request = JoinGroupRequest("g", 10_000, 60_000, member_id, None, "p", (("range", b""),))
    group.join(request, CLIENT, reply)
    return next(iter(set(group.members) - known), member_id)


def sync(group: Group, reply: Any, member_id: str, *assignments: tuple[str, bytes]) -> None:
    request = SyncGroupRequest("g", group.generation, member_id, None, None, None, assignments)
    group.sync(request, reply)


def never(_response: object) -> None:
    raise AssertionError("a group answers nothing by itself")


def led_by_one() -> tuple[Group, str]:
    """Return a group whose only member has joined."""
    group = new_group()
    member_id = join(group, never)
    group.expire_timeout(TimeLimit.JOINING, "")
    taken(group)
    return group, member_id


def test_the_first_member_waits_five_minutes_at_most_and_others_three_seconds() -> None:
    """A first member waits at most five minutes (KAFKA-7610); the first rebalance is delayed by
    three seconds (KIP-134)."""
    group = new_group()
    member_id = join(group, never)
    assert taken(group) == [
        SetTimer(TimeLimit.SESSION, member_id, 300_000),
        CancelTimer(TimeLimit.SYNCING),
        SetTimer(TimeLimit.JOINING, "", 3000),
    ]


def test_a_join_is_answered_before_session_and_sync_timers_start() -> None:
    group = new_group()
    member_id = join(group, never)
    taken(group)
    group.expire_timeout(TimeLimit.JOINING, "")
    stop, answer, *times = taken(group)
    assert stop == CancelTimer(TimeLimit.JOINING)
    assert isinstance(answer, AnswerMember)
    assert answer.reply is never
    assert (answer.response.error, answer.response.protocol) == (NONE, "range")
    assert times == [
        SetTimer(TimeLimit.SESSION, member_id, 10_000),
        SetTimer(TimeLimit.SYNCING, "", 60_000),
    ]


def test_the_leaders_assignment_is_stored_before_it_is_sent_to_members() -> None:
    group, member_id = led_by_one()
    sync(group, never, member_id, (member_id, b"all"))
    stop, store = taken(group)
    assert stop == CancelTimer(TimeLimit.SYNCING)
    assert isinstance(store, StoreGroup)
    assert [member.assignment for member in store.value.members] == [b"all"]
    store.then(NONE)
    answer, session = taken(group)
    assert isinstance(answer, AnswerMember)
    assert answer.response.error is NONE
    assert session == SetTimer(TimeLimit.SESSION, member_id, 10_000)
    assert group.state_name == "Stable"


def test_a_member_that_leaves_during_its_join_is_answered_before_its_removal() -> None:
    """A member that leaves while its join is pending is answered before it is removed."""
    group = new_group()
    member_id = join(group, never)
    taken(group)
    assert group.leave(LeavingMember(member_id)) is NONE
    answer, session = taken(group)
    assert isinstance(answer, AnswerMember)
    assert answer.response.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert session == CancelTimer(TimeLimit.SESSION, member_id)


def test_a_dead_group_ignores_timers() -> None:
    group, member_id = led_by_one()
    group.unloaded()
    cancelled = [e for e in taken(group) if isinstance(e, CancelTimer)]
    assert CancelTimer(TimeLimit.SESSION, member_id) in cancelled
    for limit in TimeLimit:
        group.expire_timeout(limit, member_id)
    assert taken(group) == []


def test_the_session_of_a_static_member_continues_under_its_new_id() -> None:
    group = new_group()
    request = JoinGroupRequest("g", 10_000, 60_000, "", "i", "p", (("range", b""),))
    group.join(request, CLIENT, never)
    (old_id,) = group.members
    group.expire_timeout(TimeLimit.JOINING, "")
    sync(group, never, old_id, (old_id, b"all"))
    (store,) = [e for e in taken(group) if isinstance(e, StoreGroup)]
    store.then(NONE)
    taken(group)
    group.join(request, CLIENT, never)
    (new_id,) = group.members
    assert taken(group)[:2] == [
        CancelTimer(TimeLimit.SESSION, old_id),
        SetTimer(TimeLimit.SESSION, new_id, 10_000),
    ]
