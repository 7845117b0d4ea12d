"""A recorded run has every change of state with the event that caused it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.protocol.data import DeleteRecordsRequest
from fakekafka.protocol.groups import ConsumerGroupHeartbeatRequest
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.one_transaction import write_in_transaction
from fakekafka.tracing.events import KINDS
from fakekafka.tracing.fingerprint import Fingerprint
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.story.timeline import read_story

JOIN = ConsumerGroupHeartbeatRequest(
    "g", "member", 0, rebalance_timeout_ms=60_000, topics=("t",), owned=()
)
VERSIONS = ("0.10", "1.1", "2.8", "3.9")


def changes(simulation: Simulation, since: int = 0) -> list[tuple[str, Any, Any]]:
    """Return (path, old, new) of every change since an event."""
    return [change for event in simulation.events if event.seq >= since for change in event.delta]


def values(simulation: Simulation, path: str, since: int = 0) -> list[Any]:
    """Return the values of a path in order; each change must start from the previous value."""
    found = [(old, new) for name, old, new in changes(simulation, since) if name == path]
    for (_, ended), (begun, _) in itertools.pairwise(found):
        assert begun == ended
    return [new for _, new in found]


def state_now(simulation: Simulation, pattern: str) -> dict[str, Any]:
    """Return the recorded state of the paths that match a pattern."""
    return dict(simulation.trace().state_at(simulation.events[-1], pattern=pattern))


@pytest.fixture(params=VERSIONS)
def simulation(request: pytest.FixtureRequest) -> Any:
    """Start a cluster whose partition is led by its first replica, not by the controller."""
    config = {"zookeeper.session.timeout.ms": 6000, "replica.lag.time.max.ms": 1000}
    with Simulation(3, seed=1, kafka_version=request.param, config=config) as running:
        running.create_topic("t", assignment={0: [2, 3]})
        running.run_for(500)
        yield running


def test_a_failover_in_changes_of_state(simulation: Simulation) -> None:
    """A failover changes the session, znodes, partition and replica states, leader and role."""
    assert simulation.controller.id != 2
    controller = f"controller-{simulation.controller.id}"
    since = len(simulation.recorder)
    simulation.broker(2).kill()
    simulation.run_until(lambda: simulation.partition("t", 0).leader == 3, 30_000)
    simulation.run_for(500)
    told = changes(simulation, since)
    expired = [path for path, _, new in told if "/sessions/" in path and new is None]
    assert len(expired) == 1
    assert expired[0].startswith("zk-1/sessions/0x")
    assert any(path == "zk-1/znodes/brokers/ids/2" and new is None for path, _, new in told)
    states = values(simulation, f"{controller}/t-0/state", since)
    assert states == ["OfflinePartition", "OnlinePartition"]
    assert values(simulation, f"{controller}/t-0/leader", since)[-1] == 3
    assert values(simulation, f"{controller}/t-0/isr", since)[-1] == [3]
    assert values(simulation, f"{controller}/t-0/replica-2/state", since) == ["OfflineReplica"]
    assert values(simulation, "broker-3/t-0/role", since) == ["leader"]
    assert values(simulation, "broker-3/t-0/leader_epoch", since)[-1] > 0


def test_a_record_moves_log_ends_and_then_high_watermarks(simulation: Simulation) -> None:
    """Log end offsets rise before high watermarks, the leader's before the follower's."""
    since = len(simulation.recorder)
    simulation.produce("t", b"v", partition=0)
    simulation.run_for(1000)
    moves = [
        (path.removesuffix("/t-0"), name, new)
        for path, name, new in (
            (*path.rsplit("/", 1), new) for path, _, new in changes(simulation, since)
        )
        if name in ("log_end_offset", "high_watermark")
    ]
    assert moves == [
        ("broker-2", "log_end_offset", 1),
        ("broker-3", "log_end_offset", 1),
        ("broker-2", "high_watermark", 1),
        ("broker-3", "high_watermark", 1),
    ]


def test_a_proposal_of_an_isr_and_its_commit(simulation: Simulation) -> None:
    """A leader's proposed ISR is recorded before the committed one."""
    since = len(simulation.recorder)
    simulation.broker(3).pause()
    simulation.produce("t", b"v", partition=0, acks=1)
    simulation.run_until(lambda: simulation.partition("t", 0).isr == (2,), 30_000)
    simulation.run_for(500)
    shrink = [
        (path, new)
        for path, _, new in changes(simulation, since)
        if path in ("broker-2/t-0/proposed_isr", "broker-2/t-0/isr")
    ]
    assert shrink[0] == ("broker-2/t-0/proposed_isr", [2])
    assert ("broker-2/t-0/isr", [2]) in shrink
    assert values(simulation, "broker-2/t-0/proposed_isr", since)[-1] is None


