"""Choosing a replica for a consumer (KIP-392, docs/kafka/fetch.md#preferred-read-replica)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.errors import UsageError
from fakekafka.replication.leader.replica_selector import (
    LeaderSelector,
    RackAwareReplicaSelector,
    ReplicaView,
    replica_selector,
)

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
    """Nearest by rack, the leader first, then the greatest end, then the freshest."""
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
