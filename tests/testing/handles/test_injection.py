"""Injections: which messages they affect, how often, and when they end."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fakekafka import Simulation, UsageError


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    topics = {"t": {"assignment": {0: [2, 3]}}}
    with Simulation(3, seed=1, topics=topics) as made:
        yield made


def ms_until_a_new_leader(simulation: Simulation) -> float:
    """How long a partition has no living leader after its leader is killed."""
    begun_ms = simulation.now_ms
    simulation.broker(2).kill()
    simulation.run_until(lambda: simulation.partition("t", 0).leader == 3)
    return simulation.now_ms - begun_ms


def test_a_delayed_controller_event_delays_the_failover(simulation: Simulation) -> None:
    """The controller hears of the dead broker half a second later, once; the queue goes on."""
    with Simulation(3, seed=1, topics={"t": {"assignment": {0: [2, 3]}}}) as undisturbed:
        usual_ms = ms_until_a_new_leader(undisturbed)
    injection = simulation.inject("BrokerChange", delay_ms=500)
    delayed_ms = ms_until_a_new_leader(simulation)
    assert delayed_ms == pytest.approx(usual_ms + 500, abs=5)
    assert (injection.applied, injection.remaining) == (1, 0)
    simulation.broker(2).start()
    simulation.run_until(lambda: set(simulation.partition("t", 0).isr) == {2, 3})
    assert injection.applied == 1


def test_an_event_of_another_broker_is_left_alone(simulation: Simulation) -> None:
    """Only the active controller gets the event."""
    idle = 3 if simulation.controller.id != 3 else 1
    injection = simulation.inject("BrokerChange", delay_ms=500, broker=idle)
    ms_until_a_new_leader(simulation)
    assert injection.applied == 0


@pytest.mark.parametrize("options", [{"error": "NOT_CONTROLLER"}, {"disconnect": True}])
def test_an_event_can_be_delayed_only(simulation: Simulation, options: dict[str, object]) -> None:
    """Nobody waits for an answer to it."""
    text = "API BrokerChange is an event of the controller; it can only be delayed"
    with pytest.raises(UsageError, match=re.escape(text)):
        simulation.inject("BrokerChange", **options)  # type: ignore[arg-type]


def test_a_name_of_both_is_the_request(simulation: Simulation) -> None:
    """ControlledShutdown is an API and an event; only an API has an answer."""
    injection = simulation.inject("ControlledShutdown", error="STALE_BROKER_EPOCH")
    simulation.broker(2).begin_shutdown()
    simulation.run_for(10_000)
    assert injection.applied == 1
