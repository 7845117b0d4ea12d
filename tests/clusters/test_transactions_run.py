"""Transactions in whole clusters: messages, failing coordinators, and refusals."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from fakekafka import Cluster, Simulation
from fakekafka.actors.clients.transactional_producer import SimulatedTransactionalProducer
from fakekafka.protocol.data import READ_COMMITTED, ProducePartition, ProduceRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import (
    DescribeGroupsRequest,
    OffsetCommitPartition,
    OffsetFetchRequest,
)
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.transactions import (
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    TransactionMarker,
    TransactionPartitions,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.one_transaction import write_in_transaction

ORDERS = TopicPartition("orders", 0)
ID = "shop"
E = ErrorCode
CONFIG = {"transaction.state.log.num.partitions": 1, "offsets.topic.num.partitions": 1}
VERSIONS = ("1.1", "2.8", "3.9")


def cluster_of(version: str) -> Simulation:
    """Return three brokers; the leader of the partition is not the coordinator."""
    simulation = Simulation(
        3, kafka_version=version, config=CONFIG, topics={"other": 1}, trace=False
    )
    producer = simulation.transactional_producer("first")
    run(simulation, producer, producer.init_transactions())
    number = coordinator(simulation)
    replicas = [number % 3 + 1, (number + 1) % 3 + 1, number]
    simulation.create_topic("orders", assignment={0: replicas})
    return simulation


def until(simulation: Simulation, condition: Callable[[], object]) -> None:
    """Run the simulation until a condition holds that sends requests to brokers."""
    for _ in range(1000):
        if condition():
            return
        simulation.run_for(50)
    raise AssertionError("the condition did not come to hold")


@pytest.fixture(params=VERSIONS)
def simulation(request: pytest.FixtureRequest) -> Iterator[Simulation]:
    with cluster_of(request.param) as simulation:
        yield simulation
        assert simulation.failures == []


def run(
    simulation: Simulation, producer: SimulatedTransactionalProducer, work: Coroutine[Any, Any, Any]
) -> Any:
    task = producer.start_task(work)
    simulation.run_until(lambda: task.done, 120_000)
    return task.result()


def open_transaction(simulation: Simulation, name: str = ID) -> SimulatedTransactionalProducer:
    """Return a producer that has written a record in an open transaction."""
    producer = simulation.transactional_producer(name)
    run(simulation, producer, write_in_transaction(producer, ORDERS, b"a"))
    return producer


def coordinator(simulation: Simulation) -> int:
    return int(simulation.partition("__transaction_state", 0).leader or 0)


def leader(simulation: Simulation) -> int:
    return int(simulation.partition("orders", 0).leader or 0)


def describe(simulation: Simulation) -> Any:
    request = DescribeTransactionsRequest((ID,))
    return simulation.ask(coordinator(simulation), request).transactions[0]


def committed(simulation: Simulation) -> list[bytes | None]:
    """Return the committed records read within ten seconds."""
    values: list[bytes | None] = []
    reader = simulation.consumer([ORDERS], isolation_level=READ_COMMITTED)
    reader.on_batch = lambda _, batch, __: values.extend(r.value for r in batch.records())
    simulation.run_for(10_000)
    return values


TRANSCRIPT = """\
client -> coordinator: InitProducerIdRequest
client -> coordinator: AddPartitionsToTxnRequest
client -> leader: ProduceRequest
{verification}\
client -> coordinator: EndTxnRequest
coordinator -> leader: WriteTxnMarkersRequest
"""
VERIFICATION = "leader -> coordinator: AddPartitionsToTxnRequest\n"


@pytest.mark.parametrize(
    ("version", "verification"), [("1.1", ""), ("2.8", ""), ("3.9", VERIFICATION)]
)
def test_one_transaction_sends_these_requests_and_markers(version: str, verification: str) -> None:
    """This covers the first request to the marker; since 3.6 the leader verifies the transaction
    first.
    """
    with cluster_of(version) as simulation:
        roles = {
            f"broker-{coordinator(simulation)}": "coordinator",
            f"broker-{leader(simulation)}": "leader",
        }
        seen: list[str] = []

        def note(delivery: Any) -> None:
            kind = type(delivery.message).__name__
            wanted = ("InitProducerId", "AddPartitions", "Produce", "EndTxn", "WriteTxnMarkers")
            if kind.startswith(wanted) and kind.endswith("Request"):
                sender = roles.get(delivery.sender.name, "client")
                seen.append(f"{sender} -> {roles[delivery.target.name]}: {kind}\n")

        simulation.observe(note)
        producer = open_transaction(simulation)
        run(simulation, producer, producer.commit())
        simulation.run_for(100)
        assert "".join(seen) == TRANSCRIPT.format(verification=verification)


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_coordinator_dies_between_the_decision_and_the_markers(
    simulation: Simulation, is_commit: bool
) -> None:
    """DP-134: its successor finds the decision in the log, and completes the transaction."""
    producer = open_transaction(simulation)
    first = coordinator(simulation)
    held = simulation.network.hold(lambda d: isinstance(d.message, WriteTxnMarkersRequest))
    run(simulation, producer, producer.commit() if is_commit else producer.abort())
    simulation.run_until(lambda: bool(held.messages))
    assert describe(simulation).state == ("PrepareCommit" if is_commit else "PrepareAbort")
    simulation.broker(first).kill()
    held.end()
    simulation.run_until(lambda: coordinator(simulation) not in (0, first), 60_000)
    word = "CompleteCommit" if is_commit else "CompleteAbort"
    until(simulation, lambda: describe(simulation).state == word)
    assert committed(simulation) == ([b"a"] if is_commit else [])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_coordinator_that_starts_alone_sends_markers_when_the_leaders_return(
    version: str,
) -> None:
    """All brokers are killed between the decision and the markers. The first to return is
    controller and coordinator, and learns last of partitions without a live replica.
    """
    with cluster_of(version) as simulation:
        first = coordinator(simulation)
        others = [broker for broker in simulation.broker_ids if broker != first]
        simulation.delete_topic("orders")
        simulation.run_until(lambda: "orders" not in simulation.topics())
        simulation.create_topic("orders", assignment={0: others})
        producer = open_transaction(simulation)
        hold = simulation.network.hold(
            lambda delivery: isinstance(delivery.message, WriteTxnMarkersRequest)
        )
        producer.start_task(producer.commit())
        simulation.run_until(lambda: hold.messages)
        for broker in simulation.broker_ids:
            simulation.broker(broker).kill(expire_session=True)
        hold.end()
        simulation.broker(first).start()
        simulation.run_for(20_000)
        assert describe(simulation).state == "PrepareCommit"
        for broker in others:
            simulation.broker(broker).start()
        until(simulation, lambda: describe(simulation).state == "CompleteCommit")
        assert committed(simulation) == [b"a"]


@pytest.mark.parametrize(("version", "hangs"), [("1.1", True), ("2.8", True), ("3.9", False)])
def test_a_batch_after_the_end_of_its_transaction_opens_another_unless_verified(
    version: str, hangs: bool
) -> None:
    """KIP-890: the late batch opened a transaction that was never ended, at which readers got
    stuck.
    """
    with cluster_of(version) as simulation:
        producer = open_transaction(simulation)
        run(simulation, producer, producer.abort())
        until(simulation, lambda: describe(simulation).state == "CompleteAbort")
        found = describe(simulation)
        batch = build_batch(
            [Record(0, 0, None, b"late", ())],
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            base_sequence=1,
            is_transactional=True,
        )
        request = ProduceRequest(-1, 30_000, (ProducePartition(ORDERS, batch),), ID)
        answer = simulation.ask(leader(simulation), request)
        assert answer is not None
        assert answer.partitions[0].error is (E.NONE if hangs else E.TRANSACTION_ABORTABLE)
        simulation.producer().produce(ORDERS, b"behind")
        assert committed(simulation) == ([] if hangs else [b"behind"])


def test_verification_can_be_switched_off() -> None:
    """Without ``transaction.partition.verification.enable`` nothing is verified or refused."""
    with Simulation(
        1,
        config={**CONFIG, "transaction.partition.verification.enable": "false"},
        topics={"orders": 1},
        trace=False,
    ) as simulation:
        asked: list[Any] = []
        simulation.observe(lambda d: asked.append(d.message))
        batch = build_batch(
            [Record(0, 0, None, b"x", ())],
            producer_id=5,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        request = ProduceRequest(-1, 30_000, (ProducePartition(ORDERS, batch),), ID)
        answer = simulation.ask(1, request)
        assert answer is not None
        assert answer.partitions[0].error is E.NONE
        assert not [m for m in asked if isinstance(m, AddPartitionsToTxnRequest)]


def test_offsets_count_when_the_transaction_commits(simulation: Simulation) -> None:
    """KIP-98: until then offsets are pending, which is an error for clients that require stable
    ones (KIP-447).
    """
    told = E.UNSTABLE_OFFSET_COMMIT if simulation.behaviour.stable_offset_fetch else -1
    producer = open_transaction(simulation)

    def fetched(require_stable: bool = False) -> Any:
        number = int(simulation.partition("__consumer_offsets", 0).leader or 0)
        request = OffsetFetchRequest("group", (ORDERS,), require_stable)
        found = simulation.ask(number, request).partitions[0]
        return found.offset if found.error is E.NONE else found.error

    run(simulation, producer, producer.send_offsets("group", {ORDERS: 7}))
    assert (fetched(), fetched(True)) == (-1, told)
    run(simulation, producer, producer.abort())
    until(simulation, lambda: fetched(True) == -1)

    async def again() -> None:
        producer.begin()
        await producer.send_offsets("group", {ORDERS: 9})
        await producer.commit()

    run(simulation, producer, again())
    until(simulation, lambda: fetched(True) == 9)


def test_pending_offsets_survive_their_coordinator(simulation: Simulation) -> None:
    """The group's next coordinator loads them, and the marker commits them."""
    producer = open_transaction(simulation)
    run(simulation, producer, producer.send_offsets("group", {ORDERS: 7}))
    first = int(simulation.partition("__consumer_offsets", 0).leader or 0)
    simulation.broker(first).kill()
    run(simulation, producer, producer.commit())

    def fetched() -> Any:
        number = simulation.partition("__consumer_offsets", 0).leader
        if number in (None, first):
            return None
        found = simulation.ask(int(number), OffsetFetchRequest("group", (ORDERS,), True))
        return found.partitions[0].offset if found.partitions else found.error

    until(simulation, lambda: fetched() == 7)


