"""The two ways to submit a proposed ISR: send it to the controller (KIP-497), or have the leader
write it to ZooKeeper (docs/kafka/isr.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...protocol.control import AlterIsrPartition, AlterIsrRequest, AlterIsrResponse
from ...protocol.errors import ErrorCode
from ...protocol.host import Host, Timer
from ...protocol.values import LeaderAndIsr, TopicPartition
from .isr_proposals import IsrCallback

ALTER_ISR_RETRY_MS = 50
ISR_PROPAGATION_CHECK_MS = 2500
ISR_PROPAGATION_QUIET_MS = 5000
ISR_PROPAGATION_INTERVAL_MS_MAX = 60000


class _AlterIsrItem:
    __slots__ = ("callback", "leader_and_isr", "topic_partition")

    def __init__(
        self, topic_partition: TopicPartition, leader_and_isr: LeaderAndIsr, callback: IsrCallback
    ) -> None:
        self.topic_partition = topic_partition
        self.leader_and_isr = leader_and_isr
        self.callback = callback


class AlterIsrManager:
    """Broker side of AlterIsr (KIP-497; ``DefaultAlterIsrManager``).

    One item per partition, one request in flight per broker; items submitted meanwhile are sent
    together in the next request. A request-level failure (None, or a top-level error) keeps every
    item and retries after 50 ms. A partition missing in a response stays queued.
    """

    def __init__(
        self,
        host: Host,
        broker_id: int,
        broker_epoch: Callable[[], int],
        send: Callable[[AlterIsrRequest, Callable[[AlterIsrResponse | None], object]], object],
    ) -> None:
        self._host = host
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._send = send
        self._items: dict[TopicPartition, _AlterIsrItem] = {}
        self._in_flight = False
        self._retry_timer: Timer | None = None

    @property
    def pending(self) -> tuple[TopicPartition, ...]:
        """Partitions whose proposal is not answered yet, in the order submitted."""
        return tuple(self._items)

    def submit(
        self,
        topic_partition: TopicPartition,
        leader_and_isr: LeaderAndIsr,
        controller_epoch: int,
        callback: IsrCallback,
    ) -> bool:
        if topic_partition in self._items:
            return False
        self._items[topic_partition] = _AlterIsrItem(topic_partition, leader_and_isr, callback)
        self._propagate()
        return True

    def clear_pending(self, topic_partition: TopicPartition) -> None:
        self._items.pop(topic_partition, None)

    def shutdown(self) -> None:
        if self._retry_timer is not None:
            self._retry_timer.cancel()
            self._retry_timer = None
        self._items.clear()

    def _propagate(self) -> None:
        if self._in_flight or not self._items or self._retry_timer is not None:
            return
        self._in_flight = True
        sent = tuple(self._items.values())
        request = AlterIsrRequest(
            self._broker_id,
            self._broker_epoch(),
            tuple(
                AlterIsrPartition(
                    item.topic_partition,
                    item.leader_and_isr.leader_epoch,
                    item.leader_and_isr.isr,
                    item.leader_and_isr.zk_version,
                )
                for item in sent
            ),
        )
        self._send(request, lambda response: self._on_response(sent, response))

    def _on_response(
        self, sent: tuple[_AlterIsrItem, ...], response: AlterIsrResponse | None
    ) -> None:
        if response is None or response.error is not ErrorCode.NONE:
            self._in_flight = False
            if self._items:
                self._retry_timer = self._host.call_later_ms(ALTER_ISR_RETRY_MS, self._retry)
            return
        sent_by_partition = {item.topic_partition: item for item in sent}
        for answer in response.partitions:
            item = sent_by_partition.get(answer.topic_partition)
            if item is None or self._items.get(item.topic_partition) is not item:
                continue  # not requested, or cleared by a LeaderAndIsr meanwhile
            # Removed before the callback, whose own submission must be accepted (CP-184).
            del self._items[item.topic_partition]
            item.callback(answer.error, answer.leader_and_isr)
        self._in_flight = False
        self._propagate()

    def _retry(self) -> None:
        self._retry_timer = None
        self._propagate()


ZooKeeperWrite = Callable[
    [TopicPartition, LeaderAndIsr, int, Callable[[int | None], object]], object
]
"""``write(partition, state, controller epoch, callback)``: a write conditional on
``state.zk_version``. The callback gets the new version, or None if the condition failed and the
stored state differs from ``state`` (a repeated write whose first try succeeded is a success)."""


class ZooKeeperIsrManager:
    """Writes ISR changes to ZooKeeper on the leader itself (before KIP-497,
    docs/kafka/isr.md#changes-through-zookeeper).

    Accepted changes are collected and published for the controller. While there are any, a check
    every 2500 ms, counted from the construction, publishes them if the last change is older than
    5000 ms or the last publication older than 60000 ms.
    """

    def __init__(
        self,
        host: Host,
        write: ZooKeeperWrite,
        publish: Callable[[tuple[TopicPartition, ...]], object],
    ) -> None:
        """Failures of ``publish`` must be reported to ``publication_failed``."""
        self._host = host
        self._write = write
        self._publish = publish
        self._started_ms = host.now_ms()
        self._changed: dict[TopicPartition, None] = {}
        self._last_change_ms = self._started_ms
        self._last_propagation_ms = self._propagation_before_ms = self._started_ms
        self._timer: Timer | None = None
        self._is_shut_down = False

    def submit(
        self,
        topic_partition: TopicPartition,
        leader_and_isr: LeaderAndIsr,
        controller_epoch: int,
        callback: IsrCallback,
    ) -> bool:
        def written(zk_version: int | None) -> None:
            if zk_version is None:
                callback(ErrorCode.INVALID_UPDATE_VERSION, None)
                return
            self._collect(topic_partition)
            callback(ErrorCode.NONE, leader_and_isr.with_zk_version(zk_version))

        self._write(topic_partition, leader_and_isr, controller_epoch, written)
        return True

    def clear_pending(self, topic_partition: TopicPartition) -> None:
        """Do nothing: a write is in flight or decided, but never queued."""

    def shutdown(self) -> None:
        self._is_shut_down = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def publication_failed(self, partitions: Sequence[TopicPartition]) -> None:
        """Retry a failed publication with the next check, together with changes made since."""
        self._changed = dict.fromkeys((*partitions, *self._changed))
        self._last_propagation_ms = self._propagation_before_ms
        if self._timer is None and not self._is_shut_down:
            self._schedule_check()

    def _collect(self, topic_partition: TopicPartition) -> None:
        self._changed[topic_partition] = None
        self._last_change_ms = self._host.now_ms()
        if self._timer is None:
            self._schedule_check()

    def _schedule_check(self) -> None:
        elapsed_ms = self._host.now_ms() - self._started_ms
        delay_ms = ISR_PROPAGATION_CHECK_MS - elapsed_ms % ISR_PROPAGATION_CHECK_MS
        self._timer = self._host.call_later_ms(delay_ms, self._maybe_publish)

    def _maybe_publish(self) -> None:
        self._timer = None
        now_ms = self._host.now_ms()
        if (
            self._last_change_ms + ISR_PROPAGATION_QUIET_MS < now_ms
            or self._last_propagation_ms + ISR_PROPAGATION_INTERVAL_MS_MAX < now_ms
        ):
            changed = tuple(self._changed)
            self._changed.clear()
            self._propagation_before_ms = self._last_propagation_ms
            self._last_propagation_ms = now_ms
            self._publish(changed)
        else:
            self._schedule_check()