def test_a_fetcher_truncates_before_it_fetches(simulation: Simulation) -> None:
    """A fetcher records its leader, its stage and the offset at which the stage began. In 3.9 a
    follower requests epochs only after a leader has reported diverging logs (KIP-595).
    """
    follower = simulation.broker(3)
    path = "broker-3/t-0"
    assert values(simulation, f"{path}/fetches_from") == [2]
    assert values(simulation, f"{path}/fetch_stage")[-1] == "fetching"
    simulation.produce("t", b"v", partition=0)
    simulation.run_for(1000)
    since = len(simulation.recorder)
    follower.kill()
    follower.start()
    simulation.run_until(lambda: set(simulation.partition("t", 0).isr) == {2, 3}, 30_000)
    told = [(path, new) for path, _, new in changes(simulation, since)]
    assert (f"{path}/fetch_stage", None) in told
    stages = [new for name, new in told if name == f"{path}/fetch_stage" and new is not None]
    assert stages[-1] == "fetching"
    offsets = [new for name, new in told if name == f"{path}/fetch_offset"]
    assert offsets[-1] in (0, 1)  # in 0.10 a killed broker restarts from its checkpoint
    simulation.broker(2).kill()
    simulation.run_until(lambda: simulation.partition("t", 0).leader == 3, 30_000)
    simulation.run_for(100)
    assert values(simulation, f"{path}/fetches_from")[-1] is None
    assert values(simulation, f"{path}/fetch_stage")[-1] is None


def test_a_fetcher_waits_for_a_leader_that_does_not_answer_for_a_partition(
    simulation: Simulation,
) -> None:
    """A partition whose fetch returned an error is delayed and then fetched again."""
    since = len(simulation.recorder)
    simulation.inject("Fetch", "UNKNOWN_SERVER_ERROR")
    simulation.run_for(5000)
    stages = values(simulation, "broker-3/t-0/fetch_stage", since)
    assert stages[:2] == ["delayed", "fetching"]


def test_the_queue_of_the_controller(simulation: Simulation) -> None:
    """The controller's queue and current event are recorded, and both are empty in the end."""
    controller = f"controller-{simulation.controller.id}"
    since = len(simulation.recorder)
    simulation.broker(2).kill()
    simulation.run_until(lambda: simulation.partition("t", 0).leader == 3, 30_000)
    simulation.run_for(500)
    queues = values(simulation, f"{controller}/queue", since)
    assert any("BrokerChange" in names for names in queues if names)
    assert queues[-1] is None
    at_work = values(simulation, f"{controller}/event", since)
    assert "BrokerChange" in at_work
    assert at_work[-1] is None
    lengths = values(simulation, f"{controller}/queue_length", since)
    assert max(lengths) >= 1
    assert lengths[-1] == 0


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_transaction_on_both_sides(version: str) -> None:
    """A transaction is recorded both by its coordinator and by its producer."""
    with Simulation(1, seed=1, kafka_version=version, topics={"t": 1}) as simulation:
        producer = simulation.transactional_producer("shop")
        task = producer.start_task(write_in_transaction(producer, ("t", 0), b"v", commit=True))
        simulation.run_until(lambda: task.done, 60_000)
        simulation.run_for(1000)
        states = values(simulation, "broker-1/transaction/shop")
        assert states == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]
        assert ["t-0"] in values(simulation, "broker-1/transaction/shop/partitions")
        (identity,) = values(simulation, f"{producer.name}/producer")
        assert values(simulation, "broker-1/transaction/shop/producer")[-1] == identity
        assert values(simulation, f"{producer.name}/transaction") == ["open", "committing", None]
        assert values(simulation, f"{producer.name}/transaction_partitions") == [["t-0"], None]


def test_a_client_keeps_its_last_error(simulation: Simulation) -> None:
    """A client's last error stays recorded after its retry succeeded."""
    producer = simulation.producer(acks="all", retry_backoff_ms=100)
    simulation.inject("Produce", "NOT_LEADER_OR_FOLLOWER")
    producer.produce(("t", 0), b"v")
    simulation.run_until(lambda: producer.acknowledged == 1, 30_000)
    errors = values(simulation, f"{producer.name}/last_error")
    assert len(errors) == 1
    assert errors[0].startswith("NOT_LEADER")