def test_offsets_outside_of_the_transaction_are_refused_since_verification() -> None:
    """KIP-890: the partition of the group was not added to the transaction."""
    with cluster_of("3.9") as simulation:
        producer = open_transaction(simulation)
        run(simulation, producer, producer.send_offsets("group", {ORDERS: 7}))
        run(simulation, producer, producer.commit())
        until(simulation, lambda: describe(simulation).state == "CompleteCommit")
        found = describe(simulation)
        request = TxnOffsetCommitRequest(
            ID,
            "group",
            found.producer_id,
            found.producer_epoch,
            (OffsetCommitPartition(ORDERS, 9), OffsetCommitPartition(TopicPartition("no", 0), 1)),
        )
        number = int(simulation.partition("__consumer_offsets", 0).leader or 0)
        assert dict(simulation.ask(number, request).partitions) == {
            ORDERS: E.TRANSACTION_ABORTABLE,
            ("no", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
        }


def test_a_group_exists_although_its_offsets_were_refused() -> None:
    """KIP-890: GroupCoordinator.handleTxnCommitOffsets adds the group before the verification."""
    with cluster_of("3.9") as simulation:
        producer = open_transaction(simulation)
        run(simulation, producer, producer.send_offsets("group", {ORDERS: 7}))
        stranger = TxnOffsetCommitRequest(
            "nobody", "other group", 1000, 0, (OffsetCommitPartition(ORDERS, 9),)
        )
        number = int(simulation.partition("__consumer_offsets", 0).leader or 0)
        answer = simulation.ask(number, stranger)
        assert dict(answer.partitions) == {ORDERS: E.INVALID_PRODUCER_ID_MAPPING}
        told = simulation.ask(number, DescribeGroupsRequest(("other group", "third group")))
        assert [group.state for group in told.groups] == ["Empty", "Dead"]


def test_one_unknown_partition_keeps_all_partitions_out_of_the_transaction(
    simulation: Simulation,
) -> None:
    """The other partitions get OPERATION_NOT_ATTEMPTED."""
    open_transaction(simulation)
    found = describe(simulation)
    names = (ORDERS, TopicPartition("no", 0))
    asked = TransactionPartitions(ID, found.producer_id, found.producer_epoch, names)
    answer = simulation.ask(coordinator(simulation), AddPartitionsToTxnRequest((asked,)))
    assert dict(answer.results[0].partitions) == {
        ORDERS: E.OPERATION_NOT_ATTEMPTED,
        names[1]: E.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_markers_of_old_epochs_or_at_the_wrong_broker_are_refused(simulation: Simulation) -> None:
    """The epoch of the producer or coordinator is old, or the broker does not lead the
    partition.
    """
    producer = open_transaction(simulation)
    run(simulation, producer, producer.commit())
    until(simulation, lambda: describe(simulation).state == "CompleteCommit")
    found = describe(simulation)
    number = leader(simulation)
    nowhere = TopicPartition("no", 0)

    def write(broker_id: int, epoch: int, coordinator_epoch: int, *names: TopicPartition) -> Any:
        marker = TransactionMarker(found.producer_id, epoch, False, names, coordinator_epoch)
        answer = simulation.ask(broker_id, WriteTxnMarkersRequest((marker,)))
        return dict(answer.markers[0][1])

    epoch = found.producer_epoch
    assert write(number, epoch - 1, 99, ORDERS) == {ORDERS: E.INVALID_PRODUCER_EPOCH}
    assert write(number, epoch, -1, ORDERS) == {ORDERS: E.TRANSACTION_COORDINATOR_FENCED}
    assert write(number % 3 + 1, epoch, 99, ORDERS) == {ORDERS: E.NOT_LEADER_OR_FOLLOWER}
    assert write(number, epoch, 99, ORDERS, nowhere) == {
        ORDERS: E.NONE,
        nowhere: E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert simulation.ask(number, WriteTxnMarkersRequest(())).markers == ()


def test_a_partition_named_twice_gets_one_marker(simulation: Simulation) -> None:
    """Kafka collects partitions in a map (``KafkaApis.handleWriteTxnMarkersRequest``)."""
    producer = open_transaction(simulation)
    run(simulation, producer, producer.commit())
    until(simulation, lambda: describe(simulation).state == "CompleteCommit")
    found = describe(simulation)
    end = simulation.partition("orders", 0).log_end_offset
    marker = TransactionMarker(
        found.producer_id, found.producer_epoch, False, (ORDERS, ORDERS, ORDERS), 99
    )
    answer = simulation.ask(leader(simulation), WriteTxnMarkersRequest((marker,)))
    assert answer.markers == ((found.producer_id, ((ORDERS, E.NONE),)),)
    assert simulation.partition("orders", 0).log_end_offset == end + 1


def test_descriptions_of_producers_and_transactions(simulation: Simulation) -> None:
    """KIP-664: an administrator sees an open transaction."""
    open_transaction(simulation)
    found = describe(simulation)
    assert (found.state, found.partitions, found.timeout_ms) == ("Ongoing", (ORDERS,), 60_000)
    number = leader(simulation)
    version = simulation.behaviour.kafka_version
    names = (ORDERS, TopicPartition("no", 0), TopicPartition("..", 0))
    described = simulation.ask(number, DescribeProducersRequest(names)).partitions
    assert [d.error for d in described] == [
        E.NONE,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        # Before 3.9 the name is not looked at (2.8.2: ``ReplicaManager.getPartitionOrError``).
        E.INVALID_TOPIC_EXCEPTION if version == "3.9" else E.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    (active,) = described[0].producers
    assert (active.producer_id, active.producer_epoch) == (found.producer_id, found.producer_epoch)
    assert (active.last_sequence, active.transaction_start_offset) == (0, 0)
    other = simulation.ask(number % 3 + 1, DescribeProducersRequest((ORDERS,))).partitions[0]
    assert other.error is E.NONE
    assert other.producers == described[0].producers
    listed = simulation.ask(coordinator(simulation), ListTransactionsRequest()).transactions
    states = {transaction.transactional_id: transaction.state for transaction in listed}
    assert states == {"first": "Empty", ID: "Ongoing"}


@pytest.mark.parametrize(
    ("version", "error"), [("1.1", E.NONE), ("2.8", E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)]
)
def test_a_transactional_batch_in_a_request_without_id(version: str, error: ErrorCode) -> None:
    """It is refused since 2.2, whatever the rights of the client."""
    batch = build_batch(
        [Record(0, 0, None, b"x", ())],
        producer_id=5,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    body = (
        struct.pack(">hhi", -1, -1, 5000)
        + struct.pack(">ih6s", 1, 6, b"orders")
        + struct.pack(">iii", 1, 0, len(batch))
        + batch
    )
    request = struct.pack(">hhih1s", 0, 3, 1, 1, b"c") + body
    with Cluster(1, kafka_version=version, topics={"orders": 1}) as cluster:
        host, port = cluster.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port)), 30) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.recv(1000)
    assert struct.unpack_from(">h", answer, 4 + 4 + 4 + 8 + 4 + 4) == (error,)
