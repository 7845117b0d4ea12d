"""Stories of lost records, returning leaders, groups and topics, with repeated errors merged."""

from __future__ import annotations

import pytest
from fakekafka import Simulation, Trace
from fakekafka.protocol.data import DeleteRecordsRequest
from fakekafka.protocol.groups import ConsumerGroupHeartbeatRequest
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.one_transaction import write_in_transaction
from fakekafka.tests.support.traces import Scribe, header, produce
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.story.timeline import Story, read_story


def texts(simulation: Simulation) -> list[str]:
    return [text for _, text in read_story(simulation.events).lines]


def produce_slowly(simulation: Simulation, count: int, every_ms: int, acks: int) -> None:
    producer = simulation.producer(acks=acks, enable_idempotence=False)
    for number in range(count):
        producer.produce(("t", 0), b"%d" % number)
        simulation.run_for(every_ms)


@pytest.mark.parametrize("kafka_version", ["0.10", "1.1", "2.8", "3.9"])
def test_acknowledged_records_that_a_leader_loses_are_reported(kafka_version: str) -> None:
    """With acks=1 a returning leader truncates records that its followers had not copied."""
    with Simulation(
        3, seed=1, kafka_version=kafka_version, config={"zookeeper.session.timeout.ms": 6000}
    ) as simulation:
        simulation.create_topic("t", assignment={0: [2, 3]})
        produce_slowly(simulation, 3, 1000, acks=1)
        simulation.network.latency(40, source=2, target=3)
        produce_slowly(simulation, 20, 4, acks=1)
        simulation.broker(2).kill()
        simulation.run_until(lambda: simulation.partition("t", 0).leader == 3, 30_000)
        simulation.network.latency(0)
        produce_slowly(simulation, 2, 500, acks=1)
        simulation.broker(2).start()
        simulation.run_until(lambda: 2 in simulation.partition("t", 0).isr, 60_000)
        told = [text for text in texts(simulation) if text.startswith("broker-2 cuts its log")]
    assert told
    assert "acknowledged batch" in told[0]
    first, last = told[0].partition(" from ")[2].partition(";")[0].split(" to ")
    assert int(first) > int(last)


def test_a_leader_that_restarts_is_reported() -> None:
    """A leader that restarts before its session expires is reported as leading again."""
    with Simulation(1, seed=1) as simulation:
        simulation.create_topic("t", 1, 1)
        simulation.broker(1).kill()
        simulation.run_for(100)
        simulation.broker(1).start()
        simulation.run_for(30_000)
        told = texts(simulation)
    assert told[-2:] == [
        "t-0 has leader 1 again, leader epoch 0, isr [1]: controller-1 has read it from ZooKeeper",
        "broker-1 is now the controller, epoch 2",
    ]
    registered = [text for text in told if "already registered" in text]
    assert len(registered) == 1
    assert "(7 times, the last at " in registered[0]


def test_topics_and_groups_are_reported() -> None:
    with Simulation(1, seed=1) as simulation:
        simulation.create_topic("t", 1, 1)
        consumer = simulation.group_consumer("g", ["t"])
        simulation.run_for(8_000)
        consumer.leave()
        simulation.run_for(3_000)
        simulation.delete_topic("t")
        simulation.run_for(3_000)
        told = texts(simulation)
    wanted = [
        "topic t is made",
        "topic __consumer_offsets is made",
        "group g rebalances at broker-1, 1 member so far",
        "group g is stable in generation 1 with 1 member",
        "group g has no members",
        "topic t is deleted",
    ]
    assert [text for text in told if text in wanted] == wanted


@pytest.mark.parametrize("zookeepers", [1, 3])
def test_a_zookeeper_server_that_is_off_has_deleted_nothing(zookeepers: int) -> None:
    """A ZooKeeper server that restarts and loads its tree again reports no topic as deleted."""
    with Simulation(1, seed=2, zookeepers=zookeepers) as simulation:
        simulation.create_topic("t", 1, 1)
        simulation.run_for(2000)
        simulation.zookeeper.server(zookeepers).kill()
        simulation.run_for(3000)
        simulation.zookeeper.server(zookeepers).start()
        simulation.run_for(10_000)
        told = [text for text in texts(simulation) if text.startswith("topic ")]
    assert told == ["topic t is made"]


