"""Questions about timeouts: who waited, for whom, and why the wait failed.

The answers to the first 36 questions and to those behind "a third time" were written down before
the tool was run, by reasoning from the scenario. Those behind "once more" were judged by a person
who had seen the tool's. ``names`` come one after the other in the chain of causes, the latest
first; ``root`` is in its last line.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fakekafka
import pytest
from fakekafka import Simulation, Trace
from fakekafka.actors.network.costs import Costs
from fakekafka.exploration.history import Play, drawn_steps
from fakekafka.exploration.targets.cluster import LoadedCluster
from fakekafka.protocol.admin import CreateTopicsRequest, ElectLeadersRequest, NewTopic
from fakekafka.protocol.awaiting import RequestTimeout
from fakekafka.protocol.data import DeleteRecordsRequest, ProducePartition, ProduceRequest
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.security.delegation_tokens import CreateDelegationTokenRequest
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.one_transaction import write_in_transaction
from fakekafka.tracing.events import ROOT_KINDS
from fakekafka.tracing.text import format_event

LEADER_2 = {"assignment": {0: [2, 3]}}
LEADER_3 = {"assignment": {0: [3, 2]}}
LEADER_1 = {"assignment": {0: [1, 2, 3]}}
PATIENT = {"zookeeper.session.timeout.ms": 90_000}
"""Configuration in which sessions outlast the faults in question."""

Act = Callable[[Simulation], object]


def recorded(
    act: Act,
    *,
    brokers: int = 3,
    version: str = "3.9",
    topic: Mapping[str, Any] | None = LEADER_2,
    config: Mapping[str, Any] = PATIENT,
    zookeepers: int = 1,
    costs: Costs | None = None,
) -> Trace:
    """Return the trace of a run. With one ZooKeeper server broker 1 is the controller."""
    topics = {} if topic is None else {"t": topic}
    with Simulation(
        brokers,
        seed=1,
        kafka_version=version,
        config=config,
        topics=topics,
        zookeepers=zookeepers,
        costs=costs,
    ) as simulation:
        act(simulation)
        return simulation.trace()


def shop_meets(fault: Act, for_ms: float = 8000, **settings: Any) -> Act:
    """Return a run in which a fault of leader 2 precedes the producer's second record."""

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
    """Hold all messages of the producer "shop"."""

    def from_shop(delivery: Any) -> bool:
        return bool(delivery.sender.name == "shop")

    simulation.network.hold(from_shop)


def record_100(simulation: Simulation) -> None:
    """Acknowledge 99 records, then pause both followers and send another."""
    shop = simulation.producer("shop", acks="all", request_timeout_ms=9000)
    for _ in range(99):
        shop.produce(("t", 0), b"v")
        simulation.run_for(20)
    simulation.broker(2).pause()
    simulation.broker(3).pause()
    simulation.run_for(200)
    ask_produce(simulation, 4000)


def ask_produce(simulation: Simulation, timeout_ms: int) -> None:
    """Send a produce request with its own timeout, shorter than the client's."""
    partition = ProducePartition(
        TopicPartition("t", 0), build_batch([Record(0, 0, None, b"hundred", ())])
    )
    simulation.ask(1, ProduceRequest(-1, timeout_ms, (partition,)))


def waits_in_turn(simulation: Simulation) -> None:
    """Time out a producer together with its leader, which waits for paused followers."""
    shop = simulation.producer("shop", acks="all", request_timeout_ms=5000)
    shop.produce(("t", 0), b"first")
    simulation.run_for(1000)
    simulation.broker(2).pause()
    simulation.broker(3).pause()
    simulation.run_for(500)
    shop.produce(("t", 0), b"second")
    simulation.run_for(8000)


def patient_deletion(simulation: Simulation) -> None:
    """Delete records while one of three replicas is paused."""
    for _ in range(5):
        simulation.produce("t", b"v")
    simulation.broker(3).pause()
    simulation.run_for(100)
    request = DeleteRecordsRequest(6000, ((TopicPartition("t", 0), 3),))
    simulation.ask(1, request)


def two_readers(simulation: Simulation) -> None:
    """Let two consumers poll an empty partition, both answered by the broker's timer."""
    simulation.consumer([("t", 0)], name="reader-a")
    simulation.run_for(130)
    simulation.consumer([("t", 0)], name="reader-b")
    simulation.run_for(3000)


def slow_copy(simulation: Simulation) -> None:
    """Let broker 3 copy a record over a link with 30 s of latency."""
    simulation.produce("t", b"v")
    simulation.network.latency(30_000, source=1, target=3)
    simulation.produce("t", b"w", acks=1)
    simulation.run_for(60_000)


def narrow_copy(simulation: Simulation) -> None:
    """Let broker 3 copy a large record over a link of 100 bytes per second."""
    simulation.produce("t", b"v")
    simulation.network.bandwidth(0.0001, source=1, target=3)
    simulation.produce("t", b"w" * 50_000, acks=1)
    simulation.run_for(60_000)


