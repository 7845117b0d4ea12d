"""How a leader's ISR proposals reach the controller: by AlterIsr, or through ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...protocol.awaiting import Pending
from ...protocol.control import AlterIsrRequest, AlterIsrResponse
from ...protocol.host import sleep
from ...protocol.values import LeaderAndIsr, TopicPartition
from ...replication.partition.isr_updaters import AlterIsrManager, IsrUpdater, ZooKeeperIsrManager
from ...zkfake.messages import ZooKeeperError

if TYPE_CHECKING:
    from .broker import Broker

_CONTROLLER_LOOKUP_BACKOFF_MS = 100


def make_isr_updater(broker: Broker) -> IsrUpdater:
    """The ISR updater of the emulated version, wired to this broker's channels."""
    if broker.behaviour.alter_isr:
        return AlterIsrManager(
            host=broker,
            broker_id=broker.broker_id,
            broker_epoch=lambda: broker.controller.broker_epoch,
            send=_AlterIsrChannel(broker).send,
        )

    def write(
        topic_partition: TopicPartition,
        leader_and_isr: LeaderAndIsr,
        controller_epoch: int,
        callback: Callable[[int | None], object],
    ) -> None:
        broker.start_task(
            _write_isr(broker, topic_partition, leader_and_isr, controller_epoch, callback)
        )

    manager = ZooKeeperIsrManager(
        host=broker,
        write=write,
        publish=lambda partitions: broker.start_task(_publish(broker, manager, partitions)),
    )
    return manager


async def _write_isr(
    broker: Broker,
    topic_partition: TopicPartition,
    leader_and_isr: LeaderAndIsr,
    controller_epoch: int,
    callback: Callable[[int | None], object],
) -> None:
    try:
        version = await broker.zk.update_partition_isr(
            topic_partition, leader_and_isr, controller_epoch
        )
    except ZooKeeperError as error:
        # A session that expired meanwhile. Kafka's scheduled task ends there, the ISR unchanged.
        broker.runtime.log(broker.name, "warn", f"ISR of {topic_partition} not written: {error}")
        version = None
    callback(version)


async def _publish(
    broker: Broker, manager: ZooKeeperIsrManager, partitions: Sequence[TopicPartition]
) -> None:
    try:
        await broker.zk.propagate_isr_changes(partitions)
    except ZooKeeperError as error:
        broker.runtime.log(broker.name, "warn", f"ISR changes not published: {error}")
        manager.publication_failed(partitions)


class _AlterIsrChannel:
    """Finds the active controller and asks it, again and again until it answers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def send(
        self, request: AlterIsrRequest, callback: Callable[[AlterIsrResponse | None], object]
    ) -> None:
        broker = self._broker
        destination = broker.controller_broker_name()
        if destination is None:
            broker.start_task(self._send_later(request, callback))
            return
        pending = broker.ask(destination, request, broker.config["controller.socket.timeout.ms"])
        pending.add_done_callback(lambda done: self._answered(done, callback))

    async def _send_later(
        self, request: AlterIsrRequest, callback: Callable[[AlterIsrResponse | None], object]
    ) -> None:
        await sleep(self._broker, _CONTROLLER_LOOKUP_BACKOFF_MS)
        self.send(request, callback)

    def _answered(
        self,
        pending: Pending[AlterIsrResponse],
        callback: Callable[[AlterIsrResponse | None], object],
    ) -> None:
        if not self._broker.stopped:
            callback(None if pending.exception is not None else pending.result())
