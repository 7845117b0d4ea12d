"""Handles that write znodes, send requests, hold messages and explain waits."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest
from fakekafka import Cluster, Simulation, UsageError, WaitTimeout
from fakekafka.protocol import data
from fakekafka.protocol.admin import ListPartitionReassignmentsRequest
from fakekafka.protocol.awaiting import Disconnected, RequestTimeout
from fakekafka.protocol.data import MetadataRequest, ProducePartition, ProduceRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import TopicPartition


def simulation(brokers: int | list[int] = 3, **options: Any) -> Any:
    return Simulation(brokers, trace=False, **options)


# -- ZooKeeper -------------------------------------------------------------------------------------


@pytest.mark.parametrize("zookeepers", [1, 3])
def test_znodes_are_created_set_and_deleted(zookeepers: int) -> None:
    """All servers apply every write of a znode, and each change raises its version."""
    with simulation(1, zookeepers=zookeepers) as cluster:
        zookeeper = cluster.zookeeper
        assert zookeeper.create("/mine", b"1") == "/mine"
        assert zookeeper.create("/mine/a") == "/mine/a"
        assert zookeeper.create("/mine/n-", "x", sequential=True) == "/mine/n-0000000001"
        assert zookeeper.set("/mine", "2").version == 1
        assert zookeeper.set("/mine", None, version=1).version == 2
        assert zookeeper.get("/mine") is None
        assert zookeeper.children("/mine") == ["a", "n-0000000001"]
        zookeeper.delete("/mine/a", version=0)
        zookeeper.delete("/mine", recursive=True)
        cluster.run_for(100)
        for process in cluster.zookeepers.values():
            assert not [path for path in process.server.tree() if path.startswith("/mine")]


def test_a_write_that_zookeeper_refuses_says_why() -> None:
    with simulation(1) as cluster:
        zookeeper = cluster.zookeeper
        zookeeper.create("/mine")
        with pytest.raises(UsageError, match="there is no znode '/a/b/c': '/a' is missing"):
            zookeeper.create("/a/b/c")
        with pytest.raises(UsageError, match="there is no znode '/x': '/x' is missing"):
            zookeeper.set("/x", b"")
        with pytest.raises(UsageError, match="znode '/mine' already exists"):
            zookeeper.create("/mine")
        with pytest.raises(UsageError, match="znode '/mine' has version 0, not 3"):
            zookeeper.set("/mine", b"", version=3)
        with pytest.raises(UsageError, match="znode '/brokers' has children: ids, seqid, topics"):
            zookeeper.delete("/brokers")
        with pytest.raises(UsageError, match="path must be a path such as '/brokers/ids'"):
            zookeeper.create("mine")
        with pytest.raises(UsageError, match="data must be bytes, a string or None, not 1"):
            zookeeper.set("/mine", 1)


def test_a_write_without_a_majority_of_servers_times_out() -> None:
    with simulation(1, zookeepers=3) as cluster:
        cluster.zookeeper.server(1).kill()
        cluster.zookeeper.server(2).kill()
        with pytest.raises(UsageError, match="no ZooKeeper server answered within 10 s"):
            cluster.zookeeper.create("/mine")
        cluster.zookeeper.server(1).start()
        cluster.run_for(10_000)
        cluster.zookeeper.create("/mine")


def test_a_reassignment_written_to_zookeeper_is_carried_out() -> None:
    """Kafka carries out a reassignment requested by znode, as the tools before 2.4 did."""
    with simulation(3) as cluster:
        cluster.create_topic("t", assignment={0: [1]})
        plan = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3]}]}'
        cluster.zookeeper.create("/admin/reassign_partitions", plan)
        cluster.run_until(lambda: cluster.partition("t", 0).leader == 3)
        assert cluster.partition("t", 0).replicas == (3,)


# -- the controller --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8", "3.9"])
def test_the_controller_is_chosen(version: str) -> None:
    """``move_to`` makes the named broker the controller, and the cluster continues to work."""
    with simulation([1, 2, 3, 0], kafka_version=version, topics={"t": 2}) as cluster:
        for chosen in (3, 0, 2, 2, 1):
            cluster.controller.move_to(chosen)
            assert cluster.controller.id == chosen
            brokers = [process.broker for process in cluster.processes.values()]
            assert [b.broker_id for b in brokers if b.controller.is_active] == [chosen]
        assert cluster.controller.epoch == 5
        cluster.create_topic("later")
        cluster.produce("later", b"x")
        cluster.run_for(60_000)
        assert cluster.controller.id == 1


def test_a_broker_that_does_not_run_cannot_be_chosen() -> None:
    with simulation(2) as cluster:
        cluster.broker(2).kill()
        with pytest.raises(UsageError, match="broker-2 is not_running; choose a running broker"):
            cluster.controller.move_to(2)
        cluster.broker(2).start()
        cluster.broker(2).pause()
        with pytest.raises(WaitTimeout, match=r"self\.id is 1, broker_id is 2"):
            cluster.controller.move_to(2)
        cluster.run_until(lambda: cluster.controller.id == 1)


def test_the_controller_of_a_cluster_is_chosen() -> None:
    with Cluster(3) as cluster:
        for chosen in (3, 1, 2):
            cluster.controller.move_to(chosen)
            assert cluster.controller.id == chosen
        assert cluster.zookeeper.create("/mine", "x") == "/mine"
        assert cluster.ask(1, MetadataRequest(("t",))).topics[0].error is not None


# -- requests --------------------------------------------------------------------------------------


def test_a_broker_answers_any_request() -> None:
    with simulation(2, topics={"t": 1}) as cluster:
        metadata = cluster.ask(1, MetadataRequest(("t",)))
        assert [topic.name for topic in metadata.topics] == ["t"]
        other = 3 - cluster.controller.id
        answer = cluster.ask(other, ListPartitionReassignmentsRequest(None))
        assert answer.error == ErrorCode.NOT_CONTROLLER
        leader = cluster.partition("t", 0).leader
        batch = build_batch([Record(0, 0, None, b"x", ())])
        part = (ProducePartition(TopicPartition("t", 0), batch),)
        assert cluster.ask(leader, ProduceRequest(-1, 1000, part)).partitions[0].base_offset == 0
        assert cluster.ask(leader, ProduceRequest(0, 1000, part)) is None
        cluster.run_for(10)
        assert len(cluster.records("t", 0)) == 2


def test_a_request_that_gets_no_answer_ends_with_an_error() -> None:
    with simulation(2, topics={"t": 1}) as cluster:
        request = MetadataRequest(("t",))
        cluster.broker(2).pause()
        with pytest.raises(RequestTimeout):
            cluster.ask(2, request, timeout_s=5)
        cluster.broker(2).kill()
        with pytest.raises(Disconnected):
            cluster.ask(2, request)
        with pytest.raises(UsageError, match="request must be a request of fakekafka"):
            cluster.ask(1, data.MetadataResponse)
        with pytest.raises(UsageError, match="there is no broker 9"):
            cluster.ask(9, request)


# -- views -----------------------------------------------------------------------------------------


def test_a_view_has_the_version_of_the_state_and_the_log_directories() -> None:
    """The version in a view follows ISR changes; a dead broker's log directory stays known."""
    config = {"log.dirs": "a,b", "replica.lag.time.max.ms": 2000}
    with simulation(2, config=config) as cluster:
        cluster.create_topic("t", assignment={0: [1, 2], 1: [1, 2]})
        assert cluster.partition("t", 0).zk_version == 0
        directories = [cluster.partition("t", n).replica(2).log_dir for n in (0, 1)]
        assert sorted(directories) == ["a", "b"]
        cluster.broker(2).kill()
        cluster.run_until(lambda: cluster.partition("t", 0).isr == (1,))
        view = cluster.partition("t", 0)
        stat = cluster.zookeeper.stat("/brokers/topics/t/partitions/0/state")
        assert view.zk_version == stat.version > 0
        assert [cluster.partition("t", n).replica(2).log_dir for n in (0, 1)] == directories


