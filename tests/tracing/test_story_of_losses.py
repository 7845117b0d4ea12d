"""The story tells what was thrown away, who leads again, groups, topics, and each error once."""

from __future__ import annotations

import pytest
from fakekafka import Simulation
from fakekafka.tests.support.traces import Scribe
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
def test_acknowledged_records_that_a_leader_loses_are_told(kafka_version: str) -> None:
    """acks=1 and slow followers: the leader dies with records that it alone has, and cuts them
    when it is back."""
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


def test_a_leader_that_comes_back_is_told() -> None:
    """The only broker dies and is back before its session expires: its controller reads from
    ZooKeeper that it led."""
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


def test_topics_and_groups_are_told() -> None:
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


def test_equal_errors_are_told_once_with_their_number() -> None:
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
def test_a_leader_read_from_zookeeper_is_told_where_it_is_alive(again: bool) -> None:
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
