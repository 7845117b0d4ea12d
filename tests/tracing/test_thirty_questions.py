"""Thirty questions about what waited for a time: who waited, for whom, and why it was in vain.

The answers were written down before the tool was asked: from the scenario, by reasoning. ``names``
come one after the other in the chain of causes, the latest first; ``root`` is in its last line.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from fakekafka import Simulation, Trace
from fakekafka.protocol.admin import ElectLeadersRequest
from fakekafka.protocol.awaiting import RequestTimeout
from fakekafka.protocol.data import DeleteRecordsRequest, ProducePartition, ProduceRequest
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import TopicPartition
from fakekafka.tracing.events import ROOT_KINDS
from fakekafka.tracing.text import format_event

LEADER_2 = {"assignment": {0: [2, 3]}}
LEADER_3 = {"assignment": {0: [3, 2]}}
LEADER_1 = {"assignment": {0: [1, 2, 3]}}
PATIENT = {"zookeeper.session.timeout.ms": 90_000}
"""Sessions outlast what is asked about."""

Act = Callable[[Simulation], object]


def recorded(
    act: Act,
    *,
    brokers: int = 3,
    version: str = "3.9",
    topic: Mapping[str, Any] | None = LEADER_2,
    config: Mapping[str, Any] = PATIENT,
    zookeepers: int = 1,
) -> Trace:
    """A run, and what it shows. With one ZooKeeper server broker 1 is the controller."""
    topics = {} if topic is None else {"t": topic}
    with Simulation(
        brokers, seed=1, kafka_version=version, config=config, topics=topics, zookeepers=zookeepers
    ) as simulation:
        act(simulation)
        return simulation.trace()


def shop_meets(fault: Act, for_ms: float = 8000, **settings: Any) -> Act:
    """A producer whose first record is answered; its second meets a fault of its leader 2."""

    def act(simulation: Simulation) -> None:
        chosen = {"acks": 1, "request_timeout_ms": 5000, **settings}
        shop = simulation.producer("shop", **chosen)
        shop.produce(("t", 0), b"first")
        simulation.run_for(1000)
        fault(simulation)
        simulation.run_for(500)
        shop.produce(("t", 0), b"x" * 100_000)
        simulation.run_for(for_ms)

    return act


def held_requests(simulation: Simulation) -> None:
    """Requests of the shop are kept back."""

    def from_shop(delivery: Any) -> bool:
        return bool(delivery.sender.name == "shop")

    simulation.network.hold(from_shop)


def record_100(simulation: Simulation) -> None:
    """Ninety-nine records are acknowledged; both followers are paused when the hundredth comes."""
    shop = simulation.producer("shop", acks="all", request_timeout_ms=9000)
    for _ in range(99):
        shop.produce(("t", 0), b"v")
        simulation.run_for(20)
    simulation.broker(2).pause()
    simulation.broker(3).pause()
    simulation.run_for(200)
    ask_produce(simulation, 4000)


def ask_produce(simulation: Simulation, timeout_ms: int) -> None:
    """A request with its own timeout, whose asker has more patience than the broker."""
    partition = ProducePartition(
        TopicPartition("t", 0), build_batch([Record(0, 0, None, b"hundred", ())])
    )
    simulation.ask(1, ProduceRequest(-1, timeout_ms, (partition,)))


def waits_in_turn(simulation: Simulation) -> None:
    """The producer waits for its leader as long as that waits for its followers."""
    shop = simulation.producer("shop", acks="all", request_timeout_ms=5000)
    shop.produce(("t", 0), b"first")
    simulation.run_for(1000)
    simulation.broker(2).pause()
    simulation.broker(3).pause()
    simulation.run_for(500)
    shop.produce(("t", 0), b"second")
    simulation.run_for(8000)


def patient_deletion(simulation: Simulation) -> None:
    """Records are deleted while one of three replicas is paused."""
    for _ in range(5):
        simulation.produce("t", b"v")
    simulation.broker(3).pause()
    simulation.run_for(100)
    request = DeleteRecordsRequest(6000, ((TopicPartition("t", 0), 3),))
    simulation.ask(1, request)


def two_readers(simulation: Simulation) -> None:
    """Two consumers of an empty partition: the broker's timer answers both, again and again."""
    simulation.consumer([("t", 0)], name="reader-a")
    simulation.run_for(130)
    simulation.consumer([("t", 0)], name="reader-b")
    simulation.run_for(3000)


