"""Automatic creation of topics by metadata requests (docs/kafka/administration.md#metadata)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.protocol.data import FindCoordinatorRequest, MetadataRequest, MetadataResponse
from fakekafka.protocol.errors import ErrorCode

OFFSETS = "__consumer_offsets"
CONFIG = {"offsets.topic.num.partitions": "2", "offsets.topic.replication.factor": "1"}


def ask(simulation: Simulation, broker_id: int, request: object) -> Any:
    async def asked() -> object:
        return await simulation.running.admin.ask(f"broker-{broker_id}", request, 10_000)

    return simulation.call(asked, 10_000)


def errors(response: MetadataResponse) -> dict[str | None, ErrorCode]:
    return {topic.name: topic.error for topic in response.topics}


@pytest.mark.parametrize("kafka_version", ["0.10", "1.1", "2.8", "3.9"])
def test_every_broker_creates_a_missing_topic(kafka_version: str) -> None:
    """Every broker, controller or not, creates the topic and answers LEADER_NOT_AVAILABLE."""
    with Simulation(3, seed=1, kafka_version=kafka_version, config=CONFIG) as simulation:
        for broker_id in (1, 2, 3):
            name = f"made-{broker_id}"
            response = ask(simulation, broker_id, MetadataRequest((name,)))
            assert errors(response) == {name: ErrorCode.LEADER_NOT_AVAILABLE}
        response = ask(simulation, 1, MetadataRequest((OFFSETS, "a b")))
        assert errors(response) == {
            OFFSETS: ErrorCode.LEADER_NOT_AVAILABLE,
            "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        simulation.run_for(1000)
        response = ask(simulation, 2, MetadataRequest((OFFSETS, "made-1", "made-3")))
        assert set(errors(response).values()) == {ErrorCode.NONE}
        assert [len(topic.partitions) for topic in response.topics] == [2, 1, 1]
        assert simulation.failures == []


def test_a_topic_just_created_by_another_broker_gets_the_same_answer() -> None:
    """A topic just created by another broker gets the same answer, as ``createTopicsInZk`` ignores
    TOPIC_ALREADY_EXISTS.
    """
    with Simulation(3, seed=1, config=CONFIG) as simulation:
        asking = simulation.running.admin

        async def both() -> list[ErrorCode]:
            first = asking.ask("broker-1", MetadataRequest(("t",)), 10_000)
            second = asking.ask("broker-2", MetadataRequest(("t",)), 10_000)
            return [errors(await first)["t"], errors(await second)["t"]]

        assert simulation.call(both, 10_000) == [ErrorCode.LEADER_NOT_AVAILABLE] * 2
        assert simulation.failures == []


def test_find_coordinator_creates_the_offsets_topic() -> None:
    """FindCoordinator first gets COORDINATOR_NOT_AVAILABLE and later the coordinator."""
    with Simulation(3, seed=1, config=CONFIG) as simulation:
        for expected in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE):
            response = ask(simulation, 2, FindCoordinatorRequest(("g",)))
            assert response.coordinators[0].error is expected
            simulation.run_for(1000)
