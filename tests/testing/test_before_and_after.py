"""What a cluster answers before its start and after its stop."""

from __future__ import annotations

import concurrent.futures
import errno
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fakekafka import Cluster, KafkaError, Simulation, UsageError
from fakekafka.protocol.errors import ErrorCode
from fakekafka.wire.kafka.tcp_listener import TcpListener

USES: dict[str, Callable[[Any], object]] = {
    "a handle of a broker": lambda cluster: cluster.broker(1),
    "the controller": lambda cluster: cluster.controller.id,
    "ZooKeeper": lambda cluster: cluster.zookeeper.tree(),
    "the network": lambda cluster: cluster.network.latency(1),
    "a topic": lambda cluster: cluster.create_topic("t"),
    "the list of topics": lambda cluster: cluster.topics(),
    "a partition": lambda cluster: cluster.partition("t", 0),
    "records": lambda cluster: cluster.records("t", 0),
    "the bytes of a log": lambda cluster: cluster.log_bytes("t", 0, 1),
    "produce": lambda cluster: cluster.produce("t", "value"),
    "consume": lambda cluster: cluster.consume("t"),
    "inject": lambda cluster: cluster.inject("Produce", error="NOT_LEADER_OR_FOLLOWER"),
    "observe": lambda cluster: cluster.observe(print),
    "reset": lambda cluster: cluster.reset(),
    "its addresses": lambda cluster: cluster.bootstrap_servers,
    "the addresses of ZooKeeper": lambda cluster: cluster.zookeeper_connect,
}


def stopped(**options: Any) -> Cluster:
    with Cluster(brokers=1, topics={"t": 1}, **options) as cluster:
        assert cluster.broker(1).is_alive
    return cluster


@pytest.fixture(scope="module", params=["live", "threaded"])
def over(request: pytest.FixtureRequest) -> Cluster:
    return stopped(runtime=request.param)


@pytest.mark.parametrize("what", USES)
def test_using_a_cluster_before_its_start_is_an_error_that_says_how_to_start_it(what: str) -> None:
    with pytest.raises(UsageError, match=r"is not started; use `with Cluster\(\) as cluster:`"):
        USES[what](Cluster(brokers=1))


@pytest.mark.parametrize("what", USES)
def test_using_a_stopped_cluster_is_an_error(over: Cluster, what: str) -> None:
    with pytest.raises(UsageError, match="the cluster has been stopped"):
        USES[what](over)


def test_a_stopped_cluster_can_be_stopped_again_and_keeps_its_failures(over: Cluster) -> None:
    """A stopped cluster can be stopped again and still has its ``failures``."""
    over.stop()
    assert over.failures == []
    with pytest.raises(AttributeError, match="'Cluster' object has no attribute 'brokers'"):
        _ = over.brokers  # type: ignore[attr-defined]


def test_handles_outlive_their_cluster() -> None:
    with Cluster(brokers=1) as cluster:
        broker = cluster.broker(1)
    assert (broker.is_alive, broker.state) == (False, "not_running")
    for use in (broker.kill, broker.start, broker.shutdown, broker.pause):
        with pytest.raises(UsageError, match="the cluster has been stopped"):
            use()


def test_a_stopped_cluster_can_be_started_again() -> None:
    """A stopped cluster restarts as a new one, with new handles and empty memory."""
    cluster = stopped()
    with cluster:
        assert cluster.broker(1).is_alive
        assert cluster.topics() == ["t"]
        cluster.produce("t", "value")
        assert [record.offset for record in cluster.consume("t")] == [0]