# -- holds -----------------------------------------------------------------------------------------


def test_held_messages_are_released_one_by_one() -> None:
    """``release`` sends a hold's oldest messages first; an ended hold keeps none back."""
    with simulation(1, topics={"t": 1}) as cluster:
        hold = cluster.network.hold(lambda d: isinstance(d.message, ProduceRequest))
        other = cluster.network.hold(lambda d: isinstance(d.message, MetadataRequest))
        producer = cluster.producer()
        offsets: list[int] = []

        def acknowledged(_error: ErrorCode, offset: int) -> None:
            offsets.append(offset)

        producer.produce(("t", 0), b"a", callback=acknowledged)
        cluster.run_for(10)
        assert [type(d.message) for d in other.messages] == [MetadataRequest]
        assert other.release() == 1
        cluster.run_until(lambda: len(hold.messages) == 1)  # the producer has its producer id
        for value in (b"b", b"c"):
            cluster.run_for(10)
            producer.produce(("t", 0), value, callback=acknowledged)
        other.end()
        cluster.run_for(1000)
        assert len(hold.messages) == 3
        assert hold.release(1) == 1
        cluster.run_for(10)
        assert (offsets, len(hold.messages)) == ([0], 2)
        assert hold.release(0) == 0
        assert hold.release() == 2
        producer.produce(("t", 0), b"d", callback=acknowledged)
        cluster.run_for(10)
        assert (offsets, len(hold.messages)) == ([0, 1, 2], 1)
        assert hold.end() == 1
        assert hold.end() == 0
        cluster.run_for(10)
        assert offsets == [0, 1, 2, 3]
        assert [r.value for r in cluster.consume("t")] == [b"a", b"b", b"c", b"d"]
        with pytest.raises(UsageError, match="count must be a whole number >= 0, not -1"):
            hold.release(-1)


