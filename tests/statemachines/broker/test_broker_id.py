"""Which id a broker starts with."""

from __future__ import annotations

import pytest
from fakekafka.protocol.awaiting import run_now
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.statemachines.broker.broker_id import resolve_broker_id, stored_broker_id
from fakekafka.tests.support.controller_cluster import ControllerCluster


def test_ids_are_drawn_counted_and_kept() -> None:
    """CP-194: 1001, 1002, ...; a stored id wins over drawing, a configured one must agree."""
    cluster = ControllerCluster([1])
    automatic, configured = BrokerConfig({}), BrokerConfig({"broker.id": 0})
    assert run_now(resolve_broker_id(automatic, None, cluster.zk)) == 1001
    assert run_now(resolve_broker_id(automatic, None, cluster.zk)) == 1002
    assert run_now(resolve_broker_id(automatic, 1001, cluster.zk)) == 1001
    assert run_now(resolve_broker_id(configured, None, cluster.zk)) == 0
    assert run_now(resolve_broker_id(configured, 0, cluster.zk)) == 0
    with pytest.raises(KafkaError, match="InconsistentBrokerId") as caught:
        run_now(resolve_broker_id(configured, 7, cluster.zk))
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    fixed = BrokerConfig({"broker.id.generation.enable": False})
    with pytest.raises(KafkaError, match="not set"):
        run_now(resolve_broker_id(fixed, None, cluster.zk))


MINE = {"version": "0", "broker.id": "7", "cluster.id": "c"}


def test_what_log_directories_say_of_their_broker() -> None:
    """New directories say nothing; one that does not name the cluster is taken."""
    assert stored_broker_id({"a": {}, "b": {}}, "c") is None
    assert stored_broker_id({"a": {}, "b": MINE}, "c") == 7
    assert stored_broker_id({"a": {"version": "0", "broker.id": "7"}}, "c") == 7


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"cluster.id": "d"}, "Cluster ID c doesn't match stored clusterId d in b/meta.properties"),
        ({"broker.id": "8"}, "not consistent across log.dirs: a is of broker 7, b is of broker 8"),
        ({"broker.id": "x"}, "b/meta.properties cannot be read: .* and broker.id=x"),
        ({"version": "1"}, "b/meta.properties cannot be read: .* not version=1"),
    ],
)
def test_a_log_directory_that_is_another_brokers(other: dict[str, str], message: str) -> None:
    """Of another cluster, of another broker than the rest, or of nobody knows whom."""
    with pytest.raises(KafkaError, match=message) as caught:
        stored_broker_id({"a": MINE, "b": MINE | other}, "c")
    assert caught.value.code is ErrorCode.INVALID_CONFIG
