"""Every message caused by a client's operation carries the operation's number."""

from __future__ import annotations

import functools

import pytest
from fakekafka import Cluster, Simulation
from fakekafka.actors.clients.transactional_producer import ProducerFenced
from fakekafka.protocol.data import MetadataRequest, RequestContext
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import OffsetCommitResponse
from fakekafka.protocol.values import TopicPartition
from fakekafka.tracing.events import Event
from fakekafka.tracing.fingerprint import Fingerprint
from fakekafka.tracing.recording.recorder import Recorder
from fakekafka.tracing.text import format_event
from fakekafka.wire.kafka.response_errors import errors_text
from fakekafka.wire.kafka.tcp_listener import TcpGateway

CONFIG = {"transaction.state.log.num.partitions": 1, "offsets.topic.num.partitions": 1}


def operations(events: list[Event], client: str) -> list[tuple[str, str, str | None]]:
    """Return name, outcome and text of each ended operation of a client."""
    return [
        (event.type or "", event.kind, event.why)
        for event in events
        if event.actor == client and event.kind in ("client_ok", "client_fail")
    ]


def requests_in(events: list[Event], op: int) -> list[str]:
    return [e.type or "" for e in events if e.op == op and e.kind == "deliver"]


def transactions() -> list[Event]:
    with Simulation(3, config=CONFIG, topics={"orders": 1}) as simulation:
        producer = simulation.transactional_producer("shop", name="shop")
        heir = simulation.transactional_producer("shop", name="heir")

        async def work() -> None:
            await producer.init_transactions()
            producer.begin()
            await producer.write(("orders", 0), [b"a"])
            await producer.send_offsets("readers", {TopicPartition("orders", 0): 1})
            await producer.commit()
            producer.begin()
            await producer.write(("orders", 0), [b"b"])
            await producer.abort()
            await heir.init_transactions()
            producer.begin()
            with pytest.raises(ProducerFenced):
                await producer.write(("orders", 0), [b"c"])

        task = producer.start_task(work())
        simulation.run_until(lambda: task.done, 120_000)
        task.result()
        assert simulation.failures == []
        return list(simulation.trace().events)


def test_each_step_of_a_transaction_is_an_operation() -> None:
    """Each call of a transactional producer is a named operation with its outcome; requests that
    the call causes carry its number.
    """
    events = transactions()
    ended = operations(events, "shop")
    assert [(name, outcome) for name, outcome, _ in ended] == [
        ("init_transactions", "client_ok"),
        ("produce", "client_ok"),
        ("send_offsets", "client_ok"),
        ("commit_transaction", "client_ok"),
        ("produce", "client_ok"),
        ("abort_transaction", "client_ok"),
        ("produce", "client_fail"),
    ]
    assert ended[-1][2] == "INVALID_PRODUCER_EPOCH" or ended[-1][2] == "PRODUCER_FENCED"
    begun = {e.type: e.seq for e in events if e.actor == "shop" and e.kind == "client_invoke"}
    assert "EndTxnRequest" in requests_in(events, begun["commit_transaction"])
    offsets = requests_in(events, begun["send_offsets"])
    assert "AddOffsetsToTxnRequest" in offsets
    assert "TxnOffsetCommitRequest" in offsets
    asked = {"EndTxnRequest", "AddOffsetsToTxnRequest", "TxnOffsetCommitRequest"}
    assert all(e.op is not None for e in events if e.kind == "send" and e.type in asked)


def test_a_fault_during_an_operation_is_not_caused_by_it() -> None:
    """A fault beside a parked operation is not caused by the operation."""
    with Simulation(3, config=CONFIG, topics={"orders": 1}) as simulation:
        producer = simulation.transactional_producer("shop", name="shop")
        producer.start_task(producer.init_transactions())
        simulation.broker(3).kill()
        events = list(simulation.trace().events)
    begun = next(event for event in events if event.kind == "client_invoke")
    crash = next(event for event in events if event.kind == "crash")
    assert crash.op is None
    assert crash.cause != begun.seq


