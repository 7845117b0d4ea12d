"""Leaders as a modelled client learns them from brokers that disagree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakekafka import Simulation
from fakekafka.actors.clients.client import SimulatedClient
from fakekafka.protocol.data import MetadataPartition, MetadataResponse, MetadataTopic
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition

WHERE = TopicPartition("orders", 0)


def metadata(leader: int, leader_epoch: int) -> MetadataResponse:
    partition = MetadataPartition(ErrorCode.NONE, 0, leader, leader_epoch, (1, 2), (1, 2), ())
    return MetadataResponse(
        (), "id", 1, (MetadataTopic(ErrorCode.NONE, "orders", False, (partition,)),)
    )


@pytest.fixture
def client() -> Iterator[SimulatedClient]:
    with Simulation(2, seed=1) as simulation:
        yield simulation.producer()


def test_metadata_of_an_older_leader_epoch_is_ignored(client: SimulatedClient) -> None:
    """KIP-320: a client ignores a leader with an older epoch, from a broker that lags behind."""
    assert not client._update_metadata(metadata(leader=1, leader_epoch=4))
    assert not client._update_metadata(metadata(leader=2, leader_epoch=5))
    assert not client._update_metadata(metadata(leader=1, leader_epoch=4))
    assert client.leaders[WHERE] == (2, 5)


@pytest.mark.parametrize("leader_epoch", [4, -1])
def test_metadata_of_the_same_leader_epoch_is_accepted(
    client: SimulatedClient, leader_epoch: int
) -> None:
    """With equal epochs, such as -1 of brokers without epochs, the latest answer counts."""
    client._update_metadata(metadata(leader=1, leader_epoch=leader_epoch))
    client._update_metadata(metadata(leader=2, leader_epoch=leader_epoch))
    assert client.leaders[WHERE] == (2, leader_epoch)


def test_metadata_without_a_leader_clears_the_known_leader(client: SimulatedClient) -> None:
    client._update_metadata(metadata(leader=1, leader_epoch=4))
    assert client._update_metadata(metadata(leader=-1, leader_epoch=5))
    assert WHERE not in client.leaders