def slow_copy(simulation: Simulation) -> None:
    """Broker 3 copies over a link that takes half a minute; a record is written."""
    simulation.produce("t", b"v")
    simulation.network.latency(30_000, source=1, target=3)
    simulation.produce("t", b"w", acks=1)
    simulation.run_for(60_000)


def narrow_copy(simulation: Simulation) -> None:
    """Broker 3 copies over a link of 100 bytes in a second; a large record is written."""
    simulation.produce("t", b"v")
    simulation.network.bandwidth(0.0001, source=1, target=3)
    simulation.produce("t", b"w" * 50_000, acks=1)
    simulation.run_for(60_000)


def slow_session(simulation: Simulation) -> None:
    """The pings of broker 2 to ZooKeeper take a minute."""
    simulation.run_for(3000)
    simulation.network.latency(60_000, source=2, target="zk-1")
    simulation.run_for(40_000)


def lost_session(simulation: Simulation) -> None:
    """The pings of broker 2 to ZooKeeper are lost."""
    simulation.run_for(3000)
    simulation.network.drop(1.0, source=2, target="zk-1")
    simulation.run_for(40_000)


def told_while_paused(simulation: Simulation) -> None:
    """A topic is made that broker 3 shall lead, and broker 3 is paused."""
    simulation.run_for(1000)
    simulation.broker(3).pause()
    simulation.run_for(500)
    simulation.producer("maker", request_timeout_ms=5000)  # others use timers, too
    simulation.zookeeper.create("/brokers/topics/late", '{"version":1,"partitions":{"0":[3,1]}}')
    simulation.run_for(45_000)


def paused_leader(simulation: Simulation) -> None:
    """Follower 3 fetches from leader 2, which is paused for longer than a fetcher waits."""
    simulation.produce("t", b"v")
    simulation.run_for(2000)
    simulation.broker(2).pause()
    simulation.run_for(40_000)


def killed_leader(simulation: Simulation) -> None:
    """Leader 2 is killed; its session lasts, so that follower 3 tries again and again."""
    simulation.produce("t", b"v")
    simulation.run_for(2000)
    simulation.broker(2).kill()
    simulation.run_for(10_000)


def retained(simulation: Simulation) -> None:
    """The broker starts again, and later deletes a segment that is too old."""
    simulation.alter_config("t", {"segment.ms": 1000, "retention.ms": 20_000})
    for _ in range(3):
        simulation.produce("t", b"v")
        simulation.run_for(2000)
    simulation.broker(1).kill()
    simulation.run_for(1000)
    simulation.broker(1).start()
    simulation.run_for(2000)
    simulation.produce("t", b"v")
    simulation.run_for(60_000)


def group_of_two(fault: Act, for_ms: float, **settings: Any) -> Act:
    """Two members of a group are stable when something happens."""

    def act(simulation: Simulation) -> None:
        for name in ("member-a", "member-b"):
            simulation.group_consumer("g", ["t"], name=name, **settings)
        simulation.run_for(12_000)
        fault(simulation)
        simulation.run_for(for_ms)

    return act


def slow_member(simulation: Simulation) -> None:
    """What one member sends to any broker takes two minutes."""
    for broker in (1, 2, 3):
        simulation.network.latency(120_000, source="member-b", target=broker)


def missed_rebalance(simulation: Simulation) -> None:
    """One member is cut off, and another one joins."""
    simulation.network.isolate("member-b")
    simulation.group_consumer("g", ["t"], name="member-c", rebalance_timeout_ms=6000)


def open_transaction(fault: Act, for_ms: float) -> Act:
    """An application has written in a transaction when something happens."""

    def act(simulation: Simulation) -> None:
        application = simulation.transactional_producer(
            "app", name="app", transaction_timeout_ms=8000
        )

        async def begin() -> None:
            await application.init_transactions()
            application.begin()
            await application.write(("t", 0), [b"a"])

        application.start_task(begin())
        simulation.run_for(3000)
        fault(simulation)
        simulation.run_for(for_ms)

    return act


