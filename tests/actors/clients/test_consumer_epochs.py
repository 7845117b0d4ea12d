"""The leader epoch in the fetches of modelled consumers, by release (KIP-320)."""

from __future__ import annotations

import pytest
from fakekafka import Simulation


@pytest.mark.parametrize("is_in_group", [False, True])
@pytest.mark.parametrize(("kafka_version", "epoch"), [("2.2", -1), ("2.3", 0)])
def test_a_consumer_sends_the_leader_epoch_since_2_3(
    kafka_version: str, epoch: int, is_in_group: bool
) -> None:
    """Brokers check the epoch since 2.1, but the consumer of 2.1 and 2.2 does not send it."""
    with Simulation(1, kafka_version=kafka_version, topics={"t": 1}) as simulation:
        if is_in_group:
            simulation.group_consumer("g", ["t"], name="reader")
        else:
            simulation.consumer([("t", 0)], name="reader")
        simulation.run_for(10_000)
        fetches = [event.fields for event in simulation.events if event.type == "FetchRequest"]
    sent = {
        partition["current_leader_epoch"] for fetch in fetches for partition in fetch["partitions"]
    }
    assert sent == {epoch}
