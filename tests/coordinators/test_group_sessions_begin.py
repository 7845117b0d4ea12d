"""When the session of a member begins that has waited for the other members."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.group_rig import GroupRig

SESSION_MS = 10_000


def test_the_session_of_a_joining_member_begins_with_its_answer(rig: GroupRig) -> None:
    """The session of a member that waited for others begins with the answer to its join
    (``GroupCoordinator.onCompleteJoin``)."""
    rig.stable("a", session_ms=SESSION_MS)
    rig.join("b", session_ms=SESSION_MS)
    for _ in range(8):
        rig.host.advance(5_000)
        rig.heartbeat("a")
    assert rig.state == "PreparingRebalance"
    rig.join("a", session_ms=SESSION_MS)
    assert rig.state == "CompletingRebalance"
    rig.host.advance(SESSION_MS - 1)
    assert set(rig.group.members) == {rig.ids["a"], rig.ids["b"]}
    rig.host.advance(1)
    assert not rig.group.members


@pytest.mark.parametrize("name", ["a", "b"])
def test_the_assignment_renews_the_sessions_of_all_members(rig: GroupRig, name: str) -> None:
    """The assignment renews the sessions of all members, also that of the leader that sent it."""
    for one in ("a", "b"):
        rig.join(one, session_ms=SESSION_MS)
    rig.host.advance(0)
    rig.sync("b")
    rig.host.advance(SESSION_MS - 1)
    rig.sync("a", {"a": b"x", "b": b"y"})
    assert rig.state == "Stable"
    rig.host.advance(SESSION_MS - 1)
    assert rig.ids[name] in rig.group.members
    rig.host.advance(1)
    assert rig.state == "Empty"