def slow_application(simulation: Simulation) -> None:
    """What the application sends to any broker takes two minutes."""
    for broker in (1, 2, 3):
        simulation.network.latency(120_000, source="app", target=broker)


def made_without_controller(simulation: Simulation) -> None:
    """The controller dies, somebody makes a topic, another broker becomes the controller."""
    simulation.run_for(1000)
    simulation.broker(1).kill()
    simulation.run_for(1000)
    simulation.zookeeper.create("/brokers/topics/late", '{"version":1,"partitions":{"0":[2,3]}}')
    simulation.producer("shop").produce(("late", 0), b"v")
    simulation.run_for(40_000)


def led_back(simulation: Simulation) -> None:
    """The preferred leader is killed, another one leads, and it starts again."""
    simulation.run_for(1000)
    simulation.broker(2).kill()
    simulation.run_until(lambda: simulation.partition("t", 0).leader == 3, 60_000)
    simulation.broker(2).start()
    simulation.run_until(lambda: simulation.partition("t", 0).leader == 2, 600_000)
    simulation.run_for(1000)


def told_of_isr(simulation: Simulation) -> None:
    """A follower is paused, and its leader tells the controller of the smaller ISR."""
    simulation.produce("t", b"v")
    simulation.run_for(2000)
    simulation.broker(3).pause()
    simulation.produce("t", b"w", acks=1)
    simulation.run_for(60_000)


def isr_without_controller(simulation: Simulation) -> None:
    """A follower is paused and so is the controller: nobody takes the smaller ISR."""
    simulation.produce("t", b"v")
    simulation.run_for(2000)
    simulation.broker(3).pause()
    simulation.broker(1).pause()
    simulation.produce("t", b"w", acks=1)
    simulation.run_for(36_500)


def lingering(simulation: Simulation) -> None:
    """A producer that waits for more records before it sends."""
    shop = simulation.producer("shop", acks=1, linger_ms=400)
    shop.produce(("t", 0), b"v")
    simulation.run_for(3000)
    shop.produce(("t", 0), b"w")
    simulation.run_for(3000)


def unread_leader(simulation: Simulation) -> None:
    """A consumer whose leader is paused."""
    simulation.produce("t", b"v")
    simulation.consumer([("t", 0)], name="reader", request_timeout_ms=6000)
    simulation.run_for(3000)
    simulation.broker(2).pause()
    simulation.run_for(8000)


def first_member(simulation: Simulation) -> None:
    """The first rebalance of a group waits for others who might join."""
    simulation.group_consumer("g", ["t"], name="member-a")
    simulation.run_for(8000)


def lost_quorum(simulation: Simulation) -> None:
    """The server that leads ZooKeeper is cut off from the others."""
    simulation.run_for(3000)
    simulation.network.isolate("zk-3")
    simulation.run_for(60_000)


def asked_in_vain(simulation: Simulation) -> None:
    """An administrator asks a broker that is paused."""
    simulation.run_for(1000)
    simulation.broker(3).pause()
    simulation.run_for(1000)
    with pytest.raises(RequestTimeout):
        simulation.ask(3, ElectLeadersRequest(0, (TopicPartition("t", 0),)), timeout_s=7)


@dataclass(frozen=True)
class Question:
    """What is asked, in which run, at which event, and what the answer must say."""

    text: str
    act: Act
    at: str
    names: tuple[str, ...]
    root: str
    options: Mapping[str, Any] | None = None
    never: tuple[str, ...] = ()
    """What has nothing to do with it, and is in no line."""


AT_RETRY = "kind == client_retry"
BRIEF = {"zookeeper.session.timeout.ms": 12_000}