def slow_session(simulation: Simulation) -> None:
    """Delay the pings of broker 2 to ZooKeeper by a minute."""
    simulation.run_for(3000)
    simulation.network.latency(60_000, source=2, target="zk-1")
    simulation.run_for(40_000)


def lost_session(simulation: Simulation) -> None:
    """Lose the pings of broker 2 to ZooKeeper."""
    simulation.run_for(3000)
    simulation.network.drop(1.0, source=2, target="zk-1")
    simulation.run_for(40_000)


def leader_elected_while_paused(simulation: Simulation) -> None:
    """Create a topic with leader 3 while broker 3 is paused."""
    simulation.run_for(1000)
    simulation.broker(3).pause()
    simulation.run_for(500)
    simulation.producer("maker", request_timeout_ms=5000)  # a second user of timers
    simulation.zookeeper.create("/brokers/topics/late", '{"version":1,"partitions":{"0":[3,1]}}')
    simulation.run_for(45_000)


def paused_leader(simulation: Simulation) -> None:
    """Pause leader 2 for longer than the fetch timeout of follower 3."""
    simulation.produce("t", b"v")
    simulation.run_for(2000)
    simulation.broker(2).pause()
    simulation.run_for(40_000)


def killed_leader(simulation: Simulation) -> None:
    """Kill leader 2, whose session lasts, so that follower 3 retries."""
    simulation.produce("t", b"v")
    simulation.run_for(2000)
    simulation.broker(2).kill()
    simulation.run_for(10_000)


def retained(simulation: Simulation) -> None:
    """Restart a broker, which later deletes an expired segment."""
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
    """Return a run in which a fault meets a stable group of two members."""

    def act(simulation: Simulation) -> None:
        for name in ("member-a", "member-b"):
            simulation.group_consumer("g", ["t"], name=name, **settings)
        simulation.run_for(12_000)
        fault(simulation)
        simulation.run_for(for_ms)

    return act


def slow(client: str) -> Act:
    """Delay everything that a client sends to brokers by two minutes."""

    def act(simulation: Simulation) -> None:
        for broker in (1, 2, 3):
            simulation.network.latency(120_000, source=client, target=broker)

    return act


def missed_rebalance(simulation: Simulation) -> None:
    """Isolate one member while another joins."""
    simulation.network.isolate("member-b")
    simulation.group_consumer("g", ["t"], name="member-c", rebalance_timeout_ms=6000)


def open_transaction(fault: Act, for_ms: float) -> Act:
    """Return a run in which a fault meets an open transaction with a record."""

    def act(simulation: Simulation) -> None:
        application = simulation.transactional_producer(
            "app", name="app", transaction_timeout_ms=8000
        )
        application.start_task(write_in_transaction(application, ("t", 0), b"a"))
        simulation.run_for(3000)
        fault(simulation)
        simulation.run_for(for_ms)

    return act


def made_without_controller(simulation: Simulation) -> None:
    """Kill the controller, create a topic, and wait for the next controller."""
    simulation.run_for(1000)
    simulation.broker(1).kill()
    simulation.run_for(1000)
    simulation.zookeeper.create("/brokers/topics/late", '{"version":1,"partitions":{"0":[2,3]}}')
    simulation.producer("shop").produce(("late", 0), b"v")
    simulation.run_for(40_000)


def preferred_leader_returns(simulation: Simulation) -> None:
    """Kill the preferred leader, restart it, and wait until it leads again."""
    simulation.run_for(1000)
    simulation.broker(2).kill()
    simulation.run_until(lambda: simulation.partition("t", 0).leader == 3, 60_000)
    simulation.broker(2).start()
    simulation.run_until(lambda: simulation.partition("t", 0).leader == 2, 600_000)
    simulation.run_for(1000)


def smaller_isr(for_ms: float, fault: Act | None = None) -> Act:
    """Return a run in which a follower is paused and its leader reports a smaller ISR."""

    def act(simulation: Simulation) -> None:
        simulation.produce("t", b"v")
        simulation.run_for(2000)
        if fault is not None:
            fault(simulation)
        simulation.broker(3).pause()
        simulation.produce("t", b"w", acks=1)
        simulation.run_for(for_ms)

    return act


def lingering(simulation: Simulation) -> None:
    """Produce with a linger time."""
    shop = simulation.producer("shop", acks=1, linger_ms=400)
    shop.produce(("t", 0), b"v")
    simulation.run_for(3000)
    shop.produce(("t", 0), b"w")
    simulation.run_for(3000)


def unread_leader(simulation: Simulation) -> None:
    """Pause the leader of a consumer."""
    simulation.produce("t", b"v")
    simulation.consumer([("t", 0)], name="reader", request_timeout_ms=6000)
    simulation.run_for(3000)
    simulation.broker(2).pause()
    simulation.run_for(8000)


def first_member(simulation: Simulation) -> None:
    """Wait for a group's first rebalance, which is delayed for further members."""
    simulation.group_consumer("g", ["t"], name="member-a")
    simulation.run_for(8000)


