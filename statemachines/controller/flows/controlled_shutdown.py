"""Controlled shutdown: leaderships move off a broker before it stops
(docs/kafka/brokers.md#controlled-shutdown)."""

from __future__ import annotations

from ....election.strategies import ControlledShutdown as ControlledShutdownStrategy
from ....protocol.awaiting import Cancelled
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.values import PartitionReplica, TopicPartition
from ...machines.transitions import PartitionState, ReplicaState
from ...zookeeper.errors import ControllerMoved, IllegalState
from ..events import ControlledShutdown
from ..parts import ControllerParts


class ControlledShutdownFlow:
    """Moves leaders off a broker that shuts down, and removes it from the ISRs where it follows."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts

    async def process_controlled_shutdown(self, event: ControlledShutdown) -> None:
        """Answer with the partitions that the broker still leads, or with the error."""
        try:
            outcome = await self._do_controlled_shutdown(event.broker_id, event.broker_epoch)
        except Cancelled:
            raise
        except Exception as error:
            # This includes ControllerMoved: the watch of /controller makes this broker resign.
            event.callback(error)
            return
        event.callback(outcome)

    async def _do_controlled_shutdown(
        self, broker_id: int, broker_epoch: int
    ) -> list[TopicPartition]:
        parts = self._parts
        context = parts.context
        if not parts.is_active:
            raise ControllerMoved("this broker is not the controller any more")
        if broker_epoch != -1 and parts.behaviour.broker_epochs:
            known = context.brokers.live_broker_id_and_epochs.get(broker_id)
            if known is None:
                raise LookupError(f"broker {broker_id} is not registered")
            if broker_epoch < known:
                raise KafkaError(
                    ErrorCode.STALE_BROKER_EPOCH,
                    f"broker {broker_id} sent epoch {broker_epoch}, but is registered with {known}",
                )
        if not context.brokers.is_live_or_shutting_down_broker(broker_id):
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {broker_id} does not exist."
            )
        context.brokers.shutting_down_broker_ids.add(broker_id)
        led: list[TopicPartition] = []
        followed: list[TopicPartition] = []
        for topic_partition in context.topics.partitions_on_broker(broker_id):
            leadership = context.topics.partition_leadership_info(topic_partition)
            if (
                leadership is None
                or len(context.topics.partition_replica_assignment(topic_partition)) < 2
                or (
                    parts.behaviour.controlled_shutdown_spares_queued_topics
                    and parts.topic_deletion.is_topic_queued_up_for_deletion(topic_partition.topic)
                )
            ):
                continue
            is_led = leadership.leader_and_isr.leader == broker_id
            (led if is_led else followed).append(topic_partition)
            if parts.behaviour.controlled_shutdown_one_by_one:
                await self._move(broker_id, led, followed)
                led, followed = [], []
        if not parts.behaviour.controlled_shutdown_one_by_one:
            await self._move(broker_id, led, followed)
        return context.topics.partition_leaders_on_broker(
            broker_id,
            with_queued_topics=not parts.behaviour.controlled_shutdown_spares_queued_topics,
        )

    async def _move(
        self, broker_id: int, led: list[TopicPartition], followed: list[TopicPartition]
    ) -> None:
        parts = self._parts
        await parts.partition_state_machine.handle_state_changes(
            led, PartitionState.ONLINE, ControlledShutdownStrategy()
        )
        await self._stop_followers(broker_id, followed)
        # Replicas that led stay Online, as the election has removed them from the ISR.
        await parts.replica_state_machine.handle_state_changes(
            [PartitionReplica(tp.topic, tp.partition, broker_id) for tp in followed],
            ReplicaState.OFFLINE,
        )

    async def _stop_followers(self, broker_id: int, partitions: list[TopicPartition]) -> None:
        parts = self._parts
        try:
            parts.batch.new_batch()
            for topic_partition in partitions:
                parts.batch.add_stop_replica_request_for_brokers(
                    (broker_id,), topic_partition, delete_partition=False
                )
            parts.batch.send_requests_to_brokers(parts.context.epoch)
        except IllegalState as error:
            await parts.requests.handle_illegal_state(error)
