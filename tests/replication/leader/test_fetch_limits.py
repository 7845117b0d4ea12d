"""Where the limits of a fetch cut (docs/kafka/fetch.md#limits)."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.protocol.data import FetchPartition, FetchPartitionResponse, FetchResponse
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import PartialBatch, whole_batches
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.filled_partitions import filled, multi
from fakekafka.tests.support.follower import Follower, batch_at, fetched
from fakekafka.tests.support.present import present
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster
from fakekafka.wire.kafka.codec import Codec

OTHER = TopicPartition("u", 0)


@pytest.mark.parametrize("replica_id", [-1, 1])
@pytest.mark.parametrize("in_session", [False, True])
@pytest.mark.parametrize("is_throttled", [False, True])
@pytest.mark.parametrize(
    ("max_bytes", "each", "sizes"),
    [(2.5, 1.25, [1.25, 1.25, 0]), (2.25, 1.5, [1.5, 0, 0]), (3.5, 2, [2, 1.5, 0])],
)
def test_limits_cut_at_the_byte(
    replica_id: int,
    in_session: bool,
    is_throttled: bool,
    max_bytes: float,
    each: float,
    sizes: list[float],
) -> None:
    """DP-72, DP-73: a batch cut off at the end counts against both limits; a first batch that would
    be cut is left out (``LogSegment.read``, ``ReplicaManager.readFromLocalLog``). Limits and sizes
    here are in batches. A throttle of another topic changes nothing."""
    names = [TP, OTHER, TopicPartition("third", 0)]
    cluster = ReplicaCluster(brokers=2)
    for name in names:
        cluster.create((0, 1), name)
        for value in "abc":
            cluster.produce(0, value * 44, tp=name, acks=1)
        cluster.fetch(0, 3, replica_id=1, tp=name)
    size = len(cluster[0].log().active.stored[0])
    assert size % 4 == 0
    if is_throttled:
        cluster[0].manager.quotas.leader.throttle("throttled", None)
    limits: dict[str, Any] = {"max_bytes": int(max_bytes * size)}
    specs = [FetchPartition(name, 0, max_bytes=int(each * size)) for name in names]
    if in_session:
        (opened,) = multi(cluster, specs, replica_id=replica_id, session_epoch=0, max_bytes=0)
        limits |= {"session_id": opened.session_id, "session_epoch": 1}
    (response,) = multi(cluster, specs, replica_id=replica_id, **limits)
    found = {p.topic_partition: sum(len(b.data) for b in p.records) for p in response.partitions}
    assert [found.get(name, 0) for name in names] == [int(one * size) for one in sizes]


def test_aborted_transactions_reach_to_the_last_whole_batch() -> None:
    """The aborted transactions of an answer reach to its last whole batch; consumers refetch the
    batch cut off."""
    cluster = filled(brokers=1)
    size = len(cluster[0].log().active.stored[0])
    (answer,) = cluster.fetch(0, 0, partition_max_bytes=size + 1, isolation_level=1)
    assert [len(batch.data) for batch in answer.records] == [size, 1]
    assert answer.aborted_transactions == ()


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8", "3.9"])
def test_followers_discard_an_incomplete_batch(version: str) -> None:
    """A follower drops a batch that was cut off and refetches it from the end of the last whole
    batch (``MemoryRecords.batches`` ends before an incomplete batch)."""
    follower = Follower(version)
    follower.next()
    batches = batch_at(0, 3), batch_at(3, 2, epoch=4), PartialBatch(batch_at(5).data[:30])
    follower.answer_fetch(fetched(*batches, high_watermark=9))
    assert follower.log().log_end_offset == follower.state().fetch_offset == 5
    assert follower.log().size_in_bytes == sum(len(batch.data) for batch in batches[:2])
    follower.next()
    follower.answer_fetch(fetched(PartialBatch(batch_at(5).data[:30]), high_watermark=9))
    assert follower.log().log_end_offset == follower.state().fetch_offset == 5
    follower.next()
    follower.answer_fetch(fetched(batch_at(5), high_watermark=9))
    assert follower.log().log_end_offset == 6


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8", "3.9"])
def test_everything_arrives_through_narrow_limits(version: str) -> None:
    """Followers and consumers get every record even if their limits cut almost every answer."""
    narrow = {"replica.fetch.max.bytes": 200, "replica.fetch.response.max.bytes": 250}
    with Simulation(
        brokers=2, kafka_version=version, config=narrow, trace=False, seed=3
    ) as simulation:
        simulation.create_topic("t", partitions=2, replication_factor=2)
        values = [b"v%03d" % number * 15 for number in range(40)]
        for number, value in enumerate(values):
            simulation.produce("t", value, partition=number % 2)
        consumer = simulation.consumer(
            [("t", 0), ("t", 1)], max_partition_fetch_bytes=300, fetch_max_bytes=400
        )
        seen: list[bytes | None] = []
        consumer.on_batch = lambda _, batch, start: seen.extend(
            record.value for record in batch.records() if record.offset >= start
        )
        simulation.run_for(20_000)
        assert sorted(map(present, seen)) == values
        for number in range(2):
            first, second = (simulation.log_bytes("t", number, replica) for replica in (1, 2))
            assert first == second


@pytest.mark.parametrize("version", [4, 11, 12])
def test_the_bytes_of_a_cut_batch_are_sent(version: int) -> None:
    """The bytes of a batch that was cut follow the whole batches and count in the size."""
    whole, cut = batch_at(0), PartialBatch(batch_at(1).data[:21])
    partition = FetchPartitionResponse(TP, ErrorCode.NONE, 2, 2, 0, (whole, cut))
    response = FetchResponse(ErrorCode.NONE, 0, (partition,))
    sent = b"".join(Codec("3.9").encode(1, version, response))
    at = sent.index(whole.data)
    assert sent[at : at + len(whole.data) + 21] == whole.data + cut.data
    size = len(whole.data) + 21
    if version < 12:
        assert int.from_bytes(sent[at - 4 : at], "big") == size
    else:
        assert sent[at - 1] == size + 1 < 128


def test_a_partial_batch_holds_no_record() -> None:
    """A partial batch holds no record, also after it was passed between processes."""
    cut = PartialBatch(batch_at(7).data[:5])
    assert (cut.records(), cut.partition_leader_epoch, cut.last_offset) == ([], -1, -1)
    assert type(pickle.loads(pickle.dumps(cut))) is PartialBatch
    assert whole_batches((cut,)) == whole_batches(()) == ()
