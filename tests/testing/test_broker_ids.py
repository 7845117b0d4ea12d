"""Brokers have the ids they are given, including 0, gaps and any order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakekafka import Cluster, Simulation, UsageError
from fakekafka.scenarios.file import ScenarioError, parse_scenario
from fakekafka.scenarios.run import ScenarioRun
from fakekafka.testing.checks import fully_replicated

QUICK = {"replica.lag.time.max.ms": 2000, "zookeeper.session.timeout.ms": 3000}


def test_ids_from_0_lead_follow_control_and_fail_over() -> None:
    """Broker 0 is a broker like any other, as controller, leader, follower and in every view."""
    with Simulation([0, 1, 2], config=QUICK) as simulation:
        simulation.create_topic("orders", assignment={0: [0, 1, 2], 1: [1, 0, 2]})
        assert simulation.broker_ids == (0, 1, 2)
        assert simulation.controller.id == 0
        assert simulation.broker(0).name == "broker-0"
        assert simulation.partition("orders", 0).leader == 0
        assert simulation.produce("orders", [b"a", b"b"]) == 0
        simulation.broker(0).kill()
        simulation.run_until(lambda: simulation.partition("orders", 0).leader == 1)
        simulation.run_until(lambda: simulation.controller.id in (1, 2))
        simulation.produce("orders", b"c")
        simulation.broker(0).start()
        simulation.run_until(lambda: fully_replicated(simulation, ["orders"]))
        assert simulation.elect_leaders(partitions=[("orders", 0)]) != {}
        simulation.run_until(lambda: simulation.partition("orders", 0).leader == 0)
        assert [r.value for r in simulation.consume("orders")] == [b"a", b"b", b"c"]


def test_ids_with_gaps_keep_their_order() -> None:
    """Racks and machines follow the order of the list of ids, and its first broker starts first."""
    with Simulation([7, 3], racks=["east", "west"], topics={"t": 2}) as simulation:
        assert simulation.controller.id == 7
        assert json.loads(simulation.zookeeper.get("/brokers/ids/7") or b"")["rack"] == "east"
        assert json.loads(simulation.zookeeper.get("/brokers/ids/3") or b"")["rack"] == "west"
        assert {simulation.partition("t", n).leader for n in (0, 1)} == {3, 7}
        simulation.reassign_partitions({("t", 0): [3]})
        simulation.run_until(lambda: simulation.partition("t", 0).replicas == (3,))
        simulation.network.isolate(7)
        simulation.run_until(lambda: simulation.controller.id == 3)
        assert simulation._header()["reproduce"] == "Simulation(brokers=[7, 3], seed=0)"
        with pytest.raises(UsageError, match=r"there is no broker 1; ids are \[7, 3\]"):
            simulation.broker(1)


def test_a_number_of_brokers_and_the_list_of_their_ids_are_the_same_cluster() -> None:
    """``brokers=3`` and ``brokers=[1, 2, 3]`` give the same run for the same seed."""
    with Simulation(3, seed=5, topics={"t": 3}) as counted:
        with Simulation([1, 2, 3], seed=5, topics={"t": 3}) as listed:
            assert counted.fingerprint == listed.fingerprint
        assert counted._header()["reproduce"] == "Simulation(brokers=3, seed=5)"


@pytest.mark.slow
def test_a_cluster_of_chosen_ids_keeps_its_data_and_is_reset(tmp_path: Path) -> None:
    """Ports, data directories, restart and reset use the chosen ids."""
    ids = [0, 5]
    with Cluster(ids, data_dir=tmp_path, topics={"t": 2}) as cluster:
        ports = [cluster.broker(broker_id).port for broker_id in ids]
        assert cluster.bootstrap_servers == ",".join(f"127.0.0.1:{port}" for port in ports)
        cluster.produce("t", b"kept")
    assert {path.name for path in tmp_path.iterdir()} == {"broker-0", "broker-5", "zookeeper-1"}
    assert "broker.id=0" in (tmp_path / "broker-0" / "meta.properties").read_text()
    with Cluster(ids, data_dir=tmp_path, ports=ports) as cluster:
        assert cluster.broker(5).port == ports[1]
        assert [record.value for record in cluster.consume("t")] == [b"kept"]
        cluster.broker(0).kill()
        cluster.reset()
        assert cluster.topics() == []
        assert cluster.broker(0).state == "running"


@pytest.mark.parametrize(
    ("brokers", "message"),
    [
        ([], "a cluster needs at least one broker, and brokers names none"),
        ([1, 2, 1], "brokers names 1 twice: every broker has an id of its own"),
        ([1, -1], r"brokers\[1\] must be a whole number from 0 to 2,147,483,647, not -1"),
        (
            [1, 1 << 31],
            r"brokers\[1\] must be a whole number from 0 to 2,147,483,647, not 2147483648",
        ),
        ([1.5], "brokers must be a whole number, or a list of broker ids"),
        ("12", "brokers must be a whole number, or a list of broker ids"),
        (True, "brokers must be a whole number, or a list of broker ids"),
        (0, "a cluster needs at least one broker, not 0"),
        ([3, 1001], "broker id 1001 is above reserved.broker.max.id, 1000"),
    ],
)
def test_ids_that_no_broker_can_have_are_refused(brokers: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Simulation(brokers)


@pytest.mark.parametrize(
    "config", [{"broker.id.generation.enable": False}, {"reserved.broker.max.id": 2000}]
)
def test_high_ids_need_room_above_the_reserved_ones(config: dict[str, Any]) -> None:
    """As in Kafka, ids above ``reserved.broker.max.id`` are kept for generated ids."""
    with Simulation([1001], config=config) as simulation:
        assert simulation.controller.id == 1001


SCENARIO = """
[cluster]
brokers = [0, 4]
[cluster.topics.orders]
assignment = [[0, 4]]
[workload]
rate_per_s = 50
[[faults]]
at_ms = 500
action = "kill"
broker = 0
[[faults]]
at_ms = 30000
action = "start"
broker = 0
[[expect]]
at_ms = 20000
that = "leader('orders', 0) == 4 and alive_brokers == [4] and controller == 4"
[stop]
at_ms = 31000
"""


def test_a_scenario_names_the_ids() -> None:
    """Faults, assignments and conditions of a scenario file use the chosen ids."""
    run = ScenarioRun(parse_scenario(SCENARIO, "ids.toml"), seed=1)
    assert run.run().problems == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("brokers = [1, 1]", "cluster.brokers: brokers names 1 twice"),
        ("brokers = []", "cluster.brokers: a cluster needs at least one broker"),
        ("brokers = [1, 2, 3]", r"assignment\[0\]: no broker 0; ids are 1 to 3"),
        ("brokers = [1, 4]", r"assignment\[0\]: no broker 0; ids are 1, 4"),
    ],
)
def test_a_scenario_with_unknown_broker_ids_is_refused(line: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(SCENARIO.replace("brokers = [0, 4]", line), "ids.toml")


def test_an_unknown_machine_is_refused_with_the_known_ones() -> None:
    text = SCENARIO + '[[faults]]\nat_ms = 1\naction = "isolate"\nmachine = "broker-3"\n'
    with pytest.raises(ScenarioError, match="no machine 'broker-3'; there are broker-0, broker-4"):
        parse_scenario(text, "ids.toml")


def test_records_of_a_leader_whose_id_is_0_are_waited_for() -> None:
    """``wait_for_records`` works with leader id 0."""
    with Simulation([0, 1, 2], config=QUICK, trace=False) as simulation:
        simulation.create_topic("orders", assignment={0: [0, 1, 2]})
        simulation.produce("orders", ["a", "b"])
        found = simulation.wait_for_records("orders", 2)
        assert [record.value for record in found] == [b"a", b"b"]
