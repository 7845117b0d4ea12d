"""When the session of a member begins that has waited for others."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.group_desk import GroupDesk

SESSION_MS = 10_000


def test_the_session_of_who_waited_begins_with_the_answer(desk: GroupDesk) -> None:
    """A member that waited for others is not missed for the time in which no heartbeat was due
    (``GroupCoordinator.onCompleteJoin``)."""
    desk.stable("a", session_ms=SESSION_MS)
    desk.join("b", session_ms=SESSION_MS)
    for _ in range(8):
        desk.host.advance(5_000)
        desk.heartbeat("a")
    assert desk.state == "PreparingRebalance"
    desk.join("a", session_ms=SESSION_MS)
    assert desk.state == "CompletingRebalance"
    desk.host.advance(SESSION_MS - 1)
    assert set(desk.group.members) == {desk.ids["a"], desk.ids["b"]}
    desk.host.advance(1)
    assert not desk.group.members


@pytest.mark.parametrize("name", ["a", "b"])
def test_the_session_begins_anew_with_the_assignment(desk: GroupDesk, name: str) -> None:
    """Also of the leader, whose own request brought it."""
    for one in ("a", "b"):
        desk.join(one, session_ms=SESSION_MS)
    desk.host.advance(0)
    desk.sync("b")
    desk.host.advance(SESSION_MS - 1)
    desk.sync("a", {"a": b"x", "b": b"y"})
    assert desk.state == "Stable"
    desk.host.advance(SESSION_MS - 1)
    assert desk.ids[name] in desk.group.members
    desk.host.advance(1)
    assert desk.state == "Empty"
