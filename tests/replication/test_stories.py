"""Kafka's data-loss stories, step by step, for each truncation protocol
(docs/kafka/scenarios.md).

``OLD`` is the protocol of 0.10 (truncate to the high watermark), ``KIP_101`` asks one epoch (1.1),
``ON_FETCH`` and ``NEWEST`` find divergence on fetch (2.8, 3.9); ``ROUNDS`` is that of 2.0 to 2.7.
"""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.data import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster

Protocol = tuple[str, dict[str, str]]
"""A version, and the flags in which the protocol differs from that version."""

OLD: Protocol = ("0.10", {})
KIP_101: Protocol = ("1.1", {})
ROUNDS: Protocol = ("2.8", {"truncation": "leader_epoch"})
ON_FETCH: Protocol = ("2.8", {})
NEWEST: Protocol = ("3.9", {})
CURED_101 = (KIP_101, ROUNDS, ON_FETCH, NEWEST)
CURED_279 = (ROUNDS, ON_FETCH, NEWEST)


def name(protocol: Protocol) -> str:
    return protocol[0] + ("" if not protocol[1] else "-rounds")


def cluster_of(protocol: Protocol, brokers: int = 2, **more: Any) -> ReplicaCluster:
    version, flags = protocol
    return ReplicaCluster(version, brokers, flags=flags, **more)


def look(cluster: ReplicaCluster, *brokers: int) -> tuple[tuple[str, int], ...]:
    """Return (content, high watermark) of each broker's replica."""
    return tuple((cluster[b].content(), cluster[b].high_watermark()) for b in brokers)


def restart(cluster: ReplicaCluster, broker: int) -> None:
    """Restart a broker in the role that the metadata gives it, without an election."""
    cluster[broker].start()
    cluster.update_metadata()
    cluster.leader_and_isr(broker)


def checkpoint_and_kill(cluster: ReplicaCluster, broker: int) -> None:
    cluster[broker].manager.upkeep.checkpoint_high_watermarks()
    cluster[broker].kill()


# -- truncation to the high watermark loses ------------------------------------------------------


def acknowledged_but_unknown_to_the_follower(
    protocol: Protocol, **more: Any
) -> tuple[ReplicaCluster, list[Any]]:
    """Steps 0 to 3: A is 0, B is 1 and leads; m1 is acknowledged, but A's high watermark excludes
    it."""
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
    """With B dead A cannot ask for the epoch's end, does not truncate, and leads with both records
    (docs/kafka/scenarios.md#loss-by-truncation)."""
    cluster, _ = acknowledged_but_unknown_to_the_follower(protocol)
    checkpoint_and_kill(cluster, 0)
    checkpoint_and_kill(cluster, 1)
    cluster[0].start()
    cluster.elect(0, isr=(0,))
    assert look(cluster, 0) == (("m0/0 m1/0", 2),)


