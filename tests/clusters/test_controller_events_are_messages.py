"""The controller's events are messages of its actor, which can be recorded, held, dropped and
waited for.

A controller processes one event at a time (docs/kafka/controller-state.md#events).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakekafka import Simulation
from fakekafka.actors.delivery import Delivery
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.statemachines.controller.events import (
    BrokerChange,
    ControllerEvent,
    ListPartitionReassignments,
    TopicChange,
    controller_events,
)
from fakekafka.testing.api_names import message_type
from fakekafka.testing.handles.message_gate import MessageGate
from fakekafka.tests.support.whole_clusters import running, stored
from fakekafka.tracing.events import Event

EVENT_NAMES = frozenset(event.__name__ for event in controller_events())
ONE_TOPIC = {"t": {"assignment": {0: [2, 3]}}}


def is_a(kind: type) -> Callable[[Delivery], bool]:
    return lambda delivery: type(delivery.message) is kind


def recorded(version: str, happens: Callable[[Simulation], None]) -> list[Event]:
    """Return the events recorded after the cluster started to serve."""
    with Simulation(3, seed=1, kafka_version=version, topics=ONE_TOPIC) as simulation:
        first = len(simulation.recorder)
        happens(simulation)
        return [event for event in simulation.recorder.events if event.seq >= first]


def to_controllers(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event.kind == kind and event.type in EVENT_NAMES]


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_the_trace_of_a_failover_names_the_events(version: str) -> None:
    """When the controller's znode is deleted, the others stand for election, and the losers learn
    who won.
    """

    def kill(simulation: Simulation) -> None:
        simulation.broker(1).kill()
        simulation.run_for(30_000)

    events = recorded(version, kill)
    delivered = [(event.actor, event.type) for event in to_controllers(events, "deliver")]
    assert ("controller-2", "Reelect") in delivered
    assert ("controller-3", "Reelect") in delivered
    assert {name for _, name in delivered} >= {"ControllerChange", "LeaderAndIsrResponseReceived"}


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_an_event_has_a_cause_and_is_the_cause_of_its_requests(version: str) -> None:
    """WatchEvent is followed by BrokerChange, and that by reads of the registrations."""

    def kill(simulation: Simulation) -> None:
        simulation.broker(3).kill()
        simulation.run_for(30_000)

    events = recorded(version, kill)
    by_seq = {event.seq: event for event in events}
    sent = next(e for e in to_controllers(events, "send") if e.type == "BrokerChange")
    taken = next(e for e in to_controllers(events, "deliver") if e.message_id == sent.message_id)
    assert sent.cause is not None
    assert by_seq[sent.cause].type == "WatchEvent"
    assert (taken.actor, taken.type) == ("controller-1", "BrokerChange")
    asked = [e.type for e in events if e.cause == taken.seq and e.kind == "send"]
    assert asked == ["ClientPacket"]


def test_the_next_event_is_delivered_when_the_current_one_is_processed() -> None:
    """Three events that are queued at once and read ZooKeeper are delivered one after another."""
    with running(3, "3.9", topics=ONE_TOPIC) as cluster:
        manager = cluster.running.require_controller().event_manager
        in_hand: list[tuple[str, str | None]] = []
        cluster.observe(
            lambda d: (
                in_hand.append((d.message.name, manager.current and manager.current.name))
                if isinstance(d.message, ControllerEvent)
                else None
            )
        )
        for _ in range(3):
            manager.put(TopicChange())
        cluster.step()
        assert len(manager) == 2
        cluster.run_until(lambda: len(in_hand) == 3 and manager.current is None)
        assert in_hand == [("TopicChange", None)] * 3


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_held_event_delays_no_other_event(version: str) -> None:
    """The dead broker stays leader until BrokerChange is released, while topics can be created."""
    with running(3, version, topics=ONE_TOPIC) as cluster:
        hold = cluster.network.hold(is_a(BrokerChange))
        cluster.broker(2).kill()
        cluster.run_until(lambda: hold.messages)
        cluster.run_for(5000)
        assert stored(cluster)[0] == 2
        assert cluster.controller.metrics["EventQueueSize"] == 0
        cluster.create_topic("u", assignment={0: [3]})
        assert cluster.partition("u", 0).leader == 3
        assert hold.end() == 1
        cluster.run_until(lambda: stored(cluster)[0] == 3)


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_an_event_that_is_dropped_never_happens(version: str) -> None:
    """The death of the broker has no consequence, but later events are processed."""
    with running(3, version, topics=ONE_TOPIC) as cluster:
        cluster.running.runtime.network.intercept(is_a(BrokerChange))
        cluster.broker(2).kill()
        cluster.run_for(30_000)
        assert stored(cluster)[0] == 2
        cluster.create_topic("u", assignment={0: [3]})
        assert cluster.partition("u", 0).leader == 3


def test_a_run_stops_at_an_event() -> None:
    """At the delivery of BrokerChange the state is still that before its processing."""
    with running(3, "3.9", topics=ONE_TOPIC) as cluster:
        seen: list[Delivery] = []
        cluster.observe(lambda d: seen.append(d) if is_a(BrokerChange)(d) else None)
        cluster.broker(2).kill()
        cluster.run_until(lambda: seen)
        manager = cluster.running.require_controller().event_manager
        assert manager.current is seen[0].message
        assert seen[0].target.name == "controller-1"
        assert stored(cluster)[0] == 2
        cluster.run_until(lambda: manager.current is None)
        assert stored(cluster)[0] == 3


def test_preempted_events_are_recorded_as_dropped() -> None:
    """Clearing the queue drops all events that it held."""

    def clear(simulation: Simulation) -> None:
        manager = simulation.running.require_controller().event_manager
        manager.put(TopicChange())
        manager.clear_and_put(BrokerChange())
        simulation.run_for(100)

    events = recorded("3.9", clear)
    dropped = to_controllers(events, "drop")
    assert [(e.actor, e.type, e.why) for e in dropped] == [
        ("controller-1", "TopicChange", "preempted")
    ]
    assert "TopicChange" not in [e.type for e in to_controllers(events, "deliver")]


def test_a_gate_holds_only_the_events_that_it_names() -> None:
    """``hold`` of stories without types holds all messages to a machine, but no events of its
    controller.
    """
    with running(3, "3.9", topics=ONE_TOPIC) as cluster:
        gate = MessageGate(cluster.running)
        gate.hold((), None, 1)
        manager = cluster.running.require_controller().event_manager
        answers: list[object] = []
        manager.put(ListPartitionReassignments(None, answers.append))
        cluster.run_for(10)
        assert answers == [()]
        gate.release((), None, None)
        gate.hold((message_type("BrokerChange"),), None, 1)
        cluster.broker(2).kill()
        cluster.run_for(30_000)
        assert stored(cluster)[0] == 2
        gate.release((), None, None)
        cluster.run_until(lambda: stored(cluster)[0] == 3)