def test_a_zookeeper_server_that_lags_reports_no_topic_twice() -> None:
    """Servers that catch up report no topic twice, even if topics were recreated meanwhile."""
    with Simulation(1, seed=2, zookeepers=3) as simulation:
        simulation.create_topic("a", 1, 1)
        simulation.run_for(2000)
        simulation.zookeeper.server(3).kill()
        simulation.run_for(4000)
        simulation.create_topic("b", 1, 1)
        simulation.delete_topic("a")
        simulation.run_for(3000)
        simulation.zookeeper.server(3).start()
        simulation.run_for(10_000)
        simulation.network.isolate("zk-2")
        simulation.run_for(2000)
        simulation.create_topic("a", 1, 1)
        simulation.delete_topic("b")
        simulation.run_for(3000)
        simulation.create_topic("b", 1, 1)
        simulation.run_for(100)
        simulation.network.heal()
        simulation.run_for(10_000)
        told = [text for text in texts(simulation) if text.startswith("topic ")]
    assert told == [
        "topic a is made",
        "topic b is made",
        "topic a is to be deleted",
        "topic a is deleted",
        "topic a is made",
        "topic b is to be deleted",
        "topic b is deleted",
        "topic b is made",
    ]


def test_records_that_are_deleted_on_purpose_are_reported_once() -> None:
    """Deletion by a client and by retention is reported once, not for each replica."""
    config = {"log.retention.check.interval.ms": 5000}
    with Simulation(2, seed=1, config=config) as simulation:
        settings = {"retention.ms": 10_000, "segment.ms": 1000}
        simulation.create_topic("t", assignment={0: [1, 2]}, config=settings)
        for number in range(5):
            simulation.produce("t", b"%d" % number)
        simulation.ask(1, DeleteRecordsRequest(6000, ((TopicPartition("t", 0), 3),)))
        simulation.run_for(60_000)
        told = [text for text in texts(simulation) if "deletes" in text]
    assert told == [
        "broker-1 deletes the records of t-0 from 0 to 3, as a client asked",
        "broker-1 deletes the records of t-0 from 3 to 5, as retention says",
    ]


def test_a_replica_that_is_moved_away_and_back_has_lost_nothing() -> None:
    """A replica moved away and back is reported as deleted, and its empty log as no loss."""
    with Simulation(3, seed=2) as simulation:
        simulation.create_topic("t", assignment={0: [1, 2]})
        simulation.produce("t", b"v")
        for replicas in ([2, 3], [1, 2]):
            simulation.reassign_partitions({("t", 0): replicas})
            simulation.run_for(5000)
        told = texts(simulation)
    assert "broker-1 deletes its replica of t-0, up to 1" in told
    assert not [text for text in told if "comes back" in text or "cuts its log" in text]


def test_a_deleted_topic_is_reported_without_each_of_its_replicas() -> None:
    with Simulation(2, seed=2) as simulation:
        simulation.create_topic("t", 3, 2)
        simulation.run_for(1000)
        simulation.delete_topic("t")
        simulation.run_for(3000)
        told = texts(simulation)
    assert [text for text in told if "topic t" in text][-2:] == [
        "topic t is to be deleted",
        "topic t is deleted",
    ]
    assert not [text for text in told if "replica" in text]


def test_a_group_of_the_consumer_protocol_is_reported() -> None:
    """A group's generation is its epoch; it rebalances until members gave up their partitions."""
    config = {"group.coordinator.rebalance.protocols": "classic,consumer"}

    def heartbeat(member: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            "g", member, epoch, rebalance_timeout_ms=60_000, topics=("t",), owned=()
        )

    with Simulation(1, seed=2, config=config, topics={"t": 2}) as simulation:
        simulation.group_consumer("other", ["t"])  # it makes the coordinator create its topic
        simulation.run_for(5000)
        for member, epoch in (("a", 0), ("b", 0), ("b", -1), ("a", -1)):
            simulation.ask(1, heartbeat(member, epoch))
            simulation.run_for(1000)
        told = [text for text in texts(simulation) if text.startswith("group g ")]
    assert told[0] == "group g is stable in generation 1 with 1 member"
    assert told[1] == "group g rebalances at broker-1 with 2 members"
    assert told[-1] == "group g has no members"


@pytest.mark.parametrize("way", ["kill", "shutdown"])
def test_a_group_that_moves_to_another_coordinator_is_reported(way: str) -> None:
    """A group moves to a new coordinator when its coordinator dies or shuts down."""
    config = {"zookeeper.session.timeout.ms": 6000, "offsets.topic.num.partitions": 1}
    with Simulation(2, seed=2, config=config, topics={"t": 1}) as simulation:
        simulation.group_consumer("g", ["t"])
        simulation.run_for(8000)
        coordinator = simulation.group("g").coordinator
        assert coordinator is not None
        getattr(simulation.broker(coordinator), way)()
        simulation.run_for(15_000)
        told = [text for text in texts(simulation) if text.startswith("group g ")]
    other = 3 - coordinator
    assert told[1:] == [
        "group g is stable in generation 1 with 1 member",
        f"group g is coordinated by broker-{other} now (was broker-{coordinator}): Stable, "
        "1 member",
    ]


