"""A broker's channels to the controller: which requests they retry, and for how long."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.actors.broker.controller_channel import ControllerChannel
from fakekafka.actors.delivery import Delivery
from fakekafka.protocol.awaiting import Disconnected, Pending, RequestTimeout, Task
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.control import AlterIsrRequest, AlterIsrResponse
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.tests.support.hosts import FakeClock, FakeHost

REQUEST = AlterIsrRequest(1, 42, ())
MOVED = AlterIsrResponse(ErrorCode.NOT_CONTROLLER, ())
STALE = AlterIsrResponse(ErrorCode.STALE_BROKER_EPOCH, ())


pytestmark = pytest.mark.pure  # replaces the broker, which compiled code takes for an actor


class Broker(FakeHost):
    """A node that records its requests; the test supplies the responses."""

    start_task = staticmethod(Task)

    def __init__(self) -> None:
        super().__init__("broker-1", FakeClock())
        self.asked: list[tuple[str, Any, int, Pending[Any]]] = []
        self.controller: str | None = "broker-2"
        self.answers: list[Any] = []

    def ask(self, destination: str, message: Any, timeout_ms: int) -> Pending[Any]:
        self.asked.append((destination, message, timeout_ms, Pending()))
        return self.asked[-1][3]

    def log(self, _level: str, _text: str) -> None:
        pass

    def channel(self, retry_timeout_ms: int | None) -> ControllerChannel:
        node: Any = self
        config = BrokerConfig({"controller.socket.timeout.ms": 4000}, "2.8")
        return ControllerChannel(node, lambda: self.controller, config, retry_timeout_ms)

    def answer(self, outcome: Any) -> None:
        self.asked[-1][3].settle(outcome)

    @property
    def destinations(self) -> list[str]:
        return [asked[0] for asked in self.asked]


@pytest.mark.parametrize("failure", [MOVED, Disconnected("gone"), RequestTimeout("late")])
def test_a_failed_request_is_sent_again_to_the_next_controller(failure: Any) -> None:
    """After a disconnect, a timeout or NOT_CONTROLLER a request is sent again 50 ms later."""
    broker = Broker()
    broker.channel(None).send(REQUEST, broker.answers.append)
    broker.answer(failure)
    broker.controller = "broker-3"
    broker.clock.advance(49)
    assert broker.destinations == ["broker-2"]
    broker.clock.advance(1)
    assert broker.destinations == ["broker-2", "broker-3"]
    assert {id(asked[1]) for asked in broker.asked} == {id(REQUEST)}
    broker.answer(STALE)
    assert broker.answers == [STALE]


def test_a_broker_that_knows_no_controller_looks_again_every_100_ms() -> None:
    """A channel without a known controller looks for one in the metadata every 100 ms."""
    broker = Broker()
    broker.controller = None
    broker.channel(None).send(REQUEST, broker.answers.append)
    broker.clock.advance(250)
    broker.controller = "broker-3"
    assert broker.asked == []
    broker.clock.advance(50)
    assert broker.destinations == ["broker-3"]


def test_a_request_goes_to_the_first_controller_of_the_metadata() -> None:
    """A channel keeps the first controller of the metadata and sends its request there even if
    another was elected meanwhile (NodeToControllerRequestThread.doWork).
    """
    broker = Broker()
    channel = broker.channel(None)
    channel.look_up()
    broker.controller = "broker-3"
    channel.look_up()
    channel.send(REQUEST, broker.answers.append)
    assert broker.destinations == ["broker-2"]
    broker.answer(MOVED)
    channel.look_up()
    broker.controller = "broker-4"
    broker.clock.advance(50)
    assert broker.destinations == ["broker-2", "broker-3"]


@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_a_leader_sends_its_first_alter_isr_to_the_first_controller(version: str) -> None:
    """A leader sends its first AlterIsr to the first controller, here paused; until that request
    fails, a returning follower stays out of the ISR.
    """
    config = {"controller.socket.timeout.ms": "60000", "replica.lag.time.max.ms": "600000"}
    with Simulation(brokers=4, seed=3, kafka_version=version, config=config) as sim:
        first = sim.controller.id
        assert first is not None
        leader, follower, _ = (one for one in (1, 2, 3, 4) if one != first)
        sim.create_topic("t", assignment={0: [leader, follower]})
        sim.broker(first).pause()
        sim.wait_until(lambda: sim.controller.id not in (None, first), timeout_s=60)
        sim.broker(follower).kill()
        sim.wait_until(lambda: sim.partition("t", 0).isr == (leader,), timeout_s=60)
        sim.broker(follower).start()
        sim.run_for(30_000)
        assert sim.partition("t", 0).isr == (leader,)
        sim.run_for(60_000)
        assert set(sim.partition("t", 0).isr) == {leader, follower}


def test_an_alter_isr_request_never_times_out() -> None:
    """AlterIsr requests are retried without limit; one attempt takes controller.socket.timeout.ms
    at most (AlterIsrManager of Kafka 2.8).
    """
    broker = Broker()
    broker.channel(None).send(REQUEST, broker.answers.append)
    for _ in range(30):
        broker.answer(RequestTimeout("late"))
        broker.clock.advance(60_000)
    assert len(broker.asked) == 31
    assert {asked[2] for asked in broker.asked} == {4000}
    assert broker.answers == []


def test_other_channels_time_out_a_request_at_the_maximum_age() -> None:
    """``ask`` raises RequestTimeout once a request reaches the channel's maximum age."""
    broker = Broker()
    asking = Task(broker.channel(1000).ask(REQUEST))
    while not asking.done:
        broker.answer(MOVED)
        broker.clock.advance(50)
    assert len(broker.asked) == 20
    assert isinstance(asking.exception, RequestTimeout)
    assert {asked[2] for asked in broker.asked} == {1000}


def test_a_refusal_that_is_no_answer_ends_the_request() -> None:
    """A request that is refused ends with None for its callback, so that the sender decides."""
    broker = Broker()
    broker.channel(None).send(REQUEST, broker.answers.append)
    broker.answer(KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no"))
    broker.clock.advance(1000)
    assert broker.answers == [None]
    assert len(broker.asked) == 1


@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_a_proposal_outlives_the_controller(version: str) -> None:
    """An AlterIsr that the dying controller never answered is sent to its successor unchanged."""
    with Simulation(brokers=4, seed=3, kafka_version=version) as sim:
        first = sim.controller.id
        assert first is not None
        others = [broker_id for broker_id in (1, 2, 3, 4) if broker_id != first]
        sim.create_topic("t", assignment={0: others})
        proposals: list[Any] = []

        def is_proposal(delivery: Delivery) -> bool:
            return isinstance(delivery.message, AlterIsrRequest) and not delivery.is_reply

        def noted(delivery: Delivery) -> None:
            if is_proposal(delivery):
                proposals.append(delivery.message)

        sim.observe(noted)
        hold = sim.network.hold(is_proposal)
        sim.network.partition([others[2]], others[:2])
        sim.producer(acks=1).produce(("t", 0), b"what the third replica lacks")
        sim.wait_until(lambda: hold.messages, timeout_s=60)
        (unanswered,) = hold.messages
        sim.broker(first).kill()
        hold.end()
        sim.wait_until(lambda: sim.partition("t", 0).isr == tuple(others[:2]), timeout_s=60)
        assert sim.controller.id != first
        assert proposals[-1] is unanswered.message
