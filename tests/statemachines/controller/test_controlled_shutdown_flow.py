"""Controlled shutdown: a broker's leaderships move before it stops."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol import znode_payloads
from fakekafka.protocol.control import AlterIsrPartition, LeaderAndIsrRequest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now

TP = TopicPartition("t", 0)


def sent_to(cluster: ControllerCluster, broker_id: int) -> list[Any]:
    return [request for destination, request in cluster.sent if destination == broker_id]


def test_a_stale_broker_epoch_is_refused() -> None:
    """CP-133; a newer epoch is accepted, and an unknown broker raises ``LookupError``."""
    cluster = ControllerCluster([1, 2])
    epoch = cluster.processes[2].controller.broker_epoch
    refused = cluster.controlled_shutdown(2, epoch - 1)
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.STALE_BROKER_EPOCH
    assert cluster.controlled_shutdown(2, epoch + 1) == []
    assert isinstance(cluster.controlled_shutdown(9, 5), LookupError)
    unknown = cluster.controlled_shutdown(9, -1)
    assert isinstance(unknown, KafkaError)
    assert unknown.code is ErrorCode.BROKER_NOT_AVAILABLE


@pytest.mark.parametrize("version", ["2.8", "3.9"])
@pytest.mark.parametrize("what", ["controlled shutdown", "AlterIsr"])
def test_a_deposed_controller_that_answers_an_error_stays_until_its_watch_fires(
    what: str, version: str
) -> None:
    """Kafka catches all errors of a controlled shutdown or an ISR change, to answer them."""
    cluster = ControllerCluster([1, 2], version)
    cluster.create_topic("t", (2, 1))
    controller = cluster.active
    before = cluster.state("t")
    run_now(cluster.zk.brokers.set_controller_epoch(99, -1))  # another one won
    cluster.zookeeper.tree.nodes["/controller"].data = znode_payloads.encode_controller(9, 0)
    if what == "AlterIsr":
        change = AlterIsrPartition(TP, before.leader_epoch, (2,), before.zk_version)
        [answer] = cluster.alter_isr(2, change)
        assert answer.error is ErrorCode.UNKNOWN_SERVER_ERROR
    else:
        outcome = cluster.controlled_shutdown(2)
        assert type(outcome).__name__ == "ControllerMoved"
    assert controller.is_active
    assert cluster.state("t") == before


def test_a_leaving_broker_is_marked_until_its_failure_is_handled() -> None:
    """The mark is removed when the broker's failure is handled
    (docs/kafka/brokers.md#controlled-shutdown)."""
    cluster = ControllerCluster([1, 2])
    cluster.controlled_shutdown(2)
    assert list(cluster.active.context.brokers.shutting_down_broker_ids) == [2]
    cluster.kill(2)
    assert list(cluster.active.context.brokers.shutting_down_broker_ids) == []


def test_a_new_controller_does_not_know_which_brokers_are_leaving() -> None:
    """The broker asked only the previous controller."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3))
    controller = cluster.active
    cluster.controlled_shutdown(2)
    for _ in range(5):
        run_now(cluster.zk.brokers.delete_controller(controller.context.epoch_zk_version))
        cluster.settle()
        if cluster.active is controller:
            break
    assert cluster.active is controller
    assert list(cluster.active.context.brokers.shutting_down_broker_ids) == []


def test_remaining_partitions_are_those_without_another_in_sync_replica() -> None:
    """CP-132: partitions with one replica are not reported, failed elections are."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3), (2,))
    cluster.set_isr("t", 0, (2,))
    assert cluster.controlled_shutdown(2) == [TP]
    assert cluster.state("t").leader == 2


@pytest.mark.parametrize(("version", "leader"), [("0.10", 3), ("1.1", 3), ("2.8", 2), ("3.9", 2)])
def test_topics_queued_for_deletion_are_left_alone_since_2_1(version: str, leader: int) -> None:
    """Before, their leadership was moved, too, and failures were reported."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (2, 3))
    cluster.active.context.topics.queue_topic_deletion(
        ["t"]
    )  # and something else keeps it from going
    assert cluster.controlled_shutdown(2) == []
    assert cluster.state("t").leader == leader
    assert cluster.controlled_shutdown(3) == ([] if leader == 2 else [TP])


def test_shutting_down_brokers_learn_of_their_lost_leadership_except_in_1_1() -> None:
    """1.1 elected among live brokers only (docs/kafka/election.md#selectors)."""
    for version, is_told in (("1.1", False), ("2.8", True)):
        cluster = ControllerCluster([1, 2, 3], version)
        cluster.create_topic("t", (2, 3))
        cluster.sent.clear()
        cluster.controlled_shutdown(2)
        kinds = [type(request) for request in sent_to(cluster, 2)]
        assert (LeaderAndIsrRequest in kinds) == is_told


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8"])
def test_each_partition_is_moved_once(version: str) -> None:
    """One partition at a time before 1.1, all together since (KAFKA-5642)."""
    cluster = ControllerCluster([1, 2, 3], version)
    for topic in "tuv":
        cluster.create_topic(topic, (3, 2))
    before = [cluster.state(topic).leader_epoch for topic in "tuv"]
    assert cluster.controlled_shutdown(3, -1) == []
    after = [cluster.state(topic) for topic in "tuv"]
    moved = [(state.leader, state.leader_epoch - 1) for state in after]
    assert moved == [(2, epoch) for epoch in before]