def test_the_order_of_events_does_not_depend_on_recording() -> None:
    """A run has the same outline whether its state is recorded or only its fingerprint."""
    outlines = []
    for recorder in (Recorder(), Fingerprint()):
        with Simulation(3, seed=4, recorder=recorder) as simulation:
            simulation.create_topic("t", partitions=2, replication_factor=3)
            simulation.produce("t", b"v", partition=0)
            simulation.broker(1).kill()
            simulation.run_for(3000)
        outlines.append(recorder.outline())
    assert outlines[0] == outlines[1]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_recorded_state_of_a_group_moves_to_the_new_coordinator(protocol: str) -> None:
    """A group's state moves to the new coordinator and is removed at the old, live one."""
    config: dict[str, Any] = {"offsets.topic.num.partitions": 1}
    if protocol == "consumer":
        config |= {"group.coordinator.rebalance.protocols": "classic,consumer"}
    with Simulation(2, seed=2, config=config, topics={"t": 1}) as simulation:
        simulation.group_consumer("g" if protocol == "classic" else "other", ["t"])
        simulation.run_for(8000)
        old = simulation.partition("__consumer_offsets", 0).leader
        assert old is not None
        if protocol == "consumer":
            simulation.ask(old, JOIN)
            simulation.run_for(1000)
        before = state_now(simulation, "broker-*/groups/g/*")
        simulation.reassign_partitions({("__consumer_offsets", 0): [3 - old]})
        simulation.run_for(3000)
        after = state_now(simulation, "broker-*/groups/g/*")
    moved = {key.replace(f"broker-{old}", f"broker-{3 - old}"): v for key, v in before.items()}
    assert after == moved
    assert len(moved) == 3


def test_a_log_start_that_a_client_moves_is_recorded_at_once() -> None:
    with Simulation(1, seed=2, topics={"t": 1}) as simulation:
        for number in range(3):
            simulation.produce("t", b"%d" % number)
        simulation.ask(1, DeleteRecordsRequest(6000, ((TopicPartition("t", 0), 2),)))
        assert values(simulation, "broker-1/t-0/log_start_offset") == [0, 2]


def test_without_recording_no_node_has_a_state_listener() -> None:
    """Without recording, no node has a state listener."""
    with Simulation(1, seed=4, trace=False) as simulation:
        nodes: dict[str, Any] = dict(simulation.runtime.network.nodes)
        assert nodes
        assert all(node.state_listener is None for node in nodes.values())


def test_the_story_is_read_from_the_state(simulation: Simulation) -> None:
    """A story has elections when the controller decides, takeovers when the new leader's role
    changes, and a grown ISR when the first of them has it. That is the leader in 0.10, which
    informs the controller seconds later, and the controller since 2.7 (KIP-497).
    """
    simulation.broker(2).kill()
    simulation.run_until(lambda: simulation.partition("t", 0).leader == 3, 30_000)
    simulation.broker(2).start()
    simulation.run_until(lambda: set(simulation.partition("t", 0).isr) == {2, 3}, 30_000)
    simulation.run_for(100)
    story = read_story(simulation.events)
    texts = [text for _, text in story.lines]
    assert any(text.startswith("t-0 gets leader 3 (was ") for text in texts)
    assert any(text.startswith("broker-3 becomes leader of t-0 (epoch ") for text in texts)
    (crash,) = story.crashes
    times = {
        (path.partition("-")[0] + path[path.index("/") :], str(new)): event.time_us
        for event in reversed(simulation.events)
        for path, _, new in event.delta
    }
    assert crash.elected_us == times["controller/t-0/leader", "3"]
    grown_ms = min(times[f"{who}/t-0/isr", "[3, 2]"] for who in ("broker", "controller")) / 1000
    assert (grown_ms, "t-0: isr [3] -> [3, 2]") in story.lines
    assert texts.count("t-0: isr [3] -> [3, 2]") == 1


def test_every_kind_of_event_is_recorded_in_some_run() -> None:
    """Every declared kind of event occurs in some run."""
    with Simulation(3, seed=1, config={"zookeeper.session.timeout.ms": 6000}) as simulation:
        simulation.create_topic("t", assignment={0: [2, 3]})
        simulation.network.hold(lambda delivery: delivery.target.machine == "broker-3")
        simulation.run_for(500)
        simulation.network.release()
        producer = simulation.producer(acks=1, enable_idempotence=False, delivery_timeout_ms=1)
        producer.produce(("t", 0), b"v")
        simulation.run_for(500)
        producer.produce(("t", 0), b"v")
        simulation.broker(2).kill()
        lasting = simulation.producer(acks=1)
        lasting.produce(("t", 0), b"v")
        simulation.run_for(31_000)
        simulation.broker(2).start()
        simulation.broker(3).pause()
        simulation.run_for(100)
        # A change that comes after its event's chunk was packed is an event of its own.
        simulation.recorder.state(0, "broker-3/t-0/leader", 2, 99)
        assert {event.kind for event in simulation.events} == set(KINDS)
