"""The cost model: what messages wait for, and the published figures by which it was calibrated."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from fakekafka import Simulation, UsageError
from fakekafka.actors.network.costs import PUBLISHED_2018, PUBLISHED_2018_LATENCY_MS, Costs
from fakekafka.zkfake.messages import CreateRequest, GetDataRequest, Request

WITHOUT_LOG = dataclasses.replace(PUBLISHED_2018, logged_partition_ms=0.0)
LONG_MS = 3_600_000


def cluster(
    version: str, topics: int, partitions: int, factor: int, in_flight: int = 10
) -> Simulation:
    """Return five brokers with topics; followers fetch the idle partitions rarely."""
    simulation = Simulation(
        5,
        kafka_version=version,
        latency_ms=PUBLISHED_2018_LATENCY_MS,
        costs=Costs(),
        trace=False,
        config={
            "auto.leader.rebalance.enable": "false",
            "zookeeper.max.in.flight.requests": in_flight,
            "replica.fetch.wait.max.ms": LONG_MS,
            "replica.lag.time.max.ms": 2 * LONG_MS,
            "replica.socket.timeout.ms": 2 * LONG_MS,
        },
    )
    simulation.create_topics([f"t{number}" for number in range(topics)], partitions, factor)
    simulation.run_for(1000)
    return simulation


def failover_ms(simulation: Simulation, costs: Costs = WITHOUT_LOG) -> float:
    simulation.costs = costs
    started_ms = simulation.now_ms
    simulation.controller.resign()
    manager = simulation.running.require_controller().event_manager
    simulation.run_until(lambda: manager.current is None and not len(manager), LONG_MS)
    return simulation.now_ms - started_ms


def shutdown_ms(simulation: Simulation, costs: Costs = WITHOUT_LOG) -> float:
    simulation.costs = costs
    controller = simulation.controller.id
    leaving = simulation.broker(next(b for b in simulation.broker_ids if b != controller))
    started_ms = simulation.now_ms
    leaving.begin_shutdown()
    simulation.run_until(lambda: not leaving.is_alive, LONG_MS)
    return simulation.now_ms - started_ms


def within_a_quarter(ratio: float, published: float) -> bool:
    return abs(ratio / published - 1) <= 0.25


@pytest.mark.parametrize(
    ("topics", "partitions", "published"),
    [(6, 50, 28 / 14), (300, 1, 63 / 17)],
    ids=["50 partitions a topic", "1 partition a topic"],
)
def test_pipelining_makes_a_failover_faster(topics: int, partitions: int, published: float) -> None:
    """KAFKA-5642: the new controller reads with ten requests in flight instead of one."""
    synchronous = failover_ms(cluster("0.10", topics, partitions, 1))
    pipelined = failover_ms(cluster("1.1", topics, partitions, 1))
    assert within_a_quarter(synchronous / pipelined, published)


def test_pipelining_makes_a_controlled_shutdown_faster() -> None:
    """KAFKA-5642: 30 s, partition by partition, became 3 s."""
    synchronous = shutdown_ms(cluster("0.10", 200, 1, 2))
    pipelined = shutdown_ms(cluster("1.1", 200, 1, 2))
    assert within_a_quarter(synchronous / pipelined, 30 / 3)


def test_two_requests_in_flight_are_faster_than_one() -> None:
    """KAFKA-5894: 9.7 s with a window of one request, 6.2 s with two."""
    one, two = (shutdown_ms(cluster("1.1", 150, 1, 2, in_flight)) for in_flight in (1, 2))
    assert within_a_quarter(one / two, 9.7 / 6.2)


def test_logging_every_partition_at_each_election_is_quadratic() -> None:
    """KAFKA-6116: each election logs a line about every partition; 1.1 does not."""

    def logged_ms(version: str, topics: int) -> tuple[float, float]:
        """Return the time that the lines take, and the expected time at 0.1 ms a partition."""
        free = shutdown_ms(cluster(version, topics, 1, 2), Costs())
        simulation = cluster(version, topics, 1, 2)
        leaving = next(b for b in simulation.broker_ids if b != simulation.controller.id)
        leaders = [simulation.partition(f"t{number}", 0).leader for number in range(topics)]
        with_log = shutdown_ms(simulation, Costs(logged_partition_ms=0.1))
        return with_log - free, leaders.count(leaving) * topics * 0.1

    for topics in (10, 30):
        taken, expected = logged_ms("0.10", topics)
        assert taken == pytest.approx(expected, rel=0.05)
    assert logged_ms("1.1", 10)[0] == 0


def test_without_costs_time_passes_on_links_only() -> None:
    """A model without costs gives the times of a simulation without a model."""
    free, plain = (Simulation(3, seed=5, trace=False, costs=costs) for costs in (Costs(), None))
    for simulation in (free, plain):
        simulation.create_topic("t", partitions=20, replication_factor=2)
    assert free.now_ms == plain.now_ms
    assert failover_ms(free, Costs()) > 0
    assert plain.costs is None


def answered_ms(costs: Costs, in_flight: int, requests: Sequence[Request]) -> float:
    """Return the virtual time in which ZooKeeper answers the requests of one batch; links take 0.5
    ms.
    """
    with Simulation(
        1,
        latency_ms=0.5,
        costs=Costs(),
        trace=False,
        config={"zookeeper.max.in.flight.requests": in_flight},
    ) as simulation:
        simulation.run_for(1000)
        simulation.costs = costs
        client = simulation.running.require_controller().zk.requests.client

        async def send() -> None:
            for answer in await client.handle_requests(requests):
                answer.raise_if_failed()

        started_ms = simulation.now_ms
        simulation.call(send, LONG_MS)
        return simulation.now_ms - started_ms


WRITES = [CreateRequest(f"/n{number}") for number in range(20)]
READS = [GetDataRequest("/")] * 20


@pytest.mark.parametrize(
    ("costs", "in_flight", "requests", "expected_ms"),
    [
        (Costs(), 1, READS, 20 * 1),
        (Costs(), 10, READS, 2 * 1),
        (Costs(zookeeper_commit_ms=10), 1, WRITES, 20 * 11),
        (Costs(zookeeper_commit_ms=10), 10, WRITES, 2 * 11),
        (Costs(zookeeper_commit_ms=10), 10, READS, 2 * 1),
        (Costs(zookeeper_commit_ms=10), 10, [*WRITES[:1], *READS[:1]], 11),
        (Costs(zookeeper_request_ms=10), 1, READS, 20 * 11),
        (Costs(zookeeper_request_ms=10), 10, READS, 20 * 10 + 1),
    ],
    ids=[
        "a round trip each",
        "ten share a round trip",
        "a commit each",
        "commits are waited for side by side",
        "reads wait for no commit",
        "but for one before them",
        "the server's time and a round trip each",
        "the server's time is shared by all",
    ],
)
def test_requests_wait_for_the_costs_of_brokers_and_zookeeper(
    costs: Costs, in_flight: int, requests: Sequence[Request], expected_ms: float
) -> None:
    """Requests wait for the round trip, the window, and ZooKeeper's processor and quorum."""
    assert answered_ms(costs, in_flight, requests) == pytest.approx(expected_ms, abs=0.01)


