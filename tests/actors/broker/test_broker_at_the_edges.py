"""Brokers that have just started, or whose ZooKeeper session ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka import KafkaError, Simulation
from fakekafka.protocol.admin import CreateTopicsRequest, NewTopic
from fakekafka.protocol.control import UpdateMetadataRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import RecordBatch, build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import EndPoint, TopicPartition
from fakekafka.replication.log.follower_append import append_as_follower
from fakekafka.tests.support.present import present
from fakekafka.zkfake.messages import ZkCode, ZooKeeperError

SESSION_MS = 6000


class SpyListener:
    """Records the topics that the broker knows when it starts to serve clients."""

    def __init__(self, simulation: Simulation, broker_id: int) -> None:
        self.process = simulation.processes[broker_id]
        self.simulation = simulation
        self.served: list[tuple[list[str], float]] = []

    def bind(self, broker_id: int) -> tuple[EndPoint, ...]:
        return (EndPoint("h", 9092),)

    def serve(self) -> None:
        assert self.process.broker is not None
        topics = sorted(self.process.broker.metadata_cache.topics())
        self.served.append((topics, self.simulation.now_ms))

    def close(self) -> None:
        pass

    def lose_power(self) -> None:
        pass

    def enforce(self, quotas: object) -> None:
        pass


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    config = {"zookeeper.session.timeout.ms": str(SESSION_MS)}
    with Simulation(3, seed=3, topics={"a": 2, "b": 1}, config=config) as simulation:
        yield simulation
        assert simulation.failures == []


def restarted(simulation: Simulation, broker_id: int) -> SpyListener:
    spy = SpyListener(simulation, broker_id)
    simulation.broker(broker_id).kill()
    simulation.processes[broker_id].spec.listener = spy
    simulation.broker(broker_id).start()
    return spy


@pytest.mark.parametrize("role", ["controller", "other"])
def test_clients_are_let_in_when_every_topic_is_known(simulation: Simulation, role: str) -> None:
    """A restarted broker serves clients only once it knows every topic."""
    controller = simulation.controller.id
    broker_id = next(b for b in (1, 2, 3) if (b == controller) is (role == "controller"))
    spy = restarted(simulation, broker_id)
    simulation.run_until(lambda: spy.served)
    simulation.run_for(2 * SESSION_MS)
    ((topics, _),) = spy.served
    assert topics == ["a", "b"]


def test_clients_are_let_in_after_a_timeout_if_no_controller_sends_metadata(
    simulation: Simulation,
) -> None:
    """A broker without metadata serves clients after two session timeouts."""
    broker_id = next(b for b in (1, 2, 3) if b != simulation.controller.id)
    name = f"broker-{broker_id}"
    simulation.network.hold(
        lambda delivery: (
            isinstance(delivery.message, UpdateMetadataRequest) and delivery.target.name == name
        )
    )
    spy = restarted(simulation, broker_id)
    started_ms = simulation.now_ms
    simulation.run_until(lambda: spy.served)
    ((topics, served_ms),) = spy.served
    assert topics == []
    assert served_ms == pytest.approx(started_ms + 2 * SESSION_MS, abs=50)
    simulation.network.release()


def ask(simulation: Simulation, request: Any) -> Any:
    name = f"broker-{simulation.controller.id}"

    async def asked() -> Any:
        return await simulation.running.admin.ask(name, request)

    return simulation.call(asked, 60_000)


def ending(*_arguments: Any, **_options: Any) -> Any:
    raise ZooKeeperError(ZkCode.SESSIONEXPIRED, "/config/brokers/1")


def test_a_session_that_ends_under_a_request_is_no_bug(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request whose session ends gets UNKNOWN_SERVER_ERROR, as in Kafka, and is no failure."""
    controller = simulation.processes[simulation.controller.id or 0].broker
    assert controller is not None
    monkeypatch.setattr(controller.admin.topics, "create_topics", ending)
    with pytest.raises(KafkaError, match="SESSIONEXPIRED") as raised:
        ask(simulation, CreateTopicsRequest((NewTopic("c", 1, 1),), 1000))
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_topic_that_zookeeper_refuses_fails_alone(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If ZooKeeper refuses one topic, only that topic gets UNKNOWN_SERVER_ERROR."""
    controller = simulation.processes[simulation.controller.id or 0].broker
    assert controller is not None

    async def refuses(*_arguments: Any, **_options: Any) -> None:
        raise ZooKeeperError(ZkCode.NOAUTH, "/config/topics/c")

    monkeypatch.setattr(type(controller.zk.admin), "set_or_create_entity_configs", refuses)
    request = CreateTopicsRequest((NewTopic("c", 1, 1), NewTopic("a", 1, 1)), 1000)
    results = [(r.name, r.error) for r in ask(simulation, request).topics]
    assert results == [("c", ErrorCode.UNKNOWN_SERVER_ERROR), ("a", ErrorCode.TOPIC_ALREADY_EXISTS)]


def test_a_log_that_cannot_be_compacted_is_named_in_one_line(
    simulation: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    """A log that cannot be compacted is logged in one line with its reason, and is no failure."""
    name = TopicPartition("a", 0)
    leader = present(simulation.partition(*name).leader)
    broker = present(simulation.processes[leader].broker)
    assert broker is not None
    log = present(present(broker.replica_manager.hosted.partition(name)).log)
    simulation.alter_config("a", {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
    data = bytearray(build_batch([Record(0, 0, b"k", b"v")]))
    data[57:61] = (9).to_bytes(4, "big")
    append_as_follower(log, [RecordBatch(bytes(data), 0, 0)], int(simulation.now_ms))
    log.roll()
    log.update_high_watermark(1)
    caplog.clear()
    simulation.run_for(40000)
    lines = [r.getMessage() for r in caplog.records if "clean" in r.getMessage()]
    assert len(lines) == 1
    assert "a-0" in lines[0]
    assert "MalformedRecords" in lines[0]
