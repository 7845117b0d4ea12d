"""Kafka's data-loss stories, step by step, for each truncation protocol
(docs/kafka/scenarios.md)."""

from __future__ import annotations

import pytest
from fakekafka.protocol.data import FetchRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster
from fakekafka.tests.support.replication_stories import (
    CURED_279,
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

# -- 17.3 ----------------------------------------------------------------------------------------


def tail(cluster: ReplicaCluster, broker: int) -> str:
    """The records from offset 10 on."""
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
    """With one epoch request alone the logs diverge at 10; naming the epoch cures it
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
    """B sends 11 in epoch 1, is told (0, 12), cuts to 10 and sends 10 in epoch 0."""
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
    """Without w12 1.1 asks about the future, gets nothing and falls back to its HW 10."""
    cluster = fast_fail_over(protocol)
    cluster.elect(0)
    newer = () if protocol is KIP_101 else ((2, 12),)
    assert tuple(cluster[0].epochs()) == ((0, 0), *newer)
    cluster.round(1)
    assert cluster[1].log_end_offset() == 10
    cluster.replicate(1)
    assert tail(cluster, 1) == "u10/0 u11/0"


# -- 17.4 ----------------------------------------------------------------------------------------


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
    """After unclean elections in turn one round is not enough
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


# -- 17.5 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [OLD, KIP_101, ROUNDS, ON_FETCH], ids=name)
@pytest.mark.parametrize("records_at_b", [2, 3])
def test_unclean_election(protocol: Protocol, records_at_b: int) -> None:
    """An unclean election loses acknowledged records; 0.10 diverges on top
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


# -- 17.6 ----------------------------------------------------------------------------------------


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


# -- 17.7 ----------------------------------------------------------------------------------------


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
    """What an ISR of one out of three replicas admits under min.insync.replicas
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
    """The ISR shrinks under a waiting produce: 20 once HW passes; 3.7 freezes HW, so 7
    (docs/kafka/produce.md#minimum-isr)."""
    cluster = cluster_of(
        protocol,
        topic={"min.insync.replicas": "2"},
        config={"replica.lag.time.max.ms": 1000},
    )
    cluster.create((0, 1))
    answers = cluster.produce_async(0, "a")
    cluster.clock.advance(2000)  # 0.10.1 looks once per lag time (KAFKA-4485)
    assert cluster.state[TP].isr == (0,)
    cluster.produce(0, "b")  # acks=1: lets the high watermark move where it may
    cluster.clock.advance(30000)
    assert answers[0].error is error
    assert cluster.produce_async(0, "c")[0].error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert [value.split("/")[0] for value in cluster[0].content().split()] == ["a", "b"]


# -- 18.5 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", CURED_279, ids=name)
def test_logs_are_identical_after_unclean_elections_in_turn(protocol: Protocol) -> None:
    """DP-98: ex-leaders truncated, unclean elections in turn: identical logs, ascending offsets."""
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
    """DP-97: an epoch shows at the follower only with the first record replicated in it."""
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
