"""Injections: which messages they affect, how often, and when they end."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from fakekafka import Cluster, Simulation, UsageError
from fakekafka.protocol import data
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import TopicPartition


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    topics = {"t": {"assignment": {0: [2, 3]}}}
    with Simulation(3, seed=1, topics=topics) as made:
        yield made


def ms_until_a_new_leader(simulation: Simulation) -> float:
    """Return the milliseconds a partition is without a leader after its leader is killed."""
    begun_ms = simulation.now_ms
    simulation.broker(2).kill()
    simulation.run_until(lambda: simulation.partition("t", 0).leader == 3)
    return simulation.now_ms - begun_ms


def test_a_delayed_controller_event_delays_the_failover(simulation: Simulation) -> None:
    """The controller handles BrokerChange 500 ms late, once; later events are not delayed."""
    with Simulation(3, seed=1, topics={"t": {"assignment": {0: [2, 3]}}}) as undisturbed:
        usual_ms = ms_until_a_new_leader(undisturbed)
    injection = simulation.inject("BrokerChange", delay_ms=500)
    delayed_ms = ms_until_a_new_leader(simulation)
    assert delayed_ms == pytest.approx(usual_ms + 500, abs=5)
    assert (injection.applied, injection.remaining) == (1, 0)
    simulation.broker(2).start()
    simulation.run_until(lambda: set(simulation.partition("t", 0).isr) == {2, 3})
    assert injection.applied == 1


def test_an_event_of_another_broker_is_left_alone(simulation: Simulation) -> None:
    """An injection into a broker that is not the active controller affects no controller event."""
    idle = 3 if simulation.controller.id != 3 else 1
    injection = simulation.inject("BrokerChange", delay_ms=500, broker=idle)
    ms_until_a_new_leader(simulation)
    assert injection.applied == 0


@pytest.mark.parametrize("options", [{"error": "NOT_CONTROLLER"}, {"disconnect": True}])
def test_an_event_can_be_delayed_only(simulation: Simulation, options: dict[str, object]) -> None:
    """A controller event cannot fail or disconnect, as no sender awaits an answer."""
    text = "API BrokerChange is an event of the controller; it can only be delayed"
    with pytest.raises(UsageError, match=re.escape(text)):
        simulation.inject("BrokerChange", **options)  # type: ignore[arg-type]


def test_a_name_of_both_is_the_request(simulation: Simulation) -> None:
    """An injection into ControlledShutdown, both an API and an event, affects the API request."""
    injection = simulation.inject("ControlledShutdown", error="STALE_BROKER_EPOCH")
    simulation.broker(2).begin_shutdown()
    simulation.run_for(10_000)
    assert injection.applied == 1


# -- which requests ----------------------------------------------------------------------------


PAIR = {"orders": {"assignment": {0: [1, 2], 1: [1, 2]}}, "audit": {"assignment": {0: [1, 2]}}}


@pytest.fixture
def pair() -> Iterator[Simulation]:
    """Start a cluster in which broker 1 leads three partitions of two topics."""
    with Simulation(2, seed=4, topics=PAIR) as made:
        yield made


def produce_request(*keys: tuple[str, int]) -> data.ProduceRequest:
    batch = build_batch([Record(0, 0, None, b"value", ())])
    parts = tuple(data.ProducePartition(TopicPartition(*key), batch) for key in keys)
    return data.ProduceRequest(1, 1000, parts)


def errors_by_partition(response: Any) -> dict[str, str]:
    return {str(part.topic_partition): part.error.name for part in response.partitions}


def first_error(pair: Simulation, request: data.ProduceRequest) -> ErrorCode:
    """Return the error of the first partition in broker 1's response."""
    answer = pair.ask(1, request)
    assert answer is not None
    return answer.partitions[0].error


def test_a_selected_partition_fails_and_the_others_are_served(pair: Simulation) -> None:
    """Only the named partition fails; the response keeps the partition order of the request."""
    injection = pair.inject("Produce", "NOT_ENOUGH_REPLICAS", topic="orders", partition=1)
    answer = pair.ask(1, produce_request(("orders", 0), ("orders", 1), ("audit", 0)))
    assert list(errors_by_partition(answer).items()) == [
        ("orders-0", "NONE"),
        ("orders-1", "NOT_ENOUGH_REPLICAS"),
        ("audit-0", "NONE"),
    ]
    assert answer is not None
    assert [p.base_offset for p in answer.partitions] == [0, -1, 0]
    ends = [pair.partition("orders", n).log_end_offset for n in (0, 1)]
    assert ends == [1, 0]
    assert (injection.applied, injection.remaining, injection.is_active) == (1, 0, False)
    assert not pair.runtime.network.interceptors


