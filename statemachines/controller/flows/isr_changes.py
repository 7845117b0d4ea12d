"""ISR changes, which leaders propose with AlterIsr, or write to ZooKeeper and announce by znode.

See docs/kafka/isr.md, and KIP-497 for AlterIsr.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....protocol.awaiting import Cancelled
from ....protocol.control import (
    AlterIsrPartition,
    AlterIsrPartitionResponse,
    AlterIsrRequest,
    AlterIsrResponse,
)
from ....protocol.errors import ErrorCode, KafkaError
from ....protocol.values import LeaderAndIsr, TopicPartition
from ..events import AlterIsrReceived, IsrChangeNotification
from ..parts import ControllerParts
from .reassignment_flow import ReassignmentFlow

_Answers = dict[TopicPartition, "LeaderAndIsr | ErrorCode"]


class IsrChanges:
    """Accepts changed ISRs, sends them to brokers, and completes reassignments."""

    def __init__(self, parts: ControllerParts, reassignments: ReassignmentFlow) -> None:
        self._parts = parts
        self._reassignments = reassignments

    async def update_leadership_cache(self, partitions: Sequence[TopicPartition]) -> None:
        """Read leadership of partitions from ZooKeeper into the cache, skipping missing states."""
        parts = self._parts
        stored = await parts.zk.topics.get_topic_partition_states(partitions)
        for topic_partition, leadership in stored.items():
            parts.context.topics.put_partition_leadership_info(topic_partition, leadership)

    # --- changes that leaders wrote to ZooKeeper (before 2.7)

    async def process_isr_change_notification(self, _event: IsrChangeNotification) -> None:
        """Read the changed states, send them to brokers, and complete reassignments
        (docs/kafka/isr.md#changes-through-zookeeper)."""
        parts = self._parts
        zk, context = parts.zk, parts.context
        numbers = await zk.admin.get_all_isr_change_notifications()
        try:
            named = await zk.admin.get_partitions_from_isr_change_notifications(numbers)
            partitions = list(dict.fromkeys(named))
            if partitions:
                await self.update_leadership_cache(partitions)
                await self._announce(partitions)
                for topic_partition in partitions:
                    await self._reassignments.maybe_complete(topic_partition)
        finally:
            await zk.admin.delete_isr_change_notifications(numbers, context.epoch_zk_version)

    async def _announce(self, partitions: Sequence[TopicPartition]) -> None:
        brokers = self._parts.context.brokers.live_or_shutting_down_broker_ids
        await self._parts.requests.send_update_metadata(brokers, partitions)

    # --- AlterIsr

    async def process_alter_isr(self, event: AlterIsrReceived) -> None:
        """Change ISRs, answer the leader, then complete reassignments that waited for the change
        (docs/kafka/isr.md#changes-through-the-controller)."""
        parts = self._parts
        request = event.request
        error_code = self._request_error(request)
        if error_code is not None:
            event.callback(AlterIsrResponse(error_code))
            return
        try:
            answers = await self._alter(request)
        except Cancelled:
            raise
        except Exception as error:
            # This includes ControllerMoved: the watch of /controller makes this broker resign.
            parts.log("error", f"AlterIsr of broker {request.broker_id} failed: {error!r}")
            event.callback(AlterIsrResponse(ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        event.callback(AlterIsrResponse(ErrorCode.NONE, _responses(answers)))
        for topic_partition, answer in answers.items():
            if isinstance(answer, LeaderAndIsr):
                await self._reassignments.maybe_complete(topic_partition)

    def _request_error(self, request: AlterIsrRequest) -> ErrorCode | None:
        parts = self._parts
        if not parts.is_active:
            return ErrorCode.NOT_CONTROLLER
        known = parts.context.brokers.live_broker_id_and_epochs.get(request.broker_id)
        # A newer epoch is refused, too, as the controller has not seen that registration yet.
        return None if known == request.broker_epoch else ErrorCode.STALE_BROKER_EPOCH

    async def _alter(self, request: AlterIsrRequest) -> _Answers:
        parts = self._parts
        context = parts.context
        answers: _Answers = {}
        accepted: dict[TopicPartition, LeaderAndIsr] = {}
        for change in request.partitions:
            answer = self._immediate_answer(change, request.broker_id)
            if answer is None:
                accepted[change.topic_partition] = LeaderAndIsr(
                    request.broker_id, change.leader_epoch, change.new_isr, change.zk_version
                )
            else:
                answers[change.topic_partition] = answer
        update = await parts.zk.topics.update_leader_and_isr(
            accepted, context.epoch, context.epoch_zk_version
        )
        written: list[TopicPartition] = []
        for topic_partition, outcome in update.finished.items():
            if isinstance(outcome, LeaderAndIsr):
                answers[topic_partition] = outcome
                written.append(topic_partition)
            else:
                answers[topic_partition] = _code_of(outcome)
        for topic_partition in update.to_retry:
            answers[topic_partition] = ErrorCode.INVALID_UPDATE_VERSION
        await self.update_leadership_cache(written)
        await self._announce([change.topic_partition for change in request.partitions])
        return {
            change.topic_partition: answers[change.topic_partition] for change in request.partitions
        }

    def _immediate_answer(
        self, change: AlterIsrPartition, broker_id: int
    ) -> LeaderAndIsr | ErrorCode | None:
        """Return an answer that needs no write, or None if the change should be written.

        As versions and epochs protect the state, the sender need not be the leader.
        """
        context = self._parts.context
        strict = self._parts.behaviour.alter_isr_strict
        leadership = context.topics.partition_leadership_info(change.topic_partition)
        if leadership is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        known = leadership.leader_and_isr
        is_newer = change.leader_epoch > known.leader_epoch or change.zk_version > known.zk_version
        if strict and is_newer:
            return ErrorCode.NOT_CONTROLLER
        if change.leader_epoch < known.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        requested = (broker_id, change.leader_epoch, change.new_isr)
        is_known = requested == (known.leader, known.leader_epoch, known.isr)
        if is_known and not known.is_recovering:  # a write clears the mark of recovery
            return known
        if strict:
            if change.zk_version < known.zk_version:
                return ErrorCode.INVALID_UPDATE_VERSION
            live = context.brokers.live_broker_ids
            if any(replica not in live for replica in change.new_isr):
                return ErrorCode.INELIGIBLE_REPLICA
        return None


def _responses(answers: _Answers) -> tuple[AlterIsrPartitionResponse, ...]:
    return tuple(
        AlterIsrPartitionResponse(tp, ErrorCode.NONE, answer)
        if isinstance(answer, LeaderAndIsr)
        else AlterIsrPartitionResponse(tp, answer)
        for tp, answer in answers.items()
    )


def _code_of(error: Exception) -> ErrorCode:
    return error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
