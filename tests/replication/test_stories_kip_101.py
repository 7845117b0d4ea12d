"""KIP-101: truncating to the high watermark loses and diverges, step by step
(docs/kafka/scenarios.md)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.data import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.replica_cluster import ReplicaCluster
from fakekafka.tests.support.replication_stories import (
    CURED_101,
    KIP_101,
    NEWEST,
    OLD,
    ON_FETCH,
    ROUNDS,
    Protocol,
    checkpoint_and_kill,
    cluster_of,
    look,
    name,
    restart,
)

# -- 17.1 ----------------------------------------------------------------------------------------


def acknowledged_but_unknown_to_the_follower(
    protocol: Protocol, **more: Any
) -> tuple[ReplicaCluster, list[Any]]:
    """Steps 0 to 3: A is 0, B is 1 and leads; m1 is acknowledged, A does not know it."""
    cluster = cluster_of(protocol, **more)
    cluster.create((1, 0))
    cluster.produce(1, "m0")
    cluster.replicate(0, rounds=4)
    assert look(cluster, 0, 1) == (("m0/0", 1), ("m0/0", 1))
    answers = cluster.produce_async(1, "m1")
    cluster.round(0)
    assert look(cluster, 0, 1) == (("m0/0 m1/0", 1), ("m0/0 m1/0", 1))
    assert answers == []
    cluster.round(0, answered=False)
    assert answers[0].error is ErrorCode.NONE
    assert look(cluster, 0, 1) == (("m0/0 m1/0", 1), ("m0/0 m1/0", 2))
    return cluster, answers


@pytest.mark.parametrize("protocol", [OLD, *CURED_101], ids=name)
def test_kip_101_scenario_a(protocol: Protocol) -> None:
    """A follower that truncates to its high watermark loses an acknowledged record
    (docs/kafka/scenarios.md#loss-by-truncation)."""
    cluster, _ = acknowledged_but_unknown_to_the_follower(protocol)
    checkpoint_and_kill(cluster, 0)
    restart(cluster, 0)
    if protocol in (KIP_101, ROUNDS):
        assert isinstance(cluster.round(0), OffsetForLeaderEpochRequest)
    kept = "m0/0" if protocol is OLD else "m0/0 m1/0"
    assert cluster[0].content() == kept
    assert cluster[1].high_watermark() == 2
    checkpoint_and_kill(cluster, 1)
    cluster.elect(0, isr=(0,))
    assert look(cluster, 0) == ((kept, 1 if protocol is OLD else 2),)
    cluster[1].start()
    cluster.announce()
    cluster.replicate(1)
    assert cluster[1].content() == kept
    assert cluster[1].high_watermark() == (1 if protocol is OLD else 2)
    if protocol in (ROUNDS, ON_FETCH, NEWEST):
        assert cluster[1].epochs() == [(0, 0)]
        assert cluster[0].epochs() == [(0, 0), (1, 2)]


def test_kip_101_scenario_a_halts_without_unclean_election() -> None:
    """Where unclean election is disabled the returning 0.10 broker exits."""
    cluster, _ = acknowledged_but_unknown_to_the_follower(
        OLD, topic={"unclean.leader.election.enable": "false"}
    )
    checkpoint_and_kill(cluster, 0)
    restart(cluster, 0)
    checkpoint_and_kill(cluster, 1)
    cluster.elect(0, isr=(0,))
    restart(cluster, 1)
    assert isinstance(cluster.round(1), FetchRequest)
    assert isinstance(cluster.round(1), ListOffsetsRequest)
    assert cluster[1].halted is not None
    assert not cluster[1].is_alive


@pytest.mark.parametrize("protocol", CURED_101, ids=name)
def test_kip_101_scenario_a_with_a_dead_leader(protocol: Protocol) -> None:
    """When B is dead already A cannot ask, does not truncate, and leads with both
    (docs/kafka/scenarios.md#loss-by-truncation)."""
    cluster, _ = acknowledged_but_unknown_to_the_follower(protocol)
    checkpoint_and_kill(cluster, 0)
    checkpoint_and_kill(cluster, 1)
    cluster[0].start()
    cluster.elect(0, isr=(0,))
    assert look(cluster, 0) == (("m0/0 m1/0", 2),)


@pytest.mark.parametrize("protocol", [OLD, *CURED_101], ids=name)
def test_kip_101_loss_without_a_restart(protocol: Protocol) -> None:
    """The same by a mere change of leaders among three replicas
    (docs/kafka/scenarios.md#loss-by-truncation)."""
    cluster = cluster_of(protocol, brokers=3)
    cluster.create((1, 0, 2))
    cluster.produce(1, "m0")
    cluster.replicate(0, 2, rounds=4)
    answers = cluster.produce_async(1, "m1")
    for broker in (0, 2):
        cluster.round(broker)
    for broker in (0, 2):
        cluster.round(broker, answered=False)
    assert answers[0].error is ErrorCode.NONE
    assert look(cluster, 0, 2) == (("m0/0 m1/0", 1), ("m0/0 m1/0", 1))
    cluster.elect(2)
    assert cluster[0].content() == ("m0/0" if protocol is OLD else "m0/0 m1/0")
    cluster[2].kill()
    cluster.elect(0, isr=(0, 1))
    assert cluster[0].content() == ("m0/0" if protocol is OLD else "m0/0 m1/0")


# -- 17.2 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [OLD, *CURED_101], ids=name)
def test_kip_101_scenario_b(protocol: Protocol) -> None:
    """Power is lost on both; the acknowledged m1 is gone, and 0.10 also diverges
    (docs/kafka/scenarios.md#divergence)."""
    cluster = cluster_of(protocol)
    cluster.create((0, 1))
    cluster.produce(0, "m0")
    cluster.replicate(1, rounds=4)
    cluster[1].log().flush()
    answers = cluster.produce_async(0, "m1")
    cluster.replicate(1, rounds=2)
    assert answers[0].error is ErrorCode.NONE
    cluster[0].log().flush()
    for broker in (0, 1):
        cluster[broker].manager.upkeep.checkpoint_high_watermarks()
        cluster[broker].power_off()
    cluster[1].start()
    cluster.elect(1, isr=(1,))
    assert look(cluster, 1) == (("m0/0", 1),)
    cluster.produce(1, "m2")
    assert look(cluster, 1) == (("m0/0 m2/1", 2),)
    if protocol is not OLD:
        assert cluster[1].epochs() == [(0, 0), (1, 1)]
    restart(cluster, 0)
    assert look(cluster, 0) == (("m0/0 m1/0", 2),)
    if protocol is OLD:
        request = cluster.round(0)
        assert request.partitions[0].fetch_offset == 2
        cluster.replicate(0)
        assert cluster[0].content() == "m0/0 m1/0", "offset 1 differs for ever"
        return
    cluster.round(0)
    assert look(cluster, 0) == (("m0/0", 1),)
    cluster.round(0)
    assert cluster[0].content() == "m0/0 m2/1"
    cluster.replicate(0)
    assert look(cluster, 0) == (("m0/0 m2/1", 2),)
    assert cluster[0].epochs() == [(0, 0), (1, 1)]
