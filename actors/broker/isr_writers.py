"""How a leader's ISR proposals reach the controller: by AlterIsr, or through ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...protocol.awaiting import Pending
from ...protocol.control import AlterIsrRequest, AlterIsrResponse
from ...protocol.host import sleep
from ...protocol.values import LeaderAndIsr, TopicPartition
from ...replication.partition.isr_proposals import IsrUpdater
from ...replication.partition.isr_updaters import AlterIsrManager, ZooKeeperIsrManager
from ...statemachines.zookeeper.client import KafkaZkClient
from ...zkfake.messages import ZooKeeperError
from ..node import Node

_CONTROLLER_LOOKUP_BACKOFF_MS = 100


def alter_isr_updater(
    node: Node,
    broker_id: int,
    broker_epoch: Callable[[], int],
    find_controller: Callable[[], str | None],
    timeout_ms: int,
) -> IsrUpdater:
    """Proposals go to the active controller as requests (KIP-497)."""
    channel = _AlterIsrChannel(node, find_controller, timeout_ms)
    return AlterIsrManager(
        host=node, broker_id=broker_id, broker_epoch=broker_epoch, send=channel.send
    )


def zookeeper_isr_updater(node: Node, zk: KafkaZkClient) -> IsrUpdater:
    """The leader writes the ISR itself and announces it to the controller."""
    writer = _IsrWriter(node, zk)
    manager = ZooKeeperIsrManager(
        host=node,
        write=writer.write,
        publish=lambda partitions: node.start_task(writer.publish(manager, partitions)),
    )
    return manager


class _IsrWriter:
    """Writes partition states and the notifications about them."""

    def __init__(self, node: Node, zk: KafkaZkClient) -> None:
        self._node = node
        self._zk = zk

    def write(
        self,
        topic_partition: TopicPartition,
        leader_and_isr: LeaderAndIsr,
        controller_epoch: int,
        callback: Callable[[int | None], object],
    ) -> None:
        self._node.start_task(
            self._write(topic_partition, leader_and_isr, controller_epoch, callback)
        )

    async def _write(
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
            # The session expired meanwhile. Kafka's scheduled task ends there, the ISR unchanged.
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


class _AlterIsrChannel:
    """Finds the active controller and asks it, again and again until it answers."""

    def __init__(
        self, node: Node, find_controller: Callable[[], str | None], timeout_ms: int
    ) -> None:
        self._node = node
        self._find_controller = find_controller
        self._timeout_ms = timeout_ms

    def send(
        self, request: AlterIsrRequest, callback: Callable[[AlterIsrResponse | None], object]
    ) -> None:
        destination = self._find_controller()
        if destination is None:
            self._node.start_task(self._send_later(request, callback))
            return
        pending = self._node.ask(destination, request, self._timeout_ms)
        pending.add_done_callback(lambda done: self._answered(done, callback))

    async def _send_later(
        self, request: AlterIsrRequest, callback: Callable[[AlterIsrResponse | None], object]
    ) -> None:
        await sleep(self._node, _CONTROLLER_LOOKUP_BACKOFF_MS)
        self.send(request, callback)

    def _answered(
        self,
        pending: Pending[AlterIsrResponse],
        callback: Callable[[AlterIsrResponse | None], object],
    ) -> None:
        if not self._node.stopped:
            callback(None if pending.exception is not None else pending.result())