def test_a_recorded_run_of_coordinated_clients_is_the_run_without_a_recording() -> None:
    """Recording operations does not change a run: its outline stays the same."""
    outlines = []
    for recorder in (Recorder(), Fingerprint()):
        with Simulation(3, config=CONFIG, topics={"orders": 2}, recorder=recorder) as simulation:
            simulation.group_consumer("readers", ["orders"], name="a")
            producer = simulation.transactional_producer("shop", name="shop")
            producer.start_task(producer.init_transactions())
            simulation.run_for(20_000)
            outlines.append(recorder.outline())
    assert outlines[0] == outlines[1]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_request_of_a_group_member_belongs_to_an_operation(protocol: str) -> None:
    """With both protocols, every request of a member to its coordinator belongs to an operation:
    joining, heartbeats, commits and leaving.
    """
    config = {**CONFIG, "group.coordinator.rebalance.protocols": "classic,consumer"}
    if protocol == "classic":
        del config["group.coordinator.rebalance.protocols"]
    with Simulation(3, kafka_version="3.9", config=config, topics={"orders": 2}) as simulation:
        simulation.producer().produce(("orders", 0), b"v")
        member = simulation.group_consumer(
            "readers", ["orders"], name="reader", group_protocol=protocol
        )
        simulation.run_until(lambda: member.owned, 60_000)
        simulation.run_for(12_000)
        task = member.leave()
        simulation.run_until(lambda: task.done, 60_000)
        events = list(simulation.trace().events)
    names = {name for name, _, _ in operations(events, "reader")}
    assert {"heartbeat", "offset_commit", "leave_group"} < names
    asked = [e for e in events if e.actor == "reader" and e.kind == "send"]
    without = {e.type for e in asked if e.op is None}
    assert without <= {"FetchRequest", "MetadataRequest", "ListOffsetsRequest"}
    if protocol == "classic":
        joined = next(e for e in events if e.kind == "client_invoke" and e.type == "join_group")
        assert {"JoinGroupRequest", "SyncGroupRequest", "OffsetFetchRequest"} <= {
            e.type for e in events if e.op == joined.seq
        }


def test_the_causes_of_a_rejoin_lead_to_the_member_that_joined() -> None:
    """The causes of a member's second join lead past its own operations to the new member."""
    with Simulation(3, config=CONFIG, topics={"orders": 2}) as simulation:
        first = simulation.group_consumer("readers", ["orders"], name="first")
        simulation.run_until(lambda: len(first.owned) == 2, 60_000)
        simulation.group_consumer("readers", ["orders"], name="second")
        simulation.run_until(lambda: len(first.owned) == 1, 60_000)
        trace = simulation.trace()
    joins = list(trace.filter("kind == client_invoke and type == join_group"))
    again = [event for event in joins if event.actor == "first"][-1]
    chain = trace.why(again)
    assert chain[-1].kind != "client_invoke"
    assert [e.type for e in chain].count("heartbeat") <= 1


def test_a_request_over_tcp_is_an_operation_of_its_connection() -> None:
    """A TCP request is an operation from its arrival to its response; ``op`` finds it."""
    with Cluster(2, topics={"orders": 1}, trace=20_000) as cluster:
        gateway = TcpGateway(cluster.running.runtime, "3.9")
        answers: list[object] = []

        def ask(topic: str) -> None:
            request = MetadataRequest((topic,), allow_auto_topic_creation=False)
            context = RequestContext(client_id="shop")
            gateway.submit(1, "shop-1", request, context, answers.append)

        for topic in ("orders", "missing"):
            cluster.running.runtime.thread.call(functools.partial(ask, topic))
        cluster.wait_until(lambda: len(answers) == 2)
        trace = cluster.trace()
    events = [event for event in trace.events if event.op is not None]
    assert operations(events, "shop-1") == [
        ("metadata", "client_ok", None),
        ("metadata", "client_fail", "missing UNKNOWN_TOPIC_OR_PARTITION"),
    ]
    begun, *rest = trace.filter(f"op == {events[0].seq}")
    assert (begun.kind, begun.type, begun.why, begun.cause) == (
        "client_invoke", "metadata", "shop", None,
    )  # fmt: skip
    assert [e.kind for e in rest] == ["send", "deliver", "send", "deliver", "client_ok"]
    assert trace.why(rest[-1])[-1].seq == begun.seq
    assert f"op={begun.seq}" in format_event(rest[0])


def test_a_request_to_a_broker_that_is_down_fails_as_an_operation() -> None:
    with Cluster(2, trace=20_000) as cluster:
        cluster.broker(2).kill()
        gateway = TcpGateway(cluster.running.runtime, "3.9")
        answers: list[object] = []
        request = MetadataRequest(())
        cluster.running.runtime.thread.call(
            lambda: gateway.submit(2, "shop-1", request, RequestContext(), answers.append)
        )
        cluster.wait_until(lambda: answers)
        ended = operations(list(cluster.trace().events), "shop-1")
    assert ended == [("metadata", "client_fail", "Disconnected: broker-2 is not running")]


def test_the_errors_of_an_answer_are_listed_with_their_subjects() -> None:
    """At most three errors of a response are listed, each once; NONE is not listed."""
    partitions = tuple(
        (TopicPartition("t", number), ErrorCode.NOT_COORDINATOR) for number in range(5)
    )
    assert errors_text(OffsetCommitResponse(partitions)) == (
        "t-0 NOT_COORDINATOR, t-1 NOT_COORDINATOR, t-2 NOT_COORDINATOR"
    )
    assert errors_text(OffsetCommitResponse(((partitions[0][0], ErrorCode.NONE),))) is None
