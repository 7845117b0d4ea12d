"""Throttled replication (KIP-73) in whole clusters: adding a replica takes longer, and other
replicas are not slowed.
"""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Cluster, Simulation
from fakekafka.protocol.admin import (
    BROKER_RESOURCE,
    DELETE,
    SET,
    TOPIC_RESOURCE,
    AlterConfigsRequest,
    ConfigResource,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.protocol.znode_paths import BROKERS, DEFAULT_ENTITY, TOPICS
from fakekafka.tests.support.present import present
from fakekafka.tests.support.whole_clusters import in_zookeeper, running

TOPIC = {"t": {"assignment": {0: [1, 2]}}}
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
MOVED = {
    "leader.replication.throttled.replicas": "0:1,0:2",
    "follower.replication.throttled.replicas": "0:3",
}
"""Throttled replicas as ``kafka-reassign-partitions --throttle`` names them: sources and
destinations.
"""
RECORDS, SIZE = 20, 1000


def set_configs(simulation: Simulation, entity_type: str, entity: str, **values: str) -> None:
    """Write configurations as the tools of 0.10 and 1.1 do, unchecked by brokers."""
    config = {name.replace("_", "."): value for name, value in values.items()}

    async def change(zk: Any) -> None:
        await zk.admin.set_or_create_entity_configs(entity_type, entity, config)
        await zk.admin.create_config_change_notification(f"{entity_type}/{entity}")

    in_zookeeper(simulation, change)
    simulation.run_for(100)


def throttled(simulation: Simulation, **rates: str) -> None:
    for broker_id in (1, 2, 3):
        set_configs(simulation, BROKERS, str(broker_id), **rates)
    set_configs(simulation, TOPICS, "t", **MOVED)


def filled(simulation: Simulation) -> None:
    for number in range(RECORDS):
        simulation.produce("t", b"%d" % (number % 10) * SIZE)


def seconds_to_move(simulation: Simulation) -> float:
    """Return the seconds until the added replica is in sync, checking that the others
    always are.
    """
    begin_ms = simulation.now_ms
    simulation.reassign_partitions({("t", 0): [1, 2, 3]})

    def is_moved() -> bool:
        isr = set(simulation.partition("t", 0).isr)
        assert isr >= {1, 2}
        return isr == {1, 2, 3}

    simulation.run_until(is_moved, 60_000)
    return (simulation.now_ms - begin_ms) / 1000


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
@pytest.mark.parametrize(
    ("name", "rate", "least", "most"),
    [(FOLLOWER_RATE, "2000", 8, 16), (LEADER_RATE, "500", 30, 50), (LEADER_RATE, "3000", 0, 1)],
)
def test_a_replica_is_added_at_the_rate_that_is_set(
    version: str, name: str, rate: str, least: int, most: int
) -> None:
    """The replica has 20 KB. A follower fetches the quota of one second at once. A leader that has
    answered followers for a while sends the quota of ten seconds, and again ten seconds later. Both
    wait longer than necessary, until the end of the fetch or of the back-off.
    """
    with running(3, version, topics=TOPIC, config={"replica.fetch.max.bytes": 1500}) as simulation:
        filled(simulation)
        simulation.run_for(15_000)
        throttled(simulation, **{name: rate})
        assert least <= seconds_to_move(simulation) <= most
        records = simulation.records("t", 0, replica=3)
        assert [len(present(record.value)) for record in records] == [SIZE] * RECORDS


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_leader_sends_nothing_at_a_rate_of_zero(version: str) -> None:
    """The bytes around the records of an answer already exceed the quota."""
    with running(3, version, topics=TOPIC) as simulation:
        filled(simulation)
        throttled(simulation, **{LEADER_RATE: "0"})
        simulation.reassign_partitions({("t", 0): [1, 2, 3]})
        simulation.run_for(30_000)
        assert simulation.partition("t", 0).replica(3).log_end_offset == 0
        assert set(simulation.partition("t", 0).isr) == {1, 2}


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
@pytest.mark.parametrize(
    ("entity_type", "entity", "values"),
    [
        (BROKERS, "", {}),
        (TOPICS, "t", {}),
        (TOPICS, "t", dict.fromkeys(MOVED, "0:7")),
        (TOPICS, "t", dict.fromkeys(MOVED, "1:1,1:2,1:3")),
    ],
)
def test_nothing_is_throttled_unless_a_rate_and_a_replica_are_named(
    version: str, entity_type: str, entity: str, values: dict[str, str]
) -> None:
    """There is no throttle without a rate, without replicas, or with those of other brokers or
    partitions.
    """
    with running(3, version, topics=TOPIC, config={"replica.fetch.max.bytes": 1500}) as simulation:
        filled(simulation)
        throttled(simulation, **{LEADER_RATE: "1", FOLLOWER_RATE: "1"})
        for each in ("1", "2", "3") if entity_type == BROKERS else (entity,):
            set_configs(simulation, entity_type, each, **values)
        assert seconds_to_move(simulation) < 1


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_throttle_can_be_removed_while_it_is_in_force(version: str) -> None:
    """``--verify`` removes it, and the follower continues with its next fetch."""
    with running(3, version, topics=TOPIC, config={"replica.fetch.max.bytes": 1500}) as simulation:
        filled(simulation)
        throttled(simulation, **{LEADER_RATE: "100", FOLLOWER_RATE: "1"})
        simulation.reassign_partitions({("t", 0): [1, 2, 3]})
        simulation.run_for(5000)
        assert simulation.partition("t", 0).replica(3).log_end_offset in (1, 2)
        assert 3 not in simulation.partition("t", 0).isr
        for broker_id in (1, 2, 3):
            set_configs(simulation, BROKERS, str(broker_id))
        set_configs(simulation, TOPICS, "t")
        simulation.run_until(lambda: 3 in simulation.partition("t", 0).isr, 3000)


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_members_of_the_isr_are_never_throttled(version: str) -> None:
    """Writes with acks=all succeed although the rate is always exceeded, and no replica leaves the
    ISR.
    """
    with running(3, version, topics=TOPIC) as simulation:
        set_configs(simulation, TOPICS, "t", **dict.fromkeys(MOVED, "*"))
        for broker_id in (1, 2, 3):
            set_configs(
                simulation, BROKERS, str(broker_id), **{LEADER_RATE: "1", FOLLOWER_RATE: "1"}
            )
        for _ in range(10):
            begin_ms = simulation.now_ms
            simulation.produce("t", b"x" * SIZE)
            # 0.10 lets the follower wait for its time (KAFKA-6937).
            assert simulation.now_ms - begin_ms < (600 if version == "0.10" else 50)
            simulation.run_for(3000)
            assert set(simulation.partition("t", 0).isr) == {1, 2}


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_rates_of_all_brokers_count_since_3_9(version: str) -> None:
    """KAFKA-10190: before, a broker only uses a rate set for itself."""
    with running(3, version, topics=TOPIC, config={"replica.fetch.max.bytes": 1500}) as simulation:
        filled(simulation)
        set_configs(simulation, BROKERS, DEFAULT_ENTITY, **{FOLLOWER_RATE: "2000"})
        set_configs(simulation, TOPICS, "t", **MOVED)
        assert (seconds_to_move(simulation) > 8) is (version == "3.9")


def test_a_new_topics_throttles_wait_for_a_change_or_a_start() -> None:
    """CP-202: the creation of a topic is not announced; a starting broker reads every topic."""
    topics = {"t": {"assignment": {0: [1, 2]}, "config": MOVED}}
    with running(3, topics=topics, config={"replica.fetch.max.bytes": 1500}) as simulation:
        filled(simulation)
        for broker_id in (1, 2, 3):
            set_configs(simulation, BROKERS, str(broker_id), **{FOLLOWER_RATE: "2000"})
        assert seconds_to_move(simulation) < 1
        simulation.reassign_partitions({("t", 0): [1, 2]})
        simulation.run_until(lambda: set(simulation.partition("t", 0).isr) == {1, 2})
        simulation.broker(3).shutdown()
        simulation.broker(3).start()
        simulation.run_for(1000)
        assert seconds_to_move(simulation) > 8


@pytest.mark.parametrize("runtime", ["live", "threaded"])
def test_a_throttle_holds_in_real_time_until_it_is_deleted(runtime: str) -> None:
    """It is set by requests of a client, as by current tools of Kafka."""
    config = {"replica.fetch.max.bytes": 1500, "replica.fetch.backoff.ms": 20}
    with Cluster(brokers=3, topics=TOPIC, config=config, runtime=runtime) as cluster:
        for number in range(RECORDS):
            cluster.produce("t", b"%d" % (number % 10) * SIZE)

        def change(operation: int) -> None:
            rates = {LEADER_RATE: "100", FOLLOWER_RATE: "1"}
            for broker_id in (1, 2, 3):
                resource = ConfigResource(BROKER_RESOURCE, str(broker_id))
                alter(broker_id, resource, rates, operation)
            alter(1, ConfigResource(TOPIC_RESOURCE, "t"), MOVED, operation)

        def alter(
            broker_id: int, resource: ConfigResource, values: dict[str, str], operation: int
        ) -> None:
            entries = tuple(
                (name, operation, value if operation == SET else None)
                for name, value in values.items()
            )
            response = cluster.ask(broker_id, AlterConfigsRequest(((resource, entries),)))
            assert response.results[0][1] is ErrorCode.NONE

        def are_throttled() -> bool:
            brokers = [present(process.broker) for process in cluster.processes.values()]
            return all(
                broker.replica_manager.quotas.follower.topics
                and broker.replica_manager.quotas.leader.topics
                and (broker.config[FOLLOWER_RATE], broker.config[LEADER_RATE]) == (1, 100)
                for broker in brokers
            )

        change(SET)
        cluster.wait_until(are_throttled)
        cluster.reassign_partitions({("t", 0): [1, 2, 3]})
        cluster.wait_until(lambda: 3 in cluster.partition("t", 0).replicas)
        cluster.wait_until(lambda: cluster.partition("t", 0).replica(3).log_end_offset > 0)
        assert cluster.partition("t", 0).replica(3).log_end_offset < RECORDS
        assert set(cluster.partition("t", 0).isr) == {1, 2}
        change(DELETE)
        cluster.wait_until(lambda: 3 in cluster.partition("t", 0).isr)