def lost_quorum(simulation: Simulation) -> None:
    """Isolate the leader of the ZooKeeper ensemble."""
    simulation.run_for(3000)
    simulation.network.isolate("zk-3")
    simulation.run_for(60_000)


def request_to_a_paused_broker(simulation: Simulation) -> None:
    """Send an administrative request to a paused broker."""
    simulation.run_for(1000)
    simulation.broker(3).pause()
    simulation.run_for(1000)
    with pytest.raises(RequestTimeout):
        simulation.ask(3, ElectLeadersRequest(0, (TopicPartition("t", 0),)), timeout_s=7)


def leader_dies_during_a_request(simulation: Simulation) -> None:
    """Kill a leader that does not answer, before the producer's request times out."""
    shop = simulation.producer("shop", acks=1)
    shop.produce(("t", 0), b"a")
    simulation.run_for(1000)
    simulation.broker(2).pause()
    simulation.run_for(500)
    shop.produce(("t", 0), b"b")
    simulation.run_for(500)
    simulation.broker(2).kill()
    simulation.run_for(500)


def lost_server(simulation: Simulation) -> None:
    """Kill the ZooKeeper server of the controller's session."""
    simulation.run_for(3000)
    simulation.zookeeper.server(1).kill()
    simulation.run_for(5000)


def isolated_server(simulation: Simulation) -> None:
    """Isolate the leader of the ZooKeeper ensemble and observe the others."""
    simulation.run_for(3000)
    simulation.network.isolate("zk-3")
    simulation.run_for(30_000)


def sent_to_the_dead(simulation: Simulation) -> None:
    """Send a record to a dead leader without successor."""
    shop = simulation.producer("shop", acks=1)
    shop.produce(("t", 0), b"a")
    simulation.run_for(1000)
    simulation.broker(2).kill()
    simulation.run_for(5000)
    shop.produce(("t", 0), b"b")
    simulation.run_for(3000)


def read_from_the_dead(simulation: Simulation) -> None:
    """Kill a consumer's leader, whose session lasts."""
    simulation.produce("t", b"v")
    simulation.consumer([("t", 0)], name="reader")
    simulation.run_for(2000)
    simulation.broker(2).kill()
    simulation.run_for(3000)


def first_record(simulation: Simulation) -> None:
    """Start the first idempotent producer on a broker without a block of producer ids."""
    simulation.producer("shop").produce(("t", 0), b"a")
    simulation.run_for(3000)


def delayed_by_hand(simulation: Simulation) -> None:
    """Delay a broker's response by an injection."""
    shop = simulation.producer("shop", acks=1)
    shop.produce(("t", 0), b"a")
    simulation.run_for(1000)
    simulation.inject("Produce", delay_ms=700)
    shop.produce(("t", 0), b"b")
    simulation.run_for(3000)


def members_isolated_before_sync(simulation: Simulation) -> None:
    """Isolate both members between joining and SyncGroup."""
    for name in ("member-a", "member-b"):
        simulation.group_consumer("g", ["t"], name=name, rebalance_timeout_ms=6000)
    simulation.run_for(1500)
    simulation.run_until(lambda: simulation.group("g").state == "CompletingRebalance", 20_000)
    simulation.network.isolate("member-a")
    simulation.network.isolate("member-b")
    simulation.run_for(30_000)


def only_member_isolated(simulation: Simulation) -> None:
    """Isolate a group's only member, whose offsets expire after a minute."""
    simulation.group_consumer("g", ["t"], name="member-a")
    simulation.run_for(8000)
    simulation.produce("t", b"a")
    simulation.run_for(8000)
    simulation.network.isolate("member-a")
    simulation.run_for(360_000)


def newer_group(simulation: Simulation) -> None:
    """Isolate one of two members of a consumer-protocol group."""
    for name in ("member-a", "member-b"):
        simulation.group_consumer("g", ["t"], name=name, group_protocol="consumer")
    simulation.run_for(9000)
    simulation.network.isolate("member-b")
    simulation.run_for(60_000)


def committed_once(simulation: Simulation) -> None:
    """Commit a transaction and keep the application idle for minutes."""
    application = simulation.transactional_producer("app", name="app")
    application.start_task(write_in_transaction(application, ("t", 0), b"a", commit=True))
    simulation.run_for(210_000)


def shut_down_in_vain(simulation: Simulation) -> None:
    """Shut a broker down while the controller is paused."""
    simulation.run_for(1000)
    simulation.broker(1).pause()
    simulation.run_for(100)
    simulation.broker(2).begin_shutdown()
    simulation.run_for(60_000)


def topic_on_a_dead_broker(simulation: Simulation) -> None:
    """Create a topic whose only replica is on a dead broker."""
    simulation.broker(3).kill()
    simulation.run_for(30_000)
    topic = NewTopic("lonely", -1, -1, ((0, (3,)),))
    simulation.ask(1, CreateTopicsRequest((topic,), 3000))


