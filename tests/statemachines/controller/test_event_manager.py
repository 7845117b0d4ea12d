"""The controller's event queue."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.awaiting import Pending, Task
from fakekafka.protocol.control import UpdateMetadataResponse
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.statemachines.controller.events import (
    ApiPartitionReassignment,
    BrokerChange,
    ControlledShutdown,
    ControllerEvent,
    ControllerState,
    ListPartitionReassignments,
    ReplicaLeaderElection,
    TopicChange,
    UpdateMetadataResponseReceived,
)
from fakekafka.statemachines.controller.queue import ControllerEventManager, QueuedEvent
from fakekafka.statemachines.zookeeper.errors import ControllerMoved
from fakekafka.tests.support.fake_brokers import OwnMailbox
from fakekafka.tests.support.hosts import FakeHost
from fakekafka.tests.support.run_now import run_now

TP = TopicPartition("t", 0)


class Recorder:
    """Processes events by recording them; may take time, wait or fail."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.seen: list[ControllerEvent] = []
        self.states: list[ControllerState] = []
        self.manager: ControllerEventManager | None = None
        self.parked: Pending[None] | None = None
        self.takes_ms = 0
        self.error: Exception | None = None

    async def process(self, event: ControllerEvent) -> None:
        assert self.manager is not None
        self.seen.append(event)
        self.states.append(self.manager.state)
        self.host.clock.now_us += self.takes_ms * 1000
        if self.parked is not None:
            await self.parked
        if self.error is not None:
            raise self.error


def started(
    mailbox: OwnMailbox | None = None, **options: Any
) -> tuple[FakeHost, Recorder, ControllerEventManager]:
    host = FakeHost()
    recorder = Recorder(host)
    manager = ControllerEventManager(host, recorder.process, mailbox or OwnMailbox(), **options)
    recorder.manager = manager
    manager.start()
    return host, recorder, manager


@pytest.mark.parametrize("error", [None, RuntimeError("no")])
def test_an_event_is_processed_exactly_once_under_its_state(error: Exception | None) -> None:
    """CP-59: the state changes to the event's and back to Idle, and the timer counts, error or
    not."""
    host, recorder, manager = started()
    recorder.error = error
    manager.put(TopicChange())
    host.advance(0)
    assert recorder.seen == [TopicChange()]
    assert recorder.states == [ControllerState.TOPIC_CHANGE]
    assert manager.state is ControllerState.IDLE
    assert manager.timers[ControllerState.TOPIC_CHANGE].count == 1


def test_an_event_without_a_timer_is_processed() -> None:
    """CP-60: UpdateMetadata responses are not timed."""
    host, recorder, manager = started()
    event = UpdateMetadataResponseReceived(UpdateMetadataResponse(ErrorCode.NONE), 1)
    manager.put(event)
    host.advance(0)
    assert recorder.seen == [event]
    assert ControllerState.UPDATE_METADATA_RESPONSE_RECEIVED not in manager.timers
    assert sum(timer.count for timer in manager.timers.values()) == 0


def test_queue_times_count_from_put_to_start() -> None:
    """CP-61: two events that take 500 ms each and are put together wait 0 and 500 ms."""
    host, recorder, manager = started()
    recorder.takes_ms = 500
    manager.put(TopicChange())
    manager.put(BrokerChange())
    host.advance(500)
    times = manager.queue_times
    assert (times.count, times.minimum, times.maximum) == (2, 0, 500)
    assert manager.timers[ControllerState.BROKER_CHANGE].maximum == 500


def test_queue_times_are_forgotten_after_an_idle_while() -> None:
    """CP-62: five idle minutes reset the histogram."""
    host, _recorder, manager = started()
    manager.put(TopicChange())
    host.advance(0)
    host.advance(300_000)
    assert manager.queue_times.count == 1
    host.advance(1)
    assert manager.queue_times.count == 0


def test_closing_removes_the_metrics() -> None:
    """CP-63."""
    host, _recorder, manager = started()
    closing = Task(manager.close())
    host.advance(0)
    assert closing.done
    assert manager.timers == {}
    assert manager.is_closed


