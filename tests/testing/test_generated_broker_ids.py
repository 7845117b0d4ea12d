"""Brokers with ``broker.id=-1`` generate their ids at the start and keep them on their disks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakekafka import Cluster, Simulation, UsageError
from fakekafka.protocol.admin import BROKER_RESOURCE, ConfigResource, DescribeConfigsRequest
from fakekafka.protocol.awaiting import RequestTimeout
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.replication.disk.memory_disk import MemoryDisk
from fakekafka.scenarios.file import ScenarioError, parse_scenario
from fakekafka.testing.checks import fully_replicated

GENERATED = {"broker.id": "-1"}
VERSIONS = ("0.10", "1.1", "2.8", "3.9")


def simulated(brokers: int = 3, **options: Any) -> Simulation:
    config = {**GENERATED, **options.pop("config", {})}
    return Simulation(brokers, config=config, trace=False, **options)


@pytest.mark.parametrize("version", VERSIONS)
def test_generated_ids_lead_follow_and_are_kept(version: str) -> None:
    """CP-194: ids start at 1001, by the version of ``/brokers/seqid``; restarts keep them."""
    with simulated(kafka_version=version, topics={"t": 3}) as simulation:
        assert simulation.broker_ids == (1001, 1002, 1003)
        assert simulation.zookeeper.children("/brokers/ids") == ["1001", "1002", "1003"]
        assert {simulation.partition("t", n).leader for n in range(3)} == {1001, 1002, 1003}
        broker = simulation.broker(1002)
        assert (broker.id, broker.name) == (1002, "broker-1002")
        assert "broker-new-1" not in simulation.running.machines()
        assert simulation.produce("t", b"a") == 0
        broker.restart()
        broker.kill()
        simulation.network.isolate("broker-1003")
        simulation.network.heal()
        broker.start()
        simulation.run_until(lambda: fully_replicated(simulation, ["t"]))
        assert simulation.broker_ids == (1001, 1002, 1003)
        assert simulation.failures == []


def test_the_highest_configured_id_bounds_the_generated_ones() -> None:
    """Generated ids start above ``reserved.broker.max.id``; configured ids may not exceed it."""
    with simulated(2, config={"reserved.broker.max.id": 5}) as simulation:
        assert simulation.broker_ids == (6, 7)
    with pytest.raises(UsageError, match=r"broker id 6 is above reserved.broker.max.id, 5"):
        Simulation([6], config={"reserved.broker.max.id": 5})


def test_equal_seeds_give_equal_runs() -> None:
    """Generated ids are deterministic: ZooKeeper allocates them in the order of the requests."""
    runs = [Simulation(3, seed=4, config=GENERATED) for _ in range(2)]
    assert runs[0].fingerprint == runs[1].fingerprint
    assert runs[0]._header()["reproduce"] == "Simulation(brokers=3, seed=4)"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_on_a_new_disk_is_another_broker(version: str) -> None:
    """A broker with a new disk generates a new id, as the old one was stored on the old disk."""
    with simulated(kafka_version=version) as simulation:
        broker = simulation.broker(1002)
        broker.kill()
        simulation.processes[1002].spec.disk = MemoryDisk()
        broker.start()
        assert (broker.id, simulation.broker_ids) == (1004, (1001, 1004, 1003))
        with pytest.raises(UsageError, match=r"no broker 1002; ids are \[1001, 1004, 1003\]"):
            simulation.broker(1002)
        assert simulation.broker(1004).is_alive


@pytest.mark.parametrize(("version", "then"), [("0.10", 1005), ("2.8", 1005), ("3.9", 1004)])
def test_a_broker_killed_before_its_registration_generates_another_id(
    version: str, then: int
) -> None:
    """A broker killed before ``meta.properties`` is written generates its id again. The file is
    written after the registration; since 3.7, before the logs load.
    """
    with simulated(kafka_version=version) as simulation:
        broker, process = simulation.broker(1002), simulation.processes[1002]
        broker.kill()
        process.spec.disk = MemoryDisk()
        broker.start(wait=False)
        assert (broker.state, broker.id) == ("starting", -2)
        assert simulation.broker_ids == (1001, -2, 1003)
        simulation.run_until(lambda: broker.id == 1004)
        node, disk = process.broker, process.spec.disk
        assert node is not None
        if simulation.behaviour.meta_properties_before_logs:
            simulation.run_until(lambda: disk.read_meta_properties() != {})
        else:
            simulation.run_until(lambda: node.metadata_cache.cluster_id != "")
        assert "1004" not in simulation.zookeeper.children("/brokers/ids")
        broker.kill()
        broker.start()
        assert broker.id == then


@pytest.mark.parametrize("end", ["kill", "power_off", "shutdown"])
def test_a_broker_stopped_before_it_knows_its_id_can_be_started_again(end: str) -> None:
    """A broker stopped before it knows its id leaves nothing behind and can be started again."""
    with simulated() as simulation:
        broker = simulation.broker(1003)
        broker.kill()
        simulation.processes[1003].spec.disk = MemoryDisk()
        broker.start(wait=False)
        assert broker.is_alive
        with pytest.raises(UsageError, match="broker-new-3 is already running"):
            broker.start()
        getattr(broker, end)()
        simulation.run_for(1000)
        assert (broker.is_alive, broker.state, broker.id) == (False, "not_running", -3)
        with pytest.raises(KafkaError) as caught:
            simulation.processes[-3].running.result()
        assert caught.value.code is ErrorCode.BROKER_NOT_AVAILABLE
        broker.start()
        assert broker.id in (1004, 1005)
        assert simulation.failures == []


def test_without_zookeeper_no_id_is_found() -> None:
    """A broker that cannot reach ZooKeeper for an id fails to start like any other broker."""
    with simulated() as simulation:
        broker = simulation.broker(1003)
        broker.kill()
        simulation.processes[1003].spec.disk = MemoryDisk()
        simulation.zookeeper.server(1).kill()
        with pytest.raises(RequestTimeout, match="no ZooKeeper server answered within"):
            broker.start()
        assert not broker.is_alive


def test_two_brokers_on_the_disk_of_one() -> None:
    """A second broker with the id of a registered one on its disk does not start."""
    with simulated() as simulation:
        broker = simulation.broker(1003)
        broker.kill()
        disk = MemoryDisk()
        disk.write_meta_properties({"version": "0", "broker.id": "1001"})
        simulation.processes[1003].spec.disk = disk
        with pytest.raises(KafkaError, match="broker-new-3 has the log directories of broker 1001"):
            broker.start()
        assert (broker.is_alive, simulation.broker(1001).is_alive) == (False, True)


def test_a_generated_id_is_no_configuration() -> None:
    """DescribeConfigs returns -1: ``KafkaServer`` sets a field and not the configuration value."""
    with simulated(1) as simulation:
        resource = ConfigResource(BROKER_RESOURCE, "1001")
        request = DescribeConfigsRequest(((resource, ("broker.id",)),))
        (result,) = simulation.ask(1001, request).results
        (entry,) = result.entries
        assert (entry.value, entry.source) == ("-1", 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Simulation([1], config=GENERATED), "brokers names ids, and broker.id=-1"),
        (lambda: Cluster([7, 8], config={"broker.id": -1}), "give their number, brokers=2, or"),
        (
            lambda: simulated(config={"broker.id.generation.enable": False}),
            "broker.id must be greater than or equal to 0, as broker.id.generation.enable is false",
        ),
        (lambda: Cluster(config={"broker.id": 3}), "or let them be generated with -1"),
    ],
)
def test_contradictions_are_refused(make: Callable[[], object], message: str) -> None:
    """Configurations that both give ids and generate them are refused."""
    with pytest.raises(UsageError, match=message):
        make()


def test_a_scenario_names_its_brokers() -> None:
    """A scenario cannot use generated ids, as its faults name brokers before any runs."""
    text = 'name = "ids"\n[cluster]\nbrokers = 2\n[cluster.config]\n"broker.id" = -1\n'
    with pytest.raises(ScenarioError, match=r"broker.id must be left out: name the ids with"):
        parse_scenario(text, "ids.toml")


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["live", "threaded"])
def test_generated_ids_live_in_data_directories(tmp_path: Path, runtime: str) -> None:
    """The n-th broker's directory is ``broker-n``; the id in its ``meta.properties`` counts."""
    options: dict[str, Any] = {"data_dir": tmp_path, "runtime": runtime, "topics": {"t": 2}}
    for _ in range(2):
        with Cluster(2, config=GENERATED, **options) as cluster:
            assert set(cluster.broker_ids) == {1001, 1002}
            cluster.produce("t", b"kept")
            assert len(cluster.bootstrap_servers.split(",")) == 2
            ids = cluster.broker_ids
            leader = cluster.partition("t", 0).leader
            assert leader is not None
            cluster.broker(leader).restart()
    for number, broker_id in enumerate(ids, 1):
        text = (tmp_path / f"broker-{number}" / "meta.properties").read_text()
        assert f"broker.id={broker_id}\n" in text
    with pytest.raises(KafkaError, match=r"Stored node id 100. doesn't match previous node id"):
        Cluster(2, **options).start()


@pytest.mark.slow
def test_a_broker_with_an_id_on_its_disk_generates_none(tmp_path: Path) -> None:
    """A broker with an id on its disk keeps it, as after ``broker.id`` left its settings."""
    with Cluster(2, data_dir=tmp_path, topics={"t": 1}) as cluster:
        cluster.produce("t", b"kept")
    with Cluster(3, config=GENERATED, data_dir=tmp_path) as cluster:
        assert cluster.broker_ids == (1, 2, 1001)
        assert [record.value for record in cluster.consume("t")] == [b"kept"]
