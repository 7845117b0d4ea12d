"""Topics are deleted although brokers fail, controllers change and partitions are added."""

from __future__ import annotations

import pytest
from fakekafka import KafkaError, Simulation
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import ReplicaAssignment, TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.whole_clusters import (
    CURRENT,
    cached_partition_state,
    has_znode,
    in_zookeeper,
    running,
    stored,
    topic_znode,
)

TP = TopicPartition("t", 0)
TOPIC = {"t": {"assignment": {0: [1, 2, 3]}}}
MARK = "/admin/delete_topics/t"
DELETES = {"delete.topic.enable": True}
"""The default since 1.0."""


def holders(cluster: Simulation, partition: int = 0) -> list[int]:
    """Return the brokers with a log of the partition, running or not."""
    tp = TopicPartition("t", partition)
    return [i for i, p in cluster.processes.items() if p.spec.disk.directory_of(tp) is not None]


def delete(cluster: Simulation) -> None:
    """Request the deletion as the admin command does, in any version."""
    in_zookeeper(cluster, lambda zk: zk.admin.create_delete_topic_path("t"))


def grow(cluster: Simulation, by: int = 1) -> None:
    """Rewrite the topic's znode with a second partition, as an old admin client may."""
    topic_id = topic_znode(cluster).get("topic_id")
    replicas = {TopicPartition("t", p): ReplicaAssignment((1, 2, 3)) for p in (0, 1)}
    in_zookeeper(cluster, lambda zk: zk.topics.set_topic_assignment("t", topic_id, replicas), by)


def is_completely_deleted(cluster: Simulation) -> bool:
    tree = cluster.zookeeper.tree()
    paths = ("/brokers/topics/t", "/config/topics/t", MARK)
    return not any(path in tree for path in paths) and not holders(cluster)


def suspend(cluster: Simulation, *down: int) -> None:
    """Stop brokers and delete the topic, which cannot complete without them."""
    for broker_id in down:
        cluster.broker(broker_id).shutdown()
    cluster.run_for(1000)
    delete(cluster)
    cluster.run_for(1000)
    assert has_znode(cluster, MARK)


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_deletion_waits_for_a_follower_that_is_down(version: str) -> None:
    """CP-156: live replicas delete their logs at once; the request stays until the last one has
    done so.
    """
    with running(3, version, config=DELETES, topics=TOPIC) as cluster:
        cluster.produce("t", "gone soon")
        suspend(cluster, 3)
        assert holders(cluster) == [3]
        cluster.run_for(60_000)
        assert has_znode(cluster, MARK)
        cluster.broker(3).start()
        cluster.run_until(lambda: is_completely_deleted(cluster))
        assert cluster.topics() == []


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_suspended_deletion_survives_its_controller(version: str) -> None:
    """CP-157: the next controller finds the request, and completes it when both brokers have
    returned.
    """
    with running(3, version, config=DELETES, topics=TOPIC) as cluster:
        suspend(cluster, 3)
        cluster.broker(1).shutdown()
        cluster.run_until(lambda: cluster.controller.id == 2)
        cluster.run_for(60_000)
        assert has_znode(cluster, MARK)
        cluster.broker(1).start()
        cluster.run_for(1000)
        assert has_znode(cluster, MARK)
        cluster.broker(3).start()
        cluster.run_until(lambda: is_completely_deleted(cluster))


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_partitions_added_to_a_dying_topic_are_ignored(version: str) -> None:
    """CP-158: no broker creates a log of the new partition, and the deletion completes."""
    with running(3, version, config=DELETES, topics=TOPIC) as cluster:
        suspend(cluster, 3)
        grow(cluster)
        cluster.run_for(1000)
        assert holders(cluster, 1) == []
        cluster.broker(3).start()
        cluster.run_until(lambda: is_completely_deleted(cluster))
        assert holders(cluster, 1) == []


@pytest.mark.parametrize("version", CURRENT)
def test_the_znode_of_a_dying_topic_is_put_back(version: str) -> None:
    """CP-158, docs/kafka/topics.md#expansion: the controller rewrites it with the existing
    partitions.
    """
    with running(3, version, topics=TOPIC) as cluster:
        suspend(cluster, 3)
        grow(cluster)
        cluster.run_until(lambda: topic_znode(cluster)["partitions"] == {"0": [1, 2, 3]})
        with pytest.raises(KafkaError) as refused:
            cluster.create_partitions("t", 2)
        assert refused.value.code in (
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_topic_that_grew_without_a_controller_is_deleted_completely(version: str) -> None:
    """CP-160: the next controller considers the second partition part of the topic, and deletes
    both.
    """
    with running(3, version, config=DELETES, topics=TOPIC) as cluster:
        suspend(cluster, 3)
        cluster.broker(1).pause()  # the controller does not see the znode grow
        grow(cluster, by=2)
        cluster.zookeeper.expire_session(1)
        cluster.run_until(lambda: cluster.controller.id == 2)
        cluster.broker(1).resume()
        cluster.run_for(1000)
        assert topic_znode(cluster)["partitions"].keys() == {"0", "1"}
        assert has_znode(cluster, MARK)
        cluster.broker(3).start()
        cluster.run_until(lambda: is_completely_deleted(cluster))
        assert holders(cluster, 1) == []


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_deleted_topic_can_be_created_again(version: str) -> None:
    """CP-161: the new topic is empty, with epoch 0 and, in releases with topic ids, another id."""
    with running(3, version, config=DELETES, topics=TOPIC) as cluster:
        cluster.produce("t", ["old", "older"])
        before = topic_znode(cluster)
        cluster.delete_topic("t")
        assert is_completely_deleted(cluster)
        cluster.create_topic("t", assignment={0: [1, 2, 3]})
        after = topic_znode(cluster)
        assert after["partitions"] == before["partitions"]
        assert ("topic_id" in after) == cluster.behaviour.topic_ids
        if cluster.behaviour.topic_ids:
            assert after["topic_id"] != before["topic_id"]
        assert stored(cluster) == (1, 0, [1, 2, 3])
        assert cluster.produce("t", "new") == 0
        cluster.run_for(1000)
        assert [r.value for r in cluster.consume("t")] == [b"new"]
        assert cached_partition_state(cluster, 3).leader == 1
