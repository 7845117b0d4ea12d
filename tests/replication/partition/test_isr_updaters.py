"""The two ways to write an ISR change: through the controller, or into ZooKeeper (CP-181..189)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.control import AlterIsrPartitionResponse, AlterIsrResponse
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import LeaderAndIsr, TopicPartition
from fakekafka.replication.partition.isr_updaters import AlterIsrManager, ZooKeeperIsrManager
from fakekafka.tests.support.hosts import FakeClock, FakeHost

TPS = [TopicPartition("t", n) for n in range(10)]
STATE = LeaderAndIsr(1, 5, (1, 2), 10)
OTHER = LeaderAndIsr(1, 5, (1,), 10)


class Controller:
    """A controller whose answers the test gives."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.sent: list[Any] = []
        self.answers: list[Any] = []
        self.broker_epoch = 42
        self.manager = AlterIsrManager(
            FakeHost("b", self.clock), 1, lambda: self.broker_epoch, self._send
        )

    def _send(self, request: Any, callback: Any) -> None:
        self.sent.append((request, callback))

    def submit(self, tp: TopicPartition = TPS[0], state: Any = STATE) -> bool:
        return self.manager.submit(tp, state, 3, lambda e, s: self.answers.append((tp, e, s)))

    def answer(self, *partitions: Any, error: ErrorCode = ErrorCode.NONE) -> None:
        self.sent[-1][1](AlterIsrResponse(error, tuple(partitions)))


def stored(
    tp: TopicPartition = TPS[0], error: ErrorCode = ErrorCode.NONE, state: Any = STATE
) -> AlterIsrPartitionResponse:
    return AlterIsrPartitionResponse(tp, error, state if error is ErrorCode.NONE else None)


def test_request_carries_broker_and_proposal() -> None:
    """A proposal is sent at once with broker epoch, leader epoch, ISR and version."""
    controller = Controller()
    assert controller.submit()
    request = controller.sent[0][0]
    assert (request.broker_id, request.broker_epoch) == (1, 42)
    entry = request.partitions[0]
    assert (entry.topic_partition, entry.leader_epoch) == (TPS[0], 5)
    assert (entry.new_isr, entry.zk_version) == ((1, 2), 10)


def test_second_submit_is_refused() -> None:
    """CP-181: a second submission of the same partition returns False, and the first value is
    sent."""
    controller = Controller()
    controller.submit(TPS[1])
    assert controller.submit(TPS[0])
    assert not controller.submit(TPS[0], OTHER)
    controller.answer(stored(TPS[1]))
    assert [p.new_isr for p in controller.sent[1][0].partitions] == [(1, 2)]


def test_one_request_in_flight() -> None:
    """CP-182: nine more items wait; a partition missing in the answer stays, so that the next
    request has 10."""
    controller = Controller()
    for tp in TPS:
        controller.submit(tp)
    assert len(controller.sent) == 1
    controller.answer()
    assert [p.topic_partition for p in controller.sent[1][0].partitions] == TPS
    assert len(controller.sent) == 2


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        None,
    ],
)
def test_request_level_failure_is_retried(error: ErrorCode | None) -> None:
    """CP-183: after a top-level error, or no answer, the item is sent again after 50 ms."""
    controller = Controller()
    controller.submit()
    if error is None:
        controller.sent[-1][1](None)
    else:
        controller.answer(error=error)
    assert controller.answers == []
    controller.clock.advance(49)
    assert len(controller.sent) == 1
    controller.submit(TPS[1])
    assert len(controller.sent) == 1, "what is submitted meanwhile waits for the retry"
    controller.clock.advance(1)
    assert [p.topic_partition for p in controller.sent[1][0].partitions] == TPS[:2]


def test_a_retry_carries_the_broker_epoch_of_now() -> None:
    """A retry carries the current broker epoch, as the broker may have registered anew, for
    instance after STALE_BROKER_EPOCH."""
    controller = Controller()
    controller.submit()
    controller.answer(error=ErrorCode.STALE_BROKER_EPOCH)
    controller.broker_epoch = 43
    controller.clock.advance(50)
    assert [request.broker_epoch for request, _ in controller.sent] == [42, 43]


def test_nothing_is_proposed_after_the_shutdown() -> None:
    """After the shutdown no proposal is sent, neither one that waits for a retry nor one queued
    behind others."""
    controller = Controller()
    controller.submit()
    controller.answer(error=ErrorCode.NOT_CONTROLLER)
    controller.manager.shutdown()
    assert (controller.manager.pending, len(controller.clock.timers)) == ((), 0)
    controller = Controller()
    controller.submit()
    controller.submit(TPS[1])
    controller.manager.shutdown()
    controller.answer(stored())
    assert (len(controller.sent), controller.answers) == (1, [])