@pytest.mark.parametrize(
    "go_on",
    [
        lambda simulation: simulation.run_for(10),
        lambda simulation: simulation.run_until(lambda: True),
        lambda simulation: simulation.wait_until(lambda: False),
        lambda simulation: simulation.step(),
        lambda simulation: simulation.produce("t", "value"),
        lambda simulation: simulation.consume("t"),
        lambda simulation: simulation.create_topic("u"),
        lambda simulation: simulation.start(),
        lambda simulation: simulation.broker(1).kill(),
        lambda simulation: simulation.broker(1).power_off(),
        lambda simulation: simulation.broker(1).shutdown(),
        lambda simulation: simulation.broker(1).start(),
        lambda simulation: simulation.broker(1).pause(),
        lambda simulation: simulation.broker(1).resume(),
        lambda simulation: simulation.zookeeper.server(1).kill(),
        lambda simulation: simulation.network.heal(),
        lambda simulation: simulation.network.drop(0.5),
        lambda simulation: simulation.inject("Produce", error="NOT_CONTROLLER"),
        lambda simulation: simulation.observe(print),
        lambda simulation: simulation.producer(),
        lambda simulation: simulation.consumer([("t", 0)]),
    ],
)
def test_a_stopped_simulation_can_be_read_but_not_run(
    go_on: Callable[[Simulation], object],
) -> None:
    with Simulation(1, topics={"t": 1}) as simulation:
        simulation.produce("t", "value")
        events = len(simulation.events)
    with pytest.raises(UsageError, match=r"simulation has been stopped .* make a new one"):
        go_on(simulation)
    assert [record.value for record in simulation.records("t", 0)] == [b"value"]
    assert simulation.topics() == ["t"]
    assert len(simulation.events) == events


@pytest.fixture
def port_in_use() -> Iterator[int]:
    """Return a port of 127.0.0.1 that another socket listens on."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def test_a_port_in_use_is_an_os_error(port_in_use: int) -> None:
    """A port in use raises an OSError, as documented, which is also a UsageError with advice."""
    options: list[dict[str, Any]] = [{"ports": [port_in_use]}, {"zookeeper_ports": [port_in_use]}]
    for fixed in options:
        with pytest.raises(
            OSError, match=rf"listen on 127\.0\.0\.1:{port_in_use}: .*free port"
        ) as raised:
            Cluster(brokers=1, **fixed).start()
        assert raised.value.errno == errno.EADDRINUSE
        assert isinstance(raised.value, UsageError)


@pytest.mark.parametrize("runtime", ["live", "threaded"])
def test_a_broker_that_ends_while_its_cluster_stops_keeps_no_port(
    runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that ends while its cluster stops also releases the port kept for its restart."""
    cluster = Cluster(2, runtime=runtime).start()
    ports = [cluster.broker(broker_id).port for broker_id in (1, 2)]
    running = cluster.running
    stop = running.runtime.stop

    def stop_late() -> None:
        process = running.processes[1]
        running.runtime.run_in(process.process, process.kill)
        listener = running.processes[2].spec.listener
        assert isinstance(listener, TcpListener)
        listener.bind(2)
        listener.serve()
        stop()

    monkeypatch.setattr(running.runtime, "stop", stop_late)
    cluster.stop()
    for port in ports:
        with socket.socket() as other:
            other.bind(("127.0.0.1", port))


def test_stopping_a_cluster_ends_waiting_calls_at_once() -> None:
    """``stop`` ends waiting calls at once with an error, before their own timeouts."""
    cluster = Cluster(2).start()
    controller_id = cluster.controller.id
    assert controller_id is not None
    other = cluster.broker(3 - controller_id)
    cluster.broker(controller_id).pause()
    calls: list[Callable[[], object]] = [lambda: cluster.create_topic("t"), other.shutdown]
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        waiting = [pool.submit(call) for call in calls]
        cluster.wait_until(
            lambda: other.state == "pending_controlled_shutdown" and cluster.running._waiting
        )
        cluster.stop()
        for call in waiting:
            with pytest.raises(UsageError, match="the cluster has been stopped"):
                call.result(5)


def test_shutting_down_a_broker_that_is_killed_meanwhile_is_an_error() -> None:
    """``shutdown`` raises an error if the broker is killed before its shutdown completes."""
    with Simulation(2, topics={"t": {"assignment": {0: [1, 2]}}}) as simulation:
        simulation.network.isolate(1)
        simulation.runtime.call_later(None, 5_000_000, simulation.running.processes[1].kill)
        with pytest.raises(KafkaError, match=r"broker-1 was killed before .* shutdown") as raised:
            simulation.broker(1).shutdown()
    assert raised.value.code is ErrorCode.BROKER_NOT_AVAILABLE