def id_not_used(simulation: Simulation) -> None:
    """Hold the join of a member that was given its id, while a third member joins."""
    simulation.group_consumer("g", ["t"], name="member-a")
    simulation.run_for(12_000)

    def with_its_id(delivery: Any) -> bool:
        message = delivery.message
        return (
            delivery.sender.name == "member-b"
            and type(message).__name__ == "JoinGroupRequest"
            and bool(message.member_id)
        )

    simulation.network.hold(with_its_id)
    simulation.group_consumer("g", ["t"], name="member-b", session_timeout_ms=10_000)
    simulation.run_for(2000)
    simulation.group_consumer("g", ["t"], name="member-c")
    simulation.run_for(30_000)


def producer_without_metadata(simulation: Simulation) -> None:
    """Isolate a producer from the beginning, so that it never gets metadata."""
    shop = simulation.producer("shop", max_block_ms=3000)
    simulation.network.isolate("shop")
    shop.produce(("t", 0), b"v")
    simulation.run_for(8000)


def election_without(sender: str, *kept: str) -> Act:
    """Return a run that kills the ZooKeeper leader while another server's messages are held."""

    def act(simulation: Simulation) -> None:
        simulation.run_for(3000)

        def is_kept(delivery: Any) -> bool:
            return delivery.sender.name == sender and type(delivery.message).__name__ in kept

        simulation.network.hold(is_kept)
        simulation.zookeeper.server(3).kill()
        simulation.run_for(60_000)

    return act


def token_runs_out(simulation: Simulation) -> None:
    """Create a delegation token that is never renewed."""
    broker = simulation.processes[2].broker
    assert broker is not None
    request = CreateDelegationTokenRequest(())
    broker.start_task(broker.security.tokens.create(request, "User:alice"))
    simulation.run_for(80_000)


def busy_link(simulation: Simulation) -> None:
    """Send a record behind a large one over the client's narrow link."""
    shop = simulation.producer("shop", acks=1)
    shop.produce(("t", 0), b"v")
    simulation.run_for(2000)
    shop.produce(("t", 0), b"v" * 200_000)
    shop.produce(("t", 0), b"w")
    simulation.run_for(8000)


@dataclass(frozen=True)
class Question:
    """A question about an event of a run, and what the answer must contain."""

    text: str
    act: Act
    at: str
    names: tuple[str, ...]
    root: str
    options: Mapping[str, Any] | None = None
    never: tuple[str, ...] = ()
    """Texts that are unrelated and must not appear in the answer."""