def test_a_selected_topic_fails_with_all_its_partitions(pair: Simulation) -> None:
    pair.inject("Produce", "TOPIC_AUTHORIZATION_FAILED", topic="orders")
    answer = pair.ask(1, produce_request(("orders", 0), ("audit", 0), ("orders", 1)))
    assert errors_by_partition(answer) == {
        "orders-0": "TOPIC_AUTHORIZATION_FAILED",
        "audit-0": "NONE",
        "orders-1": "TOPIC_AUTHORIZATION_FAILED",
    }


def test_each_partition_may_have_its_own_error(pair: Simulation) -> None:
    errors: dict[tuple[str, int], str | int] = {
        ("orders", 0): "KAFKA_STORAGE_ERROR",
        ("audit", 0): 87,
    }
    pair.inject("Produce", errors)
    answer = pair.ask(1, produce_request(("orders", 0), ("audit", 0)))
    assert errors_by_partition(answer) == {
        "orders-0": "KAFKA_STORAGE_ERROR",
        "audit-0": "INVALID_RECORD",
    }
    assert pair.partition("orders", 0).log_end_offset == 0


def test_requests_about_other_partitions_do_not_count(pair: Simulation) -> None:
    by_topic = pair.inject("Produce", "INVALID_RECORD", topic="audit")
    by_error = pair.inject("Produce", {("orders", 1): "INVALID_RECORD"})
    answer = pair.ask(1, produce_request(("orders", 0)))
    assert errors_by_partition(answer) == {"orders-0": "NONE"}
    assert (by_topic.applied, by_error.applied) == (0, 0)
    assert [one.id for one in pair.injections] == [by_topic.id, by_error.id] == [1, 2]


@pytest.mark.parametrize(
    ("pattern", "is_meant"), [("checkout", True), ("check*", True), ("bill*", False)]
)
def test_a_client_is_chosen_by_its_id(pair: Simulation, pattern: str, is_meant: bool) -> None:
    """A modelled client's id is its name, and an injection can select clients by id pattern."""
    injection = pair.inject("Produce", "NOT_ENOUGH_REPLICAS", client_id=pattern)
    producer = pair.producer("checkout")
    producer.produce(("orders", 0), b"value")
    pair.run_until(lambda: producer.acknowledged == 1)
    assert injection.applied == is_meant
    assert producer.retries == is_meant


def test_the_nth_request_is_the_first_that_is_affected(pair: Simulation) -> None:
    injection = pair.inject("Produce", "INVALID_RECORD", nth=3, times=2, topic="orders")
    found = [first_error(pair, produce_request(("orders", 0))).name for _ in range(5)]
    assert found == ["NONE", "NONE", "INVALID_RECORD", "INVALID_RECORD", "NONE"]
    assert injection.applied == 2


def test_an_injection_without_a_limit_lasts_until_it_is_cancelled(pair: Simulation) -> None:
    injection = pair.inject("Produce", "INVALID_RECORD", times=None)
    request = produce_request(("orders", 0))
    for _ in range(3):
        assert first_error(pair, request) is ErrorCode.INVALID_RECORD
    assert repr(injection) == "<injection 1 into Produce: 3 applied, no limit>"
    pair.injection(1).cancel()
    assert first_error(pair, request) is ErrorCode.NONE
    assert pair.injections == []
    with pytest.raises(UsageError, match=r"there is no active injection 1; active are \[\]"):
        pair.injection(1)


# -- answers -----------------------------------------------------------------------------------


def test_a_function_may_write_the_answer(pair: Simulation) -> None:
    asked = []

    def answer(request: data.FindCoordinatorRequest) -> data.FindCoordinatorResponse:
        asked.append(request.keys)
        return data.FindCoordinatorResponse(
            tuple(data.Coordinator(key, ErrorCode.NONE, 7, "elsewhere", 1) for key in request.keys)
        )

    pair.inject("FindCoordinator", answer=answer)
    found = pair.ask(1, data.FindCoordinatorRequest(("g",))).coordinators[0]
    assert (found.node_id, found.host) == (7, "elsewhere")
    assert asked == [("g",)]


def test_a_function_may_leave_a_request_alone_or_name_an_error(pair: Simulation) -> None:
    """A request for which the answer function returns None does not count as affected."""

    def answer(request: data.ProduceRequest) -> str | None:
        return "INVALID_RECORD" if request.acks == 1 else None

    injection = pair.inject("Produce", answer=answer)
    request = produce_request(("orders", 0))
    unmeant = dataclasses.replace(request, acks=-1)
    assert first_error(pair, unmeant) is ErrorCode.NONE
    assert (injection.applied, injection.remaining) == (0, 1)
    assert first_error(pair, request) is ErrorCode.INVALID_RECORD
    assert first_error(pair, request) is ErrorCode.NONE