@pytest.mark.parametrize("protocol", [OLD, *CURED_101], ids=name)
def test_kip_101_loss_without_a_restart(protocol: Protocol) -> None:
    """A mere change of leaders among three replicas loses the same record
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


# -- truncation to the high watermark diverges ---------------------------------------------------


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


# -- a fast failover -----------------------------------------------------------------------------


def tail(cluster: ReplicaCluster, broker: int) -> str:
    """Return the records from offset 10 on."""
    return " ".join(cluster[broker].content().split()[10:])


def fast_fail_over(protocol: Protocol) -> ReplicaCluster:
    """Steps 1 and 2: A is 0; u10, u11 only at A, then B leads and writes v10."""
    cluster = cluster_of(protocol)
    cluster.create((0, 1))
    cluster.produce(0, *[f"r{n}" for n in range(10)])
    cluster.replicate(1, rounds=6)
    assert (cluster[0].high_watermark(), cluster[1].high_watermark()) == (10, 10)
    cluster.produce(0, "u10", "u11")
    cluster.elect(1)
    cluster.produce(1, "v10")
    return cluster


@pytest.mark.parametrize("protocol", [KIP_101, *CURED_279], ids=name)
def test_kip_279_fast_fail_over(protocol: Protocol) -> None:
    """With one epoch request alone the logs diverge at 10; naming the epoch prevents that
    (docs/kafka/scenarios.md#fast-failover)."""
    cluster = fast_fail_over(protocol)
    cluster.elect(0)
    cluster.produce(0, "w12")
    assert tail(cluster, 0) == "u10/0 u11/0 w12/2"
    assert cluster[0].log_end_offset() == 13
    assert cluster[0].epochs() == [(0, 0), (2, 12)]
    cluster.round(1)
    if protocol is KIP_101:
        assert tail(cluster, 1) == "v10/1", "12 is beyond its end 11: nothing is cut"
        cluster.replicate(1)
        assert tail(cluster, 1) == "v10/1 u11/0 w12/2", "diverged at 10"
        return
    assert cluster[1].log_end_offset() == 10
    request = cluster.round(1)
    assert isinstance(request, FetchRequest)
    cluster.replicate(1)
    assert tail(cluster, 1) == "u10/0 u11/0 w12/2"
    assert cluster[1].log_end_offset() == 13
    assert cluster[1].epochs() == [(0, 0), (2, 12)]


def test_kip_279_on_fetch_exchange() -> None:
    """B's fetch names 11 in epoch 1; told (0, 12), B truncates to 10 and fetches 10 in epoch 0."""
    cluster = fast_fail_over(ON_FETCH)
    cluster.elect(0)
    cluster.produce(0, "w12")
    first, second = cluster.round(1), cluster.round(1)
    asked = [
        (entry.fetch_offset, entry.last_fetched_epoch)
        for request in (first, second)
        for entry in request.partitions
    ]
    assert asked == [(11, 1), (10, 0)]


@pytest.mark.parametrize("protocol", [KIP_101, *CURED_279], ids=name)
def test_kip_279_without_a_write_in_the_last_epoch(protocol: Protocol) -> None:
    """Without w12 1.1 asks about a future epoch, gets no answer and falls back to its HW 10."""
    cluster = fast_fail_over(protocol)
    cluster.elect(0)
    newer = () if protocol is KIP_101 else ((2, 12),)
    assert tuple(cluster[0].epochs()) == ((0, 0), *newer)
    cluster.round(1)
    assert cluster[1].log_end_offset() == 10
    cluster.replicate(1)
    assert tail(cluster, 1) == "u10/0 u11/0"


# -- elections in turn ---------------------------------------------------------------------------


def unclean_in_turn(protocol: Protocol) -> ReplicaCluster:
    """A is 0: epochs 1@0 2@10; B is 1: epochs 1@0 3@10, LEO 15; A leads epoch 4 from 20."""
    cluster = cluster_of(protocol)
    cluster.create((0, 1))
    cluster.elect(0)
    cluster.produce(0, *[f"r{n}" for n in range(10)])
    cluster.replicate(1, rounds=6)
    checkpoint_and_kill(cluster, 1)
    cluster.elect(0, isr=(0,))
    cluster.produce(0, *[f"a{n}" for n in range(10, 20)])
    checkpoint_and_kill(cluster, 0)
    cluster[1].start()
    cluster.elect(1, isr=(1,))
    cluster.produce(1, *[f"b{n}" for n in range(10, 15)])
    checkpoint_and_kill(cluster, 1)
    cluster[0].start()
    cluster[1].start()
    cluster.elect(0, isr=(0,))
    assert (cluster[0].log_end_offset(), cluster[1].log_end_offset()) == (20, 15)
    return cluster


@pytest.mark.parametrize("protocol", [KIP_101, *CURED_279], ids=name)
def test_kip_279_several_rounds(protocol: Protocol) -> None:
    """After unclean elections in turn, one round of truncation is not enough
    (docs/kafka/scenarios.md#several-rounds)."""
    cluster = unclean_in_turn(protocol)
    if protocol is KIP_101:
        cluster.replicate(1)
        assert tail(cluster, 1).startswith("b10/3 b11/3 b12/3 b13/3 b14/3 a15/2")
        return
    starts = [(1, 0), (2, 10), (4, 20)]
    assert cluster[0].epochs() == starts
    assert cluster[1].epochs() == [(1, 0), (3, 10)]
    first = cluster.round(1)
    assert cluster[1].log_end_offset() == 10
    second = cluster.round(1)
    if protocol is ROUNDS:
        assert [r.partitions[0].leader_epoch for r in (first, second)] == [3, 1]
        assert cluster[1].log_end_offset() == 10
    else:
        asked = [
            (r.partitions[0].fetch_offset, r.partitions[0].last_fetched_epoch)
            for r in (first, second)
        ]
        assert asked == [(15, 3), (10, 1)]
    cluster.replicate(1)
    assert cluster[1].log_end_offset() == 20
    assert cluster[1].content() == cluster[0].content()


# -- an unclean election -------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [OLD, KIP_101, ROUNDS, ON_FETCH], ids=name)
@pytest.mark.parametrize("records_at_b", [2, 3])
def test_unclean_election(protocol: Protocol, records_at_b: int) -> None:
    """An unclean election loses acknowledged records; in 0.10 the logs diverge as well
    (docs/kafka/scenarios.md#unclean-election)."""
    cluster = cluster_of(protocol)
    cluster.create((0, 1))
    cluster.produce(0, *[f"a{n}" for n in range(5)])
    cluster.replicate(1, rounds=6)
    checkpoint_and_kill(cluster, 1)
    cluster.elect(0, isr=(0,))
    assert all(cluster.produce_async(0, f"a{n}")[0].error is ErrorCode.NONE for n in range(5, 8))
    assert cluster[0].high_watermark() == 8
    checkpoint_and_kill(cluster, 0)
    cluster[1].start()
    cluster.elect(-1, isr=(0,))
    refused = cluster.produce_async(1, "x")
    assert refused[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.elect(1, isr=(1,))
    assert look(cluster, 1)[0][1] == 5
    written = [f"b{n}" for n in range(5, 5 + records_at_b)]
    for value in written:
        assert cluster.produce_async(1, value)[0].error is ErrorCode.NONE
    end = 5 + records_at_b
    assert (cluster[1].log_end_offset(), cluster[1].high_watermark()) == (end, end)
    restart(cluster, 0)
    assert cluster[0].high_watermark() == 8
    cluster.replicate(0)
    kept = "a0/0 a1/0 a2/0 a3/0 a4/0"
    epoch = cluster.state[TP].leader_epoch
    if protocol is OLD:
        after = "a5/1 a6/1" if records_at_b == 2 else "a5/1 a6/1 a7/1"
        assert cluster[0].content() == f"{kept} {after}", "kept what nobody else has"
    else:
        assert cluster[0].content() == " ".join([kept, *[f"{v}/{epoch}" for v in written]])
        assert cluster[0].content() == cluster[1].content()
    assert cluster[0].high_watermark() == end
    beyond = cluster.fetch(1, 9)[0]
    assert beyond.error is ErrorCode.OFFSET_OUT_OF_RANGE


# -- a leader that crashes -----------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [OLD, KIP_101, ROUNDS, ON_FETCH, NEWEST], ids=name)
@pytest.mark.parametrize("acks", [1, -1])
def test_leader_crash_after_acks_1(protocol: Protocol, acks: int) -> None:
    """acks=1 answers before replication, so a crash loses the record; acks=all does not
    (docs/kafka/scenarios.md#leader-crash)."""
    cluster = cluster_of(protocol)
    cluster.create((0, 1))
    cluster.produce(0, *[f"r{n}" for n in range(10)])
    cluster.replicate(1, rounds=6)
    answers = cluster.produce_async(0, "r10", acks=acks)
    assert [a.base_offset for a in answers] == ([10] if acks == 1 else [])
    assert cluster[0].high_watermark() == 10
    assert cluster.fetch(0, 10)[0].records == ()
    checkpoint_and_kill(cluster, 0)
    cluster.elect(1, isr=(1,))
    assert cluster[1].log_end_offset() == 10
    retried = cluster.produce_async(1, "r10" if acks == -1 else "s10")
    assert retried[0].error is ErrorCode.NONE
    restart(cluster, 0)
    cluster.replicate(0)
    value = "r10" if acks == -1 else "s10"
    epoch = cluster.state[TP].leader_epoch
    assert tail(cluster, 0) == tail(cluster, 1) == f"{value}/{epoch}"


# -- too few replicas in sync --------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [OLD, KIP_101, ON_FETCH, NEWEST], ids=name)
@pytest.mark.parametrize(
    ("minimum", "acks", "error", "appended"),
    [
        ("1", -1, ErrorCode.NONE, 1),
        ("2", -1, ErrorCode.NOT_ENOUGH_REPLICAS, 0),
        ("2", 1, ErrorCode.NONE, 1),
        ("2", 0, ErrorCode.NONE, 1),
    ],
)
def test_min_isr(
    protocol: Protocol, minimum: str, acks: int, error: ErrorCode, appended: int
) -> None:
    """An ISR of one out of three replicas accepts writes according to min.insync.replicas
    (docs/kafka/produce.md#minimum-isr)."""
    cluster = cluster_of(protocol, brokers=3, topic={"min.insync.replicas": minimum})
    cluster.create((0, 1, 2), isr=(0,))
    assert cluster.produce_async(0, "a", acks=acks)[0].error is error
    assert cluster[0].log_end_offset() == appended
    frozen = protocol is NEWEST and minimum == "2"
    assert cluster[0].high_watermark() == (0 if frozen else appended)


@pytest.mark.parametrize(
    ("protocol", "error"),
    [
        (OLD, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        (ON_FETCH, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        (NEWEST, ErrorCode.REQUEST_TIMED_OUT),
    ],
    ids=["0.10", "2.8", "3.9"],
)
def test_min_isr_lost_while_waiting(protocol: Protocol, error: ErrorCode) -> None:
    """When the ISR shrinks under a waiting produce, the answer is 20 once the HW passes; 3.7
    freezes the HW, so 7 (docs/kafka/produce.md#minimum-isr)."""
    cluster = cluster_of(
        protocol, topic={"min.insync.replicas": "2"}, config={"replica.lag.time.max.ms": 1000}
    )
    cluster.create((0, 1))
    answers = cluster.produce_async(0, "a")
    cluster.clock.advance(2000)  # 0.10.1 looks once per lag time (KAFKA-4485)
    assert cluster.state[TP].isr == (0,)
    cluster.produce(0, "b")  # acks=1: lets the high watermark move where permitted
    cluster.clock.advance(30000)
    assert answers[0].error is error
    assert cluster.produce_async(0, "c")[0].error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert [value.split("/")[0] for value in cluster[0].content().split()] == ["a", "b"]


# -- epochs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", CURED_279, ids=name)
def test_logs_are_identical_after_unclean_elections_in_turn(protocol: Protocol) -> None:
    """DP-98: after unclean elections in turn ex-leaders truncate, and all logs are identical with
    ascending offsets."""
    cluster = unclean_in_turn(protocol)
    cluster.produce(0, "c20")
    cluster.replicate(1)
    checkpoint_and_kill(cluster, 0)
    cluster.elect(1, isr=(1,))
    cluster.produce(1, "d21")
    cluster[0].start()
    cluster.announce()
    cluster.leader_and_isr(0)
    cluster.replicate(0)
    for _ in range(4):
        cluster.elect(0, isr=(0, 1))
        cluster.produce(0, "e")
        cluster.elect(1, isr=(0, 1))
        cluster.produce(1, "f")
        cluster.replicate(0)
    batches = [list(cluster[b].log().batches()) for b in (0, 1)]
    assert [b.data for b in batches[0]] == [b.data for b in batches[1]]
    offsets = [b.base_offset for b in batches[0]]
    assert offsets == sorted(offsets)


def test_epochs_travel_with_the_records() -> None:
    """DP-97: a follower knows an epoch only from the first record replicated in it."""
    cluster = cluster_of(ON_FETCH)
    cluster.create((0, 1))
    cluster.produce(0, "a")
    cluster.replicate(1)
    cluster.elect(0)
    cluster.replicate(1)
    assert cluster[1].epochs() == [(0, 0)]
    cluster.produce(0, "b")
    cluster.replicate(1)
    assert cluster[1].epochs() == [(0, 0), (1, 1)]
