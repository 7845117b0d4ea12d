"""Writes the ISR proposals of leaders to ZooKeeper (before KIP-497)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...protocol.values import LeaderAndIsr, TopicPartition
from ...replication.partition.isr_updaters import ZooKeeperIsrManager
from ...statemachines.zookeeper.client import KafkaZkClient
from ...zkfake.messages import ZooKeeperError
from ..node import Node


def zookeeper_isr_updater(node: Node, zk: KafkaZkClient) -> ZooKeeperIsrManager:
    """Return the updater with which leaders write the ISR and notify the controller."""
    writer = _IsrWriter(node, zk)
    manager = ZooKeeperIsrManager(
        host=node,
        write=lambda where, state, epoch, done: node.start_task(
            writer.write(where, state, epoch, done)
        ),
        publish=lambda partitions: node.start_task(writer.publish(manager, partitions)),
    )
    return manager


class _IsrWriter:
    """Writes partition states and the notifications of their changes."""

    def __init__(self, node: Node, zk: KafkaZkClient) -> None:
        self._node = node
        self._zk = zk

    async def write(
        self,
        topic_partition: TopicPartition,
        leader_and_isr: LeaderAndIsr,
        controller_epoch: int,
        callback: Callable[[int | None], object],
    ) -> None:
        try:
            version = await self._zk.topics.update_partition_isr(
                topic_partition, leader_and_isr, controller_epoch
            )
        except ZooKeeperError as error:
            # The session has expired. Kafka's scheduled task fails, and leaves the ISR unchanged.
            self._node.log("warn", f"ISR of {topic_partition} not written: {error}")
            version = None
        callback(version)

    async def publish(
        self, manager: ZooKeeperIsrManager, partitions: Sequence[TopicPartition]
    ) -> None:
        try:
            await self._zk.admin.propagate_isr_changes(partitions)
        except ZooKeeperError as error:
            self._node.log("warn", f"ISR changes not published: {error}")
            manager.publication_failed(partitions)