def test_partition_error_reaches_the_callback_and_frees_the_slot() -> None:
    """CP-184: the callback gets the error, and may submit the partition again."""
    controller = Controller()
    accepted = []

    def callback(error: ErrorCode, state: Any) -> None:
        controller.answers.append((error, state))
        if len(controller.answers) == 1:
            accepted.append(controller.manager.submit(TPS[0], STATE, 3, callback))

    controller.manager.submit(TPS[0], STATE, 3, callback)
    controller.answer(stored(error=ErrorCode.UNKNOWN_SERVER_ERROR))
    assert accepted == [True]
    assert len(controller.sent) == 2
    controller.answer(stored())
    assert controller.answers[1] == (ErrorCode.NONE, STATE)
    assert controller.manager.pending == ()


def test_cleared_item_is_not_called_back() -> None:
    """A LeaderAndIsr request clears the pending item, whose callback does not get the late
    answer."""
    controller = Controller()
    controller.submit()
    controller.manager.clear_pending(TPS[0])
    assert controller.submit(TPS[0], OTHER), "the slot is free again"
    controller.answer(stored())
    assert controller.answers == []
    assert controller.sent[1][0].partitions[0].new_isr == (1,)


class Store:
    """A state znode of version 10."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.published: list[Any] = []
        self.version = 10
        self.answers: list[Any] = []
        self.manager = ZooKeeperIsrManager(
            FakeHost("b", self.clock), self._write, lambda p: self.published.append((self.now, p))
        )
        self.start = self.clock.now_ms

    @property
    def now(self) -> int:
        return self.clock.now_ms - self.start

    def _write(self, tp: TopicPartition, state: Any, controller_epoch: int, callback: Any) -> None:
        if state.zk_version == self.version:
            self.version += 1
            callback(self.version)
        else:
            callback(None)

    def submit(self, tp: TopicPartition = TPS[0], version: int = 10) -> bool:
        state = LeaderAndIsr(1, 5, (1,), version)
        return self.manager.submit(tp, state, 3, lambda e, s: self.answers.append((e, s)))


def test_right_version_succeeds() -> None:
    """CP-187: the right version succeeds with the version returned; a wrong one is error 95."""
    store = Store()
    assert store.submit(version=10)
    assert store.submit(version=10)
    assert store.answers == [
        (ErrorCode.NONE, LeaderAndIsr(1, 5, (1,), 11)),
        (ErrorCode.INVALID_UPDATE_VERSION, None),
    ]


def test_publication_waits_for_quiet() -> None:
    """CP-189: changes are published together once the last one is older than 5 s, checked every 2.5
    s."""
    store = Store()
    store.clock.advance(100)
    store.submit(TPS[0])
    store.clock.advance(1000)
    store.submit(TPS[1], version=11)
    store.clock.advance(60000)
    assert store.published == [(7500, (TPS[0], TPS[1]))]
    assert len(store.clock.timers) == 0, "nothing to check, nothing scheduled"


def test_published_changes_are_not_published_again() -> None:
    """CP-189: the next publication has only the changes since the last one."""
    store = Store()
    store.submit(TPS[0])
    store.clock.advance(10_000)
    store.submit(TPS[1], version=11)
    store.clock.advance(60_000)
    assert [partitions for _, partitions in store.published] == [(TPS[0],), (TPS[1],)]


def test_publication_is_forced_after_a_minute() -> None:
    """CP-189: under continuous changes a publication is due 60 s after the last one."""
    store = Store()
    for version in range(10, 80):
        store.submit(TPS[0], version=version)
        store.clock.advance(1000)
    assert [at for at, _ in store.published] == [62500]


def test_failed_write_is_not_published() -> None:
    """A refused change is not published to the controller."""
    store = Store()
    store.submit(version=9)
    store.clock.advance(120000)
    assert store.published == []


def test_unpublished_changes_are_in_the_next_publication() -> None:
    """Changes whose publication failed are in the next one; the failed one does not count as the
    last (Kafka: ``maybePropagateIsrChanges`` ends at the exception)."""
    store = Store()
    store.submit(TPS[0])
    store.clock.advance(7500)
    ((_, failed),) = store.published
    store.submit(TPS[1], version=11)
    store.manager.publication_failed(failed)
    store.clock.advance(60000)
    assert store.published[1:] == [(15000, (TPS[0], TPS[1]))]
    assert len(store.clock.timers) == 0


def test_a_failed_publication_is_no_reason_to_wait_another_minute() -> None:
    """After a failed publication the next check publishes again, even under continuous changes."""
    store = Store()
    for version in range(10, 80):
        store.submit(TPS[0], version=version)
        store.clock.advance(1000)
        if len(store.published) == 1:
            store.manager.publication_failed(store.published[0][1])
            break
    store.submit(TPS[0], version=store.version)
    store.clock.advance(2500)
    assert [at for at, _ in store.published] == [62500, 65000]


def test_a_failure_after_the_shutdown_is_not_retried() -> None:
    store = Store()
    store.submit(TPS[0])
    store.clock.advance(7500)
    store.manager.shutdown()
    store.manager.publication_failed((TPS[0],))
    assert len(store.clock.timers) == 0