def test_costs_are_times() -> None:
    """Negative or infinite costs are refused, and so are costs set on a cluster without a model."""
    for value in (-1, float("inf"), float("nan")):
        with pytest.raises(UsageError, match="controller_request_ms must be milliseconds >= 0"):
            Costs(controller_request_ms=value)
    simulation = Simulation(1, trace=False)
    with pytest.raises(UsageError, match="given some"):
        simulation.costs = Costs()


def response_ms(costs: Costs, record_bytes: int, acks: int = -1, replicas: int = 1) -> list[float]:
    """Return the time of each of four records that are sent at once; links take 0.5 ms."""
    with Simulation(replicas, latency_ms=0.5, costs=Costs(), trace=False) as simulation:
        simulation.create_topic("t", partitions=4, replication_factor=replicas)
        producer = simulation.producer(acks=acks, enable_idempotence=False)
        for number in range(4):  # it learns of the leaders
            producer.produce(("t", number), b"first")
        simulation.run_until(lambda: producer.unfinished == 0)
        simulation.run_for(1000)
        simulation.costs = costs
        sent_ms = simulation.now_ms
        answered: list[float] = []
        for number in range(4):
            producer.produce(
                ("t", number),
                b"x" * record_bytes,
                callback=lambda *_: answered.append(simulation.now_ms - sent_ms),
            )
        simulation.run_until(lambda: len(answered) == 4)
        return answered


@pytest.mark.parametrize(
    ("costs", "record_bytes", "expected_ms"),
    [
        (Costs(), 1000, [1, 1, 1, 1]),
        (Costs(broker_request_ms=3), 1000, [4, 7, 10, 13]),
        (Costs(disk_append_ms=2), 1000, [3, 5, 7, 9]),
        (Costs(disk_mb_per_s=1), 10_000, [11, 21, 31, 41]),
        (Costs(link_mb_per_s=1), 10_000, [11, 21, 31, 41]),
        (Costs(link_mb_per_s=1, disk_mb_per_s=1), 10_000, [21, 31, 41, 51]),
    ],
    ids=[
        "nothing costs",
        "the broker takes one request after another",
        "so does its disk",
        "whose bytes take time",
        "as they do on the way out of the client's machine",
        "while one message is on its way the disk writes the one before",
    ],
)
def test_records_wait_for_processor_disk_and_bandwidth(
    costs: Costs, record_bytes: int, expected_ms: Sequence[float]
) -> None:
    """Records wait for a broker's processor and disk, and for the bandwidth of a machine."""
    assert response_ms(costs, record_bytes, acks=1) == pytest.approx(expected_ms, rel=0.05)


def test_records_wait_for_a_narrow_link_and_other_links_do_not() -> None:
    """Four batches of 10 kB at 1 MB/s take ten milliseconds each, one after the other."""

    def answered_after_ms(**link: int | str) -> list[float]:
        with Simulation(1, latency_ms=0.5, trace=False) as simulation:
            simulation.create_topic("t", partitions=4)
            producer = simulation.producer(name="p", acks=1, enable_idempotence=False)
            for number in range(4):
                producer.produce(("t", number), b"first")
            simulation.run_until(lambda: producer.unfinished == 0)
            simulation.network.bandwidth(1, **link)
            sent_ms = simulation.now_ms
            answered: list[float] = []
            for number in range(4):
                producer.produce(
                    ("t", number),
                    b"x" * 10_000,
                    callback=lambda *_: answered.append(simulation.now_ms - sent_ms),
                )
            simulation.run_until(lambda: len(answered) == 4)
            return answered

    narrow = answered_after_ms(source="p", target=1)
    assert narrow == pytest.approx([11, 21, 31, 41], rel=0.05)
    assert answered_after_ms(source=1, target="p") == pytest.approx([1.1, 1.2, 1.3, 1.4], rel=0.1)
    assert answered_after_ms() == pytest.approx(narrow, rel=0.05)


def test_followers_append_fetched_records_before_they_acknowledge_them() -> None:
    """With acks=all a record waits for the disks of both the leader and the follower."""
    alone = response_ms(Costs(disk_append_ms=5), 100)
    followed = response_ms(Costs(disk_append_ms=5), 100, replicas=2)
    assert alone[0] == pytest.approx(6, rel=0.05)
    assert followed[0] >= alone[0] + 5