def test_a_client_that_has_its_answer_no_longer_waits() -> None:
    """A request of a client that records no operations ends with its response."""
    with Simulation(3, seed=2, topics={"t": 1}) as simulation:
        for number in range(3):
            simulation.produce("t", b"%d" % number)
        simulation.run_for(20_000)
        story = read_story(simulation.events)
    assert not story.open_outages
    assert not story.outages


def test_an_outage_that_ends_when_the_last_client_gives_up_is_reported() -> None:
    with Simulation(1, seed=2, topics={"t": 1}) as simulation:
        shop = simulation.producer("shop", delivery_timeout_ms=8000, request_timeout_ms=5000)
        shop.produce(("t", 0), b"v")
        simulation.run_for(1000)
        simulation.broker(1).kill()
        shop.produce(("t", 0), b"v")
        simulation.run_for(20_000)
        story = read_story(simulation.events)
    assert not story.open_outages
    (told,) = [text for _, text in story.lines if "unavailable" in text]
    assert told == (
        "no client waits for t-0 any longer: unavailable for 7999.5 ms, because broker-1 was killed"
    )


def test_an_unclean_leader_is_reported_as_such() -> None:
    recorder = Recorder()
    decided = recorder.event(0, "state", "controller-4", None, None, None, None)
    for name, value in (("leader", 1), ("leader_epoch", 0), ("isr", (1,))):
        recorder.state(decided, f"controller-4/orders-0/{name}", None, value)
    again = recorder.event(1000, "state", "controller-4", None, None, None, None)
    for name, old, new in (("leader", 1, 2), ("leader_epoch", 0, 1), ("isr", (1,), (2,))):
        recorder.state(again, f"controller-4/orders-0/{name}", old, new)
    assert (
        "orders-0 gets leader 2 (was 1, unclean: not in the isr [1]), leader epoch 1, isr [2], "
        "decided by controller-4"
    ) in [text for _, text in read_story(recorder.events).lines]


def test_an_aborted_transaction_is_reported() -> None:
    """An aborted transaction is reported, whether by the application or by its timeout."""
    with Simulation(1, seed=2, topics={"t": 1}) as simulation:
        application = simulation.transactional_producer(
            "app", name="app", transaction_timeout_ms=3000
        )
        application.start_task(write_in_transaction(application, ("t", 0), b"a"))
        simulation.run_for(30_000)
        told = texts(simulation)
    assert "broker-1 aborts the transaction of app" in told


def test_an_open_outage_lasts_until_the_end_of_the_trace() -> None:
    """An outage that is open at the end lasts until the trace's last event of any kind."""
    recorder = Recorder()
    recorder.event(0, "send", "client", "broker-1", produce(), 1, None)
    recorder.event(9_000_000, "timer_fire", "broker-1", None, "Upkeep", None, None)
    told = Trace(recorder.trace(header())).story()
    assert told == [(9000.0, "orders-0 takes no records at the end: 9000.0 ms so far")]


def test_equal_errors_are_reported_once_with_their_number() -> None:
    recorder = Recorder()
    for number in range(15):
        recorder.event(
            number * 1000, "note", "broker-1", None, None, None, None, "error: disk full"
        )
    recorder.event(20_000, "note", "broker-1", None, None, None, None, "error: another")
    assert read_story(recorder.events).lines == [
        (0.0, "broker-1: error: disk full (15 times, the last at 14.0 ms)"),
        (20.0, "broker-1: error: another"),
    ]


@pytest.mark.parametrize("again", [False, True])
def test_a_leader_read_from_zookeeper_is_reported_only_if_it_is_alive(again: bool) -> None:
    recorder = Recorder()
    scribe = Scribe(recorder)
    scribe.decide(0, "broker-1", (1, 0, (1,)))
    recorder.event(1000, "crash", "broker-1", None, None, None, None, "broker-1 is killed")
    if again:
        recorder.event(2000, "restart", "broker-1", None, None, None, None, "broker-1 starts again")
    read = recorder.event(3000, "state", "controller-4", None, None, None, None)
    for name, value in (("leader", 1), ("leader_epoch", 0), ("isr", (1,))):
        recorder.state(read, f"controller-4/orders-0/{name}", None, value)
    story: Story = read_story(recorder.events)
    told = [text for _, text in story.lines if "again, leader epoch" in text]
    assert told == (
        ["orders-0 has leader 1 again, leader epoch 0, isr [1]: controller-4 has read it from "
         "ZooKeeper"] if again else []
    )  # fmt: skip