AT_RETRY = "kind == client_retry"
BRIEF = {"zookeeper.session.timeout.ms": 12_000}
SHORT_LAG = {**PATIENT, "replica.lag.time.max.ms": 2000}
NEWER_GROUPS = {**PATIENT, "group.coordinator.rebalance.protocols": "classic,consumer"}

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
        request_to_a_paused_broker,
        "last kind == expire",
        ("waited 7.0 s for broker-3, which was paused", "(paused)"),
        "broker-3",
    ),
    Question(
        "Why did the controller tell the broker again?",
        leader_elected_while_paused,
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
        smaller_isr(36_500, lambda s: s.broker(1).pause()),
        "last kind == send and type == 'AlterIsrRequest'",
        ("AlterIsrRequest", "which was paused", "(paused)"),
        "broker-1",
        {"config": SHORT_LAG},
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
        smaller_isr(60_000),
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
        group_of_two(slow("member-b"), 60_000),
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
        ("joining_ended", "JoinGroupRequest"),
        "",
    ),
    Question(
        "Why was the transaction aborted? Its producer was slow",
        open_transaction(slow("app"), 40_000),
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
        preferred_leader_returns,
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
    # -- who was tried again, once more ------------------------------------------
    Question(
        "Why did the producer send again? Its leader died while it waited",
        leader_dies_during_a_request,
        AT_RETRY,
        ("client_retry", "broker-2 is killed"),
        "broker-2 is killed",
    ),
    Question(
        "Why was the record sent again? Nobody listens at its leader any more",
        sent_to_the_dead,
        "last kind == client_retry",
        ("client_retry", "broker-2 is not running"),
        "client_invoke",
        {"topic": {"assignment": {0: [2]}}},
    ),
    Question(
        "Why did the producer ask for metadata again? Its leader is not there",
        sent_to_the_dead,
        "last kind == send and actor == 'shop' and type == 'MetadataRequest'",
        ("MetadataRequest", "broker-2 is not running"),
        "client_invoke",
        {"topic": {"assignment": {0: [2]}}},
    ),
    Question(
        "Why did the reader ask the dead leader again? Its back-off was over",
        read_from_the_dead,
        "last kind == drop and actor == 'reader'",
        ("FetchRequest", "SimulatedConsumer._end_back_off", "broker-2 is not running"),
        "broker-2 is killed",
    ),
    Question(
        "Why did the producer ask for an id again? The broker had no block of them yet",
        first_record,
        "last kind == send and actor == 'shop' and type == 'InitProducerIdRequest'",
        ("InitProducerIdRequest", "SimulatedProducer.on_metadata"),
        "",
        never=("UpdateMetadata",),
    ),
    Question(
        "Why was the record acknowledged so late? Somebody had delayed it by hand",
        delayed_by_hand,
        "kind == client_ok and t > 1",
        ("client_ok", "ProduceRequest", "injected into ProduceRequest"),
        "injected into ProduceRequest",
    ),
    Question(
        "Why were the offsets committed? The consumer does so now and then",
        group_of_two(lambda s: None, 9000),
        "last kind == send and type == 'OffsetCommitRequest'",
        ("OffsetCommitRequest",),
        "offset_commit",
        never=("UpdateMetadata", "LeaderAndIsr"),
    ),
    Question(
        "Why did the member send a heartbeat? It does so since it has joined",
        group_of_two(lambda s: None, 9000),
        "last kind == send and type == 'HeartbeatRequest' and actor == 'member-a'",
        ("HeartbeatRequest", "heartbeat", "join_group"),
        "",
        never=("UpdateMetadata", "LeaderAndIsr", "member-b"),
    ),
    Question(
        "Why did the broker ask to shut down again? The controller was paused",
        shut_down_in_vain,
        "last kind == send and type == 'ControlledShutdownRequest'",
        ("ControlledShutdownRequest", "waited 30.0 s for broker-1, which was paused"),
        "broker-1",
    ),
    Question(
        "Why did the leader ask the dead controller? It has an ISR to propose",
        smaller_isr(20_000, lambda s: s.broker(1).kill()),
        "last kind == drop and type == 'AlterIsrRequest'",
        ("AlterIsrRequest", "not running", "replica 3 of t-0 has been behind", "(paused)"),
        "broker-3",
        {"config": SHORT_LAG},
    ),
    Question(
        "Why did the leader propose the ISR again so soon? It was told an error",
        smaller_isr(20_000, lambda s: s.inject("AlterIsr", "UNKNOWN_SERVER_ERROR")),
        "last kind == send and type == 'AlterIsrRequest'",
        ("AlterIsrRequest", "_retry", "UNKNOWN_SERVER_ERROR"),
        "injected into AlterIsrRequest",
        {"config": SHORT_LAG},
    ),
    # -- ZooKeeper, once more --------------------------------------------------------------------
    Question(
        "Why did the controller connect to another ZooKeeper server?",
        lost_server,
        "last kind == send and type == 'ConnectRequest' and actor == 'controller-1'",
        ("ConnectRequest", "ZooKeeperClient._connect", "zk-1 is killed"),
        "zk-1 is killed",
        {"zookeepers": 3},
    ),
    Question(
        "Why did the ZooKeeper client send a ping? It was quiet for a while",
        lambda s: s.run_for(15_000),
        "last kind == send and actor == 'controller-2' and type == 'Ping'",
        ("Ping", "ZooKeeperClient._heartbeat"),
        "",
        {"zookeepers": 3},
        never=("FetchRequest",),
    ),
    Question(
        "Why did the leading ZooKeeper server ping the others? It does so as long as it leads",
        lambda s: s.run_for(15_000),
        "last kind == send and actor == 'zk-3' and type == 'LeaderPing'",
        ("LeaderPing", "Leading._ping"),
        "",
        {"zookeepers": 3},
        never=("FetchRequest", "controller"),
    ),
    Question(
        "Why does the server that was cut off vote again? Nobody answers it",
        isolated_server,
        "last kind == send and type == 'Notification' and actor == 'zk-3'",
        ("Notification", "_resend", "waited", "for zk-1 and zk-2, which were cut off"),
        "partition [['zk-3']",
        {"zookeepers": 3},
    ),
    # -- groups and transactions, once more -------------------------------------------------------
    Question(
        "Why was the generation given up? Its members did not ask for their assignments",
        members_isolated_before_sync,
        "last kind == expire and actor == 'broker-1'",
        ("waited 6.0 s for member-a and member-b, which were cut off",),
        "partition [['member-a']",
        never=("LeaderAndIsr",),
    ),
    Question(
        "Why was the member of the newer group removed? It was cut off",
        newer_group,
        "last kind == expire and actor == 'broker-1'",
        ("waited 45.0 s for member-b, which was cut off",),
        "partition [['member-b']",
        {"config": NEWER_GROUPS},
        never=("LeaderAndIsr",),
    ),
    Question(
        "Why did the member of the newer group send a heartbeat?",
        newer_group,
        "last kind == send and type == 'ConsumerGroupHeartbeatRequest' and t < 9",
        ("ConsumerGroupHeartbeatRequest", "heartbeat"),
        "",
        {"config": NEWER_GROUPS},
        never=("UpdateMetadata", "LeaderAndIsr"),
    ),
    Question(
        "Why is the group gone? Its offsets were kept long enough; the broker looks every so often",
        only_member_isolated,
        "last change broker-1/groups/g/state",
        ("GroupStore._expire",),
        "",
        {
            "config": {
                **PATIENT,
                "offsets.retention.minutes": 1,
                "offsets.retention.check.interval.ms": 20_000,
            }
        },
        never=("checkpoint", "Upkeep"),
    ),
    Question(
        "Why was the transactional id forgotten? Nobody had used it; the broker looks now and then",
        committed_once,
        "last change broker-*/transaction/app",
        ("TransactionStateManager.expire",),
        "init_transactions",
        {
            "config": {
                **PATIENT,
                "transactional.id.expiration.ms": 60_000,
                "transaction.remove.expired.transaction.cleanup.interval.ms": 20_000,
            }
        },
        never=("abort_timed_out",),
    ),
    # -- administration, groups, clients and ZooKeeper, a third time ------------------------------
    Question(
        "Why did the creation of the topic time out? Its only replica is on a dead broker",
        topic_on_a_dead_broker,
        "last kind == send and type == 'CreateTopicsResponse'",
        ("CreateTopicsResponse", "waited 3.0 s for broker-3, which was off"),
        "broker-3 is killed",
        {"config": BRIEF},
    ),
    Question(
        "Why was the third member answered only then? A member id was given out and not used",
        id_not_used,
        "last kind == deliver and actor == 'member-c' and type == 'JoinGroupResponse'",
        ("JoinGroupResponse", "of group g has not been heard of for 10000 ms"),
        "held back",
        never=("LeaderAndIsr",),
    ),
    Question(
        "Why did the producer give up? Nobody had ever told it of the partition",
        producer_without_metadata,
        "kind == client_fail",
        ("client_fail", "waited 3.0 s for broker-1, which was cut off"),
        "partition [['shop']",
    ),
    Question(
        "Why did the ZooKeeper server vote again? The server it follows never took it in",
        election_without("zk-1", "FollowerInfo"),
        "kind == expire and actor == 'zk-1' and t > 4",
        ("waited", "for zk-2, whose messages were held back"),
        "held back",
        {"zookeepers": 3},
    ),
    Question(
        "Why did the ZooKeeper server vote again? Its leader never brought it up to date",
        election_without("zk-2", "SyncFollower", "NewLeader", "LinkClosed"),
        "kind == expire and actor == 'zk-1' and t > 4",
        ("waited 20.0 s for zk-2, whose messages were held back",),
        "held back",
        {"zookeepers": 3},
    ),
    Question(
        "Why did the elected ZooKeeper server vote again? No quorum came to follow it",
        election_without("zk-1", "FollowerInfo"),
        "kind == expire and actor == 'zk-2' and t > 4",
        ("waited 20.0 s for zk-1, whose messages were held back, and zk-3, which was off",),
        "held back",
        {"zookeepers": 3},
    ),
    Question(
        "Why is the delegation token gone? It ran out; the controller looks every so often",
        token_runs_out,
        "last kind == deliver and type == 'WatchEvent' and "
        "path == '/delegation_token/token_changes'",
        ("WatchEvent", "DelegationTokens._check_expired"),
        "",
        {
            "config": {
                **PATIENT,
                "delegation.token.secret.key": "key",
                "delegation.token.expiry.time.ms": 30_000,
                "delegation.token.expiry.check.interval.ms": 10_000,
            }
        },
        never=("Upkeep", "checkpoint"),
    ),
    Question(
        "Why did the second record come so late? The first was still leaving",
        busy_link,
        "last kind == deliver and actor == 'broker-2' and type == 'ProduceRequest'",
        ("ProduceRequest",),
        "client_invoke",
        {"costs": Costs(link_mb_per_s=0.1)},
        never=("UpdateMetadata", "LeaderAndIsr"),
    ),
)


