"""Choosing a replica for a consumer (KIP-392, docs/kafka/fetch.md#preferred-read-replica)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.control import UpdateMetadataRequest
from fakekafka.protocol.errors import UsageError
from fakekafka.protocol.values import BrokerInfo, EndPoint
from fakekafka.replication.leader.replica_selector import (
    LeaderSelector,
    RackAwareReplicaSelector,
    ReplicaView,
    preferred_replica,
    replica_selector,
)
from fakekafka.tests.support.present import present
from fakekafka.tests.support.replica_cluster import TP, led

LEADER = ReplicaView(0, "a", 10, 0)
NEAR = ReplicaView(1, "b", 8, 50)
NEARER = ReplicaView(2, "b", 9, 100)
FRESHER = ReplicaView(3, "b", 9, 10)


@pytest.mark.parametrize(
    ("rack", "views", "chosen"),
    [
        ("", [LEADER, NEAR], LEADER),
        ("z", [LEADER, NEAR], LEADER),
        ("a", [LEADER, NEAR], LEADER),
        ("b", [LEADER, NEAR], NEAR),
        ("b", [LEADER, NEAR, NEARER], NEARER),
        ("b", [LEADER, NEAR, NEARER, FRESHER], FRESHER),
        ("b", [LEADER], LEADER),
    ],
)
def test_rack_aware(rack: str, views: Any, chosen: Any) -> None:
    """The rack-aware selector prefers the client's rack, there the leader, then the greatest log
    end, then the latest catch-up."""
    assert RackAwareReplicaSelector().select(rack, LEADER, views) == chosen


def test_leader_selector() -> None:
    """The leader selector never sends anyone away."""
    assert LeaderSelector().select("b", LEADER, [LEADER, NEAR]) == LEADER


def test_unknown_class_fails_the_start() -> None:
    """DP-45: an unknown selector class is a start-up failure; none means none."""
    with pytest.raises(UsageError, match=r"no\.such"):
        replica_selector("no.such")
    assert replica_selector(None) is None
    name = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    assert isinstance(replica_selector(name), RackAwareReplicaSelector)


def preferred(offset: int, *racks: tuple[int, str | None]) -> int:
    """Return the replica to which leader 0 sends a client in rack b while the given brokers are
    live."""
    cluster = led("3.9", brokers=3)
    cluster.produce(0, *"abc")
    cluster.replicate(1, 2)
    cluster.produce(0, "d")
    cluster.replicate(2)
    manager = cluster[0].manager
    live = tuple(BrokerInfo(i, (EndPoint("h", 9092),), rack) for i, rack in racks)
    manager.metadata_cache.update(UpdateMetadataRequest(0, 1, -1, (), live))
    partition = present(manager.hosted.partition(TP))
    selector = RackAwareReplicaSelector()
    return preferred_replica(selector, partition, manager.metadata_cache, offset, "b")


def test_a_dead_replica_is_not_preferred() -> None:
    """DP-45: a dead replica is not preferred, whatever its rack."""
    assert preferred(0, (0, "a"), (1, "b")) == 1
    assert preferred(0, (0, "a"), (2, "b")) == 2
    assert preferred(0, (0, "a"), (1, "c")) == -1
    assert preferred(0, (0, "a"), (1, None)) == -1


def test_a_replica_without_the_offset_is_not_preferred() -> None:
    """A replica below the fetch offset is not preferred; one exactly at it, without the record,
    is."""
    assert preferred(3, (0, "a"), (1, "b"), (2, "c")) == 1
    assert preferred(4, (0, "a"), (1, "b"), (2, "c")) == -1
    assert preferred(4, (0, "a"), (1, "b"), (2, "b")) == 2