QUESTIONS: tuple[Question, ...] = (
    # -- a request and its answer: ``Port`` --------------------------------------------------
    Question(
        "Why did the producer send again? Its leader was paused",
        shop_meets(lambda s: s.broker(2).pause()),
        AT_RETRY,
        ("client_retry", "waited 5.0 s for broker-2, which was paused", "(paused)"),
        "broker-2",
    ),
    Question(
        "Why did the producer send again? Its leader was cut off",
        shop_meets(lambda s: s.network.partition(["shop"], [2])),
        AT_RETRY,
        ("client_retry", "waited 5.0 s for broker-2, which was cut off"),
        "partition [['shop'], ['broker-2']]",
    ),
    Question(
        "Why did the producer send again? Answers were lost",
        shop_meets(lambda s: s.network.drop(1.0, source=2, target="shop")),
        AT_RETRY,
        ("client_retry", "waited 5.0 s for broker-2, over a link that loses messages"),
        "broker-2 to shop: messages are lost with probability 1",
    ),
    Question(
        "Why did the producer send again? The link was slow",
        shop_meets(lambda s: s.network.latency(20_000, source="shop", target=2)),
        AT_RETRY,
        ("client_retry", "waited 5.0 s for broker-2, over a slow link"),
        "shop to broker-2: latency 20000 ms",
    ),
    Question(
        "Why did the producer send again? The link was narrow",
        shop_meets(lambda s: s.network.bandwidth(0.001, source="shop", target=2)),
        AT_RETRY,
        ("client_retry", "waited 5.0 s for broker-2, over a narrow link"),
        "shop to broker-2: bandwidth 0.001 MB/s",
    ),
    Question(
        "Why did the producer send again? Its request was kept back",
        shop_meets(held_requests),
        AT_RETRY,
        ("client_retry", "waited 5.0 s for broker-2, whose messages were held back"),
        "held back",
    ),
    Question(
        "Why did the producer give up? It waited 20 s for a dead broker",
        shop_meets(lambda s: s.broker(2).kill(), 25_000, delivery_timeout_ms=20_000),
        "kind == client_fail",
        ("client_fail", "waited 20.0 s for broker-2, which was off"),
        "broker-2 is killed",
        never=("UpdateMetadata",),
    ),
    Question(
        "Why did the producer give up? It waited 20 s for a paused broker",
        shop_meets(lambda s: s.broker(2).pause(), 25_000, delivery_timeout_ms=20_000),
        "kind == client_fail",
        ("client_fail", "waited 20.0 s for broker-2, which was paused", "(paused)"),
        "broker-2",
    ),
    Question(
        "Why did the producer send to another broker only then? It waited for the dead one",
        shop_meets(lambda s: s.broker(2).kill(), 60_000),
        "last kind == client_retry",
        ("client_retry", "s for broker-2, which was off"),
        "broker-2 is killed",
        never=("UpdateMetadata",),
    ),
    Question(
        "Why did the reader ask for the leader again?",
        unread_leader,
        "last kind == expire and actor == 'reader'",
        ("waited 6.0 s for broker-2, which was paused", "(paused)"),
        "broker-2",
    ),
    Question(
        "Why did the administrator's request fail?",
        asked_in_vain,
        "last kind == expire",
        ("waited 7.0 s for broker-3, which was paused", "(paused)"),
        "broker-3",
    ),
    Question(
        "Why did the controller tell the broker again?",
        told_while_paused,
        "last kind == send and actor == 'controller-1' and type == 'LeaderAndIsrRequest' "
        "and peer == 'broker-3'",
        ("LeaderAndIsrRequest", "waited 30.0 s for broker-3, which was paused", "(paused)"),
        "broker-3",
    ),
    Question(
        "Why did the follower begin to fetch anew?",
        paused_leader,
        "last kind == send and actor == 'fetcher-3-from-2' and type == 'FetchRequest'",
        ("FetchRequest", "waited 30.0 s for broker-2, which was paused", "(paused)"),
        "broker-2",
    ),
    Question(
        "Why did the leader propose the ISR again?",
        isr_without_controller,
        "last kind == send and type == 'AlterIsrRequest'",
        ("AlterIsrRequest", "which was paused", "(paused)"),
        "broker-1",
        {"config": {**PATIENT, "replica.lag.time.max.ms": 2000}},
    ),
    # -- the broker's purgatory: ``WheelTimer`` ----------------------------------------------
    Question(
        "Why did record 100 time out? The followers were paused",
        record_100,
        "last kind == deliver and type == 'ProduceResponse' and actor == 'admin'",
        (
            "REQUEST_TIMED_OUT",
            "waited 4.0 s for broker-2 and broker-3, which were paused",
            "ProduceRequest",
            "(paused)",
        ),
        "broker-2",
        {"topic": LEADER_1},
        never=("shop", "Wheel"),
    ),
    Question(
        "Why did the producer send again? Its leader waited for followers that were paused",
        waits_in_turn,
        AT_RETRY,
        ("client_retry", "waited 5.0 s for broker-1", "ProduceRequest", "(paused)"),
        "broker-2",
        {"topic": LEADER_1},
        never=("for broker-1,",),
    ),
    Question(
        "Why was the second reader answered? Its own request had waited",
        two_readers,
        "last kind == send and peer == 'reader-b' and type == 'FetchResponse'",
        ("FetchResponse", "FetchRequest"),
        "",
        never=("reader-a",),
    ),
    Question(
        "Why was the follower answered? Its own request had waited",
        lambda s: s.run_for(5000),
        "last kind == send and peer == 'fetcher-3-from-1' and type == 'FetchResponse'",
        ("FetchResponse", "FetchRequest"),
        "",
        {"topic": LEADER_1},
        never=("fetcher-2",),
    ),
    Question(
        "Why did the deletion of records time out?",
        patient_deletion,
        "kind == deliver and type == 'DeleteRecordsResponse'",
        (
            "REQUEST_TIMED_OUT",
            "waited 6.0 s for broker-3, which was paused",
            "DeleteRecordsRequest",
            "(paused)",
        ),
        "broker-3",
        {"topic": LEADER_1},
    ),
    # -- the broker's upkeep and its fetchers ------------------------------------------------
    Question(
        "Why did the ISR shrink? The link was slow",
        slow_copy,
        "change broker-1/t-0/isr if new == [1, 2]",
        ("replica 3 of t-0 has been behind",),
        "broker-1 to broker-3: latency 30000 ms",
        {"topic": LEADER_1},
    ),
    Question(
        "Why did the ISR shrink? The link was narrow",
        narrow_copy,
        "change broker-1/t-0/isr if new == [1, 2]",
        ("replica 3 of t-0 has been behind",),
        "broker-1 to broker-3: bandwidth 0.0001 MB/s",
        {"topic": LEADER_1},
    ),
    Question(
        "Why did the log begin later? The broker looks every so often",
        retained,
        "change broker-1/t-0/log_start_offset if new > 0",
        ("Upkeep.apply_retention",),
        "broker-1 starts again",
        {
            "brokers": 1,
            "topic": {"assignment": {0: [1]}},
            "config": {"log.retention.check.interval.ms": 5000},
        },
        never=("checkpoint", "shrink_isrs"),
    ),
    Question(
        "Why did the follower ask the dead leader again? Its back-off was over",
        killed_leader,
        "last kind == drop and actor == 'fetcher-3-from-2' and type == 'FetchRequest'",
        ("FetchRequest", "ReplicaFetcher"),
        "broker-2 is killed",
    ),
    Question(
        "Why was the controller told of the smaller ISR only then? Before KIP-497 it is published",
        told_of_isr,
        "kind == deliver and type == 'WatchEvent' and path == '/isr_change_notification'",
        ("WatchEvent", "replica 3 of t-0 has been behind", "(paused)"),
        "broker-3",
        {"version": "1.1"},
    ),
    # -- ZooKeeper ---------------------------------------------------------------------------
    Question(
        "Why did the session expire? Its pings were slow",
        slow_session,
        "kind == expire and actor == 'zk-1'",
        ("controller-2 expires",),
        "broker-2 to zk-1: latency 60000 ms",
        {"config": BRIEF},
    ),
    Question(
        "Why did the session expire? Its pings were lost",
        lost_session,
        "kind == expire and actor == 'zk-1'",
        ("controller-2 expires",),
        "broker-2 to zk-1: messages are lost with probability 1",
        {"config": BRIEF},
    ),
    Question(
        "Why has ZooKeeper another leader? The server that led was not heard",
        lost_quorum,
        "last kind == expire and actor in ('zk-1', 'zk-2') and peer == 'zk-3'",
        ("waited", "for zk-3, which was cut off"),
        "partition [['zk-3']",
        {"zookeepers": 3},
    ),
    # -- groups and transactions -------------------------------------------------------------
    Question(
        "Why was the member removed? Its heartbeats were slow",
        group_of_two(slow_member, 60_000),
        "kind == expire",
        ("of group g has not been heard of for 45000 ms",),
        "member-b to broker-1: latency 120000 ms",
    ),
    Question(
        "Why did the rebalance end without the member? It did not come in time",
        group_of_two(missed_rebalance, 20_000, rebalance_timeout_ms=6000),
        "last kind == deliver and actor == 'member-c' and type == 'JoinGroupResponse'",
        ("JoinGroupResponse", "waited 6.0 s for member-b, which was cut off"),
        "partition [['member-b']",
    ),
    Question(
        "Why was the first member answered only after three seconds?",
        first_member,
        "change broker-1/groups/g/state if new == 'CompletingRebalance'",
        ("_wait_for_joins", "JoinGroupRequest"),
        "",
    ),
    Question(
        "Why was the transaction aborted? Its producer was slow",
        open_transaction(slow_application, 40_000),
        "change broker-*/transaction/app if new == 'PrepareAbort'",
        ("has been open for more than 8000 ms",),
        "latency 120000 ms",
    ),
    Question(
        "Why were the markers of the transaction sent again? The leader was paused",
        open_transaction(lambda s: s.broker(3).pause(), 60_000),
        "last kind == send and type == 'WriteTxnMarkersRequest' and t < 42",
        ("WriteTxnMarkersRequest", "waited 30.0 s for broker-3, which was paused", "(paused)"),
        "broker-3",
        {"topic": LEADER_3, "config": {**PATIENT, "replica.lag.time.max.ms": 2000}},
    ),
    # -- the controller ----------------------------------------------------------------------
    Question(
        "Why was the record stored? Somebody had made the topic while there was no controller",
        made_without_controller,
        "kind == client_ok and actor == 'shop'",
        ("LeaderAndIsrRequest", "path=/brokers/topics/late", "broker-1 is killed"),
        "broker-1 is killed",
        {"config": BRIEF},
    ),
    Question(
        "Why has the new topic a leader? Somebody had made it while there was no controller",
        made_without_controller,
        "change broker-2/late-0/role if new == 'leader'",
        ("LeaderAndIsrRequest", "path=/brokers/topics/late", "expires"),
        "broker-1 is killed",
        {"config": BRIEF},
    ),
    Question(
        "Why did the leadership go back? The controller looks every five minutes",
        led_back,
        "last change broker-2/t-0/role if new == 'leader'",
        ("LeaderAndIsrRequest", "Rebalance._on_timer"),
        "",
        {"config": BRIEF},
        never=("LeaderImbalance.stop",),
    ),
    # -- clients -----------------------------------------------------------------------------
    Question(
        "Why was the record sent only then? The producer lingered",
        lingering,
        "last kind == deliver and actor == 'broker-2' and type == 'ProduceRequest'",
        ("ProduceRequest",),
        "client_invoke",
        never=("UpdateMetadata", "LeaderAndIsr"),
    ),
)


@functools.cache
def _trace_of(number: int) -> Trace:
    question = QUESTIONS[number]
    return recorded(question.act, **(question.options or {}))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(QUESTIONS)), ids=[q.text for q in QUESTIONS])
def test_the_answer_names_who_waited_for_whom_and_why(number: int) -> None:
    """In order, in few lines, each before the one above it, and nothing that is not part of it."""
    question = QUESTIONS[number]
    chain = _trace_of(number).why(question.at)
    told = "\n".join(format_event(event) for event in chain)
    at = 0
    for name in question.names:
        at = told.find(name, at)
        assert at >= 0, f"{name!r} does not come next in\n{told}"
    assert question.root in told.splitlines()[-1], told
    for name in question.never:
        assert name not in told, told
    assert chain[-1].kind in ROOT_KINDS
    assert [event.seq for event in chain] == sorted((e.seq for e in chain), reverse=True)
    assert len(chain) <= 14, told


def test_thirty_are_asked() -> None:
    """Each once."""
    assert len({question.text for question in QUESTIONS}) == len(QUESTIONS) >= 30