@functools.cache
def _trace_of(number: int) -> Trace:
    question = QUESTIONS[number]
    return recorded(question.act, **(question.options or {}))


@pytest.mark.parametrize("number", range(len(QUESTIONS)), ids=[q.text for q in QUESTIONS])
def test_an_answer_has_the_expected_causes_in_order(number: int) -> None:
    """An answer has the expected causes in order, in few lines, each earlier than the line above,
    and nothing unrelated.
    """
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


def test_thirty_different_questions_are_asked() -> None:
    """Every question is asked only once."""
    assert len({question.text for question in QUESTIONS}) == len(QUESTIONS) >= 30


ASKED = {
    "AlterIsrManager._retry": "Why did the leader propose the ISR again so soon?",
    "ConsumerGroupStore.start_timer": "Why was the member of the newer group removed?",
    "DelayedFetch": "Why was the second reader answered?",
    "DelegationTokens._check_expired": "Why is the delegation token gone?",
    "FastLeaderElection._resend": "Why does the server that was cut off vote again?",
    "FollowerFetch": "Why was the follower answered?",
    "Following._check_leader": "Why has ZooKeeper another leader?",
    "Following._connect": "Why did the ZooKeeper server vote again? The server it follows",
    "Following._give_up_silent": "Why did the ZooKeeper server vote again? Its leader never",
    "Group.joining_ended": "Why was the first member answered only after three seconds?",
    "Group.member_id_ended": "Why was the third member answered only then?",
    "Group.session_ended": "Why was the member removed?",
    "Group.syncing_ended": "Why was the generation given up?",
    "GroupStore._expire": "Why is the group gone?",
    "Injection.__call__": "Why was the record acknowledged so late?",
    "Leading._ping": "Why did the leading ZooKeeper server ping the others?",
    "Leading.start": "Why did the elected ZooKeeper server vote again?",
    "MarkerChannels._disconnected": "Why were the markers of the transaction sent again?",
    "MarkerChannels._take_turn": "Why were the markers of the transaction sent again?",
    "MetadataWaiters._give_up": "Why did the creation of the topic time out?",
    "Node.peer_lost": "Why did the producer send again? Its leader died while it waited",
    "Port._expire": "Why did the producer send to another broker only then?",
    "Rebalance._on_timer": "Why did the leadership go back?",
    "ReplicaFetcherActor._timer_fired": "Why did the follower ask the dead leader again?",
    "SessionTracker": "Why did the session expire? Its pings were slow",
    "Signal.notify": "Why did the leader ask the dead controller?",
    "SimulatedClient._ask_metadata": "Why did the producer ask for metadata again?",
    "SimulatedConsumer._end_back_off": "Why did the reader ask the dead leader again?",
    "SimulatedGroupConsumer._auto_commit": "Why were the offsets committed?",
    "SimulatedProducer._drain": "Why was the record sent only then?",
    "SimulatedProducer._expire": "Why did the producer give up? Nobody had ever told",
    "SimulatedProducer._reach_deadline": "Why did the producer give up? It waited 20 s for a dead",
    "SimulatedProducer.on_metadata": "Why did the producer ask for an id again?",
    "SimulatedProducer._wake": "Why did the producer send again? Its leader was paused",
    "TransactionCoordinator.abort_timed_out": "Why was the transaction aborted?",
    "TransactionStateManager.expire": "Why was the transactional id forgotten?",
    "Upkeep.apply_retention": "Why did the log begin later?",
    "Upkeep.shrink_isrs": "Why did the ISR shrink? The link was slow",
    "WheelTimer._advance": "Why did the leader propose the ISR again?",
    "ZooKeeperClient._connect": "Why did the controller connect to another ZooKeeper server?",
    "ZooKeeperClient._heartbeat": "Why did the ZooKeeper client send a ping?",
    "ZooKeeperIsrManager._maybe_publish": "Why was the controller told of the smaller ISR",
}
"""Start of the question's text per timer that fires in its run and decides it."""
NOT_ASKED = {
    "ChangeNotifications._run": "waits for nothing: the queue goes on after what is handled",
    "ClosedLoop.answered": "of the load of a scenario",
    "ControllerEventManager._deliver_next": "waits for nothing: the next event has its turn",
    "DynamicConfigManager.topic_config": "waits for nothing: topics are read together",
    "FastLeaderElection._settled": "a fifth of a second for later votes, with every election",
    "GroupStore._run_tasks": "waits for nothing: appends of one moment go together",
    "LogDirs._copy_next": "moves files from disk to disk, of which a trace has no event",
    "OpenLoop._arrive": "of the load of a scenario",
    "TransactionStateManager.load": "waits for nothing: it begins to read the log",
    "TransactionVerifier.verify": "waits for nothing: verifications of one moment go together",
    "Upkeep._checkpoint_by_the_clock": "changes files, of which a trace has no event",
    "Upkeep.checkpoint_high_watermarks": "changes files, of which a trace has no event",
    "Upkeep.clean_logs": "changes files, of which a trace has no event",
    "Upkeep.expire_producer_ids": "forgets producers, of which a trace has no event",
    "Upkeep.flush_dirty_logs": "changes files, of which a trace has no event",
    "Load._send_later": "of the load of the random histories",
    "SessionNode.peer_lost": "tells that a connection broke, as Node.peer_lost does",
    "ZooKeeperActor.peer_lost": "tells that a connection broke, as Node.peer_lost does",
    "ZooKeeperClient._reinitialize": "its credentials were refused, which no simulated server does",
    "_Inbox.put": "waits for nothing: a message by way of Pykka's own proxies",
    "_Traffic._send": "of the load of the command `questions`",
    "delivery.context.arrive": "waits for nothing: what was held for the actor itself is let go",
    "ZooKeeperClient._ask_to_connect": "the next try of ZooKeeperClient._connect",
    "ZooKeeperClient.close": "the patience of a broker that starts without ZooKeeper, and ends",
}
"""Reason per timer that needs no question."""
SET_OTHERWISE = {
    "SessionNode.peer_lost",  # Node.peer_lost of a node with a ZooKeeper session
    "DelayedFetch",  # an entry of the timing wheel, as the next
    "FollowerFetch",
    "Group.joining_ended",  # named by the time of a group that ends, as the next
    "Group.member_id_ended",
    "Group.session_ended",
    "Group.syncing_ended",
    "TransactionCoordinator.abort_timed_out",  # served by one scan, as the next
    "TransactionStateManager.expire",
    "Load._send_later",  # set by a test
    "ZooKeeperActor.peer_lost",
}
SHOWN_AS = {
    "Network._break_connections": "Node.peer_lost",
    "SessionTracker._tick": "SessionTracker",
    "client.close": "ZooKeeperClient.close",
    "self._wake.notify": "Signal.notify",
    "signal.notify": "Signal.notify",
}