def test_released_messages_of_a_link_keep_their_order() -> None:
    """Released messages keep their order even if a later one was drawn a shorter delay."""
    with simulation(1, topics={"t": 1}, seed=3) as cluster:
        cluster.network.latency(uniform_ms=(1, 50))
        producer = cluster.producer(enable_idempotence=False, max_in_flight=100)
        producer.produce(("t", 0), b"first")
        cluster.run_until(lambda: producer.acknowledged == 1)
        hold = cluster.network.hold(lambda d: isinstance(d.message, ProduceRequest))
        for number in range(50):
            producer.produce(("t", 0), b"%d" % number)
            cluster.run_for(1)
        hold.end()
        cluster.run_until(lambda: producer.acknowledged == 51)
        values = [r.value for r in cluster.consume("t")]
        assert values == [b"first", *(b"%d" % number for number in range(50))]


# -- waits -----------------------------------------------------------------------------------------


def orders_are_led() -> bool:
    return False


def test_a_wait_that_times_out_names_the_condition_and_its_values() -> None:
    with simulation(2, topics={"t": 1}, seed=7) as cluster:
        with pytest.raises(WaitTimeout) as caught:
            cluster.run_until(lambda: cluster.controller.id == 9 and cluster.topics(), 100)
        text = str(caught.value)
        assert "cluster.controller.id == 9 and cluster.topics() did not hold within 100" in text
        assert "cluster.controller.id is 1, cluster.topics() is ['t']" in text
        assert "seed 7" in text
        assert "brokers 1: running, 2: running" in text
        with pytest.raises(WaitTimeout, match=r"^orders_are_led did not hold within 100 virtual"):
            cluster.wait_until(orders_are_led, 0.1)
        with pytest.raises(WaitTimeout, match=r"'t' not in cluster.topics\(\) did not hold"):
            cluster.run_until(lambda: "t" not in cluster.topics(), 100, every_ms=10)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (lambda: len("abc") > 3, "len('abc') > 3 did not hold within 1 s; len('abc') is 3 (x)"),
        (lambda: not len("abc"), "not len('abc') did not hold within 1 s; len('abc') is 3 (x)"),
        (lambda: any(n > 3 for n in (1, 2)), "did not hold within 1 s (x)"),
        (lambda: [][0], "[][0] is IndexError: list index out of range (x)"),
        (lambda: list(range(999)) == [], "49, 50, 51..."),
        (eval("lambda: 1 == 2"), "<lambda> did not hold within 1 s (x)"),
        ([].append, "list.append did not hold within 1 s (x)"),
    ],
)
def test_a_condition_is_described_as_far_as_possible(condition: Any, text: str) -> None:
    """A condition without source is named; parts that raise or are long are no problem."""
    from fakekafka.testing.condition_text import failed_wait

    assert text in failed_wait(condition, "1 s", "x")


# -- logs ------------------------------------------------------------------------------------------


def test_warnings_go_to_the_trace_and_to_logging(caplog: pytest.LogCaptureFixture) -> None:
    with Simulation(1) as cluster:
        runtime = cluster.runtime
        with caplog.at_level(logging.INFO, "fakekafka"):
            runtime.log("broker-1", "warn", "odd")
            runtime.log("broker-1", "info", "usual")
        assert [record.getMessage() for record in caplog.records] == ["odd", "usual"]
        notes = [event.why or "" for event in cluster.events if event.kind == "note"]
        assert "warn: odd" in notes
        assert not any("usual" in note for note in notes)


def test_nothing_is_printed_if_logging_is_not_configured() -> None:
    """Warnings are not printed if logging is not configured; Python alone would print to stderr."""
    program = (
        "from fakekafka import Simulation\n"
        "with Simulation(1, trace=False) as s:\n"
        "    s.runtime.log('broker-1', 'error', 'odd')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
