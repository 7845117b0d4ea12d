"""Steps that a controller up to 1.0 takes one at a time, and since 1.1 all at once."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.protocol.control import UpdateMetadataRequest
from fakekafka.zkfake.messages import ClientPacket, ExistsRequest

TOPICS = 12


def cluster(version: str) -> Simulation:
    simulation = Simulation(3, kafka_version=version, trace=False)
    simulation.create_topics([f"t{number}" for number in range(TOPICS)], 1, 2)
    simulation.run_for(2000)
    return simulation


def others(simulation: Simulation) -> list[int]:
    return [b for b in simulation.broker_ids if b != simulation.controller.id]


@pytest.mark.parametrize(("version", "one_by_one"), [("0.10", True), ("1.1", False)])
def test_a_controlled_shutdown_announces_each_partition_before_it_moves_the_next(
    version: str, one_by_one: bool
) -> None:
    """Until 1.0 each partition is written and announced before the next is considered."""
    simulation = cluster(version)
    leaving, staying = others(simulation)
    concerned = sum(
        leaving in simulation.partition(f"t{number}", 0).replicas for number in range(TOPICS)
    )
    told: list[int] = []

    def note(delivery: Any) -> None:
        message = delivery.message
        if type(message) is UpdateMetadataRequest and delivery.target.name == f"broker-{staying}":
            told.append(len(message.partition_states))

    simulation.observe(note)
    simulation.broker(leaving).begin_shutdown()
    simulation.run_until(lambda: sum(told) >= concerned)
    assert concerned > 2
    assert (told == [1] * concerned) is one_by_one


@pytest.mark.parametrize(("version", "expected"), [("0.10", TOPICS), ("1.1", 0), ("3.9", 0)])
def test_an_old_controller_sets_each_topics_watch_with_a_request_of_its_own(
    version: str, expected: int
) -> None:
    """ZkClient set a data watch with an exists request; since 1.1 the read of the topic sets it."""
    simulation = cluster(version)
    asked: list[str] = []

    def note(delivery: Any) -> None:
        message = delivery.message
        if type(message) is ClientPacket and isinstance(message.request, ExistsRequest):
            asked.append(message.request.path)

    simulation.observe(note)
    simulation.controller.resign()
    simulation.run_for(500)
    topics = [path for path in asked if path.startswith("/brokers/topics/")]
    assert topics == sorted(f"/brokers/topics/t{number}" for number in range(TOPICS))[:expected]


@pytest.mark.parametrize(("version", "epoch"), [("0.10", 1), ("1.1", 0), ("2.8", 0), ("3.9", 0)])
def test_a_lone_old_broker_becomes_controller_before_it_registers(version: str, epoch: int) -> None:
    """Until 1.0 a broker stands for election before it registers, so its own partitions are elected
    again.
    """
    with Simulation(1, kafka_version=version, trace=False) as simulation:
        simulation.create_topics(["t"], 1, 1)
        simulation.run_for(1000)
        assert simulation.partition("t", 0).leader_epoch == 0
        simulation.broker(1).begin_shutdown()
        simulation.run_for(10_000)
        simulation.broker(1).start()
        simulation.run_for(10_000)
        partition = simulation.partition("t", 0)
        assert (partition.leader, partition.leader_epoch) == (1, epoch)
        assert simulation.controller.id == 1


def test_an_old_broker_stands_for_election_after_its_former_session_expired() -> None:
    """While its former registration exists the start fails, so the other brokers elect a
    controller.
    """
    with Simulation(3, kafka_version="0.10", trace=False) as simulation:
        simulation.create_topics(["t"], 1, 3)
        simulation.run_for(1000)
        leader = simulation.partition("t", 0).leader
        assert leader is not None
        simulation.broker(leader).kill()
        simulation.broker(leader).start()
        simulation.run_for(30_000)
        after = simulation.partition("t", 0)
        assert sorted(after.isr) == [1, 2, 3]
        assert after.leader not in (None, leader)
        assert simulation.broker(leader).is_alive