def test_an_answer_of_the_wrong_type_ends_the_run_and_names_the_right_one(pair: Simulation) -> None:
    injection = pair.inject("Produce", answer=lambda request: request)
    with pytest.raises(UsageError, match="answer must give a ProduceResponse"):
        pair.ask(1, produce_request(("orders", 0)))
    assert not injection.is_active


def test_metadata_of_one_topic_or_partition_fails_alone(pair: Simulation) -> None:
    pair.inject("Metadata", "LEADER_NOT_AVAILABLE", topic="orders", partition=1)
    answer = pair.ask(1, data.MetadataRequest(None))
    told = {topic.name: topic for topic in answer.topics}
    parts = {part.partition: (part.error.name, part.leader) for part in told["orders"].partitions}
    assert parts == {0: ("NONE", 1), 1: ("LEADER_NOT_AVAILABLE", -1)}
    assert told["audit"].partitions[0].leader == 1
    assert len(answer.brokers) == 2
    pair.inject("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", topic="audit")
    answer = pair.ask(1, data.MetadataRequest(("audit", "orders")))
    assert [(topic.name, topic.error.name) for topic in answer.topics] == [
        ("audit", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("orders", "NONE"),
    ]


@pytest.mark.parametrize("version", ["0.10", "3.9"])
def test_a_failing_fetch_of_a_follower_keeps_its_session(version: str) -> None:
    """An injected fetch error keeps the fetch session, and other partitions replicate."""
    with Simulation(2, seed=4, kafka_version=version, topics=PAIR) as simulation:
        simulation.produce("orders", "before")
        simulation.run_for(2000)
        injection = simulation.inject(
            "Fetch", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=0, times=None
        )
        simulation.run_for(1000)  # a fetch already waiting at the leader is answered normally
        simulation.produce("orders", "kept", acks=1)
        simulation.produce("audit", "copied", acks=1)
        simulation.run_for(2000)
        assert simulation.partition("audit", 0).high_watermark == 1
        assert simulation.partition("orders", 0).high_watermark == 1
        assert injection.applied > 1
        injection.cancel()
        simulation.run_until(lambda: simulation.partition("orders", 0).high_watermark == 2)


def test_a_delayed_partial_error_comes_late(pair: Simulation) -> None:
    pair.inject("Produce", "INVALID_RECORD", topic="orders", partition=0, delay_ms=300)
    begun_ms = pair.now_ms
    answer = pair.ask(1, produce_request(("orders", 0), ("audit", 0)))
    assert pair.now_ms - begun_ms >= 300
    assert errors_by_partition(answer) == {"orders-0": "INVALID_RECORD", "audit-0": "NONE"}
    assert not pair.runtime.network.interceptors


@pytest.mark.parametrize("runtime", ["live", "threaded"])
def test_real_clients_see_the_error_of_one_partition(runtime: str) -> None:
    with Cluster(2, topics=PAIR, runtime=runtime) as cluster:
        injection = cluster.inject(
            "Produce", "MESSAGE_TOO_LARGE", topic="orders", partition=1, client_id="shop-*"
        )
        told: dict[int, object] = {}
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "client.id": "shop-1"})
        for number in (0, 1):
            producer.produce(
                "orders",
                b"x",
                partition=number,
                on_delivery=lambda error, message: told.update({message.partition() or 0: error}),
            )
        assert producer.flush(10) == 0
        assert told[0] is None
        assert told[1].code() == KafkaError.MSG_SIZE_TOO_LARGE  # type: ignore[attr-defined]
        assert injection.applied == 1
        cluster.inject("Produce", "INVALID_RECORD", times=None)
        cluster.reset()
        assert cluster.injections == []
        assert cluster.failures == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error": 1, "disconnect": True}, "inject takes one of error and disconnect"),
        ({"error": 1, "partition": 0}, "partition=0 needs a topic"),
        ({"error": 1, "nth": 0}, "nth must be a whole number >= 1, not 0"),
        ({"error": {}}, "error must be errors by partition, such as"),
        ({"error": {"orders": 1}}, "error: 'orders' is no partition; write it like"),
        ({"error": {("orders", 0): 1}, "topic": "orders"}, "leave out topic and partition"),
        ({"answer": 5}, "answer must be a function, such as"),
        ({"error": 1, "client_id": 5}, "client_id must be a string, not 5"),
    ],
)
def test_invalid_injections_are_refused(
    pair: Simulation, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        pair.inject("Produce", **options)
    assert pair.injections == []
