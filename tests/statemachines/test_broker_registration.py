"""Which id a broker starts with, and how it registers."""

from __future__ import annotations

import pytest
from controller_cluster import ControllerCluster
from fakekafka.protocol.awaiting import run_now
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.statemachines.broker_registration import resolve_broker_id


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


def test_registering_again_in_the_same_session_changes_nothing() -> None:
    """CP-81."""
    cluster = ControllerCluster([1])
    controller = cluster.active
    epoch, data = controller.broker_epoch, cluster.zookeeper.get("/brokers/ids/1")
    cluster.host.advance(50)
    run_now(controller.registration.register_again())
    assert controller.broker_epoch == epoch
    assert cluster.zookeeper.get("/brokers/ids/1") == data