SETTERS = {
    "call_later",
    "call_later_ms",
    "call_later_by_runtime_clock",
    "set_shared_timer",
    "set_shared_timer_ms",
    "_call_later_ms",
}
HELPERS = {
    "GroupStore._set_timer": "named by what its end is to the group",
    "OneTimer.set": "ZooKeeper's roles and clients give it what it shall call",
    "Periodic._fire": "named by its work",
    "Runtime.call_later_by_runtime_clock": "named by its callback",
    "Runtime.set_shared_timer": "named by its entries",
    "Upkeep._every": "named by its task",
}
LIVE_ONLY = {
    "live.py",
    "real_time.py",
    "threaded.py",
    "virtual.py",
    "interfaces.py",
    "causes.py",
    "node.py",
}
"""Files of the runtimes, which pass on the timers they are given, and those without a trace."""


def timers_set_in(tree: ast.Module) -> Iterator[str]:
    """Return the names, as a recorded run shows them, of the timers that a file sets. A timer of no
    node is no event: it only delays the delivery of something under way.
    """

    def walk(node: ast.AST, within: tuple[str, ...]) -> Iterator[str]:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            within = (*within, node.name)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, within)
        if isinstance(node, ast.Call):
            yield from named(node, within)

    def named(call: ast.Call, within: tuple[str, ...]) -> Iterator[str]:
        function = call.func
        setter = getattr(function, "attr", getattr(function, "id", ""))
        owner = ast.unparse(getattr(function, "value", function))
        is_one_timer = setter == "set" and owner == "self._timer"
        if setter in SETTERS or is_one_timer or setter == "_every":
            callback = call.args[2 if setter == "_every" else -1]
            if not (isinstance(call.args[0], ast.Constant) and call.args[0].value is None):
                yield callback_name(callback, within)

    def callback_name(callback: ast.expr, within: tuple[str, ...]) -> str:
        method = ".".join(within[:2])
        if isinstance(callback, ast.Call):  # functools.partial
            callback = callback.args[0]
        if isinstance(callback, ast.Attribute) and ast.unparse(callback.value) == "self":
            return f"{within[0]}.{callback.attr}"
        return method if isinstance(callback, (ast.Lambda, ast.Name)) else ast.unparse(callback)

    yield from walk(tree, ())


