"""The handles ``group`` and ``wait_for_group``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka import Simulation, UsageError, WaitTimeout
from fakekafka.protocol.values import TopicPartition
from fakekafka.testing.views import GroupMemberView, GroupView

T = [TopicPartition("t", number) for number in range(3)]


@pytest.fixture(scope="module")
def simulation() -> Iterator[Simulation]:
    with Simulation(3, topics={"t": {"partitions": 3, "replication_factor": 3}}) as simulation:
        yield simulation
        assert simulation.failures == []


def test_an_unknown_group_is_dead(simulation: Simulation) -> None:
    assert simulation.group("nobody") == GroupView("nobody", "Dead", None)


def test_a_stable_group_shows_assignments_offsets_and_lag(simulation: Simulation) -> None:
    """A group view has the members' assignments, the coordinator's offsets and the leaders' lag."""
    for number in range(3):
        simulation.produce("t", ["a", "b"], partition=number)
    first = simulation.group_consumer("g", ["t"], name="first", auto_commit_interval_ms=500)
    second = simulation.group_consumer("g", ["t"], name="second", auto_commit_interval_ms=500)
    view = simulation.wait_for_group("g", members=2)
    assert (view.state, view.generation, view.protocol_type, view.protocol) == (
        "Stable",
        1,
        "consumer",
        "range",
    )
    assert view.coordinator in simulation.broker_ids
    assert view.leader == view.members[0].member_id
    assert {member.client_id for member in view.members} == {"first", "second"}
    simulation.run_until(lambda: len(first.owned + second.owned) == 3)
    by_client = {member.client_id: member.assignment for member in view.members}
    assert by_client == {"first": first.owned, "second": second.owned}
    simulation.run_until(lambda: simulation.group("g").offsets == dict.fromkeys(T, 2))
    assert simulation.group("g").lag == dict.fromkeys(T, 0)
    first.halt()
    second.halt()
    simulation.produce("t", "c", partition=1)
    assert simulation.group("g").lag == {T[0]: 0, T[1]: 1, T[2]: 0}


def test_a_wait_for_a_group_that_times_out_reports_its_state(simulation: Simulation) -> None:
    with pytest.raises(WaitTimeout) as raised:
        simulation.wait_for_group("nobody", timeout_s=1)
    assert str(raised.value).startswith(
        "a stable group 'nobody' not there within 1 virtual s; "
        "<group nobody Dead: no coordinator knows it> (controller"
    )
    with pytest.raises(UsageError, match="members"):
        simulation.wait_for_group("g", members=0)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("assignor", "best"), ("session_timeout_ms", 0), ("auto_commit_interval_ms", -1)],
)
def test_a_member_with_invalid_settings_is_refused(
    simulation: Simulation, setting: str, value: Any
) -> None:
    with pytest.raises(UsageError, match=setting):
        simulation.group_consumer("g", ["t"], **{setting: value})
    with pytest.raises(UsageError, match="topics"):
        simulation.group_consumer("g", [])
    with pytest.raises(UsageError, match="group_id"):
        simulation.group_consumer("", ["t"])


def test_the_repr_of_a_group_shows_state_assignments_and_lag() -> None:
    """The repr of a group shows its state, generation, assignments and lag."""
    members = (
        GroupMemberView("till-1f", "till", None, (T[0], T[2])),
        GroupMemberView("x-2e", "x", "static", ()),
    )
    view = GroupView("g", "Stable", 2, 3, members=members, offsets={T[0]: 4}, lag={T[0]: 7})
    assert repr(view) == (
        "<group g Stable: generation 3, coordinator 2; members till (t-0, t-2), static (nothing); "
        "committed t-0 at 4 (lag 7)>"
    )
    assert repr(GroupView("h", "Dead", None)) == "<group h Dead: no coordinator knows it>"
