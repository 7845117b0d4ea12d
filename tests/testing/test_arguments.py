"""Arguments of wrong types and values are refused by name where given, and reach no broker."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fakekafka import Cluster, Simulation, UsageError
from fakekafka.actors.network.costs import Costs
from fakekafka.protocol.errors import KafkaError
from fakekafka.protocol.versions import behaviour

NAN, INFINITY = math.nan, math.inf
SHAPES = "create_topic has no argument 'partition'; did you mean 'partitions'?"

BOTH: list[tuple[Callable[[Any], object], str]] = [
    (lambda c: c.create_topic("x", partitions="3"), "partitions must be a whole number, not '3'"),
    (lambda c: c.create_topic("x", partitions=None), "partitions must be a whole number, not None"),
    (lambda c: c.create_topic("x", partitions=2.5), "partitions must be a whole number, not 2.5"),
    (lambda c: c.create_topic("x", partitions=True), "partitions must be a whole number, not True"),
    (lambda c: c.create_topic("x", replication_factor="2"), "replication_factor must be a whole"),
    (lambda c: c.create_topic(5), "name must be a string, not 5"),
    (lambda c: c.create_topic("x", config=["a"]), "config must be a mapping of Kafka's names"),
    (lambda c: c.create_topic("x", config={"a": None}), "config.a must be a string, a number, "),
    (lambda c: c.create_topic("x", assignment={0: 1}), "assignment[0] must be a list of brok"),
    (lambda c: c.create_topic("x", assignment={0: ["1"]}), "assignment[0][0] must be a whole"),
    (lambda c: c.create_topic("x", assignment={"0": [1]}), "has the key '0', which is no"),
    (
        lambda c: c.create_topic("x", assignment={0: [1], 1: [8, 9]}),
        "assignment [8, 9] of x-1 names no broker",
    ),
    (lambda c: c.create_topics([]), "names must be a list of names, such as ['orders'"),
    (lambda c: c.create_topics("abc"), "names must be a list of names, such as ['orders'"),
    (lambda c: c.delete_topic(None), "name must be a string, not None"),
    (lambda c: c.create_partitions("o", "5"), "count must be a whole number, not '5'"),
    (lambda c: c.create_partitions("o", 5, [1]), "assignment[0] must be a list of broker ids"),
    (lambda c: c.alter_config("o", "a=b"), "config must be a mapping of Kafka's names"),
    (lambda c: c.alter_config(1, {}), "topic must be a string, not 1"),
    (lambda c: c.elect_leaders("clean"), "election must be 'preferred' or 'unclean', not 'clean'"),
    (lambda c: c.elect_leaders("unclean", "o"), "partitions must be a list of partitions, such as"),
    (lambda c: c.elect_leaders("unclean", ["o"]), "partitions[0] must be a partition, such as"),
    (
        lambda c: c.reassign_partitions({("o", 0): ["1"]}),
        "targets.o-0[0] must be a whole number, not '1'",
    ),
    (lambda c: c.reassign_partitions({"o": [1]}), "targets: 'o' is no partition; write it"),
    (lambda c: c.reassign_partitions([1]), "targets must be a mapping of partitions to"),
    (lambda c: c.produce("o", "x", partition="0"), "partition must be a whole number >= 0, not"),
    (lambda c: c.produce("o", "x", partition=-1), "partition must be a whole number >= 0, not -1"),
    (lambda c: c.produce("o", 5), "value must be bytes, a string, None, or a list of such, not 5"),
    (lambda c: c.produce("o", ["a", 5]), "value[1] must be bytes, a string or None, not 5"),
    (lambda c: c.produce("o", []), "with one at least, not []"),
    (lambda c: c.produce("o", "x", key=1), "key must be bytes, a string or None, not 1"),
    (lambda c: c.produce("o", "x", acks="1"), "acks must be a whole number, not '1'"),
    (lambda c: c.produce("o", "x", headers=[("a", 1)]), "headers must be pairs of a string and"),
    (lambda c: c.produce(b"o", "x"), "topic must be a string, not b'o'"),
    (lambda c: c.consume("o", offset=None), "offset must be a whole number, not None"),
    (lambda c: c.partition("o", 0).replica(9), "broker 9 holds no replica of o-0; replicas are ["),
    (lambda c: c.partition("o", None), "partition must be a whole number >= 0, not None"),
    (lambda c: c.broker([1]), "broker_id must be a whole number, not [1]"),
    (lambda c: c.inject("Produce", delay_ms="x"), "delay_ms must be a finite number of millisec"),
    (
        lambda c: c.inject("Produce", delay_ms=-5),
        "delay_ms must be a finite number of milliseconds",
    ),
    (lambda c: c.inject("Produce", error=1, times=0), "times must be a whole number >= 1, not 0"),
    (lambda c: c.inject("ApiVersions", delay_ms=5), "each connection answers it by itself"),
    (lambda c: c.inject("api_versions", error=35), "ApiVersions cannot be injected"),
    (lambda c: c.inject(5, error=1), "api must be Kafka's name of an API, such as"),
    (lambda c: c.observe(5), "function must be a function, such as seen.append, not 5"),
    (lambda c: c.observe(None), "function must be a function, such as seen.append, not None"),
    (lambda c: c.network.hold(5), "wants must be a function, such as lambda delivery"),
    (lambda c: c.network.hold(None), "wants must be a function, such as lambda delivery"),
    (lambda c: c.network.partition(1, 2), "groups[0] must be a list of machines, such as"),
    (lambda c: c.network.partition([1], ["broker-1"]), "broker-1 is in two groups of the partit"),
    (lambda c: c.network.partition([None], [2]), "groups[0][0] must be a broker id, or a name "),
    (lambda c: c.network.latency(NAN), "constant_ms must be a finite number of milliseconds >= 0"),
    (lambda c: c.network.latency(-1), "constant_ms must be a finite number of milliseconds >= 0"),
    (lambda c: c.network.latency("5"), "constant_ms must be a finite number of milliseconds >= 0"),
    (lambda c: c.network.latency(uniform_ms=(1,)), "uniform_ms must be two numbers of milliseco"),
    (lambda c: c.network.bandwidth(0), "mb_per_s must be a finite number of megabytes"),
    (lambda c: c.network.bandwidth("1"), "mb_per_s must be a finite number of megabytes"),
    (lambda c: c.network.drop(NAN), "probability must be a number from 0 to 1, not nan"),
    (lambda c: c.network.drop("1"), "probability must be a number from 0 to 1, not '1'"),
    (lambda c: c.zookeeper.get("/nope"), "there is no znode '/nope'"),
    (lambda c: c.zookeeper.stat("/nope"), "there is no znode '/nope'"),
    (lambda c: c.zookeeper.children("/nope"), "there is no znode '/nope'"),
    (lambda c: c.zookeeper.get("nope"), "path must be a path such as '/brokers/ids', not 'nope'"),
    (lambda c: c.zookeeper.server("1"), "server_id must be a whole number, not '1'"),
    (lambda c: c.wait_until(None), "condition must be a function, such as lambda"),
    (lambda c: c.wait_until(lambda: False, NAN), "timeout_s must be a finite number of seconds"),
    (lambda c: c.wait_until(lambda: False, "5"), "timeout_s must be a finite number of seconds"),
]

SIMULATED: list[tuple[Callable[[Any], object], str]] = [
    (lambda s: s.run_for(NAN), "duration_ms must be a finite number of milliseconds >= 0, not nan"),
    (lambda s: s.run_for(INFINITY), "duration_ms must be a finite number of milliseconds >= 0"),
    (lambda s: s.run_for("5"), "duration_ms must be a finite number of milliseconds >= 0, not '5'"),
    (lambda s: s.run_for(None), "duration_ms must be a finite number of milliseconds >= 0"),
    (lambda s: s.run_for(-1), "duration_ms must be a finite number of milliseconds >= 0, not -1"),
    (lambda s: s.run_until(None), "condition must be a function, such as lambda"),
    (lambda s: s.run_until(lambda: False, NAN), "timeout_ms must be a finite number of millisec"),
    (lambda s: s.run_until(lambda: False, "5"), "timeout_ms must be a finite number of millisec"),
    (lambda s: s.run_until(lambda: False, 1000, 0), "every_ms must be a finite number of millise"),
    (
        lambda s: s.producer("broker-1"),
        "name must be a name that is not taken; taken are zk-1, broker-1",
    ),
    (lambda s: s.producer("clients"), "name must be a name that is not taken; taken are"),
    (lambda s: s.producer(5), "name must be a string, not 5"),
    (lambda s: s.producer(acks=5), "ProducerSettings: acks must be -1 (all), 0 or 1, not 5"),
    (lambda s: s.producer(max_in_flight=0), "max_in_flight must be a whole number >= 1, not 0"),
    (lambda s: s.producer(linger_ms=NAN), "linger_ms must be a finite number >= 0, not nan"),
    (lambda s: s.producer(batch_records=2.5), "batch_records must be a whole number >= 1"),
    (lambda s: s.producer(enable_idempotence="no"), "enable_idempotence must be True or False"),
    (lambda s: s.producer(ack=1), "ProducerSettings has no setting 'ack'; did you mean 'acks'?"),
    (lambda s: s.consumer("o"), "partitions must be a list of partitions, such as"),
    (
        lambda s: s.consumer([("o", 0)], auto_offset_reset="begin"),
        "auto_offset_reset must be 'earliest' or 'latest', not 'begin'",
    ),
]

MADE: list[tuple[dict[str, Any], str]] = [
    (
        {"config": {"num.partitions": None}},
        "'num.partitions' must have a value, not None; omit it for the default",
    ),
    ({"brokers": "3"}, "brokers must be a whole number, or a list of broker ids"),
    ({"zookeepers": 1.5}, "zookeepers must be a whole number, not 1.5"),
    ({"kafka_version": 3.9}, "kafka_version must be a string, not 3.9"),
    ({"topics": ["a"]}, "topics must be a mapping of names to partition counts, such as"),
    ({"topics": {"a": "3"}}, "topics['a'] must be a whole number, not '3'"),
    ({"topics": {"a": {"partition": 3}}}, "topics['a']: " + SHAPES),
    ({"topics": {"a": {"partitions": "3"}}}, "partitions must be a whole number, not '3'"),
    ({"racks": "abc"}, "racks must be a list of 3 racks, each a string or None, not 'abc'"),
    ({"racks": ["a", 1, "b"]}, "racks[1] must be a string, not 1"),
    (
        {"restart_delay_ms": 0},
        "restart_delay_ms must be a finite number of milliseconds > 0, not 0",
    ),
    ({"config": ["a"]}, "config must be a mapping of Kafka's names to values, not ['a']"),
    ({"config": {"broker.id": 5}}, "broker.id must be left out, not 5"),
]
REAL: list[tuple[dict[str, Any], str]] = [
    ({"ports": 9092}, "ports must be a list of 3 ports from 0 (any free one) to 65535, not 9092"),
    ({"ports": [1, 2, 70000]}, "ports[2] must be a whole number from 0 to 65535, not 70000"),
    (
        {"zookeeper_ports": ["1"]},
        "zookeeper_ports[0] must be a whole number from 0 to 65535, not '1'",
    ),
    ({"host": None}, "host must be a string, not None"),
    ({"runtime": 1}, "runtime must be a string, not 1"),
    ({"data_dir": 5}, "data_dir must be a path, not 5"),
]
VIRTUAL: list[tuple[dict[str, Any], str]] = [
    ({"seed": None}, "seed must be a whole number, not None"),
    ({"latency_ms": NAN}, "latency_ms must be a finite number of milliseconds >= 0, not nan"),
    ({"behaviour": {"truncation": 1}}, "behaviour must be flags of version '3.9' with some repl"),
    ({"behaviour": behaviour("2.8")}, "with some replaced, not those of '2.8'"),
]


@pytest.fixture(scope="module")
def real() -> Iterator[Cluster]:
    with Cluster(brokers=2, topics={"o": 1}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def simulated() -> Iterator[Simulation]:
    with Simulation(brokers=2, topics={"o": 1}) as simulation:
        yield simulation


@pytest.mark.parametrize(("misuse", "text"), BOTH)
def test_a_cluster_refuses_misuse_at_once(
    real: Cluster, misuse: Callable[[Any], object], text: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(text)):
        misuse(real)
    assert real.failures == []
    assert real.topics() == ["o"]


@pytest.mark.parametrize(("misuse", "text"), BOTH + SIMULATED)
def test_a_simulation_refuses_misuse_before_any_event(
    simulated: Simulation, misuse: Callable[[Any], object], text: str
) -> None:
    events = len(simulated.events)
    with pytest.raises(UsageError, match=re.escape(text)):
        misuse(simulated)
    assert len(simulated.events) == events


@pytest.mark.parametrize(("options", "text"), MADE + REAL)
def test_a_cluster_with_wrong_options_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(text)):
        Cluster(**options)


@pytest.mark.parametrize(("options", "text"), MADE + VIRTUAL)
def test_a_simulation_with_wrong_options_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(text)):
        Simulation(**options)


@pytest.mark.parametrize("kind", [Cluster, Simulation])
def test_an_unknown_topic_or_partition_is_refused_at_once(kind: type[Any]) -> None:
    """An unknown topic or partition is refused at once: the API never auto-creates topics."""
    with kind(brokers=1, topics={"orders": 2}) as cluster:
        for use in (
            lambda topic, number: cluster.produce(topic, "x", partition=number),
            cluster.consume,
            cluster.partition,
            cluster.records,
        ):
            with pytest.raises(UsageError, match=r"topics are \['orders'\]; did you mean 'orders'"):
                use("ordres", 0)
            with pytest.raises(UsageError, match="no partition orders-2; 'orders' has 2, numbered"):
                use("orders", 2)
        assert cluster.topics() == ["orders"]


def test_without_a_running_broker_a_partition_is_unknown() -> None:
    with Simulation(brokers=1, topics={"orders": 1}) as simulation:
        simulation.broker(1).kill()
        with pytest.raises(UsageError, match="no broker is running, so orders-0 is unknown"):
            simulation.partition("orders", 0)


def test_produce_waits_for_a_topic_that_brokers_do_not_know_yet() -> None:
    """``produce`` waits for a topic in ZooKeeper that the controller has not learned of yet."""
    with Simulation(brokers=1) as simulation:
        network = simulation.network
        network.hold(lambda delivery: type(delivery.message).__name__ == "WatchEvent")
        simulation.producer(enable_idempotence=False).produce(("new", 0), b"first")
        simulation.run_for(100)
        assert simulation.zookeeper.children("/brokers/topics") == ["new"]
        assert simulation.topics() == []
        simulation.runtime.call_later(None, 100_000, network.release)
        with pytest.raises(UsageError, match="no partition new-1"):
            simulation.produce("new", b"second", partition=1)
        assert simulation.produce("new", b"second") == 0


def test_a_modelled_client_has_a_name_of_its_own(simulated: Simulation) -> None:
    simulated.producer("mine")
    for make in (simulated.producer, lambda name: simulated.consumer([("o", 0)], name)):
        with pytest.raises(UsageError, match=r"must be a name that is not taken; .*not 'mine'"):
            make("mine")
    assert simulated.producer(acks="all").settings.acks == -1


def test_a_topic_without_a_leader_is_an_error_with_the_likely_reason() -> None:
    """The error for a topic without a leader is the controller's own, with the likely reason."""
    with Simulation(2, trace=False) as simulation:
        simulation.broker(2).kill()
        simulation.run_until(lambda: simulation.controller.id == 1)
        simulation.run_for(20_000)
        with pytest.raises(KafkaError, match="'x': not done within 30000 ms; a partition may"):
            simulation.create_topic("x", assignment={0: [2]})


def test_a_flag_of_the_release_can_be_replaced() -> None:
    """Brokers and the simulation use the same replaced behaviour flags."""
    flags = behaviour("2.8", truncation="leader_epoch")
    with Simulation(brokers=1, kafka_version="2.8", behaviour=flags) as simulation:
        assert simulation.behaviour is flags
        assert [broker.behaviour for broker in simulation.running.living_brokers()] == [flags]


def test_costs_are_in_force_from_the_first_message() -> None:
    """Costs apply from the start of the cluster, which takes longer with a slow ZooKeeper."""
    costs = Costs(zookeeper_request_ms=5)
    with Simulation(brokers=1, costs=costs) as slow, Simulation(brokers=1) as fast:
        assert slow.costs is costs
        assert slow.now_ms > fast.now_ms + 50