def test_closing_preempts_queued_events_and_finishes_the_current_one() -> None:
    """CP-64: one event is being processed and two wait; only the waiting ones are preempted."""
    host, recorder, manager = started()
    outcomes: list[Any] = []
    phases: list[tuple[str, str]] = []
    manager.on_event = lambda event, phase: phases.append((event.name, phase))
    recorder.parked = Pending()
    manager.put(TopicChange())
    host.advance(0)
    manager.put(ControlledShutdown(1, -1, outcomes.append))
    manager.put(ApiPartitionReassignment(((TP, (1,)),), outcomes.append))
    closing = Task(manager.close())
    assert not closing.done
    assert isinstance(outcomes[0], ControllerMoved)
    assert outcomes[1] is ErrorCode.NOT_CONTROLLER
    recorder.parked.set_result(None)
    host.advance(0)
    assert closing.done
    assert recorder.seen == [TopicChange()]
    assert ("ControlledShutdown", "preempted") in phases
    assert ("TopicChange", "finished") in phases


def test_preempted_requests_get_their_error() -> None:
    """CP-65: elections, reassignments, lists and controlled shutdowns each get their error."""
    _host, _recorder, manager = started()
    outcomes: list[Any] = []
    manager.put(ReplicaLeaderElection((TP,), callback=outcomes.append))
    manager.put(ReplicaLeaderElection(None, callback=outcomes.append))
    manager.put(ControlledShutdown(1, -1, outcomes.append))
    manager.put(ApiPartitionReassignment((), outcomes.append))
    manager.put(ListPartitionReassignments(None, outcomes.append))
    manager.clear_and_put(TopicChange())
    elected, nothing, moved, reassigned, listed = outcomes
    assert elected[TP][0] is ErrorCode.NOT_CONTROLLER
    assert nothing == {}
    assert isinstance(moved, ControllerMoved)
    assert (reassigned, listed) == (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER)


def test_cleared_events_vanish_silently_before_2_0() -> None:
    """Without preemption their callbacks are not called (docs/kafka/releases.md)."""
    host, recorder, manager = started(preempt_queued_events=False)
    outcomes: list[Any] = []
    manager.put(ListPartitionReassignments(None, outcomes.append))
    manager.clear_and_put(TopicChange())
    host.advance(0)
    assert outcomes == []
    assert recorder.seen == [TopicChange()]


def test_a_waiter_is_notified_when_its_event_starts() -> None:
    """The session watcher blocks until Expire is being processed
    (docs/kafka/controller-failover.md#session-expiry)."""
    host, recorder, manager = started()
    recorder.parked = Pending()
    manager.put(TopicChange())
    host.advance(0)
    expiring = manager.clear_and_put(BrokerChange())
    waiting = Task(expiring.await_processing())
    assert not waiting.done
    recorder.parked.set_result(None)
    host.advance(0)
    assert waiting.done
    assert run_now(expiring.await_processing()) is None


def test_events_wait_while_another_one_is_parked() -> None:
    """Events are processed one at a time, in the order of arrival."""
    host, recorder, manager = started()
    recorder.parked = Pending()
    manager.put(TopicChange())
    manager.put(BrokerChange())
    host.advance(0)
    assert recorder.seen == [TopicChange()]
    assert len(manager) == 1
    recorder.parked.set_result(None)
    host.advance(0)
    assert recorder.seen == [TopicChange(), BrokerChange()]


def test_an_event_that_is_delivered_late_takes_its_turn_again() -> None:
    """Its message was held back when its turn came, and another event is being processed by now."""
    kept: list[QueuedEvent] = []

    class Keeping(OwnMailbox):
        def deliver(self, queued: QueuedEvent) -> None:
            if queued.event == TopicChange() and not kept:
                kept.append(queued)
            else:
                queued.take()

    host, recorder, manager = started(mailbox=Keeping())
    recorder.parked = Pending()
    manager.put(TopicChange())
    manager.put(BrokerChange())
    host.advance(0)
    kept[0].take()
    assert recorder.seen == [BrokerChange()]
    recorder.parked.set_result(None)
    host.advance(0)
    assert recorder.seen == [BrokerChange(), TopicChange()]


def test_putting_does_not_process() -> None:
    """The caller of ``put`` continues first; a timer of the controller then processes the event."""
    host, recorder, manager = started()
    manager.put(TopicChange())
    assert recorder.seen == []
    host.advance(0)
    assert recorder.seen == [TopicChange()]
