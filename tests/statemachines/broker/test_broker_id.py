"""The id that a broker starts with."""

from __future__ import annotations

import pytest
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.broker.broker_id import check_meta_properties, resolve_broker_id
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now

VERSIONS = ("0.10", "1.1", "2.8", "3.9")
MINE = {"version": "0", "broker.id": "7", "cluster.id": "c"}


def test_ids_are_generated_counted_and_kept() -> None:
    """CP-194: 1001, 1002, ...; a stored id is kept, a configured one is taken."""
    zk = ControllerCluster([1]).zk
    automatic, configured = BrokerConfig({}), BrokerConfig({"broker.id": 0})
    assert run_now(resolve_broker_id(automatic, None, zk)) == 1001
    assert run_now(resolve_broker_id(automatic, None, zk)) == 1002
    assert run_now(resolve_broker_id(automatic, 1001, zk)) == 1001
    assert run_now(resolve_broker_id(configured, None, zk)) == 0
    low = BrokerConfig({"reserved.broker.max.id": 5})
    assert run_now(resolve_broker_id(low, None, zk)) == 8


def test_no_id_is_generated_where_that_is_disabled() -> None:
    """A stored id is used nevertheless."""
    zk = ControllerCluster([1]).zk
    fixed = BrokerConfig({"broker.id.generation.enable": False})
    assert run_now(resolve_broker_id(fixed, 7, zk)) == 7
    with pytest.raises(KafkaError, match=r"broker.id must be greater than or equal to 0"):
        run_now(resolve_broker_id(fixed, None, zk))


@pytest.mark.parametrize("version", VERSIONS)
def test_meta_properties_of_log_directories_determine_the_broker_id(version: str) -> None:
    """New directories have no ``meta.properties``; one without a cluster id is accepted."""
    flags = behaviour(version)
    assert check_meta_properties({"a": {}, "b": {}}, "c", -1, flags) is None
    assert check_meta_properties({"a": {}, "b": MINE}, "c", 7, flags) == 7
    assert check_meta_properties({"a": {"version": "0", "broker.id": "7"}}, "c", -1, flags) == 7


MOVED = "your data, make sure your configured broker.id matches"


@pytest.mark.parametrize(
    ("version", "other", "configured", "message"),
    [
        ("1.1", {}, 1, rf"Inconsistent.*broker.id 1 doesn't match stored broker.id 7 in.*{MOVED}"),
        ("2.8", {}, 1, rf"Inconsistent.*id 1 doesn't match stored broker.id Some\(7\).*{MOVED}"),
        ("3.9", {}, 1, "Stored node id 7 doesn't match previous node id 1 in a/meta.properties"),
        ("0.10", {"broker.id": "8"}, -1, r"IdException: Failed to match.*\. Found Set\(7, 8\)"),
        ("2.8", {"broker.id": "8"}, -1, "MetadataException: .*\n- a -> {version=0, broker.id=7, "),
        ("3.9", {"broker.id": "8"}, -1, "Stored node id 8 doesn't match previous node id 7 in b/"),
        ("2.8", {"cluster.id": "d"}, -1, "BrokerMetadata is not consistent across log.dirs"),
        ("3.9", {"cluster.id": "d"}, -1, "Invalid cluster.id in: b/.* Expected c, but read d"),
        ("3.9", {"broker.id": "x"}, -1, "b/meta.properties cannot be read: .* and broker.id=x"),
        ("2.8", {"version": "1"}, -1, "b/meta.properties cannot be read: .* not version=1"),
    ],
)
def test_a_log_directory_that_is_another_brokers(
    version: str, other: dict[str, str], configured: int, message: str
) -> None:
    """CP-194: a directory is refused if it belongs to another cluster or to another broker than the
    other directories or the configuration say, or is unreadable; the messages are those of
    ``KafkaServer`` and since 3.7 of ``MetaPropertiesEnsemble.verify``."""
    stored = {"a": MINE, "b": MINE | other}
    with pytest.raises(KafkaError, match=f"(?s){message}") as caught:
        check_meta_properties(stored, "c", configured, behaviour(version))
    assert caught.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("2.8", r"IdException: The Cluster ID d doesn't match stored clusterId Some\(c\) in meta"),
        ("3.9", r"Invalid cluster.id in: a/meta.properties. Expected d, but read c"),
    ],
)
def test_the_directories_of_another_cluster(version: str, message: str) -> None:
    """They are refused since 2.4 (KAFKA-7335); before, ``meta.properties`` has no cluster id."""
    with pytest.raises(KafkaError, match=message):
        check_meta_properties({"a": MINE}, "d", 7, behaviour(version))
    assert check_meta_properties({"a": MINE}, "d", 7, behaviour("1.1")) == 7