def test_every_timer_has_a_question_or_a_reason_for_none() -> None:
    """Every timer in the source has a question or a reason why it needs none."""
    root = Path(fakekafka.__file__).parent
    rooms = ("actors", "coordinators", "election", "protocol", "replication", "statemachines")
    found: dict[str, str] = {}
    for room in (*rooms, "scenarios", "testing", "zkfake"):
        for path in sorted((root / room).rglob("*.py")):
            if path.name not in LIVE_ONLY:
                for name in timers_set_in(ast.parse(path.read_text())):
                    found.setdefault(SHOWN_AS.get(name, name), str(path.relative_to(root)))
    told = {*ASKED, *NOT_ASKED, *HELPERS}
    assert {name: path for name, path in found.items() if name not in told} == {}
    assert told - found.keys() == SET_OTHERWISE, "no timer of that name is set anywhere"


def fired_in(trace: Trace) -> set[str]:
    return {str(event.type) for event in trace.events if event.kind == "timer_fire"}


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_there_is_a_question_over_every_timer_that_fires() -> None:
    """Every timer that fires in the questions' runs or in random histories is accounted for."""
    fired = {question.text: fired_in(_trace_of(n)) for n, question in enumerate(QUESTIONS)}
    seen = set().union(*fired.values())
    for version, seed in (("3.9", 4), ("3.9", 5), ("2.8", 2), ("1.1", 1), ("0.10", 3)):
        target = LoadedCluster(version, seed, True)
        Play(target).run(drawn_steps(target, seed))
        seen |= fired_in(target.world.simulation.trace())
        target.world.simulation.stop()
    assert seen - set(ASKED) - set(NOT_ASKED) == set(), "ask about it, or say why not"
    for timer, beginning in ASKED.items():
        (text,) = [text for text in fired if text.startswith(beginning)]
        assert timer in fired[text], f"{timer} does not fire where it is asked about: {text}"
